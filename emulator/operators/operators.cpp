#include "pipeweaver/emulator/operators.hpp"

#include "emulator/operators/group_links.hpp"
#include "emulator/operators/operator_builder.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/product_format.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::emulator {

using costdb::CollectiveKind;
using workloads::Architecture;

namespace {

// Outside the blocks: nothing in fewer than 16 bits, no adapters.
Execution outside_blocks(Execution execution) {
    execution.adapters.reset();
    if (is_narrow(execution.products)) execution.products = costdb::Dtype::bf16;
    return execution;
}

template <class... Kinds>
constexpr std::array<std::string_view, sizeof...(Kinds)> names_of(const std::variant<Kinds...>*) {
    return {Kinds::op...};
}

}  // namespace

std::string_view name_of(OperatorClass kind) {
    constexpr auto names = names_of(static_cast<const OperatorQuery*>(nullptr));
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(Stream stream) {
    constexpr std::array<std::string_view, streams> names{"compute", "tensor", "context", "data", "copy", "host"};
    return names[static_cast<std::size_t>(stream)];
}

std::int64_t PassShape::positions() const { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }

std::int64_t PassShape::context_positions() const {
    return std::accumulate(context.begin(), context.end(), std::int64_t{0});
}

namespace {

PassShape between(const PassShape& shape, std::size_t first, std::size_t end) {
    const auto part = [&](const std::vector<std::int64_t>& all) {
        if (all.empty()) return all;
        const auto at = [&](std::size_t place) { return all.begin() + static_cast<std::ptrdiff_t>(place); };
        return std::vector<std::int64_t>(at(first), at(end));
    };
    return {part(shape.lengths), part(shape.context)};
}

// Of the values those in front are whole, of the others a GPU has a part.
std::int64_t own(const std::vector<std::int64_t>& values, std::size_t whole, const Layout& layout) {
    const auto first_divided = values.begin() + static_cast<std::ptrdiff_t>(std::min(whole, values.size()));
    return std::accumulate(values.begin(), first_divided, std::int64_t{0}) +
           layout.part(std::accumulate(first_divided, values.end(), std::int64_t{0}));
}

}  // namespace

PassShape whole_of(const PassShape& shape) {
    PassShape whole = between(shape, 0, shape.whole);
    whole.whole = shape.whole;
    return whole;
}

PassShape divided_of(const PassShape& shape) { return between(shape, shape.whole, shape.lengths.size()); }

std::int64_t positions_of_group(const PassShape& shape, const Layout& layout) {
    return own(shape.lengths, shape.whole, layout);
}

std::int64_t context_of_group(const PassShape& shape, const Layout& layout) {
    return own(shape.context, shape.whole, layout);
}

std::int64_t block_positions_of_group(const Architecture& network, const PassShape& shape, const Layout& layout) {
    if (!network.mmdit) return positions_of_group(shape, layout);
    std::vector<std::int64_t> both;
    for (std::size_t i = 0; i < shape.lengths.size(); ++i)
        both.push_back(shape.lengths[i] + (shape.context.empty() ? 0 : shape.context[i]));
    return own(both, shape.whole, layout);
}

std::int64_t rows_of_group(const PassShape& shape, const Layout& layout, std::int64_t reduction) {
    return whole_of(shape).positions() / reduction + layout.part(divided_of(shape).positions() / reduction);
}

std::int64_t block_positions(const Architecture& network, const PassShape& shape) {
    return shape.positions() + (network.mmdit ? shape.context_positions() : 0);
}

std::vector<Operator> embedding_operators(const Architecture& network, const PassShape& shape, const Layout& layout,
                                          PassKind pass, const Execution& execution) {
    if (pass == PassKind::input_gradient) return {};  // token ids have none
    const std::int64_t m = positions_of_group(shape, layout);
    OperatorBuilder embedding(m, layout, pass == PassKind::weight_gradient ? PassKind::backward : pass, execution);
    const std::int64_t of_layers = network.layers * network.layer_embedding, columns = network.hidden + of_layers;
    // Of what is embedded, for each layer one more, of the positions that a GPU has.
    const auto project = [&] {
        if (of_layers == 0) return;
        embedding.over(execution.sequence_parallel ? own_positions(m, layout) : m);
        embedding.gemm("layer embeddings", of_layers, network.hidden);
        embedding.over(m);
    };
    if (pass != PassKind::forward) project();
    embedding.elementwise("embedding", costdb::ElementwiseKind::embedding, 4 * m * columns, 2.0,
                          {.rows = m, .columns = columns, .vocab = network.vocab});
    if (pass == PassKind::forward)
        embedding.reduce("embedding sum", columns);
    else if (execution.sequence_parallel)
        embedding.collective("embedding sum", CollectiveKind::all_gather, columns);
    if (pass == PassKind::forward) project();
    return embedding.operators;
}

std::vector<Operator> head_operators(const Architecture& network, const PassShape& shape, const Layout& layout,
                                     PassKind pass, const Execution& execution) {
    const std::int64_t columns = (network.vocab + layout.tp - 1) / layout.tp, m = positions_of_group(shape, layout);
    OperatorBuilder head(m, layout, pass, outside_blocks(execution));
    const auto loss = [&] {
        // Beside unfused attention it is unfused, too, and works on fp32 logits: 32 bytes each in both passes.
        const bool fused = execution.fused_attention;
        head.elementwise("cross entropy", costdb::ElementwiseKind::cross_entropy, (fused ? 6 : 12) * m * columns,
                         fused ? 2.0 : 5. / 3, {.rows = m, .columns = columns});
    };
    // Of the blocks of multi-token prediction, each has the head once more, and a projection in front of it.
    for (std::int64_t ahead = 0; ahead <= network.predicted_layers; ++ahead) {
        if (ahead > 0) head.column_parallel("prediction in", network.hidden / layout.tp, 2 * network.hidden);
        if (pass != PassKind::forward) loss();
        head.column_parallel("head", columns, network.hidden);
        if (pass != PassKind::forward) continue;
        loss();
        // Maximum, sum of exponentials and the label's logit are reduced over the vocabulary's parts, in fp32.
        for (int i = 0; i < 3; ++i) head.collective("loss sums", CollectiveKind::all_reduce, 1, 4);
    }
    return head.operators;
}

Operator optimizer_update(std::int64_t parameters, std::int64_t copies, const UpdateTraffic& update) {
    const std::int64_t own = (parameters + copies - 1) / copies;
    const Bytes traffic{std::max<std::int64_t>(1, update.updated * own + update.held * parameters)};
    return {"optimizer",
            costdb::Elementwise{traffic, costdb::ElementwiseKind::optimizer},
            {.rows = 1, .columns = std::max<std::int64_t>(1, own)}};
}

std::vector<Operator> gathered_edge(std::int64_t columns, std::int64_t rows, const Layout& layout, PassKind pass,
                                    const Execution& execution) {
    if (pass == PassKind::weight_gradient || rows == 0) return {};
    const bool forward = pass == PassKind::forward;
    Operator gather{forward ? "gather for the edge" : "scatter from the edge",
                    costdb::Collective{.kind = forward ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter,
                                       .dtype = costdb::Dtype::bf16,
                                       .gpus = layout.gpus_of_rank(),
                                       .gpus_per_node = layout.gpus_per_node,
                                       .message = Bytes{execution.value_bytes() * layout.cp * rows * columns},
                                       .network = layout.network,
                                       .node_link = layout.node_link}};
    set_links(layout, 1, std::get<costdb::Collective>(gather.query));
    gather.stream = Stream::context;
    return {std::move(gather)};
}

std::vector<Operator> cast_edge(std::int64_t columns, std::int64_t rows, const Layout& layout, PassKind pass,
                                std::int64_t from_bytes, std::int64_t to_bytes) {
    if (pass == PassKind::weight_gradient || rows == 0 || from_bytes == to_bytes) return {};
    const std::int64_t values = rows * std::max<std::int64_t>(1, columns / layout.tp);
    const auto direction = pass == PassKind::forward ? costdb::Pass::forward : costdb::Pass::backward;
    return {Operator{"cast for the edge", costdb::Elementwise{Bytes{values * (from_bytes + to_bytes)},
                                                              costdb::ElementwiseKind::other, direction}}};
}

std::vector<Operator> projector_operators(const workloads::ModelEdge& edge, std::int64_t rows, const Layout& layout,
                                          PassKind pass, const Execution& execution) {
    OperatorBuilder projector(rows, layout, pass, outside_blocks(execution));
    const auto part = [&](std::int64_t columns) { return std::max<std::int64_t>(1, columns / layout.tp); };
    if (edge.projector_hidden == 0) {
        projector.gemm("projector", part(edge.projector_out), edge.projector_in);
    } else {
        projector.gemm("projector up", part(edge.projector_hidden), edge.projector_in);
        projector.gemm("projector down", edge.projector_out, part(edge.projector_hidden));
    }
    return projector.operators;
}

}  // namespace pipeweaver::emulator
