#include "pipeweaver/workloads/built_model.hpp"

#include "pipeweaver/base/assert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace pipeweaver::workloads {

namespace {

bool is_encoder(const Model& model, std::size_t m) {
    return m < model.backbone() && model.modules[m].unit == PassUnit::items;
}

std::string_view on_recompute(EncoderRecompute how) {
    if (how == EncoderRecompute::never) return ", never recomputed";
    return how == EncoderRecompute::always ? ", always recomputed" : "";
}

std::string encoders_of(const Model& model) {
    std::string names;
    for (std::size_t m = 0; m < model.modules.size(); ++m)
        if (is_encoder(model, m)) names += (names.empty() ? "" : ", ") + model.modules[m].name;
    return names;
}

std::string_view on_tensor(OnTensorRanks how) {
    if (how == OnTensorRanks::whole) return "whole on each tensor parallel GPU";
    if (how == OnTensorRanks::all_positions) return "split over tensor parallel GPUs without sequence parallelism";
    return "split over tensor parallel GPUs";
}

std::string_view on_context(OnContextRanks how) {
    if (how == OnContextRanks::each) return "all images on each context parallel group";
    if (how == OnContextRanks::dealt) return "images dealt over context parallel groups";
    return "a part of each image on each context parallel group";
}

}  // namespace

void build_as(Model& model, const Built& row) {
    model.built = row;
    for (std::size_t m = 0; m < model.modules.size(); ++m)
        if (is_encoder(model, m)) model.modules[m].lies = row.lies;
}

namespace {

bool pads(const Module& module, std::int64_t heads) {
    return heads > 0 && module.unit == PassUnit::items && module.lies.tensor != OnTensorRanks::whole &&
           module.architecture.heads == heads;
}

std::int64_t padded_to(std::int64_t heads, std::int64_t tp) { return (heads + tp - 1) / tp * tp; }

void set_heads(Architecture& a, std::int64_t heads) {
    if (a.kv_heads == a.heads) a.kv_heads = heads;
    a.heads = heads;
}

std::string said_of(const Module& module, std::int64_t heads, std::int64_t padded) {
    return fmt::format("the {} heads of '{}' are padded to {}", heads, module.name, padded);
}

std::string as_built_by(const Model& model, std::string_view said) {
    return fmt::format("{}, as {} pads them", said, model.built->framework);
}

// As the model has them.
void unpad(Model& model) {
    for (Module& module : model.modules) {
        const std::int64_t own = std::exchange(module.unpadded_heads, 0);
        if (own == 0) continue;
        const auto said = as_built_by(model, said_of(module, own, module.architecture.heads));
        model.assumed.erase(std::remove(model.assumed.begin(), model.assumed.end(), said), model.assumed.end());
        set_heads(module.architecture, own);
    }
}

}  // namespace

std::vector<std::string> pad_heads(Model& model, std::int64_t heads, std::int64_t tp) {
    PIPEWEAVER_ASSERT(tp > 0);
    std::vector<std::string> said;
    const std::int64_t padded = padded_to(heads, tp);
    if (padded == heads) return said;
    for (Module& module : model.modules) {
        if (!pads(module, heads)) continue;
        said.push_back(said_of(module, heads, padded));
        set_heads(module.architecture, padded);
    }
    return said;
}

std::int64_t heads_on(const Model& model, const Module& module, std::int64_t tp) {
    PIPEWEAVER_ASSERT(tp > 0);
    if (module.unpadded_heads > 0) return padded_to(module.unpadded_heads, tp);
    const std::int64_t own = module.architecture.heads;
    return model.built && pads(module, model.built->pads_heads) ? padded_to(own, tp) : own;
}

void pad_as_built(Model& model, std::int64_t tp) {
    if (!model.built || model.built->pads_heads == 0) return;
    unpad(model);
    const std::int64_t own = model.built->pads_heads;
    for (Module& module : model.modules)
        if (pads(module, own) && padded_to(own, tp) != own) module.unpadded_heads = own;
    for (const std::string& said : pad_heads(model, own, tp)) model.assumed.push_back(as_built_by(model, said));
}

EncoderRecompute recompute_of(const Model& model, std::size_t module) {
    return model.built && is_encoder(model, module) ? model.built->recompute : EncoderRecompute::as_backbone;
}

std::int64_t first_layers(const Model& model) { return model.built ? model.built->first_layers : 0; }

bool deals_images(const Model& model) { return model.built && model.built->lies.context == OnContextRanks::dealt; }

std::string how_built(const Model& model) {
    const std::string encoders = encoders_of(model);
    if (!model.built || encoders.empty()) return {};
    const Built& row = *model.built;
    if (row.source.empty())
        return fmt::format(
            "{}: priced as split over tensor and context parallel GPUs; how {} builds it was not read, and it may "
            "build it in another way",
            encoders, row.framework);
    std::string how = fmt::format("{}: {}, {}{}, as {} builds it", encoders, on_tensor(row.lies.tensor),
                                  on_context(row.lies.context), on_recompute(row.recompute), row.framework);
    if (row.recompute_turned) how += " with " + recompute_switch(row);
    if (row.deals.empty()) return how;
    return how + (deals_images(model)
                      ? fmt::format(" with {}", row.deals)
                      : fmt::format("; --deal-images, {}, deals images over context parallel groups", row.deals));
}

}  // namespace pipeweaver::workloads
