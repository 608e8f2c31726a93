// From a model cut into stages, and a batch cut into units, to the schedule problem of one replica's step.
//
// A chain is a row of stages that a unit of work passes one after the other: a whole model for Megatron-like
// partitions, one module for modality-aware ones. A unit is what one pass takes: a microbatch, or some of its items.
#pragma once

#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/pass_cost.hpp"
#include "pipeweaver/emulator/training.hpp"
#include "pipeweaver/schedule/problem.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace pipeweaver::emulator {

struct Chain {
    std::string name;                 ///< of its tasks' module field
    std::vector<StageLayers> stages;  ///< passed in this order; numbered on from the chain before
};

/// What one pass through a chain takes.
struct Unit {
    std::vector<PassShape> shapes;   ///< per module of the model; no lengths: no work in that module
    std::vector<std::size_t> items;  ///< indices into Microbatch::items
};

/// Everything that a step's schedule problem is made of.
struct StepInput {
    std::string name;
    const workloads::Model* model = nullptr;
    const workloads::Cluster* cluster = nullptr;
    const costdb::CostDatabase* costs = nullptr;
    const WhatIf* what_if = nullptr;  ///< nothing: all as it is
    std::int64_t replica = 0;         ///< which one it is, for `what_if`
    LayerStore* store = nullptr;      ///< of costs that others priced; nothing: none
    Layout layout;
    Training training;
    std::vector<Chain> chains;                          ///< in topological order of their modules
    std::vector<std::vector<std::vector<Unit>>> units;  ///< per microbatch, per chain
    std::vector<Recompute> modes{Recompute::none, Recompute::half, Recompute::full};
    bool priced_split = true;          ///< false: no backward will be split, and StepProblem::split stays empty
    bool split_backward = false;       ///< I and W in place of every B that can be split
    bool input_gradient_frees = true;  ///< false: what a forward holds is held until W (PyTorch's runtime)
    std::int64_t receive_buffers = 2;  ///< tensors that may wait on a rank, per direction and chain
    std::optional<Bytes> capacity;     ///< of every rank; nothing: what is usable of the cluster's device
};

/// A tensor that goes from one task to another.
struct Transfer {
    std::size_t edge = 0;                         ///< index into Problem::edges
    Bytes message;                                ///< per GPU
    std::int64_t rows = 0;                        ///< positions
    std::int64_t columns = 0;                     ///< width
    std::optional<costdb::PointToPoint> asked{};  ///< what it was priced as; nothing: it stays on its rank
};

/// What a rank holds all the time.
struct StaticMemory {
    Bytes weights, gradients, optimizer;
    Bytes workspace;  ///< gradients of one layer in bf16, kept by Transformer Engine
    Bytes buffers;    ///< receive buffers
    Bytes total() const { return weights + gradients + optimizer + workspace + buffers; }
    friend bool operator==(const StaticMemory&, const StaticMemory&) = default;
};

/// What a pair's backward can be split into; see split.hpp.
struct SplitBackward {
    std::vector<schedule::Mode> modes;  ///< in place of the pair's own; none: it is not worth splitting
    PassCost input, weight;             ///< of I and W in mode 0
};

struct StepProblem {
    schedule::Problem problem;
    std::vector<PassCost> cost;        ///< per task, in mode 0
    std::vector<PassCost> recompute;   ///< per task: a full forward of its layers again; zero for forwards, and where
                                       ///< StepInput has one mode and no splits
    std::vector<std::size_t> unit;     ///< per task: index into StepInput::units[microbatch][chain]
    std::vector<std::size_t> chain;    ///< per task
    std::vector<SplitBackward> split;  ///< per pair
    std::vector<Transfer> transfers;
    std::vector<StaticMemory> memory;  ///< per rank
    double model_flops = 0;  ///< forward and backward of this replica, nothing counted twice for recomputation
    Duration optimizer{};    ///< after all ranks have met
};

/// Builds the problem. Throws Error{limit} where a rank's static memory exceeds its device (rank, GiB short)
/// and what the cost database throws.
[[nodiscard]] StepProblem build_step(const StepInput& input);

/// Share of a device's memory that tensors may take; the rest is CUDA context, communication buffers and what the
/// allocator reserves above what it gives out (2-8 % in published runs).
constexpr double usable_memory = 0.92;

/// That share of the cluster's device.
[[nodiscard]] Bytes usable_bytes(const workloads::Cluster& cluster);

}  // namespace pipeweaver::emulator
