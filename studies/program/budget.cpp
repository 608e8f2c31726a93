// pipeweaver_studies budget: how short each strategy's schedule is after 10 ms, 30 ms, ... on equal problems.
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/drawn_problem.hpp"
#include "bench/measure.hpp"
#include "bench/searched_problem.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"
#include "studies/program/studies.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::studies {

using namespace apps;
using namespace bench;

namespace {

constexpr std::array milliseconds_of_budgets{10, 30, 100, 300, 1'000, 3'000, 10'000, 30'000, 60'000};

// "30 ms", "1 s".
std::string short_text(Duration budget) {
    const double seconds = std::chrono::duration<double>(budget).count();
    return seconds < 1 ? fmt::format("{:g} ms", 1e3 * seconds) : fmt::format("{:g} s", seconds);
}

// One problem, searched once by each strategy.
struct Race {
    std::string model;
    std::uint64_t seed = 0;
    std::size_t tasks = 0, ranks = 0;
    std::vector<StrategyRun> runs;

    Duration best_known() const {
        Duration best = Duration::max();
        for (const StrategyRun& run : runs) best = std::min(best, run.found.replay.makespan);
        return best;
    }
    Duration bound() const {
        Duration bound{};
        for (const StrategyRun& run : runs) bound = std::max(bound, run.found.bound);
        return bound;
    }
};

// The makespan that was known when so much time had passed.
std::optional<Duration> makespan_after(const StrategyRun& run, Duration budget) {
    std::optional<Duration> known;
    for (const Improved& one : run.improvements)
        if (one.seconds <= std::chrono::duration<double>(budget).count()) known = one.makespan;
    return known;
}

// How a strategy did on several problems.
struct BudgetRow {
    struct Cell {
        Duration budget{};
        Ratios over_best;  // of the problems that had a schedule by then
    };
    std::string set_up, strategy;
    std::size_t problems = 0;
    double last_first = 0;  // seconds, until the last of the problems had a schedule
    std::vector<Cell> cells;

    void add(const StrategyRun& run, Duration best) {
        ++problems;
        last_first = std::max(last_first, run.improvements.front().seconds);
        for (Cell& cell : cells)
            if (const auto makespan = makespan_after(run, cell.budget))
                cell.over_best.values.push_back(static_cast<double>(makespan->count()) /
                                                static_cast<double>(best.count()));
    }

    // A mean of some of the problems would be one of another population than the row's.
    bool whole(const Cell& cell) const { return cell.over_best.values.size() == problems; }

    std::string text() const {
        std::string line = fmt::format("| {} | {} | {} | {:.0f} ms |", set_up, strategy, problems, 1e3 * last_first);
        for (const Cell& cell : cells)
            line += whole(cell) ? fmt::format(" {:.4f} |", cell.over_best.geometric_mean())
                                : fmt::format(" none on {} |", problems - cell.over_best.values.size());
        return line + "\n";
    }

    nlohmann::ordered_json json() const {
        nlohmann::ordered_json list = nlohmann::ordered_json::array();
        for (const Cell& cell : cells) {
            nlohmann::ordered_json one{{"budget_ns", cell.budget.count()},
                                       {"with_schedule", cell.over_best.values.size()},
                                       {"over_best_known", nullptr}};
            if (whole(cell)) one["over_best_known"] = cell.over_best.geometric_mean();
            list.push_back(std::move(one));
        }
        return {{"set_up", set_up},
                {"strategy", strategy},
                {"problems", problems},
                {"last_first_seconds", last_first},
                {"cells", list}};
    }
};

nlohmann::ordered_json course_of(const StrategyRun& run) {
    nlohmann::ordered_json improvements = nlohmann::ordered_json::array();
    for (const Improved& one : run.improvements)
        improvements.push_back({{"seconds", one.seconds}, {"makespan_ns", one.makespan.count()}});
    return {{"strategy", run.strategy},       {"makespan_ns", run.found.replay.makespan.count()},
            {"found_by", run.found.strategy}, {"stop_reason", name_of(run.found.stop_reason)},
            {"rounds", run.found.rounds},     {"evaluations", run.found.evaluations},
            {"seconds", run.seconds},         {"improvements", improvements}};
}

nlohmann::ordered_json to_json(const Race& race) {
    nlohmann::ordered_json json{{"name", fmt::format("{}-{}", race.model, race.seed)},
                                {"model", race.model},
                                {"seed", race.seed},
                                {"tasks", race.tasks},
                                {"ranks", race.ranks},
                                {"lower_bound_ns", race.bound().count()},
                                {"best_known_ns", race.best_known().count()},
                                {"runs", nlohmann::ordered_json::array()}};
    for (const StrategyRun& run : race.runs) json["runs"].push_back(course_of(run));
    return json;
}

// "a,b" of what `pipeweaver list strategies` has.
std::vector<std::string> strategies_of(std::string_view text) {
    std::vector<std::string> known, asked;
    for (const auto& entry : search::strategies()) known.push_back(entry.name);
    while (true) {
        const std::size_t comma = text.find(',');
        const std::string name(text.substr(0, comma));
        if (std::find(known.begin(), known.end(), name) == known.end())
            fail(ErrorKind::input, "{}", unknown("strategy", name, known));
        if (std::find(asked.begin(), asked.end(), name) != asked.end())
            fail(ErrorKind::input, "names '{}' twice", name);
        asked.push_back(name);
        if (comma == std::string_view::npos) return asked;
        text.remove_prefix(comma + 1);
    }
}

struct BudgetStudy {
    explicit BudgetStudy(CLI::App& app) : options(app) {
        console.add_to(app);
        options.group("The benchmark");
        options.parsed("strategies", "LIST",
                       "strategies of `pipeweaver list strategies`, separated by commas (default: all)",
                       [this](const std::string& text) { strategies = strategies_of(text); });
        drawn.add_to(options);
        options.text("problems", folder, "DIR",
                     "write the problems here, as MODEL-SEED.json, so that other solvers can be given the same");
        limits.add_to(options);
    }

    void run() {
        const Stopwatch start;
        options.apply();
        if (strategies.empty())
            for (const auto& entry : search::strategies()) strategies.push_back(entry.name);
        for (const SetUp& one : drawn.set_ups())
            for (std::int64_t seed = 1; seed <= drawn.batches; ++seed)
                races.push_back(race(one, static_cast<std::uint64_t>(seed)));
        console.clear();
        if (console.json) return print_json(start);
        fmt::print(
            "makespan over the shortest that any strategy found, after so much time; each strategy searches a problem "
            "once, for the largest budget\n\n| set-up | strategy | problems | a schedule of each after |");
        for (const Duration budget : budgets()) fmt::print(" {} |", short_text(budget));
        fmt::print("\n|---|---|---|---|");
        for (std::size_t k = 0; k < budgets().size(); ++k) fmt::print("---|");
        fmt::print("\n");
        for (const BudgetRow& row : rows()) fmt::print("{}", row.text());
    }

    Race race(const SetUp& set_up, std::uint64_t seed) const {
        const auto problem = drawn.draw(set_up, seed, limits.executor());
        if (!folder.empty())
            write_files({{std::filesystem::path(folder) / (problem.name + ".json"), to_json(problem)}});
        const schedule::Replayer replayer(problem);
        Race made{set_up.model, seed, problem.tasks.size(), problem.ranks.size(), {}};
        for (const std::string& strategy : strategies) {
            made.runs.push_back(run_strategy(strategy, replayer, limits, console));
            const auto& found = made.runs.back().found;
            if (!found.schedule) fail(ErrorKind::limit, "{}: {}: {}", problem.name, strategy, found.why_not);
        }
        return made;
    }

    // The usual ones below the largest, and that; without a limit in time all.
    std::vector<Duration> budgets() const {
        std::vector<Duration> all;
        const auto largest = limits.budget;
        for (const int count : milliseconds_of_budgets)
            if (const std::chrono::milliseconds budget(count); !largest || budget < *largest) all.push_back(budget);
        if (largest) all.push_back(*largest);
        return all;
    }

    // Of each set-up, then of all; in each the strategies as they were asked for.
    std::vector<BudgetRow> rows() const {
        std::vector<BudgetRow> made;
        const auto row_of = [&](const std::string& set_up, const std::string& strategy) -> BudgetRow& {
            for (BudgetRow& row : made)
                if (row.set_up == set_up && row.strategy == strategy) return row;
            BudgetRow& row = made.emplace_back(BudgetRow{set_up, strategy, 0, 0, {}});
            for (const Duration budget : budgets()) row.cells.push_back({budget, {}});
            return row;
        };
        for (const Race& race : races)
            for (const StrategyRun& run : race.runs) row_of(race.model, run.strategy).add(run, race.best_known());
        if (drawn.set_ups().size() > 1)
            for (const Race& race : races)
                for (const StrategyRun& run : race.runs) row_of("all", run.strategy).add(run, race.best_known());
        return made;
    }

    void print_json(const Stopwatch& start) const {
        nlohmann::ordered_json json{{"rows", nlohmann::ordered_json::array()},
                                    {"problems", nlohmann::ordered_json::array()}};
        for (const BudgetRow& row : rows()) json["rows"].push_back(row.json());
        for (const Race& race : races) json["problems"].push_back(to_json(race));
        limits.add_run(json, start);
        fmt::print("{}\n", json.dump());
    }

    Options options;
    Console console;
    Limits limits;
    DrawnProblems drawn{.model = {}, .costs_file = {}, .batches = 1, .microbatches = {}};
    std::vector<std::string> strategies;
    std::string folder;
    std::vector<Race> races;
};

}  // namespace

void add_budget(CLI::App& program) {
    add_command<BudgetStudy>(
        program, "budget", "how good each strategy's schedule is after how long",
        {.synopsis = "[--strategies LIST] [--budget TIME] [OPTION...]",
         .description =
             "Draws batches for the five published set-ups, with the seeds 1, 2, ..., and searches the problem of "
             "each (in the partition dip, all microbatches one replica's, as `pipeweaver bench dip`) with every "
             "strategy once, "
             "for the largest budget: a search of a smaller one is the beginning of it. Prints, for 10 ms, 30 ms, "
             "100 ms and so on up to the largest, the makespan known by then over the shortest that any of the "
             "strategies found: geometric means over the problems. The clock of a search begins before its bounds "
             "and its first schedules are made, and a schedule counts from the end of the round that found it, 10 ms "
             "at most; where some problem has none by then, the cell says on how many. Each strategy's last schedule "
             "is checked by a second replay that shares no code with the search.",
         .examples =
             {{"One batch of one set-up, up to 100 ms",
               "pipeweaver_studies budget --model dip-vlm-s --microbatches 4 --budget 100ms"},
              {"Two strategies, the problem kept, for a program to read",
               "pipeweaver_studies budget --model dip-t2v-s --microbatches 2 --strategies default,dip --budget 50ms "
               "--problems problems --json"}},
         .files = {{"DIR/MODEL-SEED.json", "pipeweaver-problem/1, with --problems"}},
         .see_also = {"pipeweaver bench dip", "pipeweaver list strategies"}});
}

}  // namespace pipeweaver::studies
