// Costs of layers that were priced before: by replicas of a step, by steps, by requests.
#pragma once

#include "pipeweaver/emulator/pass_cost.hpp"
#include "pipeweaver/emulator/store_statistics.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace pipeweaver::emulator {

/// What decides a layer's cost where model, cluster, layout, costs, training and what-if are given.
struct LayerKey {
    std::size_t module = 0;
    workloads::BlockKind kind{};
    PassKind pass{};
    double device = 1;                                             ///< what-if factor of the rank
    std::vector<std::pair<std::int64_t, std::int64_t>> sequences;  ///< lengths and contexts, sorted

    friend auto operator<=>(const LayerKey&, const LayerKey&) = default;
};

/// Threads      any number may ask at once.
/// Size         bounded; entries that were not asked for lately go first.
/// Pre          all that ask have the same model, cluster, layout, costs, training and what-if.
class LayerStore {
public:
    static constexpr std::size_t default_bytes = std::size_t{256} << 20;

    explicit LayerStore(std::size_t capacity = default_bytes);
    ~LayerStore();

    [[nodiscard]] std::optional<PassCost> find(const LayerKey& key);
    void insert(const LayerKey& key, const PassCost& cost);
    [[nodiscard]] StoreStatistics statistics() const;

private:
    struct Entries;
    std::unique_ptr<Entries> entries_;
};

}  // namespace pipeweaver::emulator
