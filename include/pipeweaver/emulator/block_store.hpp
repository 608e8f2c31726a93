// Blocks that were evaluated before, shared by everything that asks: layers, ranks, replicas, microbatches, search
// candidates, steps and requests.
//
// A block is found by the hash of its graph and then compared in full, so that reuse never changes a result.
#pragma once

#include "pipeweaver/emulator/block.hpp"
#include "pipeweaver/emulator/store_statistics.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace pipeweaver::emulator {

/// Threads      any number may ask at once. Two that miss the same block at the same time evaluate it twice, to the
///              same value.
/// Size         what it holds is bounded; beyond that, blocks that were not asked for since the last round go first.
/// Determinism  get() is a function of the graph. Statistics depend on threads and history: they are for people.
class BlockStore {
public:
    static constexpr std::size_t default_bytes = std::size_t{64} << 20;

    /// `capacity` is in bytes of graphs and blocks; at least one block a shard is kept.
    explicit BlockStore(std::size_t capacity = default_bytes);
    ~BlockStore();
    BlockStore(BlockStore&&) noexcept;
    BlockStore& operator=(BlockStore&&) noexcept;

    /// block_of(graph). Throws as that does.
    [[nodiscard]] std::shared_ptr<const Block> get(const OperatorGraph& graph);

    using Statistics = StoreStatistics;
    [[nodiscard]] Statistics statistics() const;

private:
    struct Entries;
    std::unique_ptr<Entries> entries_;
};

}  // namespace pipeweaver::emulator
