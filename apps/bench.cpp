// pipeweaver bench: measurements that anyone can repeat.
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/manual.hpp"
#include "apps/workload.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/search/bounds.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

namespace pipeweaver::apps {

namespace {

// How the plan compares with one (partition, policy, chunks) over the batches.
struct Comparison {
    std::string partition, policy;
    std::int64_t chunks = 1;
    std::vector<double> ratios;  // baseline step / plan step, of the batches to which it applies
};

double geometric_mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    return std::exp(sum / static_cast<double>(values.size()));
}

struct BenchPlan {
    explicit BenchPlan(CLI::App& app) : options(app) {
        console.add_to(app);
        workload.add_to(options);
        limits.add_to(options);
        options.group("The benchmark");
        options.integer("batches", batches, 1, 10'000, "batches to draw, with the seeds 1, 2, ... (default 20)");
    }

    void run() {
        const auto start = std::chrono::steady_clock::now();
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
        fmt::print(
            "| partition | schedule | chunks | applies to | step over the plan's: geometric mean | least | most |\n");
        fmt::print("|---|---|---|---|---|---|---|\n");
        for (const Comparison& c : comparisons)
            fmt::print("| {} | {} | {} | {} | {:.3f}x | {:.3f}x | {:.3f}x |\n", c.partition, c.policy, c.chunks,
                       c.ratios.size(), geometric_mean(c.ratios), *std::min_element(c.ratios.begin(), c.ratios.end()),
                       *std::max_element(c.ratios.begin(), c.ratios.end()));
    }

    void add(std::uint64_t seed) {
        planner::Request request = workload.request(seed, limits.executor());
        request.max_rounds = limits.rounds();
        if (!costs) costs.emplace(costdb::CostDatabase::embedded(request.cluster.device));
        const auto plan = planner::make_plan(request, *costs, limits.executor(),
                                             [this](double share) { return limits.begin(console, share); });
        gaps.push_back(search::relative_gap(plan.makespan, plan.lower_bound));
        for (const auto& baseline : plan.baselines) {
            auto found = std::find_if(comparisons.begin(), comparisons.end(), [&](const Comparison& c) {
                return c.partition == baseline.partition && c.policy == baseline.policy &&
                       c.chunks == baseline.chunks_per_rank;
            });
            if (found == comparisons.end())
                found = comparisons.insert(found, {baseline.partition, baseline.policy, baseline.chunks_per_rank, {}});
            found->ratios.push_back(static_cast<double>(baseline.step.count()) /
                                    static_cast<double>(plan.step.count()));
        }
    }

    nlohmann::ordered_json answer(std::chrono::steady_clock::time_point start) const {
        nlohmann::ordered_json json{
            {"batches", batches}, {"gap_median", gaps[gaps.size() / 2]}, {"gap_worst", gaps.back()}};
        json["comparisons"] = nlohmann::ordered_json::array();
        for (const Comparison& c : comparisons)
            json["comparisons"].push_back({{"partition", c.partition},
                                           {"policy", c.policy},
                                           {"chunks_per_rank", c.chunks},
                                           {"applies_to", c.ratios.size()},
                                           {"geometric_mean", geometric_mean(c.ratios)},
                                           {"least", *std::min_element(c.ratios.begin(), c.ratios.end())},
                                           {"most", *std::max_element(c.ratios.begin(), c.ratios.end())}});
        json["seconds"] = limits.run(start)["seconds"];
        return json;
    }

    Options options;
    Console console;
    WorkloadOptions workload;
    Limits limits;
    std::int64_t batches = 20;
    std::optional<costdb::CostDatabase> costs;
    std::vector<Comparison> comparisons;
    std::vector<double> gaps;
};

}  // namespace

void add_bench(CLI::App& program) {
    auto* app = program.add_subcommand("bench", "measurements that anyone can repeat");
    app->require_subcommand(1);
    auto* plan = app->add_subcommand("plan", "the plan against every policy on drawn batches");
    describe(*app, {.synopsis = "plan [OPTION...]",
                    .description = "Measurements of the program itself, each from one command.",
                    .examples = {},
                    .files = {},
                    .see_also = {"pipeweaver bench plan --help"}});
    describe(*plan,
             {.synopsis = "--model MODEL --cluster CLUSTER --dataset DATASET [OPTION...]",
              .description = "Draws batches with the seeds 1, 2, ..., plans each, and says how much longer every known "
                             "schedule takes on every partition: geometric mean, least and most, as a table.",
              .examples = {{"Three batches with a small budget",
                            "pipeweaver bench plan --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                            "--microbatches 4 --batches 3 --budget 100ms"},
                           {"The same number of rounds on any machine, for a program to read",
                            "pipeweaver bench plan --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                            "--microbatches 4 --batches 2 --max-rounds 2 --json"}},
              .files = {},
              .see_also = {"pipeweaver plan"}});
    const auto bench = std::make_shared<BenchPlan>(*plan);  // shared: CLI11 keeps the callback
    plan->callback([bench] { bench->run(); });
}

}  // namespace pipeweaver::apps
