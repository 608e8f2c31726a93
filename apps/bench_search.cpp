// pipeweaver bench search: what the search makes of a folder of problems, beside every policy and strategy.
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/manual.hpp"
#include "apps/measure.hpp"
#include "apps/recheck.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/replay.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/search/policies.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

namespace pipeweaver::apps {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double above(Duration a, Duration b) { return static_cast<double>(a.count()) / static_cast<double>(b.count()) - 1; }

// What the folder's reference_values.json says of an instance; each value may be missing.
struct Reference {
    std::string kind;
    std::optional<Duration> best_known, lower_bound, dual_queue;
};

std::map<std::string, Reference> references(const std::filesystem::path& folder) {
    std::map<std::string, Reference> all;
    const auto path = folder / "reference_values.json";
    if (!std::filesystem::exists(path)) return all;
    const auto document = JsonDocument::read(path);
    document.require_format("pipeweaver-reference", 1);
    for (const Json& one : document.root().at("instances").elements()) {
        const auto time = [&](const char* key) -> std::optional<Duration> {
            const auto value = one.find(key);
            if (!value || value->is_null()) return std::nullopt;
            return Duration{value->integer(1)};
        };
        const auto kind = one.find("class");
        all[one.at("name").text()] = {kind ? kind->text() : "", time("best_known_ns"), time("lower_bound_ns"),
                                      time("dual_queue_ns")};
    }
    return all;
}

// A run of one strategy: its result, and when it was how good.
struct Run {
    std::string strategy;
    search::Found found;
    double seconds = 0;
    double seconds_to_1_percent = 0;
};

struct Policy {
    std::string name;
    std::optional<Duration> makespan;
    std::string why_not;
};

struct Instance {
    std::string name, kind;
    std::size_t tasks = 0, ranks = 0;
    std::vector<Run> runs;  // the default strategy's first
    std::vector<Policy> policies;
    Reference reference;

    const search::Found& found() const { return runs.front().found; }
    Duration makespan() const { return found().replay.makespan; }
    double gap() const { return search::relative_gap(makespan(), found().bound); }
    const Policy* best_policy() const {
        const Policy* best = nullptr;
        for (const Policy& one : policies)
            if (one.makespan && (best == nullptr || *one.makespan < *best->makespan)) best = &one;
        return best;
    }
};

// Instances that are judged together.
std::string class_of(const emulator::Problem& problem, const Reference& reference) {
    std::string kind = reference.kind.empty() ? problem.name.substr(0, problem.name.find('-')) : reference.kind;
    bool capped = false, modes = false;
    for (const auto& rank : problem.ranks) capped = capped || rank.capacity;
    for (const auto& pair : problem.pairs) modes = modes || pair.modes.size() > 1;
    if (kind == "small") return kind;
    if (kind == "fused") return capped ? "fused, limited memory" : kind;
    return modes ? kind + ", memory modes" : kind;
}

void require_right(const emulator::Problem& problem, const std::string& who, const emulator::Schedule& schedule,
                   Duration makespan) {
    if (const auto why = refuted(problem, schedule, makespan); !why.empty())
        fail(ErrorKind::limit, "{}: the schedule of '{}' is wrong: {}", problem.name, who, why);
}

Run run_strategy(const std::string& strategy, const emulator::Replayer& replayer, const Limits& limits,
                 const Console& console) {
    search::Options options;
    options.strategy = strategy;
    options.seed = static_cast<std::uint64_t>(limits.seed);
    options.max_rounds = limits.rounds();
    struct Better {
        double seconds;
        Duration makespan;
    };
    std::vector<Better> history;
    const auto start = Clock::now();
    const auto limit = limits.begin(console, 1);
    Run run;
    run.strategy = strategy;
    run.found = search::solve(replayer, options, limits.executor(), [&](const search::Progress& progress) {
        if (history.empty() || progress.best < history.back().makespan)
            history.push_back({seconds_since(start), progress.best});
        return limit(progress);
    });
    run.seconds = seconds_since(start);
    run.seconds_to_1_percent = run.seconds;
    if (!run.found.schedule) return run;
    require_right(replayer.problem(), strategy, *run.found.schedule, run.found.replay.makespan);
    for (const Better& one : history)
        if (above(one.makespan, run.found.replay.makespan) <= 0.01) {
            run.seconds_to_1_percent = one.seconds;
            break;
        }
    return run;
}

Policy run_policy(const std::string& name, const emulator::Replayer& replayer) {
    const auto result = search::apply_policy(name, replayer);
    if (!result.schedule) return {name, {}, result.why_not};
    require_right(replayer.problem(), name, *result.schedule, result.replay.makespan);
    return {name, result.replay.makespan, {}};
}

// Medians and worsts of the instances of a class that have the value.
struct Figure {
    const char* name;
    std::optional<double> (*of)(const Instance&);
    bool low_is_worst = false;
};

const std::vector<Figure>& figures() {
    using Value = std::optional<double>;
    static const std::vector<Figure> all{
        {"gap", [](const Instance& one) -> Value { return one.gap(); }},
        {"over_best_known",
         [](const Instance& one) -> Value {
             if (!one.reference.best_known) return {};
             return above(one.makespan(), *one.reference.best_known);
         }},
        {"bound_over_reference",
         [](const Instance& one) -> Value {
             if (!one.reference.lower_bound) return {};
             return above(one.found().bound, *one.reference.lower_bound);
         },
         true},
        {"dual_queue_over_ours",
         [](const Instance& one) -> Value {
             if (!one.reference.dual_queue) return {};
             return above(*one.reference.dual_queue, one.makespan());
         },
         true},
        {"dip_over_ours",
         [](const Instance& one) -> Value {
             for (const Run& run : one.runs)
                 if (run.strategy == "dip" && run.found.schedule)
                     return above(run.found.replay.makespan, one.makespan());
             return {};
         },
         true},
        {"seconds_to_1_percent", [](const Instance& one) -> Value { return one.runs.front().seconds_to_1_percent; }}};
    return all;
}

struct Class {
    std::string name;
    std::vector<const Instance*> members;  // with a schedule
    std::size_t unsolved = 0;

