#include "costdb/import/decimal_time.hpp"
#include "costdb/import/kineto/kernel_order.hpp"
#include "costdb/import/repetitions.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/trace.hpp"
#include "tests/costdb/fixtures.hpp"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

const std::string gemm_kernel = "sm90_xmma_gemm_bf16";

std::string operator_event(int id, const std::string& name, const std::string& dims, const std::string& types,
                           const std::string& more = "") {
    return fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"{}","ts":1,"dur":2,"args":{{"External id":{},)"
                       R"("Input Dims":[{}],"Input type":[{}]{}}}}})",
                       name, id, dims, types, more);
}

std::string kernel_event(int id, int correlation, const std::string& name, const std::string& start,
                         const std::string& duration, const std::string& more = "") {
    return fmt::format(R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":7,"ts":{},"dur":{},"args":{{)"
                       R"("External id":{},"device":0,"stream":7,"correlation":{}{}}}}})",
                       name, start, duration, id, correlation, more);
}

std::string mm(int id, int m, int k, int n) {
    return operator_event(id, "aten::mm", fmt::format("[{},{}],[{},{}]", m, k, k, n),
                          R"("c10::BFloat16","c10::BFloat16")");
}

std::string trace(const std::vector<std::string>& events) {
    return fmt::format(
        "{{\"schemaVersion\":1,\"deviceProperties\":[{{\"id\":0,\"name\":\"NVIDIA H100 80GB HBM3\"}}],"
        "\"distributedInfo\":{{\"name\":\"x\",\"pg\":[{{\"name\":\"y\"}}]}},\n\"traceEvents\":[{}]}}",
        fmt::join(events, ",\n"));
}

TraceReport report(const Folder& folder, const std::string& text, const TraceOptions& options = {}) {
    return read_trace(folder.write("trace.json", text), options);
}

std::string refusal(const Folder& folder, const std::string& text, const std::string& name = "trace.json") {
    const auto path = folder.write(name, text);
    try {
        static_cast<void>(read_trace(path));
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return std::string(error.what()).substr(path.string().size() + 2);
    }
    return "accepted";
}

}  // namespace

