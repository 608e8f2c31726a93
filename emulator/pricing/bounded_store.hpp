// What was worked out before, by key: bounded in size, shared by threads. Keys are found by their hash and compared in
// full, so that reuse never changes a result.
#pragma once

#include "pipeweaver/emulator/store_statistics.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace pipeweaver::emulator {

/// Beyond its size, entries that were not asked for since the last round go first. Value is cheap to copy.
template <class Key, class Value>
class BoundedStore {
public:
    explicit BoundedStore(std::size_t capacity)
        : shards_(std::make_unique<Shard[]>(shard_count)), capacity_(capacity / shard_count) {}

    /// Counts a hit or a miss.
    std::optional<Value> find(std::uint64_t hash, const Key& key) {
        Shard& shard = shards_[hash % shard_count];
        const std::lock_guard lock(shard.mutex);
        Entry* entry = shard.find(hash, key);
        ++(entry != nullptr ? shard.counts.hits : shard.counts.misses);
        if (entry == nullptr) return std::nullopt;
        return entry->value;
    }

    /// The value that is kept: another thread may have been faster. `bytes` is what key and value take beyond their own
    /// size.
    Value insert(std::uint64_t hash, Key key, Value value, std::size_t bytes) {
        Shard& shard = shards_[hash % shard_count];
        const std::lock_guard lock(shard.mutex);
        if (const Entry* entry = shard.find(hash, key)) return entry->value;
        Value kept = value;
        shard.insert({hash, std::move(key), std::move(value), bytes + sizeof(Entry) + list_and_map, false});
        shard.shrink(capacity_);
        return kept;
    }

    StoreStatistics statistics() const {
        StoreStatistics sum;
        for (std::size_t i = 0; i < shard_count; ++i) {
            const std::lock_guard lock(shards_[i].mutex);
            const StoreStatistics& one = shards_[i].counts;
            sum.hits += one.hits;
            sum.misses += one.misses;
            sum.evictions += one.evictions;
            sum.bytes += one.bytes;
            sum.blocks += shards_[i].entries.size();
        }
        return sum;
    }

private:
    static constexpr std::size_t shard_count = 16, list_and_map = 96;

    struct Entry {
        std::uint64_t hash;
        Key key;
        Value value;
        std::size_t bytes;
        bool asked_again;  // since the round of evictions last passed
    };

    // Entries go round in a list: the oldest is at the front, one that was asked for again goes once more to the back.
    struct Shard {
        mutable std::mutex mutex;
        std::list<Entry> entries;
        std::unordered_multimap<std::uint64_t, typename std::list<Entry>::iterator> by_hash;
        StoreStatistics counts;

        Entry* find(std::uint64_t hash, const Key& key) {
            const auto [first, last] = by_hash.equal_range(hash);
            for (auto it = first; it != last; ++it)
                if (it->second->key == key) {
                    it->second->asked_again = true;
                    return &*it->second;
                }
            return nullptr;
        }

        void insert(Entry entry) {
            counts.bytes += entry.bytes;
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
                counts.bytes -= oldest->bytes;
                ++counts.evictions;
                entries.erase(oldest);
            }
        }
    };

    std::unique_ptr<Shard[]> shards_;
    std::size_t capacity_;  // of a shard
};

}  // namespace pipeweaver::emulator
