#include "pipeweaver/workloads/model.hpp"

#include "pipeweaver/base/assert.hpp"
#include "workloads/model_parts.hpp"

#include <fmt/format.h>

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

std::string_view name_of(ImageResize resize) {
    constexpr std::array<std::string_view, 4> names{"round", "side", "pad", "fill"};
    return names[static_cast<std::size_t>(resize)];
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

namespace {

bool read_the_same(const Model& a, const Model& b) {
    const auto alike = [](const Module& one, const Module& other) {
        return one.architecture.kind == other.architecture.kind && one.unit == other.unit &&
               one.modalities == other.modalities;
    };
    const auto joined_alike = [](const ModelEdge& one, const ModelEdge& other) {
        return one.from == other.from && one.to == other.to && one.token_reduction == other.token_reduction;
    };
    return std::equal(a.modules.begin(), a.modules.end(), b.modules.begin(), b.modules.end(), alike) &&
           std::equal(a.edges.begin(), a.edges.end(), b.edges.begin(), b.edges.end(), joined_alike);
}

}  // namespace

bool may_have_adapters(const Architecture& network) {
    const auto kind = network.attention.kind;
    const bool compressed = kind == AttentionKind::latent || kind == AttentionKind::factored;
    return network.kind != ModuleKind::head && !network.mmdit && !compressed;
}

std::optional<Model> model_beside(const Model& model) {
    if (!model.reference && model.teacher.empty()) return std::nullopt;
    Model beside = model.reference ? model : model.teacher.front();
    beside.reference = false;
    beside.built = model.built;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        beside.modules[m].adapters.reset();
        beside.modules[m].lies = model.modules[m].lies;
    }
    return beside;
}

std::optional<std::string> why_no_teacher(const Model& model, const Model& teacher) {
    if (model.reference) return fmt::format("'{}' has a reference beside it; allowed is one of the two", model.name);
    if (teacher.reference || !teacher.teacher.empty())
        return fmt::format("'{}' has a model beside itself; allowed is one without", teacher.name);
    if (!read_the_same(model, teacher))
        return fmt::format(
            "'{}' has other modules than '{}'; allowed are as many, of the same kinds, that read the "
            "same items",
            teacher.name, model.name);
    if (model.image != teacher.image || model.video != teacher.video || model.audio != teacher.audio)
        return fmt::format("'{}' makes other tokens of images, clips or audio than '{}'; allowed are the same rules",
                           teacher.name, model.name);
    return std::nullopt;
}

Role role_of(const Model& model, std::size_t module) {
    const std::size_t backbone = model.backbone();
    if (module == backbone) return Role::backbone;
    return reaches(model, module, backbone) ? Role::encoder : Role::generator;
}

}  // namespace pipeweaver::workloads
