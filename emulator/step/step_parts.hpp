// Parts of build_step() that stand on their own.
#pragma once

#include "emulator/pricing/stage_memory.hpp"
#include "pipeweaver/emulator/step_problem.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace pipeweaver::emulator {

/// What an operator outside of passes takes on a rank: an exchange of replicas, a transfer, the optimizer.
[[nodiscard]] Duration time_of(const StepInput& input, const Operator& op, RankId rank);

/// How a message goes from one rank of the replica to another, on each GPU.
[[nodiscard]] costdb::PointToPoint between_ranks(const Setup& setup, RankId from, RankId to, Bytes message);

/// Until it has arrived; its error and wire as Transfer's.
struct TransferLag {
    Duration time{};
    double error = 0;
    Duration wire{};
};
/// `tp` GPUs of a group each send their part; without sequence parallelism it is gathered on them.
[[nodiscard]] TransferLag transfer_lag(const Setup& setup, const costdb::PointToPoint& sent, std::int64_t tp);

/// The operator of tail_of() that buckets divide, where there are any.
inline constexpr std::string_view reduction_in_buckets = "reduce gradients";

/// What a rank runs after its last backward, but for the optimizer; gradients in one piece.
[[nodiscard]] std::vector<Operator> tail_of(const StepInput& input, const RankParameters& rank);

/// What all ranks run after their last backward: gradients' collectives and the optimizer.
[[nodiscard]] std::vector<Operator> ends_of_ranks(const StepInput& input);

/// Fills in ranks (capacity, static memory with receive buffers, tails) and the optimizer's time. `largest_message` is
/// per rank, per (chain, direction). Ends at the first rank whose static memory exceeds its device.
[[nodiscard]] std::optional<MemoryShortage> add_ranks(const StepInput& input,
                                                      const std::vector<std::vector<Bytes>>& largest_message,
                                                      StepProblem& step);

}  // namespace pipeweaver::emulator
