#include "bench/searched_problem.hpp"

#include "bench/recheck.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/search.hpp"

namespace pipeweaver::bench {

using namespace apps;

namespace {

// Problems that are judged together.
std::string class_of(const schedule::Problem& problem, const Reference& reference) {
    std::string kind = reference.kind.empty() ? problem.name.substr(0, problem.name.find('-')) : reference.kind;
    bool capped = false, modes = false;
    for (const auto& rank : problem.ranks) capped = capped || rank.capacity;
    for (const auto& pair : problem.pairs) modes = modes || pair.modes.size() > 1;
    if (kind == "small") return kind;
    if (kind == "fused") return capped ? "fused, limited memory" : kind;
    return modes ? kind + ", memory modes" : kind;
}

PolicyRun run_policy(const std::string& name, const schedule::Replayer& replayer) {
    const auto result = search::apply_policy(name, replayer);
    if (!result.schedule) return {name, {}, result.why_not};
    require_right(replayer.problem(), name, *result.schedule, result.replay.makespan);
    return {name, result.replay.makespan, {}};
}

}  // namespace

StrategyRun run_strategy(const std::string& strategy, const schedule::Replayer& replayer, const Limits& limits,
                         const Console& console) {
    StrategyRun run;
    run.strategy = strategy;
    const Stopwatch start;
    const auto limit = limits.begin(console).keep_going();
    const auto note = [&](Duration makespan) {
        if (run.improvements.empty() || makespan < run.improvements.back().makespan)
            run.improvements.push_back({start.seconds(), makespan});
    };
    run.found = search::solve(replayer, limits.search_options(strategy), limits.executor(),
                              [&](const search::Progress& progress) {
                                  if (!progress.found_by.empty()) note(progress.best);
                                  return limit(progress);
                              });
    run.seconds = start.seconds();
    run.seconds_to_1_percent = run.seconds;
    if (!run.found.schedule) return run;
    note(run.found.replay.makespan);  // a search that ends by itself does not ask once more
    require_right(replayer.problem(), strategy, *run.found.schedule, run.found.replay.makespan);
    for (const Improved& one : run.improvements)
        if (above(one.makespan, run.found.replay.makespan) <= 0.01) {
            run.seconds_to_1_percent = one.seconds;
            break;
        }
    return run;
}

double above(Duration a, Duration b) { return static_cast<double>(a.count()) / static_cast<double>(b.count()) - 1; }

const PolicyRun* SearchedProblem::best_policy() const {
    const PolicyRun* best = nullptr;
    for (const PolicyRun& one : policies)
        if (one.makespan && (best == nullptr || *one.makespan < *best->makespan)) best = &one;
    return best;
}

std::map<std::string, Reference> references(const std::filesystem::path& folder) {
    std::map<std::string, Reference> all;
    const auto path = folder / "reference_values.json";
    if (!std::filesystem::exists(path)) return all;
    const auto document = JsonDocument::read_large(path);
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

SearchedProblem search_in_every_way(const std::filesystem::path& problem, const std::map<std::string, Reference>& known,
                                    const Limits& limits, const Console& console) {
    const auto file = schedule::read_problem(problem);
    const schedule::Replayer replayer(file.problem);
    SearchedProblem one;
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

}  // namespace pipeweaver::bench
