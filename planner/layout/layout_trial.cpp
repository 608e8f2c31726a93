#include "planner/layout/layout_trial.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/partition/replicas.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "planner/schedule/schedule_step.hpp"
#include "planner/way/run.hpp"
#include "planner/way/settings.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;

namespace {

constexpr const char* by_time = search::dual_queue_policy;

// At most `count` of them, evenly spread.
template <class One>
std::vector<One> sample_of(const std::vector<One>& all, std::size_t count) {
    if (all.size() <= count) return all;
    std::vector<One> sample;
    for (std::size_t i = 0; i < count; ++i) sample.push_back(all[i * all.size() / count]);
    return sample;
}

// The one that holds most.
const workloads::Microbatch& largest_of(const Microbatches& all) {
    const auto size = [](const workloads::Microbatch& one) {
        return std::pair(workloads::positions_of(one), one.tokens);
    };
    return *std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) { return size(a) < size(b); });
}

Duration sum_of(const std::vector<Duration>& times) { return std::accumulate(times.begin(), times.end(), Duration{}); }

// What a replica runs, and how long the work of each microbatch is.
struct JudgedReplica {
    Microbatches microbatches;
    std::vector<Duration> costs;

    Duration load() const { return sum_of(costs); }
};

// What each replica runs, the most loaded first.
std::vector<JudgedReplica> heaviest_first(const LayoutRequest& request, const Setup& setup, JudgedReplica together) {
    if (request.for_each_replica || setup.layout.dp == 1) return {std::move(together)};
    const auto shares = partition::balance(together.costs, static_cast<std::size_t>(setup.layout.dp));
    std::vector<JudgedReplica> all;
    for (const std::size_t replica : largest_first(partition::loads(shares, together.costs))) {
        all.push_back({of_share(together.microbatches, shares[replica]), {}});
        for (const std::size_t m : shares[replica]) all.back().costs.push_back(together.costs[m]);
    }
    return all;
}

// The replicas by which a layout is judged.
struct JudgedReplicas {
    std::vector<JudgedReplica> of;
    std::size_t microbatches = 0;  // of all replicas
    Duration left_out{};           // work of the microbatches that the only one is judged without

    const JudgedReplica& first() const { return of.front(); }

    // A time for all microbatches of the first share, where those that were left out keep the ranks as busy as the
    // others do once the pipeline is full.
    Duration whole(const StepProblem& step, const Partition& cut, Duration makespan) const {
        if (left_out == Duration{}) return makespan;
        std::vector<Duration> busy(step.problem.ranks.size());
        for (const Task& task : step.problem.tasks) busy[index(task.rank)] += task.duration;
        const Duration busiest = *std::max_element(busy.begin(), busy.end());
        const auto ranks = static_cast<std::int64_t>(busy.size());
        const auto count = static_cast<std::int64_t>(first().microbatches.size());
        const Duration filling = busiest * (ranks - 1) / (count * std::max<std::int64_t>(1, cut.chunks_per_rank));
        const Duration full = std::max(busiest, makespan - filling);
        const double part = static_cast<double>(left_out.count()) / static_cast<double>(first().load().count());
        return makespan + Duration{static_cast<std::int64_t>(part * static_cast<double>(full.count()))};
    }
};

bool is_same(const workloads::Microbatch& a, const workloads::Microbatch& b) { return a.samples == b.samples; }

// The most loaded replicas, and the one that has the batch's largest microbatch.
void keep_examined(std::vector<JudgedReplica>& replicas, const workloads::Microbatch& largest) {
    if (replicas.size() <= sizes.replicas_examined) return;
    const auto full = std::find_if(replicas.begin(), replicas.end(), [&](const JudgedReplica& replica) {
        return std::any_of(replica.microbatches.begin(), replica.microbatches.end(),
                           [&](const auto& one) { return is_same(one, largest); });
    });
    const auto kept = replicas.begin() + static_cast<std::ptrdiff_t>(sizes.replicas_examined);
    if (full > kept && full != replicas.end()) std::iter_swap(kept, full);
    replicas.resize(sizes.replicas_examined + (full >= kept && full != replicas.end() ? 1 : 0));
}

