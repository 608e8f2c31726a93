// A walk around a ring that meets each node once, free or faulty.
#include "capacity/faults/group_counts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::capacity {

namespace {

// Where the walk is in the ring, which it has entered at any node: the segment around that node is met in two parts.
enum Phase : std::uint8_t {
    all_faulty,     // so far
    first_segment,  // no cut since the first free node
    behind_a_cut
};

struct State {
    std::int64_t phase = all_faulty;
    std::int64_t faults_at_start = 0;  // in front of the first free node; `hops` stands for more too
    std::int64_t rest_at_start = 0;    // of the first segment, in no group; once it has ended
    std::int64_t faults = 0;           // in a row, the last nodes; as above
    std::int64_t rest = 0;             // of the segment, in no group
};

class RingWalk {
public:
    explicit RingWalk(const FaultCase& asked)
        : nodes_(asked.gpus / asked.network.node),
          hops_(asked.network.hops),
          unit_(std::gcd(asked.network.node, asked.tp)),
          of_node_(asked.network.node / unit_),
          of_group_(asked.tp / unit_),
          faulty_(asked.faulty) {}

    bool is_too_long() const {
        constexpr double most = 3e8;
        const auto nodes = static_cast<double>(nodes_), group = static_cast<double>(of_group_);
        // Numbers of groups whose probability counts, about.
        const double width = 8 + 20 * std::sqrt(nodes * faulty_ * (1 - faulty_)) / group;
        return static_cast<double>(state_count()) * nodes * width > most;
    }

    GroupCounts groups() {
        at_.resize(static_cast<std::size_t>(state_count()));
        at_[index(State{})] = {0, {1}};
        for (std::int64_t node = 0; node < nodes_; ++node) step();
        GroupCounts all;
        for_each([&](const State& state, const GroupCounts& counts) {
            // The last segment and the first are one unless the faults between them cut.
            const bool joined = state.phase == behind_a_cut && state.faults + state.faults_at_start < hops_;
            add_scaled(all, counts, 1, joined && state.rest + state.rest_at_start >= of_group_ ? 1 : 0);
        });
        trim(all);
        return all;
    }

private:
    std::int64_t state_count() const { return 3 * (hops_ + 1) * (hops_ + 1) * of_group_ * of_group_; }

    std::size_t index(const State& s) const {
        const std::int64_t start = (s.phase * (hops_ + 1) + s.faults_at_start) * of_group_ + s.rest_at_start;
        return static_cast<std::size_t>((start * (hops_ + 1) + s.faults) * of_group_ + s.rest);
    }

    State state(std::int64_t index) const {
        State s;
        s.rest = index % of_group_;
        index /= of_group_;
        s.faults = index % (hops_ + 1);
        index /= hops_ + 1;
        s.rest_at_start = index % of_group_;
        index /= of_group_;
        s.faults_at_start = index % (hops_ + 1);
        s.phase = index / (hops_ + 1);
        return s;
    }

    template <class Visit>
    void for_each(Visit visit) const {
        for (std::size_t i = 0; i < at_.size(); ++i)
            if (!at_[i].probability.empty()) visit(state(static_cast<std::int64_t>(i)), at_[i]);
    }

    State behind_a_fault(State s) const {
        s.faults = std::min(s.faults + 1, hops_);
        if (s.phase == all_faulty) s.faults_at_start = s.faults;
        if (s.phase == all_faulty || s.faults < hops_) return s;
        if (s.phase == first_segment) s.rest_at_start = s.rest;
        s.phase = behind_a_cut;
        s.rest = 0;
        return s;
    }

    void step() {
        std::vector<GroupCounts> next(at_.size());
        for_each([&](const State& at, const GroupCounts& counts) {
            if (faulty_ > 0) add_scaled(next[index(behind_a_fault(at))], counts, faulty_, 0);
            if (faulty_ == 1) return;
            State free = at;
            if (free.phase == all_faulty) free.phase = first_segment;
            free.faults = 0;
            free.rest = (at.rest + of_node_) % of_group_;
            add_scaled(next[index(free)], counts, 1 - faulty_, (at.rest + of_node_) / of_group_);
        });
        for (GroupCounts& counts : next)
            if (!counts.probability.empty()) trim(counts);
        at_ = std::move(next);
    }

    std::int64_t nodes_, hops_;
    std::int64_t unit_, of_node_, of_group_;  // GPUs of a unit, units of a node and of a group
    double faulty_;
    std::vector<GroupCounts> at_;  // by state; empty: not there
};

}  // namespace

std::optional<GroupCounts> groups_of_ring(const FaultCase& asked) {
    RingWalk walk(asked);
    if (walk.is_too_long()) return {};
    return walk.groups();
}

}  // namespace pipeweaver::capacity