    std::size_t optimal() const {
        return static_cast<std::size_t>(
            std::count_if(members.begin(), members.end(), [](const Instance* one) { return one->gap() == 0; }));
    }
    std::vector<double> values(const Figure& figure) const {
        std::vector<double> all;
        for (const Instance* one : members)
            if (const auto value = figure.of(*one)) all.push_back(*value);
        return all;
    }
};

double worst(const Figure& figure, const std::vector<double>& values) {
    return figure.low_is_worst ? *std::min_element(values.begin(), values.end())
                               : *std::max_element(values.begin(), values.end());
}

std::vector<Class> classes(const std::vector<Instance>& instances) {
    std::vector<Class> all;
    for (const Instance& one : instances) {
        auto found = std::find_if(all.begin(), all.end(), [&](const Class& c) { return c.name == one.kind; });
        if (found == all.end()) found = all.insert(found, {one.kind, {}, 0});
        if (one.found().schedule)
            found->members.push_back(&one);
        else
            ++found->unsolved;
    }
    return all;
}

nlohmann::ordered_json to_json(const Run& run) {
    nlohmann::ordered_json json{{"strategy", run.strategy}};
    if (run.found.schedule) {
        json["makespan_ns"] = run.found.replay.makespan.count();
        json["gap"] = search::relative_gap(run.found.replay.makespan, run.found.bound);
        json["found_by"] = run.found.strategy;
        json["stop_reason"] = emulator::name_of(run.found.stop_reason);
    } else {
        json["why_not"] = run.found.why_not;
    }
    json["rounds"] = run.found.rounds;
    json["evaluations"] = run.found.evaluations;
    json["seconds"] = run.seconds;
    json["seconds_to_1_percent"] = run.seconds_to_1_percent;
    return json;
}

nlohmann::ordered_json to_json(const Instance& one) {
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
    for (const Policy& policy : one.policies) {
        nlohmann::ordered_json row{{"policy", policy.name}};
        if (policy.makespan)
            row["makespan_ns"] = policy.makespan->count();
        else
            row["why_not"] = policy.why_not;
        json["policies"].push_back(std::move(row));
    }
    return json;
}

nlohmann::ordered_json to_json(const Class& c) {
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

void print_instances(const std::vector<Instance>& instances) {
    fmt::print("{:<28} {:>11} {:>11} {:>7} {:>8} {:>8} {:>8}  {:<24} {:>7} {:>7} {:>7}  {}\n", "problem", "makespan",
               "bound", "gap %", "best %", "dual-q %", "dip %", "best policy, %", "1 % s", "s", "rounds", "found by");
    for (const Instance& one : instances) {
        if (!one.found().schedule) {
            fmt::print("{:<28} {}\n", one.name, one.found().why_not);
            continue;
        }
        const auto value = [&](std::size_t figure) { return percent(figures()[figure].of(one)); };
        const Policy* policy = one.best_policy();
        const std::string best =
            policy == nullptr ? "-"
                              : fmt::format("{} {:.2f}", policy->name, 100 * above(*policy->makespan, one.makespan()));
        fmt::print("{:<28} {:>11} {:>11} {:>7} {:>8} {:>8} {:>8}  {:<24} {:>7.2f} {:>7.2f} {:>7}  {}\n", one.name,
                   human(one.makespan()), human(one.found().bound), value(0), value(1), value(3), value(4), best,
                   one.runs.front().seconds_to_1_percent, one.runs.front().seconds, one.found().rounds,
                   one.found().strategy);
    }
}

void print_classes(const std::vector<Class>& all) {
    fmt::print("\n{:<24} {:>9} {:>8} {:>16} {:>16} {:>18} {:>16} {:>16}\n", "class: median / worst", "instances",
               "optimal", "gap %", "over best %", "bound over ref. %", "dual-q over %", "dip over %");
    for (const Class& c : all) {
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

struct BenchSearch {
    explicit BenchSearch(CLI::App& app) : options(app) {
        app.add_option("folder", folder, "folder with problem files (pipeweaver-problem/1), gzip allowed")
            ->type_name("DIR")
            ->group("Operands");
        console.add_to(app);
        limits.add_to(options);
    }

    void run() {
        const auto start = Clock::now();
        options.apply();
        if (folder.empty())
            fail(ErrorKind::input, "FOLDER: is missing, a folder with problem files (pipeweaver-problem/1) is needed");
        const auto known = references(folder);
        std::vector<Instance> instances;
        for (const auto& path : problem_files(folder)) instances.push_back(measure(path, known));
        console.clear();
        const auto grouped = classes(instances);
        if (console.json) return print_json(instances, grouped, start);
        print_instances(instances);
        print_classes(grouped);
    }

    Instance measure(const std::filesystem::path& path, const std::map<std::string, Reference>& known) const {
        const auto file = emulator::read_problem(path);
        const emulator::Replayer replayer(file.problem);
        Instance one;
        one.name = file.problem.name;
        if (const auto found = known.find(one.name); found != known.end()) one.reference = found->second;
        one.kind = class_of(file.problem, one.reference);
        one.tasks = file.problem.tasks.size();
        one.ranks = file.problem.ranks.size();
        for (const auto& strategy : search::strategies())
            one.runs.push_back(run_strategy(strategy.name, replayer, limits, console));
        for (const auto& policy : search::policies()) one.policies.push_back(run_policy(policy.name, replayer));
        return one;
    }

    void print_json(const std::vector<Instance>& instances, const std::vector<Class>& grouped,
                    Clock::time_point start) const {
        nlohmann::ordered_json json{{"instances", nlohmann::ordered_json::array()},
                                    {"classes", nlohmann::ordered_json::array()}};
        for (const Instance& one : instances) json["instances"].push_back(to_json(one));
        for (const Class& c : grouped) json["classes"].push_back(to_json(c));
        const auto measured = limits.run(start);
        for (const auto& [key, value] : measured.items())
            if (key != "format") json[key] = value;
        fmt::print("{}\n", json.dump());
    }

    Options options;
    Console console;
    Limits limits;
    std::string folder;
};

}  // namespace

void add_bench_search(CLI::App& bench) {
    auto* app = bench.add_subcommand("search", "the search beside every policy on a folder of problems");
    describe(
        *app,
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
    const auto bench_search = std::make_shared<BenchSearch>(*app);  // shared: CLI11 keeps the callback
    app->callback([bench_search] { bench_search->run(); });
}

}  // namespace pipeweaver::apps
