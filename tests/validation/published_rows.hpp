// Rows of published runs, as tests start from.
#pragma once

#include "pipeweaver/validation/published_run.hpp"

namespace pipeweaver::validation::testing {

/// Predicts with the embedded costs.
[[nodiscard]] Prediction predicted(const PublishedRun& run);

/// vTrain, data/ground_truth_multi.csv: 39.1B on 512 A100, TP 8, PP 4: 14.7134 s.
[[nodiscard]] PublishedRun gpt_39b();

/// SimuMax, b200_release_v1.2_summary.json: Llama 3 70B cut to 12 layers on 8 B200, PP 2, 4 microbatches: 0.843 s,
/// 66.55 GiB.
[[nodiscard]] PublishedRun llama_70b_cut();

/// The same, DeepSeek-V2 cut to 4 layers, PP 2, EP 4, 8 microbatches: 0.4926 s, 44.7 GiB.
[[nodiscard]] PublishedRun deepseek_v2_cut();

/// Megatron-Bridge performance summary: Llama 3 70B on 64 H100, fp8, TP 4, PP 8, five virtual stages: 19.9927 s.
[[nodiscard]] PublishedRun llama_70b_fp8();

}  // namespace pipeweaver::validation::testing
