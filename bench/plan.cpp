// pipeweaver bench plan: the plan of a job against what engineers run, on drawn batches.
#include "pipeweaver/planner/plan.hpp"

#include "apps/bench_commands.hpp"
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/benches.hpp"
#include "bench/drawn_problem.hpp"
#include "bench/measure.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/job_options.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/static_order.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace pipeweaver::bench {

using namespace apps;

namespace {

nlohmann::ordered_json to_json(const Ratios& ratios) {
    if (ratios.values.empty()) return nullptr;
    return {{"geometric_mean", ratios.geometric_mean()},
            {"least", ratios.least()},
            {"most", ratios.most()},
            {"of_each", ratios.values}};
}

std::string text(const Ratios& ratios) {
    return fmt::format("{:.3f}x | {:.3f}x | {:.3f}x", ratios.geometric_mean(), ratios.least(), ratios.most());
}

double over(Duration a, Duration b) { return static_cast<double>(a.count()) / static_cast<double>(b.count()); }

// How the plan compares with one row of its tables over the batches.
struct PlanRow {
    std::string partition, policy;
    std::int64_t chunks = 1;
    bool is_opponent = false;
    std::map<std::string, int> recompute;  // of an opponent: on how many batches
    std::string command;                   // of the first batch
    Ratios ratios;                         // its step over the plan's, for each batch to which it applies

    std::string settings() const {
        std::string all;
        for (const auto& [name, batches] : recompute)
            all += fmt::format("{}{}{}", all.empty() ? "" : ", ", name,
                               recompute.size() == 1 ? "" : fmt::format(" ({})", batches));
        return all;
    }
};

// The same under wrong costs.
struct Sure {
    std::string of;
    Ratios p10, p50, p90;
    int wins = 0, replays = 0;

