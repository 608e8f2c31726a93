// Trainings that arrive over time, queue for the GPUs of one cluster and run there, played as discrete events.
//
// Policies     fifo     each job has the GPUs that it asks for, in the order of arrival; nobody overtakes; no loans.
//              loan     the same with the GPUs that are on loan at the time. At their end, of the jobs that run those
//                       are shrunk or stopped that lose least weighted time by the next loan (a knapsack). A job that
//                       was stopped queues again in its place; one that was shrunk grows back when it gains by it.
//                       Without loans the queue is that of fifo.
//              elastic  any GPU count of a job, loans too, shared out anew at every arrival, end and change of a loan.
//                       Some jobs run at once, the others wait: those with the most weight for the time that is left
//                       of them run, and a knapsack shares the GPUs out among these for the least weighted time of what
//                       is left. How many (1, 2, 4, 8, all that fit, or as `loan` would; with or without the GPUs on
//                       loan) is decided at arrivals and ends by playing each way to the end of the jobs at hand. With
//                       all jobs there from the start no way that it tries ends with less weighted time.
// Restart      a job that goes on after it was stopped, or on another number of GPUs, holds its GPUs for the time of a
//              restart before it does anything. Its first start takes no time.
// Source       Aryl / Lyra, arXiv 2202.07896: loans, reclaiming at the least cost, elastic jobs by a knapsack. How many
//              run at once is ours: they let all run that can.
// Determinism  times are integers, only who has most weight for the time is told by doubles; of jobs and ways that are
//              alike the first.
#pragma once

#include "pipeweaver/capacity/jobs.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::capacity {

enum class QueuePolicy : std::uint8_t { fifo, loan, elastic };
[[nodiscard]] std::string_view name_of(QueuePolicy policy);

/// Throws Error{input} for an unknown name, naming the nearest.
[[nodiscard]] QueuePolicy queue_policy(const std::string& name);

struct QueuedJob {
    Duration starts{}, ends{};
    Duration queued{};         ///< between arrival and end, without GPUs
    Wide gpu_time = 0;         ///< GPUs times nanoseconds that it held, restarts too
    std::int64_t stops = 0;    ///< preemptions: it lost all its GPUs
    std::int64_t resizes = 0;  ///< it went on at once with more or fewer

    friend bool operator==(const QueuedJob&, const QueuedJob&) = default;
};

/// GPUs that a job holds for a while.
struct Holding {
    std::size_t job = 0;
    std::int64_t gpus = 0;
    Duration from{}, until{};

    friend bool operator==(const Holding&, const Holding&) = default;
};

struct QueueResult {
    QueuePolicy policy = QueuePolicy::fifo;
    std::vector<QueuedJob> jobs;    ///< in the order of the document
    std::vector<Holding> holdings;  ///< by their end, then by job
    Duration begins{}, ends{};      ///< first arrival, last end
    Wide weighted = 0;              ///< weight in thousandths x (end - arrival) in nanoseconds
    Wide gpu_time = 0;              ///< GPUs times nanoseconds that jobs held
    Wide loaned = 0;                ///< of it what the cluster's own GPUs could not give
    Wide offered = 0;  ///< what there was from the first arrival to the last end, loans where it takes them
};

/// Plays the queue until all jobs are done. Pre: restart >= 0. Throws Error{limit} if that takes over 100 years.
[[nodiscard]] QueueResult play_queue(const SharedCluster& cluster, QueuePolicy policy, Duration restart);

}  // namespace pipeweaver::capacity