// The most loaded replica with as many of its microbatches as fill the pipeline twice; or the most loaded ones whole.
JudgedReplicas shares_of(const LayoutRequest& request, const Setup& setup, const std::vector<Duration>& costs,
                         LayoutEffort effort) {
    JudgedReplicas shares;
    JudgedReplica all{request.microbatches, costs};
    if (request.for_each_replica)
        all = {sample_of(all.microbatches, sizes.layout_microbatches), sample_of(costs, sizes.layout_microbatches)};
    shares.microbatches =
        all.microbatches.size() * static_cast<std::size_t>(request.for_each_replica ? setup.layout.dp : 1);
    const workloads::Microbatch largest = largest_of(all.microbatches);
    shares.of = heaviest_first(request, setup, std::move(all));
    if (effort == LayoutEffort::whole) {
        keep_examined(shares.of, largest);
        return shares;
    }
    shares.of.resize(1);
    JudgedReplica& first = shares.of.front();
    // Of passes that reach into each other every one is priced kernel by kernel: half as many.
    const std::size_t part = setup.recipe.is_serial() ? 1 : 2;
    const std::size_t enough = std::clamp<std::size_t>(2 * static_cast<std::size_t>(setup.layout.pp),
                                                       sizes.layout_fewest, sizes.layout_microbatches) /
                               part;
    if (first.microbatches.size() > enough) {
        const Duration load = first.load();
        first = {sample_of(first.microbatches, enough), sample_of(first.costs, enough)};
        shares.left_out = load - first.load();
    }
    return shares;
}

// What the passes of a rank need at least where microbatches run one after the other, with everything recomputed.
std::vector<Bytes> least_memory(const Problem& problem, std::size_t microbatches) {
    const std::size_t ranks = problem.ranks.size();
    std::vector<Bytes> held(ranks * microbatches), transient(ranks * microbatches);
    for (const Pair& pair : problem.pairs) {
        const Task& task = problem.tasks[index(pair.forward)];
        const auto least = std::min_element(pair.modes.begin(), pair.modes.end(),
                                            [](const Mode& a, const Mode& b) { return a.held < b.held; });
        const std::size_t place = static_cast<std::size_t>(*task.microbatch) * ranks + index(task.rank);
        held[place] += least->held;
        transient[place] = std::max({transient[place], least->transient, least->forward_transient});
    }
    std::vector<Bytes> most(ranks);
    for (std::size_t place = 0; place < held.size(); ++place)
        most[place % ranks] = std::max(most[place % ranks], held[place] + transient[place]);
    return most;
}

// Of the rank that needs most, whether it is short or not.
MemoryShortage fullest_rank(const StepProblem& step, const std::vector<Bytes>& passes, Bytes usable) {
    std::size_t fullest = 0;
    const auto needed = [&](std::size_t rank) {
        return std::max(step.memory[rank].total() + passes[rank], step.memory[rank].at_update);
    };
    for (std::size_t r = 1; r < passes.size(); ++r)
        if (needed(r) > needed(fullest)) fullest = r;
    const StaticMemory& fixed = step.memory[fullest];
    return {RankId{static_cast<std::uint32_t>(fullest)}, fixed, needed(fullest) - fixed.total(), usable, {}, {}, {}};
}

// A policy on a partition, as slow as the slowest replica that was tried.
struct TriedPolicy {
    std::size_t cut = 0;  // its place among the trial's partitions
    std::string policy;
    std::optional<StepRecompute> recompute{};  // of all replicas
    Duration step{};
    Bytes memory{};
};

// What stands for `selective`: what the target's users get by that word. Where that is core attention, which leaves out
// nothing, a layout is judged with `selective` itself.
Recompute selective_in(const LayoutRequest& request, const Setup& setup) {
    const Recompute said = selective_of(target(request.target).launch, setup.recipe.execution.fused_attention);
    return said == Recompute::core_attention ? Recompute::selective : said;
}

class Trial {
public:
    Trial(const LayoutRequest& request, const Setup& setup, const std::vector<Duration>& costs, LayoutEffort effort)
        : setup_(setup),
          whole_(effort == LayoutEffort::whole),
          only_launched_(request.only_launched),
          selective_(selective_in(request, setup)),
          usable_(capacity_of(setup)),
          shares_(shares_of(request, setup, costs, LayoutEffort::quick)),
          whole_replicas_(whole_ ? shares_of(request, setup, costs, LayoutEffort::whole) : JudgedReplicas{}),
          sample_(sample_of(request.microbatches, sizes.layout_cut)),
          largest_(largest_of(request.microbatches)) {}

