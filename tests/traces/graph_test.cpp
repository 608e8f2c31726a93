// What of a trace waits for what; ranks that do not go together; traces of emulated steps, and public ones.
#include "emit/targets/trace.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/schedule/problem.hpp"
#include "pipeweaver/schedule/solution.hpp"
#include "pipeweaver/traces/replay.hpp"
#include "pipeweaver/traces/report.hpp"
#include "tests/support/random_problem.hpp"
#include "tests/support/shared.hpp"
#include "tests/support/temporary.hpp"
#include "tests/traces/example.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::traces;
using pipeweaver::testing::written;

namespace {

std::string event(const char* category, const std::string& name, int thread, int at, int duration,
                  const std::string& arguments) {
    return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                       category, name, thread, at, duration, arguments);
}

std::string call(const std::string& name, int at, int duration, int correlation, int thread = 1) {
    return event("cuda_runtime", name, thread, at, duration, fmt::format(R"("correlation":{})", correlation));
}

std::string kernel(const std::string& name, int stream, int at, int duration, int correlation,
                   const std::string& more = "") {
    return event("kernel", name, stream, at, duration,
                 fmt::format(R"("device":0,"stream":{},"correlation":{}{})", stream, correlation, more));
}

std::string all_reduce(int at, int duration, int elements, const std::string& more = "") {
    return kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, at, duration, at,
                  fmt::format(R"(,"Collective name":"allreduce","In msg nelems":{},"dtype":"Float",)"
                              R"("Process Group Name":"0","Process Group Ranks":"[0, 1]"{})",
                              elements, more));
}

std::string trace_of(int rank, int world, const std::vector<std::string>& events) {
    std::string text = fmt::format(R"({{"distributedInfo":{{"rank":{},"world_size":{}}},"traceEvents":[)", rank, world);
    for (const std::string& one : events) text += (&one == events.data() ? "\n" : ",\n") + one;
    return text + "]}";
}

Graph graph_of(const std::vector<std::string>& texts) {
    std::vector<std::string> files;
    for (std::size_t i = 0; i < texts.size(); ++i)
        files.push_back(written(fmt::format("trace-{}.json", i), texts[i]).string());
    return read_graph(files);
}

std::string refusal(const std::vector<std::string>& texts) {
    try {
        static_cast<void>(graph_of(texts));
    } catch (const Error& refused) {
        return refused.what();
    }
    return "";
}

std::int64_t with(const Graph& graph, const std::string& factors) {
    Changes changes;
    changes.factors = factors_of(factors, graph.places());
    return replay(graph, changes).span_ns;
}

}  // namespace

