// The strategy `default`: the engine and, for small problems, exact search, a round of each alternately.
//
//   nothing fits   no initial schedule keeps within memory: rounds look for any that does (find_feasible.hpp), with
//                  exact search beside it, which may prove that there is none
//   large ones     bounds that take as long as a dozen schedules come when all initial schedules were tried
//   then           a round of the engine (engine.hpp), a bit of work on the bound where memory is short
//                  (price_bound.hpp), and a round of exact search (exact_search.hpp) until it has proven what it can
#pragma once

#include "pipeweaver/search/options.hpp"
#include "search/bounds/price_bound.hpp"
#include "search/bounds/root_bounds.hpp"
#include "search/construct/find_feasible.hpp"
#include "search/exact/exact_search.hpp"
#include "search/improve/engine.hpp"
#include "search/strategy.hpp"

#include <optional>

namespace pipeweaver::search {

class DefaultStrategy final : public Strategy {
public:
    /// Keeps references: both must outlive it.
    DefaultStrategy(const Flat& flat, const Options& options);

    void start(const Executor& execute) override;
    void round(const Executor& execute) override;
    bool exhausted() const override { return (too_large_ && !engine_.starting()) || gave_up_; }

    const Candidate& best() const override { return engine_.best(); }
    const std::string& found_by() const override { return engine_.found_by(); }
    std::string why_not() const override;
    const Bound& bound() const override { return bound_; }
    std::uint64_t rounds() const override { return feasible_rounds_ + engine_.rounds(); }
    std::uint64_t evaluations() const override;
    std::vector<FoundSchedule> alternatives() const override { return engine_.alternatives(); }

private:
    void begin_bounds(const RootBounds& root);
    void look_for_any(const Executor& execute);
    void improve(const Executor& execute);
    void begin_exact();
    void take_proof();
    void raise_bound();

    const Flat& flat_;
    const Options& options_;
    Bound bound_;
    const bool too_large_;  // for rounds
    bool bounds_to_come_;   // all but the quick ones, when all starts were tried
    std::optional<PriceBound> prices_;
    Engine engine_;
    std::optional<ExactSearch> exact_;

    // As long as nothing fits.
    std::string shortage_;
    std::optional<FeasibleSearch> feasible_;
    std::optional<Exact> any_order_;
    std::uint64_t feasible_rounds_ = 0, feasible_evaluations_ = 0;
    bool gave_up_ = false;
};

}  // namespace pipeweaver::search
