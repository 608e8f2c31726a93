#include "emulator/operators/head_network.hpp"

namespace pipeweaver::emulator {

using workloads::Architecture;

namespace {

constexpr std::int64_t time_features = 256;

// Of a pass's positions, those that one tensor parallel GPU keeps.
std::int64_t own_rows(const PassShape& shape, const Layout& layout) {
    return std::max<std::int64_t>(1, padded(positions_of_group(shape, layout)) / layout.tp);
}

}  // namespace

void head_block(OperatorBuilder& layer, const Architecture& network, const Layout& layout, std::int64_t m) {
    const std::int64_t h = network.hidden, columns = network.ffn / layout.tp;
    layer.over(m);
    layer.elementwise("norm and modulation", costdb::ElementwiseKind::norm_activation,
                      20 * m * h / layout.tp + 4 * m * columns, 1.6,
                      {.rows = std::max<std::int64_t>(1, m / layout.tp),
                       .columns = h,
                       .norms = 1,
                       .up = m * columns,
                       .down = m * columns});
    layer.modulation_parallel(h, 3 * h / layout.tp);
    layer.gemm("modulation", 3 * h / layout.tp, h);
    layer.column_parallel("up", columns, h);
    layer.row_parallel("down", h, columns);
}

std::vector<Operator> head_inputs(const Architecture& network, const PassShape& shape, const Layout& layout,
                                  PassKind pass) {
    const std::int64_t h = network.hidden;
    OperatorBuilder head(own_rows(shape, layout), layout, pass);
    if (pass != PassKind::input_gradient) {
        // Data, which needs no gradient.
        OperatorBuilder data(own_rows(shape, layout), layout,
                             pass == PassKind::backward ? PassKind::weight_gradient : pass);
        data.gemm("input", h, network.in_channels);
        data.gemm("time features", h, time_features);
        head.operators = std::move(data.operators);
    }
    head.gemm("time", h, h);
    head.gemm("condition", h, network.condition_dim);
    return head.operators;
}

std::vector<Operator> head_outputs(const Architecture& network, const PassShape& shape, const Layout& layout,
                                   PassKind pass) {
    OperatorBuilder head(own_rows(shape, layout), layout, pass);
    head.gemm("last modulation", 2 * network.hidden, network.hidden);
    head.gemm("prediction", network.in_channels, network.hidden);
    return head.operators;
}

}  // namespace pipeweaver::emulator
