#include "search/improve/default_strategy.hpp"

#include "pipeweaver/base/assert.hpp"
#include "search/instance/modes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::search {

namespace {

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
EngineTuning engine_tuning(const Flat& flat, bool too_large) {
    EngineTuning chosen = tuning.engine;
    if (too_large) chosen.slots = 1;
    if (flat.tasks() < chosen.spent_tasks_from) chosen.hot = chosen.hot_if_tiny;
    if (flat.tasks() <= chosen.short_problem && !has_modes(flat) && !TaskGroups(flat).several_models) {
        chosen.slots *= 2;
        chosen.anneal_work /= 2;
    }
    return chosen;
}

}  // namespace

DefaultStrategy::DefaultStrategy(const Flat& flat, const Options& options)
    : flat_(flat),
      options_(options),
      too_large_(flat.tasks() > most_tasks_in_rounds),
      bounds_to_come_(flat.tasks() > most_tasks_at_leisure && options.bounds == BoundEffort::full),
      engine_(flat, options.seed, 0, engine_tuning(flat, too_large_), options.alternatives) {}

void DefaultStrategy::start(const Executor& execute) {
    // The bounds are needed only with the first schedules: they are one more job beside them.
    const BoundEffort effort = bounds_to_come_ ? BoundEffort::quick : options_.bounds;
    std::optional<RootBounds> root;
    const auto why = engine_.start(options_.starts, options_.starts_have_policies,
                                   [&](std::size_t count, const std::function<void(std::size_t)>& job) {
                                       if (root) return execute(count, job);
                                       execute(count + 1, [&](std::size_t k) {
                                           if (k == 0)
                                               root.emplace(flat_, effort);
                                           else
                                               job(k - 1);
                                       });
                                   });
    PIPEWEAVER_ASSERT(root);
    begin_bounds(*root);
    if (!why) return begin_exact();
    shortage_ = *why;
    feasible_.emplace(flat_, options_.seed);
    if (Exact::suits(flat_)) any_order_.emplace(flat_, longest_makespan(flat_) + 1, tuning.exact.any_order);
}

void DefaultStrategy::begin_bounds(const RootBounds& root) {
    bound_ = root.best;
    engine_.raise_bound(bound_.value.count());
    const auto ranks = ranks_to_price(flat_, root);
    if (!ranks.empty()) prices_.emplace(flat_, root.windows, ranks, bound_.value.count());
}

std::string DefaultStrategy::why_not() const {
    if (any_order_ && gave_up_ && any_order_->state() == Exact::State::proven)
        return shortage_ + "; nor does any other order fit";
    return fmt::format("{}; no other order that fits was found in {} rounds", shortage_, rounds());
}

std::uint64_t DefaultStrategy::evaluations() const {
    return engine_.evaluations() + feasible_evaluations_ + (exact_ ? exact_->nodes() : 0);
}

void DefaultStrategy::round(const Executor& execute) {
    if (engine_.best().valid())
        improve(execute);
    else
        look_for_any(execute);
}

void DefaultStrategy::look_for_any(const Executor& execute) {
    const bool exactly = any_order_ && any_order_->state() == Exact::State::working;
    const bool proven = any_order_ && any_order_->state() == Exact::State::proven;
    gave_up_ = proven || (!exactly && feasible_->exhausted());
    if (gave_up_) return;
    std::optional<schedule::Schedule> found;
    if (!feasible_->exhausted()) found = feasible_->round(execute);
    if (!found && exactly)
        if (const auto any = any_order_->round(execute)) found = as_schedule(flat_, any->sequence, any->mode);
    feasible_evaluations_ = feasible_->steps() + (any_order_ ? any_order_->nodes() : 0);
    ++feasible_rounds_;
    if (!found) return;
    const auto why = engine_.start({*found}, false, execute);
    PIPEWEAVER_ASSERT(!why);
    static_cast<void>(why);
    begin_exact();
}

void DefaultStrategy::improve(const Executor& execute) {
    engine_.round(execute);
    if (bounds_to_come_ && !engine_.starting()) {
        bounds_to_come_ = false;
        begin_bounds(RootBounds(flat_));
    }
    raise_bound();
    if (!exact_ || !exact_->working()) return;
    exact_->offer(engine_.best().energy.makespan);
    if (const auto better = exact_->round(execute)) engine_.adopt(*better, "exact search");
    take_proof();
}

void DefaultStrategy::begin_exact() {
    feasible_.reset();
    any_order_.reset();
    if (Exact::suits(flat_)) exact_.emplace(flat_, options_.rules, engine_.best().energy.makespan);
    take_proof();
}

void DefaultStrategy::take_proof() {
    if (engine_.optimal() || !exact_) return;
    if (exact_->proven()) {
        engine_.prove();
        bound_ = {"exact search", Duration{engine_.best().energy.makespan}};
    } else if (exact_->bound() > bound_.value.count()) {
        bound_ = {"modes of one rank", Duration{exact_->bound()}};
        engine_.raise_bound(exact_->bound());
    }
}

// Where memory is short the bound goes on to grow while the search runs.
void DefaultStrategy::raise_bound() {
    if (!prices_ || prices_->work() >= tuning.price.most_units) return;
    prices_->improve(tuning.price.units_per_round);
    if (prices_->value() <= bound_.value.count()) return;
    bound_ = {"memory over time", Duration{prices_->value()}};
    engine_.raise_bound(prices_->value());
}

}  // namespace pipeweaver::search
