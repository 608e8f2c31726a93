// How a job's flags launch it: all that a launch file says, whatever the framework, as data and as a file of a plan.
//
// Format       "pipeweaver-launch/1": docs/formats.md.
#pragma once

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/units.hpp"
#include "pipeweaver/launch/split.hpp"
#include "pipeweaver/planner/rung.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::launch {

/// The file of a plan's folder.
inline constexpr const char* launch_file = "launch.json";

/// Degrees of parallelism, and what replicas share out.
struct Degrees {
    std::int64_t tp = 1, cp = 1, pp = 1, dp = 1, ep = 1;
    std::int64_t expert_tp = 1;  ///< GPUs that share out each expert
    int zero = 1;
    bool sequence_parallel = true;
    bool dispatches_by_node =
        false;          ///< a token's copies travel once to each node with its experts, not to each expert
    bool ring = false;  ///< context parallel GPUs pass keys and values round; else they exchange heads
    bool overlaps_gradients = false;  ///< gradients are reduced in buckets beside backwards
    bool gathers_ahead = false;       ///< updated weights are gathered beside the next step's forwards

    std::int64_t gpus() const { return tp * cp * pp * dp; }
};

/// What a vision encoder is, for frameworks that build encoders of their own tables alone.
struct VisionSizes {
    std::int64_t layers = 0, hidden = 0, ffn = 0;
    bool native_sizes = false;  ///< images keep their own sizes; else all are scaled to one

    friend bool operator==(const VisionSizes&, const VisionSizes&) = default;
};

struct Launch {
    std::string rung;    ///< of the ladder: now, data, flags, layout
    std::string target;  ///< what --target calls the runtime that it was planned for
    std::string way;     ///< in words
    std::string model;
    std::string device;
    Degrees degrees{};

    std::string language{};             ///< name of the language model's module
    Split split{};                      ///< of all modules but dealt ones; encoders and generators are said in full
    std::vector<std::string> dealt{};   ///< modules whose items are dealt over all GPUs
    std::vector<std::string> frozen{};  ///< modules of which nothing is trained
    std::map<std::string, workloads::Adapters> adapters{};       ///< of modules by name of which these alone are
    bool trains_projectors = false, freezes_projectors = false;  ///< some; both: of several
    std::map<std::string, std::string> kinds{};   ///< of modules by name, as workloads::name_of() says them: "vit"
    std::map<std::string, VisionSizes> vision{};  ///< of modules by name that are vision encoders
    std::vector<std::string> letters{};  ///< of the language model's layers, see hybrid_letters(); none: it has none
    std::string deals{};  ///< "model.vision_dp_when_cp=true": with it images are dealt; empty: they are not
    workloads::EncoderRecompute encoder_recompute = workloads::EncoderRecompute::as_backbone;
    std::string encoder_switch{};  ///< "--recompute-vision": with it that is so; empty: it is the default
    bool fused_attention = true;
    bool bf16 = true;  ///< weights have 16 bits
    bool fused_loss =
        true;  ///< the cross-entropy is one kernel (Transformer Engine's), which keeps its logits in 16 bits

    bool has_pipeline = true;
    std::string policy{};                           ///< 1f1b, interleaved, gpipe
    std::string recompute{};                        ///< of all stages, or "by-rank"
    std::vector<std::string> recompute_of_ranks{};  ///< under "by-rank" alone
    std::vector<std::int64_t> microbatches{};       ///< of each replica
    std::int64_t most_tokens = 0;                   ///< of the language model, in the largest microbatch

    std::int64_t shapes = 1;  ///< of the microbatches, see planner::shapes_of()

    Duration step{}, makespan{};
    std::vector<Bytes> peak{};  ///< of each pipeline rank
    Bytes usable{};             ///< of a GPU, headroom kept free
    /// Of a parameter's optimizer state, where some of it is on the host.
    std::int64_t state_on_gpu = 0, state_on_host = 0;

    std::int64_t all_microbatches() const;
    std::size_t fullest() const;  ///< the pipeline rank with the highest peak
    bool has_experts() const;
};

/// `most_tokens`, padded to a multiple of the GPUs that a sequence is shared out to: of tp, with context parallelism of
/// 2 cp tp, as Megatron Core and torchtitan want it. Packed microbatches are padded to the same multiple.
[[nodiscard]] std::int64_t padded_tokens(const Launch& launch);

/// What of a launch is trained, as frameworks are told it: of encoders together, of projectors, of the language model.
struct Tuned {
    bool freezes_encoders = false, freezes_projectors = false,
         freezes_language = false;                  ///< beside adapters the second
    std::optional<workloads::Adapters> adapters{};  ///< of all that is not frozen; none: it is trained whole
    std::string why_not{};                          ///< why these do not say it; empty: they do

    bool is_usual() const { return !freezes_encoders && !freezes_projectors && !freezes_language && !adapters; }
};
[[nodiscard]] Tuned tuned_of(const Launch& launch);

/// How the rung is launched. Pre: rung.launched.
[[nodiscard]] Launch launch_of(const planner::Rung& rung);

/// The file, keys in fixed order. parse_launch(to_json(x)) equals x.
[[nodiscard]] std::string to_json(const Launch& launch);

/// Reads what to_json() wrote. Throws Error{input} with file and key for what is not as the format says or contradicts
/// itself, Error{io}.
[[nodiscard]] Launch read_launch(const std::filesystem::path& path);
[[nodiscard]] Launch parse_launch(const JsonDocument& document);

}  // namespace pipeweaver::launch
