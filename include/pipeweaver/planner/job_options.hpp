// Options that say what partition a job has, and what it is chosen on: the same for every command that cuts a model.
#pragma once

#include "pipeweaver/base/options.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <optional>
#include <string>

namespace pipeweaver::planner {

struct JobOptions {
    std::string partition;  ///< a name, or a partition file
    std::string sample;     ///< seeds, batch files, or "batch"
    std::string module_tp;  ///< layouts of modules: "vit=1,..."

    /// What happens without a partition, and without a sample.
    void add_to(OptionTable& options, const std::string& no_partition = "the best on the sample",
                const std::string& no_sample = "five other seeds; with --batch: batch");

    /// Fills in how the job is cut: the partition, fixed by a file or to be chosen, and the sample that it
    /// is chosen on. Nothing said: of a data set five drawn batches of other seeds, of a batch file that file.
    /// Throws Error{input}, Error{io}. Pre: workload.job() made `job`.
    void fill(Job& job, const WorkloadOptions& workload) const;

    /// The sample that `text` names, else as fill().
    [[nodiscard]] JobSample read_sample(const Job& job, const WorkloadOptions& workload) const;
};

/// Seeds like "101-105,108". Throws Error{input}.
[[nodiscard]] std::vector<std::uint64_t> parse_seeds(const std::string& text);

// Options that say which samples a step takes, which replica each microbatch goes to, and what feeds it: the same for
// `plan` and `emulate`.

struct BatchOptions {
    std::string assignment, deferred, loader;
    std::optional<std::int64_t> defer;

    void add_to(OptionTable& options);

    /// How the job shares its batches out, what loads them, and how often a sample may be left. Throws Error{input},
    /// Error{io}.
    void fill(Job& job) const;

    /// The samples that the step before left come first; then some of all may be left again, and the others are packed.
    /// Throws Error{input}, Error{io}. Pre: WorkloadOptions::batch() made `batch`.
    void carry(const Job& job, Batch& batch) const;
};

}  // namespace pipeweaver::planner
