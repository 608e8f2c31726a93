#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>

namespace pipeweaver::workloads {

std::vector<bool> gradient_reaches(const Model& model) {
    std::vector<bool> reached;
    for (const auto& module : model.modules) reached.push_back(module.trains());
    for (std::size_t m = 0; m < model.modules.size(); ++m)  // modules are in topological order
        for (const auto& edge : model.edges)
            if (edge.from == m && (reached[m] || trains_projector(model, edge))) reached[edge.to] = true;
    return reached;
}

bool trains_any(const Model& model) {
    const auto reached = gradient_reaches(model);
    return std::find(reached.begin(), reached.end(), true) != reached.end();
}

bool trains_projector(const Model& model, const ModelEdge& edge) {
    return edge.projector_in > 0 && edge.projector_trainable.value_or(model.modules[edge.from].trainable);
}

bool trains_projector(const Model& model, std::size_t module) {
    return std::any_of(model.edges.begin(), model.edges.end(),
                       [&](const auto& edge) { return edge.from == module && trains_projector(model, edge); });
}

bool has_head(const Model& model, std::size_t module) {
    const bool feeds = std::any_of(model.edges.begin(), model.edges.end(), [&](const auto& edge) {
        return edge.from == module && model.modules[edge.to].architecture.kind != ModuleKind::head;
    });
    return !feeds && model.modules[module].architecture.kind == ModuleKind::language_model;
}

bool routes_to_experts(const Model& model) {
    return std::any_of(model.modules.begin(), model.modules.end(),
                       [](const Module& module) { return module.architecture.moe.has_value(); });
}

}  // namespace pipeweaver::workloads
