// Exact search: all schedules and memory modes of a small problem, layer by layer, with dominance and bounds.
//
// A *pass* builds the states (exact_space.hpp) of one placed task from the root, of two from those of one, and so on;
// a state whose bound is not below the best known makespan is dropped. A pass keeps at most `width` states per layer,
// those with the smallest bound: a beam search. If no layer had to be cut, the pass has seen everything that could be
// better, so the best known makespan is optimal. If one had, the next pass is wider. A pass begins with heads and tails
// tightened for makespans that would be better (edge_finding.hpp).
//
// Rounds       a pass is worked through in rounds of a fixed number of states, about 10 ms.
// Determinism  states are expanded in slots and merged by key in shards, both in a fixed order: the executor cannot be
//              seen in the result. Better makespans from outside only cut more.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "search/bounds/one_machine.hpp"
#include "search/exact/exact_layer.hpp"
#include "search/instance/candidate.hpp"
#include "search/tuning.hpp"

#include <optional>

namespace pipeweaver::search {

class Exact {
public:
    /// Whether the problem is small enough to try.
    static bool suits(const Flat& flat);

    /// Pre: suits(flat); `makespan` is of a known schedule. Only smaller ones are looked for.
    Exact(const Flat& flat, std::int64_t makespan, const ExactLimits& limits = tuning.exact.whole);

    enum class State : std::uint8_t {
        working,
        proven,  ///< nothing is smaller than makespan()
        gave_up  ///< a limit was met
    };
    State state() const { return state_; }

    /// The smallest makespan known, here or outside.
    std::int64_t makespan() const { return makespan_; }

    /// A smaller makespan was found elsewhere.
    void offer(std::int64_t makespan);

    /// Works on. Pre: state() == working. Returns a schedule smaller than all known before, if one was found.
    std::optional<Candidate> round(const Executor& execute);

    std::uint64_t nodes() const { return nodes_; }
    std::size_t width() const { return width_; }
    std::size_t layer() const { return traces_.size() - 1; }  ///< tasks placed in the states being expanded

private:
    struct Child {
        std::uint64_t hash = 0;
        std::size_t begin = 0, end = 0;
        ExactTrace trace;
    };
    struct Slot {
        explicit Slot(const ExactSpace& space) : state(space) {}

        ExactState state;
        std::vector<ExactStep> steps;
        std::vector<std::uint64_t> words;
        std::vector<Child> children;
    };
    struct Shard {
        explicit Shard(const ExactSpace& space) : state(space), now(space), next(space) {}

        ExactState state;
        ExactLayer now, next;
    };

    // One more than the largest makespan that is of interest and possible.
    std::int64_t limit() const { return (makespan_ - 1) / space_.unit() * space_.unit() + 1; }
    void begin_pass();
    std::uint64_t work() const;
    std::size_t portion(std::uint64_t work_left) const;
    std::optional<Candidate> step(const Executor& execute, std::size_t count);
    void expand(std::size_t slot, std::size_t first, std::size_t last);
    void merge(std::size_t shard);
    void end_layer();
    void end_pass();
    void select();
    Candidate schedule_of(std::uint32_t number) const;
    std::optional<Candidate> best_complete();

    const Flat& flat_;
    ExactLimits limits_;
    std::int64_t makespan_;
    Tightened windows_;  // of schedules that are of interest
    ExactSpace space_;
    std::vector<Slot> slots_;
    std::vector<Shard> shards_;
    State state_ = State::working;
    std::size_t width_;
    std::uint64_t nodes_ = 0;
    std::uint64_t work_of_state_ = 0;  // at the last step, about

    // Of the pass.
    bool cut_ = false;
    struct LabelPosition {
        std::uint32_t shard, label;
    };
    std::vector<LabelPosition> layer_;             // states to expand, in order
    std::size_t expanded_ = 0;                     // of them
    std::vector<std::vector<ExactTrace>> traces_;  // per layer and state
};

}  // namespace pipeweaver::search
