// The numbers that were fitted to published training runs: all there are, in one table.
#pragma once

#include <optional>
#include <string_view>

namespace pipeweaver::emulator {

/// Of one device. A factor of 1 and a time of 0 are not fitted.
struct FittedConstants {
    double compute = 1;             ///< time in a step / time alone, of GEMMs, attention, memory-bound kernels
    double collectives = 1;         ///< exposed time in a step / time alone, of collectives inside a layer
    double network_share = 1;       ///< of the network's nominal speed that collectives reach
    double host_us = 0;             ///< the host's own time for a pass of a layer
    double grouped_gemm_share = 1;  ///< of the peak that the experts' GEMMs reach
    double expert_layer_us = 0;     ///< of routing, for a layer with experts, a microbatch, forward and backward
    std::string_view rows;          ///< that they were fitted on, and the mean error before and after
};

/// Nothing: no run of that device was at hand.
[[nodiscard]] std::optional<FittedConstants> fitted_constants(std::string_view device);

}  // namespace pipeweaver::emulator
