#include "pipeweaver/search/search.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "search/bounds/price_bound.hpp"
#include "search/bounds/root_bounds.hpp"
#include "search/construct/find_feasible.hpp"
#include "search/dip/dip.hpp"
#include "search/exact/exact_search.hpp"
#include "search/improve/engine.hpp"

#include <algorithm>

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

void require_rules(const schedule::Problem& problem, const Rules& rules) {
    if (rules.fixed_order.empty()) return;
    if (rules.fixed_order.size() != problem.ranks.size())
        fail(ErrorKind::input, "rules: fixed_order has {} lists, the problem has {} ranks", rules.fixed_order.size(),
             problem.ranks.size());
    for (std::size_t r = 0; r < rules.fixed_order.size(); ++r)
        for (const TaskId task : rules.fixed_order[r])
            if (index(task) >= problem.tasks.size() || index(problem.tasks[index(task)].rank) != r)
                fail(ErrorKind::input, "rules: fixed_order[{}]: task {} is not on this rank", r, index(task));
}

void fill(Found& found, const Flat& flat, const Candidate& best) {
    found.schedule = as_schedule(flat, best.sequence, best.mode);
    found.replay = flat.replayer->replay(*found.schedule);
    PIPEWEAVER_ASSERT(found.replay.outcome == schedule::Outcome::completed);
    PIPEWEAVER_ASSERT(found.replay.makespan.count() == best.energy.makespan);
    PIPEWEAVER_ASSERT(found.bound <= found.replay.makespan);
}

Known known(const Flat& flat, const Candidate& candidate, const std::string& who) {
    return {as_schedule(flat, candidate.sequence, candidate.mode), Duration{candidate.energy.makespan}, who};
}

void record(std::vector<Improvement>& history, const Progress& now) {
    if (!history.empty() && now.best >= history.back().best && now.bound <= history.back().bound) return;
    history.push_back({now.rounds, now.evaluations, now.best, now.bound, std::string(now.found_by)});
}

// The bound goes on to grow while the search runs, where memory is short: about a twentieth of a round each time.
constexpr std::uint64_t price_units_per_round = 25'000, most_price_units = 40'000'000;

// The rank that is shortest of memory, and the one with the most work: together they prove more than either.
std::vector<std::uint32_t> ranks_to_price(const Flat& flat, const RootBounds& root) {
    if (root.short_of_memory.empty()) return {};
    std::vector<std::int64_t> work(flat.ranks(), 0);
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) work[flat.rank_of[i]] += flat.shortest[i];
    const std::uint32_t shortest = root.short_of_memory.front();
    const auto busiest = static_cast<std::uint32_t>(std::max_element(work.begin(), work.end()) - work.begin());
    if (shortest == busiest) return {shortest};
    return {std::min(shortest, busiest), std::max(shortest, busiest)};
}

// A slot has arrays of all tasks of its own.
Tuning tuning_for(const Flat& flat) {
    Tuning tuning;
    if (flat.tasks() > most_tasks_in_rounds) tuning.slots = 1;
    return tuning;
}

// One search: the engine and, for small problems, exact search, a round of each by turns.
class Solver {
public:
    Solver(const Flat& flat, const Options& options, const Executor& execute, const KeepGoing& keep_going)
        : flat_(flat),
          options_(options),
          execute_(execute),
          keep_going_(keep_going),
          root_(flat),
          bound_(root_.best),
          engine_(flat, options.seed, bound_.value.count(), tuning_for(flat), options.near),
          most_rounds_(flat.tasks() > most_tasks_in_rounds
                           ? 0
                           : options.max_rounds.value_or(keep_going ? UINT64_MAX : default_rounds)) {
        const auto ranks = ranks_to_price(flat, root_);
        if (!ranks.empty()) prices_.emplace(flat, root_.windows, ranks, bound_.value.count());
    }

    Found run() {
        Found found;
        std::optional<std::string> why = engine_.start(options_.starts, execute_);
        if (why) why = start_anyhow(*why);
        if (why) {
            found.why_not = *why;
        } else {
            found.first = known(flat_, engine_.best(), engine_.found_by());
            if (Exact::suits(flat_)) exact_.emplace(flat_, options_.rules, engine_.best().energy.makespan);
            take_proof();
            while (!stops()) round();
        }
        found.bound = bound_.value;
        found.bound_name = bound_.name;
        if (!why) {
            found.strategy = engine_.found_by();
            fill(found, flat_, engine_.best());
            found.near = engine_.near();
            record(history_, progress());
            found.history = std::move(history_);
        }
        found.stop_reason = reason_;
        found.rounds = rounds();
        found.evaluations = evaluations();
        return found;
    }

private:
    std::uint64_t rounds() const { return first_rounds_ + engine_.rounds(); }
    std::uint64_t evaluations() const {
        return engine_.evaluations() + first_evaluations_ + (exact_ ? exact_->nodes() : 0);
    }

    // With the best makespan known or, before there is a schedule, one that none exceeds.
    Progress progress() const {
        const std::int64_t best = engine_.best().valid() ? engine_.best().energy.makespan : Exact::longest(flat_);
        return {rounds(), evaluations(), Duration{best}, bound_.value, engine_.found_by()};
    }

