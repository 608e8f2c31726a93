// What a module's place in the model's DAG makes of it.
#pragma once

#include "pipeweaver/workloads/model.hpp"

#include <vector>

namespace pipeweaver::workloads {

/// Per module: whether a backward pass reaches it: it is trained, or something before it is, a projector too.
[[nodiscard]] std::vector<bool> gradient_reaches(const Model& model);

/// Whether the edge has a projector that is trained.
[[nodiscard]] bool trains_projector(const Model& model, const ModelEdge& edge);

/// Whether a trained projector follows the module's last layer.
[[nodiscard]] bool trains_projector(const Model& model, std::size_t module);

/// Whether the module ends in an output head with a loss: a language model that feeds no other module, but for
/// a head beside its own (NextStep-1 trains on text and images, arXiv 2508.10711).
[[nodiscard]] bool has_head(const Model& model, std::size_t module);

}  // namespace pipeweaver::workloads
