// The published schedules as orders of tasks; each decides the order on every rank and knows nothing of times or
// memory.
//
//   gpipe   rank 0  |F0 F1 F2 .. .. B0 B1 B2|      1f1b   rank 0  |F0 F1 .. B0 F2 B1 .. B2|
//           rank 1  |.. F0 F1 F2 B0 B1 B2 ..|             rank 1  |.. F0 B0 F1 B1 F2 B2 ..|
#pragma once

#include "search/instance/flat.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pipeweaver::search {

/// Per rank, or why the method does not apply to the problem.
struct Order {
    std::vector<std::vector<std::uint32_t>> ranks;
    std::string why_not;
};

/// All forwards, then all backwards, each by microbatch and item. Y. Huang et al., GPipe, NeurIPS 2019.
/// A rank with several stages runs all microbatches of one before those of the next (J. Lamy-Poirier, Breadth-First
/// Pipeline Parallelism, MLSys 2023): a microbatch at a time would wait for each round through the ranks.
[[nodiscard]] Order gpipe_order(const Flat& flat);

/// One forward, one backward: rank number p of P runs the forwards of P - 1 - p microbatches, then a forward and a
/// backward in turn. D. Narayanan et al., PipeDream-Flush in "Memory-efficient pipeline-parallel DNN training", ICML
/// 2021. For problems where every rank has the tasks of one stage.
[[nodiscard]] Order one_forward_one_backward_order(const Flat& flat);

/// Interleaved 1F1B: stage s on rank s mod P, V stages a rank, microbatches in groups of P that pass all V stages of
/// a rank in turn; warm-up of min(2 (P - 1 - p) + (V - 1) P, M V) forwards. D. Narayanan et al., "Efficient large-scale
/// language model training on GPU clusters using Megatron-LM", SC 2021, and Megatron-LM's schedules.py.
[[nodiscard]] Order interleaved_order(const Flat& flat);

/// Tasks of a stage by microbatch and direction, in reading order: what the tables above are made of.
class Cells {
public:
    explicit Cells(const Flat& flat);

    /// Empty unless every task has a stage and a microbatch. Those of phases around the chain have neither, but a
    /// module: they are in no cell.
    const std::string& why_not() const { return why_not_; }

    std::size_t stages() const { return stage_.size(); }
    std::size_t microbatches() const { return microbatch_.size(); }

    /// Tasks of the stage with this index (by stage number) and the microbatch with this index (by number).
    std::span<const std::uint32_t> forwards(std::size_t stage, std::size_t microbatch) const;
    std::span<const std::uint32_t> backwards(std::size_t stage, std::size_t microbatch) const;

    /// Microbatches, by index, that have a task of the stage: only they count where a warm-up is counted.
    std::vector<std::size_t> present(std::size_t stage) const;

    /// Ranks that run tasks of the stage: one in all problems that these methods apply to.
    const std::vector<std::uint32_t>& ranks(std::size_t stage) const { return stage_ranks_[stage]; }

private:
    const std::vector<std::uint32_t>& cell(std::size_t stage, std::size_t microbatch, bool late) const {
        return cells_[(stage * microbatch_.size() + microbatch) * 2 + (late ? 1 : 0)];
    }

    std::string why_not_;
    std::vector<std::int64_t> stage_, microbatch_;  // numbers in use, ascending
    std::vector<std::vector<std::uint32_t>> cells_, stage_ranks_;
};

/// A stage of a chain that has one stage on each rank, as 1F1B sees it.
struct ChainStage {
    std::size_t stage = 0;
    std::size_t position = 0;               ///< stages before it in the chain, by the depth of its first forward
    std::vector<std::size_t> microbatches;  ///< those that have a task of it
    std::size_t warm_up = 0;  ///< of these, run forward before the first backward: as many as ranks after it
};

/// Puts what is around the chain (dealt modules) first on its rank, or last where it comes late.
void put_around(const Flat& flat, Order& order);

/// The order that `fill` writes for the rank of each stage. Not applicable unless every rank has the tasks of one
/// stage.
[[nodiscard]] Order order_along_the_chain(
    const Flat& flat, const Cells& cells,
    const std::function<void(const ChainStage& at, std::vector<std::uint32_t>& mine)>& fill);

}  // namespace pipeweaver::search
