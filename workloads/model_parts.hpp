// Parts of reading models that the catalogue shares with model files.
#pragma once

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/model.hpp"

namespace pipeweaver::workloads {

/// Reads a model from an object without looking at its format.
[[nodiscard]] Model parse_model_object(const Json& json);

/// What a module is to the backbone.
enum class Role {
    backbone,
    encoder,   ///< its output reaches the backbone
    generator  ///< the backbone's output reaches it
};

/// The role of a module. Pre: the module is connected to the backbone, as in every model that was read.
[[nodiscard]] Role role_of(const Model& model, std::size_t module);

/// Whether the output of module `from` reaches module `to`.
[[nodiscard]] bool reaches(const Model& model, std::size_t from, std::size_t to);

}  // namespace pipeweaver::workloads
