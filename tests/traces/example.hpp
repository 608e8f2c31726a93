// The hand-made traces of examples/traces: two ranks, three times the same, on a grid of microseconds.
//
//   host          launch gemm 0-5, add 10-15, gelu 20-25, an event 27-28, all-reduce 30-35, synchronise 40-255
//   rank 0        gemm 10-110, add 112-132, gelu 134-154, all-reduce 156-250 on a stream of its own
//   rank 1        gemm 10-150, add 152-172, gelu 174-194, all-reduce 196-250; its clock is 500 us ahead
//
// The next begins 15 us behind.
#pragma once

#include "pipeweaver/traces/graph.hpp"
#include "tests/support/shared.hpp"

#include <string>
#include <vector>

namespace pipeweaver::testing {

inline std::vector<std::string> example_traces() {
    const auto folder = source_folder() / "examples/traces";
    return {(folder / "rank-0.json").string(), (folder / "rank-1.json").string()};
}

inline traces::Graph example_step() {
    const auto files = example_traces();
    return traces::read_graph(files);
}

}  // namespace pipeweaver::testing
