#include "pipeweaver/emulator/block_store.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace pipeweaver::emulator {

namespace {

constexpr std::size_t shard_count = 16;

struct Entry {
    std::uint64_t hash = 0;
    OperatorGraph graph;
    std::shared_ptr<const Block> block;
    std::size_t bytes = 0;
    bool asked_again = false;  // since the round of evictions last passed
};

std::size_t bytes_of(const OperatorGraph& graph, const Block& block) {
    constexpr std::size_t list_and_map = 96;
    return sizeof(Entry) + sizeof(Block) + list_and_map + graph.bytes() +
           block.times.rows() * block.times.columns() * sizeof(std::int64_t);
}

}  // namespace

// Entries go round in a list: the oldest is at the front, one that was asked for again goes once more to the back.
struct BlockStore::Shard {
    mutable std::mutex mutex;
    std::list<Entry> entries;
    std::unordered_multimap<std::uint64_t, std::list<Entry>::iterator> by_hash;
    Statistics counts;

    std::shared_ptr<const Block> find(std::uint64_t hash, const OperatorGraph& graph) {
        const auto [first, last] = by_hash.equal_range(hash);
        for (auto it = first; it != last; ++it)
            if (it->second->graph == graph) {
                it->second->asked_again = true;
                return it->second->block;
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
            const auto [first, last] = by_hash.equal_range(oldest->hash);
            by_hash.erase(std::find_if(first, last, [&](const auto& item) { return item.second == oldest; }));
            counts.bytes -= oldest->bytes;
            ++counts.evictions;
            entries.erase(oldest);
        }
    }
};

BlockStore::BlockStore(std::size_t capacity)
    : shards_(std::make_unique<Shard[]>(shard_count)), capacity_(capacity / shard_count) {}
BlockStore::~BlockStore() = default;
BlockStore::BlockStore(BlockStore&&) noexcept = default;
BlockStore& BlockStore::operator=(BlockStore&&) noexcept = default;

std::shared_ptr<const Block> BlockStore::get(const OperatorGraph& graph) {
    const std::uint64_t hash = graph.hash();
    Shard& shard = shards_[hash % shard_count];
    {
        const std::lock_guard lock(shard.mutex);
        if (auto found = shard.find(hash, graph)) {
            ++shard.counts.hits;
            return found;
        }
        ++shard.counts.misses;
    }
    auto block = std::make_shared<const Block>(block_of(graph));
    const std::lock_guard lock(shard.mutex);
    if (auto found = shard.find(hash, graph)) return found;  // another thread was faster
    shard.insert({hash, graph, block, bytes_of(graph, *block)});
    shard.shrink(capacity_);
    return block;
}

BlockStore::Statistics BlockStore::statistics() const {
    Statistics sum;
    for (std::size_t i = 0; i < shard_count; ++i) {
        const std::lock_guard lock(shards_[i].mutex);
        const Statistics& one = shards_[i].counts;
        sum.hits += one.hits;
        sum.misses += one.misses;
        sum.evictions += one.evictions;
        sum.bytes += one.bytes;
        sum.blocks += shards_[i].entries.size();
    }
    return sum;
}

}  // namespace pipeweaver::emulator
