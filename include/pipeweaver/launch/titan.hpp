// A launch of torchtitan: its settings as one struct.
//
// Defaults     those of torchtitan 0.3.0, torchtitan/config/configs.py.
// Units        layers, heads, tokens, GPUs: numbers.
#pragma once

#include "pipeweaver/launch/said.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pipeweaver::launch {

struct TitanLaunch {
    using Number = std::optional<std::int64_t>;

    // [parallelism]
    std::int64_t replicate = 1;
    std::int64_t shard = -1;  ///< -1: the GPUs that are left
    std::int64_t tp = 1, pp = 1, cp = 1, ep = 1;
    bool sequence_parallel = true;
    std::vector<std::vector<std::string>> modules{};  ///< module_fqns_per_model_part, names of each stage
    std::int64_t first_less = 1, last_less = 1;
    Number layers_per_stage{};
    std::string schedule = "1F1B", csv{};
    std::int64_t microbatch = 1;      ///< samples
    std::string reshard = "default";  ///< fsdp_reshard_after_forward

    // [training], [debug], [activation_checkpoint]
    std::int64_t local_batch = 8, global_batch = -1;
    std::int64_t seq_len = 2048;
    bool cuda_graphs = true;  ///< training.disable_cuda_graphs turns them off
    bool typechecking = false;
    bool compiled = false;                 ///< compile.enable
    std::string checkpoint = "selective";  ///< activation-checkpoint:KIND

    // The model, which torchtitan has by name: filled in by who knows it.
    std::int64_t layers = 0, heads = 0, kv_heads = 0, experts = 0;
    bool tied_embeddings = false;

    std::vector<std::string> not_read{};
    std::vector<std::string> not_known{};  ///< settings on the command line that torchtitan refuses

    std::int64_t shards(std::int64_t gpus) const { return shard > 0 ? shard : gpus / (replicate * tp * pp * cp); }
    /// Replicas of the data.
    std::int64_t dp(std::int64_t gpus) const { return replicate * shards(gpus); }
};

/// Reads what a launch says. Throws Error{input} as read_megatron().
[[nodiscard]] TitanLaunch read_titan(const SaidLaunch& said);

/// Whether read_titan() reads the name.
[[nodiscard]] bool is_titan_setting(const std::string& name);

/// A setting of the launch.
using TitanMember = std::variant<std::int64_t TitanLaunch::*, TitanLaunch::Number TitanLaunch::*, bool TitanLaunch::*,
                                 std::string TitanLaunch::*, std::vector<std::vector<std::string>> TitanLaunch::*>;

/// By which name it is said: "parallelism.tensor_parallel_degree"; the first of several. A switch is turned to `value`.
[[nodiscard]] std::string_view titan_name(const TitanMember& member, bool value = true);

/// All names that it reads: "parallelism.tensor_parallel_degree", ...
[[nodiscard]] std::vector<std::string> titan_names();

/// What a schedule of torch.distributed.pipelining is like.
struct TitanSchedule {
    std::string_view name;      ///< as torchtitan is told
    bool single = false;        ///< one stage a rank
    bool v = false;             ///< two stages a rank, placed like a V
    std::string_view policy{};  ///< of search::policies(), that its memory is taken from; empty: none is like it
};

/// The schedule of that name, letter case aside; nothing for unknown ones.
[[nodiscard]] std::optional<TitanSchedule> titan_schedule(std::string_view name);
[[nodiscard]] const std::vector<TitanSchedule>& titan_schedules();

/// Stages of a launch, or the rule.
struct TitanStages {
    std::int64_t stages = 0;
    std::vector<std::vector<std::string>> modules{};  ///< of each
    std::string why_not{};
};
[[nodiscard]] TitanStages stages_of(const TitanLaunch& launch);

}  // namespace pipeweaver::launch
