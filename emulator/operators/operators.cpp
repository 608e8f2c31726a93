#include "pipeweaver/emulator/operators.hpp"

#include "emulator/operators/operator_builder.hpp"
#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::emulator {

using costdb::CollectiveKind;
using workloads::Architecture;

namespace {

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

std::int64_t block_positions(const Architecture& network, const PassShape& shape) {
    return shape.positions() + (network.mmdit ? shape.context_positions() : 0);
}

std::vector<Operator> embedding_operators(const Architecture& network, const PassShape& shape, const Layout& layout,
                                          PassKind pass) {
    if (pass == PassKind::input_gradient) return {};  // token ids have none
    const std::int64_t m = layout.part(shape.positions());
    OperatorBuilder embedding(m, layout, pass == PassKind::weight_gradient ? PassKind::backward : pass);
    embedding.elementwise("embedding", costdb::ElementwiseKind::embedding, 4 * m * network.hidden, 2.0,
                          {.rows = m, .columns = network.hidden, .vocab = network.vocab});
    embedding.collective("embedding sum",
                         pass == PassKind::forward ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather,
                         network.hidden);
    return embedding.operators;
}

std::vector<Operator> head_operators(const Architecture& network, const PassShape& shape, const Layout& layout,
                                     PassKind pass) {
    const std::int64_t columns = (network.vocab + layout.tp - 1) / layout.tp, m = layout.part(shape.positions());
    OperatorBuilder head(m, layout, pass);
    head.gemm("head", columns, network.hidden);
    head.elementwise("cross entropy", costdb::ElementwiseKind::cross_entropy, 6 * m * columns, 2.0,
                     {.rows = m, .columns = columns});
    if (pass == PassKind::forward) {
        // Maximum, sum of exponentials and the label's logit are reduced over the vocabulary's parts, in fp32.
        head.collective("head gather", CollectiveKind::all_gather, network.hidden);
        for (int i = 0; i < 3; ++i) head.collective("loss sums", CollectiveKind::all_reduce, 1, 4);
    } else if (has_input_gradient(pass)) {
        head.collective("head scatter", CollectiveKind::reduce_scatter, network.hidden);
    }
    return head.operators;
}

Operator optimizer_update(std::int64_t parameters, std::int64_t replicas) {
    constexpr std::int64_t bytes_each = 38;
    return {"optimizer",
            costdb::Elementwise{Bytes{std::max<std::int64_t>(1, bytes_each * parameters / replicas)},
                                costdb::ElementwiseKind::optimizer},
            {.rows = 1, .columns = std::max<std::int64_t>(1, parameters / replicas)}};
}

std::vector<Operator> projector_operators(const workloads::ModelEdge& edge, std::int64_t positions,
                                          const Layout& layout, PassKind pass) {
    OperatorBuilder projector(layout.part(positions), layout, pass);
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
