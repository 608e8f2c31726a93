// One replica's batch on one partition, searched: what choices and static orders are made of.
#pragma once

#include "planner/choose/compared.hpp"

namespace pipeweaver::planner {

/// Evaluated by a few policies, then searched within `time` and so many rounds; what it is bounded by is not asked. No
/// schedule: it does not fit.
[[nodiscard]] inline Compared search_one(const Request& request, const partition::Partition& partition,
                                         const Microbatches& batch, const std::vector<std::string>& policies,
                                         std::optional<std::uint64_t> rounds, const Time& time,
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
    search_in(compared, asked, {.rule = no_choice, .bounds = search::BoundEffort::quick}, execute, time);
    return compared;
}

}  // namespace pipeweaver::planner
