// What a GPU holds beside what the emulation counts.
#include "launch/fit/run_parts.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace pipeweaver::launch {

using frameworks::Effect;

namespace {

// Of a pattern's letters those with full attention.
std::int64_t layers_with_attention(const workloads::Architecture& a) {
    if (a.layer_pattern.empty()) return a.layers;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.layers); ++i)
        if (std::string_view("FP*").find(a.layer_pattern[i % a.layer_pattern.size()]) != std::string_view::npos)
            ++count;
    return count;
}

}  // namespace

Bytes scores_of(const workloads::Architecture& a, const Scored& of) {
    constexpr std::int64_t kept = 6, at_work = 10, key_and_value = 4;
    const std::int64_t layers = std::min(of.layers, layers_with_attention(a));
    const std::int64_t repeated = a.kv_heads > 0 ? a.heads - a.kv_heads : 0;
    return Bytes{a.heads / of.ranks * of.tokens * of.length * (kept * layers + at_work) +
                 repeated / of.ranks * a.head_dim * of.tokens * key_and_value * layers};
}

void say_copies(std::int64_t ep, Run& run) {
    if (run.besides.copies == 1 || ep == 1) return;
    run.assumed.push_back(
        fmt::format("{} groups hold all shards, and experts are shared out in each: memory of a group is that of one "
                    "that has all GPUs, times as many, which is near alone",
                    run.besides.copies));
}

namespace {

// What vLLM held while it slept, CUDA's context, kernels' workspaces and captured graphs: the most that was seen on one
// GPU and on several together (NVIDIA-NeMo/RL#223; vllm-project/vllm#17117 freed all but 0.3 GiB of a share).
Bytes held_asleep(const Engine& engine) {
    constexpr std::int64_t mebibyte = 1 << 20, on_one = 774, on_several = 7392;
    return {(engine.tp > 1 ? on_several : on_one) * mebibyte};
}

}  // namespace

void put_engine(const Engine& engine, const FitAsked& asked, Run& run) {
    const auto memory = workloads::device(workloads::find_cluster(asked.cluster).device).memory.count;
    const double share = parse_number(engine.says, engine.share, 0, 1);
    const bool sleeps = engine.sleep > 0;
    run.besides.engine = Bytes{static_cast<std::int64_t>(std::ceil(share * static_cast<double>(memory)))};
    run.besides.engine_sleeps = sleeps;
    if (sleeps) run.besides.asleep = held_asleep(engine);
    run.doubts.push_back(
        {Effect::less, "vLLM's share, in which it may count what the trainer holds", engine.says, true});
    const std::string then =
        sleeps ? fmt::format(" while it generates, and {} while the model trains", human(run.besides.asleep)) : "";
    run.assumed.push_back(fmt::format("vLLM takes {} of a GPU{}", engine.share, then));
}

namespace {

void add_update(const Besides& besides, Bytes beside, RankUse& rank) {
    if (besides.update == 0) return;
    Bytes update{rank.optimizer.count / besides.state * besides.update};
    if (besides.most_update > Bytes{}) update = std::min(update, besides.most_update);
    const Bytes at_update = rank.weights + rank.gradients + rank.optimizer + beside + update;
    if (at_update <= rank.peak) return;
    rank.transient += at_update - rank.peak;
    rank.peak = at_update;
}

// While answers are generated there may be no gradients, and what the trainer frees is on the host.
void add_engine(const Besides& besides, RankUse& rank) {
    if (besides.engine == Bytes{}) return;
    rank.buffers += besides.asleep;
    rank.peak += besides.asleep;
    Bytes held = besides.engine;
    if (!besides.frees_weights) held += rank.weights - (besides.frees_reference ? besides.reference : Bytes{});
    if (!besides.frees_states)
        held += rank.optimizer;
    else if (besides.masters > 0)
        held += Bytes{rank.optimizer.count / besides.state * besides.masters};
    if (besides.keeps_gradients) held += rank.gradients;
    if (!besides.engine_sleeps) held = std::max(held, rank.peak + besides.engine);
    if (held <= rank.peak) return;
    rank.buffers += held - rank.peak;
    rank.peak = held;
}

}  // namespace

void add_besides(const Besides& besides, RankUse& rank) {
    const auto more = [&](Bytes& part, int from_stage) {
        if (besides.zero < from_stage) return;
        const Bytes added{part.count * (besides.copies - 1)};
        part += added;
        rank.peak += added;
    };
    more(rank.optimizer, 1);
    more(rank.gradients, 2);
    more(rank.weights, 3);
    // Experts are shared out among fewer than the rest, so each GPU's shards are as the emulation has them.
    const Bytes shards{rank.apart.count * (besides.copies - 1)};
    for (Bytes* part : {&rank.apart, &rank.weights, &rank.peak}) *part += shards;
    const Bytes beside = besides.buckets + std::min(besides.gathered, Bytes{rank.weights.count * besides.shards});
    rank.buffers += beside;
    rank.peak += beside;
    const Bytes again{rank.transient.count * (besides.together - 1)};
    rank.transient += again;
    rank.peak += again;
    rank.activations += besides.scores;
    rank.peak += besides.scores;
    const Bytes reference = besides.refers ? rank.weights : besides.reference;
    rank.weights += reference;
    rank.peak += reference;
    add_update(besides, beside, rank);
    add_engine(besides, rank);
}

}  // namespace pipeweaver::launch
