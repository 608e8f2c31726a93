// One rank taken alone: tasks with heads (earliest start) and tails (what must follow), one at a time.
#pragma once

#include "search/instance/flat.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace pipeweaver::search {

/// A task as one machine sees it.
struct Job {
    std::int64_t head = 0;
    std::int64_t work = 1;
    std::int64_t tail = 0;
};

/// Smallest head + all work + smallest tail. Pre: `jobs` is not empty.
///
/// Bound: the first job starts no earlier than the smallest head, the machine then works for the sum, and the last
/// job is followed by a tail no shorter than the smallest.
[[nodiscard]] std::int64_t head_work_tail(std::span<const Job> jobs);

/// Jackson's preemptive schedule: at each moment run, of the jobs whose head has passed, one with the largest tail;
/// its makespan max(end + tail) is the smallest of all preemptive schedules, hence a bound for those without
/// preemption. It equals the maximum of head_work_tail over all subsets of jobs, so it is never below that of all jobs.
/// J. R. Jackson 1955; J. Carlier, European Journal of Operational Research 11 (1982). Time O(n log n); 0 without jobs.
[[nodiscard]] std::int64_t preemptive_makespan(std::vector<Job> jobs);

/// Heads and tails of all tasks, raised by the one-machine bound inside each task's own past and future.
///
/// All ancestors of a task that are on one rank must have run, one at a time, before the task starts. With their heads,
/// and as tails the longest path from their end to the task's start, preemptive_makespan of them is a bound on that
/// start. Tasks are taken in topological order, so raised heads raise later ones; an ancestor on the task's own rank
/// needs no path beyond the task's start. Tails by the same argument with time reversed.
struct Tightened {
    std::vector<std::int64_t> head, tail;
};
[[nodiscard]] Tightened tightened(const Flat& flat);

}  // namespace pipeweaver::search
