// Whether a launch fits: its step, emulated, and what every rank holds at its fullest.
//
// Units        bytes of a GPU; ranks are pipeline ranks.
// Determinism  A function of the launch, what is asked and the seed.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/units.hpp"
#include "pipeweaver/launch/doubt.hpp"
#include "pipeweaver/launch/megatron.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/launch/sharded.hpp"
#include "pipeweaver/launch/titan.hpp"
#include "pipeweaver/planner/emulate_options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::launch {

/// What is said beside the launch.
struct FitAsked {
    std::string cluster;  ///< "h100-sxm:64"
    std::int64_t gpus = 0;
    workloads::Model model;  ///< whose backbone's sizes the launch has
    std::string dataset{};   ///< what samples are drawn from; empty: text of the launch's sequence length
    std::string recipe{};    ///< how the framework trains; empty: the framework's own
    std::int64_t seed = 1;
    std::string batch{};     ///< a file of samples, in place of a data set
    std::string assigned{};  ///< a plan's assignment of these samples; empty: packed and handed out as they come
    std::string samples{};   ///< the batch file itself, which `batch` is then what it is called; empty: it is read
    bool is_named = false;   ///< a recipe or configuration by name sets what the launch does not say
    std::shared_ptr<const planner::Anchor> anchor{};  ///< a measured launch that corrects memory; null: none
    bool text_alone = false;  ///< where no samples are said they hold text, whatever else the model reads
};

/// What a GPU holds beside what the emulation counts.
struct Besides {
    Bytes buckets{};          ///< of gradients on their way
    Bytes gathered{};         ///< weights that were gathered and are not yet given up, of as many as there are
    std::int64_t copies = 1;  ///< groups that each hold all shards, where the emulation has one
    std::int64_t shards = 1;  ///< of a weight, in the emulation
    int zero = 0;             ///< what is in shards, of those
    /// Bytes of a parameter that the optimizer's update takes beside gradients and states, of as many of the states;
    /// 0: none.
    std::int64_t update = 0, state = 0;
    Bytes most_update{};                               ///< of the update, at most; 0: any
    Bytes reference{};                                 ///< a copy of the model as it was
    Bytes last_rank{};                                 ///< on the last pipeline rank: logits of a teacher
    bool refers = false;                               ///< such a copy lies as the weights do
    std::int64_t together = 1;                         ///< layers that are worked out again before one runs backward
    Bytes scores{};                                    ///< of attention that is not fused, with what its softmax keeps
    Bytes engine{};                                    ///< what generates answers on the same GPU
    bool engine_sleeps = false;                        ///< while the model trains
    Bytes asleep{};                                    ///< what it holds then
    bool frees_weights = false, frees_states = false;  ///< while it generates
    bool frees_reference = false;                      ///< likewise the copy
    bool keeps_gradients = false;                      ///< then, too
    std::int64_t masters = 0;                          ///< bytes of a parameter's state that are not freed with it
};

/// A launch as the planner emulates it.
struct Run {
    planner::EmulateOptions options;
    std::string target = "megatron";     ///< of planner::targets(): whose rules of packing samples are kept
    std::vector<std::string> assumed{};  ///< where it is not all that the launch says, sentences
    std::string says_tokens{};           ///< what of the launch says how many tokens a microbatch holds
    std::vector<Doubt> doubts{};         ///< the same in short, where memory may be other than is said
    std::optional<Bytes> logits{};       ///< what the loss of a rank holds of them at most; none: it is not known
    Besides besides{};
    bool fp8 = false;  ///< counted in 16 bits; the fit's recipe is called "NAME-fp8" then
};

/// Whether attention keeps its scores: Transformer Engine's that is not fused, and Megatron Core's own. "auto" takes a
/// fused kernel where there is one.
[[nodiscard]] bool keeps_scores(const MegatronLaunch& launch);

/// What of a launch is not emulated: a stage without anything but the embedding or the loss, say.
struct NotEmulated {
    std::string setting;  ///< as users write it
    std::string why;
};

