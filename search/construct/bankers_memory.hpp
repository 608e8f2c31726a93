// Which task may be placed next so that memory never overflows and the schedule can always be finished.
//
//   a rank with room for 3; a microbatch takes 1 with F and 1 with f, and gives both back with b and B
//     F0 F1 F2            full: no f can run, so no microbatch can ever be finished
//     F0 F1 f0 b0 B0 F2   F2 is refused as long as no microbatch could be finished with it
//
// The banker's algorithm (E. W. Dijkstra, EWD 623) over *components*: connected parts of the task graph, usually one
// per microbatch. Each component has a *canonical order*, a topological order of its tasks. Of a component, a rank is
// known by what it holds there, the additional peak `need` of running its remaining tasks there in canonical order, and
// what `after` remains then on top. A state is *safe* if the components can be finished one after the other, on all
// ranks, in canonical order, none exceeding a rank's room. A task may be placed only if the state afterwards is safe.
//
// Why this never overflows
//     A placed task fits its rank's room: checked. Memory depends on the order on a rank alone.
// Why it never dead-ends
//     Let a safe state's finishing order begin with component c, and t be the first remaining task of c in canonical
//     order. All predecessors of t are placed: they are in c, and come before t. Placing t leaves that finishing order
//     valid, for c then runs exactly what it would have run. So t may be placed, and each placement leaves fewer tasks.
//     (Remaining tasks in canonical order stay in topological order, whatever was placed, because placed tasks contain
//     all their predecessors.)
// Why the test is exact
//     Where finishing a component never adds to a rank (it gives back all it took), finishing one that can be finished
//     hurts no other, so taking them greedily finds an order if there is one; and components that have not begun fit
//     alone, checked at the start. Where some component leaves memory taken for good, all unfinished components are in
//     the test, greedily and, failing that, in the last order found, so that the proof above holds.
// Underflow
//     A component never gives back what it did not take itself, on any rank, at any moment; where no canonical order of
//     a component can keep this, all tasks are one component.
#pragma once

#include "search/construct/ready_list.hpp"
#include "search/instance/flat.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

namespace pipeweaver::search {

/// Why a problem has no safe start: the rank and the bytes missing for the best canonical order that was tried.
struct Shortage {
    std::uint32_t rank = 0;
    std::int64_t bytes = 0;
    std::uint32_t task = 0;  ///< one of the component that does not fit

    std::string text(const Flat& flat) const;
};

class BankersMemory {
public:
    explicit BankersMemory(const Flat& flat);

    /// Sets the tasks' costs, chooses canonical orders (of several, per component the one that fits best) and begins an
    /// empty schedule. Says why if no safe schedule is known; then nothing else may be called.
    std::optional<Shortage> prepare(std::span<const Cost> costs);

    /// The same for other costs of the same tasks, with the canonical orders chosen before if they still fit.
    std::optional<Shortage> change_costs(std::span<const Cost> costs);

    /// Begins an empty schedule again, with the same costs and canonical orders.
    void restart();

    /// Would the state be safe after this task? Pre: its predecessors are placed, it is not.
    /// Time O(log of the component's tasks on its rank + open components squared * ranks), the latter rarely.
    bool allows(std::uint32_t task);

    /// Pre: allows(task).
    void place(std::uint32_t task);

    /// What the rank could still take before it is full, whatever is safe; allows() refuses what takes more.
    std::int64_t room_left(std::uint32_t rank) const { return flat_.room[rank] - used_[rank]; }

    /// Of a task that is not placed.
    Want want(std::uint32_t task) const;

    /// Tasks of the rank that are surely refused, by their want(). Derived from the last refusals; valid as long as
    /// relief() stays the same, and until the task's component begins where there are several.
    ///
    /// Several components: a task t of one that has not begun was refused. Then the open components, with net(t) more
    /// on the rank, got stuck with `g` bytes free (without t), which t's own component needs more than. A task u of
    /// another fresh component with net(u) >= net(t) leaves them stuck no later, and is refused if its component, u
    /// first, needs more than g on the rank: `key` is this need.
    /// One component: t was refused because what comes before t in canonical order, t run first, exceeds the rank. So
    /// does what comes before a later u with net(u) >= net(t): `key` is the place in canonical order.
    Bar bar(std::uint32_t rank) const { return bar_relief_[rank] == relief_ ? bar_[rank] : Bar{}; }

