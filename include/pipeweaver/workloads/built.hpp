// How a module lies on the GPUs of its pipeline rank, and how a framework builds the encoders of a family of models.
//
//   rank of tp 2 x cp 2        split           tensor parallel    whole
//   GPU 0 | GPU 1  (cp 0)      1/2   1/2       1/2   1/2          all   all     of the weights
//   GPU 2 | GPU 3  (cp 1)      positions: a    all images on both groups, or, where they are dealt, some of them on
//                              part on each    each
//
// Threads      any number of calls at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::workloads {

/// What the tensor parallel GPUs of a rank have of a module.
enum class OnTensorRanks : std::uint8_t {
    as_job,         ///< parts of the weights; positions as the job's recipe says
    all_positions,  ///< parts of the weights, all positions: without sequence parallelism, whatever the recipe says
    whole           ///< all weights and all positions: each does the same
};

/// What the context parallel groups of a rank have of a module's sequences.
enum class OnContextRanks : std::uint8_t {
    split,  ///< a part of each
    each,   ///< all of them: each group does the same
    dealt   ///< some whole ones, in their order, equally many
};

struct Lies {
    OnTensorRanks tensor = OnTensorRanks::as_job;
    OnContextRanks context = OnContextRanks::split;

    bool is_as_job() const { return tensor == OnTensorRanks::as_job && context == OnContextRanks::split; }

    friend bool operator==(const Lies&, const Lies&) = default;
};

/// What of the encoders' blocks runs again where the job recomputes.
enum class EncoderRecompute : std::uint8_t {
    as_backbone,  ///< as much as of the language model's
    never,        ///< nothing, whatever is said of the language model
    always        ///< all of it, whatever is said
};

/// Heads of InternViT-6B, which no power of two divides. Megatron-LM's examples/multimodal pads them and no others
/// (core_v0.16.1 config.py:224: InternViT-300M keeps its 16).
inline constexpr std::int64_t internvit_6b_heads = 25;

/// What is in front of the backbone lies whole on its first stage in all rows.
struct Built {
    std::string_view framework;   ///< "megatron-bridge"
    std::string_view families{};  ///< "qwen3_vl|qwen3_vl_moe": of Model::family
    std::string_view source{};    ///< version, files and lines; empty: no source was read
    Lies lies{};
    bool has_own_layers = false;  ///< of other names than the language model's, by which adapters are placed
    EncoderRecompute recompute = EncoderRecompute::as_backbone;
    std::string_view recompute_by{};  ///< setting of a launch that turns it: of `never` as the backbone where it is on,
                                      ///< of `always` never where it is off; empty: none
    bool recompute_turned = false;    ///< it is set so, and `recompute` follows
    std::int64_t first_layers = 0;    ///< of the backbone, that its first stage must have
    std::int64_t most_cp = 0;         ///< context parallel groups that it is built for; 0: any
    bool averages_gradients = false;  ///< of what lies whole, over tensor parallel GPUs once a step, as Megatron Core
                                      ///< does for weights that are marked average_gradients_across_tp_domain
    bool loss_per_token = false;      ///< with context parallelism it turns on calculate_per_token_loss itself
    std::int64_t pads_heads =
        0;                     ///< encoders with so many heads get more, to what tensor parallel GPUs divide; 0: none
    std::string_view deals{};  ///< the switch with which images are dealt over context parallel groups, off by
                               ///< default; empty: none

    friend bool operator==(const Built&, const Built&) = default;
};

/// "as-backbone", "never", "always", in the order of EncoderRecompute.
[[nodiscard]] std::vector<std::string> encoder_recompute_names();
[[nodiscard]] std::string name_of(EncoderRecompute how);

/// None: of another name.
[[nodiscard]] std::optional<EncoderRecompute> encoder_recompute_called(std::string_view name);

/// Whether the row is of that family.
[[nodiscard]] bool is_of(const Built& row, std::string_view family);

/// The row with its encoders recomputed otherwise, as `recompute_by` says. Pre: it is not turned.
[[nodiscard]] Built recomputing_otherwise(const Built& row);

/// "--recompute-vision", "--vit-gradient-checkpointing false": what turns it; empty: it is not turned.
[[nodiscard]] std::string recompute_switch(const Built& row);

/// The row with its images dealt over context parallel groups. Pre: it has a switch for it.
[[nodiscard]] Built dealing(const Built& row);

}  // namespace pipeweaver::workloads
