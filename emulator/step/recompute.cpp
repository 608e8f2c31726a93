#include "pipeweaver/emulator/recompute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace pipeweaver::emulator {

namespace {

std::int64_t no_blocks(std::int64_t, std::int64_t, bool) { return 0; }
std::int64_t all_blocks(std::int64_t count, std::int64_t, bool) { return count; }
std::int64_t half_of_blocks(std::int64_t count, std::int64_t, bool) { return (count + 1) / 2; }
std::int64_t first_blocks(std::int64_t count, std::int64_t n, bool) { return std::min(count, n); }
std::int64_t blocks_of_others(std::int64_t count, std::int64_t, bool of_backbone) { return of_backbone ? 0 : count; }
std::int64_t blocks_of_backbone(std::int64_t count, std::int64_t, bool of_backbone) { return of_backbone ? count : 0; }

}  // namespace

constinit const RecomputeRow RecomputeRow::none{.name = "none", .layers = no_blocks};
constinit const RecomputeRow RecomputeRow::selective{.name = "selective", .repeats_parts = true, .layers = all_blocks};
constinit const RecomputeRow RecomputeRow::second_products{
    .name = "second-products", .for_plans = false, .repeats_parts = true, .layers = all_blocks};
constinit const RecomputeRow RecomputeRow::core_attention{
    .name = "core-attention", .for_plans = false, .repeats_parts = true, .layers = all_blocks};
constinit const RecomputeRow RecomputeRow::half{.name = "half", .layers = half_of_blocks};
constinit const RecomputeRow RecomputeRow::full{.name = "full", .layers = all_blocks};
constinit const RecomputeRow RecomputeRow::offload{.name = "offload", .copies = true, .layers = no_blocks};
constinit const RecomputeRow RecomputeRow::encoders{.name = "encoders", .for_plans = false, .layers = blocks_of_others};
constinit const RecomputeRow RecomputeRow::backbone{
    .name = "backbone", .for_plans = false, .layers = blocks_of_backbone};
constinit const RecomputeRow RecomputeRow::blocks{.name = "blocks:", .has_number = true, .layers = first_blocks};

namespace {

constexpr std::array settings{
    Recompute::none, Recompute::selective, Recompute::second_products, Recompute::core_attention, Recompute::half,
    Recompute::full, Recompute::offload,   Recompute::encoders,        Recompute::backbone,       Recompute::blocks(1)};

std::optional<std::int64_t> number_in(std::string_view text) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc{} || end != text.data() + text.size() || n < 1) return std::nullopt;
    return n;
}

}  // namespace

std::string name_of(Recompute recompute) {
    const RecomputeRow& row = *recompute.row;
    return row.has_number ? fmt::format("{}{}", row.name, recompute.layers) : std::string(row.name);
}

std::optional<Recompute> recompute_named(std::string_view name) {
    for (Recompute setting : settings) {
        const RecomputeRow& row = *setting.row;
        if (!row.has_number && row.name == name) return setting;
        if (!row.has_number || !name.starts_with(row.name)) continue;
        const auto n = number_in(name.substr(row.name.size()));
        if (!n) return std::nullopt;
        setting.layers = *n;
        return setting;
    }
    return std::nullopt;
}

std::vector<std::string> recompute_names() {
    std::vector<std::string> names;
    for (const Recompute& setting : settings)
        names.push_back(fmt::format("{}{}", setting.row->name, setting.row->has_number ? "N" : ""));
    return names;
}

}  // namespace pipeweaver::emulator
