// pipeweaver_studies memory: what a rank holds over time, under the plan and under what engineers run.
#include "pipeweaver/schedule/memory.hpp"

#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/recheck.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/job_options.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "studies/program/checked_run.hpp"
#include "studies/program/studies.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace pipeweaver::studies {

using namespace apps;
using namespace bench;

namespace {

// From this moment on the rank holds so much.
struct HeldFrom {
    Duration at{};
    Bytes held;
};

struct MemoryCurve {
    std::string name, settings;
    Duration makespan{}, step{};
    Bytes base;
    std::vector<HeldFrom> points;
    Bytes peak{};
    double mean = 0, deviation = 0;  // bytes, over the time of the makespan
    double swing = 0;                // bytes, the largest less the smallest in the middle half of the makespan
};

// Mean, deviation and swing of the curve's points.
void measure_curve(MemoryCurve& curve) {
    double sum = 0, squares = 0, most = 0, least = 1e300;
    const double end = static_cast<double>(curve.makespan.count());
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
        const double from = static_cast<double>(curve.points[i].at.count());
        const double to = i + 1 < curve.points.size() ? static_cast<double>(curve.points[i + 1].at.count()) : end;
        const double held = static_cast<double>(curve.points[i].held.count);
        sum += held * (to - from);
        squares += held * held * (to - from);
        curve.peak = std::max(curve.peak, curve.points[i].held);
        if (to <= 0.25 * end || from >= 0.75 * end || to == from) continue;
        most = std::max(most, held);
        least = std::min(least, held);
    }
    curve.mean = sum / end;
    curve.deviation = std::sqrt(std::max(0.0, squares / end - curve.mean * curve.mean));
    curve.swing = std::max(0.0, most - least);
}

MemoryCurve curve_of(std::string name, std::string settings, const emulator::StepProblem& step,
                     const schedule::Schedule& schedule, std::size_t rank) {
    const schedule::Replayer replayer(step.problem);
    const auto replay = replayer.replay(schedule);
    const auto costs = replayer.costs(schedule.mode);
    const auto& limits = step.problem.ranks.at(rank);
    MemoryCurve curve{std::move(name), std::move(settings),        replay.makespan, replay.makespan + step.optimizer,
                      limits.base,     {{Duration{}, limits.base}}};
    schedule::walk_memory(limits, schedule.order[rank], costs, [&](TaskId task, Bytes during, Bytes after) {
        const Duration start = replay.start[index(task)];
        curve.points.push_back({start, during});
        curve.points.push_back({start + costs[index(task)].duration, after});
    });
    measure_curve(curve);
    return curve;
}

double gibibytes(double bytes) { return bytes / static_cast<double>(std::int64_t{1} << 30); }

struct MemoryStudy {
    explicit MemoryStudy(CLI::App& app) : options(app) {
        console.add_to(app);
        workload.add_to(options);
        job.add_to(options);
        limits.add_to(options);
        options.group("The benchmark");
        options.choice("cut", cut, {"megatron", "uniform", "balanced", "first-stage"},
                       "how the chain of all modules is cut that the plan is held against (default uniform)");
        options.integer("chunks", chunks, 2, 64, "of the interleaved one, on each rank (default 4)");
        options.integer("rank", rank, 0, 1023, "whose memory (default 0)");
    }

    void run() {
        const Stopwatch start;
        options.apply();
        planner::Request request = workload.request(static_cast<std::uint64_t>(limits.seed), limits.executor());
        request.job.max_rounds = limits.rounds();
        job.fill(request.job, workload);
        if (rank >= request.job.setup->layout.pp)
            fail(ErrorKind::input, "--rank: {}", must_be(rank, a_whole_number(0, request.job.setup->layout.pp - 1)));
        add_chain(request, 1, "1f1b");
        add_chain(request, chunks, "interleaved");
        add_published(request);
        add_plan(request);
        console.clear();
        if (console.json)
            fmt::print("{}\n", answer(request, start).dump());
        else
            print(request);
    }

    void add_chain(const planner::Request& request, std::int64_t count, const std::string& policy) {
        using emulator::Recompute;
        const auto made = partition::partitioner(cut).make(*request.job.setup, cut_sample(request), count);
        const std::vector modes{Recompute::none, Recompute::selective, Recompute::half, Recompute::full};
        const auto run = run_policy(request, made, policy, modes);
        const auto settings = fmt::format("{}, {} chunk{}", cut, count, count == 1 ? "" : "s");
        if (!run) {
            without.push_back(fmt::format("{} ({})", policy, settings));
            return;
        }
        const auto mode = run->schedule.mode.empty() ? 0 : run->schedule.mode.front();
        curves.push_back(curve_of(policy, fmt::format("{}, recompute {}", settings, name_of(modes[mode])), run->step,
                                  run->schedule, static_cast<std::size_t>(rank)));
    }

