#include "pipeweaver/search/search.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "search/dip.hpp"
#include "search/engine.hpp"

namespace pipeweaver::search {

namespace {

void require_strategy(std::string_view name) {
    std::vector<std::string> names;
    for (const Strategy& strategy : strategies()) {
        if (strategy.name == name) return;
        names.push_back(strategy.name);
    }
    fail(ErrorKind::input, "{}", unknown("strategy", name, names));
}

void require_rules(const emulator::Problem& problem, const Rules& rules) {
    if (rules.fixed_order.empty()) return;
    if (rules.fixed_order.size() != problem.ranks.size())
        fail(ErrorKind::input, "rules: fixed_order has {} lists, the problem has {} ranks", rules.fixed_order.size(),
             problem.ranks.size());
    for (std::size_t r = 0; r < rules.fixed_order.size(); ++r)
        for (const TaskId task : rules.fixed_order[r])
            if (index(task) >= problem.tasks.size() || index(problem.tasks[index(task)].rank) != r)
                fail(ErrorKind::input, "rules: fixed_order[{}]: task {} is not on this rank", r, index(task));
}

// A strategy is what has start(), round(), optimal() and its best: rounds are run here.
template <class Method>
void fill(Found& found, const Flat& flat, const Method& engine) {
    const Candidate& best = engine.best();
    found.schedule = as_schedule(flat, best.sequence, best.mode);
    found.replay = flat.replayer->replay(*found.schedule);
    found.strategy = engine.found_by();
    found.rounds = engine.rounds();
    found.evaluations = engine.evaluations();
    PIPEWEAVER_ASSERT(found.replay.outcome == emulator::Outcome::completed);
    PIPEWEAVER_ASSERT(found.replay.makespan.count() == best.energy.makespan);
    PIPEWEAVER_ASSERT(found.bound <= found.replay.makespan);
}

template <class Method>
void run(Found& found, const Flat& flat, const Options& options, const Executor& execute, const KeepGoing& keep_going) {
    Method method(flat, options.seed, found.bound.count());
    if (auto why = method.start(options.starts, execute)) {
        found.why_not = std::move(*why);
        return;
    }
    const std::uint64_t most = options.max_rounds.value_or(keep_going ? UINT64_MAX : default_rounds);
    while (true) {
        if (method.optimal()) {
            found.stop_reason = emulator::StopReason::optimal;
            break;
        }
        if (method.rounds() >= most) break;
        if constexpr (requires { method.exhausted(); })
            if (method.exhausted()) break;
        if (keep_going) {
            const Progress progress{method.rounds(), method.evaluations(), Duration{method.best().energy.makespan},
                                    found.bound, method.found_by()};
            if (const auto reason = keep_going(progress)) {
                found.stop_reason = *reason;
                break;
            }
        }
        method.round(execute);
    }
    fill(found, flat, method);
}

}  // namespace

const std::vector<Strategy>& strategies() {
    static const std::vector<Strategy> all{
        {"default", "policies and list schedules, then search over group priorities, then annealing"},
        {"dip", "the published method: tree search over segments, dual queue, memory modes per rank"}};
    return all;
}

Found solve(const emulator::Replayer& replayer, const Options& options, const Executor& execute,
            const KeepGoing& keep_going) {
    require_strategy(options.strategy);
    require_rules(replayer.problem(), options.rules);
    const Flat flat(replayer, options.rules);
    const Bound bound = best_bound(replayer);
    Found found;
    found.bound = bound.value;
    found.bound_name = bound.name;
    if (options.strategy == "dip")
        run<Dip>(found, flat, options, execute, keep_going);
    else
        run<Engine>(found, flat, options, execute, keep_going);
    return found;
}

emulator::Solution solution(const Found& found, const emulator::Problem& problem, std::string sha256) {
    PIPEWEAVER_ASSERT(found.schedule);
    emulator::Solution made;
    made.problem = problem.name;
    made.problem_sha256 = std::move(sha256);
    made.schedule = *found.schedule;
    made.start = found.replay.start;
    made.makespan = found.replay.makespan;
    made.lower_bound = found.bound;
    made.peak = found.replay.peak;
    made.strategy = found.strategy;
    made.stop_reason = found.stop_reason;
    made.rounds = found.rounds;
    made.evaluations = found.evaluations;
    return made;
}

}  // namespace pipeweaver::search
