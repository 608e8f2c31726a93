#include "pipeweaver/workloads/model.hpp"

#include "pipeweaver/base/assert.hpp"
#include "workloads/model_parts.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::workloads {

const std::vector<std::string>& too_long_names() {
    static const std::vector<std::string> all{"error", "drop", "own"};
    return all;
}

TooLong too_long_named(std::string_view name) {
    return name == "drop" ? TooLong::drop : name == "own" ? TooLong::own : TooLong::error;
}

std::string_view name_of(TooLong too_long) {
    if (too_long == TooLong::usual) return "";
    return too_long_names()[static_cast<std::size_t>(too_long) - 1];
}

std::string_view name_of(Modality modality) {
    switch (modality) {
        case Modality::text:
            return "text";
        case Modality::image:
            return "image";
        case Modality::video:
            return "video";
        case Modality::audio:
            return "audio";
    }
    return "text";
}

std::string_view name_of(ExpertAdapters experts) {
    constexpr std::array<std::string_view, 3> names{"none", "each", "together"};
    return names[static_cast<std::size_t>(experts)];
}

std::size_t Model::backbone() const {
    const auto found =
        std::find_if(modules.begin(), modules.end(), [](const Module& m) { return m.unit == PassUnit::microbatch; });
    PIPEWEAVER_ASSERT(found != modules.end());
    return static_cast<std::size_t>(found - modules.begin());
}

// Modules are in topological order, so every path climbs and the recursion ends.
bool reaches(const Model& model, std::size_t from, std::size_t to) {
    if (from == to) return true;
    return std::any_of(model.edges.begin(), model.edges.end(),
                       [&](const ModelEdge& edge) { return edge.from == from && reaches(model, edge.to, to); });
}

Role role_of(const Model& model, std::size_t module) {
    const std::size_t backbone = model.backbone();
    if (module == backbone) return Role::backbone;
    return reaches(model, module, backbone) ? Role::encoder : Role::generator;
}

}  // namespace pipeweaver::workloads