    LayoutTrial run() {
        if (setup_.layout.pp == 1) {
            try_cut(partition::balanced_partition, 1, {search::one_f_one_b_policy});
        } else {
            // Of those that are priced kernel by kernel fewer cuts are tried.
            if (whole_ || setup_.recipe.is_serial())
                try_cut(partition::first_stage_partition, 1, {search::one_f_one_b_policy});
            try_cut(partition::balanced_partition, 1, {search::one_f_one_b_policy});
            try_cut(partition::balanced_partition, 2, {search::interleaved_policy});
            if (!only_launched_) try_cut(partition::dip_partition, 0, {});
            if (whole_ && only_launched_)
                for (const std::int64_t chunks : {4, 8})
                    try_cut(partition::balanced_partition, chunks, {search::interleaved_policy});
        }
        std::stable_sort(ways_.begin(), ways_.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
        const auto best =
            std::find_if(ways_.begin(), ways_.end(), [&](TriedPolicy& way) { return !whole_ || runs_on_all(way); });
        if (best != ways_.end()) take(*best);
        result_.whole = whole_;
        return std::move(result_);
    }

private:
    // Adds what policies make of the most loaded replica.
    void try_cut(std::string_view name, std::int64_t chunks, std::vector<std::string> policies) {
        const partition::Cutting cutting{&partition::partitioner(name), chunks};
        if (cutting.why_not(setup_)) return;  // more stages than layers
        cuts_.push_back(cutting.make(setup_, sample_));
        const auto menu = settings(cuts_.back());
        auto known = fitting(cuts_.back(), shares_.first().microbatches, menu);
        if (!known) return;
        if (!whole_) at_best(*known, policies.empty() ? std::string(by_time) : policies.front());
        const bool any_order = setup_.layout.pp > 1 && !only_launched_;
        if (policies.empty() || any_order) policies.emplace_back(by_time);
        if (whole_ && setup_.layout.pp > 1 && policies.front() != by_time) policies.emplace_back(search::gpipe_policy);
        for (const std::string& policy : policies) {
            TriedPolicy way{.cut = cuts_.size() - 1, .policy = policy};
            if (run(way, {&*known}, menu, shares_)) ways_.push_back(std::move(way));
        }
    }

    // What the policy would take if nothing were recomputed and no gradients exchanged.
    void at_best(const Step& known, const std::string& policy) {
        Problem endless = known.cut.step.problem;
        for (Rank& rank : endless.ranks) {
            rank.capacity.reset();
            rank.tail = {};
        }
        const auto run = search::apply_policy(policy, Replayer(endless));
        if (!run.schedule) return;
        const Duration step = shares_.whole(known.cut.step, known.cut.partition, run.replay.makespan);
        result_.at_best = result_.at_best ? std::min(*result_.at_best, step) : step;
    }

    // Judges the way by the most loaded replicas, with all they have.
    bool runs_on_all(TriedPolicy& way) {
        const Partition& cut = cuts_[way.cut];
        const auto menu = settings(cut);
        const std::size_t tasks =
            count_tasks(cut, partition::units(cut, setup_.model, whole_replicas_.first().microbatches));
        const std::size_t few = std::max<std::size_t>(1, sizes.tasks / std::max<std::size_t>(1, tasks));
        std::vector<Step> known;
        for (std::size_t r = 0; r < std::min(few, whole_replicas_.of.size()); ++r) {
            auto step = fitting(cut, whole_replicas_.of[r].microbatches, menu);
            if (!step) return false;
            known.push_back(std::move(*step));
        }
        std::vector<Step*> steps;
        for (Step& one : known) steps.push_back(&one);
        way.step = {};
        return run(way, steps, menu, whole_replicas_);
    }

    void take(const TriedPolicy& way) {
        const Partition& cut = cuts_[way.cut];
        result_.tried = LayoutTried{setup_.layout,       setup_.recipe.zero, shares_.microbatches, way.step,  cut.name,
                                    cut.chunks_per_rank, way.policy,         way.recompute,        way.memory};
        result_.shortage.reset();
        result_.partitions.push_back(cut);
        if (setup_.layout.pp == 1) return;  // any order takes as long
        const bool dip_runs = std::any_of(ways_.begin(), ways_.end(), [&](const TriedPolicy& other) {
            return cuts_[other.cut].name == partition::dip_partition;
        });
        if (dip_runs && cut.name != partition::dip_partition) result_.partitions.push_back(cuts_.back());
    }

    std::vector<Recompute> settings(const Partition& partition) const {
        auto all = usual_of(partition);
        std::replace(all.begin(), all.end(), Recompute::selective, selective_);
        return all;
    }

    std::vector<Recompute> usual_of(const Partition& partition) const {
        std::vector<Recompute> all{Recompute::none, Recompute::selective, Recompute::full};
        if (whole_ || setup_.recipe.is_serial()) all.insert(all.end() - 1, Recompute::half);
        if (!whole_ || partition.chains.size() > 1) return all;
        // Of the many settings of opponents, which differ in blocks, about a dozen.
        const auto many = opponent_settings(setup_, partition);
        constexpr std::size_t most = 10;
        for (std::size_t i = 0; i < std::min(most, many.size()); ++i) {
            const Recompute one = many[i * many.size() / std::min(most, many.size())];
            if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
        }
        return all;
    }

    // With the memory of the cluster; none if the share needs more.
    std::optional<Step> fitting(const Partition& partition, const Microbatches& share,
                                const std::vector<Recompute>& menu) {
        // Built without a limit on memory, so that what is short is known. The largest microbatch alone, whosever it
        // is, shows quickly what is too large.
        const StepWanted wanted{
            .name = "layout", .menu = menu, .capacity = Bytes{std::int64_t{1} << 60}, .priced_split = false};
        std::optional<Step> known;
        for (const Microbatches& some : {Microbatches{largest_}, share}) {
            if (known) alone_ = std::move(known);
            known = build(setup_, partition, some, wanted);
            if (known->shortage) fail(ErrorKind::limit, "{}", known->shortage->text());
            const StepProblem& step = known->cut.step;
            const auto fullest = fullest_rank(step, least_memory(step.problem, some.size()), usable_);
            if (fullest.short_by() > Bytes{}) {
                if (!result_.shortage || fullest.short_by() < result_.shortage->short_by()) result_.shortage = fullest;
                return std::nullopt;
            }
        }
        for (auto* step : {&*known, &*alone_})
            for (auto& rank : step->cut.step.problem.ranks) rank.capacity = usable_;
        return known;
    }

    // With the policy's setting, where it has one and all fit with it, else with the fastest that all fit with: these
    // replicas, and the batch's largest microbatch wherever it is.
    bool run(TriedPolicy& way, const std::vector<Step*>& known, const std::vector<Recompute>& menu,
             const JudgedReplicas& on) const {
        if (way.policy == by_time) return run_by_times(way, known, menu, on);
        std::vector<const Step*> steps(known.begin(), known.end());
        steps.push_back(&*alone_);
        const WayResult ran = run_steps(steps, way.policy, menu, way.recompute, false);
        if (!ran.runs()) return false;
        way.recompute = ran.recompute;
        for (std::size_t r = 0; r < known.size(); ++r) take_slower(way, *known[r], ran.replicas[r], on);
        return true;
    }

    void take_slower(TriedPolicy& way, const Step& known, const ReplicaRun& ran, const JudgedReplicas& on) const {
        const StepProblem& step = known.cut.step;
        way.step = std::max(way.step, on.whole(step, cuts_[way.cut], ran.makespan) + step.optimizer);
        way.memory = std::max(way.memory, *std::max_element(ran.peak.begin(), ran.peak.end()));
    }

    // The dual queue under the fastest setting that it finds safe on each replica.
    bool run_by_times(TriedPolicy& way, const std::vector<Step*>& known, const std::vector<Recompute>& menu,
                      const JudgedReplicas& on) const {
        for (Step* one : known) {
            apply_policies(*one, {.split = false, .bound = std::nullopt, .policies = {{std::string(by_time)}}});
            const PolicyRun& run = one->policies.front();
            if (!run.applies()) return false;
            const auto& modes = run.result.schedule->mode;
            way.recompute = {.everywhere = modes.empty() ? Recompute::none : menu[modes.front()]};
            take_slower(way, *one,
                        {.makespan = run.makespan(), .peak = peaks_of(one->cut.step, run.result.replay.peak)}, on);
        }
        return true;
    }

    const Setup& setup_;
    const bool whole_, only_launched_;
    const Recompute selective_;
    const Bytes usable_;
    const JudgedReplicas shares_, whole_replicas_;
    const Microbatches sample_;  // that partitions are cut on
    const workloads::Microbatch largest_;
    std::vector<Partition> cuts_;
    std::vector<TriedPolicy> ways_;
    std::optional<Step> alone_;  // of the cut that was built last: the largest microbatch
    LayoutTrial result_;
};

// Of those that a plan of the layout could take the best by policies of each kind: one chain, modules apart, in phases.
std::vector<Partition> best_of_kinds(const std::shared_ptr<const Setup>& setup, const Microbatches& share,
                                     const std::string& target) {
    Job job;
    job.target = target;
    job.setup = setup;
    job.sample.batches = {share};
    const PartitionChoice choice = choose_partition(job, {}, by_policies, in_order);
    std::vector<Partition> best;
    const auto kind = [](const Partition& one) { return std::pair(phase_modules(one).empty(), one.chains.size() > 1); };
    for (const PartitionTried& one : choice.tried) {
        const bool known = std::any_of(best.begin(), best.end(),
                                       [&](const Partition& other) { return kind(other) == kind(one.partition); });
        if (one.why_not.empty() && !known) best.push_back(one.partition);
    }
    return best;
}

}  // namespace

