// What the copies of a rank's weights exchange of their gradients, bucket by bucket, as it is and in fewer bytes.
//
// Model        Kernels that compress or decompress a bucket move its bytes through memory, by the device's bandwidth,
//              on the compute stream of its rank: what compute does later is as much later. Buckets are exchanged one
//              after the other. Other ranks are not delayed; memory for what is left out of sums is not counted.
#pragma once

#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/schedule/solution.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace pipeweaver::emulator {

/// How a bucket goes. fp8: one scale in fp32 for 128 values, summed after an exchange. top_k: the largest hundredth,
/// each with its place, from every copy to those that need its sum; what is left out is added to the next step's.
enum class GradientFormat : std::uint8_t { as_is, bf16, fp8, top_k };
inline constexpr std::size_t gradient_formats = 4;

/// "as it is", "bf16", "fp8", "top-k 1 %".
[[nodiscard]] std::string_view name_of(GradientFormat format);

/// The formats that these gradients can take on this device: no more bytes than they have, fp8 only where the device
/// has it. The first is as_is.
[[nodiscard]] std::vector<GradientFormat> formats_for(const Setup& setup);

/// A bucket in one format.
struct GradientWay {
    Duration compress{}, exchange{}, decompress{};
    Bytes sent{};  ///< the exchange's message
};

struct GradientBucket {
    Duration ready{};  ///< its gradients are there, where nothing is compressed
    std::int64_t parameters = 0;
    std::vector<GradientWay> ways{};  ///< one for each format
};

struct RankGradients {
    Duration end_of_tasks{};
    Duration rest{};                        ///< what follows: weights gathered, tied embeddings
    std::vector<GradientBucket> buckets{};  ///< in the order of their exchanges: `ready` does not fall
};

/// When the rank is through with gradients and weights, each bucket in this way of its own. Pre: one for each bucket.
[[nodiscard]] Duration end_of(const RankGradients& rank, std::span<const std::uint8_t> ways);

/// Of each rank of a scheduled step, in these formats. Where gradients are not reduced in buckets each group of weights
/// is one, that is ready after the last task. Throws Error{input} for ZeRO 2 and 3, whose passes reduce gradients.
/// Pre: as emulate(); the first format is as_is.
[[nodiscard]] std::vector<RankGradients> gradient_traffic(const StepInput& input, const StepProblem& step,
                                                          const schedule::Schedule& schedule,
                                                          std::span<const GradientFormat> formats);

}  // namespace pipeweaver::emulator