    // Asked between rounds.
    bool stops() {
        if (engine_.best().valid()) record(history_, progress());
        if (engine_.optimal()) reason_ = schedule::StopReason::optimal;
        if (engine_.optimal() || rounds() >= most_rounds_) return true;
        if (!keep_going_) return false;
        const auto reason = keep_going_(progress());
        if (reason) reason_ = *reason;
        return reason.has_value();
    }

    // The starts found nothing that fits. Says why, or nothing if there is a schedule all the same.
    std::optional<std::string> start_anyhow(const std::string& why) {
        FittingPhase fitting(flat_, options_.seed);
        std::optional<Exact> exact;
        if (Exact::suits(flat_)) {
            ExactLimits limits;
            limits.widest = 8'192;
            limits.nodes = 2'000'000;
            exact.emplace(flat_, Exact::longest(flat_) + 1, limits);
        }
        std::optional<schedule::Schedule> found;
        while (!found && !stops()) {
            const bool exactly = exact && exact->state() == Exact::State::working;
            if (exact && exact->state() == Exact::State::proven) return why + "; nor does any other order fit";
            if (!exactly && fitting.exhausted()) break;
            if (!fitting.exhausted()) found = fitting.round(execute_);
            if (!found && exactly)
                if (const auto any = exact->round(execute_)) found = as_schedule(flat_, any->sequence, any->mode);
            first_evaluations_ = fitting.steps() + (exact ? exact->nodes() : 0);
            ++first_rounds_;
        }
        if (!found) return fmt::format("{}; no other order that fits was found in {} rounds", why, first_rounds_);
        return engine_.start({*found}, execute_);
    }

    void round() {
        engine_.round(execute_);
        raise_bound();
        if (!exact_ || !exact_->working()) return;
        exact_->offer(engine_.best().energy.makespan);
        if (const auto better = exact_->round(execute_)) engine_.adopt(*better, "exact search");
        take_proof();
    }

    void take_proof() {
        if (engine_.optimal() || !exact_) return;
        if (exact_->proven()) {
            engine_.prove();
            bound_ = {"exact search", Duration{engine_.best().energy.makespan}};
        } else if (exact_->bound() > bound_.value.count()) {
            bound_ = {"modes of one rank", Duration{exact_->bound()}};
            engine_.raise_bound(exact_->bound());
        }
    }

    void raise_bound() {
        if (!prices_ || prices_->work() >= most_price_units) return;
        prices_->improve(price_units_per_round);
        if (prices_->value() <= bound_.value.count()) return;
        bound_ = {"memory over time", Duration{prices_->value()}};
        engine_.raise_bound(prices_->value());
    }

    const Flat& flat_;
    const Options& options_;
    const Executor& execute_;
    const KeepGoing& keep_going_;
    const RootBounds root_;
    Bound bound_;
    std::optional<PriceBound> prices_;
    Engine engine_;
    std::optional<ExactSearch> exact_;
    std::uint64_t most_rounds_;
    std::vector<Improvement> history_;
    std::uint64_t first_rounds_ = 0, first_evaluations_ = 0;  // of start_anyhow()
    schedule::StopReason reason_ = schedule::StopReason::rounds;
};

// The published method, for comparison: nothing of ours beside it.
Found run_dip(const Flat& flat, const Options& options, const Executor& execute, const KeepGoing& keep_going) {
    Found found;
    const Bound bound = best_bound(*flat.replayer);
    found.bound = bound.value;
    found.bound_name = bound.name;
    Dip dip(flat, options.seed, bound.value.count());
    if (auto why = dip.start(options.starts, execute)) {
        found.why_not = std::move(*why);
        return found;
    }
    found.first = known(flat, dip.best(), dip.found_by());
    const std::uint64_t most = options.max_rounds.value_or(keep_going ? UINT64_MAX : default_rounds);
    std::optional<schedule::StopReason> reason;
    while (!reason) {
        const Progress progress{dip.rounds(), dip.evaluations(), Duration{dip.best().energy.makespan}, found.bound,
                                dip.found_by()};
        record(found.history, progress);
        if (dip.optimal())
            reason = schedule::StopReason::optimal;
        else if (dip.rounds() >= most || dip.exhausted())
            reason = schedule::StopReason::rounds;
        else if (keep_going)
            reason = keep_going(progress);
        if (!reason) dip.round(execute);
    }
    found.stop_reason = *reason;
    found.strategy = dip.found_by();
    found.rounds = dip.rounds();
    found.evaluations = dip.evaluations();
    fill(found, flat, dip.best());
    return found;
}

}  // namespace

const std::vector<Strategy>& strategies() {
    static const std::vector<Strategy> all{
        {"default",
         "policies and list schedules, then search over group priorities, then annealing; beside it, exact search of "
         "small problems"},
        {"dip", "the published method: tree search over segments, dual queue, memory modes per rank"}};
    return all;
}

Found solve(const schedule::Replayer& replayer, const Options& options, const Executor& execute,
            const KeepGoing& keep_going) {
    require_strategy(options.strategy);
    require_rules(replayer.problem(), options.rules);
    const Flat flat(replayer, options.rules);
    if (options.strategy == "dip") return run_dip(flat, options, execute, keep_going);
    return Solver(flat, options, execute, keep_going).run();
}

schedule::Solution solution(const Found& found, const schedule::Problem& problem, std::string sha256) {
    PIPEWEAVER_ASSERT(found.schedule);
    schedule::Solution made;
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
