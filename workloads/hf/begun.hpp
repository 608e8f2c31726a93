// Model files that begin with what is known of a configuration of a kind that is not read.
#pragma once

#include "pipeweaver/base/json.hpp"

#include <string>

namespace pipeweaver::workloads::hf {

/// A model file ("pipeweaver-model/1") with the sizes that the file says of its language model, or diffusion
/// transformer, and of its image encoder. Its key `not_read` names what else the file says: a model file has no such
/// key, and is refused until somebody has seen to that. Throws Error{input} for a size out of range.
[[nodiscard]] std::string begun_model(const Json& root, const std::string& name);

}  // namespace pipeweaver::workloads::hf