TEST_CASE("time stamps keep every nanosecond") {
    CHECK(nanoseconds("1712195495519689.123") == 1'712'195'495'519'689'123);
    CHECK(nanoseconds("1712195495519689") == 1'712'195'495'519'689'000);
    CHECK(nanoseconds("4458676522690.655") == 4'458'676'522'690'655);
    CHECK(nanoseconds("0.0005") == 1);
    CHECK(nanoseconds("0.00049") == 0);
    CHECK(nanoseconds("1.5e3") == 1'500'000);
    CHECK(nanoseconds("1.712195495519689123e15") == 1'712'195'495'519'689'123);
    CHECK(nanoseconds("2e-3") == 2);
    CHECK(nanoseconds("-3.25") == -3'250);
    CHECK(nanoseconds("0") == 0);
    CHECK(nanoseconds("1e-400") == 0);
    CHECK_FALSE(nanoseconds(""));
    CHECK_FALSE(nanoseconds("NaN"));
    CHECK_FALSE(nanoseconds("1e16"));
    CHECK_FALSE(nanoseconds("12a"));
}

TEST_CASE("operators with shapes become points, the lower middle of their times, with their spread") {
    const Folder folder("trace-points");
    const auto attention = operator_event(
        5, "aten::_flash_attention_forward", "[2,1024,16,128],[2,1024,4,128],[2,1024,4,128]",
        R"("c10::Half","c10::Half","c10::Half")", R"(,"Concrete Inputs":["","","","","","1024","1024","0.","True"])");
    const auto got =
        report(folder, trace({mm(1, 128, 512, 256), mm(2, 128, 512, 256), mm(3, 128, 512, 256), attention,
                              kernel_event(1, 11, gemm_kernel, "10", "5.000"),
                              kernel_event(2, 12, gemm_kernel, "20", "7"), kernel_event(3, 13, gemm_kernel, "30", "6"),
                              kernel_event(3, 14, "cublasLt::splitKreduce_kernel", "37", "3.5"),
                              kernel_event(5, 15, "flash_fwd_kernel", "50", "88.25")}));

    REQUIRE(got.points.gemm.size() == 1);
    const auto& gemm = got.points.gemm[0];
    CHECK((gemm.m == 128 && gemm.n == 256 && gemm.k == 512));
    CHECK(gemm.latency_ns == 7'000);     // of 5, 7 and 6 + 3.5 us
    CHECK(gemm.spread_permille == 321);  // 4.5 us / 2 of 7
    REQUIRE(got.points.attention.size() == 1);
    CHECK(got.points.attention[0].dtype == Dtype::fp16);
    CHECK(got.points.attention[0].causal);
    CHECK(got.points.attention[0].kv_heads == 4);
    CHECK(got.points.attention[0].latency_ns == 88'250);
    CHECK(got.mapped == got.kernels);
    CHECK(got.product == "NVIDIA H100 80GB HBM3");
}

TEST_CASE("a collective's kernel says its message itself, and the shortest of its times counts") {
    const Folder folder("trace-collectives");
    const auto nccl = [&](const char* start, const char* duration, const char* what, int in, int out,
                          const char* ranks) {
        return kernel_event(9, 3, "ncclDevKernel", start, duration,
                            fmt::format(R"(,"Collective name":"{}","In msg nelems":{},"Out msg nelems":{},)"
                                        R"("Group size":2,"dtype":"BFloat16","Process Group Ranks":"{}")",
                                        what, in, out, ranks));
    };
    const auto got = report(folder, trace({nccl("1", "90", "allreduce", 512, 512, "[0, 1]"),
                                           nccl("100", "40", "allreduce", 512, 512, "[0, 1]"),
                                           nccl("200", "50", "_allgather_base", 512, 1024, "[0, 8]"),
                                           nccl("300", "60", "broadcast", 512, 512, "[0, 1]")}));

    REQUIRE(got.points.collective.size() == 2);
    CHECK(got.points.collective[0].latency_ns == 40'000);
    CHECK(got.points.collective[0].message_bytes == 1024);
    CHECK(got.points.collective[0].source == LinkSource::sweep);
    CHECK(got.points.collective[1].message_bytes == 2048);
    CHECK(got.points.collective[1].source == LinkSource::nodes);
    CHECK(got.points.collective[1].gpus_per_node == 1);
    CHECK(got.mapped == 3);
    const auto broadcast =
        std::find_if(got.rows.begin(), got.rows.end(), [](const auto& r) { return !r.why_not.empty(); });
    REQUIRE(broadcast != got.rows.end());
    CHECK(broadcast->why_not == "no table holds broadcast");
}

TEST_CASE("every kernel is in a row, with a reason where it is in no table, and the rows add up") {
    const Folder folder("trace-rows");
    const auto got =
        report(folder, trace({operator_event(1, "aten::bmm", "[4,8,8],[4,8,8]", R"("float","float")"),
                              operator_event(2, "aten::cudnn_convolution", "[1,3,8,8]", R"("float")"), mm(3, 8, 8, 8),
                              operator_event(4, "aten::mm", "", ""), kernel_event(1, 11, gemm_kernel, "1", "1"),
                              kernel_event(2, 12, gemm_kernel, "2", "2"), kernel_event(3, 3, gemm_kernel, "3", "4"),
                              kernel_event(4, 13, gemm_kernel, "4", "8"), kernel_event(77, 14, gemm_kernel, "5", "16"),
                              kernel_event(77, 15, "void at::native::vectorized_elementwise_kernel<4>", "6", "32"),
                              kernel_event(77, 16, "mystery", "7", "64")}));

    std::map<std::string, std::int64_t> reasons;
    std::int64_t count = 0, total = 0;
    for (const auto& row : got.rows) {
        reasons[row.why_not] += row.total_ns;
        count += row.count;
        total += row.total_ns;
    }
    CHECK(count == 7);
    CHECK(total == 127'000);
    CHECK(got.kernels_ns == 127'000);
    CHECK(got.mapped == 0);
    CHECK(reasons["batched: the tables hold single products"] == 1'000);
    CHECK(reasons["no table holds convolutions"] == 2'000);
    // one whose id is only its own correlation, and one whose id no operator has
    CHECK(reasons["the trace links it to no operator with a shape"] == 20'000);
    CHECK(reasons["the trace has no shapes (record_shapes=True records them)"] == 8'000);
    CHECK(reasons["memory-bound: the trace does not say its traffic"] == 32'000);
    CHECK(reasons["unknown kernel"] == 64'000);
}

TEST_CASE("a bare array, control characters, NaN and infinities are read") {
    const Folder folder("trace-odd");
    const std::string odd = std::string(1, '\x01') + "k\t" + "\n\\\"x\\\\";
    const auto events =
        "[" + mm(1, 8, 8, 8) + "," +
        kernel_event(1, 2, odd, "1.5", "2",
                     R"(,"a":NaN,"b":-Infinity,"c":nan,"d":inf,"e":-inf,"f":null,"g":[nan,{"nan":"nan"}])") +
        "]";
    const auto got = report(folder, events);
    CHECK(got.kernels == 1);
    CHECK(got.rows.at(0).name == " k  \"x\\");
    CHECK(got.points.gemm.size() == 1);
    // the same at every place of the reader's block, so that words and escapes fall on its ends
    for (int shift = 0; shift < 40; ++shift) {
        const std::string padded =
            "[\"" + std::string(static_cast<std::size_t>((1 << 17) - 300 + 7 * shift), 'x') + "\"," + events.substr(1);
        CHECK(report(folder, padded).rows == got.rows);
    }
    CHECK(read_trace(folder.write("zipped.json.gz", events)).rows == got.rows);
}

TEST_CASE("kernels come out in the order of their start on each stream") {
    const Folder folder("trace-order");
    const auto on = [](int stream, const char* start, const char* name) {
        auto event = kernel_event(1, 2, name, start, "1.001");
        return event.replace(event.find("\"stream\":7"), 10, fmt::format("\"stream\":{}", stream));
    };
    static_cast<void>(
        report(folder,
               trace({on(20, "5.001", "b"), on(7, "1712195495519689.124", "second"),
                      on(7, "1712195495519689.123", "first"), on(20, "5.001", "c, \\\"d\\\""), on(20, "5", "a")}),
               {.kernels = folder / "kernels.csv"}));

    CHECK(read_file(folder / "kernels.csv") ==
          "device,stream,start_ns,duration_ns,operator,name\n"
          "0,7,1712195495519689123,1001,unknown,first\n"
          "0,7,1712195495519689124,1001,unknown,second\n"
          "0,20,5000,1001,unknown,a\n"
          "0,20,5001,1001,unknown,b\n"
          "0,20,5001,1001,unknown,\"c, \"\"d\"\"\"\n");
}

TEST_CASE("sorting in runs gives what sorting at once gives") {
    KernelOrder order;
    std::vector<std::pair<std::int64_t, std::int64_t>> expected;
    std::uint64_t state = 1;
    constexpr std::int64_t kernels = 150'000;  // more than two runs
    for (std::int64_t number = 0; number < kernels; ++number) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const auto start = static_cast<std::int64_t>(state >> 48);
        order.add({0, 7, start, number, 1, 0, 0});
        if (number % 3 == 0) order.add({0, 7, start, number, 2, 0, 5});  // found again by a later reading
        expected.emplace_back(start, number);
    }
    std::sort(expected.begin(), expected.end());
    std::size_t at = 0;
    bool alike = true;
    order.for_each([&](const OrderedKernel& kernel) {
        alike = alike && std::pair(kernel.start_ns, kernel.number) == expected.at(at) &&
                kernel.row == (kernel.number % 3 == 0 ? 5 : 0);
        ++at;
    });
    CHECK(alike);
    CHECK(at == expected.size());
}

TEST_CASE("of many repetitions evenly spaced ones are kept") {
    Repetitions times;
    for (std::int64_t i = 0; i < 100'000; ++i) times.add(i);
    times.sort();
    CHECK(times.shortest() == 0);
    CHECK(times.median() > 48'000);
    CHECK(times.median() < 52'000);
    CHECK(times.spread_permille(50'000) > 880);
    CHECK(times.spread_permille(50'000) < 920);
}

TEST_CASE("what is no trace is refused with its place") {
    const Folder folder("trace-bad");
    CHECK(refusal(folder, "") == "is empty");
    CHECK(refusal(folder, "{\"traceEvents\":[{\"ph\":\"X\"},") == "is cut short: it ends at byte 27, inside the JSON");
    CHECK(refusal(folder, "[] x").starts_with("byte 3: is no JSON: "));
    CHECK(refusal(folder, "{\"events\":[]}").starts_with("is no trace: it has no \"traceEvents\""));
    CHECK(refusal(folder, "[" + std::string(100, '[')).find("nested deeper than 64 levels") != std::string::npos);
    CHECK(refusal(folder, "[\"" + std::string(std::size_t{5} << 20, 'x') + "\"]") ==
          "has a string of more than 4194304 bytes");
    CHECK(refusal(folder, trace({kernel_event(1, 2, "k", "1", "-5")})) ==
          "event 1 'k': dur: is '-5', must be 0 to 3600000000");
    CHECK(refusal(folder, trace({mm(1, 2, 2, 2), kernel_event(1, 2, "k", "1", "3600000001")})) ==
          "event 2 'k': dur: is '3600000001', must be 0 to 3600000000");
    CHECK(refusal(folder, trace({kernel_event(1, 2, "k", "NaN", "5")})).starts_with("event 1 'k': ts: is 'NaN'"));
    const auto zipped = gzip(trace({mm(1, 2, 2, 2), kernel_event(1, 2, "k", "1", "5")}));
    CHECK(refusal(folder, zipped.substr(0, zipped.size() / 2)).find("cut short") != std::string::npos);
    CHECK_THROWS_AS(static_cast<void>(read_trace(folder / "missing.json")), Error);
}

TEST_CASE("the collected traces import: every kernel is listed, exact to the nanosecond") {
    const auto shared = pipeweaver::testing::shared_folder();
    if (!shared || !std::filesystem::exists(*shared / "data/traces")) {
        pipeweaver::testing::left_out("the collected traces, which are not on this machine");
        return;
    }
    // Counts and sums of kernels by another reader, from the digits of the files.
    struct Known {
        const char* name;
        std::int64_t kernels, kernels_ns, copies;
    };
    for (const auto& known : {Known{"kineto_alexnet", 79, 10'692'000, 19}, Known{"kineto_cpu_only_rank34", 0, 0, 0},
                              Known{"kineto_nccl_rank0", 2700, 162'532'340, 1074},
                              Known{"kineto_ns_resolution_rank0", 4350, 468'153'602, 1745}}) {
        CAPTURE(known.name);
        const auto got = read_trace(*shared / "data/traces" / (std::string(known.name) + ".json.gz"));
        std::int64_t count = 0, total = 0;
        for (const auto& row : got.rows) {
            count += row.count;
            total += row.total_ns;
            CHECK(row.which != OperatorClass::unknown);
        }
        CHECK(got.kernels == known.kernels);
        CHECK(got.kernels_ns == known.kernels_ns);
        CHECK(got.copies == known.copies);
        CHECK(count == known.kernels + known.copies);
        CHECK(total == got.kernels_ns + got.copies_ns);
    }
}
