// Parallel work whose result does not depend on the number of threads.
//
// Work goes in rounds of a fixed size, from frozen state; every job writes its own slot; slots are merged in
// order. The size of a round never comes from the thread count.
#pragma once

#include <cstddef>
#include <functional>

namespace pipeweaver {

/// Runs job(0) ... job(count - 1), each once, in any order, on any threads, and returns when all have run.
/// A job writes only its own slot and does not throw: which of two exceptions came out would depend on the threads.
using Executor = std::function<void(std::size_t count, const std::function<void(std::size_t)>& job)>;

/// Runs the jobs one after the other on the calling thread.
void in_order(std::size_t count, const std::function<void(std::size_t)>& job);

/// Runs jobs that may throw, and throws what the first of them by number threw, whoever ran when.
void run_jobs(const Executor& execute, std::size_t count, const std::function<void(std::size_t)>& job);

/// How many threads can be run at once here, the calling one included, up to `wanted`: they are made, and ended again.
[[nodiscard]] int possible_threads(int wanted);

/// An executor on `threads` threads of TBB, the calling one included. Pre: threads >= 1.
/// It may be copied and called from several threads at once.
[[nodiscard]] Executor on_threads(int threads);

/// An executor on threads of its own, begun here and joined when the last copy goes. For a host that forks: nothing of
/// it is global, so a child in which its threads are not may make an executor of its own. A call from inside a job, or
/// while another call runs, is done on the calling thread alone. Pre: threads >= 1.
[[nodiscard]] Executor on_own_threads(int threads);

/// How many threads `execute` has, if one of these functions made it; else 1.
[[nodiscard]] std::size_t threads_of(const Executor& execute);

}  // namespace pipeweaver
