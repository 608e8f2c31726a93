#include "validation/parts.hpp"

#include "pipeweaver/base/text.hpp"

#include <array>

namespace pipeweaver::validation {

namespace {

constexpr Bandwidth slow_link{200'000'000'000};  // 400 GB/s both directions

// Fitted to seven torchtitan runs.
constexpr emulator::KernelFactors of_500_watts{.products = 1.15, .attention = 1.15, .memory_bound = 1.25};
constexpr std::string_view half_power = "as H100 of 700 W, with kernels longer as fitted to runs of 500 W";

constexpr std::array<Part, 5> parts{{
    {.gpu = "a100-40gb-sxm",
     .name = "a100_sxm_40gb",
     .device = "a100_sxm",
     .slower = {.memory_bound = 2039. / 1555},
     .about = "as A100 of 80 GB, with 1555 GB/s of memory in place of 2039"},
    {.gpu = "a800-80gb-sxm",
     .name = "a800_sxm",
     .device = "a100_sxm",
     .node_link = slow_link,
     .about = "as A100 with NVLink of 400 GB/s"},
    {.gpu = "h800-80gb-sxm",
     .name = "h800_sxm",
     .device = "h100_sxm",
     .node_link = slow_link,
     .about = "as H100 with NVLink of 400 GB/s"},
    {.gpu = "h100-sxm 96gb hbm2e 500w",
     .name = "h100_sxm_500w",
     .device = "h100_sxm",
     .slower = of_500_watts,
     .about = half_power},
    {.gpu = {},
     .note = "500 w parts are likely",
     .name = "h100_sxm_500w",
     .device = "h100_sxm",
     .slower = of_500_watts,
     .about = half_power},
}};

}  // namespace

std::optional<Part> part_named(std::string_view gpu, std::string_view note) {
    const auto name = in_lower_case(gpu), text = in_lower_case(note);
    for (const Part& part : parts)
        if (part.gpu.empty() ? contains(text, part.note) : name == part.gpu) return part;
    return std::nullopt;
}

}  // namespace pipeweaver::validation
