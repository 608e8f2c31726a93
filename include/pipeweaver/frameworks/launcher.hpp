// Programs that start the processes of a job, and how they are told how many. Data: a launcher is a row.
//
// Determinism  Tables alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pipeweaver::frameworks {

/// How many GPUs a launcher starts processes on: `a_node` times `nodes`, or `all`.
struct Launcher {
    std::string_view name;      ///< "torchrun"
    bool by_variables = false;  ///< the names are variables of the environment, not flags
    std::string_view a_node{};  ///< "nproc_per_node"; underscores stand for dashes, too
    std::string_view nodes{};   ///< "nnodes"; one where it is not said
    std::string_view all{};     ///< "num_processes", of all nodes
    bool only_both = false;     ///< it says nothing where one of the two is not said
    std::string_view source{};
};

[[nodiscard]] std::span<const Launcher> launchers();

}  // namespace pipeweaver::frameworks
