#include "pipeweaver/capacity/roofline.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::capacity {

using workloads::Architecture;
using workloads::AttentionKind;
using workloads::Cluster;
using workloads::Device;

namespace {

double real(std::int64_t number) { return static_cast<double>(number); }

// Matrices of the feed-forward of a block.
struct FeedForward {
    double active = 0;  // that a token passes
    double all = 0;     // with every expert
};

FeedForward feed_forward_of(const Architecture& network, std::int64_t layer) {
    const auto parts = workloads::block_parts(network, layer);
    const double column = (network.gated ? 3. : 2.) * real(network.hidden);
    if (parts.experts) {
        const auto& moe = *network.moe;
        const double of_expert = (network.gated ? 3. : 2.) * real(workloads::expert_width(network) * moe.expert_ffn);
        const double shared = column * real(moe.shared_ffn);
        return {real(moe.top_k) * of_expert + shared, real(moe.experts) * of_expert + shared};
    }
    if (!parts.dense) return {};
    return {column * real(network.ffn), column * real(network.ffn)};
}

double router_of(const Architecture& network, std::int64_t layer) {
    if (!workloads::block_parts(network, layer).experts) return 0;
    return real(network.hidden * network.moe->experts);
}

// Bytes that a token leaves in the cache of a block with attention, and heads x columns that read it.
struct Cache {
    double bytes = 0;
    double columns = 0;
};

Cache cache_of(const Architecture& network) {
    const auto& attention = network.attention;
    if (attention.kind == AttentionKind::latent) {
        const double compressed = real(attention.kv_lora_rank + attention.qk_rope_head_dim);
        return {compressed, real(network.heads) * compressed};
    }
    const std::int64_t heads = attention.kind == AttentionKind::factored ? 1 : network.kv_heads;
    return {2 * real(heads * network.head_dim), real(network.heads * network.head_dim)};
}

std::int64_t seen(const Architecture& network, std::int64_t layer, std::int64_t context) {
    const bool windowed = workloads::block_kind(network, layer) == workloads::BlockKind::windowed;
    return windowed ? std::min(context, network.attention.window) : context;
}

// Read and written, in fp32.
double state_bytes(const workloads::LinearAttention& linear) {
    return 8. * real(linear.value_heads * linear.key_dim * linear.value_dim);
}

void add_layer(TokenWork& work, const Architecture& network, std::int64_t layer, std::int64_t context) {
    const auto parts = workloads::block_parts(network, layer);
    const FeedForward feed_forward = feed_forward_of(network, layer);
    const double matrices = real(workloads::active_layer_parameters(network, layer));
    work.ffn_flops += 2 * feed_forward.active;
    work.ffn_weights += feed_forward.all;
    work.linear_flops += 2 * (matrices - feed_forward.active - router_of(network, layer));
    if (parts.linear) {
        work.cache_bytes += state_bytes(*network.linear);
        work.attention_flops += workloads::linear_rule_flops(*network.linear, 1);
    }
    if (parts.attention) {
        const Cache cache = cache_of(network);
        const auto tokens = real(seen(network, layer, context));
        work.cache_bytes += cache.bytes * tokens;
        work.attention_flops += 4 * cache.columns * tokens;
    }
}

}  // namespace

TokenWork token_work(const Architecture& network, std::int64_t context) {
    PIPEWEAVER_ASSERT(context > 0);
    TokenWork work;
    for (std::int64_t layer = 0; layer < network.layers; ++layer) add_layer(work, network, layer, context);
    return work;
}

double peak_flops(const Device& device) { return device.fp8_flops > 0 ? device.fp8_flops : device.bf16_flops; }

TokenTime token_time(const TokenWork& work, const Device& device) {
    const double read = work.cache_bytes / real(device.memory_bandwidth.bytes_per_second);
    const double peak = peak_flops(device);
    return {std::max(read, work.attention_flops / peak) + work.linear_flops / peak, work.ffn_flops / peak};
}

double usd_per_million(double seconds, double price_per_gpu_hour) { return 1e6 * seconds * price_per_gpu_hour / 3600; }

namespace {

// Tokens for which a weight is read once as fast as it is used: a weight is a byte where products are in fp8, else two.
double tokens_that_fill(const Device& device) {
    const double bytes = device.fp8_flops > 0 ? 1 : 2;
    return peak_flops(device) * bytes / (2 * real(device.memory_bandwidth.bytes_per_second));
}

// Two bytes a value, there or back, whichever is more.
double sent_bytes(std::int64_t hidden, std::int64_t layers) { return 2 * real(hidden * layers); }

}  // namespace

