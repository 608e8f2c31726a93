// What a plan is asked for: a batch on a setup, and what may be chosen.
#pragma once

#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/partition/partition_file.hpp"
#include "pipeweaver/partition/replicas.hpp"
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

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

struct Request {
    std::shared_ptr<const emulator::Setup> setup;  ///< shared by the requests and plans of a job
    std::optional<LayoutChoice> layout_choice;     ///< how the layout was chosen, for the report; none: it was given
    std::vector<workloads::Sample> samples;
    std::optional<std::int64_t> defer;                       ///< times that a sample may be left for a later step
    std::vector<workloads::Sample> deferred;                 ///< what was left now; not among `samples`
    std::vector<workloads::Microbatch> microbatches;         ///< of all replicas
    workloads::Packing packing = workloads::Packing::given;  ///< that made them
    partition::Sharing sharing = partition::Sharing::balanced;
    std::optional<CostFile> costs;      ///< of the operators; what it lacks, and none: the embedded tables
    std::optional<OptionValues> words;  ///< of `plan` and `emulate` both, that ask for it; none: options alone did not
    std::int64_t drawn_microbatches = 0;  ///< of each replica, of a batch that is drawn
    std::string batch;                    ///< where the samples came from, for the report
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> max_rounds;  ///< of each search
    JobSample sample;
    std::string partition;  ///< of partition::partitioners(), to choose from alone; empty: from all
    std::optional<partition::PartitionFile> fixed;  ///< the job's partition; none: it is chosen on the sample
    Split split = Split::automatic;
    std::string target = "free";  ///< of targets(): whose schedule is wanted; it gets half of the budget and must exist
    bool lists_by_rank = false;   ///< action lists are written for each rank alone
    bool lists = false;           ///< action lists are wanted: partitions without them (dealt modules) are not tried
    bool robust = false;          ///< of the schedules found, the one that is fastest in most cases if costs are wrong
};

/// Leaves samples for a later step where that is wanted, and makes microbatches of the others.
inline void pack(Request& request) {
    const workloads::Model& model = request.setup->model;
    if (request.defer) {
        auto parts = workloads::defer(std::move(request.samples), model, *request.defer);
        request.samples = std::move(parts.now);
        request.deferred = std::move(parts.later);
    }
    request.microbatches = workloads::pack(request.samples, model, request.packing);
}

}  // namespace pipeweaver::planner
