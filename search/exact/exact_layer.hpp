// The states of one layer of the exact search: all with the same number of tasks placed, none dominated by another.
#pragma once

#include "search/exact/exact_state.hpp"

#include <cstdint>
#include <vector>

namespace pipeweaver::search {

/// What leads to a state: a step from the state with this number in the layer before.
struct ExactTrace {
    std::uint32_t parent = UINT32_MAX;
    ExactStep step;
};

class ExactLayer {
public:
    struct Label {
        std::size_t begin = 0, end = 0;  ///< of its record, in the layer's words
        ExactTrace trace;
        std::int64_t bound = 0, lateness = 0;
        std::uint64_t sum = 0;            ///< of its times: a state that dominates another has no larger one
        std::uint32_t next = UINT32_MAX;  ///< another one with the same key
        bool alive = true;
    };

    explicit ExactLayer(const ExactSpace& space);

    void clear();

    /// Hash of a record's key.
    static std::uint64_t hash(const ExactSpace& space, Record record);

    /// Is a state with the same key no worse? Pre: `hash` is of the record.
    bool dominated(std::uint64_t hash, Record record);

    /// Adds the record; takes out those it dominates. Pre: not dominated().
    Label& add(std::uint64_t hash, Record record, const ExactTrace& trace);

    const std::vector<Label>& labels() const { return labels_; }
    std::vector<Label>& labels() { return labels_; }
    Record record(const Label& label) const { return {words_.data() + label.begin, label.end - label.begin}; }

    /// States compared so far, also before clear().
    std::uint64_t comparisons() const { return comparisons_; }

private:
    bool same_key(Record a, Record b) const;
    std::size_t cell(std::uint64_t hash, Record record) const;
    std::uint64_t sum(Record record) const;
    void grow();

    const ExactSpace* space_;
    std::vector<std::uint64_t> words_;
    std::vector<Label> labels_;
    struct Cell {
        std::uint64_t hash = 0;
        std::uint32_t first = UINT32_MAX;  // label
    };
    std::vector<Cell> table_;  // open addressing; a power of two
    std::size_t keys_ = 0;
    std::uint64_t comparisons_ = 0;
};

}  // namespace pipeweaver::search
