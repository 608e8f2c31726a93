// Collects the operators of one pass.
#pragma once

#include "emulator/operators/group_links.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/emulator/recipe.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace pipeweaver::emulator {

inline constexpr std::int64_t bf16_width = 2;  // bytes of a bf16 value

inline costdb::Pass gemm_pass(PassKind pass) {
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

inline bool has_input_gradient(PassKind pass) { return pass == PassKind::backward || pass == PassKind::input_gradient; }

/// Positions rounded up to whole tiles, as training frameworks pad them.
inline std::int64_t padded(std::int64_t positions) { return (positions + 127) / 128 * 128; }

/// Groups of GPUs of an expert that a node has, one for each GPU where experts are whole.
inline std::int64_t groups_per_node(const Layout& layout, const ExpertParallel& how) {
    return std::max<std::int64_t>(1, layout.gpus_per_node / how.tensor_parallel);
}

/// Of a whole network. What travels between GPUs has `dim` values a query and key and `value_dim` a value and output.
struct AttentionHeads {
    std::int64_t queries = 0, keys = 0;
    std::int64_t dim = 0, value_dim = 0;
    bool causal = true;
};

/// Of `positions`, those that one tensor parallel GPU holds under sequence parallelism.
inline std::int64_t own_positions(std::int64_t positions, const Layout& layout) {
    return (positions + layout.tp - 1) / layout.tp;
}

// What attention goes over: sequences that lie whole on one context parallel group, and those that are divided over all
// of them; with `..._keys`, each attends to that many positions of another module.
struct Attended {
    std::vector<std::int64_t> whole, divided;
    std::vector<std::int64_t> whole_keys{}, divided_keys{};
};

// `of(shape)` of those that lie whole, and of the others.
template <class Of>
Attended attends_to(const PassShape& shape, const Of& of) {
    return {shape.whole > 0 ? of(whole_of(shape)) : std::vector<std::int64_t>{}, of(divided_of(shape))};
}

/// Collects the operators of one pass; knows which of them the pass has at all.
class OperatorBuilder {
public:
    OperatorBuilder(std::int64_t positions, const Layout& layout, PassKind pass, const Execution& execution = {})
        : m_(positions), layout_(layout), pass_(pass), execution_(execution) {}

    // The operators that follow work on so many positions.
    void over(std::int64_t positions) { m_ = positions; }

    // Whole on every GPU, or of what one holds of the positions; such are in no fewer than 16 bits.
    void gemm(std::string_view name, std::int64_t n, std::int64_t k) {
        const bool fp32 = execution_.products == costdb::Dtype::fp32;
        product(name, n, k, fp32 ? costdb::Dtype::fp32 : costdb::Dtype::bf16, gemm_pass(pass_));
    }

    // Beside a matrix of k rows and n columns on this GPU that is frozen: down to the rank and up again, and their
    // output added. A backward adds the input's gradient likewise. Pre: execution().adapters.
    void adapter(std::int64_t n, std::int64_t k);

    // Weights split by columns: the inputs, of k columns, are gathered in front of the product. A backward gathers the
    // inputs once more for the weight gradient and scatters the input gradient.
    void column_parallel(std::string_view name, std::int64_t n, std::int64_t k);

    // Of products in fewer than 16 bits so far: their inputs, weights and outputs are cast, and transposed for the
    // backward: of each value of the inputs that a GPU holds 2 bytes are read and those of the format written, in fp8 3
    // in all. Between products in equal formats of 16 bits or more there is nothing to cast.
    void casts();

    // Inputs of products that another operator holds, for casts().
    void cast(std::int64_t values) { cast_values_ += values; }

    // Weights split by rows: the outputs' sums are scattered, their gradients gathered.
    void row_parallel(std::string_view name, std::int64_t n, std::int64_t k);

    // Every sequence attends to itself, or to that many positions of another module.
    // The first of a sparse layer: to positions of its own, of which it leaves some out.
    void attention(const workloads::Architecture& network, const Attended& attended) {
        const bool of_themselves = attended.whole_keys.empty() && attended.divided_keys.empty();
        const auto heads = heads_of(network, of_themselves);
        density_ = of_themselves ? 1 - sparsity_ : 1;
        if (density_ < 1 && pass_ == PassKind::forward) find_pairs(network, heads, attended);
        if (!attended.whole.empty()) attend_whole(heads, attended.whole, attended.whole_keys);
        if (!attended.divided.empty()) attend(heads, attended.divided, attended.divided_keys);
        density_ = 1;
    }

    // Attentions that follow leave out so much of their own pairs.
    void leave_out(double sparsity) { sparsity_ = sparsity; }

    // Every window attends to itself. In a ring each GPU has whole windows; after an all-to-all part of the heads.
    void windowed_attention(const workloads::Architecture& network, const Attended& windows) {
        if (layout_.cp == 1 || layout_.exchanging() > 1) return attention(network, windows);
        const auto heads = heads_of(network, true);
        if (!windows.whole.empty()) attend_whole(heads, windows.whole, {});
        if (!windows.divided.empty()) attend_at_home(heads, windows.divided);
    }

    // The same of any heads, spread over the context parallel GPUs: attention_operators.cpp.
    void attend(const AttentionHeads& heads, const std::vector<std::int64_t>& lengths,
                const std::vector<std::int64_t>& keys = {});

    // Memory-bound kernels, given their forward traffic; the backward's is `backward_ratio` times that.
    void elementwise(std::string_view name, costdb::ElementwiseKind kind, std::int64_t bytes, double backward_ratio,
                     const KernelShape& shape) {
        if (pass_ == PassKind::weight_gradient) return norms_again(shape);
        const bool forward = pass_ == PassKind::forward;
        const double traffic = (forward ? 1.0 : backward_ratio) * static_cast<double>(bytes) *
                               static_cast<double>(execution_.value_bytes()) / bf16_width;
        add(name, costdb::Elementwise{Bytes{static_cast<std::int64_t>(std::llround(traffic))}, kind,
                                      forward ? costdb::Pass::forward : costdb::Pass::backward});
        operators.back().shape = shape;
    }

    // Summands of so many columns, one for each tensor parallel GPU, are summed: scattered, or, without sequence
    // parallelism, whole on each.
    void reduce(std::string_view name, std::int64_t columns);

    // Around an attention whose down projections every GPU makes of its own positions: what they give is gathered,
    // outputs scattered. The backward does the same with gradients, and gathers the inputs once more for the weight
    // gradient. Nothing of it is beside a product.
    void tensor_parallel(std::int64_t in, std::int64_t out) {
        const bool forward = pass_ == PassKind::forward;
        if (forward || has_input_gradient(pass_)) {
            collective("gather", costdb::CollectiveKind::all_gather, forward ? in : out);
            collective("scatter", costdb::CollectiveKind::reduce_scatter, forward ? out : in);
        }
        if (pass_ == PassKind::backward || pass_ == PassKind::weight_gradient)
            collective("gather for weights", costdb::CollectiveKind::all_gather, in);
    }

    // A modulation is made of gathered conditions, in parts of its columns that are exchanged for parts of the
    // positions.
    void modulation_parallel(std::int64_t condition, std::int64_t columns) {
        if (pass_ != PassKind::input_gradient)
            collective("gather condition", costdb::CollectiveKind::all_gather, condition);
        if (pass_ != PassKind::weight_gradient)
            collective("exchange modulation", costdb::CollectiveKind::all_to_all, columns);
        if (has_input_gradient(pass_))
            collective("scatter condition", costdb::CollectiveKind::reduce_scatter, condition);
    }

    // Between GPUs that share out a layer's experts, each sending `message`; a backward sends the gradients back.
    void exchange_tokens(std::string_view name, Bytes message) {
        if (layout_.ep == 1 || pass_ == PassKind::weight_gradient) return;
        // Consecutive GPUs, or groups of GPUs of an expert, whose exchanges share a node's network: they fill nodes
        // first.
        const std::int64_t per_node = groups_per_node(layout_, execution_.experts);
        const std::int64_t network = layout_.network.bytes_per_second * per_node / layout_.gpus_per_node;
        add(name, costdb::Collective{.kind = costdb::CollectiveKind::all_to_all,
                                     .dtype = costdb::Dtype::bf16,
                                     .gpus = layout_.ep,
                                     .gpus_per_node = per_node,
                                     .message = message,
                                     .network = {network},
                                     .node_link = layout_.node_link});
        last_over_links(execution_.experts.tensor_parallel);
        operators.back().stream = Stream::context;
    }

    // Between GPUs that an expert is split over; `message` is what all of them hold. A backward exchanges gradients.
    void share_tokens(std::string_view name, costdb::CollectiveKind kind, Bytes message) {
        const std::int64_t gpus = execution_.experts.tensor_parallel;
        if (gpus == 1 || pass_ == PassKind::weight_gradient) return;
        add(name, costdb::Collective{.kind = kind,
                                     .dtype = costdb::Dtype::bf16,
                                     .gpus = gpus,
                                     .gpus_per_node = layout_.gpus_per_node,
                                     .message = message,
                                     .network = layout_.network,
                                     .node_link = layout_.node_link});
        last_over_links(1);
        operators.back().stream = Stream::context;
    }

    // Around what works on whole sequences and part of the heads: `split` columns of parts of the sequence are
    // exchanged in front of it and `joined` ones behind it, by a backward the gradients, the other way round.
    void exchange_heads(std::int64_t split, std::int64_t joined) {
        if (layout_.cp == 1 || pass_ == PassKind::weight_gradient) return;
        const bool forward = pass_ == PassKind::forward;
        exchange(forward ? "exchange columns" : "exchange output gradients",
                 value_bytes() * m_ * (forward ? split : joined), layout_.cp);
    }
    void exchange_back(std::int64_t split, std::int64_t joined) {
        if (layout_.cp == 1 || pass_ == PassKind::weight_gradient) return;
        const bool forward = pass_ == PassKind::forward;
        exchange(forward ? "exchange outputs" : "exchange column gradients",
                 value_bytes() * m_ * (forward ? joined : split), layout_.cp);
    }

    const Execution& execution() const { return execution_; }
    std::int64_t value_bytes() const { return execution_.value_bytes(); }

    PassKind pass_kind() const { return pass_; }

    // A gemm's pass, for operators that have the same passes. Frozen weights have no gradient of their own.
    costdb::Pass pass() const {
        return execution_.adapters && pass_ == PassKind::backward ? costdb::Pass::backward_input : gemm_pass(pass_);
    }

    // A pass in which frozen weights do nothing.
    bool is_of_adapters_alone() const { return execution_.adapters && pass_ == PassKind::weight_gradient; }

    // The context of a cross attention is kept in parts: gathered for its keys, its gradient scattered.
    void gather_context(std::int64_t width_of_context) {
        if (pass_ != PassKind::input_gradient)
            collective("gather context", costdb::CollectiveKind::all_gather, width_of_context);
        if (has_input_gradient(pass_))
            collective("scatter context", costdb::CollectiveKind::reduce_scatter, width_of_context);
    }

    void collective(std::string_view name, costdb::CollectiveKind kind, std::int64_t columns,
                    std::optional<std::int64_t> bytes_each = {}) {
        if (layout_.tp == 1) return;
        add(name, costdb::Collective{.kind = kind,
                                     .dtype = costdb::Dtype::bf16,
                                     .gpus = layout_.tp,
                                     .gpus_per_node = layout_.gpus_per_node,
                                     .message = Bytes{m_ * columns * bytes_each.value_or(value_bytes())},
                                     .network = layout_.network,
                                     .node_link = layout_.node_link});
        last_over_links(1);
        operators.back().stream = Stream::tensor;
    }

    // The collective that was added last is among GPUs so far apart in the layout's numbers.
    void last_over_links(std::int64_t stride) {
        set_links(layout_, stride, std::get<costdb::Collective>(operators.back().query));
    }

    template <class Query>
    void add(std::string_view name, Query query) {
        Operator& op = operators.emplace_back();
        op.name = name;
        op.query = std::move(query);
        op.after = std::exchange(joined_, {});
    }

    std::vector<Operator> operators;

private:
    static AttentionHeads heads_of(const workloads::Architecture& network, bool of_themselves) {
        const bool latent = network.attention.kind == workloads::AttentionKind::latent;
        return {network.heads, network.kv_heads, network.head_dim,
                latent ? network.attention.v_head_dim : network.head_dim, network.attention.causal && of_themselves};
    }

    // In front of an attention that leaves pairs out: queries and keys of a low rank a head, and their scores, which
    // are kept nowhere. What context parallelism exchanges of them is not counted.
    void find_pairs(const workloads::Architecture& network, const AttentionHeads& heads, const Attended& attended);

    // No other group has a part of these sequences.
    void attend_whole(const AttentionHeads& heads, const std::vector<std::int64_t>& lengths,
                      const std::vector<std::int64_t>& keys);
    PackedAttention core(const AttentionHeads& heads, std::int64_t parts) const;
    void attend_at_home(const AttentionHeads& heads, const std::vector<std::int64_t>& sequences);
    void attend_between_exchanges(const AttentionHeads& heads, const std::vector<std::int64_t>& lengths,
                                  const std::vector<std::int64_t>& keys);
    void attend_in_ring(const AttentionHeads& heads, const std::vector<std::int64_t>& lengths,
                        const std::vector<std::int64_t>& keys);
    // Steps of keys going round so many GPUs, each with its part of the heads.
    struct Round {
        std::int64_t steps = 1, parts_of_heads = 1, bytes = 0;
    };
    void go_round(const AttentionHeads& heads, const std::vector<std::int64_t>& lengths,
                  const std::vector<std::int64_t>& keys, const Round& round);
    PackedAttention ring_step(const AttentionHeads& heads, const std::vector<std::int64_t>& lengths,
                              const std::vector<std::int64_t>& keys, std::int64_t step, const Round& round) const;
    // Among the next so many GPUs of the context parallel group.
    void exchange(std::string_view name, std::int64_t bytes, std::int64_t gpus);
    void send(std::string_view name, std::int64_t bytes, std::vector<std::uint32_t> after);

    void product(std::string_view name, std::int64_t n, std::int64_t k, costdb::Dtype dtype, costdb::Pass pass) {
        if (is_of_adapters_alone()) return;
        if (execution_.adapters && pass == costdb::Pass::backward) pass = costdb::Pass::backward_input;
        add(name, costdb::Gemm{.dtype = dtype, .m = m_, .n = n, .k = k, .pass = pass});
    }
    bool has_adapter(std::string_view name) const;
    void gather_for_weights(std::int64_t k);
    void norms_again(const KernelShape& shape);
    void column_backward_in_launch_order(std::string_view name, std::int64_t n, std::int64_t k);
    std::uint32_t last() const { return static_cast<std::uint32_t>(operators.size() - 1); }

    std::int64_t m_;
    const Layout& layout_;
    PassKind pass_;
    Execution execution_;
    double sparsity_ = 0, density_ = 1;
    std::int64_t cast_values_ = 0;         // of the products' inputs that are this GPU's own
    std::vector<std::uint32_t> joined_{};  // what the next operator waits for; empty: the one in front of it
};

}  // namespace pipeweaver::emulator
