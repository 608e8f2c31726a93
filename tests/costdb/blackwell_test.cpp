// Tables of Blackwell: formats, linear attention, what is thinned out, and what the program holds of them.
#include "costdb/embedded.hpp"
#include "costdb/import/thinning.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/import.hpp"
#include "tests/costdb/fixtures.hpp"
#include "tests/costdb/leave_out.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

const std::string gdn_columns =
    "kernel,dtype,batch,seq_len,hidden,conv_width,k_heads,k_head_dim,v_heads,v_head_dim,latency_us\n";

CostDatabase imported(const Folder& folder, const std::string& table, const std::string& device) {
    const auto path = folder.write("table.csv", table);
    static_cast<void>(import_tables({{path, device, "test", "none"}}, folder / "db.sqlite"));
    return CostDatabase::read(folder / "db.sqlite", device);
}

/// A product of B300 or another as many times its roofline as is said; 2.25e9 FLOP/us in bf16.
GemmPoint product(std::int64_t m, double times, Dtype dtype = Dtype::bf16, double peak = 2.25e9) {
    const double ns = 1e3 * (2 + 2. * static_cast<double>(m) * 8192 * 8192 / peak);
    return {.dtype = dtype, .m = m, .n = 8192, .k = 8192, .latency_ns = static_cast<std::int64_t>(times * ns)};
}

std::vector<std::int64_t> rows_kept(const std::string& device, std::vector<GemmPoint> points, bool throttled = false) {
    Measurements measured;
    measured.device = device;
    measured.gemm = std::move(points);
    static_cast<void>(thin(measured, throttled));
    std::vector<std::int64_t> rows;
    for (const GemmPoint& p : measured.gemm) rows.push_back(p.m);
    return rows;
}

double nanoseconds(const Cost& cost) { return static_cast<double>(cost.duration.count()); }

}  // namespace

TEST_CASE("products with a scale for each block or sixteen values are formats of their own") {
    const Folder folder("formats");
    const auto b300 = imported(
        folder,
        "dtype,m,n,k,latency_us\nbf16,64,128,256,9\nfp8,64,128,256,7\nfp8_block,64,128,256,8\nnvfp4,64,128,256,5\n",
        "b300");
    const auto ns = [&](Dtype dtype) {
        const auto cost = b300.cost(Gemm{.dtype = dtype, .m = 64, .n = 128, .k = 256});
        CHECK(cost.basis == Basis::exact);
        return cost.duration.count();
    };
    CHECK(ns(Dtype::fp8) == 7000);
    CHECK(ns(Dtype::fp8_block) == 8000);
    CHECK(ns(Dtype::nvfp4) == 5000);
    CHECK_THROWS_WITH_AS(static_cast<void>(h100().cost(Gemm{.dtype = Dtype::nvfp4, .m = 64, .n = 128, .k = 256})),
                         "dtype: nvfp4 is not supported by h100_sxm, allowed are bf16 and fp8", Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(a100().cost(Gemm{.dtype = Dtype::fp8_block, .m = 64, .n = 128, .k = 256})),
                         "dtype: fp8_block is not supported by a100_sxm, allowed is bf16", Error);
}

