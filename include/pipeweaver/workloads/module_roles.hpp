// What a module's place in the model's DAG makes of it.
#pragma once

#include "pipeweaver/workloads/model.hpp"

#include <vector>

namespace pipeweaver::workloads {

/// Whether a backward pass reaches it, per module: where it or something before it, be it a projector, is trained.
[[nodiscard]] std::vector<bool> gradient_reaches(const Model& model);

/// Whether anything of it is trained, be it a projector.
[[nodiscard]] bool trains_any(const Model& model);

/// Whether the edge has a projector that is trained.
[[nodiscard]] bool trains_projector(const Model& model, const ModelEdge& edge);

/// Whether a trained projector follows the module's last layer.
[[nodiscard]] bool trains_projector(const Model& model, std::size_t module);

/// Whether the module ends in an output head with a loss: a language model that feeds no other module, but for
/// a head beside its own (NextStep-1 trains on text and images, arXiv 2508.10711).
[[nodiscard]] bool has_head(const Model& model, std::size_t module);

/// Whether tokens of any module are routed to experts.
[[nodiscard]] bool routes_to_experts(const Model& model);

}  // namespace pipeweaver::workloads
