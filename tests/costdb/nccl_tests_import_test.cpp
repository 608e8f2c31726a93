#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/costdb/import.hpp"
#include "tests/costdb/fixtures.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

const std::string newest_header =
    "#\n#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  "
    "#wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  "
    "(GB/s)\n";

std::string ranks(int nodes, int of_a_node, const std::string& product) {
    std::string text =
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: 20\n#\n"
        "# Using devices\n";
    for (int rank = 0; rank < nodes * of_a_node; ++rank)
        text += fmt::format("#  Rank {:2} Group  0 Pid {:6} on node{:03} device {:2} [0000:1b:00] {}\n", rank,
                            900 + rank, rank / of_a_node, rank % of_a_node, product);
    return text;
}

Measurements imported(const Folder& folder, const std::string& name, const std::string& text,
                      const std::string& device) {
    static_cast<void>(import_tables({{folder.write(name, text), "", "test", "none"}}, folder / "db.sqlite"));
    return CostDatabase::read(folder / "db.sqlite", device).measurements();
}

std::string refusal(const Folder& folder, const std::string& name, const std::string& text) {
    const auto path = folder.write(name, text);
    try {
        static_cast<void>(import_tables({{path, "", "test", "none"}}, folder / "db.sqlite"));
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return std::string(error.what()).substr(folder.path().string().size() + 1);
    }
    return "accepted";
}

}  // namespace

