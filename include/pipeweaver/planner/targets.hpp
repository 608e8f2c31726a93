// Runtimes that a schedule can be for, by what they can run: a table. A new framework is a row here and one in emit,
// each with a file where it has rules or files of its own.
#pragma once

#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/schedule/problem.hpp"
#include "pipeweaver/schedule/solution.hpp"
#include "pipeweaver/schedule/stage_table.hpp"
#include "pipeweaver/search/search.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

/// How finely a runtime can be told what to recompute: all stages the same, those of a rank, or each pass. Schedules
/// that targets have of their own go as far as by rank.
enum class RecomputeBy : std::uint8_t { step, rank, pass };

/// What a runtime's users have it do by launch flags and configuration alone.
struct Launch {
    std::vector<std::string> partitions;  ///< of partition::partitioners()
    std::vector<std::string> policies;
    bool blocks = true;  ///< recomputes the first N blocks of each stage; else all, none or the cheap parts
    /// What its own word `selective` does where attention is fused, see selective_of(). Plans choose it in the place of
    /// `selective`; they do without where it is core attention, which is run again and leaves out nothing then.
    emulator::Recompute selective = emulator::Recompute::selective;
    bool by_rank = true;
    int least_zero = 0, most_zero = 3;  ///< stages of ZeRO
    bool replicas_alone = false;        ///< every GPU trains the whole model: there are no other layouts
    bool exchanges_heads = false;       ///< but those in which GPUs share samples of text by exchanging heads (Ulysses)
    bool spreads_encoders =
        true;                   ///< else encoders are whole on the first stage, what follows the backbone on the last
    bool splits_groups = true;  ///< else interleaved microbatches come in whole groups, one for each pipeline rank
    /// Who has the allocator's segments expand, as shapes that vary ask for: "the files do"; empty: nobody.
    std::string_view segments_expand_as{};
    /// Who runs known schedules where that one runs plans alone, and has them not expand; empty: nobody else.
    std::string_view known_schedules_by{};
    bool replicates = false;  ///< ZeRO 0, too, without context parallel GPUs
    bool sends_keys = false;  ///< GPUs that share samples send keys round: they exchange no heads
    std::string cut{};        ///< the flags that say it, and so below
    std::string order{};
    std::string recompute{};
};

struct Target {
    std::string name;
    std::string option;  ///< what --target calls it: the files that it is emitted as
    std::string about;   ///< one line
    std::string folder;  ///< of its files in a plan, its key in plan.json and the end of its problem's name; empty: it
                         ///< is the plan itself, and has no title or file

    // What reports call it, and hold its schedule against.
    std::string title{};                  ///< "PyTorch"
    std::string file{};                   ///< below `folder`, that holds its schedule
    std::vector<std::string> compared{};  ///< policies that its users would run without a plan

    bool groups = false;            ///< modules on GPUs of their own are shown beside its plans
    bool launches_grids = false;    ///< then, those that it launches itself: see on_groups()
    bool action_lists = true;       ///< a plan is what action lists carry: no known schedule that is not launched
    bool selective_passes = false;  ///< a pass of a plan may recompute selectively; none, half, full and blocks any may
    bool offloaded_passes = false;  ///< activations of a pass may lie in the host's memory until its backward
    Launch launch{};                ///< what it runs without a plan
    /// Whose encoders its launches have, of frameworks::builders(): the first with a row for the model. None: encoders
    /// lie as the language model does.
    std::vector<std::string_view> builders{};
    std::string recipe{};  ///< of emulator::recipes(), of plans where none is said; empty: the first

    // The orders that it runs.
    bool searches = true;                 ///< false: it has an order of its own, and the fastest of `policies` is taken
    std::vector<std::string> policies{};  ///< that it runs; none: any

    // What its steps are built from.
    bool one_chain = false;           ///< of stages; else it runs any partition
    bool fixed_shapes = false;        ///< in a pipeline all microbatches of all replicas are padded to the largest
    bool equal_microbatches = false;  ///< all replicas have equally many
    RecomputeBy recompute = RecomputeBy::pass;
    bool input_gradient_frees = true;  ///< see emulator::StepInput
    bool buffers_for_all = false;      ///< receive buffers for all microbatches at once
    bool first_input_gradient = true;  ///< of measured stages, see schedule::StageOptions; models know what has one

    /// The first rule that a problem breaks, with the task; none: it can be run. Null: any can.
    std::optional<std::string> (*inexpressible)(const schedule::Problem& problem) = nullptr;
    /// What its schedules must keep. Null: nothing. Pre: inexpressible() has nothing to say.
    search::Rules (*rules)(const schedule::Problem& problem) = nullptr;
    /// The rule that an order breaks, with the task, or none. Null: none ever.
    std::optional<std::string> (*breaks)(const schedule::Problem& problem,
                                         const schedule::Schedule& schedule) = nullptr;
};

/// Whether a plan has a schedule of its own for the target beside that of every replica: one for all of them where
/// shapes are fixed, else that of replica 0.
[[nodiscard]] inline bool has_own_plan(const Target& target) { return !target.folder.empty(); }

/// Whether it runs the plan itself, every replica's searched schedule, on any cut.
[[nodiscard]] inline bool runs_plan(const Target& target) { return target.searches && !has_own_plan(target); }

/// What the launched word `selective` does, with attention that is fused or not. The word of what users launch, in
/// plans, launch files and launches that are read alike.
[[nodiscard]] emulator::Recompute selective_of(const Launch& launch, bool fused_attention);

/// Whether it shares out as much in that layout: nothing where samples and experts are shared inside a replica alone.
[[nodiscard]] bool launches_zero(const Launch& launch, int zero, const emulator::Layout& layout);

/// Whether its users launch jobs in that layout, whatever the way.
[[nodiscard]] bool launches_in(const Target& target, const emulator::Layout& layout);

/// Whether they launch jobs of that model in it.
[[nodiscard]] bool launches_in(const Target& target, const emulator::Layout& layout, const workloads::Model& model);

/// Whether it runs the orders of that policy.
[[nodiscard]] bool runs_policy(const Target& target, std::string_view policy);

/// Whether problems can be solved for it: its schedules are searched under rules of its own.
[[nodiscard]] inline bool has_own_rules(const Target& target) { return has_own_plan(target) && target.searches; }

/// "free", for pipeweaver.torch, which runs whatever the problem allows, and after it the others.
[[nodiscard]] const std::vector<Target>& targets();

/// The target of that name. Throws Error{input} where there is none, naming the nearest.
[[nodiscard]] const Target& target(std::string_view name);

/// What --target may be told, of the targets that `which` holds of; null: of all.
[[nodiscard]] std::vector<std::string> target_options(bool (*which)(const Target&) = nullptr);

/// The name of the target that --target calls so; empty: "free", for pipeweaver.torch. Pre: of target_options().
[[nodiscard]] std::string target_called(std::string_view option);

/// What stages that the target runs are like, beside what is `asked` of them.
[[nodiscard]] schedule::StageOptions stage_options(schedule::StageOptions asked, const Target& target);

/// The target's rules for a problem. Throws Error{limit} "NAME: why" where it cannot run it.
[[nodiscard]] search::Rules rules_of(const Target& target, const schedule::Problem& problem);

}  // namespace pipeweaver::planner
