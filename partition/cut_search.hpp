// Whether a row of layers can be cut within limits: the search under exact_cut().
#pragma once

#include "partition/exact_cut.hpp"

#include <set>
#include <vector>

namespace pipeweaver::partition {

/// What a cut must keep within.
struct CutLimits {
    std::int64_t load = 0;   ///< of a rank, with what it has besides
    std::int64_t stage = 0;  ///< time of a stage
    Bytes more;              ///< on top of every rank's room
};

/// Asks one row again and again. Keeps a reference to it.
class CutSearch {
public:
    explicit CutSearch(const Row& row);

    /// Layers per stage of the first cut within the limits, in the order that exact_cut.hpp states; empty: there is
    /// none, or none was found in as many states as a search has.
    [[nodiscard]] std::vector<std::int64_t> first_within(const CutLimits& limits);

    /// Whether the limits are within reach by count and by time: true wherever there is a cut.
    [[nodiscard]] bool may_meet(const CutLimits& limits);

    /// Searches that ended before they knew.
    [[nodiscard]] int given_up() const { return given_up_; }

private:
    struct Left {
        std::int64_t time = 0, bytes = 0;
    };

    void begin(const CutLimits& limits);
    bool place(std::size_t stage, std::size_t first);
    std::vector<std::size_t> ends_for(std::size_t stage, std::size_t first) const;
    bool may_fit(std::size_t stage, std::size_t first);
    std::int64_t most_on(std::size_t rank, std::size_t stage, std::size_t first);
    std::int64_t most_in(std::int64_t whole, std::int64_t each) const;
    std::vector<std::int64_t> state(std::size_t stage, std::size_t first) const;

    std::size_t layers() const { return row_.layers.size(); }
    std::size_t last_stage_of(std::size_t rank) const { return stages_ - row_.ranks.size() + rank; }
    std::int64_t passes(std::size_t stage) const { return row_.passes.empty() ? 1 : row_.passes[stage]; }
    std::int64_t bytes_of(const RowLayer& layer, std::size_t stage) const {
        return layer.always.count + passes(stage) * layer.held.count;
    }

    const Row& row_;
    const std::size_t stages_, most_states_;
    std::vector<std::int64_t> before_;             // time of the layers before each
    std::vector<RowLayer> least_;                  // of the layers from each on, without the row's last, part by part
    std::vector<std::vector<std::size_t>> fixed_;  // per stage, the row's first and last layer where it has them
    std::vector<std::vector<std::size_t>> light_;  // per rank its stages, those with the fewest passes first
    CutLimits limits_;
    std::vector<Left> left_;  // per rank
    std::vector<std::int64_t> counts_, most_in_stage_;
    std::set<std::vector<std::int64_t>> failed_;
    std::size_t states_ = 0;
    int given_up_ = 0;
};

}  // namespace pipeweaver::partition
