// Diffusion transformers of the diffusers library, and of releases of their own: a row for each `_class_name`.
#pragma once

#include "pipeweaver/workloads/model.hpp"
#include "workloads/hf/part.hpp"

namespace pipeweaver::workloads::hf {

struct DiffusersRow {
    std::string_view name;
    std::string_view start_from;  ///< the catalogue's most alike
    /// The blocks, of which hidden, heads and qk_norm are set.
    void (*blocks)(const Part&, Architecture&) = nullptr;
    /// Parameters before the first and after the last block.
    std::int64_t (*embedders)(const Part&, const Architecture&) = nullptr;
    bool video = false;
    std::int64_t pixels = 8;       ///< of a side that its autoencoder makes one latent position
    std::int64_t frames = 4;       ///< that it makes one latent frame of
    double fps = 0;                ///< of the clips it is trained on; 0: no source says it
    bool packed = false;           ///< in_channels are those of a patch of 2 x 2
    std::int64_t text_tokens = 0;  ///< of the pipeline; 0: the file says max_text_seq_length
    /// Of a release of the model's own: the file says the width in place of a head's, and leaves out these.
    std::span<const Default> released{};
    bool by_width = false;  ///< the file says the width in place of a head's
};

[[nodiscard]] const DiffusersRow* find_diffusers(std::string_view name);
[[nodiscard]] std::vector<std::string> diffusers_names();

/// The model of such a file: one module. Throws Error{input}.
[[nodiscard]] Model diffusion_model(const Part& part, const DiffusersRow& row);

}  // namespace pipeweaver::workloads::hf
