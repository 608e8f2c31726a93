// pipeweaver bench emulator: a step kernel by kernel, and by passes that are priced once.
#include "apps/bench_commands.hpp"
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/benches.hpp"
#include "bench/measure.hpp"
#include "emulator/emulate/expand.hpp"
#include "pipeweaver/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::bench {

using namespace apps;

namespace {

using namespace schedule;
using namespace emulator;

constexpr Duration kernel_time{100'000};
constexpr Duration send_time{1};
constexpr std::int64_t most_operators = 100'000'000;
constexpr int timed_runs = 5;
constexpr double seconds_of_a_run = 0.01;

struct Size {
    std::int64_t pipeline = 16, microbatches = 256, kernels = 100;

    std::int64_t operators() const { return pipeline * microbatches * 3 * kernels + 2 * (pipeline - 1) * microbatches; }
};

// One pass: kernels one after the other on one stream.
OperatorGraph pass(std::int64_t kernels) {
    OperatorGraph graph(1, 0);
    graph.reserve(static_cast<std::size_t>(kernels), 0);
    for (std::int64_t k = 0; k < kernels; ++k) graph.launch(0, kernel_time);
    return graph;
}

// Task of stage p and microbatch m: the forwards of a stage, then its backwards, stage after stage.
struct Step {
    explicit Step(const Size& of) : size(of) {
        const auto tasks = static_cast<std::size_t>(2 * size.pipeline * size.microbatches);
        problem.ranks.resize(static_cast<std::size_t>(size.pipeline));
        problem.tasks.resize(tasks);
        problem.edges.reserve(2 * tasks);
        for (std::int64_t p = 0; p < size.pipeline; ++p)
            for (std::int64_t m = 0; m < size.microbatches; ++m) {
                for (const bool backward : {false, true}) problem.tasks[index(task(p, m, backward))].rank = RankId(p);
                problem.edges.push_back({task(p, m, false), task(p, m, true), Duration{0}});
                if (p == 0) continue;
                problem.edges.push_back({task(p - 1, m, false), task(p, m, false), send_time});
                problem.edges.push_back({task(p, m, true), task(p - 1, m, true), send_time});
            }
        schedule.order.resize(problem.ranks.size());
        for (std::int64_t p = 0; p < size.pipeline; ++p) order_rank(p);
    }

    bool is_backward(std::size_t id) const { return static_cast<std::int64_t>(id) / size.microbatches % 2 == 1; }

    void set_durations(Duration forward, Duration backward) {
        for (std::size_t id = 0; id < problem.tasks.size(); ++id)
            problem.tasks[id].duration = is_backward(id) ? backward : forward;
    }

    Size size;
    Problem problem;
    Schedule schedule;

private:
    TaskId task(std::int64_t p, std::int64_t m, bool backward) const {
        return TaskId((2 * p + (backward ? 1 : 0)) * size.microbatches + m);
    }

    // 1F1B: as many forwards as stages follow, then a backward and a forward alternately, then the backwards left.
    void order_rank(std::int64_t p) {
        auto& order = schedule.order[static_cast<std::size_t>(p)];
        order.reserve(static_cast<std::size_t>(2 * size.microbatches));
        const std::int64_t ahead = std::min(size.pipeline - p - 1, size.microbatches);
        for (std::int64_t m = 0; m < size.microbatches + ahead; ++m) {
            if (m < size.microbatches) order.push_back(task(p, m, false));
            if (m >= ahead) order.push_back(task(p, m - ahead, true));
        }
    }
};

struct ReplayTimes {
    std::size_t operators = 0, bytes = 0;
    Duration makespan{};
    double naive_seconds = 0, reuse_seconds = 0;  // CPU time, medians
};

// Every kernel of every task has its own place and is replayed on its own.
void measure_naive(const Size& size, ReplayTimes& result) {
    const Step step(size);
    const auto forward = pass(size.kernels), backward = pass(2 * size.kernels);
    std::vector<const OperatorGraph*> graphs(step.problem.tasks.size());
    for (std::size_t id = 0; id < graphs.size(); ++id) graphs[id] = step.is_backward(id) ? &backward : &forward;
    const auto expanded = expand(Replayer(step.problem), step.schedule, graphs, 1);
    result.operators = expanded.graph.kernels().size();
    result.bytes = expanded.graph.bytes() + result.operators * sizeof(std::int64_t) +
                   (expanded.end_kernels.size() + expanded.first_end.size()) * sizeof(std::uint32_t);
    const auto replay_all = [&] { result.makespan = makespan_of(expanded, step.problem); };
    std::vector<double> seconds(timed_runs);
    for (double& one : seconds) one = 1 / rate(replay_all, seconds_of_a_run);
    result.naive_seconds = median(seconds);
}

// A pass alone, kernel by kernel: how `emulate` finds what a pass lasts in which streams overlap.
Duration duration_of(const OperatorGraph& graph) {
    std::vector<std::int64_t> ends;
    return Duration{replay(graph, StreamState(graph.streams() + graph.inputs(), 0), ends).front()};
}

// From the sizes to the makespan with nothing known before: either pass once, and a replay of tasks.
Duration by_passes(const Size& size) {
    Step step(size);
    step.set_durations(duration_of(pass(size.kernels)), duration_of(pass(2 * size.kernels)));
    return Replayer(step.problem).replay(step.schedule).makespan;
}

ReplayTimes measure(const Size& size) {
    ReplayTimes result;
    measure_naive(size, result);
    Duration makespan{};
    std::vector<double> seconds(timed_runs);
    for (double& one : seconds) one = 1 / rate([&] { makespan = by_passes(size); }, seconds_of_a_run);
    result.reuse_seconds = median(seconds);
    if (makespan != result.makespan)
        fail(ErrorKind::limit, "bench: kernel by kernel {} ns, by passes {} ns", result.makespan.count(),
             makespan.count());
    return result;
}

struct BenchEmulator {
    explicit BenchEmulator(CLI::App& app) : options(app) {
        console.add_to(app);
        options.group("The step");
        options.integer("pipeline", size.pipeline, 1, 10'000, "stages, each on a rank of its own (default 16)");
        options.integer("microbatches", size.microbatches, 1, 1'000'000, "of a step (default 256)");
        options.integer("kernels", size.kernels, 1, 1'000'000,
                        "of a forward; a backward has twice as many (default 100)");
    }

    void run() {
        options.apply();
        if (size.operators() > most_operators)
            fail(ErrorKind::input, "--kernels: {} operators in all, allowed are {}", size.operators(), most_operators);
        const ReplayTimes r = measure(size);
        const auto operators = static_cast<double>(r.operators);
        if (console.json) {
            fmt::print("{}\n", nlohmann::ordered_json{{"operators", r.operators},
                                                      {"makespan_ns", r.makespan.count()},
                                                      {"naive_seconds", r.naive_seconds},
                                                      {"naive_operators_per_second", operators / r.naive_seconds},
                                                      {"bytes_per_operator", static_cast<double>(r.bytes) / operators},
                                                      {"reuse_seconds", r.reuse_seconds}}
                                   .dump());
            return;
        }
        fmt::print("{} operators, makespan {} ns\n", r.operators, r.makespan.count());
        fmt::print("one by one   {:.1f} ms, {:.1f} M operators/s on one core, {:.1f} bytes each\n",
                   1e3 * r.naive_seconds, 1e-6 * operators / r.naive_seconds, static_cast<double>(r.bytes) / operators);
        fmt::print("with reuse   {:.3f} ms, the same nanoseconds\n", 1e3 * r.reuse_seconds);
    }

    Options options;
    Console console;
    Size size;
};

}  // namespace

void add_emulator(CLI::App& program) {
    add_command<BenchEmulator>(
        program, "emulator", about_bench("emulator"),
        {.synopsis = "[--pipeline P] [--microbatches M] [--kernels K] [OPTION...]",
         .description = "Emulates a 1F1B step of P stages and M microbatches: K kernels of 100 us a forward, twice as "
                        "many a backward, and a send of 1 ns over each boundary in each direction. Once every kernel "
                        "is replayed on its own, in a graph that holds all of them, as by emulate --no-reuse; once as "
                        "emulate does otherwise, either pass once and then the tasks as wholes, from the three numbers "
                        "to the makespan with nothing known before. Both must give the same nanoseconds. CPU time, "
                        "medians.",
         .examples = {{"1.2 million operators", "pipeweaver bench emulator"},
                      {"A small step, for a program to read",
                       "pipeweaver bench emulator --pipeline 4 --microbatches 8 --kernels 10 --json"}},
         .see_also = {"pipeweaver bench replay"}});
}

}  // namespace pipeweaver::bench
