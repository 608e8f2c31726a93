// What is met while weights are built and the first step runs: divisions by tp, microbatches, the interleaved schedule.
#include "launch/rules/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipeweaver::launch {

namespace in_step {

namespace {

using L = MegatronLaunch;

constexpr std::string_view layers = "megatron/core/tensor_parallel/layers.py";
constexpr std::string_view schedules =
    "megatron/core/pipeline_parallel/schedules.py forward_backward_pipelining_with_interleaving";

Why widths(const L& l, std::int64_t) {
    if (*l.ffn % l.tp != 0) return fmt::format("{} columns of the feed-forward, tp {}", *l.ffn, l.tp);
    if (l.experts && *l.expert_ffn % *l.etp != 0)
        return fmt::format("{} columns of an expert, etp {}", *l.expert_ffn, *l.etp);
    if (l.experts && l.shared_ffn && *l.shared_ffn % l.tp != 0)
        return fmt::format("{} columns of the shared experts, tp {}", *l.shared_ffn, l.tp);
    return std::nullopt;
}

Why vocabulary(const L& l, std::int64_t) {
    if (!l.padded_vocab || *l.padded_vocab % l.tp == 0) return std::nullopt;
    return fmt::format("{} entries, tp {}", *l.padded_vocab, l.tp);
}

Why global_batch(const L& l, std::int64_t gpus) {
    if (microbatches_of(l, gpus) > 0) return std::nullopt;
    return fmt::format("{} samples, {} in a microbatch x {} replicas", l.global_batch.value_or(0),
                       l.micro_batch.value_or(1), l.dp(gpus));
}

// Of RampupBatchsizeNumMicroBatchesCalculator, which divides the samples by the number of increments.
Why ramp(const L& l, std::int64_t gpus) {
    if (l.said_ramp.empty()) return std::nullopt;
    if (l.ramp.size() != 3) return fmt::format("{} sizes are said", l.ramp.size());
    const std::int64_t first = l.ramp[0], by = l.ramp[1], last = l.global_batch.value_or(0);
    if (first <= 0 || by <= 0 || first >= last || (last - first) % by != 0)
        return fmt::format("{} grows by {} to {}", first, by, last);
    const std::int64_t together = l.micro_batch.value_or(1) * l.dp(gpus);
    if (together > 0 && !l.rounds_batch && (first % together != 0 || by % together != 0))
        return fmt::format("{} and {} samples, {} in a microbatch x {} replicas", first, by, l.micro_batch.value_or(1),
                           l.dp(gpus));
    if (l.vpp && together > 0 && first / together < *l.group_size)
        return fmt::format("the first batch has {} microbatches, {} of a chunk are in a row", first / together,
                           *l.group_size);
    return std::nullopt;
}

Why group_size(const L& l, std::int64_t gpus) {
    const std::int64_t microbatches = microbatches_of(l, gpus);
    if (!l.vpp || microbatches == 0) return std::nullopt;
    if (*l.group_size >= l.pp && *l.group_size <= microbatches) return std::nullopt;
    return fmt::format("it is {}, between pp {} and {} microbatches", *l.group_size, l.pp, microbatches);
}

Why last_group(const L& l, std::int64_t gpus) {
    const std::int64_t microbatches = microbatches_of(l, gpus);
    if (!l.vpp || microbatches == 0 || group_size(l, gpus)) return std::nullopt;
    const std::int64_t rest = microbatches % *l.group_size;
    if (rest == 0 || rest >= l.pp) return std::nullopt;
    return fmt::format("{} microbatches in groups of {} leave {}, pp is {}", microbatches, *l.group_size, rest, l.pp);
}

Why one_p2p(const L& l, std::int64_t) {
    if (!l.vpp || !l.overlap_p2p || !l.batch_p2p) return std::nullopt;
    return "both are said";
}

Why sequence(const L& l, std::int64_t) {
    if (!l.sequence_parallel || *l.seq_length / l.cp % l.tp == 0) return std::nullopt;
    return fmt::format("{} tokens of a rank, tp {}", *l.seq_length / l.cp, l.tp);
}

Why context(const L& l, std::int64_t) {
    if (l.cp == 1 || *l.seq_length % (2 * l.cp) == 0) return std::nullopt;
    return fmt::format("{} tokens, 2 x {}", *l.seq_length, l.cp);
}

// Key and value heads of a rank; fewer groups than tp are copied.
Why exchanged_heads(const L& l, std::int64_t) {
    const bool exchanged = std::find(l.cp_comm.begin(), l.cp_comm.end(), "a2a") != l.cp_comm.end();
    if (l.cp == 1 || !exchanged) return std::nullopt;
    const std::int64_t groups = l.latent_attention ? *l.heads : *l.groups;
    const std::int64_t query = *l.heads / l.tp, key = std::max<std::int64_t>(1, groups / l.tp);
    if (query % l.cp == 0 && key % l.cp == 0) return std::nullopt;
    return fmt::format("{} heads and {} query groups of a tensor parallel rank, cp {}", query, key, l.cp);
}

Why experts_by_sequence(const L& l, std::int64_t) {
    if (!l.experts || l.tp == 1 || l.sequence_parallel) return std::nullopt;
    return fmt::format("tp is {}", l.tp);
}

}  // namespace

}  // namespace in_step

std::span<const MegatronRule> step_rules() {
    using namespace in_step;
    static const std::array rules{
        MegatronRule{"widths-by-tp",
                     "the feed-forward's columns are a multiple of tp, an expert's of etp, the shared experts' of tp",
                     layers, Phase::build, widths},
        MegatronRule{"vocabulary-by-tp", "the padded vocabulary is a multiple of tp", layers, Phase::build, vocabulary},
        MegatronRule{"context-parts", "the sequence is a multiple of 2 x cp",
                     "megatron/core/utils.py get_batch_on_this_cp_rank", Phase::step, context},
        MegatronRule{"global-batch", "the global batch is a multiple of the microbatch x the replicas",
                     "megatron/core/num_microbatches_calculator.py", Phase::step, global_batch},
        MegatronRule{"ramp",
                     "--rampup-batch-size has a first batch below the global one, what is added until it is reached, "
                     "and samples; both are multiples of the microbatch x the replicas, and fill a group of chunks",
                     "megatron/core/num_microbatches_calculator.py", Phase::step, ramp},
        MegatronRule{"group-size", "microbatches in a row of one chunk are at least pp and at most all of a replica's",
                     schedules, Phase::step, group_size},
        MegatronRule{"last-group", "the last group of microbatches is full or has at least pp", schedules, Phase::step,
                     last_group},
        MegatronRule{"one-p2p", "P2P traffic of chunks is overlapped or batched, not both", schedules, Phase::step,
                     one_p2p},
        MegatronRule{"sequence-by-tp",
                     "with sequence parallelism a context parallel rank's tokens are a multiple of tp",
                     "megatron/core/tensor_parallel/mappings.py", Phase::step, sequence},
        MegatronRule{
            "exchanged-heads",
            "with --cp-comm-type a2a the heads and query groups of a tensor parallel rank are a multiple of cp",
            "transformer_engine/pytorch context_parallel.py", Phase::step, exchanged_heads},
        MegatronRule{"experts-sequence", "experts with tensor parallelism take sequence parallelism",
                     "megatron/core/transformer/moe/moe_layer.py", Phase::step, experts_by_sequence},
    };
    return rules;
}

}  // namespace pipeweaver::launch
