// Every result file of a plan, in memory.
#pragma once

#include "pipeweaver/emit/plan_files.hpp"

#include <filesystem>
#include <vector>

namespace pipeweaver::testing {

/// Pre: all replicas have their steps.
inline std::vector<FileToWrite> plan_files(const planner::Job& job, const planner::Batch& batch,
                                           const planner::Plan& plan, const std::filesystem::path& folder) {
    std::vector<FileToWrite> files;
    const emit::LossTotals losses = emit::loss_totals(job, batch, plan.partition());
    emit::make_whole_files(job, batch, plan, folder, in_order,
                           [&](FileToWrite file) { files.push_back(std::move(file)); });
    for (const planner::ReplicaPlan& replica : plan.replicas)
        for (FileToWrite& file : emit::replica_files(job, batch, replica, losses, folder))
            files.push_back(std::move(file));
    return files;
}

}  // namespace pipeweaver::testing
