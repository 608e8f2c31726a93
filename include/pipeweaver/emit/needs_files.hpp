// Needs as tables: the columns that `costdb import` takes, without the latency that is to be measured.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/planner/needs.hpp"

namespace pipeweaver::emit {

/// Makes gemm.csv, attention.csv, elementwise.csv and collectives.csv in `folder`, a header in each, rows by falling
/// share. These columns follow those of `costdb import`: `times` in a step, `share_percent` of the time of all,
/// `estimate_us` and `basis` as the database answers; of memory-bound work before them what its kernels work on
/// (KernelShape).
[[nodiscard]] std::vector<FileToWrite> needs_files(const std::vector<planner::Need>& needs,
                                                   const std::filesystem::path& folder);

}  // namespace pipeweaver::emit
