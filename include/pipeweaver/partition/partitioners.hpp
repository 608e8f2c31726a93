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

#include "pipeweaver/partition/partition.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::partition {

/// Real microbatches that a partition is judged by; not empty.
using Sample = std::vector<workloads::Microbatch>;

struct Partitioner {
    std::string name;
    std::string about;  ///< one line
    std::vector<std::int64_t>
        chunks;              ///< per rank, that a plan tries; 0: the partitioner decides; none: no plan tries it
    bool one_chain = false;  ///< cuts all modules as one chain, which any framework with stages in a row runs

    /// Throws Error{input} if the model has fewer layers than stages, or where the partitioner does not apply.
    Partition (*make)(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
};

/// All partitioners, in the order of their introduction.
[[nodiscard]] const std::vector<Partitioner>& partitioners();

/// The names of partitioners(), in that order.
[[nodiscard]] std::vector<std::string> partitioner_names();

/// The partitioner of that name. Throws Error{input} for an unknown one, naming the nearest.
[[nodiscard]] const Partitioner& partitioner(std::string_view name);

/// The partitions that a plan tries: with a name those of that partitioner alone, else of all; the fewest chunks of
/// each first. Cuts into more stages than the model has layers are left out.
[[nodiscard]] std::vector<Partition> partitions(const emulator::Setup& setup, const Sample& sample,
                                                std::string_view name = {});

/// The partitions "modules" that a job is offered beside `dip`. Each module is a chain of its own here, too, in units
/// of the size that dip takes or a part of it, and in one to four times as many segments, in the modules' proportions.
/// Of equal partitions there is one.
[[nodiscard]] std::vector<Partition> per_module_candidates(const emulator::Setup& setup, const Sample& sample);

/// Why the setup's encoders cannot be dealt over all GPUs of a replica; none: they can.
[[nodiscard]] std::optional<std::string> why_not_dealt(const emulator::Setup& setup);

/// The partitions that a job chooses from: with a name those of that partitioner alone ("modules":
/// per_module_candidates()), else dip, per_module_candidates(), balanced with 1, 2, 4 and 8 chunks and, where a rank
/// has several GPUs and encoders can be dealt over them, three-phase with as many chunks. Cuts into more stages than
/// the model has layers are left out.
[[nodiscard]] std::vector<Partition> candidates(const emulator::Setup& setup, const Sample& sample,
                                                std::string_view name = {});

}  // namespace pipeweaver::partition
