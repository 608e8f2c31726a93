// Options that say what partition a job has, and what it is chosen on: the same for every command that cuts a model.
#pragma once

#include "pipeweaver/planner/workload_options.hpp"

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

}  // namespace pipeweaver::planner
