#include "planner/replicas/for_replicas.hpp"

#include <mutex>

namespace pipeweaver::planner {

namespace {

// Of what is left after so many turns of equal length, all of which take `part` of what there was before the first.
double part_of_rest(double part, std::size_t turn, std::size_t turns) {
    const double each = part / static_cast<double>(turns);
    return each / (1 - static_cast<double>(turn) * each);
}

}  // namespace

void for_replicas(std::span<const std::size_t> replicas, const ReplicaWork& work, const Executor& execute,
                  const Time& time, double part) {
    const std::size_t threads = threads_of(execute);
    const bool side_by_side = threads > 1 && (replicas.size() % threads == 0 || replicas.size() >= 2 * threads);
    const std::size_t at_once = side_by_side ? threads : 1;
    const std::size_t turns = (replicas.size() + at_once - 1) / at_once;
    std::mutex mutex;
    std::size_t begun = 0;
    const auto mine = [&] {
        const std::scoped_lock lock(mutex);
        return time.fraction(part_of_rest(part, begun++ / at_once, turns));
    };
    const auto run = [&](std::size_t k) { work(replicas[k], side_by_side ? in_order : execute, mine()); };
    run_jobs(side_by_side ? execute : in_order, replicas.size(), run);
}

}  // namespace pipeweaver::planner
