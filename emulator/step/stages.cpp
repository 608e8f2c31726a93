#include "pipeweaver/emulator/stages.hpp"

#include "pipeweaver/workloads/module_roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace pipeweaver::emulator {

bool trains(const workloads::Model& model, const LayerRange& part) {
    const auto& module = model.modules[part.module];
    const bool last = part.first + part.count == module.architecture.layers;
    return module.trains() || (last && workloads::trains_projector(model, part.module));
}

namespace {

// A recomputation is a row: what it is called, who may choose it, and how much of a module it computes again.
struct RecomputeRow {
    std::string_view name;  // with a number, what stands before it
    Recompute setting;
    bool has_number = false;
    bool for_plans = true;

    // How many of `count` blocks of the backbone, or of another module, are recomputed, in part or whole; `n` is
    // Recompute::layers.
    std::int64_t (*layers)(std::int64_t count, std::int64_t n, bool of_backbone);
};

std::int64_t no_blocks(std::int64_t, std::int64_t, bool) { return 0; }
std::int64_t all_blocks(std::int64_t count, std::int64_t, bool) { return count; }
std::int64_t half_of_blocks(std::int64_t count, std::int64_t, bool) { return (count + 1) / 2; }
std::int64_t first_blocks(std::int64_t count, std::int64_t n, bool) { return std::min(count, n); }
std::int64_t blocks_of_others(std::int64_t count, std::int64_t, bool of_backbone) { return of_backbone ? 0 : count; }
std::int64_t blocks_of_backbone(std::int64_t count, std::int64_t, bool of_backbone) { return of_backbone ? count : 0; }

constexpr std::array<RecomputeRow, 9> recompute_rows{
    {{.name = "none", .setting = Recompute::none, .layers = no_blocks},
     {.name = "selective", .setting = Recompute::selective, .layers = all_blocks},
     {.name = "core-attention", .setting = Recompute::core_attention, .for_plans = false, .layers = all_blocks},
     {.name = "half", .setting = Recompute::half, .layers = half_of_blocks},
     {.name = "full", .setting = Recompute::full, .layers = all_blocks},
     {.name = "offload", .setting = Recompute::offload, .for_plans = false, .layers = no_blocks},
     {.name = "encoders", .setting = Recompute::encoders, .for_plans = false, .layers = blocks_of_others},
     {.name = "backbone", .setting = Recompute::backbone, .for_plans = false, .layers = blocks_of_backbone},
     {.name = "blocks:", .setting = Recompute::blocks(1), .has_number = true, .layers = first_blocks}}};

const RecomputeRow& row_of(Recompute recompute) {
    return *std::find_if(recompute_rows.begin(), recompute_rows.end(),
                         [&](const RecomputeRow& row) { return row.setting.kind == recompute.kind; });
}

std::optional<std::int64_t> number_in(std::string_view text) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc{} || end != text.data() + text.size() || n < 1) return std::nullopt;
    return n;
}

}  // namespace

std::string name_of(Recompute recompute) {
    const RecomputeRow& row = row_of(recompute);
    return row.has_number ? fmt::format("{}{}", row.name, recompute.layers) : std::string(row.name);
}

std::optional<Recompute> recompute_named(std::string_view name) {
    for (const RecomputeRow& row : recompute_rows) {
        if (!row.has_number && row.name == name) return row.setting;
        if (!row.has_number || !name.starts_with(row.name)) continue;
        const auto n = number_in(name.substr(row.name.size()));
        return n ? std::optional(Recompute{row.setting.kind, *n}) : std::nullopt;
    }
    return std::nullopt;
}

std::vector<std::string> recompute_names() {
    std::vector<std::string> names;
    for (const RecomputeRow& row : recompute_rows)
        names.push_back(fmt::format("{}{}", row.name, row.has_number ? "N" : ""));
    return names;
}

bool is_for_plans(Recompute recompute) { return row_of(recompute).for_plans; }

std::int64_t recomputed_layers(std::int64_t count, Recompute recompute, bool of_backbone) {
    return row_of(recompute).layers(count, recompute.layers, of_backbone);
}

std::int64_t recomputed_layers(const workloads::Model& model, const LayerRange& part, Recompute recompute) {
    return recomputed_layers(part.count, recompute, part.module == model.backbone());
}

}  // namespace pipeweaver::emulator
