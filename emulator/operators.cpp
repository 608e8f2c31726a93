#include "pipeweaver/emulator/operators.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::emulator {

using costdb::CollectiveKind;
using costdb::Dtype;
using workloads::Architecture;

namespace {

constexpr std::int64_t width = 2;  // bytes of a bf16 value

costdb::Pass gemm_pass(PassKind pass) {
    switch (pass) {
        case PassKind::forward:
            return costdb::Pass::forward;
        case PassKind::backward:
            return costdb::Pass::backward;
        case PassKind::input_gradient:
            return costdb::Pass::backward_input;
        case PassKind::weight_gradient:
            return costdb::Pass::backward_weight;
    }
    return costdb::Pass::forward;
}

bool has_input_gradient(PassKind pass) { return pass == PassKind::backward || pass == PassKind::input_gradient; }

std::int64_t padded(std::int64_t positions) { return (positions + 127) / 128 * 128; }

// Collects the operators of one pass; knows which of them the pass has at all.
class Builder {
public:
    Builder(std::int64_t positions, const Layout& layout, PassKind pass)
        : m_(positions), layout_(layout), pass_(pass) {}

    void gemm(std::string_view name, std::int64_t n, std::int64_t k) {
        add(name, costdb::Gemm{.dtype = Dtype::bf16, .m = m_, .n = n, .k = k, .pass = gemm_pass(pass_)});
    }

    void attention(const Architecture& network, const std::vector<std::int64_t>& lengths) {
        if (pass_ == PassKind::weight_gradient) return;
        costdb::Attention shape;
        shape.q_heads = network.heads / layout_.tp;
        shape.kv_heads = std::max<std::int64_t>(1, network.kv_heads / layout_.tp);
        shape.head_dim = network.head_dim;
        shape.causal = network.attention.causal;
        shape.pass = pass_ == PassKind::forward ? costdb::Pass::forward : costdb::Pass::backward;
        add("attention", PackedAttention{shape, lengths});
    }

    // Memory-bound kernels, given their forward traffic; the backward's is `backward_ratio` times that.
    void elementwise(std::string_view name, std::int64_t bytes, double backward_ratio) {
        if (pass_ == PassKind::weight_gradient) return;
        const double ratio = pass_ == PassKind::forward ? 1.0 : backward_ratio;
        add(name,
            costdb::Elementwise{Bytes{static_cast<std::int64_t>(std::llround(ratio * static_cast<double>(bytes)))}});
    }

    // Sequence parallelism around a pair of GEMMs: inputs are gathered, outputs scattered. The backward does the same
    // with gradients, and gathers the inputs once more for the weight gradient.
    void tensor_parallel(std::int64_t hidden) {
        if (pass_ == PassKind::forward || has_input_gradient(pass_)) {
            collective("gather", CollectiveKind::all_gather, hidden);
            collective("scatter", CollectiveKind::reduce_scatter, hidden);
        }
        if (pass_ == PassKind::backward || pass_ == PassKind::weight_gradient)
            collective("gather for weights", CollectiveKind::all_gather, hidden);
    }

    void collective(std::string_view name, CollectiveKind kind, std::int64_t columns, std::int64_t bytes_each = width) {
        if (layout_.tp == 1) return;
        add(name,
            costdb::Collective{
                .kind = kind, .dtype = Dtype::bf16, .gpus = layout_.tp, .message = Bytes{m_ * columns * bytes_each}});
    }

    template <class Query>
    void add(std::string_view name, Query query) {
        operators.push_back({name, std::move(query)});
    }

    std::vector<Operator> operators;

private:
    std::int64_t m_;
    const Layout& layout_;
    PassKind pass_;
};

}  // namespace

std::string_view name_of(OperatorClass kind) {
    constexpr std::array<std::string_view, operator_classes> names{"gemm", "attention", "collective", "p2p",
                                                                   "elementwise"};
    return names[static_cast<std::size_t>(kind)];
}

std::int64_t PassShape::positions() const { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }

std::string unsupported(const Architecture& network) {
    using workloads::AttentionKind;
    using workloads::ModuleKind;
    if (network.kind != ModuleKind::language_model && network.kind != ModuleKind::vision_encoder)
        return fmt::format("networks of kind '{}' are not emulated yet", workloads::name_of(network.kind));
    if (network.moe) return "mixtures of experts are not emulated yet";
    if (network.attention.kind != AttentionKind::dense) return "only dense attention is emulated yet";
    if (network.cross_attention_layers > 0) return "added cross-attention layers are not emulated yet";
    return {};
}

std::vector<Operator> layer_operators(const Architecture& network, const PassShape& shape, const Layout& layout,
                                      PassKind pass) {
    const std::int64_t m = padded(shape.positions()), h = network.hidden, t = layout.tp, f = network.ffn;
    const std::int64_t up = network.gated ? 2 * f : f;
    // Grouped keys that are fewer than the tensor parallel ranks are copied to each.
    const std::int64_t keys = std::max(network.kv_heads, t);
    Builder layer(m, layout, pass);
    layer.elementwise("norms and activations",
                      (20 * m * h + 4 * m * (network.heads + keys) * network.head_dim + 2 * m * (up + f)) / t, 1.6);
    layer.tensor_parallel(h);
    layer.gemm("qkv", (network.heads + 2 * keys) * network.head_dim / t, h);
    layer.attention(network, shape.lengths);
    layer.gemm("attention output", h, network.heads * network.head_dim / t);
    layer.tensor_parallel(h);
    layer.gemm("up", up / t, h);
    layer.gemm("down", h, f / t);
    return layer.operators;
}

std::vector<Operator> embedding_operators(const Architecture& network, const PassShape& shape, const Layout& layout,
                                          PassKind pass) {
    if (pass == PassKind::input_gradient) return {};  // token ids have none
    Builder embedding(shape.positions(), layout, pass == PassKind::weight_gradient ? PassKind::backward : pass);
    embedding.elementwise("embedding", 4 * shape.positions() * network.hidden, 2.0);
    embedding.collective("embedding sum",
                         pass == PassKind::forward ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather,
                         network.hidden);
    return embedding.operators;
}

std::vector<Operator> head_operators(const Architecture& network, const PassShape& shape, const Layout& layout,
                                     PassKind pass) {
    const std::int64_t columns = (network.vocab + layout.tp - 1) / layout.tp;
    Builder head(shape.positions(), layout, pass);
    head.gemm("head", columns, network.hidden);
    head.elementwise("cross entropy", 6 * shape.positions() * columns, 2.0);
    if (pass == PassKind::forward) {
        // Maximum, sum of exponentials and the label's logit are reduced over the vocabulary's parts, in fp32.
        head.collective("head gather", CollectiveKind::all_gather, network.hidden);
        for (int i = 0; i < 3; ++i) head.collective("loss sums", CollectiveKind::all_reduce, 1, 4);
    } else if (has_input_gradient(pass)) {
        head.collective("head scatter", CollectiveKind::reduce_scatter, network.hidden);
    }
    return head.operators;
}

std::vector<Operator> projector_operators(std::int64_t positions, std::int64_t in, std::int64_t out,
                                          const Layout& layout, PassKind pass) {
    Builder projector(positions, layout, pass);
    projector.gemm("projector", std::max<std::int64_t>(1, out / layout.tp), in);
    return projector.operators;
}

}  // namespace pipeweaver::emulator
