// MegatronMIMO's grids: of modules on the same GPUs, and on GPUs of their own.
//
// Source       Megatron-Bridge 067f987d: models/megatron_mimo/megatron_mimo_config.py (ranges that tile the ranks,
//              powers of two, replicas that divide each other), examples/megatron_mimo/qwen35_vl (names of variables,
//              one microbatch for all replicas); models/qwen_vl/modelling_qwen3_vl/vision_model.py: no stages.
#include "pipeweaver/emulator/recompute.hpp"
#include "pipeweaver/launch/megatron_words.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::launch {

namespace {

using groups::Placed;

bool takes_images(const Placed& placed, const workloads::Model& model) {
    if (placed.modules.size() != 1 || placed.modules.front() >= model.backbone()) return false;
    const auto& all = model.modules[placed.modules.front()].modalities;
    return std::find(all.begin(), all.end(), workloads::Modality::image) != all.end();
}

// The two groups that there are grids for.
struct Grids {
    const Placed* language = nullptr;
    const Placed* images = nullptr;
};

Grids grids_of(const groups::Placing& placing, const workloads::Model& model) {
    Grids grids;
    for (const Placed& one : placing.groups) {
        if (one.modules == std::vector{model.backbone()}) grids.language = &one;
        if (takes_images(one, model)) grids.images = &one;
    }
    return grids;
}

// The launcher's schedule is 1F1B over the stages of both (Megatron-LM, schedules.py: as many forwards first as there
// are stages behind), whatever memory there is.
std::string why_not_as_far(const Placed& placed, std::int64_t stages_after, std::int64_t rounds) {
    const auto stages = static_cast<std::int64_t>(placed.ahead.size());
    for (std::int64_t s = 0; s < stages; ++s) {
        const std::int64_t ahead = placed.ahead[static_cast<std::size_t>(s)];
        const std::int64_t launched = std::min(rounds, stages - s + stages_after);
        if (ahead < launched)
            return fmt::format("{} has room for {} rounds ahead on stage {}, and the launcher runs {}", placed.name,
                               ahead, s, launched);
    }
    return {};
}

std::string why_no_grids(const Grids& grids, std::int64_t rounds) {
    const Placed &language = *grids.language, &images = *grids.images;
    if (images.pp > 1) return fmt::format("{} has {} stages; the encoder of images has one", images.name, images.pp);
    for (const Placed* const one : {&language, &images})
        if (!std::has_single_bit(static_cast<std::uint64_t>(one->tp)))
            return fmt::format("{} has tp {}, which is no power of two", one->name, one->tp);
    if (language.dp % images.dp != 0)
        return fmt::format(
            "{} has {} replicas, which do not divide the {} of {}: each has whole samples of a "
            "microbatch",
            images.name, images.dp, language.dp, language.name);
    for (const Placed* const one : {&language, &images})
        if (one->zero != 1)
            return fmt::format("{} has ZeRO {}; grids share out the optimizer's state", one->name, one->zero);
    if (auto why = why_not_as_far(images, language.pp, rounds); !why.empty()) return why;
    return why_not_as_far(language, 0, rounds);
}

Degrees degrees_of(const Placed& placed) {
    return {.tp = placed.tp, .cp = placed.cp, .pp = placed.pp, .dp = placed.dp};
}

void add_grid(std::vector<Flag>& flags, const std::string& name, const Degrees& degrees, std::int64_t offset) {
    const std::array<std::pair<const char*, std::int64_t>, 5> numbers{
        {{"TP", degrees.tp}, {"PP", degrees.pp}, {"CP", degrees.cp}, {"DP", degrees.dp}, {"OFFSET", offset}}};
    for (const auto& [of, number] : numbers)
        flags.push_back({fmt::format("MIMO_{}_{}", name, of), std::to_string(number)});
}

}  // namespace

Spelled spell_mimo(const Launch& launch) {
    const Degrees& of = launch.degrees;
    if (launch.dealt.empty())
        return {{}, "encoders run on the language model's GPUs, in its layout; grids are for modules with their own"};
    if (launch.dealt.size() > 1)
        return {{}, fmt::format("{} are dealt; there is one grid of images", fmt::join(launch.dealt, ", "))};
    if (of.pp > 1)
        return {{},
                fmt::format("{} is dealt over all GPUs beside a pipeline of {} ranks; grids on the same GPUs need "
                            "one pipeline rank",
                            launch.dealt.front(), of.pp)};
    Spelled said;
    add_grid(said.flags, "LANGUAGE", of, 0);
    add_grid(said.flags, "IMAGES", {.dp = of.gpus()}, 0);
    return said;
}

Spelled spell_mimo(const groups::Placing& placing, const workloads::Model& model) {
    const Grids grids = grids_of(placing, model);
    if (placing.groups.size() != 2 || grids.language == nullptr || grids.images == nullptr)
        return {{}, "grids are for two groups, the language model's and that of an encoder of images"};
    Spelled said{{}, why_no_grids(grids, placing.rounds)};
    if (!said.says()) return said;
    add_grid(said.flags, "LANGUAGE", degrees_of(*grids.language), 0);
    add_grid(said.flags, "IMAGES", degrees_of(*grids.images), grids.language->gpus());
    said.flags.push_back({"MICRO_BATCH_SIZE", std::to_string(grids.language->dp)});
    return said;
}

std::vector<Flag> spell_beside_mimo(const groups::Placing& placing, const workloads::Model& model) {
    const Grids grids = grids_of(placing, model);
    std::vector<Flag> flags;
    for (const auto& [name, placed] : {std::pair{"LANGUAGE", grids.language}, {"IMAGES", grids.images}}) {
        if (placed->recompute != emulator::Recompute::none)
            flags.push_back({fmt::format("PIPEWEAVER_{}_RECOMPUTE", name), emulator::name_of(placed->recompute)});
        const auto layers = placed->layers();
        if (std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) != layers.end())
            flags.push_back({fmt::format("PIPEWEAVER_{}_LAYERS", name), fmt::format("{}", fmt::join(layers, ","))});
    }
    return flags;
}

}  // namespace pipeweaver::launch
