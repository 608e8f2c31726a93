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

void search_replicas(Comparison& compared, std::size_t p, const Request& request, const ChoiceRule& rule,
                     const Executor& execute, const Allowance& allowance, double share, const MoreStarts& more) {
    const std::size_t replicas = compared.size(), threads = threads_of(execute);
    if (threads < 2 || replicas < 2 * threads) {
        const double each = share / static_cast<double>(replicas);
        for (auto& replica : compared) search_in(replica[p], request, rule, execute, limits(allowance, each), more);
        return;
    }
    const double each = share / static_cast<double>((replicas + threads - 1) / threads);
    std::mutex mutex;
    const Allowance shared = [&](double part) {
        const std::scoped_lock lock(mutex);
        return one_at_a_time(allowance(part), mutex);
    };
    run_jobs(execute, replicas,
             [&](std::size_t r) { search_in(compared[r][p], request, rule, in_order, limits(shared, each), more); });
}

}  // namespace pipeweaver::planner
