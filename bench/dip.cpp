// pipeweaver bench dip: the published search against ours on drawn batches, on equal problems with equal budgets.
#include "apps/bench_commands.hpp"
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/benches.hpp"
#include "bench/drawn_problem.hpp"
#include "bench/measure.hpp"
#include "bench/recheck.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::bench {

using namespace apps;

namespace {

// How much better dip may be before it counts: schedules so close are as good as each other.
constexpr double tolerance = 0.003;

// One batch: the same problem searched twice.
struct Duel {
    std::string model;
    std::uint64_t seed = 0;
    std::size_t tasks = 0;
    search::Found ours, dip;

    double ratio() const {
        return static_cast<double>(dip.replay.makespan.count()) / static_cast<double>(ours.replay.makespan.count());
    }
};

// Figures of several batches.
struct Summary {
    std::string name;
    Ratios ratios;
    std::vector<double> gaps;

    void add(const Duel& duel) {
        ratios.values.push_back(duel.ratio());
        gaps.push_back(schedule::relative_gap(duel.ours.replay.makespan, duel.ours.bound));
    }
    double median_gap() const {
        auto sorted = gaps;
        std::sort(sorted.begin(), sorted.end());
        return sorted[sorted.size() / 2];
    }
    auto dip_better() const {
        return std::count_if(ratios.values.begin(), ratios.values.end(),
                             [](double ratio) { return ratio < 1 - tolerance; });
    }

    std::string row() const {
        return fmt::format("| {} | {} | {:.4f}x | {:.4f}x | {:.4f}x | {} | {:.1f} % |\n", name, ratios.values.size(),
                           ratios.geometric_mean(), ratios.least(), ratios.most(), dip_better(), 100 * median_gap());
    }
    nlohmann::ordered_json json() const {
        return {{"name", name},
                {"batches", ratios.values.size()},
                {"ratio_mean", ratios.geometric_mean()},
                {"ratio_worst", ratios.least()},
                {"ratio_best", ratios.most()},
                {"dip_better", dip_better()},
                {"gap_median", median_gap()}};
    }
};

nlohmann::ordered_json to_json(const search::Found& found) {
    return {{"makespan_ns", found.replay.makespan.count()},
            {"found_by", found.strategy},
            {"stop_reason", name_of(found.stop_reason)},
            {"rounds", found.rounds},
            {"evaluations", found.evaluations}};
}

nlohmann::ordered_json to_json(const Duel& duel) {
    return {{"model", duel.model},           {"seed", duel.seed},
            {"tasks", duel.tasks},           {"lower_bound_ns", duel.ours.bound.count()},
            {"default", to_json(duel.ours)}, {"dip", to_json(duel.dip)},
            {"ratio", duel.ratio()}};
}

struct BenchDip {
    explicit BenchDip(CLI::App& app) : options(app) {
        console.add_to(app);
        options.group("The benchmark");
        drawn.add_to(options);
        limits.add_to(options);
    }

    void run() {
        const Stopwatch start;
        options.apply();
        std::vector<Summary> summaries;
        Summary all{"all", {}, {}};
        for (const SetUp& one : drawn.set_ups()) {
            Summary& summary = summaries.emplace_back(Summary{one.model, {}, {}});
            for (std::int64_t seed = 1; seed <= drawn.batches; ++seed) {
                duels.push_back(duel(one, static_cast<std::uint64_t>(seed)));
                summary.add(duels.back());
                all.add(duels.back());
            }
        }
        console.clear();
        if (summaries.size() > 1) summaries.push_back(std::move(all));
        if (console.json) return print_json(summaries, start);
        fmt::print("makespan of dip over that of the default, each with the whole budget on the same problem\n\n");
        fmt::print(
            "| set-up | batches | geometric mean | least | most | dip better by more than {:.1f} % | gap of the "
            "default, median |\n|---|---|---|---|---|---|---|\n",
            100 * tolerance);
        for (const Summary& summary : summaries) fmt::print("{}", summary.row());
    }

    Duel duel(const SetUp& set_up, std::uint64_t seed) const {
        const auto problem = drawn.draw(set_up, seed, limits.executor());
        const schedule::Replayer replayer(problem);
        return {set_up.model, seed, problem.tasks.size(), searched(replayer, "default"), searched(replayer, "dip")};
    }

    search::Found searched(const schedule::Replayer& replayer, const std::string& strategy) const {
        auto found = search::solve(replayer, limits.search_options(strategy), limits.executor(),
                                   limits.begin(console).keep_going());
        if (!found.schedule) fail(ErrorKind::limit, "{}: {}: {}", replayer.problem().name, strategy, found.why_not);
        require_right(replayer.problem(), strategy, *found.schedule, found.replay.makespan);
        return found;
    }

    void print_json(const std::vector<Summary>& summaries, const Stopwatch& start) const {
        nlohmann::ordered_json json{{"tolerance", tolerance},
                                    {"set_ups", nlohmann::ordered_json::array()},
                                    {"batches", nlohmann::ordered_json::array()}};
        for (const Summary& summary : summaries) json["set_ups"].push_back(summary.json());
        for (const Duel& one : duels) json["batches"].push_back(to_json(one));
        limits.add_run(json, start);
        fmt::print("{}\n", json.dump());
    }

    Options options;
    Console console;
    Limits limits;
    DrawnProblems drawn{.model = {}, .costs_file = {}, .batches = 20, .microbatches = {}};
    std::vector<Duel> duels;
};

}  // namespace

void add_dip(CLI::App& program) {
    add_command<BenchDip>(
        program, "dip", about_bench("dip"),
        {.synopsis = "[OPTION...]",
         .description =
             "Draws batches for the five published set-ups, with the seeds 1, 2, ..., and searches the problem of each "
             "(in the partition dip, all microbatches one replica's) twice: by the strategy dip and by the default, "
             "each with the whole budget. Prints how much longer dip's schedules are, and how often they are shorter "
             "by more than 0.3 %. Each schedule is checked by a second replay that shares no code with the search.",
         .examples = {{"Two small batches of one set-up",
                       "pipeweaver bench dip --model dip-vlm-s --batches 2 --microbatches 4 --budget 100ms"},
                      {"The same number of rounds on any machine, for a program to read",
                       "pipeweaver bench dip --model dip-vlm-s --batches 1 --microbatches 4 --max-rounds 2 --json"}},
         .see_also = {"pipeweaver bench search", "pipeweaver list strategies"}});
}

}  // namespace pipeweaver::bench
