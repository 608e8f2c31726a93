#include "pipeweaver/costdb/import.hpp"

#include "costdb/embedded.hpp"
#include "costdb/store/store.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "tests/costdb/fixtures.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

std::string refusal(const Folder& folder, const std::string& table) {
    const auto path = folder.write("t.csv", table);
    try {
        static_cast<void>(import_tables({{path, "h100_sxm", "test", "none"}}, folder / "db.sqlite"));
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK_FALSE(std::filesystem::exists(folder / "db.sqlite"));
        const std::string what = error.what();
        return what.starts_with(folder.path().string()) ? what.substr(folder.path().string().size() + 1) : what;
    }
    return "accepted";
}

std::filesystem::path small_database(const Folder& folder) {
    const auto table = folder.write("t.csv", "dtype,m,n,k,latency_us\nbf16,128,256,512,7.25\n");
    static_cast<void>(import_tables({{table, "H100", "test", "none"}}, folder / "db.sqlite"));
    return folder / "db.sqlite";
}

// Links to those of the collected tables that the embedded database was made from: others are collected since.
void link_embedded(const std::filesystem::path& tables, const std::filesystem::path& to) {
    std::set<std::string> known;
    for (const std::string& device : embedded_devices())
        for (const SourcedMeasurements& one : read_sources("embedded", gunzip(embedded_store(device))))
            known.insert(one.file);
    for (const auto& entry : std::filesystem::directory_iterator(tables)) {
        const std::string name = entry.path().filename().string();
        if (!name.ends_with(".csv.gz") || known.contains(name))
            std::filesystem::create_symlink(entry.path(), to / name);
    }
}

}  // namespace

