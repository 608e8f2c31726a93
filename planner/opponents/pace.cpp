// What a plan must do and how much of its time known schedules may take, by what one of them takes on this machine now.
#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "planner/job/sample.hpp"
#include "planner/way/run.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

// A known schedule that needs no choice; none: its cut does not apply.
std::optional<Way> plain_way(const Job& job, const Batch& batch) {
    const partition::Cutting cutting{&partition::partitioner(partition::megatron_partition), 1};
    if (cutting.why_not(*job.setup)) return std::nullopt;
    return Way{.name = cutting.by->name,
               .setup = job.setup,
               .partition = cutting.make(*job.setup, cut_on(job, batch)),
               .policy = search::one_f_one_b_policy,
               .recompute = StepRecompute{.everywhere = Recompute::full}};
}

// The way on all replicas, by some of them on all threads: whatever else runs on the machine counts. None: it does not
// run, and ends too soon to tell.
std::optional<Duration> time_on_all(const Way& way, const Job& job, const Batch& batch, const Executor& execute) {
    const auto all = static_cast<std::size_t>(way.setup->layout.dp);
    constexpr std::size_t turns = 8;
    const std::size_t each = batch.microbatches.size() / all, count = std::min(all, turns * threads_of(execute));
    std::vector<Microbatches> some;
    for (auto at = batch.microbatches.begin(); some.size() < count; at += static_cast<std::ptrdiff_t>(each))
        some.emplace_back(at, at + static_cast<std::ptrdiff_t>(each));
    const auto runs = [&] { return run_way(way, some, target(job.target), true, execute).runs(); };
    if (!runs()) return std::nullopt;  // prices what later runs find priced
    const Stopwatch taken;
    static_cast<void>(runs());
    return taken.elapsed() * static_cast<std::int64_t>(all) / static_cast<std::int64_t>(count);
}

// Tasks of a replica as the way runs it; at least one.
std::int64_t tasks_of(const Way& way, const Batch& batch) {
    std::size_t stages = 0;
    for (const auto& chain : way.partition.chains) stages += chain.stages.size();
    const auto all = static_cast<std::int64_t>(2 * stages * batch.microbatches.size());
    return std::max<std::int64_t>(1, all / way.setup->layout.dp);
}

// What must be done of all replicas, if each has no more tasks than the way.
Duration time_of_fewest(const Job& job, const Batch& batch, const Executor& execute) {
    const auto way = plain_way(job, batch);
    const auto replicas = static_cast<std::size_t>(job.setup->layout.dp);
    return way ? tasks_of(*way, batch) * time_of_tasks(job, batch, replicas, execute) : Duration{};
}

}  // namespace

Duration time_of_tasks(const Job& job, const Batch& batch, std::size_t replicas, const Executor& execute) {
    const auto all = static_cast<std::int64_t>(std::max<std::size_t>(1, replicas));
    const auto way = plain_way(job, batch);
    const auto taken = way ? time_on_all(*way, job, batch, execute) : std::nullopt;
    const Duration each = taken ? *taken * runs_to_plan * all / (tasks_of(*way, batch) * job.setup->layout.dp)
                                : time_of_task * all / static_cast<std::int64_t>(threads_of(execute));
    return std::max(Duration{1}, each);
}

AfterSearch time_after_search(const Job& job, const Batch& batch, const Way* opponent, const Executor& execute,
                              const Time& time) {
    if (!time.left() || time.is_over()) return {};
    const auto plain = plain_way(job, batch);
    const Way* const run = plain ? &*plain : opponent;
    if (run == nullptr) return {};
    const auto replicas = static_cast<std::size_t>(job.setup->layout.dp);
    const std::int64_t tasks = tasks_of(*run, batch),
                       of_plan = opponent == nullptr ? tasks : tasks_of(*opponent, batch);
    const Duration each = time_of_tasks(job, batch, replicas, execute) / runs_to_plan;
    const auto takes = [&](const RunsAfter& runs) {
        return (runs.by_tasks * of_plan + runs.by_microbatches * tasks) * each;
    };
    return {opponent == nullptr ? Duration{} : takes(runs_to_plan_again), takes(runs_to_end)};
}

Time time_for_opponents(const Job& job, const Batch& batch, const Executor& execute, const Time& time, double runs,
                        const Way* like) {
    const bool is_measured = time.left() && !time.is_over();
    if (searches_order(job)) {
        const Duration rest = is_measured ? time_of_fewest(job, batch, execute) : Duration{};
        return time.fraction(1, rest).fraction(beside_replicas(fractions.opponents, job, threads_of(execute)));
    }
    const auto way = !is_measured ? std::nullopt : like != nullptr ? std::optional(*like) : plain_way(job, batch);
    const auto taken = way ? time_on_all(*way, job, batch, execute) : std::nullopt;
    const auto on_ranks = static_cast<std::int64_t>(batch.microbatches.size()) * job.setup->layout.pp;
    if (!taken) return time.fraction(fractions.launched, on_ranks * launching_a_microbatch);
    const double reserve = runs * static_cast<double>(taken->count());
    return time.fraction(fractions.launched, Duration{static_cast<std::int64_t>(reserve)});
}

}  // namespace pipeweaver::planner
