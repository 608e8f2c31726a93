#include "planner/replicas/for_replicas.hpp"

#include "pipeweaver/base/deadline.hpp"

#include <algorithm>
#include <mutex>

namespace pipeweaver::planner {

namespace {

// Of what is left after so many turns of equal length, all of which take `part` of what there was before the first.
double part_of_rest(double part, std::size_t turn, std::size_t turns) {
    const double each = part / static_cast<double>(turns);
    return each / (1 - static_cast<double>(turn) * each);
}

// How much longer replicas take than the time that they are given: what a plan must do of each, and write of it.
class Overrun {
public:
    Duration mean() const { return count_ == 0 ? Duration{} : sum_ / count_; }
    void add(Duration one) {
        sum_ += std::max(Duration{}, one);
        ++count_;
    }

private:
    Duration sum_{};
    std::int64_t count_ = 0;
};

}  // namespace

void for_replicas(std::span<const std::size_t> replicas, const ReplicaWork& work, const Executor& execute,
                  const Time& time, double part) {
    const std::size_t threads = threads_of(execute);
    const bool side_by_side = threads > 1 && (replicas.size() % threads == 0 || replicas.size() >= 2 * threads);
    const std::size_t at_once = side_by_side ? threads : 1;
    const std::size_t turns = (replicas.size() + at_once - 1) / at_once;
    std::mutex mutex;
    std::size_t begun = 0;
    Overrun overrun;
    const auto mine = [&] {
        const std::scoped_lock lock(mutex);
        return time.fraction(part_of_rest(part, begun++ / at_once, turns), overrun.mean());
    };
    const auto run = [&](std::size_t k) {
        const Time own = mine();
        const auto given = own.left();
        const Stopwatch taken;
        work(replicas[k], side_by_side ? in_order : execute, own);
        if (!given) return;
        const std::scoped_lock lock(mutex);
        overrun.add(taken.elapsed() - *given);
    };
    run_jobs(side_by_side ? execute : in_order, replicas.size(), run);
}

}  // namespace pipeweaver::planner