TEST_CASE("what was imported is answered exactly, duplicates by their median") {
    const Folder folder("import");
    const auto gemm = folder.write("gemm.csv",
                                   "dtype,m,n,k,latency_us\nbf16,128,256,512,9\nbf16,128,256,512,7.2504\n"
                                   "bf16,128,256,512,5\nfp8,16,32,48,3\n");
    const auto attention = folder.write("attention.csv",
                                        "dtype,batch,seq_len,q_heads,kv_heads,head_dim,causal,latency_us\n"
                                        "bf16,2,1024,16,4,128,1,88.5\n");

    const auto done = import_tables({{gemm, "H100", "test", "none"}, {attention, "h100-sxm", "test", "none"}},
                                    folder / "db.sqlite.gz");
    const auto database = CostDatabase::read(folder / "db.sqlite.gz", "h100_sxm");

    CHECK(done.tables == 2);
    CHECK(done.points == 3);
    CHECK(done.duplicates == 2);
    CHECK(database.cost(Gemm{.m = 128, .n = 256, .k = 512}).duration == Duration{7250});
    CHECK(database.cost(Gemm{.dtype = Dtype::fp8, .m = 16, .n = 32, .k = 48}).basis == Basis::exact);
    CHECK(
        database.cost(Attention{.batch = 2, .seq_len = 1024, .q_heads = 16, .kv_heads = 4, .head_dim = 128}).duration ==
        Duration{88'500});
}

TEST_CASE("the passes of a GEMM table meet at the forward's shape") {
    const Folder folder("passes");
    const auto table = folder.write("t.csv",
                                    "dtype,batch,m,n,k,layout,pass,accumulate,out_dtype,fraction_of_peak,latency_us\n"
                                    "bf16,1,4096,1536,5120,TN,forward,False,bf16,0.78,262.152\n"
                                    "bf16,1,4096,5120,1536,NN,backward_input,False,bf16,0.73,279.983\n"
                                    "bf16,1,1536,5120,4096,NT,backward_weight,True,fp32,0.62,330.671\n"
                                    "bf16,1,1536,5120,4096,NT,backward_weight,True,bf16,0.65,310\n");
    static_cast<void>(import_tables({{table, "a100_pcie", "test", "none"}}, folder / "db.sqlite"));
    const auto database = CostDatabase::read(folder / "db.sqlite", "a100-pcie");

    Gemm query{.m = 4096, .n = 1536, .k = 5120};
    CHECK(database.cost(query).duration == Duration{262'152});
    query.pass = Pass::backward_input;
    CHECK(database.cost(query).duration == Duration{279'983});
    query.pass = Pass::backward_weight;
    CHECK(database.cost(query).duration == Duration{330'671});
    query.pass = Pass::backward;
    CHECK(database.cost(query).duration == Duration{610'654});
    CHECK(database.cost(query).basis == Basis::exact);
}

TEST_CASE("a fraction of peak becomes the time of causal attention") {
    const Folder folder("fractions");
    const auto table = folder.write("t.csv",
                                    "pass,dtype,batch,seq_len,q_heads,kv_heads,qk_head_dim,v_head_dim,qkv_contiguous,"
                                    "fraction_of_peak\nforward,bf16,1,4096,8,8,128,128,True,0.5\n");
    static_cast<void>(import_tables({{table, "a100_pcie", "test", "none"}}, folder / "db.sqlite"));
    const auto database = CostDatabase::read(folder / "db.sqlite", "a100_pcie");

    // 2 * 8 heads * 4096^2 * 256 operations / (0.5 * 312e6 per us) = 440.51 us
    CHECK(database.cost(Attention{.seq_len = 4096, .q_heads = 8, .kv_heads = 8, .head_dim = 128}).duration ==
          Duration{440'509});
}

TEST_CASE("a table that is no measurement is refused with its line and column, and nothing is written") {
    const Folder folder("refused");
    const std::string header = "dtype,m,n,k,latency_us\n";
    CHECK(refusal(folder, header + "bf16,8,8,8,0\n") ==
          "t.csv:2: latency_us: is '0', must be a number above 0 and up to 3600000000");
    CHECK(refusal(folder, header + "bf16,8,8,8,1\nbf16,8,8,9,-3\n").starts_with("t.csv:3: latency_us: is '-3'"));
    CHECK(refusal(folder, header + "bf16,8,8,8,nan\n").starts_with("t.csv:2: latency_us: is 'nan'"));
    CHECK(refusal(folder, header + "bf16,8,8,8,3600000001\n").starts_with("t.csv:2: latency_us: is '3600000001'"));
    CHECK(refusal(folder, header + "bf16,8,x,8,1\n").starts_with("t.csv:2: n: is 'x', must be a whole number"));
    CHECK(refusal(folder, header + "bf16,,8,8,1\n").starts_with("t.csv:2: m: is ''"));
    CHECK(refusal(folder, header + "bf61,8,8,8,1\n") == "t.csv:2: dtype: unknown dtype 'bf61'; did you mean 'bf16'?");
    CHECK(refusal(folder, header) == "t.csv: has no rows");
    CHECK(refusal(folder, "dtype,m,n,latency_us\nbf16,8,8,1\n") ==
          "t.csv:1: column 'k' is missing; tables like this have dtype,m,n,k,latency_us");
    CHECK(refusal(folder, "dtype,m,n,k,latency\nbf16,8,8,8,1\n") ==
          "t.csv:1: column 'latency_us' is missing (is 'latency' it?); tables like this have dtype,m,n,k,latency_us");
    CHECK(refusal(folder, "dtype,m,n,k,extra,latency_us\nbf16,8,8,8,1,1\n")
              .starts_with("t.csv:1: unknown column 'extra'"));
    CHECK(refusal(folder, "dtype,batch,seq_len,q_heads,kv_heads,head_dim,causal,latency_us\nbf16,1,8,4,3,64,1,5\n") ==
          "t.csv:2: kv_heads: does not divide q_heads");
    CHECK(refusal(folder, "collective,dtype,gpus,message_bytes,latency_us\nall_gater,fp16,2,8,1\n")
              .starts_with("t.csv:2: collective: unknown collective 'all_gater'; did you mean 'all_gather'?"));
}

TEST_CASE("an unknown device, a folder without tables and a table of no known name are refused") {
    const Folder folder("devices");
    const auto table = folder.write("mine.csv", "dtype,m,n,k,latency_us\nbf16,8,8,8,1\n");
    CHECK_THROWS_AS(static_cast<void>(import_tables({{table, "h1000", "", ""}}, folder / "db.sqlite")), Error);
    CHECK_THROWS_AS(static_cast<void>(import_folder(folder.path(), folder / "db.sqlite")), Error);
    CHECK_THROWS_AS(static_cast<void>(import_folder(folder / "nowhere", folder / "db.sqlite")), Error);
    CHECK_FALSE(std::filesystem::exists(folder / "db.sqlite"));
}

TEST_CASE("a database is refused when it is damaged, foreign, newer or without the device") {
    const Folder folder("damaged");
    const auto good = read_file(small_database(folder));
    const auto ask = [&](const std::string& bytes) {
        const auto path = folder.write("x.sqlite", bytes);
        try {
            static_cast<void>(CostDatabase::read(path, "h100_sxm"));
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            return std::string(error.what()).substr(path.string().size() + 2);
        }
        return std::string("accepted");
    };
    REQUIRE(ask(good) == "accepted");
    CHECK(ask("hello") == "is not a cost database: not SQLite");
    CHECK(ask(good.substr(0, good.size() / 2)) != "accepted");
    CHECK(ask(gzip(good).substr(0, 200)).find("cut short") != std::string::npos);
    auto newer = good;
    newer[63] = 6;  // user_version
    CHECK(ask(newer) == "is a cost database of version 6, this program reads versions 3 to 5");
    auto foreign = good;
    foreign[68] = 0;  // application_id
    CHECK(ask(foreign) == "is not a cost database: its application id is not PWCD");
    auto damaged = good;
    for (std::size_t i = 4096; i < damaged.size(); i += 7) damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
    CHECK(ask(damaged) != "accepted");
    CHECK_THROWS_WITH_AS(static_cast<void>(CostDatabase::read(folder / "db.sqlite", "b200")),
                         ((folder / "db.sqlite").string() + ": has no device 'b200'; it has h100_sxm").c_str(), Error);
    CHECK_THROWS_AS(static_cast<void>(CostDatabase::read(folder / "missing.sqlite", "b200")), Error);
}

TEST_CASE("the same tables give the same bytes, whatever the order of their rows") {
    const Folder folder("bytes");
    const auto a = folder.write("a/t.csv", "dtype,m,n,k,latency_us\nbf16,1,2,3,4\nfp8,5,6,7,8\n");
    const auto b = folder.write("b/t.csv", "dtype,m,n,k,latency_us\nbf16,1,2,3,4\nfp8,5,6,7,8\n");
    static_cast<void>(import_tables({{a, "h100_sxm", "test", "none"}}, folder / "a.sqlite.gz"));
    static_cast<void>(import_tables({{b, "H100", "test", "none"}}, folder / "b.sqlite.gz"));

    CHECK(sha256(read_file(folder / "a.sqlite.gz")) == sha256(read_file(folder / "b.sqlite.gz")));
}

TEST_CASE("the embedded databases are what the importer makes of the collected tables, byte for byte") {
    const auto tables = shared_tables();
    if (!tables) {
        pipeweaver::testing::left_out("the import of the collected tables, which are not on this machine");
        return;
    }
    const Folder folder("rebuild"), embedded("embedded-tables");
    link_embedded(*tables, embedded.path());
    static_cast<void>(import_folder(embedded.path(), folder.path()));

    for (const std::string& device : embedded_devices()) {
        CAPTURE(device);
        CHECK(sha256(read_file(folder / (device + ".sqlite.gz"))) == sha256(gunzip(embedded_store(device))));
    }
}
