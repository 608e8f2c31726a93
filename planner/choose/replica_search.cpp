#include "planner/choose/replica_search.hpp"

#include <mutex>

namespace pipeweaver::planner {

namespace {

// A caller is asked by one thread at a time.
search::KeepGoing one_at_a_time(search::KeepGoing keep_going, std::mutex& mutex) {
    if (!keep_going) return keep_going;
    return [keep_going = std::move(keep_going), &mutex](const search::Progress& progress) {
        const std::scoped_lock lock(mutex);
        return keep_going(progress);
    };
}

}  // namespace

void search_replicas(std::span<const std::size_t> replicas, const ReplicaSearch& search, const Executor& execute,
                     const Allowance& allowance, double share) {
    const std::size_t threads = threads_of(execute);
    if (threads < 2 || replicas.size() < 2 * threads) {
        const double each = share / static_cast<double>(replicas.size());
        for (const std::size_t r : replicas) search(r, execute, limits(allowance, each));
        return;
    }
    const std::size_t in_turn = (replicas.size() + threads - 1) / threads;  // on the busiest thread
    const double each = share / static_cast<double>(in_turn);
    std::mutex mutex;
    const Allowance shared = [&](double part) {
        const std::scoped_lock lock(mutex);
        return one_at_a_time(allowance(part), mutex);
    };
    run_jobs(execute, replicas.size(), [&](std::size_t k) { search(replicas[k], in_order, limits(shared, each)); });
}

}  // namespace pipeweaver::planner
