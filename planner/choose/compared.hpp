// One replica's batch on a partition: what is known of it before any search, and what a search found.
#pragma once

#include "pipeweaver/planner/robust_choice.hpp"
#include "planner/choose/split_search.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

struct Compared {
    Evaluation known;
    search::Found found{};
    std::optional<emulator::StepProblem> parts{};  ///< the step with split backwards, if `found` is of that

    const partition::Partition& partition() const { return known.cut.partition; }
    const emulator::StepProblem& searched() const { return parts ? *parts : known.cut.step; }
};

/// One of the step's replicas.
struct OneReplica {
    std::size_t number = 0;
    const Microbatches* microbatches = nullptr;
};

/// Built, with policies (as in Scope) and bound; see EvaluationWanted. Of a large problem no policy may have been tried
/// when time is short: a search of it has a schedule all the same. Throws Error{input} where it is too large to plan.
[[nodiscard]] Compared compare(const Request& request, const partition::Partition& partition, const OneReplica& replica,
                               const std::vector<std::string>& policies, search::BoundEffort bound,
                               const Executor& execute, const Time& time = {});

/// Schedules of a step for a search to begin with, beside those of policies.
using MoreStarts = std::function<std::vector<schedule::Schedule>(const emulator::StepProblem&)>;

/// What a search in a plan is like.
struct SearchWanted {
    ChoiceRule rule;  ///< that near schedules are handed over for
    MoreStarts more = {};
    search::BoundEffort bounds = search::BoundEffort::full;
};

/// Fills in `compared.found`.
void search_in(Compared& compared, const Request& request, const SearchWanted& wanted, const Executor& execute,
               const Time& time);

/// Fills in `compared.found` as if a search had found this policy's schedule. Pre: `run` is one of compared.known and
/// applies.
void take(Compared& compared, const PolicyRun& run);

}  // namespace pipeweaver::planner
