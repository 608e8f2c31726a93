// A data plan that somebody made: assignment.json of a plan, of the Python package, or written by hand.
#pragma once

#include "pipeweaver/planner/job.hpp"

#include <filesystem>

namespace pipeweaver::planner {

/// Packs the batch as an assignment (`pipeweaver-assignment/1`) says: the samples of each microbatch by their ids, the
/// microbatches of each replica in the order that they run in. Of a microbatch only the samples' ids are read: tokens,
/// weights, rows and units follow from them. Throws Error{input} naming what is missing, twice, unknown, empty or
/// larger than a microbatch of the model may be, and where the replicas are not the job's; Error{io}.
void take_assignment(const std::filesystem::path& file, const Job& job, Batch& batch);

}  // namespace pipeweaver::planner
