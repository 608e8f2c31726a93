// Attention on one GPU, or spread over context parallel ones.
#include "emulator/operators/operator_builder.hpp"
#include "pipeweaver/base/assert.hpp"

#include <numeric>

namespace pipeweaver::emulator {

namespace {

using Lengths = std::vector<std::int64_t>;

std::int64_t sum_of(const Lengths& lengths) { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }

// Of each sequence one of so many parts, rounded up.
Lengths parts_of(const Lengths& lengths, std::int64_t parts) {
    Lengths all;
    for (const std::int64_t length : lengths) all.push_back((length + parts - 1) / parts);
    return all;
}

std::string_view name_of_attention(const Lengths& keys) { return keys.empty() ? "attention" : "cross attention"; }

}  // namespace

void OperatorBuilder::attend(const AttentionHeads& heads, const Lengths& lengths, const Lengths& keys) {
    if (pass_ == PassKind::weight_gradient) return;
    if (layout_.cp > 1 && layout_.exchanging() == 1) return attend_in_ring(heads, lengths, keys);
    if (layout_.cp > 1) return attend_between_exchanges(heads, lengths, keys);
    attend_whole(heads, lengths, keys);
}

void OperatorBuilder::attend_whole(const AttentionHeads& heads, const Lengths& lengths, const Lengths& keys) {
    if (pass_ == PassKind::weight_gradient) return;
    auto attention = core(heads, layout_.tp);
    attention.lengths = lengths;
    attention.keys = keys;
    add(name_of_attention(keys), std::move(attention));
}

// The heads that are left on one of `parts` GPUs, and no sequences yet.
PackedAttention OperatorBuilder::core(const AttentionHeads& heads, std::int64_t parts) const {
    costdb::Attention shape;
    shape.q_heads = heads.queries / parts;
    shape.kv_heads = std::max<std::int64_t>(1, heads.keys / parts);
    shape.head_dim = heads.dim;
    shape.causal = heads.causal;
    shape.pass = pass_ == PassKind::forward ? costdb::Pass::forward : costdb::Pass::backward;
    return {shape, {}, {}, heads.value_dim < heads.dim ? heads.value_dim : 0, execution_.fused_attention, density_};
}

void OperatorBuilder::find_pairs(const workloads::Architecture& network, const AttentionHeads& heads,
                                 const Attended& attended) {
    const std::int64_t rank = network.attention.sparsity_rank;
    const std::int64_t here = m_;
    over(padded(sum_of(attended.whole) + layout_.part(sum_of(attended.divided))));  // of all streams, not the last
    gemm("low-rank queries and keys", std::max<std::int64_t>(1, 2 * heads.queries / layout_.tp) * rank, network.hidden);
    over(here);
    // Of the two products of an attention the first, of `rank` values in place of a head's.
    const double of_scores = static_cast<double>(rank) / static_cast<double>(2 * heads.dim);
    const auto estimate = [&](const Lengths& lengths, std::int64_t parts) {
        auto scores = core(heads, layout_.tp);
        scores.lengths = lengths;
        scores.fused = true;
        scores.density = of_scores / static_cast<double>(parts);
        add("sparsity estimate", std::move(scores));
    };
    if (!attended.whole.empty()) estimate(attended.whole, 1);
    if (!attended.divided.empty()) estimate(attended.divided, layout_.cp);
}

// The sequences are shared out whole.
void OperatorBuilder::attend_at_home(const AttentionHeads& heads, const Lengths& sequences) {
    if (pass_ == PassKind::weight_gradient) return;
    auto attention = core(heads, layout_.tp);
    for (std::size_t i = 0; i < sequences.size(); i += static_cast<std::size_t>(layout_.cp))
        attention.lengths.push_back(sequences[i]);
    add("attention", std::move(attention));
}

// GPUs exchange heads for positions of their part of the sequence; where not all of the group do, keys go round among
// those that do, each with its part of the heads and as many positions as they have together.
void OperatorBuilder::attend_between_exchanges(const AttentionHeads& heads, const Lengths& lengths,
                                               const Lengths& keys) {
    const std::int64_t tp = layout_.tp, exchanging = layout_.exchanging(), parts = tp * exchanging;
    const std::int64_t m = padded(layout_.part(sum_of(lengths)));
    const std::int64_t of_keys = keys.empty() ? m : padded(layout_.part(sum_of(keys)));
    // Grouped keys that are fewer than the GPUs are copied.
    const std::int64_t key_heads = std::max(heads.keys, parts) / tp;
    const std::int64_t of_key_columns = of_keys * key_heads * (heads.dim + heads.value_dim);
    const std::int64_t split = m * heads.queries / tp * heads.dim + of_key_columns;
    const std::int64_t joined = m * heads.queries / tp * heads.value_dim;
    const bool forward = pass_ == PassKind::forward;
    if (forward)
        exchange("exchange queries and keys", value_bytes() * split, exchanging);
    else
        exchange("exchange output gradients", value_bytes() * joined, exchanging);
    if (exchanging == layout_.cp) {
        auto attention = core(heads, parts);
        attention.lengths = lengths;
        attention.keys = keys;
        add(name_of_attention(keys), std::move(attention));
    } else {
        go_round(heads, lengths, keys, {layout_.cp / exchanging, parts, value_bytes() * of_key_columns});
    }
    if (forward)
        exchange("exchange outputs", value_bytes() * joined, exchanging);
    else
        exchange("exchange query and key gradients", value_bytes() * split, exchanging);
}

void OperatorBuilder::attend_in_ring(const AttentionHeads& heads, const Lengths& lengths, const Lengths& keys) {
    const std::int64_t of_keys = padded(layout_.part(sum_of(keys.empty() ? lengths : keys)));
    const std::int64_t key_heads = std::max(heads.keys, layout_.tp) / layout_.tp;
    const std::int64_t bytes = value_bytes() * of_keys * key_heads * (heads.dim + heads.value_dim);
    go_round(heads, lengths, keys, {layout_.cp, layout_.tp, bytes});
}

// Every GPU attends to the keys at hand and passes them on meanwhile; gradients of keys follow them all the way round.
void OperatorBuilder::go_round(const AttentionHeads& heads, const Lengths& lengths, const Lengths& keys,
                               const Round& round) {
    PIPEWEAVER_ASSERT(!operators.empty());  // what makes queries and keys
    const auto last = [&] { return static_cast<std::uint32_t>(operators.size() - 1); };
    std::vector<std::uint32_t> waits{last()};  // of the step at hand: its keys, and the step in front of it
    for (std::int64_t step = 0; step < round.steps; ++step) {
        std::vector<std::uint32_t> next;
        if (step + 1 < round.steps) {
            send("send keys", round.bytes, {waits.front()});
            next.push_back(last());
        }
        add(name_of_attention(keys), ring_step(heads, lengths, keys, step, round));
        operators.back().after = std::move(waits);
        next.push_back(last());
        if (pass_ != PassKind::forward) send("send key gradients", round.bytes, {last()});
        waits = std::move(next);
    }
}

PackedAttention OperatorBuilder::ring_step(const AttentionHeads& heads, const Lengths& lengths, const Lengths& keys,
                                           std::int64_t step, const Round& round) const {
    auto attention = core(heads, round.parts_of_heads);
    attention.lengths = parts_of(lengths, round.steps);
    if (!keys.empty()) attention.keys = parts_of(keys, round.steps);
    if (heads.causal && step > 0) {
        // All positions to the first half of another GPU's keys, or their second half to all of them.
        attention.shape.causal = false;
        attention.keys = parts_of(lengths, 2 * round.steps);
    }
    return attention;
}

void OperatorBuilder::exchange(std::string_view name, std::int64_t bytes, std::int64_t gpus) {
    // GPUs of a group are tp apart: those between them are of other groups, and share a node's network with it.
    const std::int64_t node = layout_.gpus_per_node, in_node = std::max<std::int64_t>(1, node / layout_.tp);
    const bool inside = gpus <= in_node;
    add(name, costdb::Collective{.kind = costdb::CollectiveKind::all_to_all,
                                 .dtype = costdb::Dtype::bf16,
                                 .gpus = gpus,
                                 .gpus_per_node = inside ? node : in_node,
                                 .message = Bytes{bytes},
                                 .network = {layout_.network.bytes_per_second * (inside ? node : in_node) / node},
                                 .node_link = layout_.node_link});
    last_over_links(layout_.stride());
    operators.back().stream = Stream::context;
}

void OperatorBuilder::send(std::string_view name, std::int64_t bytes, std::vector<std::uint32_t> after) {
    const bool inside = layout_.gpus_of_rank() <= layout_.gpus_per_node;
    add(name, costdb::PointToPoint{.gpus_per_node = inside ? 2 : 1,
                                   .message = Bytes{bytes},
                                   .network = layout_.network_of_gpu(),
                                   .node_link = layout_.node_link});
    set_links(layout_, layout_.cp / layout_.exchanging(), layout_.stride() * layout_.exchanging(),
              std::get<costdb::PointToPoint>(operators.back().query));
    operators.back().stream = Stream::context;
    operators.back().after = std::move(after);
}

}  // namespace pipeweaver::emulator