TEST_CASE("output of a new nccl-tests becomes collectives of the GPU that it names") {
    const Folder folder("nccl-new");
    const auto points = imported(
        folder, "log.txt",
        "node000:901:950 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
        "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807\n"
        "# Collective test starting: all_gather_perf\n" +
            ranks(1, 8, "NVIDIA H100 80GB HBM3") + newest_header +
            "           0             0  bfloat16    none      -1     5.70    0.00    0.00       0     5.54    "
            "0.00    0.00       0\n"
            "     1048576         65536  bfloat16    none      -1    40.00   26.21   22.94       0    44.00   "
            "23.83   20.85       0\n"
            "    16777216       1048576  bfloat16    none      -1   1.2e+2  139.81  122.33     N/A    120.0  "
            "139.81  122.33     N/A\n"
            "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 22.1\n",
        "h100_sxm");

    REQUIRE(points.collective.size() == 2);
    const auto& first = points.collective[0];
    CHECK(first.source == LinkSource::sweep);
    CHECK(first.kind == CollectiveKind::all_gather);
    CHECK(first.dtype == Dtype::fp16);  // 16-bit formats move alike
    CHECK(first.gpus == 8);
    CHECK(first.message_bytes == 1'048'576);  // the gathered tensor, as nccl-tests prints it
    CHECK(first.latency_ns == 40'000);
    CHECK(first.spread_permille == 50);  // in place is a tenth off: half the range
    CHECK(points.collective[1].latency_ns == 120'000);
}

TEST_CASE("output of an old nccl-tests has fewer columns, a blank redop or none") {
    const Folder folder("nccl-old");
    std::string old =
        "# nThread 1 nGpus 2 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 5 iters: 20\n"
        "# Using devices\n#   Rank  0 Pid    149 on     llm207 device  0 [0x56] NVIDIA A100-SXM4-80GB\n"
        "#   Rank  1 Pid    149 on     llm207 device  1 [0x57] NVIDIA A100-SXM4-80GB\n";
    const std::string without =
        "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw"
        "  error\n#        (B)    (elements)             (us)  (GB/s)  (GB/s)            (us)  "
        "(GB/s)  (GB/s)\n       65536          8192   float    16.57    3.95    1.98  0e+00    "
        "13.83    4.74    2.37  0e+00\n";
    const auto gathered = imported(folder, "all_gather_perf.log", old + without, "a100_sxm");
    REQUIRE(gathered.collective.size() == 1);
    CHECK(gathered.collective[0].latency_ns == 16'570);
    CHECK(gathered.collective[0].gpus == 2);

    const std::string blank =
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
        "time   algbw   busbw #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
        "(us)  (GB/s)  (GB/s)\n"
        "        4096          1024     float              -1    18.00    0.23    0.23      0    "
        "18.00    0.23    0.23    N/A\n";
    const auto sent = imported(folder, "x.log", "$ ./build/sendrecv_perf -g 2\n" + old + blank, "a100_sxm");
    REQUIRE(sent.point_to_point.size() == 1);
    CHECK(sent.point_to_point[0].gpus_per_node == 2);
    CHECK(sent.point_to_point[0].message_bytes == 4096);
    CHECK(sent.point_to_point[0].latency_ns == 18'000);
}

TEST_CASE("several runs in one file keep their collectives, layouts and formats apart") {
    const Folder folder("nccl-runs");
    const std::string row =
        "     2097152        524288     float     sum      -1   100.00   20.97   36.70       0   "
        "100.00   20.97   36.70       0\n";
    const auto points = imported(
        folder, "log.txt",
        "# Collective test starting: all_reduce_perf\n" + ranks(1, 4, "NVIDIA H200") + newest_header + row +
            "# Collective test starting: reduce_scatter_perf\n" + ranks(2, 8, "NVIDIA H200") + newest_header + row +
            "# Collective test starting: alltoall_perf\n" + ranks(1, 4, "NVIDIA H200") + newest_header + row +
            "# Collective test starting: sendrecv_perf\n" + ranks(2, 1, "NVIDIA H200") + newest_header + row,
        "h200_sxm");

    REQUIRE(points.collective.size() == 3);
    const auto with = [&](CollectiveKind kind) {
        return *std::find_if(points.collective.begin(), points.collective.end(),
                             [&](const auto& p) { return p.kind == kind; });
    };
    CHECK(with(CollectiveKind::all_reduce).source == LinkSource::large);
    CHECK(with(CollectiveKind::all_reduce).dtype == Dtype::fp32);
    CHECK(with(CollectiveKind::all_reduce).gpus == 4);
    CHECK(with(CollectiveKind::reduce_scatter).source == LinkSource::nodes);
    CHECK(with(CollectiveKind::reduce_scatter).gpus == 16);
    CHECK(with(CollectiveKind::reduce_scatter).gpus_per_node == 8);
    CHECK(with(CollectiveKind::all_to_all).source == LinkSource::sweep);
    REQUIRE(points.point_to_point.size() == 1);
    CHECK(points.point_to_point[0].gpus_per_node == 1);
}

TEST_CASE("output of nccl-tests that is no measurement is refused with its line") {
    const Folder folder("nccl-bad");
    const std::string begin = "# Collective test starting: all_reduce_perf\n" + ranks(1, 2, "NVIDIA H100 80GB HBM3");
    const auto row = [](const std::string& time, const std::string& wrong) {
        return "8 2 float sum -1 " + time + " 0.00 0.00 " + wrong + " 5.0 0.00 0.00 0\n";
    };
    CHECK(refusal(folder, "t.txt", begin + newest_header + row("5.0", "0")) == "accepted");
    CHECK(refusal(folder, "t.txt", begin + newest_header + row("0.00", "0")) ==
          "t.txt:11: time: is '0.00', must be a number above 0 and up to 3600000000");
    CHECK(refusal(folder, "t.txt", begin + newest_header + row("nan", "0")).starts_with("t.txt:11: time: is 'nan'"));
    CHECK(refusal(folder, "t.txt", begin + newest_header + row("-1", "0")).starts_with("t.txt:11: time: is '-1'"));
    CHECK(refusal(folder, "t.txt", begin + newest_header + row("4e9", "0")).starts_with("t.txt:11: time: is '4e9'"));
    CHECK(refusal(folder, "t.txt", begin + newest_header + row("5.0", "3")).starts_with("t.txt:11: #wrong: is 3"));
    CHECK(refusal(folder, "t.txt", begin + newest_header + "8 2 float sum -1 5.0\n") ==
          "t.txt:11: has 6 cells, the header 13");
    CHECK(refusal(folder, "t.txt", begin + newest_header) == "t.txt: has the header of nccl-tests but no row");
    CHECK(refusal(folder, "t.txt", ranks(1, 2, "NVIDIA H100 80GB HBM3") + newest_header + row("5.0", "0"))
              .find("which collective this is, is not said") != std::string::npos);
    CHECK(refusal(folder, "all_reduce_perf.txt", newest_header + row("5.0", "0")).find("name 0 GPUs") !=
          std::string::npos);
    CHECK(refusal(folder, "t.txt", begin + "#  Rank  1 Group  0 Pid 7 on h device  0 [0x1] NVIDIA H100 80GB HBM3\n")
              .find("tables do not name") != std::string::npos);  // no table at all
    CHECK(refusal(folder, "t.txt",
                  begin + "#  Rank  1 Group  0 Pid 7 on h device  0 [0x1] NVIDIA H100 80GB HBM3\n" + newest_header)
              .find("rank 1 is there twice") != std::string::npos);
    CHECK(refusal(folder, "t.txt",
                  "# Collective test starting: all_reduce_perf\n" + ranks(1, 2, "Tesla V100-SXM2-32GB") +
                      newest_header + row("5.0", "0"))
              .find("its device 'Tesla V100-SXM2-32GB' is none that is known here; --device says") !=
          std::string::npos);
}
