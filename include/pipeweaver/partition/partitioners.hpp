// The ways to cut a model, by name: a table, as search::policies() is one of orders. A new way is a file and a row.
//
// dip       DIP (arXiv 2504.14145, section on the modality-aware partitioner): each module is a chain of its own; a
//           sub-microbatch is the smallest with 95 % of the best efficiency; a module that takes T_i gets
//           floor(T_i / smallest T) segments of equally many layers on each rank. Uneven counts: earlier chunks get one
//           layer more.
// modules   As dip, but with unit sizes and segments of which a job chooses the best on its sample; by itself the first
//           of per_module_candidates().
// megatron  One chain of all modules, cut by parameters into ranks * chunks_per_rank stages (the largest stage as small
//           as possible), microbatches whole: what Megatron-LM's 1F1B and interleaved schedules run.
// balanced  The same chain cut by the time that the sample's microbatches take: the best that a fixed chain can do on
//           average, and what an engineer tunes a Megatron-LM layout to by hand. Where a rank could not hold its
//           stages, even under full recomputation, it is cut again with the longest stage as short as the memory
//           allows.
// uniform   The same chain with as many layers in every stage, as Megatron-LM cuts it if nothing else is said; where
//           they are not divisible, embedding and head count as a layer each
//           (--account-for-embedding-in-pipeline-split, ...). No plan tries it: it is what frameworks do to a single
//           network.
//
// first-stage  One chain with what users of torchtitan, NeMo Automodel and Megatron-LM run for multimodal models: the
//           backbone is cut by time over all stages, unevenly, since modules before it (encoders) lie whole on the
//           first stage and modules after it (generators, heads) whole on the last. The longest stage is as short as
//           can be; the first and the last may have no layer of the module that is cut.
// three-phase  Encoders first, data parallel over all GPUs of the replica, each of which holds them whole and takes
//           whole items; then the backbone, with its heads, as one chain cut by time; then the encoders' backward
//           (Megatron-LM #4784, on its way in 2026). Throws Error{input} where there is no encoder, where a generator
//           follows the backbone, and with ZeRO 2 or 3. emulator/step/phases.hpp says what its step consists of.
#pragma once

#include "pipeweaver/partition/asked_layouts.hpp"
#include "pipeweaver/partition/partition.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::partition {

/// Real microbatches that a partition is judged by; not empty.
using Sample = std::vector<workloads::Microbatch>;

/// What a partition is cut for.
enum class Use : std::uint8_t {
    job,       ///< a job chooses it, to run it with action lists
    opponent,  ///< engineers run it without a planner
    framework  ///< a runtime that runs one chain of stages is given it
};

/// Chunks on each rank that a partitioner is asked for, unless it decides on them itself.
inline constexpr std::array<std::int64_t, 4> chunk_counts{1, 2, 4, 8};

/// How many stages there can be, and what they would be more than, as an error says it.
struct MostStages {
    std::int64_t count = 0;
    std::string of;  ///< "the model's 40 layers"
};

struct Partitioner {
    std::string name;
    std::string about;            ///< one line
    bool one_chain = false;       ///< cuts all modules as one chain, which any framework with stages in a row runs
    bool own_chunks = false;      ///< decides on the chunks of a rank itself
    bool own_chains = false;      ///< each module is a chain of its own, with the layout that Setup::modules says
    bool for_jobs = false;        ///< offered to every job
    bool for_frameworks = false;  ///< given to runtimes of one chain
    int as_opponent = 0;          ///< its place among what engineers run; 0: none run it

    /// Pre: Cutting::why_not() has nothing to say; Cutting::make() asks it.
    Partition (*cut)(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);

    /// All that a job is offered of it in place of one with each count of chunks. Null: these.
    std::vector<Partition> (*offer)(const emulator::Setup& setup, const Sample& sample) = nullptr;

    /// Why it does not apply to the setup; none: it does. Null: to any.
    std::optional<std::string> (*why_not)(const emulator::Setup& setup) = nullptr;

    /// The most stages that it cuts the model into. Null: as many as the model has layers.
    MostStages (*most_stages)(const workloads::Model& model) = nullptr;

    /// Cutting::make().
    [[nodiscard]] Partition make(const emulator::Setup& setup, const Sample& sample,
                                 std::int64_t chunks_per_rank) const;
};

/// A partitioner with the chunks that it is asked for; 0: it decides.
struct Cutting {
    const Partitioner* by = nullptr;
    std::int64_t chunks_per_rank = 0;

    /// Why it cannot cut the setup's model: it does not apply, or there are more stages than it can make. None: it can.
    [[nodiscard]] std::optional<std::string> why_not(const emulator::Setup& setup) const;

    /// Throws Error{input} with what why_not() says.
    [[nodiscard]] Partition make(const emulator::Setup& setup, const Sample& sample) const;
};

/// All partitioners, in the order of their introduction.
[[nodiscard]] const std::vector<Partitioner>& partitioners();

/// The names of partitioners(), in that order.
[[nodiscard]] std::vector<std::string> partitioner_names();

/// The partitioner of that name. Throws Error{input} for an unknown one, naming the nearest.
[[nodiscard]] const Partitioner& partitioner(std::string_view name);

/// What may be cut for a use, in the order in which it is tried: the rows of that use, or the one that is named. Cuts
/// into more stages than a row can make of the model are left out; of one that is named or is an opponent's, and can
/// make none, the one with the fewest stays: it says why.
[[nodiscard]] std::vector<Cutting> cuttings(Use use, const emulator::Setup& setup, std::string_view name = {});

/// The partitions of these cuttings. Throws Error{input} where a partitioner does not apply.
[[nodiscard]] std::vector<Partition> partitions_for(Use use, const emulator::Setup& setup, const Sample& sample,
                                                    std::string_view name = {});

/// One cutting, modules in the layouts that are asked for and else in the job's. Throws Error{input} where a layout is
/// asked for and the partitioner has no chains for modules.
[[nodiscard]] Partition cut_as_asked(const emulator::Setup& setup, const Sample& sample, const Cutting& cutting,
                                     const AskedLayouts& asked);

/// What a job chooses from: partitions_for(Use::job) where modules may have its layout, and partitions with a chain for
/// each module in every other layout that is asked for or may be tried. Throws Error{input} where a layout is asked for
/// and the named partitioner has no chains for modules.
[[nodiscard]] std::vector<Partition> partitions_for_job(const emulator::Setup& setup, const Sample& sample,
                                                        std::string_view name, const AskedLayouts& asked);

/// The partitions "modules" that a job is offered beside `dip`. Each module is a chain of its own here, too, in units
/// of the size that dip takes or a part of it, and in one to four times as many segments, in the modules' proportions,
/// or in at most 2, 4 or 8. Layers are cut so that the fullest rank has least to do. Of equal partitions there is one.
[[nodiscard]] std::vector<Partition> per_module_candidates(const emulator::Setup& setup, const Sample& sample);

/// Why the setup's encoders cannot be dealt over all GPUs of a replica; none: they can.
[[nodiscard]] std::optional<std::string> why_not_dealt(const emulator::Setup& setup);

}  // namespace pipeweaver::partition
