// Gradients reduced bucket by bucket while the last backwards of a rank run.
#pragma once

#include "emulator/emulate/step_times.hpp"
#include "pipeweaver/emulator/gradient_traffic.hpp"

namespace pipeweaver::emulator {

/// When all gradients of a rank are reduced and its weights gathered again. Buckets are filled in the order in which
/// backwards end; each is reduced when it is full and the one before it is through. What is left after the last task
/// (weights, tied embeddings) waits for both. Without Recipe::bucket: the rank's tail after its last task.
[[nodiscard]] std::int64_t end_of_gradients(const ScheduledStep& step, const StepTimes& times, RankId rank,
                                            std::int64_t end_of_tasks);

/// The same, bucket by bucket. Without Recipe::bucket each group of weights is one bucket after the last task.
[[nodiscard]] RankGradients gradients_of_rank(const ScheduledStep& step, const StepTimes& times, RankId rank,
                                              std::int64_t end_of_tasks, std::span<const GradientFormat> formats);

}  // namespace pipeweaver::emulator
