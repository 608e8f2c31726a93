#include "pipeweaver/emulator/layer_store.hpp"

#include "emulator/pricing/bounded_store.hpp"
#include "pipeweaver/base/random.hpp"

#include <bit>

namespace pipeweaver::emulator {

namespace {

std::uint64_t hash_of(const LayerKey& key) {
    std::uint64_t state = mix(key.module ^ mix((std::uint64_t{static_cast<std::uint8_t>(key.kind)} << 8) ^
                                               static_cast<std::uint8_t>(key.pass)));
    state = mix(state ^ std::bit_cast<std::uint64_t>(key.device));
    for (const auto& [length, context] : key.sequences)
        state = mix(state ^ mix((static_cast<std::uint64_t>(length) << 32) ^ static_cast<std::uint64_t>(context)));
    return state;
}

}  // namespace

struct LayerStore::Entries {
    BoundedStore<LayerKey, PassCost> store;
};

LayerStore::LayerStore(std::size_t capacity) : entries_(new Entries{BoundedStore<LayerKey, PassCost>(capacity)}) {}
LayerStore::~LayerStore() = default;

std::optional<PassCost> LayerStore::find(const LayerKey& key) { return entries_->store.find(hash_of(key), key); }

void LayerStore::insert(const LayerKey& key, const PassCost& cost) {
    entries_->store.insert(hash_of(key), key, cost, key.sequences.size() * sizeof(key.sequences.front()));
}

StoreStatistics LayerStore::statistics() const { return entries_->store.statistics(); }

}  // namespace pipeweaver::emulator
