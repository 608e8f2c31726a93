// Options that name model, cluster, layout and batch, for every command that needs them.
#pragma once

#include "apps/options.hpp"
#include "pipeweaver/planner/plan.hpp"

#include <optional>
#include <string>

namespace pipeweaver::apps {

/// A model of the catalogue, or a model file. Throws Error{input}, Error{io}.
[[nodiscard]] workloads::Model find_model(const std::string& name);

/// --tp, --pp or --dp: a number, "auto", or left out.
struct Degree {
    std::optional<std::int64_t> number;
    bool automatic = false;
};

struct WorkloadOptions {
    std::string model, cluster, batch, dataset;
    Degree tp, pp, dp;
    std::optional<std::int64_t> microbatches;

    void add_to(Options& options);

    /// Model, cluster, layout, samples and microbatches; `seed` decides what is drawn. A layout is chosen where it is
    /// asked for, or where none is given and the model's published one does not divide the GPUs. Throws Error{input},
    /// Error{io}, Error{limit} where no layout fits.
    planner::Request request(std::uint64_t seed, const Executor& execute) const;

    /// What of a layout is fixed, and the batch to judge others by.
    planner::LayoutRequest layout_request(const planner::Request& request, std::uint64_t seed) const;

private:
    emulator::Layout layout(const planner::Request& request) const;
    bool choose(const planner::Request& request) const;
    void fill(planner::Request& request, std::uint64_t seed) const;
};

/// Adds `--split`.
void add_split(Options& options, std::string& split);

/// What it says; nothing said: automatic.
[[nodiscard]] planner::Split split_of(const std::string& split);

}  // namespace pipeweaver::apps