std::string recompute_of(const LayoutTried& tried) { return tried.recompute ? name_of(*tried.recompute) : "by-pass"; }

LayoutTrial try_layout(const LayoutRequest& request, const Setup& setup, const std::vector<Duration>& costs,
                       LayoutEffort effort) {
    return Trial(request, setup, costs, effort).run();
}

void search_layout(const LayoutRequest& request, const std::shared_ptr<const Setup>& setup,
                   const std::vector<Duration>& costs, LayoutTrial& trial) {
    if (setup->layout.pp == 1) return;
    JudgedReplicas shares = shares_of(request, *setup, costs, trial.whole ? LayoutEffort::whole : LayoutEffort::quick);
    const auto is_large = [&](const Partition& cut) {
        return count_tasks(cut, partition::units(cut, setup->model, shares.first().microbatches)) >
               sizes.tasks_of_layout;
    };
    if (trial.whole && std::any_of(trial.partitions.begin(), trial.partitions.end(), is_large))
        shares = shares_of(request, *setup, costs, LayoutEffort::quick);
    auto cuts = trial.partitions;
    auto more = best_of_kinds(setup, shares.first().microbatches, request.target);
    if (!trial.whole) more.resize(std::min<std::size_t>(more.size(), 1));
    std::move(more.begin(), more.end(), std::back_inserter(cuts));
    ScheduleWanted wanted{.policies = quick_policies,
                          .bounds = search::BoundEffort::quick,
                          .policy_bounds = search::BoundEffort::quick,
                          .max_rounds = trial.whole ? layout_rounds : 0};
    for (const Partition& cut : cuts) {
        if (is_large(cut)) continue;
        const auto searched =
            schedule_step(build(*setup, cut, shares.first().microbatches, {.name = "layout"}), wanted, in_order);
        if (!searched.found.schedule) continue;
        const auto& replay = searched.found.replay;
        const Duration step =
            shares.whole(searched.searched(), cut, replay.makespan) + searched.step.cut.step.optimizer;
        LayoutTried& tried = *trial.tried;
        tried.searched = true;
        if (step >= tried.step) continue;
        tried.step = step;
        tried.partition = cut.name;
        tried.chunks_per_rank = cut.chunks_per_rank;
        tried.policy = "search";
        tried.recompute.reset();
        const auto peaks = peaks_of(searched.searched(), replay.peak);
        tried.memory = *std::max_element(peaks.begin(), peaks.end());
    }
}

}  // namespace pipeweaver::planner