double least_sparsity(std::int64_t hidden, std::int64_t layers, double ffn_seconds, const Cluster& cluster) {
    const double of_a_token = sent_bytes(hidden, layers);
    const double tokens = ffn_seconds * real(cluster.network.bytes_per_second) / of_a_token;
    return tokens_that_fill(workloads::device(cluster.device)) / tokens;
}

std::string_view name_of(SplitInstances::Limit limit) {
    constexpr std::array<std::string_view, 4> names{"products", "weights", "network", "cache"};
    return names[static_cast<std::size_t>(limit)];
}

namespace {

// Seconds of `share` for the feed-forward on a number of nodes.
struct FeedForwardNodes {
    const TokenWork& work;
    const Cluster& cluster;
    const Device& device = workloads::device(cluster.device);

    double gpus(std::int64_t nodes) const { return real(nodes * cluster.gpus_per_node); }

    double weights_bytes() const { return work.ffn_weights * (device.fp8_flops > 0 ? 1 : 2); }

    double reading(std::int64_t nodes) const {
        return weights_bytes() / (gpus(nodes) * real(device.memory_bandwidth.bytes_per_second));
    }

    bool holds(std::int64_t nodes) const {
        constexpr double room = 0.92;
        return weights_bytes() <= room * gpus(nodes) * real(device.memory.count);
    }

    double tokens(std::int64_t nodes, double share) const {
        return share * gpus(nodes) * peak_flops(device) / work.ffn_flops;
    }
};

constexpr std::int64_t most_nodes = 1024;

std::int64_t least_nodes(const FeedForwardNodes& of, double share) {
    for (std::int64_t nodes = 1; nodes <= most_nodes; ++nodes)
        if (of.holds(nodes) && of.reading(nodes) <= share) return nodes;
    fail(ErrorKind::limit,
         "the feed-forward's weights are read in {:.1f} ms on {} nodes of {}, a third of a token's time is {:.1f} ms: "
         "allowed are longer times, or devices with faster memory",
         1e3 * of.reading(most_nodes), most_nodes, of.cluster.name, 1e3 * share);
}

}  // namespace

SplitInstances split_instances(const Architecture& network, const TokenWork& work, double token_seconds,
                               const Cluster& attention, const Cluster& ffn) {
    const double share = token_seconds / 3;
    const FeedForwardNodes of{work, ffn};
    SplitInstances found;
    found.ffn_nodes = least_nodes(of, share);
    found.tokens = of.tokens(found.ffn_nodes, share);
    if (found.ffn_nodes > 1) found.limit = SplitInstances::Limit::weights;
    const double of_a_token = sent_bytes(network.hidden, network.layers);
    const double through = share * real(found.ffn_nodes) * real(ffn.network.bytes_per_second) / of_a_token;
    if (through < found.tokens) {
        found.tokens = through;
        found.limit = SplitInstances::Limit::network;
    }
    const Device& device = workloads::device(attention.device);
    const double of_attention = token_time(work, device).attention;
    if (of_attention > share)
        fail(ErrorKind::limit,
             "a token's attention takes {:.1f} ms on a {}, a third of a token's time is {:.1f} ms: allowed are longer "
             "times, or shorter contexts",
             1e3 * of_attention, device.name, 1e3 * share);
    constexpr double room = 0.92;
    const double in_time = share / of_attention;
    const double weights = work.linear_flops / 2 * (device.fp8_flops > 0 ? 1 : 2);  // of the projections, on every GPU
    const double left = room * real(device.memory.count) - weights;
    const double in_memory = std::max(0., std::floor(left / work.cache_bytes));
    const double on_a_node = real(attention.gpus_per_node) * std::min(in_time, in_memory);
    if (on_a_node < 1)
        fail(ErrorKind::limit, "the keys and values of a token's context do not fit a {}: allowed are shorter contexts",
             device.name);
    if (in_memory < in_time) found.limit = SplitInstances::Limit::cache;
    found.attention_nodes = static_cast<std::int64_t>(std::ceil(found.tokens / on_a_node));
    const double attention_gpus = real(found.attention_nodes * attention.gpus_per_node),
                 ffn_gpus = of.gpus(found.ffn_nodes);
    const double tokens_per_second = found.tokens / share;
    found.tokens_per_second_per_gpu = tokens_per_second / (attention_gpus + ffn_gpus);
    if (attention.price_per_gpu_hour > 0 && ffn.price_per_gpu_hour > 0)
        found.usd_per_million = 1e6 / tokens_per_second / 3600 *
                                (attention_gpus * attention.price_per_gpu_hour + ffn_gpus * ffn.price_per_gpu_hour);
    return found;
}

}  // namespace pipeweaver::capacity
