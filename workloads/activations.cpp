#include "pipeweaver/workloads/activations.hpp"

namespace pipeweaver::workloads {

Bytes layer_activations(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    const std::int64_t widths = 8 * network.hidden + 2 * (network.heads + 2 * network.kv_heads) * network.head_dim +
                                2 * network.heads * network.head_dim + (network.gated ? 6 : 4) * network.ffn;
    return {positions * widths / tp};
}

Bytes layer_input(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    return {2 * positions * network.hidden / tp};
}

Bytes layer_backward_workspace(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    return {4 * positions * network.ffn / tp};
}

Bytes head_activations(const Architecture& network, std::int64_t positions, std::int64_t tp) {
    return {2 * positions * network.vocab / tp};
}

Bytes head_backward_workspace(const Architecture& network, std::int64_t positions) {
    return {6 * positions * network.hidden};
}

}  // namespace pipeweaver::workloads
