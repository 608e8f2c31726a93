// Output of nccl-tests (what all_reduce_perf and its like print) -> points.
//
// Releases     those whose times are "(us)", from 2.0 (2018) to 2.20: columns are found by the header line, with or
//              without redop, root, #wrong, #iters and later ones; a blank redop is allowed. A file may hold several
//              runs.
// Collective   of the line "# Collective test starting: all_reduce_perf", else of the last text before the table, else
//              of the file's name, that has all_reduce_perf, all_gather_perf, reduce_scatter_perf, alltoall_perf or
//              sendrecv_perf.
// Size         what nccl-tests prints is max(bytes sent, bytes received) of a rank: the whole tensor of an all_reduce,
//              all_gather and reduce_scatter (its `count` is per rank there), all that a rank holds of an alltoall, one
//              message of sendrecv. That is Collective::message; nothing is converted.
// Time         out of place; the spread says how far in place is from it.
// GPUs         the lines "# Rank 0 Group 0 Pid 1 on HOST device 0 [..] NAME" give them, those of a node (most on one
//              host) and the device; groups that run side by side count as one each.
// Not taken    sizes of 0 bytes, types that no table holds; counted.
#pragma once

#include "pipeweaver/costdb/measurements.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace pipeweaver::costdb {

struct NcclTests {
    std::string product;       ///< the GPU, as its driver says; empty if no rank says it
    std::size_t left_out = 0;  ///< rows that are no points
};

/// Whether a text has the header of such a table.
[[nodiscard]] bool is_nccl_tests(std::string_view text);

/// Appends the points of `text`. Throws Error{input}: name:line: what is wrong.
NcclTests read_nccl_tests(const std::string& name, std::string_view text, Measurements& into);

}  // namespace pipeweaver::costdb
