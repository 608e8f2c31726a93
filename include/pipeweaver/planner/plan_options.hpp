// What `plan` may be asked for, by name: the same for the command line, its configuration file and the Python package.
#pragma once

#include "pipeweaver/planner/job_options.hpp"
#include "pipeweaver/planner/search_limits.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <functional>
#include <vector>

namespace pipeweaver::planner {

struct Plan;
struct Wanted;

struct PlanOptions {
    WorkloadOptions workload = with_automatic_headroom();
    JobOptions job;
    BatchOptions batch;
    std::string target, also, split, recompute, replicas, actions, now, set, layers, out;
    bool robust = false;

    /// Adds those below `workload`.
    void add_to(OptionTable& options);

    /// The job with its batch. An automatic packing is settled: for a target with fixed shapes what pads least, else
    /// the best on the sample. Throws as WorkloadOptions::request().
    Request request(const SearchLimits& limits, const Executor& execute) const;

    /// The same samples packed in every way that is allowed, as they come first; where a packing is asked for,
    /// request().
    std::vector<Request> packings(const SearchLimits& limits, const Executor& execute) const;

    /// packings() in the user's own layout, where another was chosen beside it; else none. Pre: `chosen` is the job of
    /// packings().
    std::vector<Request> own_packings(const Job& chosen, const SearchLimits& limits, const Executor& execute) const;

    /// The options with what the target has of its own: a recipe, degrees, equal microbatches. Throws Error{input}.
    WorkloadOptions for_target(WorkloadOptions as) const;

    /// Whether all replicas are planned.
    bool plans_all() const { return replicas.empty(); }

    /// Which replicas are planned, and what beside them. Throws Error{input}.
    Wanted wanted(const Job& of) const;

    /// The plan of request(). As planner::make_plan(), and where nothing fits the error says what would.
    Plan make_plan(const Request& request, const Executor& execute, const Time& time, const Wanted& wanted) const;

private:
    void fill(Job& of, const WorkloadOptions& as, const SearchLimits& limits) const;
    std::vector<Request> packed_in_each(const std::function<bool(workloads::Packing)>& which,
                                        const SearchLimits& limits, const Executor& execute) const;
    Request packed(const WorkloadOptions& as, const SearchLimits& limits, const Executor& execute) const;
    void require_kept_deferred() const;
};

/// What is asked of `pipeweaver plan` in a configuration.
struct PlanConfiguration {
    PlanOptions plan;
    SearchLimits limits;

    /// Takes the options that are the document's keys. Throws Error{input}.
    void configure(const Json& document);
};

}  // namespace pipeweaver::planner
