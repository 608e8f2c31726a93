// What sources count when they print TFLOP/s or MFU: the column `flops` of a table of runs names one of these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::validation {

enum class FlopsCounted : std::uint8_t {
    model,           ///< products of forward and backward, attention under its mask
    full_attention,  ///< the same with attention over the whole square of a sequence
    hardware,        ///< the same as full_attention, with what is computed again
    parameters       ///< the same as model without attention: 6 for each parameter of a product and token
};
inline constexpr std::size_t flops_counted = 4;

/// "model", "full-attention", "hardware", "parameters".
[[nodiscard]] std::string_view name_of(FlopsCounted counted);
[[nodiscard]] std::optional<FlopsCounted> flops_called(std::string_view name);
[[nodiscard]] std::vector<std::string> flops_names();

/// FLOPs of a step on all GPUs, by FlopsCounted; nothing: not known of such runs.
using StepFlops = std::array<std::optional<double>, flops_counted>;

}  // namespace pipeweaver::validation
