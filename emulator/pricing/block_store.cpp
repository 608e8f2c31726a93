#include "pipeweaver/emulator/block_store.hpp"

#include "emulator/pricing/bounded_store.hpp"

namespace pipeweaver::emulator {

struct BlockStore::Entries {
    BoundedStore<OperatorGraph, std::shared_ptr<const Block>> store;
};

namespace {

std::size_t bytes_of(const OperatorGraph& graph, const Block& block) {
    return sizeof(Block) + graph.bytes() + block.times.rows() * block.times.columns() * sizeof(std::int64_t);
}

}  // namespace

BlockStore::BlockStore(std::size_t capacity)
    : entries_(new Entries{BoundedStore<OperatorGraph, std::shared_ptr<const Block>>(capacity)}) {}
BlockStore::~BlockStore() = default;
BlockStore::BlockStore(BlockStore&&) noexcept = default;
BlockStore& BlockStore::operator=(BlockStore&&) noexcept = default;

std::shared_ptr<const Block> BlockStore::get(const OperatorGraph& graph) {
    const std::uint64_t hash = graph.hash();
    if (auto found = entries_->store.find(hash, graph)) return *found;
    auto block = std::make_shared<const Block>(block_of(graph));
    const std::size_t bytes = bytes_of(graph, *block);
    return entries_->store.insert(hash, graph, std::move(block), bytes);
}

BlockStore::Statistics BlockStore::statistics() const { return entries_->store.statistics(); }

}  // namespace pipeweaver::emulator