TEST_CASE("a stream that waits for an event goes on when the other stream's kernel has ended") {
    // The event was recorded behind the gemm (call 2) and is waited for (call 3) by the copy's stream.
    const std::string sync = R"("stream":9,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":2,"correlation":3)";
    const Graph graph = graph_of({trace_of(
        0, 1,
        {call("cudaLaunchKernel", 0, 2, 1), call("cudaEventRecord", 3, 1, 2), call("cudaStreamWaitEvent", 5, 1, 3),
         event("cuda_sync", "Stream Wait Event", 9, 5, 1, sync), call("cudaLaunchKernel", 8, 2, 4),
         kernel("sgemm", 7, 10, 100, 1), kernel("triton_copy", 9, 112, 50, 4)})});

    CHECK(graph.span_ns == 162'000);
    CHECK(with(graph, "gemm=0.5") == 112'000);
    CHECK(with(graph, "gemm=0") == 68'000);  // the copy's launch at 8 us, and 10 us as the gemm's; then 50
}

TEST_CASE("without cuda_sync events a stream waits for what the thread last launched on another") {
    const Graph graph = graph_of({trace_of(
        0, 1,
        {call("cudaLaunchKernel", 0, 2, 1), call("cudaEventRecord", 3, 1, 2), call("cudaStreamWaitEvent", 5, 1, 3),
         call("cudaLaunchKernel", 8, 2, 4), kernel("sgemm", 7, 10, 100, 1), kernel("triton_copy", 9, 112, 50, 4)})});

    CHECK(with(graph, "gemm=0.5") == 112'000);
}

TEST_CASE("a call that synchronises returns when the stream has ended, and the host goes on from there") {
    const Graph graph = graph_of({trace_of(
        0, 1,
        {call("cudaLaunchKernel", 0, 2, 1), kernel("sgemm", 7, 10, 100, 1), call("cudaStreamSynchronize", 4, 109, 2),
         call("cudaLaunchKernel", 120, 2, 3), kernel("sgemm", 7, 130, 100, 3)})});

    CHECK(graph.span_ns == 230'000);
    CHECK(with(graph, "gemm=0.5") == 130'000);  // 10 + 50, back after 3, 7 of the host, 10 to the kernel, 50
    CHECK(with(graph, "host=0") == 220'000);    // 3 and 7 us less
}

TEST_CASE("a thread that had called nothing for long goes on after the one that called last") {
    // The second thread launches the backward; the first waits for it, and launches the optimizer.
    const Graph graph = graph_of({trace_of(
        0, 1,
        {call("cudaLaunchKernel", 0, 2, 1), kernel("sgemm", 7, 10, 20, 1), call("cudaLaunchKernel", 50, 100, 2, 2),
         kernel("sgemm", 7, 60, 20, 2), call("cudaLaunchKernel", 160, 2, 3), kernel("sgemm", 7, 170, 20, 3)})});

    CHECK(graph.span_ns == 190'000);
    CHECK(with(graph, "host=0") == 190'000 - 48'000 - 10'000);
}

TEST_CASE("what a kernel begins later than kernels usually do is kept, and told") {
    // 10, 10 and 30 us from the launch on; the middle one is usual.
    const Graph graph = graph_of({trace_of(
        0, 1,
        {call("cudaLaunchKernel", 0, 2, 1), kernel("sgemm", 7, 10, 10, 1), call("cudaLaunchKernel", 50, 2, 2),
         kernel("sgemm", 7, 60, 10, 2), call("cudaLaunchKernel", 100, 2, 3), kernel("sgemm", 7, 130, 10, 3)})});
    const auto path = critical_path(graph, replay(graph));

    CHECK(path.of_kind[static_cast<std::size_t>(Kind::launch)] == 2'000 + 2'000 + 30'000);
    CHECK(path.of_kind[static_cast<std::size_t>(Kind::idle)] == 0);
    CHECK(path.kept_ns == 20'000);
}

TEST_CASE("a rank is slow that keeps its own groups waiting, however many collectives others have") {
    const auto met = [](const char* ranks, int at, int duration) {
        return kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, at, duration, at,
                      fmt::format(R"(,"Collective name":"allreduce","Process Group Ranks":"{}")", ranks));
    };
    const auto all = met("[0, 1, 2, 3]", 0, 10);
    std::vector<std::string> texts;
    for (const int rank : {0, 1})
        texts.push_back(trace_of(rank, 4, {all, met("[0, 1]", 20, 5), met("[0, 1]", 30, 5), met("[0, 1]", 40, 5)}));
    texts.push_back(trace_of(2, 4, {all, met("[2, 3]", 20, 30)}));
    texts.push_back(trace_of(3, 4, {all, met("[2, 3]", 40, 10)}));
    const auto found = findings_of(graph_of(texts), "", nullptr);

    CHECK(found.graph.meetings == 5);
    CHECK(found.graph.ranks[3].meetings == 2);
    CHECK(found.graph.ranks[1].last == 0);  // who comes with another is not last
    CHECK(findings_text(found).find("slow: rank 3 comes last to 1 of 2 collectives and keeps the others waiting for "
                                    "20.00 us\n") != std::string::npos);
}

TEST_CASE("clocks are aligned by the middle difference of the collectives' ends") {
    // By rank 1's clock 7,000 us earlier, ends 0, 4 and 10 us further apart.
    const Graph graph =
        graph_of({trace_of(0, 2, {all_reduce(8000, 100, 4), all_reduce(8200, 100, 4), all_reduce(8400, 100, 4)}),
                  trace_of(1, 2, {all_reduce(1050, 50, 4), all_reduce(1250, 54, 4), all_reduce(1450, 60, 4)})});

    CHECK(graph.ranks[1].offset_ns == 6'996'000);
    CHECK(graph.ranks[1].uncertainty_ns == 5'000);
    CHECK(graph.ranks[1].last == 3);
    CHECK(graph.ranks[0].waits_ns == 3 * 46'000);
    CHECK(replay(graph).span_ns == graph.span_ns);
}

TEST_CASE("what had ended before the last rank came is kept as recorded, and counted so") {
    // The third one begins 10 us later on rank 1 than it ends on rank 0: the clocks do not run alike.
    const Graph graph =
        graph_of({trace_of(0, 2, {all_reduce(0, 10, 4), all_reduce(100, 10, 4), all_reduce(1000, 10, 4)}),
                  trace_of(1, 2, {all_reduce(0, 10, 4), all_reduce(100, 10, 4), all_reduce(1020, 10, 4)})});

    CHECK(graph.ranks[1].offset_ns == 0);
    CHECK(graph.meetings == 3);
    CHECK(graph.unmatched == 1);
    CHECK(replay(graph).span_ns == 1'030'000);
}

TEST_CASE("collectives are matched by their numbers where a rank recorded more of them") {
    const auto numbered = [](int number) { return fmt::format(R"(,"Seq":{})", number); };
    const Graph graph =
        graph_of({trace_of(0, 2, {all_reduce(100, 10, 4, numbered(6)), all_reduce(200, 10, 8, numbered(7))}),
                  trace_of(1, 2, {all_reduce(205, 5, 8, numbered(7))})});

    CHECK(graph.meetings == 1);
    CHECK(graph.unmatched == 1);
    CHECK(graph.ranks[1].kept_waiting_ns == 5'000);
}

TEST_CASE("a receive begins with its send, and ranks that share nothing else are aligned by them") {
    const auto moved = [](const char* what, const char* peer, int rank, int at, int duration) {
        return kernel(
            "ncclDevKernel_SendRecv", 20, at, duration, at,
            fmt::format(R"(,"Collective name":"{}","{}":{},"Process Group Ranks":"[0, 1]")", what, peer, rank));
    };
    // Rank 0 works for 100 us and sends; rank 1, whose clock is 40 us behind, has asked for it and works for 30.
    const Graph graph =
        graph_of({trace_of(0, 2, {kernel("sgemm", 7, 0, 100, 1), moved("send", "Dst Rank", 1, 100, 20)}),
                  trace_of(1, 2, {moved("recv", "Src Rank", 0, -30, 110), kernel("sgemm", 7, 82, 30, 2)})});

    CHECK(graph.ranks[1].offset_ns == 40'000);
    CHECK(graph.unmatched == 0);
    CHECK(graph.meetings == 0);
    CHECK(graph.span_ns == 152'000);
}

TEST_CASE("passes of ranks without a GPU follow each other, and the rank with the longest ones is named") {
    const auto pass = [](const char* name, int at, int duration) {
        return event("user_annotation", name, 1, at, duration, "");
    };
    // Two microbatches, forward and backward; rank 1's clock is 1,000 us ahead. Rank 0 takes 10 us forward and 20
    // backward, rank 1, which sleeps, 40 and 80; what they hand over takes 2 us. Rank 1's last forward has waited 3 us
    // for its first operator; rank 0 takes 1 us to convert what it has waited for before its last backward.
    const std::vector<std::string> texts{
        trace_of(0, 2,
                 {pass("PP:0F0", 0, 10), pass("PP:0F1", 10, 10), pass("PP:0B0", 134, 20),
                  event("cpu_op", "aten::to", 1, 253, 1, ""), pass("PP:0B1", 254, 20)}),
        trace_of(1, 2,
                 {pass("PP:1F0", 1012, 40), pass("PP:1B0", 1052, 80), pass("PP:1F1", 1132, 43),
                  event("cpu_op", "aten::mm", 1, 1135, 5, ""), pass("PP:1B1", 1175, 77)})};
    const auto found = findings_of(graph_of(texts), "", nullptr);

    // The clock is ahead by at most 1012 - 10 and at least 1132 - 134 and 1252 - 254.
    CHECK(found.graph.ranks[1].offset_ns == -1'000'000);
    CHECK(found.graph.ranks[1].uncertainty_ns == 2'000);
    CHECK(found.graph.span_ns == 274'000);
    CHECK(found.replayed.path.of_rank ==
          std::vector<std::int64_t>{10'000 + 1'000 + 20'000, 40'000 + 80'000 + 40'000 + 77'000});
    CHECK(findings_text(found).find("rank 1 has most of the work, 237.0 us, and most of the path's\n") !=
          std::string::npos);
    CHECK(with(found.graph, "rank1=0.5") < 274'000 - 100'000);
}

TEST_CASE("traces that do not go together are refused in one line") {
    const std::string zero = trace_of(0, 2, {all_reduce(10, 5, 4), all_reduce(20, 5, 4)});
    const auto one = [](const std::vector<std::string>& events) { return trace_of(1, 2, events); };

    CHECK(refusal({zero, zero}).find("is of rank 0, as ") != std::string::npos);
    CHECK(refusal({zero, trace_of(1, 4, {all_reduce(10, 5, 4)})}).find("is of a run of 4 ranks, ") !=
          std::string::npos);
    CHECK(refusal({trace_of(0, 3, {all_reduce(10, 5, 4)}), trace_of(1, 3, {all_reduce(10, 5, 4)})}) ==
          "--trace: of 3 ranks one is missing: 2; give the traces of all, or of one alone");
    CHECK(refusal({zero, one({all_reduce(10, 5, 4)})}).find("has 1 collectives of group '0 of [0, 1]', ") !=
          std::string::npos);
    CHECK(
        refusal({zero, one({all_reduce(10, 5, 4), all_reduce(20, 5, 9)})}).find("all_reduce 9 elements Float where ") !=
        std::string::npos);
    CHECK(refusal({zero, one({kernel("sgemm", 7, 10, 5, 1)})})
              .find("rank 1 is missing, or its trace has no collective") != std::string::npos);
    CHECK(refusal({trace_of(0, 2, {kernel("sgemm", 7, 10, 5, 1)}), one({kernel("sgemm", 7, 10, 5, 1)})})
              .find("its clock cannot be aligned: it shares no collective with the other ranks") != std::string::npos);
    CHECK(refusal({zero, one({all_reduce(10, 5, 4), all_reduce(500, 5, 4)})})
              .find("its clock cannot be aligned: ends ") != std::string::npos);
    CHECK(refusal({"{}"}).find("is no trace") != std::string::npos);
    CHECK(refusal({R"({"traceEvents":[]})"}).find("holds no kernel and no operator") != std::string::npos);
    CHECK(refusal({trace_of(0, 1, {kernel("sgemm", 7, 10, -5, 1)})}).find("dur: is '-5'") != std::string::npos);
    const std::string late = R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":4e15,"dur":1,"args":{}})";
    CHECK(refusal({trace_of(0, 1, {late})}).find("ts: is '4e15', must be within 63 years of 1970") !=
          std::string::npos);
    const std::string years = R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1e15,"dur":1,"args":{}})";
    CHECK(refusal({trace_of(0, 1, {kernel("sgemm", 7, 10, 5, 1), years})}).find("spans more than 100 hours") !=
          std::string::npos);
}

TEST_CASE("a trace of a schedule replays to its makespan, whatever the schedule") {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        CAPTURE(seed);
        const auto instance = pipeweaver::testing::random_instance(seed);
        const auto file = schedule::read_problem(written("problem.json", instance.problem));
        const auto schedule = schedule::read_schedule(written("solution.json", instance.solution), file);
        const schedule::Replayer replayer(file.problem);
        const auto run = replayer.replay(schedule);
        const Graph graph = graph_of({emit::chrome_trace(replayer, schedule, run, {.optimizer = Duration{77}})});

        CHECK(graph.is_emulated);
        CHECK(graph.span_ns == (run.makespan + Duration{77}).count());
        CHECK(replay(graph).span_ns == graph.span_ns);
    }
}

TEST_CASE("passes of an emulated step wait for tensors of other ranks") {
    // Rank 0's pass of 10 us, 25 us on the way, rank 1's pass.
    schedule::Problem problem;
    problem.name = "two";
    problem.ranks.resize(2);
    for (std::uint32_t r = 0; r < 2; ++r) {
        schedule::Task task;
        task.rank = RankId{r};
        task.duration = Duration{10'000};
        problem.tasks.push_back(task);
    }
    problem.edges = {{TaskId{0}, TaskId{1}, Duration{25'000}}};
    const schedule::Replayer replayer(problem);
    const schedule::Schedule schedule{{{TaskId{0}}, {TaskId{1}}}, {}};
    const Graph graph = graph_of({emit::chrome_trace(replayer, schedule, replayer.replay(schedule))});

    CHECK(graph.span_ns == 45'000);
    CHECK(with(graph, "rank0=2") == 55'000);
    CHECK(with(graph, "send_recv=0.2") == 25'000);
}

TEST_CASE("the collected traces replay within 5 % of what was recorded, and nearly all kernels are known") {
    const auto shared = pipeweaver::testing::shared_folder();
    if (!shared || !std::filesystem::exists(*shared / "data/traces")) {
        pipeweaver::testing::left_out("the collected traces, which are not on this machine");
        return;
    }
    // First start to last end of calls and GPU work, by another reader; without a GPU of the outermost operators.
    struct Known {
        const char* name;
        std::int64_t span_ns;
    };
    for (const Known& known : {Known{"kineto_alexnet", 42'931'211'000}, Known{"kineto_nccl_rank0", 683'491'087},
                               Known{"kineto_ns_resolution_rank0", 491'553'802}, Known{"kineto_cpu_only_rank34", 0}}) {
        CAPTURE(known.name);
        const std::vector<std::string> file{
            (*shared / "data/traces" / (std::string(known.name) + ".json.gz")).string()};
        const auto found = findings_of(read_graph(file), "", nullptr);
        CHECK((known.span_ns == 0 || found.graph.span_ns == known.span_ns));
        CHECK(found.graph.span_ns > 0);
        CHECK(std::abs(found.replayed.span_ns - found.graph.span_ns) <= found.graph.span_ns / 20);
        std::int64_t unknown = 0;
        for (const KernelShare& one : found.unknown) unknown += one.total_ns;
        CHECK(50 * unknown < std::max<std::int64_t>(1, found.work_ns));
        // Of a GPU's gaps few remain without an explanation.
        if (known.span_ns == 0) continue;
        CHECK(20 * found.replayed.path.of_kind[static_cast<std::size_t>(Kind::idle)] < found.graph.span_ns);
    }
}
