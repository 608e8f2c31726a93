// What a token of decoding costs on a device at the roofline, attention and feed-forward apart, and how many GPUs a
// split of the two takes for a latency.
//
// Source       Step-3, arXiv 2507.19427, sections 2 and 4: its tables 2, 3, 6 and 7 are what this prints.
// Work         of one token with c tokens in front of it, all layers together. Keys and values in one byte each, as in
//              fp8: 2 kd c of dense attention, (c + e) c of latent attention (c + e its compressed key and value and
//              its rotary part), 2 d c of factored attention with its one head. Scores and their use: 4 a d c FLOPs;
//              latent attention with its keys absorbed 4 a (c + e) c. Windows hold at most their size. Linear attention
//              reads and writes its state in fp32 instead. Its projections are FLOPs of attention; embedding, output
//              head and routers are left out.
// Time         products at the dense fp8 peak where the device has one, else at the bf16 peak; keys and values at the
//              memory bandwidth, beside the scores' FLOPs; the projections and the feed-forward in batches so large
//              that their weights cost nothing.
// Split        attention on some nodes, the feed-forward on others, three microbatches at once: attention, the network
//              and the feed-forward take a third of a token's time each.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>

namespace pipeweaver::capacity {

/// Of a token, all layers together.
struct TokenWork {
    double cache_bytes = 0;      ///< of keys and values, and of states, that it reads
    double attention_flops = 0;  ///< with them
    double linear_flops = 0;     ///< of attention's projections
    double ffn_flops = 0;
    double ffn_weights = 0;  ///< parameters of all feed-forwards, all experts counted

    /// FLOPs of attention for each byte that it reads.
    double intensity() const { return attention_flops / cache_bytes; }
};

/// Of a language model behind `context` tokens. Pre: context > 0.
[[nodiscard]] TokenWork token_work(const workloads::Architecture& network, std::int64_t context);

/// Seconds of one GPU for a token.
struct TokenTime {
    double attention = 0, ffn = 0;
};
[[nodiscard]] TokenTime token_time(const TokenWork& work, const workloads::Device& device);

/// Products a second that the roofline counts with: of fp8 where the device has it.
[[nodiscard]] double peak_flops(const workloads::Device& device);

/// USD for a million tokens. Pre: the seconds are of one GPU.
[[nodiscard]] double usd_per_million(double seconds, double price_per_gpu_hour);

/// The least share of a network's experts that a token may be sent to, if nodes of the cluster run them: fewer, and
/// the tokens that keep their GPUs busy do not fit through the node's network in `ffn_seconds` for all `layers`.
[[nodiscard]] double least_sparsity(std::int64_t hidden, std::int64_t layers, double ffn_seconds,
                                    const workloads::Cluster& cluster);

/// Attention and feed-forward on nodes of their own.
struct SplitInstances {
    std::int64_t attention_nodes = 0, ffn_nodes = 0;  ///< of one instance of the whole
    double tokens = 0;                                ///< of a microbatch
    double tokens_per_second_per_gpu = 0;
    std::optional<double> usd_per_million;  ///< none: a cluster has no price
    /// What limits the microbatch, or the nodes.
    enum class Limit : std::uint8_t { products, weights, network, cache } limit = Limit::products;
};
[[nodiscard]] std::string_view name_of(SplitInstances::Limit limit);

/// The smallest instance of a language model that gives every token in `token_seconds`. Throws Error{limit} where no
/// number of nodes does: the feed-forward's weights alone take longer to read on 1,024 nodes, or a token's attention
/// on one GPU.
[[nodiscard]] SplitInstances split_instances(const workloads::Architecture& network, const TokenWork& work,
                                             double token_seconds, const workloads::Cluster& attention,
                                             const workloads::Cluster& ffn);

}  // namespace pipeweaver::capacity
