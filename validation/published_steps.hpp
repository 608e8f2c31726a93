// Steps of published runs, by the kernels that their framework had.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "validation/training_run.hpp"

#include <optional>
#include <string>

namespace pipeweaver::validation {

/// What a step is priced with.
struct StepCosts {
    const TrainingRun& run;
    const costdb::CostDatabase& costs;
    emulator::FittedConstants fitted;
};

/// Megatron-LM and Megatron-DeepSpeed of 2021-23 on A100: attention not fused, tensor-parallel all-reduces and the
/// gradients' all-reduce exposed, launched from Python, 800 Gb/s between nodes.
[[nodiscard]] double unfused_step_ns(const StepCosts& step);

/// Megatron-Core with Transformer Engine: flash attention, sequence parallelism, distributed optimizer; experts and
/// latent attention too. H100: fp8 products with casts, gradients' reduction hidden, context parallelism in a hidden
/// ring. B200: nothing hidden, context parallelism by all-to-all.
[[nodiscard]] double fused_step_ns(const StepCosts& step);

/// Peak of allocated memory on the fullest GPU in such a step, in 16-bit without recomputation. Nothing: such runs are
/// not known, with the reason in `why`.
[[nodiscard]] std::optional<Bytes> peak_memory(const TrainingRun& run, std::string& why);

}  // namespace pipeweaver::validation
