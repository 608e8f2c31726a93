// Search over priorities of groups: all forwards, or all backwards, of one module's item in one microbatch. A list
// scheduler turns priorities into a schedule, so that one change moves many tasks at once, on all ranks.
#pragma once

#include "pipeweaver/base/random.hpp"
#include "search/candidate.hpp"
#include "search/dispatch.hpp"

namespace pipeweaver::search {

/// Tasks by (microbatch, module, item, segment, direction); made once per problem.
struct TaskGroups {
    explicit TaskGroups(const Flat& flat);

    std::vector<std::uint32_t> group_of;    ///< per task
    std::vector<std::uint32_t> segment_of;  ///< per task: its stage's place among those of its rank
    Groups<std::uint32_t> tasks;            ///< per group, in reading order
    /// Groups of a microbatch, in reading order. Where several models have microbatches of one number, each its own.
    std::vector<std::vector<std::uint32_t>> by_microbatch;
    std::vector<std::uint32_t> microbatch_of;  ///< per group: index into by_microbatch
    std::vector<std::uint32_t> kind_of;        ///< per microbatch: those that begin with one module are of one kind
    std::vector<std::int64_t> pace;            ///< per kind: most work that a microbatch of it has on one rank
    std::vector<std::uint8_t> late;            ///< per group
};

/// A point of the search: one key per group. Either smaller runs first, ties by group, by `choice`; or, `timed`, the
/// key is the time at which the group's microbatch should begin: its tasks wish the times they would have if it ran
/// alone from then on, and are placed in that order, waiting for each other where they must.
struct GroupKeys {
    bool timed = false;
    Choice choice = Choice::dual_queue;
    std::vector<std::int64_t> key;
};

class GroupSearch {
public:
    GroupSearch(const Flat& flat, const TaskGroups& groups);

    std::optional<Shortage> prepare(std::span<const Cost> costs) { return dispatcher_.prepare(costs); }

    /// Groups in the order in which `place` has their first tasks.
    void start(Choice choice, std::span<const std::uint32_t> place);

    /// Timed keys: the microbatches of each kind (those whose first group is of one module) begin one after the other
    /// at equal distances, from a moment on, and hold their backwards back; all at random, nothing beyond `horizon`.
    void start_staggered(Random& random, std::int64_t horizon);

    /// Schedules by the current keys. Pre: prepare() found nothing short.
    std::int64_t evaluate();

    /// The same, and stands there.
    void evaluate_here() { makespan_ = evaluate(); }

    /// Changes keys at random, schedules, and keeps the change unless the makespan grows.
    void step(Random& random);

    const Dispatcher& dispatcher() const { return dispatcher_; }
    const GroupKeys& keys() const { return keys_; }
    /// Goes on from these keys, or from where another search of the same problem stands.
    void take(const GroupKeys& keys) {
        keys_ = keys;
        makespan_ = INT64_MAX;
    }
    void follow(const GroupSearch& other) {
        keys_ = other.keys_;
        makespan_ = other.makespan_;
    }
    std::int64_t makespan() const { return makespan_; }  ///< of the current keys

private:
    void change(Random& random);
    void shift_kind(std::int64_t by, Random& random);

    const Flat& flat_;
    const TaskGroups& groups_;
    Dispatcher dispatcher_;
    GroupKeys keys_, old_;
    std::int64_t makespan_ = INT64_MAX;
    std::vector<std::uint32_t> order_, position_, line_;
    std::vector<std::int64_t> wish_;  // per task
};

}  // namespace pipeweaver::search
