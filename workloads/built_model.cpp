#include "pipeweaver/workloads/built_model.hpp"

#include <fmt/format.h>

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

std::vector<std::string> pad_heads(Model& model, std::int64_t tp) {
    std::vector<std::string> said;
    for (std::size_t m = 0; m < model.backbone(); ++m) {
        if (model.modules[m].lies.tensor == OnTensorRanks::whole) continue;
        Architecture& a = model.modules[m].architecture;
        const std::int64_t padded = (a.heads + tp - 1) / tp * tp;
        if (padded == a.heads) continue;
        said.push_back(fmt::format("the {} heads of '{}' are padded to {}", a.heads, model.modules[m].name, padded));
        if (a.kv_heads == a.heads) a.kv_heads = padded;
        a.heads = padded;
    }
    return said;
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
    if (row.deals.empty()) return how;
    return how + (deals_images(model)
                      ? fmt::format(" with {}", row.deals)
                      : fmt::format("; --deal-images, {}, deals images over context parallel groups", row.deals));
}

}  // namespace pipeweaver::workloads
