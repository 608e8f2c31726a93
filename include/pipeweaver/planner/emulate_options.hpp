// What `emulate` may be asked for, by name: the same for the command line and its configuration file.
#pragma once

#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/jitter_options.hpp"
#include "pipeweaver/planner/job_options.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::planner {

/// A request; or why options, or the files that they name, make none.
struct MadeRequest {
    std::optional<EmulationRequest> request{};
    std::optional<Error> why_not{};
};

struct EmulateOptions {
    WorkloadOptions workload;
    BatchOptions batch;
    JobOptions job;  ///< without a sample partitions are cut by the batch itself
    JitterOptions jitter;
    std::string policy, schedule, what_if, layers, target, sample_packing, assigned;
    std::optional<StepRecompute> recompute{};  ///< none: the least with which the step fits
    std::optional<std::int64_t> shapes{}, compile_steps{};
    std::optional<Duration> compile_time{};  ///< of a shape
    std::int64_t chunks = 1;
    bool no_reuse = false, any_memory = false;

    /// Adds all of them, those of `workload` first.
    void add_to(OptionTable& options);

    /// Throws Error{input} for options that exclude each other, and as WorkloadOptions::request() and
    /// emulator::read_what_if().
    EmulationRequest request(std::uint64_t seed, const Executor& execute) const;

    /// The request where to have none is an answer, for who tries one setting after the other. Throws Error{io}.
    MadeRequest try_request(std::uint64_t seed, const Executor& execute) const;

private:
    void check() const;
    std::pair<WorkloadOptions, BatchOptions> as_planned() const;
    void fill_cut(Job& of, EmulationRequest& request) const;
};

// What would make a step fit that does not: each change is emulated before it is told.
//
// Order        ZeRO stages, recomputation, both; then fewer replicas with more GPUs each.
// Determinism  A function of the options and the request: not of the executor.

/// Options in place of those that were said, with which the step fits.
struct FittingChange {
    std::string options;  ///< "--zero 3"
    Bytes peak{};         ///< of the fullest rank
};

/// Of each kind the first that fits. Pre: `request` is what the options ask for, and does not fit.
[[nodiscard]] std::vector<FittingChange> fitting_changes(const EmulateOptions& options, const EmulationRequest& request,
                                                         std::uint64_t seed, const Executor& execute);

}  // namespace pipeweaver::planner
