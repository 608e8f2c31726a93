// pipeweaver bench search: what the search makes of a folder of problems, beside every policy and strategy.
#include "apps/bench_commands.hpp"
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/benches.hpp"
#include "bench/measure.hpp"
#include "bench/searched_problem.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::bench {

using namespace apps;

namespace {

// Medians and worsts of the instances of a class that have the value.
struct Figure {
    const char* name;
    std::optional<double> (*of)(const SearchedProblem&);
    bool low_is_worst = false;
};

const std::vector<Figure>& figures() {
    using Value = std::optional<double>;
    static const std::vector<Figure> all{{"gap", [](const SearchedProblem& one) -> Value { return one.gap(); }},
                                         {"over_best_known",
                                          [](const SearchedProblem& one) -> Value {
                                              if (!one.reference.best_known) return {};
                                              return above(one.makespan(), *one.reference.best_known);
                                          }},
                                         {"bound_over_reference",
                                          [](const SearchedProblem& one) -> Value {
                                              if (!one.reference.lower_bound) return {};
                                              return above(one.found().bound, *one.reference.lower_bound);
                                          },
                                          true},
                                         {"dual_queue_over_ours",
                                          [](const SearchedProblem& one) -> Value {
                                              if (!one.reference.dual_queue) return {};
                                              return above(*one.reference.dual_queue, one.makespan());
                                          },
                                          true},
                                         {"dip_over_ours",
                                          [](const SearchedProblem& one) -> Value {
                                              for (const StrategyRun& run : one.runs)
                                                  if (run.strategy == "dip" && run.found.schedule)
                                                      return above(run.found.replay.makespan, one.makespan());
                                              return {};
                                          },
                                          true},
                                         {"seconds_to_1_percent", [](const SearchedProblem& one) -> Value {
                                              return one.runs.front().seconds_to_1_percent;
                                          }}};
    return all;
}

struct ProblemClass {
    std::string name;
    std::vector<const SearchedProblem*> members;  // with a schedule
    std::size_t unsolved = 0;

