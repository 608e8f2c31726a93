// Options that say which samples a step takes, and which replica each microbatch goes to: the same for `plan` and
// `emulate`.
#pragma once

#include "pipeweaver/base/options.hpp"
#include "pipeweaver/planner/job.hpp"

#include <optional>
#include <string>

namespace pipeweaver::planner {

struct BatchOptions {
    std::string assignment, deferred;
    std::optional<std::int64_t> defer;

    void add_to(OptionTable& options);

    /// How the job shares its batches out, and how often a sample may be left. Throws Error{input}.
    void fill(Job& job) const;

    /// The samples that the step before left come first; then some of all may be left again, and the others are packed.
    /// Throws Error{input}, Error{io}. Pre: WorkloadOptions::batch() made `batch`.
    void carry(const Job& job, Batch& batch) const;
};

}  // namespace pipeweaver::planner
