// A job that runs: what it plans batch after batch with. The weights lie where they lie, so setup and partition stay;
// first comes a plan without a search, ready soon, then the best that is found until the caller needs it.
//
// Threads      any number of batches at once.
// Determinism  With `max_rounds` a plan is a function of the session and the batch.
#pragma once

#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/static_order.hpp"

#include <functional>
#include <string>

namespace pipeweaver::planner {

/// Is handed a plan that runs, while a better one is searched for.
using OnDraft = std::function<void(Plan)>;

class Session {
public:
    /// Goes on from the plan of a job's first batch: its partition and the replicas that it is of stay, and, where the
    /// request leaves it open, whether backwards are split. (Trying both takes a fraction of the time that is known
    /// beforehand, and a running job does not know how long a search may last.) Where the first plan was searched for,
    /// the searches of all later ones begin with its order, too.
    Session(const Request& first, const Plan& plan);

    /// What is asked for another batch, whose name is for the report.
    [[nodiscard]] Request request(std::string name, std::vector<workloads::Sample> samples) const;

    const workloads::Model& model() const { return asked_.setup->model; }
    const partition::Partition& partition() const { return partition_; }

    /// The steps of the session's replicas of a batch, priced and no more: a plan of it prices no layer again. Pre: as plan().
    [[nodiscard]] std::vector<Cut> steps(const Request& batch, const Executor& execute) const;

    /// The fastest of a few quick policies' schedules, given to `draft`; then applies all policies and searches, the
    /// replica that takes longest first, for what `allowance` leaves each. Where a search is told to stop at once the
    /// fastest policy's schedule stays. No schedules for other targets and no replays under wrong costs. Pre: request()
    /// made `batch`. Throws as make_plan().
    [[nodiscard]] Plan plan(const Request& batch, const Executor& execute, const Allowance& allowance,
                            const OnDraft& draft = {}) const;

private:
    Request asked_;  ///< without a batch
    partition::Partition partition_;
    std::vector<std::size_t> replicas_;
    std::optional<StaticOrder> order_;  ///< of the first plan
};

}  // namespace pipeweaver::planner