    void add_published(const planner::Request& request) {
        const auto made = partition::partitioner("dip").make(*request.job.setup, cut_sample(request), 1);
        const auto run = run_search(request, made, limits.search_options("dip"), emulator::usual_modes(),
                                    limits.executor(), limits.begin(console).keep_going());
        if (!run)
            without.emplace_back("dip");
        else
            curves.push_back(curve_of("dip", fmt::format("published, {} chunks", made.chunks_per_rank), run->step,
                                      run->schedule, static_cast<std::size_t>(rank)));
    }

    void add_plan(const planner::Request& request) {
        const auto plan = planner::make_plan(request.job, request.batch, limits.executor(), limits.begin(console),
                                             {.targets = false, .robustness = false, .opponents = false});
        const auto& replica = plan.replicas[plan.slowest];
        require_right(replica.cut.step.problem, "plan", *replica.found.schedule, plan.makespan);
        curves.push_back(curve_of("plan",
                                  fmt::format("{}, {} chunks", plan.partition().name, plan.partition().chunks_per_rank),
                                  replica.cut.step, *replica.found.schedule, static_cast<std::size_t>(rank)));
    }

    void print(const planner::Request& request) const {
        fmt::print("memory of rank {}, {} on {}, {}; {:.2f} GiB is usable\n\n", rank, workload.model, workload.cluster,
                   request.batch.name, gibibytes(static_cast<double>(emulator::capacity_of(*request.job.setup).count)));
        fmt::print(
            "| schedule | | step, s | at rest, GiB | peak | mean | deviation | swing in the middle half "
            "|\n|---|---|---|---|---|---|---|---|\n");
        for (const MemoryCurve& curve : curves)
            fmt::print("| {} | {} | {:.3f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", curve.name,
                       curve.settings, std::chrono::duration<double>(curve.step).count(),
                       gibibytes(static_cast<double>(curve.base.count)),
                       gibibytes(static_cast<double>(curve.peak.count)), gibibytes(curve.mean),
                       gibibytes(curve.deviation), gibibytes(curve.swing));
        for (const std::string& one : without) fmt::print("does not fit: {}\n", one);
    }

    nlohmann::ordered_json answer(const planner::Request& request, const Stopwatch& start) const {
        nlohmann::ordered_json json{{"model", workload.model},
                                    {"cluster", workload.cluster},
                                    {"batch", request.batch.name},
                                    {"rank", rank},
                                    {"usable_bytes", emulator::capacity_of(*request.job.setup).count},
                                    {"does_not_fit", without},
                                    {"curves", nlohmann::ordered_json::array()}};
        for (const MemoryCurve& curve : curves) {
            nlohmann::ordered_json one{{"name", curve.name},
                                       {"settings", curve.settings},
                                       {"makespan_ns", curve.makespan.count()},
                                       {"step_ns", curve.step.count()},
                                       {"base_bytes", curve.base.count},
                                       {"peak_bytes", curve.peak.count},
                                       {"mean_bytes", curve.mean},
                                       {"deviation_bytes", curve.deviation},
                                       {"swing_bytes", curve.swing},
                                       {"held_from_ns", nlohmann::ordered_json::array()},
                                       {"held_bytes", nlohmann::ordered_json::array()}};
            for (const HeldFrom& point : curve.points) {
                one["held_from_ns"].push_back(point.at.count());
                one["held_bytes"].push_back(point.held.count);
            }
            json["curves"].push_back(std::move(one));
        }
        limits.add_run(json, start);
        return json;
    }

    Options options;
    Console console;
    planner::WorkloadOptions workload;
    planner::JobOptions job;
    Limits limits;
    std::string cut = "uniform";
    std::int64_t chunks = 4, rank = 0;

    std::vector<MemoryCurve> curves;
    std::vector<std::string> without;  // that do not fit
};

}  // namespace

void add_memory(CLI::App& program) {
    add_command<MemoryStudy>(
        program, "memory", "what a rank holds over time, beside 1F1B",
        {.synopsis = "--model MODEL --cluster CLUSTER (--batch FILE | --dataset DATASET) [OPTION...]",
         .description =
             "Follows what a rank holds through a step: under 1F1B and interleaved 1F1B of a chain of all modules, "
             "with the least recomputation that fits, under the published search in partition dip, and under the "
             "plan. Prints peak, mean, deviation over time, and the swing between the largest and the smallest in "
             "the middle half of the step; --json has the curves. What a pass needs only while it runs counts "
             "while it runs. Each schedule is checked by a second replay that shares no code with the search.",
         .examples = {{"A small batch, its curves for a program to read",
                       "pipeweaver_studies memory --model dip-vlm-s --cluster h800-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --max-rounds 5 --json"},
                      {"The last rank, beside chains that are cut by time",
                       "pipeweaver_studies memory --model dip-vlm-s --cluster h800-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --max-rounds 5 --rank 3 --cut balanced"}},
         .see_also = {"pipeweaver_studies ablation", "studies/README.md", "docs/memory.md"}});
}

}  // namespace pipeweaver::studies
