#include "search/exact_layer.hpp"

#include <algorithm>

namespace pipeweaver::search {

namespace {

std::uint64_t mixed(std::uint64_t x) {  // the finaliser of splitmix64 (S. Vigna, public domain)
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

}  // namespace

ExactLayer::ExactLayer(const ExactSpace& space) : space_(&space), table_(64) {}

void ExactLayer::clear() {
    words_.clear();
    labels_.clear();
    table_.assign(64, {});
    keys_ = 0;
}

std::uint64_t ExactLayer::hash(const ExactSpace& space, Record record) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < space.key_end(); ++i) value = mixed(value ^ record[i]) + 0x9e3779b97f4a7c15ULL;
    return value;
}

bool ExactLayer::same_key(Record a, Record b) const {
    return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(space_->key_end()), b.begin());
}

void ExactLayer::grow() {
    std::vector<Cell> old(table_.size() * 2);
    old.swap(table_);
    for (const Cell& cell : old) {
        if (cell.first == UINT32_MAX) continue;
        std::size_t at = cell.hash & (table_.size() - 1);
        while (table_[at].first != UINT32_MAX) at = (at + 1) & (table_.size() - 1);
        table_[at] = cell;
    }
}

ExactLayer::Label* ExactLayer::insert(std::uint64_t hash, Record record, const ExactTrace& trace) {
    if (keys_ * 2 >= table_.size()) grow();
    std::size_t at = hash & (table_.size() - 1);
    for (; table_[at].first != UINT32_MAX; at = (at + 1) & (table_.size() - 1))
        if (table_[at].hash == hash && same_key(this->record(labels_[table_[at].first]), record)) break;
    if (table_[at].first == UINT32_MAX) ++keys_;

    std::uint32_t* link = &table_[at].first;
    for (std::uint32_t l = *link; l != UINT32_MAX; l = *link) {
        Label& other = labels_[l];
        const Record known = this->record(other);
        if (other.alive && space_->no_worse(known, record)) return nullptr;
        if (!other.alive || space_->no_worse(record, known)) {
            other.alive = false;
            *link = other.next;
        } else {
            link = &other.next;
        }
    }
    Label label;
    label.begin = words_.size();
    words_.insert(words_.end(), record.begin(), record.end());
    label.end = words_.size();
    label.trace = trace;
    label.next = table_[at].first;
    table_[at] = {hash, static_cast<std::uint32_t>(labels_.size())};
    labels_.push_back(label);
    return &labels_.back();
}

}  // namespace pipeweaver::search
