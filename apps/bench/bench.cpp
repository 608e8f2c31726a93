// pipeweaver bench: measurements that anyone can repeat.
#include "apps/bench/measure.hpp"
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::apps {

namespace {

nlohmann::ordered_json to_json(const Ratios& ratios) {
    return {{"geometric_mean", ratios.geometric_mean()}, {"least", ratios.least()}, {"most", ratios.most()}};
}

std::string text(const Ratios& ratios) {
    return fmt::format("{:.3f}x | {:.3f}x | {:.3f}x", ratios.geometric_mean(), ratios.least(), ratios.most());
}

// How the plan compares with one (partition, policy, chunks) over the batches.
struct Comparison {
    std::string partition, policy;
    std::int64_t chunks = 1;
    Ratios ratios;  // baseline time over the plan's, for each batch to which the baseline applies
};

// The same under wrong costs, for the pairs that people run; of each batch with the chunks that are fastest.
struct Sure {
    std::string partition, policy;
    Ratios p10, p50, p90;
    int wins = 0, replays = 0;

    double share() const { return static_cast<double>(wins) / static_cast<double>(replays); }
};

struct BenchPlan {
    explicit BenchPlan(CLI::App& app) : options(app) {
        console.add_to(app);
        workload.add_to(options);
        planner::add_split(options, split);
        limits.add_to(options);
        options.group("The benchmark");
        options.integer("batches", batches, 1, 10'000, "batches to draw, with the seeds 1, 2, ... (default 20)");
    }

    void run() {
        const Stopwatch start;
        options.apply();
        if (workload.dataset.empty()) fail(ErrorKind::input, "--dataset: is missing, batches are drawn from it");
        for (std::int64_t seed = 1; seed <= batches; ++seed) add(static_cast<std::uint64_t>(seed));
        console.clear();
        std::sort(gaps.begin(), gaps.end());
        if (console.json) {
            fmt::print("{}\n", answer(start).dump());
            return;
        }
        fmt::print("{} batches of {}: plan's gap to its bound: median {:.1f} %, worst {:.1f} %\n\n", batches,
                   workload.dataset, 100 * gaps[gaps.size() / 2], 100 * gaps.back());
        print_table();
    }

    void print_table() const {
        fmt::print(
            "| partition | schedule | chunks | applies to | step over the plan's: geometric mean | least | most |\n");
        fmt::print("|---|---|---|---|---|---|---|\n");
        for (const Comparison& c : comparisons)
            fmt::print("| {} | {} | {} | {} | {} |\n", c.partition, c.policy, c.chunks, c.ratios.values.size(),
                       text(c.ratios));
        if (!best.values.empty())
            fmt::print("| the best | of each batch | | {} | {} |\n", best.values.size(), text(best));
        if (sure.empty()) return;
        fmt::print(
            "\nIf costs are wrong, schedule over the plan's in {} replays of each "
            "batch:\n\n",
            planner::perturbed_replays);
        fmt::print("| partition | schedule | batches | p10: geometric mean | p50 | p90 | the plan wins |\n");
        fmt::print("|---|---|---|---|---|---|---|\n");
        for (const Sure& s : sure)
            fmt::print("| {} | {} | {} | {:.3f}x | {:.3f}x | {:.3f}x | {:.1f} % |\n", s.partition, s.policy,
                       s.p50.values.size(), s.p10.geometric_mean(), s.p50.geometric_mean(), s.p90.geometric_mean(),
                       100 * s.share());
    }

    void add(std::uint64_t seed) {
        planner::Request request = workload.request(seed, limits.executor());
        request.max_rounds = limits.rounds();
        request.split = planner::split_of(split);
        const auto plan = planner::make_plan(request, limits.executor(),
                                             [this](double share) { return limits.begin(console, share); });
        gaps.push_back(schedule::relative_gap(plan.makespan, plan.lower_bound));
        std::optional<double> least;
        for (const auto& baseline : plan.baselines.all) {
            const double ratio = static_cast<double>(baseline.step.count()) / static_cast<double>(plan.step.count());
            comparison(baseline).ratios.values.push_back(ratio);
            least = std::min(least.value_or(ratio), ratio);
        }
        if (least) best.values.push_back(*least);
        if (plan.robustness) add(*plan.robustness);
    }

    Comparison& comparison(const planner::Baseline& baseline) {
        const auto found = std::find_if(comparisons.begin(), comparisons.end(), [&](const Comparison& c) {
            return c.partition == baseline.partition && c.policy == baseline.policy &&
                   c.chunks == baseline.chunks_per_rank;
        });
        if (found != comparisons.end()) return *found;
        return comparisons.emplace_back(Comparison{baseline.partition, baseline.policy, baseline.chunks_per_rank, {}});
    }

    void add(const planner::Robustness& robustness) {
        for (const planner::Gain& gain : robustness.against) {
            const std::pair<std::string_view, std::string_view> pair(gain.partition, gain.policy);
            if (std::find(planner::usual_pairs.begin(), planner::usual_pairs.end(), pair) == planner::usual_pairs.end())
                continue;
            auto found = std::find_if(sure.begin(), sure.end(), [&](const Sure& s) {
                return s.partition == gain.partition && s.policy == gain.policy;
            });
            if (found == sure.end()) found = sure.insert(found, {gain.partition, gain.policy, {}, {}, {}, 0, 0});
            found->p10.values.push_back(gain.p10);
            found->p50.values.push_back(gain.p50);
            found->p90.values.push_back(gain.p90);
            found->wins += gain.wins;
            found->replays += robustness.replays;
        }
    }

    nlohmann::ordered_json answer(const Stopwatch& start) const {
        nlohmann::ordered_json json{
            {"batches", batches}, {"gap_median", gaps[gaps.size() / 2]}, {"gap_worst", gaps.back()}};
        json["comparisons"] = nlohmann::ordered_json::array();
        for (const Comparison& c : comparisons) {
            nlohmann::ordered_json one{{"partition", c.partition},
                                       {"policy", c.policy},
                                       {"chunks_per_rank", c.chunks},
                                       {"applies_to", c.ratios.values.size()}};
            one.update(to_json(c.ratios));
            json["comparisons"].push_back(std::move(one));
        }
        json["best_policy"] = best.values.empty() ? nlohmann::ordered_json(nullptr) : to_json(best);
        json["robustness"] = nlohmann::ordered_json::array();
        for (const Sure& s : sure)
            json["robustness"].push_back({{"partition", s.partition},
                                          {"policy", s.policy},
                                          {"batches", s.p50.values.size()},
                                          {"replays", s.replays},
                                          {"wins", s.wins},
                                          {"wins_share", s.share()},
                                          {"gain_p10", s.p10.geometric_mean()},
                                          {"gain_p50", s.p50.geometric_mean()},
                                          {"gain_p90", s.p90.geometric_mean()}});
        json["seconds"] = limits.run(start)["seconds"];
        return json;
    }

    Options options;
    Console console;
    planner::WorkloadOptions workload;
    Limits limits;
    std::int64_t batches = 20;
    std::string split;
    std::vector<Comparison> comparisons;
    Ratios best;  // of each batch, the fastest baseline
    std::vector<Sure> sure;
    std::vector<double> gaps;
};

}  // namespace

void add_bench(CLI::App& program) {
    CLI::App& app = add_group(
        program, "bench", "measurements that anyone can repeat",
        {.synopsis = "(plan | draft | replay | search | dip | budget | costdb | emulator) [OPTION...]",
         .description = "Measurements of the program itself, each from one command.",
         .examples = {},
         .files = {},
         .see_also = {"pipeweaver bench plan --help", "pipeweaver bench draft --help", "pipeweaver bench replay --help",
                      "pipeweaver bench search --help", "pipeweaver bench dip --help", "pipeweaver bench budget --help",
                      "pipeweaver bench costdb --help", "pipeweaver bench emulator --help"}});
    add_command<BenchPlan>(
        app, "plan", "the plan against every policy on drawn batches",
        {.synopsis = "--model MODEL --cluster CLUSTER --dataset DATASET [OPTION...]",
         .description = "Draws batches with the seeds 1, 2, ..., plans each, and says how much longer every known "
                        "schedule takes on every partition: geometric mean, least and most, also of the best of each "
                        "batch. A second table says how often the plan still wins over the usual pairs, and by how "
                        "much, if costs are wrong.",
         .examples = {{"Three batches with a small budget",
                       "pipeweaver bench plan --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 3 --budget 100ms"},
                      {"The same number of rounds on any machine, for a program to read",
                       "pipeweaver bench plan --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 2 --max-rounds 2 --json"}},
         .files = {},
         .see_also = {"pipeweaver plan"}});
    add_bench_replay(app);
    add_bench_search(app);
    add_bench_dip(app);
    add_bench_budget(app);
    add_bench_draft(app);
    add_bench_costdb(app);
    add_bench_emulator(app);
}

}  // namespace pipeweaver::apps
