// What each layer of a model takes on its own: to hold against a profile or a published figure.
#pragma once

#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/emulator/setup.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::emulator {

/// A repeated block on one GPU of a rank, without embeddings, heads and projectors; the mean over microbatches.
struct LayerTime {
    std::string module;
    std::int64_t layer = 0;
    Duration forward{};
    Duration backward{};         ///< of a frozen module its input gradient; 0 where no gradient arrives
    Duration exposed_traffic{};  ///< of both: compute waits for what GPUs exchange
    Bytes kept;                  ///< activations between the two if nothing is recomputed; 0 without a backward
};

/// All layers, module by module. `shapes`: per microbatch, per module, what it has in it; not empty. Throws what the
/// cost database throws.
[[nodiscard]] std::vector<LayerTime> layer_times(const Setup& setup, const std::vector<std::vector<PassShape>>& shapes);

}  // namespace pipeweaver::emulator
