// Of MegatronMIMO's grids: models/megatron_mimo/megatron_mimo_config.py of Megatron-Bridge 067f987d, and its launcher.
#include "launch/read/grids.hpp"
#include "launch/rules/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace pipeweaver::launch {

namespace {

constexpr const char* of_configuration = "models/megatron_mimo/megatron_mimo_config.py";
constexpr const char* of_launcher = "examples/megatron_mimo/qwen35_vl/slurm_sft.sh";

std::array<const Grid*, 2> grids_in(const GridsLaunch& l) { return {&l.language, &l.images}; }

std::array<const Grid*, 2> by_offset(const GridsLaunch& l) {
    auto grids = grids_in(l);
    if (grids[1]->offset < grids[0]->offset) std::swap(grids[0], grids[1]);
    return grids;
}

Why other_size(const GridsLaunch& l, std::int64_t) {
    for (const Grid* const one : grids_in(l))
        if (one->size && *one->size != one->gpus())
            return fmt::format("MIMO_{}_SIZE is {}, but tp {} x pp {} x cp {} x dp {} are {}; allowed is {}", one->name,
                               *one->size, one->tp, one->pp, one->cp, one->dp, one->gpus(), one->gpus());
    return std::nullopt;
}

Why ranks_overlap(const GridsLaunch& l, std::int64_t) {
    const auto [first, second] = by_offset(l);
    if (second->offset >= first->end()) return std::nullopt;
    return fmt::format("MIMO_{}_OFFSET is {}, among ranks {} to {} of {}; allowed is {}", second->name, second->offset,
                       first->offset, first->end() - 1, first->name, first->end());
}

Why ranks_apart(const GridsLaunch& l, std::int64_t) {
    const auto [first, second] = by_offset(l);
    if (first->offset > 0)
        return fmt::format("MIMO_{}_OFFSET is {}, no module has the ranks before; allowed is 0", first->name,
                           first->offset);
    if (second->offset <= first->end()) return std::nullopt;
    return fmt::format(
        "MIMO_{}_OFFSET is {}, but tp {} x pp {} x cp {} x dp {} of {} are {} ranks from {} on; allowed is {}",
        second->name, second->offset, first->tp, first->pp, first->cp, first->dp, first->name, first->gpus(),
        first->offset, first->end());
}

Why too_many(const GridsLaunch& l, std::int64_t gpus) {
    const std::int64_t end = std::max(l.language.end(), l.images.end());
    if (end <= gpus) return std::nullopt;
    return fmt::format("the grids have {} ranks, the cluster has {} GPUs", end, gpus);
}

Why no_power(const GridsLaunch& l, std::int64_t) {
    for (const Grid* const one : grids_in(l))
        if (!std::has_single_bit(static_cast<std::uint64_t>(one->tp)))
            return fmt::format("MIMO_{}_TP is {}; allowed are 1, 2, 4, 8 and so on", one->name, one->tp);
    return std::nullopt;
}

Why no_divisor(const GridsLaunch& l, std::int64_t) {
    if (l.language.dp % l.images.dp == 0 || l.images.dp % l.language.dp == 0) return std::nullopt;
    return fmt::format("MIMO_LANGUAGE_DP is {} and MIMO_IMAGES_DP {}; allowed are a divisor and its multiple",
                       l.language.dp, l.images.dp);
}

Why parts_of_samples(const GridsLaunch& l, std::int64_t) {
    for (const Grid* const one : grids_in(l))
        if (l.micro_batch && *l.micro_batch % one->dp != 0)
            return fmt::format("MICRO_BATCH_SIZE is {}, MIMO_{}_DP {}; allowed are multiples of {}", *l.micro_batch,
                               one->name, one->dp, std::lcm(l.language.dp, l.images.dp));
    return std::nullopt;
}

Why parts_of_batch(const GridsLaunch& l, std::int64_t) {
    if (!l.global_batch || !l.micro_batch || *l.global_batch % *l.micro_batch == 0) return std::nullopt;
    return fmt::format("GLOBAL_BATCH_SIZE is {}, MICRO_BATCH_SIZE {}", *l.global_batch, *l.micro_batch);
}

Why stages_of_images(const GridsLaunch& l, std::int64_t) {
    if (l.images.pp == 1) return std::nullopt;
    return fmt::format("MIMO_IMAGES_PP is {}; allowed is 1", l.images.pp);
}

Why other_layers(const GridsLaunch& l, std::int64_t) {
    if (l.layers == 0) return std::nullopt;
    const auto& said = l.language.layers;
    if (const auto all = std::accumulate(said.begin(), said.end(), std::int64_t{0}); !said.empty() && all != l.layers)
        return fmt::format("PIPEWEAVER_LANGUAGE_LAYERS are {}, the language model has {}", all, l.layers);
    if (!said.empty() || l.layers % l.language.pp == 0) return std::nullopt;
    return fmt::format("MIMO_LANGUAGE_PP is {}, the language model has {} layers; allowed are divisors of {}",
                       l.language.pp, l.layers, l.layers);
}

constexpr std::array<RuleOf<GridsLaunch>, 10> grid_table{{
    {"grids-micro-batch", "a microbatch of all replicas has as many samples for each replica of a module", of_launcher,
     Phase::arguments, parts_of_samples},
    {"grids-global-batch", "the global batch is a multiple of the microbatch of all replicas", of_launcher,
     Phase::arguments, parts_of_batch},
    {"grids-size", "degrees of a module make up its GPUs", of_launcher, Phase::groups, other_size},
    {"grids-overlap", "ranks of modules do not overlap", of_configuration, Phase::groups, ranks_overlap},
    {"grids-tile", "ranks of modules follow each other from 0 on", of_configuration, Phase::groups, ranks_apart},
    {"grids-tp", "tensor parallel GPUs of a module are a power of two", of_configuration, Phase::groups, no_power},
    {"grids-dp", "replicas of one module divide those of the other, between which a bridge hands samples over",
     of_configuration, Phase::groups, no_divisor},
    {"grids-gpus", "every rank has a GPU", of_launcher, Phase::groups, too_many},
    {"grids-images-pp", "the encoder of images has one stage", "models/qwen_vl/modelling_qwen3_vl/vision_model.py",
     Phase::build, stages_of_images},
    {"grids-layers", "stages of the language model have as many layers each",
     "3rdparty/Megatron-LM/megatron/core/transformer/transformer_config.py", Phase::build, other_layers},
}};

}  // namespace

std::span<const RuleOf<GridsLaunch>> grid_rules() { return grid_table; }

}  // namespace pipeweaver::launch
