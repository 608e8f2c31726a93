// Attention and feed-forward of a language model on nodes of their own while it decodes: their pipeline, replayed.
//
// Pipeline     some microbatches go round: in each layer through attention, the network, the feed-forward, and the
//              network back, each of which has one at a time, in the order in which they come (Step-3, arXiv
//              2507.19427, section 5).
// Times        attention of all tokens in front, with keys, values and products in fp8 or bf16, and its projections or
//              reading their weights, which the GPUs of a node share, over the share of this roofline that is reached;
//              the feed-forward's products at the share of their peak, or
//              reading all its weights where that takes longer. A token goes to the feed-forward in a byte a value, and
//              comes back in two, through the networks of whichever nodes are fewer.
// Units        Duration is integer nanoseconds.
// Determinism  functions of their arguments.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>

namespace pipeweaver::capacity {

/// What a microbatch takes in a layer.
struct AfdTimes {
    Duration attention{}, there{}, ffn{}, back{};
};

/// From a token to the next of each microbatch, in the steady state of the replay. Pre: layers and microbatches are
/// above 0.
[[nodiscard]] Duration replayed_token(const AfdTimes& times, std::int64_t layers, std::int64_t microbatches);

/// What attention's layer reaches of its roofline in the report, and what suits the feed-forward of its deployments,
/// of the peak of products (tests/capacity/afd_test.cpp).
constexpr double usual_attention_share = 0.65, usual_ffn_share = 0.22;

struct AfdQuestion {
    const workloads::Architecture& network;
    const workloads::Cluster& cluster;  ///< of all nodes
    std::int64_t context = 1;           ///< tokens in front
    bool bf16_attention = false;        ///< keys, values and products; else fp8, where the device has it
    double attention_share = usual_attention_share, ffn_share = usual_ffn_share;
    std::int64_t microbatches = 3;
    std::int64_t most_nodes = 16;  ///< of each, that are tried
};

/// Nodes, and the tokens of a microbatch.
struct AfdShape {
    std::int64_t attention_nodes = 0, ffn_nodes = 0, tokens = 0;

    friend bool operator==(const AfdShape&, const AfdShape&) = default;
};

[[nodiscard]] AfdTimes afd_times(const AfdQuestion& question, const AfdShape& shape);

/// Of a shape that decodes; all tokens of all microbatches.
struct AfdAnswer {
    AfdShape shape;
    Duration token{};
    double tokens_per_second_per_gpu = 0;
    std::optional<double> usd_per_million;  ///< none: the cluster has no price
};

/// The most tokens that these nodes give each in `latency`. None: they do not hold the weights, or keys and values of a
/// token of each microbatch, or these take longer.
[[nodiscard]] std::optional<AfdAnswer> afd_on(const AfdQuestion& question, Duration latency,
                                              std::int64_t attention_nodes, std::int64_t ffn_nodes);

/// The nodes with most tokens a second and GPU; of equal ones the fewest. None: no nodes of those that are tried do.
[[nodiscard]] std::optional<AfdAnswer> best_afd(const AfdQuestion& question, Duration latency);

}  // namespace pipeweaver::capacity