    /// Is it the first task of its component to be placed? And that component's tasks.
    bool begins(std::uint32_t task) const;
    std::span<const std::uint32_t> component_tasks(std::uint32_t task) const;

    /// A task that was refused stays refused as long as this number stays the same.
    std::uint64_t relief() const { return relief_; }

private:
    struct Level {
        std::int64_t need = 0;   // largest memory on the way, above the level at the beginning
        std::int64_t low = 0;    // smallest, <= 0
        std::int64_t after = 0;  // at the end

        Level then(const Level& next) const {
            return {std::max(need, after + next.need), std::min(low, after + next.low), after + next.after};
        }
    };

    void find_components(bool one);
    void find_lanes();
    bool sort_lanes();
    bool measure_lanes();
    std::optional<Shortage> first_shortage();
    Level level_of(std::uint32_t task) const;
    void build_trees();
    std::pair<Level, Level> around(std::uint32_t task) const;
    Level remaining_without(std::uint32_t task) const;
    void remember_refusal(std::uint32_t task);
    void take_from_tree(std::uint32_t task);
    std::int64_t excess(std::uint32_t component, std::span<const std::uint32_t> place) const;
    bool fits(std::uint32_t component) const;
    bool only_frees(std::uint32_t component) const;
    void finish(std::uint32_t component);
    bool can_finish_all(std::uint32_t touched);
    bool finish_greedily();
    bool finish_in_order();
    bool accept(std::uint32_t lane, std::uint32_t task, const Level& level);

    const Flat& flat_;
    bool limited_ = false;    // some rank has a capacity
    bool leftovers_ = false;  // some component leaves memory taken
    std::vector<Cost> costs_;
    std::vector<std::vector<std::uint32_t>> canonical_;  // candidates: place of each task

    // A lane is a component's part on one rank; those of a component are neighbours.
    std::vector<std::uint32_t> component_of_, lane_of_, lane_rank_, component_size_;
    Groups<std::uint32_t> lanes_;       // per component
    Groups<std::uint32_t> lane_tasks_;  // per lane, in canonical order

    // Of each lane a binary tree over its tasks in canonical order: the level of what remains below each node. Node 1
    // is the root, the leaves begin at tree_size_; those of placed tasks are empty levels.
    std::vector<std::uint32_t> tree_first_, tree_size_;  // per lane
    std::vector<std::uint32_t> leaf_of_;                 // per task: node in its lane's tree
    std::vector<Level> tree_, fresh_tree_;

    // The state.
    std::vector<std::int64_t> used_;        // per rank, above base
    std::vector<std::int64_t> held_;        // per lane
    std::vector<Level> level_, fresh_;      // per lane: of the remaining tasks, of all
    std::vector<std::uint32_t> remaining_;  // per component
    std::vector<std::uint32_t> open_;       // components to finish, in an order that works
    std::vector<std::uint32_t> initial_open_;
    std::vector<char> fussy_;  // per lane: has refused a task because it gave back too early
    std::uint64_t relief_ = 0;
    std::vector<Bar> bar_;                   // per rank
    std::vector<std::uint64_t> bar_relief_;  // when it was derived

    // Scratch of one test.
    std::vector<std::int64_t> sim_;
    std::vector<std::uint32_t> waiting_, finished_;
    std::uint32_t accepted_ = UINT32_MAX;  // the last task allowed, with its lane's new level
    Level accepted_level_;
    std::uint32_t fitting_ = UINT32_MAX;  // a component that fits as ranks are used now, on all of them,
    bool accepted_fits_ = false;          // and whether that of the last task allowed does with it
};

}  // namespace pipeweaver::search