    double share() const { return static_cast<double>(wins) / static_cast<double>(replays); }
};

struct BenchPlan {
    explicit BenchPlan(CLI::App& app) : options(app) {
        console.add_to(app);
        workload.add_to(options);
        planner::add_split(options, split);
        job.add_to(options);
        options.choice("target", target, planner::target_options(),
                       fmt::format("what runs the plans (default: {})", planner::targets().front().option));
        limits.add_to(options);
        options.group("The benchmark");
        options.integer("batches", batches, 1, 10'000, "batches to draw, with the seeds 1, 2, ... (default 20)");
        options.flag("regret", regret,
                     "plan every batch on the partition that is best for it alone as well, and say how much longer the "
                     "job's partition is");
        options.parsed("published", "TIME", "hold the plan against the published search, too: strategy dip, so long",
                       [this](const std::string& given) { published = parse_duration(given); });
    }

    void run() {
        const Stopwatch start;
        options.apply();
        if (workload.dataset.empty()) fail_missing("--dataset DATASET", "batches are drawn from it");
        for (std::int64_t seed = 1; seed <= batches; ++seed) add(static_cast<std::uint64_t>(seed));
        console.clear();
        std::sort(gaps.begin(), gaps.end());
        if (console.json) {
            fmt::print("{}\n", answer(start).dump());
            return;
        }
        print();
    }

    planner::Request request_of(std::uint64_t seed) const {
        planner::Request request = workload.request(seed, limits.executor());
        request.job.max_rounds = limits.rounds();
        request.job.split = planner::split_of(split);
        request.job.target = planner::target_called(target);
        job.fill(request.job, workload);
        return request;
    }

    bool job_is_the_batch() const { return job.sample == "batch"; }

    // What a job decides once: its partition, its opponents, its static order.
    void begin(const planner::Request& first) {
        if (job_is_the_batch()) return;
        partition = planner::choose_partition(first.job, first.batch, planner::thorough_choice, limits.executor());
        opponents = planner::choose_opponents(first.job, first.batch, limits.executor());
        planner::Request asked = first;
        if (!asked.job.sample.batches.empty())
            static_order.emplace(asked.job, asked.batch, partition->partition, limits.executor(),
                                 limits.begin(console));
    }

    void add(std::uint64_t seed) {
        planner::Request request = request_of(seed);
        if (seed == 1) begin(request);
        planner::Wanted wanted{.targets = false};
        if (partition) {
            request.job.fixed = partition::PartitionFile{partition->partition, partition->chosen_on};
            wanted.known_opponents = &*opponents;
            if (static_order) wanted.orders = {&*static_order};
        }
        const auto plan =
            planner::make_plan(request.job, request.batch, limits.executor(), limits.begin(console), wanted);
        steps.push_back(plan.step);
        gaps.push_back(schedule::relative_gap(plan.makespan, plan.lower_bound));
        std::optional<double> least;
        for (const auto& baseline : plan.baselines.all) {
            const double ratio = over(baseline.step, plan.step);
            PlanRow& one = row(baseline);
            one.ratios.values.push_back(ratio);
            if (baseline.is_opponent) {
                ++one.recompute[name_of(*baseline.recompute)];
                least = std::min(least.value_or(ratio), ratio);
            }
        }
        if (least) best.values.push_back(*least);
        if (static_order)
            if (const auto step = static_order->step(request.job, request.batch, limits.executor()))
                static_ratios.values.push_back(over(*step, plan.step));
        if (published) add_published(request, plan);
        if (regret) add_regret(seed, plan, wanted.orders);
        if (plan.robustness) add(*plan.robustness);
    }

    // The published partition of this batch under the published search.
    void add_published(const planner::Request& request, const planner::Plan& plan) {
        if (request.job.setup->layout.dp != 1)
            fail(ErrorKind::input, "--published: plans one replica alone; allowed is --dp 1");
        const auto cut = published_step(request);
        search::Options asked;
        asked.strategy = "dip";
        asked.seed = request.job.seed;
        asked.max_rounds = request.job.max_rounds;
        const Stopwatch since;
        const double most = static_cast<double>(published->count()) * 1e-9;
        const auto found =
            search::solve(schedule::Replayer(cut.step.problem), asked, limits.executor(), [&](const search::Progress&) {
                return since.seconds() > most && !request.job.max_rounds ? std::optional(schedule::StopReason::budget)
                                                                         : std::nullopt;
            });
        if (!found.schedule) return;
        const auto makespan = emulator::replay_on_ports(cut.step, *found.schedule).replay.makespan;
        published_ratios.values.push_back(over(makespan + cut.step.optimizer, plan.step));
    }

    // Searched from the same orders, so that nothing but the partition differs.
    void add_regret(std::uint64_t seed, const planner::Plan& plan,
                    const std::vector<const planner::StaticOrder*>& orders) {
        planner::Request own = request_of(seed);
        own.job.fixed.reset();
        own.job.sample = {};
        planner::Wanted wanted{.targets = false, .robustness = false, .opponents = false};
        wanted.orders = orders;
        const auto best_for_it =
            planner::make_plan(own.job, own.batch, limits.executor(), limits.begin(console), wanted);
        regrets.values.push_back(over(plan.step, best_for_it.step));
    }

    PlanRow& row(const planner::Baseline& baseline) {
        const auto found = std::find_if(rows.begin(), rows.end(), [&](const PlanRow& one) {
            return one.partition == baseline.partition && one.policy == baseline.policy &&
                   one.chunks == baseline.chunks_per_rank && one.is_opponent == baseline.is_opponent;
        });
        if (found != rows.end()) return *found;
        return rows.emplace_back(PlanRow{baseline.partition,
                                         baseline.policy,
                                         baseline.chunks_per_rank,
                                         baseline.is_opponent,
                                         {},
                                         baseline.command,
                                         {}});
    }

    void add(const planner::Robustness& robustness) {
        for (const planner::Gain& gain : robustness.against) {
            const std::string of = &gain == &robustness.against.front() ? "fastest opponent on the same ranks"
                                                                        : "fastest policy on the plan's partition";
            auto found = std::find_if(sure.begin(), sure.end(), [&](const Sure& s) { return s.of == of; });
            if (found == sure.end()) found = sure.insert(found, {of, {}, {}, {}, 0, 0});
            found->p10.values.push_back(gain.p10);
            found->p50.values.push_back(gain.p50);
            found->p90.values.push_back(gain.p90);
            found->wins += gain.wins;
            found->replays += robustness.replays;
        }
    }

    const PlanRow* job_opponent() const {
        if (!opponents || opponents->ways.empty() || rows.empty()) return nullptr;
        return &rows.front();
    }

    std::string job_text() const {
        if (!partition) return "partition and opponents of each batch are chosen on it alone";
        return fmt::format("partition {} with {} chunks a rank, chosen on {}", partition->partition.name,
                           partition->partition.chunks_per_rank, partition->chosen_on.text());
    }

    void print() const {
        fmt::print("{} batches of {}: plan's gap to its bound: median {:.1f} %, worst {:.1f} %\n{}\n", batches,
                   workload.dataset, 100 * gaps[gaps.size() / 2], 100 * gaps.back(), job_text());
        if (const PlanRow* one = job_opponent())
            fmt::print("the job's opponent: {}\n", one->command.empty() ? one->partition : one->command);
        if (!regrets.values.empty())
            fmt::print("regret against each batch's own partition: mean {:.4f}, most {:.4f}\n", mean(regrets.values),
                       regrets.most());
        fmt::print(
            "\n| partition | schedule | chunks | recompute | applies to | step over the plan's: geometric mean | least "
            "| most |\n|---|---|---|---|---|---|---|---|\n");
        for (const PlanRow& one : rows)
            fmt::print("| {} | {} | {} | {} | {} | {} |\n", one.partition, one.policy, one.chunks, one.settings(),
                       one.ratios.values.size(), text(one.ratios));
        const auto line = [](std::string_view first, std::string_view second, const Ratios& ratios) {
            if (!ratios.values.empty())
                fmt::print("| {} | {} | | | {} | {} |\n", first, second, ratios.values.size(), text(ratios));
        };
        line("the plan's", "one order for all batches", static_ratios);
        line("dip of each batch", "published search", published_ratios);
        line("the best opponent", "of each batch", best);
        if (sure.empty()) return;
        fmt::print(
            "\nIf costs are wrong, schedule over the plan's in {} replays of each batch:\n\n"
            "| schedule | batches | p10: geometric mean | p50 | p90 | the plan wins |\n|---|---|---|---|---|---|\n",
            planner::perturbed_replays);
        for (const Sure& s : sure)
            fmt::print("| {} | {} | {:.3f}x | {:.3f}x | {:.3f}x | {:.1f} % |\n", s.of, s.p50.values.size(),
                       s.p10.geometric_mean(), s.p50.geometric_mean(), s.p90.geometric_mean(), 100 * s.share());
    }

    static double mean(const std::vector<double>& values) {
        double sum = 0;
        for (const double value : values) sum += value;
        return sum / static_cast<double>(values.size());
    }

    nlohmann::ordered_json row_json(const PlanRow& one) const {
        nlohmann::ordered_json json{{"partition", one.partition},
                                    {"policy", one.policy},
                                    {"chunks_per_rank", one.chunks},
                                    {"opponent", one.is_opponent},
                                    {"recompute", one.recompute},
                                    {"command", one.command},
                                    {"applies_to", one.ratios.values.size()}};
        json.update(to_json(one.ratios));
        return json;
    }

    nlohmann::ordered_json answer(const Stopwatch& start) const {
        nlohmann::ordered_json json{
            {"model", workload.model}, {"cluster", workload.cluster},         {"dataset", workload.dataset},
            {"batches", batches},      {"gap_median", gaps[gaps.size() / 2]}, {"gap_worst", gaps.back()}};
        json["partition"] = nullptr;
        if (partition)
            json["partition"] = {{"name", partition->partition.name},
                                 {"chunks_per_rank", partition->partition.chunks_per_rank},
                                 {"unit_items", partition->partition.unit_items},
                                 {"notes", partition->partition.notes},
                                 {"chosen_on", partition->chosen_on.text()}};
        json["step_ns"] = nlohmann::ordered_json::array();
        for (const Duration step : steps) json["step_ns"].push_back(step.count());
        json["job_opponent"] = job_opponent() ? row_json(*job_opponent()) : nlohmann::ordered_json(nullptr);
        json["comparisons"] = nlohmann::ordered_json::array();
        for (const PlanRow& one : rows) json["comparisons"].push_back(row_json(one));
        json["best_opponent"] = to_json(best);
        json["static_order"] = to_json(static_ratios);
        json["published"] = to_json(published_ratios);
        json["regret"] = nullptr;
        if (!regrets.values.empty())
            json["regret"] = {{"mean", mean(regrets.values)}, {"most", regrets.most()}, {"of_each", regrets.values}};
        json["robustness"] = nlohmann::ordered_json::array();
        for (const Sure& s : sure)
            json["robustness"].push_back({{"against", s.of},
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
    planner::JobOptions job;
    Limits limits;
    std::int64_t batches = 20;
    std::string split, target;
    bool regret = false;
    std::optional<Duration> published;

    std::optional<planner::PartitionChoice> partition;  // of the job; none: each batch has its own
    std::optional<planner::Opponents> opponents;
    std::optional<planner::StaticOrder> static_order;
    std::vector<Duration> steps;
    std::vector<PlanRow> rows;
    Ratios best, static_ratios, published_ratios, regrets;
    std::vector<Sure> sure;
    std::vector<double> gaps;
};

}  // namespace

void add_plan(CLI::App& program) {
    add_command<BenchPlan>(
        program, "plan", about_bench("plan"),
        {.synopsis = "--model MODEL --cluster CLUSTER --dataset DATASET [OPTION...]",
         .description =
             "Chooses partition and opponents once, on the sample, draws batches with the seeds 1, 2, ..., plans each "
             "on that partition, and says how much longer every opponent and every policy takes: geometric mean, least "
             "and most. Also of the best opponent of each batch, of one order for all batches, and how often the plan "
             "still wins if costs are wrong.\n"
             "With --sample batch every batch has the partition and the opponents that are best for it alone.",
         .examples = {{"Three batches with a small budget",
                       "pipeweaver bench plan --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 3 --budget 100ms"},
                      {"The same number of rounds on any machine, for a program to read",
                       "pipeweaver bench plan --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix "
                       "--microbatches 4 --batches 2 --max-rounds 2 --regret --json"}},
         .see_also = {"pipeweaver plan", "pipeweaver partition", "studies/gains.md"}});
}

}  // namespace pipeweaver::bench
