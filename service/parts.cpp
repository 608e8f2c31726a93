#include "service/parts.hpp"

#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/search/search.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipeweaver::service {

namespace {

void add_replica(const planner::Job& job, const planner::Batch& batch, const planner::ReplicaPlan& replica,
                 const emit::LossTotals& losses, std::vector<Part>& parts) {
    const std::string below = fmt::format("replicas/{}/", replica.number);
    const schedule::Problem& problem = replica.cut.step.problem;
    parts.push_back({below + "problem", to_json(problem)});
    parts.push_back({below + "solution", to_json(search::solution(replica.found, problem, fingerprint(problem)))});
    const auto actions = emit::actions_of(job, batch, replica, losses);
    const emit::RankLists lists(actions);
    parts.push_back({below + "actions", to_json(actions)});
    for (std::size_t rank = 0; rank < actions.ranks.size(); ++rank)
        parts.push_back({fmt::format("{}ranks/{}", below, rank), lists.to_json(rank)});
}

}  // namespace

std::vector<Part> parts_of(const planner::Job& job, const planner::Batch& batch, const planner::Plan& plan) {
    std::vector<Part> parts{{"plan", emit::plan_json(job, batch, plan).dump(1) + "\n"},
                            {"assignment", emit::assignment_json(job, batch, plan)}};
    if (job.defer) parts.push_back({"deferred", workloads::to_jsonl(batch.deferred)});
    const auto losses = emit::loss_totals(job, batch, plan.partition());
    for (const planner::ReplicaPlan& replica : plan.replicas) add_replica(job, batch, replica, losses, parts);
    return parts;
}

}  // namespace pipeweaver::service
