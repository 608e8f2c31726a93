// What --sparsity and --module-context say of the modules of a model.
#pragma once

#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace pipeweaver::planner {

/// "0.9" of every diffusion transformer, "dit=0.9" of one, "dit=0.5/0.9/..." of each of its layers. Throws Error{input}
/// for modules that the model lacks or that are none, and for numbers outside 0 and 1.
void set_sparsity(workloads::Model& of, const std::string& text);

/// "dit=4x2,...": 4 GPUs exchange heads, among 2 such groups keys go round; "dit=4": as many groups as --cp has. Throws
/// Error{input} for modules that the model lacks, and where both together are not `cp`.
void set_contexts(workloads::Model& of, const std::string& text, const std::optional<std::int64_t>& cp);

}  // namespace pipeweaver::planner
