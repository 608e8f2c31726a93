#include "emulator/operators/expert_operators.hpp"

#include "pipeweaver/emulator/product_format.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::emulator {

namespace {

// Copies for the chosen experts and their sorting after the exchange, each read and written: four passes over the
// copies. As many after the experts. GPUs that an expert is split over sort what all of them received.
void move_copies(OperatorBuilder& layer, std::string_view name, std::int64_t copies, std::int64_t hidden) {
    constexpr std::int64_t passes = 2;  // each time
    const std::int64_t moved = copies + copies * layer.execution().experts.tensor_parallel;
    layer.elementwise(name, costdb::ElementwiseKind::other, passes * bf16_width * moved * hidden, 1,
                      {.rows = moved / 2, .columns = hidden});
}

// Of all that reached this GPU as one product, whosever pair it is.
void adapt_experts(OperatorBuilder& layer, const workloads::Architecture& network, std::int64_t copies) {
    const auto& adapters = layer.execution().adapters;
    if (!adapters || adapters->experts == workloads::ExpertAdapters::none) return;
    const std::int64_t ffn = network.moe->expert_ffn / layer.execution().experts.tensor_parallel;
    layer.over(copies);
    const std::int64_t width = workloads::expert_width(network);
    if (adapters->up) layer.adapter((network.gated ? 2 : 1) * ffn, width);
    if (adapters->down) layer.adapter(width, ffn);
}

void shared_experts(OperatorBuilder& layer, const workloads::Architecture& network, const Layout& layout,
                    std::int64_t m) {
    const std::int64_t width = (network.moe->shared_ffn + layout.tp - 1) / layout.tp;
    if (width == 0) return;
    layer.over(m);
    layer.column_parallel("shared up", (network.gated ? 2 : 1) * width, network.hidden);
    layer.row_parallel("shared down", network.hidden, width);
}

// Copies of a token that leave its GPU or stay on it, as an all-to-all counts them. Those that a node's GPUs hand on
// inside it are hidden: a link inside a node is more than twice as fast as a GPU's share of a network for each of them.
double copies_sent(const workloads::MixtureOfExperts& moe, const Layout& layout, const ExpertParallel& how) {
    if (how.dispatcher == Dispatcher::all_to_all) return static_cast<double>(moe.top_k);
    const std::int64_t per_node = groups_per_node(layout, how);
    if (layout.ep <= per_node || layout.ep % per_node != 0) return groups_reached(moe, layout.ep);
    const std::int64_t nodes = layout.ep / per_node;
    if (how.most_nodes == 0 || how.most_nodes >= nodes) return groups_reached(moe, nodes);
    workloads::MixtureOfExperts allowed = moe;
    allowed.experts = moe.experts / nodes * how.most_nodes;
    return groups_reached(allowed, how.most_nodes);
}

}  // namespace

double groups_reached(const workloads::MixtureOfExperts& moe, std::int64_t groups) {
    const auto all = static_cast<double>(moe.experts), elsewhere = all - all / static_cast<double>(groups);
    double none = 1;  // of a group's experts
    for (std::int64_t i = 0; i < moe.top_k; ++i) {
        const auto chosen = static_cast<double>(i);
        none *= std::max(0., elsewhere - chosen) / (all - chosen);
    }
    return static_cast<double>(groups) * (1 - none);
}

void expert_feed_forward(OperatorBuilder& layer, const workloads::Architecture& network, const Layout& layout,
                         std::int64_t m) {
    const auto& moe = *network.moe;
    const std::int64_t own = own_positions(m, layout), copies = own * moe.top_k;
    const ExpertParallel& how = layer.execution().experts;
    const double imbalance = layout.ep > 1 ? how.imbalance : 1;
    const auto fullest = [imbalance](double count) { return std::llround(imbalance * count); };
    const std::int64_t width = workloads::expert_width(network);
    const double values = static_cast<double>(own * width) * copies_sent(moe, layout, how);
    const Bytes message{layer.value_bytes() * fullest(values)};
    layer.over(own);
    layer.gemm("router", moe.experts, network.hidden);
    if (moe.latent > 0) layer.gemm("latent down", moe.latent, network.hidden);
    move_copies(layer, "permute", copies, width);
    // Every copy that reached one of an expert's GPUs is needed on all of them.
    const std::int64_t split = how.tensor_parallel;
    const Bytes gathered{layer.value_bytes() * split * fullest(static_cast<double>(copies * width))};
    layer.exchange_tokens(dispatch, message);
    layer.share_tokens(gather_tokens, costdb::CollectiveKind::all_gather, gathered);
    const costdb::Dtype products = layer.execution().products;
    const std::int64_t ffn = moe.expert_ffn / split;
    layer.cast(fullest(static_cast<double>(copies * split * (width + ffn))));
    if (!layer.is_of_adapters_alone())
        layer.add("experts", Experts{.layer = {.dtype = is_narrow(products) ? products : costdb::Dtype::bf16,
                                               .tokens = fullest(static_cast<double>(own * layout.ep * split)),
                                               .hidden = width,
                                               .ffn = ffn,
                                               .top_k = moe.top_k,
                                               .experts = moe.experts},
                                     .gpus = layout.ep,
                                     .gated = network.gated,
                                     .pass = layer.pass()});
    adapt_experts(layer, network, fullest(static_cast<double>(copies * split)));
    layer.share_tokens(scatter_tokens, costdb::CollectiveKind::reduce_scatter, gathered);
    layer.exchange_tokens(combine, message);
    move_copies(layer, "unpermute", copies, width);
    if (moe.latent > 0) {
        layer.over(own);
        layer.gemm("latent up", network.hidden, moe.latent);
    }
    shared_experts(layer, network, layout, m);
}

}  // namespace pipeweaver::emulator