    std::size_t optimal() const {
        return static_cast<std::size_t>(
            std::count_if(members.begin(), members.end(), [](const SearchedProblem* one) { return one->gap() == 0; }));
    }
    std::vector<double> values(const Figure& figure) const {
        std::vector<double> all;
        for (const SearchedProblem* one : members)
            if (const auto value = figure.of(*one)) all.push_back(*value);
        return all;
    }
};

double worst(const Figure& figure, const std::vector<double>& values) {
    return figure.low_is_worst ? *std::min_element(values.begin(), values.end())
                               : *std::max_element(values.begin(), values.end());
}

std::vector<ProblemClass> classes(const std::vector<SearchedProblem>& instances) {
    std::vector<ProblemClass> all;
    for (const SearchedProblem& one : instances) {
        auto found = std::find_if(all.begin(), all.end(), [&](const ProblemClass& c) { return c.name == one.kind; });
        if (found == all.end()) found = all.insert(found, {one.kind, {}, 0});
        if (one.found().schedule)
            found->members.push_back(&one);
        else
            ++found->unsolved;
    }
    return all;
}

nlohmann::ordered_json to_json(const StrategyRun& run) {
    nlohmann::ordered_json json{{"strategy", run.strategy}};
    if (run.found.schedule) {
        json["makespan_ns"] = run.found.replay.makespan.count();
        json["gap"] = schedule::relative_gap(run.found.replay.makespan, run.found.bound);
        json["found_by"] = run.found.strategy;
        json["stop_reason"] = schedule::name_of(run.found.stop_reason);
    } else {
        json["why_not"] = run.found.why_not;
    }
    json["rounds"] = run.found.rounds;
    json["evaluations"] = run.found.evaluations;
    json["seconds"] = run.seconds;
    json["seconds_to_1_percent"] = run.seconds_to_1_percent;
    return json;
}

nlohmann::ordered_json to_json(const SearchedProblem& one) {
    nlohmann::ordered_json json{{"name", one.name}, {"class", one.kind}, {"tasks", one.tasks}, {"ranks", one.ranks}};
    json["lower_bound_ns"] = one.found().bound.count();
    json["bound"] = one.found().bound_name;
    json.update(to_json(one.runs.front()));
    if (one.reference.best_known) json["best_known_ns"] = one.reference.best_known->count();
    if (one.reference.lower_bound) json["reference_lower_bound_ns"] = one.reference.lower_bound->count();
    if (one.reference.dual_queue) json["reference_dual_queue_ns"] = one.reference.dual_queue->count();
    if (one.found().schedule)
        for (const Figure& figure : figures())
            if (const auto value = figure.of(one)) json[figure.name] = *value;
    json["strategies"] = nlohmann::ordered_json::array();
    for (std::size_t k = 1; k < one.runs.size(); ++k) json["strategies"].push_back(to_json(one.runs[k]));
    json["policies"] = nlohmann::ordered_json::array();
    for (const PolicyRun& policy : one.policies) {
        nlohmann::ordered_json row{{"policy", policy.name}};
        if (policy.makespan)
            row["makespan_ns"] = policy.makespan->count();
        else
            row["why_not"] = policy.why_not;
        json["policies"].push_back(std::move(row));
    }
    return json;
}

nlohmann::ordered_json to_json(const ProblemClass& c) {
    nlohmann::ordered_json json{
        {"class", c.name}, {"instances", c.members.size() + c.unsolved}, {"optimal", c.optimal()}};
    for (const Figure& figure : figures()) {
        const auto values = c.values(figure);
        if (values.empty()) continue;
        json[std::string(figure.name) + "_median"] = median(values);
        json[std::string(figure.name) + "_worst"] = worst(figure, values);
    }
    return json;
}

std::string percent(std::optional<double> value) { return value ? fmt::format("{:.2f}", 100 * *value) : "-"; }

void print_instances(const std::vector<SearchedProblem>& instances) {
    fmt::print("{:<28} {:>11} {:>11} {:>7} {:>8} {:>8} {:>8}  {:<24} {:>7} {:>7} {:>7}  {}\n", "problem", "makespan",
               "bound", "gap %", "best %", "dual-q %", "dip %", "best policy, %", "1 % s", "s", "rounds", "found by");
    for (const SearchedProblem& one : instances) {
        if (!one.found().schedule) {
            fmt::print("{:<28} {}\n", one.name, one.found().why_not);
            continue;
        }
        const auto value = [&](std::size_t figure) { return percent(figures()[figure].of(one)); };
        const PolicyRun* policy = one.best_policy();
        const std::string best =
            policy == nullptr ? "-"
                              : fmt::format("{} {:.2f}", policy->name, 100 * above(*policy->makespan, one.makespan()));
        fmt::print("{:<28} {:>11} {:>11} {:>7} {:>8} {:>8} {:>8}  {:<24} {:>7.2f} {:>7.2f} {:>7}  {}\n", one.name,
                   human(one.makespan()), human(one.found().bound), value(0), value(1), value(3), value(4), best,
                   one.runs.front().seconds_to_1_percent, one.runs.front().seconds, one.found().rounds,
                   one.found().strategy);
    }
}

void print_classes(const std::vector<ProblemClass>& all) {
    fmt::print("\n{:<24} {:>9} {:>8} {:>16} {:>16} {:>18} {:>16} {:>16}\n", "class: median / worst", "instances",
               "optimal", "gap %", "over best %", "bound over ref. %", "dual-q over %", "dip over %");
    for (const ProblemClass& c : all) {
        fmt::print("{:<24} {:>9} {:>8}", c.name, c.members.size() + c.unsolved, c.optimal());
        for (std::size_t k = 0; k + 1 < figures().size(); ++k) {
            const auto values = c.values(figures()[k]);
            const std::string text = values.empty() ? "-"
                                                    : fmt::format("{:.2f} / {:.2f}", 100 * median(values),
                                                                  100 * worst(figures()[k], values));
            fmt::print(" {:>{}}", text, k == 2 ? 18 : 16);
        }
        fmt::print("\n");
    }
}

// For people, on stdout.
void print_tables(const std::vector<SearchedProblem>& problems) {
    print_instances(problems);
    print_classes(classes(problems));
}

// {"instances": [...], "classes": [...]}.
nlohmann::ordered_json tables_json(const std::vector<SearchedProblem>& problems) {
    nlohmann::ordered_json json{{"instances", nlohmann::ordered_json::array()},
                                {"classes", nlohmann::ordered_json::array()}};
    for (const SearchedProblem& one : problems) json["instances"].push_back(to_json(one));
    for (const ProblemClass& c : classes(problems)) json["classes"].push_back(to_json(c));
    return json;
}

struct BenchSearch {
    explicit BenchSearch(CLI::App& app) : options(app) {
        add_operand(app, "folder", folder, "DIR", "folder with problem files (pipeweaver-problem/1), gzip allowed");
        console.add_to(app);
        limits.add_to(options);
    }

    void run() {
        const Stopwatch start;
        options.apply();
        if (folder.empty()) fail_missing("FOLDER", "a folder with problem files (pipeweaver-problem/1)");
        const auto known = references(folder);
        std::vector<SearchedProblem> problems;
        for (const auto& path : problem_files(folder))
            problems.push_back(search_in_every_way(path, known, limits, console));
        console.clear();
        if (!console.json) return print_tables(problems);
        auto json = tables_json(problems);
        limits.add_run(json, start);
        fmt::print("{}\n", json.dump());
    }

    Options options;
    Console console;
    Limits limits;
    std::string folder;
};

}  // namespace

void add_search(CLI::App& program) {
    add_command<BenchSearch>(
        program, "search", about_bench("search"),
        {.synopsis = "FOLDER [OPTION...]",
         .description =
             "Searches every problem in the folder with every strategy, each with the whole budget, and applies every "
             "policy. Prints makespan, bound and gap, how much longer the policies and the strategy dip take, and when "
             "the search first was within 1 % of its end; medians and worsts by class at the end. Each schedule is "
             "checked by a second replay that shares no code with the search.\n"
             "Where the folder has a reference_values.json, its best known makespan, bound and greedy makespan are "
             "compared: 'best %' and 'dual-q %' say how far the search is above the one and below the other.",
         .examples = {{"The problem of a plan, two rounds", "pipeweaver bench search plan/replica-000 --max-rounds 2"},
                      {"For a program to read", "pipeweaver bench search plan/replica-000 --budget 100ms --json"}},
         .files = {{"FOLDER/*.json, *.json.gz", "pipeweaver-problem/1; files of other formats are passed over"},
                   {"FOLDER/reference_values.json", "what is known of the problems, by name"}},
         .see_also = {"pipeweaver solve", "pipeweaver list strategies", "pipeweaver list policies"}});
}

}  // namespace pipeweaver::bench
