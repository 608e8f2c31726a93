#include "search/exact/exact_layer.hpp"

#include <algorithm>
#include <numeric>

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

// Where the key is, or would be.
std::size_t ExactLayer::cell(std::uint64_t hash, Record record) const {
    std::size_t at = hash & (table_.size() - 1);
    for (; table_[at].first != UINT32_MAX; at = (at + 1) & (table_.size() - 1))
        if (table_[at].hash == hash && same_key(this->record(labels_[table_[at].first]), record)) break;
    return at;
}

std::uint64_t ExactLayer::sum(Record record) const {
    const auto times = record.subspan(space_->memory_begin() + 2 * record[0]);
    return std::accumulate(times.begin(), times.end(), std::uint64_t{0});
}

// What dominated one state often dominates the next, so it moves to the front of its list.
bool ExactLayer::dominated(std::uint64_t hash, Record record) {
    std::uint32_t& first = table_[cell(hash, record)].first;
    const std::uint64_t total = sum(record);
    for (std::uint32_t* link = &first; *link != UINT32_MAX; link = &labels_[*link].next) {
        const std::uint32_t l = *link;
        ++comparisons_;
        if (labels_[l].sum > total || !space_->no_worse(this->record(labels_[l]), record)) continue;
        *link = labels_[l].next;
        labels_[l].next = first;
        first = l;
        return true;
    }
    return false;
}

ExactLayer::Label& ExactLayer::add(std::uint64_t hash, Record record, const ExactTrace& trace) {
    if (keys_ * 2 >= table_.size()) grow();
    Cell& cell = table_[this->cell(hash, record)];
    if (cell.first == UINT32_MAX) ++keys_;
    Label label;
    label.sum = sum(record);
    for (std::uint32_t* link = &cell.first; *link != UINT32_MAX;) {
        Label& other = labels_[*link];
        ++comparisons_;
        other.alive = other.sum < label.sum || !space_->no_worse(record, this->record(other));
        if (other.alive)
            link = &other.next;
        else
            *link = other.next;
    }
    label.begin = words_.size();
    words_.insert(words_.end(), record.begin(), record.end());
    label.end = words_.size();
    label.trace = trace;
    label.next = cell.first;
    cell = {hash, static_cast<std::uint32_t>(labels_.size())};
    labels_.push_back(label);
    return labels_.back();
}

}  // namespace pipeweaver::search
