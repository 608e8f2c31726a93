// What is planned for: a job, which stays, and a batch of it, which every step brings anew.
//
//   job      model, machine, layout, recipe and costs (the setup), partition or the sample it is chosen on, packing,
//            target: made once, from options or from a document, validated and priced; passed on as it is
//   batch    the samples of one step and their microbatches
//   replica  the share of a batch that one pipeline runs
//   step     a replica's microbatches on the partition, as a schedule problem
#pragma once

#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/emulator/layer_times.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/loader/loader.hpp"
#include "pipeweaver/partition/asked_layouts.hpp"
#include "pipeweaver/partition/partition_file.hpp"
#include "pipeweaver/partition/replicas.hpp"
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

class Time;

/// Which backwards may run as an input gradient, that others wait for, and a weight gradient, that may come later.
enum class Split : std::uint8_t {
    automatic,  ///< those that make the step shorter
    never,
    always  ///< all that can be; those whose parts run without a gap are whole again in the end
};

/// A database of a user's own measurements.
struct CostFile {
    std::string path;
    std::string sha256;  ///< of its content, unzipped
};

/// Batches that stand for those of a job: what its partition and its opponents are chosen on.
struct JobSample {
    partition::ChosenOn name;
    std::vector<std::vector<workloads::Microbatch>> batches;  ///< each of one replica; none: the batch that is planned
};

/// The samples of a step.
struct Batch {
    std::string name;                                 ///< where the samples came from, for reports
    std::vector<workloads::Sample> samples;           ///< that the step takes
    std::vector<workloads::Sample> deferred;          ///< that are left for a later step; not among `samples`
    std::vector<std::string> dropped;                 ///< ids of samples that no microbatch can hold, left out
    std::vector<workloads::Microbatch> microbatches;  ///< of all replicas
    /// Which replica takes which microbatches, where that is given; none: the job's sharing decides.
    std::optional<partition::Shares> shares;
    bool drawn = false;                       ///< of a data set: into microbatches of a number that no layout changes
    std::int64_t drawn_microbatches = 0;      ///< then, where it was drawn for each replica: of each
    std::optional<std::size_t> drawn_into{};  ///< then, where microbatches were drawn, not samples: of all replicas
};

/// What becomes of samples that `batch` does not take: " (2 left for a later step, 3 larger than a microbatch
/// dropped)"; nothing where it takes all.
[[nodiscard]] std::string not_taken(const Batch& batch);

/// What stays for all batches of a training job.
struct Job {
    std::shared_ptr<const emulator::Setup> setup;  ///< shared with copies of the job
    std::optional<LayoutChoice> layout_choice;     ///< how the layout was chosen, for the report; none: it was given
    std::optional<CostFile> costs;                 ///< of the operators; what it lacks, and none: the embedded tables
    std::optional<OptionValues>
        words;  ///< options that ask for the same, a chosen layout included; none: no options did
    workloads::Packing packing = workloads::Packing::given;
    bool equal_microbatches = false;    ///< of all replicas, see workloads::Pipelines
    std::optional<std::int64_t> defer;  ///< times that a sample may be left for a later step
    partition::Sharing sharing = partition::Sharing::balanced;
    std::optional<loader::Loader> loader{};  ///< that brings the samples; none: they are there when they are needed
    JobSample sample;
    std::string partition;            ///< of partition::partitioners(), to choose from alone; empty: from all for jobs
    partition::AskedLayouts layouts;  ///< that modules shall have in it
    std::optional<partition::PartitionFile> fixed;  ///< the job's partition; none: it is chosen on the sample
    Split split = Split::automatic;
    std::vector<emulator::Recompute> recompute;  ///< that passes choose from; none: as menu_of() says
    bool offloads = false;                       ///< then they may offload, too
    /// Of targets(): what runs the job. A schedule of its own gets half of the budget and must exist; partitions that
    /// its action lists cannot carry are not tried.
    std::string target = "free";
    std::vector<std::string> also{};  ///< of targets(): a schedule is searched for them, too
    bool lists_by_rank = false;       ///< action lists are written for each rank alone
    bool robust = false;  ///< of the schedules found, the one that is fastest in most cases if costs are wrong
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> max_rounds;  ///< of each search
    std::int64_t training_tokens = 0;         ///< of the whole run, to tell what it takes; 0: not asked

    /// Where a layout runs microbatches.
    [[nodiscard]] workloads::Pipelines pipelines(const emulator::Layout& layout) const;

    /// A batch of these samples: those too long are dropped and some are left for a later step where that is wanted,
    /// the others are packed.
    [[nodiscard]] Batch batch(std::string name, std::vector<workloads::Sample> samples) const;

    /// A batch of the job as its samples are packed for another layout.
    [[nodiscard]] Batch in_layout(const Batch& batch, const emulator::Layout& layout) const;
};

/// Whether an order is searched for the job: where its target is told no more than launch flags, for one that is asked
/// for beside it.
[[nodiscard]] bool searches_order(const Job& job);

/// Of `part` of a plan's time for what is done once: less where there are many replicas, each of which takes some
/// however little there is.
[[nodiscard]] double beside_replicas(double part, const Job& job, std::size_t threads);

/// Whether a plan of the job has a schedule for a target that has one of its own: where an order is searched for the
/// job's target, for all of them.
[[nodiscard]] bool has_schedule_for(const Job& job, const std::string& target);

/// What is assumed of the job's model and of the batch's sizes, sentences.
[[nodiscard]] std::vector<std::string> assumptions(const Job& job, const Batch& batch);

/// A batch of a job: what options ask one plan for.
struct Request {
    Job job;
    Batch batch;
};

// How far microbatches of a step differ in shape: what an allocator cuts its memory up for.

/// How many different shapes the microbatches have: by the positions of an encoder's or a generator's items and, where
/// the backbone is no language model, the lengths of its sequences. Text is packed up to one length and does not count.
[[nodiscard]] std::size_t shapes_of(const workloads::Model& model, const std::vector<workloads::Microbatch>& all);

// What each layer of a job's model takes on a batch.

/// All layers in the mean over the batch's microbatches, each whole on one GPU of a rank. Throws as
/// emulator::layer_times(). Pre: the batch has a microbatch.
[[nodiscard]] std::vector<emulator::LayerTime> layers_of(const emulator::Setup& setup, const Batch& batch);

}  // namespace pipeweaver::planner
