// The modules of each stage by the names that frameworks on PyTorch's pipelines give them, and where stages may lie.
#pragma once

#include "pipeweaver/schedule/problem.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emit {

/// What a framework calls the modules of a decoder, and of the one encoder that feeds it.
struct ModuleNames {
    std::string_view framework;  ///< as errors call it
    std::string_view encoder;    ///< whole, on the first stage
    std::string_view text;       ///< before the decoder's names, in a model without an encoder
    std::string_view nested;     ///< and in one with it
    std::string_view embedding;
    std::string_view layers = "layers", norm = "norm";
    std::string_view head = "lm_head";           ///< without a prefix
    std::vector<std::string_view> everywhere{};  ///< of the decoder, on every stage
};

/// torchtitan 0.3.0: the names of its models, as pipeline_vlm puts them.
[[nodiscard]] const ModuleNames& torchtitan_names();

/// NeMo Automodel (August 2026) with models of Hugging Face; those of Qwen's vision models where there is an encoder.
[[nodiscard]] const ModuleNames& automodel_names();

/// A list of names for each stage, or why a framework cannot have them so.
struct NamedStages {
    std::vector<std::vector<std::string>> stages;
    std::string why_not{};
};

/// The decoder is the module that the last stage ends with. The embedding goes to the first stage, also where that has
/// none of the decoder's layers; norm and head to the last. `why_not` names the rule and the stage: a stage does not
/// say its layers or has none, an encoder is not whole on the first stage, or there are two. Pre: stages in order.
[[nodiscard]] NamedStages named_stages(const ModuleNames& names, const std::vector<schedule::Stage>& stages);

/// The schedule of PyTorch whose stages lie so: "PipelineScheduleMulti" round the ranks, "ZBVZeroBubble" there and
/// back; empty: no schedule's do.
[[nodiscard]] std::string_view placement_name(const std::vector<std::size_t>& stage_to_rank, std::size_t ranks);

}  // namespace pipeweaver::emit
