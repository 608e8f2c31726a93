#include "emit/targets/module_names.hpp"

#include <fmt/format.h>

#include <set>

namespace pipeweaver::emit {

using namespace schedule;

namespace {

std::string layers_of(const StagePart& part) {
    return fmt::format("layers {} to {} of '{}'", *part.first_layer, *part.first_layer + *part.layers - 1, part.module);
}

std::optional<std::string> unsaid(const std::vector<Stage>& stages) {
    if (stages.empty()) return "the problem lists no stages";
    for (const Stage& stage : stages) {
        if (stage.parts.empty()) return fmt::format("stage {} does not say which modules it has", stage.stage);
        for (const StagePart& part : stage.parts)
            if (!part.first_layer || !part.layers)
                return fmt::format("stage {} does not say which layers of '{}' it has", stage.stage, part.module);
    }
    return std::nullopt;
}

std::optional<std::string> misplaced_encoder(const ModuleNames& names, const std::vector<Stage>& stages,
                                             const std::string& decoder) {
    std::set<std::string> encoders;
    for (const Stage& stage : stages)
        for (const StagePart& part : stage.parts) {
            if (part.module == decoder) continue;
            if (&stage != stages.data())
                return fmt::format("stage {} has {}: {} keeps an encoder whole, on the first stage", stage.stage,
                                   layers_of(part), names.framework);
            encoders.insert(part.module);
        }
    if (encoders.size() <= 1) return std::nullopt;
    return fmt::format("{} has one encoder, the model has '{}' and '{}'", names.framework, *encoders.begin(),
                       *std::next(encoders.begin()));
}

std::optional<std::string> gap_in(const std::vector<Stage>& stages, const std::string& decoder) {
    std::int64_t next = 0;
    for (const Stage& stage : stages)
        for (const StagePart& part : stage.parts) {
            if (part.module != decoder) continue;
            if (*part.first_layer != next)
                return fmt::format("stage {} begins with layer {} of '{}', expected is layer {}", stage.stage,
                                   *part.first_layer, decoder, next);
            next += *part.layers;
        }
    return std::nullopt;
}

// Between the first stage, which has the embedding, and the last, which has the head.
std::optional<std::string> empty_stage(const ModuleNames& names, const std::vector<Stage>& stages) {
    for (std::size_t s = 1; s + 1 < stages.size(); ++s) {
        std::int64_t layers = 0;
        for (const StagePart& part : stages[s].parts) layers += *part.layers;
        if (layers == 0)
            return fmt::format("stage {} has no layers: {} builds no empty stage", stages[s].stage, names.framework);
    }
    return std::nullopt;
}

std::vector<std::string> names_of(const ModuleNames& names, const std::vector<Stage>& stages, std::size_t s,
                                  std::string_view prefix) {
    const std::string& decoder = stages.back().parts.back().module;
    std::vector<std::string> all;
    for (const StagePart& part : stages[s].parts)
        if (part.module != decoder) all.emplace_back(names.encoder);
    if (s == 0) all.push_back(fmt::format("{}{}", prefix, names.embedding));
    for (const StagePart& part : stages[s].parts)
        for (std::int64_t k = 0; part.module == decoder && k < *part.layers; ++k)
            all.push_back(fmt::format("{}{}.{}", prefix, names.layers, *part.first_layer + k));
    if (s + 1 == stages.size()) {
        all.push_back(fmt::format("{}{}", prefix, names.norm));
        all.emplace_back(names.head);
    }
    for (const std::string_view name : names.everywhere) all.push_back(fmt::format("{}{}", prefix, name));
    return all;
}

}  // namespace

const ModuleNames& torchtitan_names() {
    static const ModuleNames names{.framework = "torchtitan",
                                   .encoder = "vision_encoder",
                                   .text = "",
                                   .nested = "",
                                   .embedding = "tok_embeddings"};
    return names;
}

const ModuleNames& automodel_names() {
    static const ModuleNames names{.framework = "NeMo Automodel",
                                   .encoder = "model.visual",
                                   .text = "model.",
                                   .nested = "model.language_model.",
                                   .embedding = "embed_tokens",
                                   .everywhere = {"rotary_emb"}};
    return names;
}

NamedStages named_stages(const ModuleNames& names, const std::vector<Stage>& stages) {
    if (auto why = unsaid(stages)) return {{}, *why};
    const std::string& decoder = stages.back().parts.back().module;
    if (auto why = misplaced_encoder(names, stages, decoder)) return {{}, *why};
    if (auto why = gap_in(stages, decoder)) return {{}, *why};
    if (auto why = empty_stage(names, stages)) return {{}, *why};
    const bool encoder = stages.front().parts.front().module != decoder;
    NamedStages named;
    named.stages.reserve(stages.size());
    for (std::size_t s = 0; s < stages.size(); ++s)
        named.stages.push_back(names_of(names, stages, s, encoder ? names.nested : names.text));
    return named;
}

std::string_view placement_name(const std::vector<std::size_t>& stage_to_rank, std::size_t ranks) {
    const std::size_t stages = stage_to_rank.size();
    bool loop = stages % ranks == 0, back = stages == 2 * ranks;
    for (std::size_t s = 0; s < stages; ++s) {
        loop = loop && stage_to_rank[s] == s % ranks;
        back = back && stage_to_rank[s] == (s < ranks ? s : stages - 1 - s);
    }
    return loop ? "PipelineScheduleMulti" : back ? "ZBVZeroBubble" : "";
}

}  // namespace pipeweaver::emit
