// Options that name model, cluster, layout and batch, for every command that needs them.
#pragma once

#include "apps/options.hpp"
#include "pipeweaver/planner/plan.hpp"

#include <optional>
#include <string>

namespace pipeweaver::apps {

/// A model of the catalogue, or a model file. Throws Error{input}, Error{io}.
[[nodiscard]] workloads::Model find_model(const std::string& name);

struct WorkloadOptions {
    std::string model, cluster, batch, dataset;
    std::optional<std::int64_t> tp, pp, dp, microbatches;

    void add_to(Options& options);

    /// Model, cluster, layout, samples and microbatches; `seed` decides what is drawn. Throws Error{input}, Error{io}.
    planner::Request request(std::uint64_t seed) const;

private:
    emulator::Layout layout(const workloads::Model& of, const workloads::Cluster& on) const;
};

}  // namespace pipeweaver::apps
