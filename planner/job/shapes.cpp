#include "pipeweaver/planner/shapes.hpp"

#include <cstdint>
#include <set>
#include <utility>

namespace pipeweaver::planner {

std::size_t shapes_of(const workloads::Model& model, const std::vector<workloads::Microbatch>& all) {
    const bool packs_text = model.modules[model.backbone()].architecture.kind == workloads::ModuleKind::language_model;
    std::set<std::pair<std::int64_t, std::vector<std::int64_t>>> shapes;
    for (const workloads::Microbatch& one : all)
        shapes.emplace(workloads::positions_of(one),
                       packs_text ? std::vector<std::int64_t>{}
                                  : std::vector<std::int64_t>(one.lengths.begin(), one.lengths.end()));
    return shapes.size();
}

}  // namespace pipeweaver::planner