/// What of the launch of this model is not emulated; none: all is. Pre: no rule is broken; `launch` is settled().
[[nodiscard]] std::optional<NotEmulated> why_not_emulated(const MegatronLaunch& launch, const workloads::Model& model);
[[nodiscard]] std::optional<NotEmulated> why_not_emulated(const TitanLaunch& launch, const workloads::Model& model);
/// None: all is.
[[nodiscard]] std::optional<NotEmulated> why_not_emulated(const ShardedLaunch& launch, const workloads::Model& model);

/// Of each replica, which hold as much as all of a step.
[[nodiscard]] std::int64_t emulated_microbatches(const MegatronLaunch& launch, std::int64_t gpus);

/// Pre: as above, and all is emulated.
[[nodiscard]] Run run_of(const MegatronLaunch& launch, const FitAsked& asked);

/// The same without samples and microbatches. Of `asked` data set and seed do not matter.
[[nodiscard]] Run run_without_batch(const MegatronLaunch& launch, const FitAsked& asked);

[[nodiscard]] Run run_of(const TitanLaunch& launch, const FitAsked& asked);

/// Pre: with_model(), and the length of a sample is said.
[[nodiscard]] Run run_of(const ShardedLaunch& launch, const FitAsked& asked);

struct RankUse {
    Bytes peak, weights, gradients, optimizer, buffers, activations, transient;
    std::int64_t layers = 0;  ///< of the language model
    Bytes apart{};            ///< of the weights: shards beside whole ones
};

struct Fit {
    std::vector<RankUse> ranks;  ///< each in the replica where it is the fullest
    std::size_t fullest = 0;     ///< the rank with the largest peak
    Bytes usable{};              ///< of a GPU
    Bytes device_memory{};       ///< of a GPU, all of it
    std::string device;
    std::string holds{};               ///< "vit 0.41 B, llm 32.76 B parameters; 8192 tokens of text", of these
    Duration step{};                   ///< of the microbatches that were emulated
    std::int64_t microbatches = 0;     ///< that were emulated, of the replica with the most
    std::vector<std::string> assumed;  ///< sentences
    std::vector<Doubt> doubts{};
    std::optional<Bytes> logits{};  ///< of Run
    std::string
        recipe{};  ///< by which it was emulated: of those that ship, the one that it is made of; "deepspeed" and
                   ///< "torch-replicas" are made of torch-fsdp2-eager

    bool fits() const { return ranks[fullest].peak <= usable; }
    Bytes short_by() const { return ranks[fullest].peak - usable; }
};

/// What the run holds; or why it is not emulated.
struct MadeFit {
    std::optional<Fit> fit{};
    std::optional<Error> why_not{};
};

/// Emulates the run. Throws Error{io}, and as planner::try_emulate().
[[nodiscard]] MadeFit try_fit(const Run& run, std::int64_t seed, const Executor& execute);

/// The fit where one is needed. Throws why there is none, and as try_fit().
[[nodiscard]] Fit fit_of(const Run& run, std::int64_t seed, const Executor& execute);

/// A change of a launch with which it constructs and fits.
struct Change {
    std::string say;  ///< the settings, as a user writes them
    Fit fit;
};

/// Changes that make it fit, the least intrusive kind first: recomputation, the optimizer shared out, layers moved off
/// the fullest rank, more GPUs a replica, a smaller microbatch; one of each kind. Pre: it does not fit.
[[nodiscard]] std::vector<Change> fitting_changes(const MegatronLaunch& as_said, const FitAsked& asked, const Fit& fit,
                                                  const std::string& framework, const Executor& execute);
[[nodiscard]] std::vector<Change> fitting_changes(const TitanLaunch& launch, const FitAsked& asked, const Fit& fit,
                                                  const std::string& framework, const Executor& execute);

/// Recomputation, ZeRO 3, a microbatch of one sample.
[[nodiscard]] std::vector<Change> fitting_changes(const ShardedLaunch& launch, const FitAsked& asked, const Fit& fit,
                                                  const std::string& framework, const Executor& execute);

}  // namespace pipeweaver::launch
