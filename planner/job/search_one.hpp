// One replica's batch on one partition, searched: what choices and static orders are made of.
#pragma once

#include "planner/choose/compared.hpp"

namespace pipeweaver::planner {

/// Evaluated by a few policies, then searched within `limits` and so many rounds; what it is bounded by is not asked. No
/// schedule: it does not fit.
[[nodiscard]] inline Compared search_one(const Request& request, const partition::Partition& partition,
                                         const Microbatches& batch, const std::vector<std::string>& policies,
                                         std::optional<std::uint64_t> rounds, const Limits& limits,
                                         const Executor& execute) {
    const emulator::Setup& setup = *request.setup;
    auto units = partition::units(partition, setup.model, batch);
    require_plannable(batch.size(), count_tasks(partition, units));
    Compared compared{evaluate(
        setup, partition, std::move(units), {.name = "search"},
        {.split = request.split != Split::never, .bound = search::BoundEffort::quick, .policies = policies}, execute)};
    if (compared.known.shortage) return compared;
    Request asked = request;
    asked.max_rounds = rounds;
    ChoiceRule rule;
    rule.most = 2;  // as few as a rule has: nothing is chosen among them
    search_in(compared, asked, {.rule = rule, .bounds = search::BoundEffort::quick}, execute, limits);
    return compared;
}

}  // namespace pipeweaver::planner
