// What each layer of a model takes on its own: to hold against a profile or a published figure.
#pragma once

#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/emulator/setup.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::emulator {

/// What a repeated block takes on one GPU of a rank, in the mean over microbatches. Embeddings, heads and projectors
/// are not in it.
struct LayerTime {
    std::string module;
    std::int64_t layer = 0;
    Duration forward{};
    Duration backward{};         ///< of a frozen module its input gradient; 0 where no gradient arrives
    Duration exposed_traffic{};  ///< of both: compute waits for what GPUs exchange
    Bytes kept;                  ///< activations between the two if nothing is recomputed; 0 without a backward
};

/// The times of all layers, module by module. `shapes` says per microbatch and module what the microbatch has in it,
/// and is not empty. Throws what the cost database throws.
[[nodiscard]] std::vector<LayerTime> layer_times(const Setup& setup, const std::vector<std::vector<PassShape>>& shapes);

}  // namespace pipeweaver::emulator
