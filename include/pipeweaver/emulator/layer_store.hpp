// Costs of layers that were priced before: by replicas of a step, by steps, by requests.
#pragma once

#include "pipeweaver/costdb/kinds.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace pipeweaver::emulator {

class StageStore;
struct PassCost;
enum class PassKind : std::uint8_t;

/// What a pass works on, in an order of its own: equal passes have equal sequences.
struct Sequences {
    std::vector<std::pair<std::int64_t, std::int64_t>> all;  ///< lengths and contexts; whole ones, then others, sorted
    std::size_t whole = 0;                                   ///< PassShape::whole

    friend auto operator<=>(const Sequences&, const Sequences&) = default;
};

/// What decides a layer's cost where model, cluster, layout, costs, training and what-if are given.
struct LayerKey {
    std::size_t module = 0;
    workloads::BlockKind kind{};
    PassKind pass{};
    double device = 1;            ///< what-if factor of the rank
    std::int64_t tp = 1, cp = 1;  ///< of the module's layout
    bool ring = false;            ///< of its context parallelism: copies beside a ring are none
    Sequences sequences{};
    costdb::Dtype products{};  ///< what the block's are in
    double sparsity = 0;       ///< of its attention

    friend auto operator<=>(const LayerKey&, const LayerKey&) = default;
};

/// How often a store knew what it was asked for. The numbers depend on threads and history: they are for people, and
/// no result may depend on them.
struct StoreStatistics {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;  ///< lists of operators that were priced: two that miss the same at once price it twice
    std::uint64_t evictions = 0;
    std::size_t entries = 0, bytes = 0;  ///< now
};

/// Keeps the costs of layers that were priced. Keys are compared in full, and equal keys have equal costs: what was
/// priced before changes no result.
///
/// Threads      any number may ask at once.
/// Size         bounded by the capacity, and stages by as much again; layers that were not asked for lately go first.
/// Pre          all that ask have the same model, cluster, layout, costs, training and what-if; partitions, layouts of
///              modules, replicas, targets and batches may differ.
class LayerStore {
public:
    static constexpr std::size_t default_bytes = std::size_t{256} << 20;

    explicit LayerStore(std::size_t capacity = default_bytes);
    ~LayerStore();

    [[nodiscard]] std::optional<PassCost> find(const LayerKey& key);
    void insert(const LayerKey& key, const PassCost& cost);
    [[nodiscard]] StoreStatistics statistics() const;

    /// What whole stages of these layers cost and hold.
    [[nodiscard]] StageStore& stages();

    /// The store of what partitions and shares of replicas are judged by (judging(Recipe)), for setups whose own layers
    /// cost otherwise: one of its own, made when it is asked for, or the one that share_judging() was told.
    [[nodiscard]] LayerStore& judging();
    /// Pre: the setups of all stores that share it are judged alike; it was not asked for yet.
    void share_judging(std::shared_ptr<LayerStore> store);

private:
    struct Shards;
    std::unique_ptr<Shards> shards_;
    std::unique_ptr<StageStore> stages_;
};

}  // namespace pipeweaver::emulator
