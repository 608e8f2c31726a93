// Vision and audio encoders of Hugging Face configurations: a row for each `model_type`, or name of a tower.
#pragma once

#include "pipeweaver/workloads/model.hpp"
#include "workloads/hf/part.hpp"

namespace pipeweaver::workloads::hf {

/// What the width of an encoder's feed-forward is.
enum class Width {
    intermediate,           ///< intermediate_size
    ratio,                  ///< mlp_ratio x width
    ratio_or_intermediate,  ///< the first of the two that the file says, or its class
    output                  ///< out_hidden_size: the intermediate size is its merger's
};

struct VisionRow {
    std::string_view type;
    std::span<const Default> defaults{};  ///< of the configuration class
    bool embed = false;                   ///< embed_dim is its width: hidden_size is the language model's
    Width ffn = Width::intermediate;
    bool gated = false;
    bool windows = false;     ///< window_size, fullatt_block_indexes
    bool qk_norm = false;     ///< unless qk_normalization says otherwise
    bool native = false;      ///< images keep their size
    std::int64_t frames = 1;  ///< that share a patch, where temporal_patch_size does not say it
    bool globals = false;     ///< further blocks, num_global_layers
};

struct AudioRow {
    std::string_view type;
    std::span<const Default> defaults{};  ///< of the configuration class
    double frames_per_second = 50;        ///< positions of the encoder
    std::int64_t token_reduction = 2;     ///< of them that make a token
    bool conformer = false;               ///< blocks of two feed-forwards, an attention and a convolution
};

[[nodiscard]] const VisionRow* find_vision(std::string_view type);
[[nodiscard]] const AudioRow* find_audio(std::string_view type);
[[nodiscard]] std::vector<std::string> vision_types();

[[nodiscard]] Architecture vision_encoder(const Part& part, const VisionRow& row);
[[nodiscard]] Architecture audio_encoder(const Part& part, const AudioRow& row);

}  // namespace pipeweaver::workloads::hf