TEST_CASE("linear attention is answered from its table, between its sequences, and else by a model") {
    const Folder folder("gdn");
    const std::string kernel = "chunk_gated_delta_rule_flashinfer";
    const auto b300 = imported(folder,
                               gdn_columns + kernel + ",bf16,1,1024,2048,4,16,128,32,128,100\n" + kernel +
                                   ",bf16,1,4096,2048,4,16,128,32,128,400\n",
                               "b300");
    const auto of = [&](std::int64_t seq_len, std::int64_t dim = 128) {
        return b300.cost(
            DeltaNet{.seq_len = seq_len, .key_heads = 16, .value_heads = 32, .key_dim = dim, .value_dim = dim});
    };
    CHECK(of(4096).basis == Basis::exact);
    CHECK(of(4096).duration.count() == 400'000);
    CHECK(of(2048).basis == Basis::interpolated);
    CHECK(nanoseconds(of(2048)) == doctest::Approx(200'000).epsilon(0.1));
    CHECK(of(2048, 64).basis == Basis::modelled);
    CHECK_THROWS_WITH_AS(static_cast<void>(of(0)), doctest::Contains("seq_len"), Error);
}

TEST_CASE("a table of linear attention in another format than bf16 is refused by its place") {
    const Folder folder("gdn-fp8");
    CHECK_THROWS_WITH_AS(
        static_cast<void>(imported(folder, gdn_columns + "causal_conv1d_fn,fp8,1,64,2048,4,16,128,32,128,9\n", "b300")),
        doctest::Contains("table.csv:2: dtype: is 'fp8', must be bf16"), Error);
}

TEST_CASE("thinning keeps some rows of a product, and none that stands out of its line") {
    CHECK(rows_kept("b300", {product(1024, 1.4), product(1280, 1.4), product(2048, 1.4)}) ==
          std::vector<std::int64_t>{1024, 2048});
    // The third of five takes twice as long as those around it.
    CHECK(rows_kept("b300", {product(512, 1.4), product(768, 1.4), product(1024, 2.8), product(1536, 1.4),
                             product(2048, 1.4)}) == std::vector<std::int64_t>{512, 768, 1536, 2048});
}

TEST_CASE("thinning leaves out a throttled machine's long products, of GB200 in 16 bits alone") {
    const auto slow = [](Dtype dtype, double peak) {
        return std::vector{product(64, 1.9, dtype, peak), product(8192, 1.9, dtype, peak)};
    };
    CHECK(rows_kept("gb200", slow(Dtype::bf16, 2.5e9), true) == std::vector<std::int64_t>{64});
    CHECK(rows_kept("gb200", slow(Dtype::fp8, 5e9), true) == std::vector<std::int64_t>{64, 8192});
    CHECK(rows_kept("gb200", slow(Dtype::bf16, 2.5e9)) == std::vector<std::int64_t>{64, 8192});
    // Of the folder's tables it is GB200's.
    const Folder folder("throttled");
    for (const std::string name : {"gb200", "gb300"})
        static_cast<void>(folder.write("in/" + name + "_gemm.csv",
                                       "dtype,m,n,k,latency_us\nbf16,64,8192,8192,10\nbf16,8192,8192,8192,839\n"));
    static_cast<void>(import_folder(folder / "in", folder / "out"));
    CHECK(CostDatabase::read(folder / "out/gb200.sqlite.gz", "gb200").measurements().gemm.size() == 1);
    CHECK(CostDatabase::read(folder / "out/gb300.sqlite.gz", "gb300").measurements().gemm.size() == 2);
}

TEST_CASE("thinning leaves out products by blocks whose time is the host's") {
    std::vector<GemmPoint> points{product(8192, 1.4, Dtype::fp8_block, 4.5e9)};
    GemmPoint tiny{.dtype = Dtype::fp8_block, .m = 16, .n = 256, .k = 256, .latency_ns = 150'000};
    points.push_back(tiny);
    tiny.m = 1024;
    tiny.n = 4096;
    tiny.latency_ns = 290'000;  // less than twice the tiny one's
    points.push_back(tiny);
    CHECK(rows_kept("b300", points) == std::vector<std::int64_t>{8192});
}

TEST_CASE("of a folder of tables B200's second table of products is left out, and said to be") {
    const Folder folder("two-levels");
    const std::string table = "dtype,m,n,k,latency_us\nbf16,1024,8192,8192,90\n";
    static_cast<void>(folder.write("in/b200_sxm_gemm.csv", table));
    static_cast<void>(folder.write("in/b200_gemm_fwd_bwd.csv", "dtype,m,n,k,latency_us\nbf16,1024,8192,8192,150\n"));
    static_cast<void>(folder.write("in/h100_sxm_gemm.csv", table));
    const auto done = import_folder(folder / "in", folder / "out");
    CHECK(done.tables == 2);
    REQUIRE(done.left_out.size() == 1);
    CHECK(done.left_out[0].starts_with("b200_gemm_fwd_bwd.csv: "));
    const auto b200 = CostDatabase::read(folder / "out/b200.sqlite.gz", "b200");
    CHECK(b200.cost(Gemm{.m = 1024, .n = 8192, .k = 8192}).duration.count() == 90'000);
    CHECK(CostDatabase::read(folder / "out/h100_sxm.sqlite.gz", "h100_sxm").measurements().gemm.size() == 1);
}

TEST_CASE("the program holds tables of eight devices, in less than six megabytes") {
    const auto devices = embedded_devices();
    CHECK(devices.size() == 8);
    CHECK(std::is_sorted(devices.begin(), devices.end()));
    std::size_t bytes = 0;
    for (const std::string& device : devices) bytes += embedded_store(device).size();
    CHECK(bytes < 6'000'000);  // 1.8 before Blackwell's
    CHECK(embedded_store("mi300x").empty());
    CHECK(CostDatabase::embedded("mi300x").measurements().gemm.empty());
}

TEST_CASE("left-out points of Blackwell's tables are answered within 3 percent in the median, attention within 4" *
          pipeweaver::testing::on_release_libraries()) {
    const auto any = [](const auto&) { return true; };
    for (const char* name : {"b200", "b300", "gb200", "gb300"}) {
        CAPTURE(name);
        const auto device = CostDatabase::embedded(name);
        const auto products = leave_out(device, &Measurements::gemm, one_of_ten<GemmPoint>(1));
        for (const Dtype dtype : {Dtype::bf16, Dtype::fp8, Dtype::nvfp4}) {
            CAPTURE(name_of(dtype));
            const auto found = errors(products, [&](const auto& a) { return a.point.dtype == dtype; });
            REQUIRE(found.size() > 300);
            CHECK(quantile(found, 0.5) <= 3);
        }
        const auto attentions = errors(leave_out(device, &Measurements::attention, one_of_ten<AttentionPoint>(1)), any);
        CHECK(quantile(attentions, 0.5) <= 4);
        const auto linear = errors(leave_out(device, &Measurements::linear, one_of_ten<LinearPoint>(1)), any);
        CHECK(quantile(linear, 0.5) <= 4);
    }
}

TEST_CASE("large products that were thinned out are answered within 5 percent in the median, of GB300") {
    const auto tables = shared_tables();
    if (!tables) {
        pipeweaver::testing::left_out("the whole tables of GB300, which are not on this machine");
        return;
    }
    const Folder folder("whole");
    static_cast<void>(
        import_tables({{*tables / "gb300_gemm.csv.gz", "gb300", "test", "none"}}, folder / "whole.sqlite"));
    const auto whole = CostDatabase::read(folder / "whole.sqlite", "gb300");
    const auto embedded = CostDatabase::embedded("gb300");
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp8, Dtype::nvfp4}) {
        CAPTURE(name_of(dtype));
        std::vector<GemmPoint> gone;
        for (const GemmPoint& p : whole.measurements().gemm)
            if (p.dtype == dtype && is_big(p)) gone.push_back(p);
        const auto found = errors(asked(embedded, gone), [](const auto& a) { return a.answer.basis != Basis::exact; });
        REQUIRE(found.size() > 1000);
        CHECK(quantile(found, 0.5) <= 5);
    }
}

TEST_CASE("large products rank GB300 before B300 before B200 before H100") {
    constexpr std::array<std::int64_t, 3> sizes{4096, 8192, 16384};
    std::vector<double> sums;
    for (const char* name : {"gb300", "b300", "b200", "h100_sxm"}) {
        const auto device = CostDatabase::embedded(name);
        double sum = 0;
        for (const std::int64_t n : sizes)
            for (const std::int64_t k : sizes) sum += nanoseconds(device.cost(Gemm{.m = 4096, .n = n, .k = k}));
        sums.push_back(sum);
    }
    CHECK(std::is_sorted(sums.begin(), sums.end()));
    CHECK(sums.back() > 1.8 * sums[2]);
}
