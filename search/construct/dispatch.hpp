// Builds a schedule task by task in the order of time, safe in memory by construction (see bankers_memory.hpp).
//
//   a rank where two forwards and two backwards are ready, each as long; priorities F2 F3 B0 B1
//     dual_queue       |F2 B0 F3 B1|
//     list             |F2 F3 B0 B1|
//     backward_first   |B0 B1 F2 F3|
//     in_order         |B0 B1 F2 F3|   if F2 becomes ready only then: F3 waits for it, B0 and B1 do not
#pragma once

#include "search/construct/list_scheduler.hpp"
#include "search/construct/ready_list.hpp"

#include <array>

namespace pipeweaver::search {

/// How a rank chooses among the tasks that may run.
enum class Choice : std::uint8_t {
    /// The dual queue of DIP (arXiv 2504.14145, stage interleaving): where a forward and a backward could both start
    /// now, the kind that did not run last; else what can start first. Ties by priority.
    dual_queue,
    /// What can start first; ties by priority: a non-delay list schedule.
    list,
    /// As `list`, but never a forward where a backward could start now.
    backward_first,
    /// As `list`, but each rank takes its forwards strictly by priority, waiting for them where it must: memory is kept
    /// for those that come first. Pre: priorities are in an order that the edges allow.
    in_order,
    /// Of all tasks that could start before any of them could end, the first by priority, even if the rank must wait
    /// for it: nothing long is begun when something urgent is about to arrive, and no rank waits so long that another
    /// task would have fitted in before. B. Giffler, G. L. Thompson, "Algorithms for solving production-scheduling
    /// problems", Operations Research 8, 1960.
    look_ahead,
};
/// Without look_ahead, which takes longer.
inline constexpr std::array all_choices{Choice::dual_queue, Choice::list, Choice::backward_first, Choice::in_order};

class Dispatcher : public ListScheduler {
public:
    explicit Dispatcher(const Flat& flat);

    /// As prepare(), for other costs of the same tasks; see BankersMemory::change_costs.
    std::optional<Shortage> change_costs(std::span<const Cost> costs);

    /// Schedules all tasks one by one, the ready task with the smallest key first whatever its time, ties by index; one
    /// that memory refuses waits until memory is given back. Pre: prepare() found nothing short.
    void run_by_key(std::span<const std::int64_t> key);

    /// Schedules all tasks; smaller `position` = higher priority. Pre: prepare() found nothing short, `choice` is
    /// defined, positions are 0 ... tasks - 1. Time O(tasks * (log tasks + one memory test)), and a test more for each
    /// task that fits its rank but that memory refuses.
    /// With `release`, ns per task, none starts before its moment: ranks wait.
    /// With a `window`, a microbatch (by its place among the numbers in use) begins only when the one this many before
    /// it has ended on all ranks; where nothing else can go on, one more begins.
    void run(Choice choice, std::span<const std::uint32_t> position, std::span<const std::int64_t> release = {},
             std::uint32_t window = 0);

    /// Of the last run.
    std::int64_t makespan() const { return makespan_; }

private:
    // Ready tasks of one rank and one kind (forwards, or what is late).
    struct Queue {
        ReadyList now;                                // those whose predecessors have ended, by priority
        std::vector<std::uint32_t> task_at;           // of each slot of `now`
        ReadyList shortest;                           // of look_ahead: the same tasks, by duration
        std::vector<std::uint32_t> task_by_duration;  // of each slot of `shortest`
        std::vector<std::uint32_t> coming;            // the others: a heap, the first to become ready on top
        std::vector<std::uint32_t> refused;  // by memory: neither in `now` nor in `coming` until memory is given back
    };

    enum class Where : std::uint8_t { outside, now, coming };

    // Of a window: microbatches are known by their places among the numbers in use.
    struct Window {
        std::uint32_t width = 0;                          // 0: any microbatch may begin at any time
        std::uint32_t ended = 0, admitted = 0;            // all microbatches before have ended, may begin
        std::vector<std::uint32_t> microbatch_of;         // per task
        std::vector<std::uint32_t> left;                  // per microbatch: tasks that are not placed
        std::vector<std::vector<std::uint32_t>> waiting;  // per microbatch: ready, but it may not begin
    };

    void begin();
    void set_up_queues();
    void set_up_shortest();
    void open_window(std::uint32_t width);
    void admit(std::uint32_t microbatches);
    void go_on_anyhow();
    void insert_now(std::uint32_t task);
    void remove_now(std::uint32_t task);
    Queue& queue_of(std::uint32_t task) { return queue_[2 * flat_.rank_of[task] + flat_.late[task]]; }
    bool later(std::uint32_t a, std::uint32_t b) const;
    void enqueue(std::uint32_t task);
    void begin_component(std::uint32_t first);
    void refuse(std::uint32_t task);
    void take_out(std::uint32_t task);
    void refresh(std::uint32_t rank);
    NextTask best_now(const Queue& queue, std::uint32_t rank) const;
    NextTask best_coming(Queue& queue, std::uint32_t rank);
    NextTask best_of(std::uint32_t rank, bool late);
    NextTask next_looking_ahead(std::uint32_t rank);
    NextTask next_in_turn(std::uint32_t rank) const;
    NextTask next_task(std::uint32_t rank);
    void line_up();
    void place(std::uint32_t task);
    void end_of(std::uint32_t task);
    void push(std::uint32_t task);
    void recall_refused(std::size_t most);

    // A candidate's time is its start; of look_ahead, the first end of any candidate.
    Choice choice_ = Choice::list;
    std::span<const std::uint32_t> position_;

    std::vector<Queue> queue_;                               // per rank and kind
    std::vector<std::uint32_t> slot_of_, shortest_slot_of_;  // per task, in its queue's `now` and `shortest`
    std::vector<Where> where_;                               // per task
    std::vector<char> last_late_;                            // per rank: kind run last
    Window window_;

    // Of Choice::in_order: each rank's forwards by priority, and which of them is next.
    std::vector<std::vector<std::uint32_t>> line_;
    std::vector<std::size_t> next_in_line_;
    bool any_turn_ = false;  // nothing can go on in turn

    // Of run_by_key(): a heap of ready tasks, and those that memory refused, by key.
    std::span<const std::int64_t> key_;
    std::vector<std::uint32_t> heap_, waiting_;
    std::int64_t makespan_ = 0;
};

}  // namespace pipeweaver::search
