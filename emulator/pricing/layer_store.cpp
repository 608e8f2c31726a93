#include "pipeweaver/emulator/layer_store.hpp"

#include "emulator/pricing/stage_store.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/pass_cost.hpp"

#include <array>
#include <bit>
#include <list>
#include <mutex>
#include <unordered_map>

namespace pipeweaver::emulator {

namespace {

std::uint64_t hash_of(const LayerKey& key) {
    std::uint64_t state = mix(key.module ^ mix((std::uint64_t{static_cast<std::uint8_t>(key.kind)} << 8) ^
                                               static_cast<std::uint8_t>(key.pass)));
    state = mix(state ^ std::bit_cast<std::uint64_t>(key.device) ^ (key.ring ? 1U : 0U));
    state = mix(state ^ mix(std::bit_cast<std::uint64_t>(key.sparsity) ^ static_cast<std::uint8_t>(key.products)));
    state = mix(state ^ mix((static_cast<std::uint64_t>(key.tp) << 48) ^ (static_cast<std::uint64_t>(key.cp) << 32) ^
                            static_cast<std::uint64_t>(key.sequences.whole)));
    for (const auto& [length, context] : key.sequences.all)
        state = mix(state ^ mix((static_cast<std::uint64_t>(length) << 32) ^ static_cast<std::uint64_t>(context)));
    return state;
}

struct Entry {
    std::uint64_t hash;
    LayerKey key;
    PassCost cost;
    bool asked_again;  // since the round of evictions last passed

    std::size_t bytes() const {
        constexpr std::size_t list_and_map = 96;
        return sizeof(Entry) + list_and_map + key.sequences.all.size() * sizeof(key.sequences.all.front());
    }
};

// Entries go round in a list: the oldest is at the front, one that was asked for again goes once more to the back.
struct Shard {
    mutable std::mutex mutex;
    std::list<Entry> entries;
    std::unordered_multimap<std::uint64_t, std::list<Entry>::iterator> by_hash;
    StoreStatistics counts;

    Entry* find(std::uint64_t hash, const LayerKey& key) {
        const auto [first, last] = by_hash.equal_range(hash);
        for (auto it = first; it != last; ++it)
            if (it->second->key == key) {
                it->second->asked_again = true;
                return &*it->second;
            }
        return nullptr;
    }

    void insert(Entry entry) {
        counts.bytes += entry.bytes();
        const std::uint64_t hash = entry.hash;
        entries.push_back(std::move(entry));
        by_hash.emplace(hash, std::prev(entries.end()));
    }

    void shrink(std::size_t capacity) {
        while (counts.bytes > capacity && entries.size() > 1) {
            const auto oldest = entries.begin();
            if (std::exchange(oldest->asked_again, false)) {
                entries.splice(entries.end(), entries, oldest);
                continue;
            }
            auto [place, last] = by_hash.equal_range(oldest->hash);
            while (place->second != oldest) ++place;
            by_hash.erase(place);
            counts.bytes -= oldest->bytes();
            ++counts.evictions;
            entries.erase(oldest);
        }
    }
};

}  // namespace

struct LayerStore::Shards {
    static constexpr std::size_t count = 16;
    std::array<Shard, count> all;
    std::size_t capacity;  // of one
    std::mutex judging_mutex{};
    std::shared_ptr<LayerStore> judging{};

    Shard& of(std::uint64_t hash) { return all[hash % count]; }
};

LayerStore::LayerStore(std::size_t capacity)
    : shards_(new Shards{{}, capacity / Shards::count}), stages_(std::make_unique<StageStore>(capacity)) {}
LayerStore::~LayerStore() = default;

StageStore& LayerStore::stages() { return *stages_; }

LayerStore& LayerStore::judging() {
    const std::lock_guard lock(shards_->judging_mutex);
    if (!shards_->judging) shards_->judging = std::make_shared<LayerStore>(shards_->capacity * Shards::count);
    return *shards_->judging;
}

void LayerStore::share_judging(std::shared_ptr<LayerStore> store) {
    const std::lock_guard lock(shards_->judging_mutex);
    shards_->judging = std::move(store);
}

std::optional<PassCost> LayerStore::find(const LayerKey& key) {
    const std::uint64_t hash = hash_of(key);
    Shard& shard = shards_->of(hash);
    const std::lock_guard lock(shard.mutex);
    const Entry* entry = shard.find(hash, key);
    ++(entry != nullptr ? shard.counts.hits : shard.counts.misses);
    if (entry == nullptr) return std::nullopt;
    return entry->cost;
}

void LayerStore::insert(const LayerKey& key, const PassCost& cost) {
    const std::uint64_t hash = hash_of(key);
    Shard& shard = shards_->of(hash);
    const std::lock_guard lock(shard.mutex);
    if (shard.find(hash, key) != nullptr) return;  // another thread was faster
    shard.insert({hash, key, cost, false});
    shard.shrink(shards_->capacity);
}

StoreStatistics LayerStore::statistics() const {
    StoreStatistics sum;
    for (const Shard& shard : shards_->all) {
        const std::lock_guard lock(shard.mutex);
        sum.hits += shard.counts.hits;
        sum.misses += shard.counts.misses;
        sum.evictions += shard.counts.evictions;
        sum.bytes += shard.counts.bytes;
        sum.entries += shard.entries.size();
    }
    return sum;
}

}  // namespace pipeweaver::emulator
