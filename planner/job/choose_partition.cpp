#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/partition/tune.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "planner/job/sample.hpp"
#include "planner/schedule/schedule_step.hpp"
#include "planner/way/settings.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <tuple>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Partition;

namespace {

Duration mean_of(const std::vector<Duration>& times) {
    return std::accumulate(times.begin(), times.end(), Duration{}) / static_cast<std::int64_t>(times.size());
}

using StepTime = std::optional<Duration>;

// Of one replica, by a short search; none: nothing was found.
StepTime searched_step(const Job& job, const Partition& partition, const Microbatches& batch,
                       const std::vector<std::string>& policies, std::uint64_t rounds) {
    ScheduleWanted wanted = short_search(job, policies);
    wanted.max_rounds = rounds;
    const ScheduledStep searched = schedule_step(
        build(*job.setup, partition, batch, {.name = "search", .most_tasks = sizes.tasks}), wanted, in_order);
    if (!searched.found.schedule) return std::nullopt;
    return searched.found.replay.makespan + searched.step.cut.step.optimizer;
}

class PartitionTrial {
public:
    PartitionTrial(const Job& job, const Batch& batch, const ChoiceEffort& effort, const Executor& execute,
                   const Time& time, const OnDoing& on)
        : job_(job), effort_(effort), execute_(execute), time_(time), on_(on) {
        whole_ = batches_of(job, batch);
        for (Microbatches one : whole_) {
            one.resize(std::min(one.size(), sizes.candidate_microbatches));
            batches_.push_back(std::move(one));
        }
    }

    PartitionChoice run(std::vector<Partition> candidates) {
        for (Partition& one : candidates) choice_.tried.push_back({.partition = std::move(one)});
        refuse_too_many_tasks();
        if (choice_.tried.size() > 1) {
            try_out(0, choice_.tried.size(), 1, false);
            refuse_phases_too_large();
            sort();
            add_tuned();
            kinds_first();
            if (const std::size_t batches = batches_judged(); batches > 1) {
                try_out(0, sizes.candidates_on_all, batches, false);
                sort();
                kinds_first();
            }
            search_shortly();
            search();
            sort();
        }
        choice_.partition = taken().partition;
        if (job_.setup->layout.pp == 1 && job_.recompute.empty()) add_mode_that_fits(choice_.partition);
        choice_.chosen_on = job_.sample.name;
        if (choice_.tried.size() == 1) choice_.tried.clear();
        return std::move(choice_);
    }

private:
    // Judges places `first` to `last` on so many batches, by searches or by policies.
    void try_out(std::size_t first, std::size_t last, std::size_t batches, bool searched) {
        last = std::min(last, choice_.tried.size());
        std::vector<StepTime> time((last - first) * batches);
        std::vector<char> left_out(time.size(), 0);
        run_jobs(told(execute_, on_, searched ? "partition, by searches" : "partition"), time.size(),
                 [&](std::size_t job) {
                     PartitionTried& one = choice_.tried[first + job / batches];
                     const Microbatches& batch = batches_[job % batches];
                     if (!one.why_not.empty()) return;
                     if (ends(batches, searched)) {
                         left_out[job] = 1;
                         return;
                     }
                     time[job] = searched ? searched_step(job_, one.partition, batch, candidate_policies,
                                                          batches == 1 ? quick_choice.rounds : effort_.rounds)
                                          : policy_step(one.partition, batch);
                 });
        for (std::size_t c = first; c < last; ++c) {
            PartitionTried& one = choice_.tried[c];
            std::vector<Duration> of_all;
            std::size_t not_tried = 0;
            for (std::size_t job = (c - first) * batches; job < (c - first + 1) * batches; ++job) {
                if (time[job]) of_all.push_back(*time[job]);
                if (left_out[job]) ++not_tried;
            }
            if (of_all.size() + not_tried < batches) {
                if (one.why_not.empty()) one.why_not = "does not fit";
                continue;
            }
            if (not_tried > 0) {  // it stays as it was judged before
                choice_.cut_short = true;
                continue;
            }
            one.step = mean_of(of_all);
            one.batches = batches;
            one.searched = searched;
        }
    }

    // Whether no more is tried. The first batch is judged whatever the time: without it nothing would be known.
    bool ends(std::size_t batches, bool searched) const { return (searched || batches > 1) && time_.is_over(); }

    // The best chain with its layers moved between stages, where that is faster: it goes in front.
    void add_tuned() {
        const auto best = std::find_if(choice_.tried.begin(), choice_.tried.end(), [&](const PartitionTried& one) {
            return one.why_not.empty() && kind_of(one.partition) == 0;
        });
        if (best == choice_.tried.end() || job_.setup->layout.pp == 1 || !job_.partition.empty()) return;
        const std::size_t count = std::min(batches_.size(), sizes.batches_tuned_on);
        const std::size_t tasks = count * tasks_of(best->partition);
        const partition::Tuning tuning{.step_of = [&](const Partition& one) { return mean_step(one, count); },
                                       .most_steps = effort_.most_tuned / std::max<std::size_t>(1, tasks),
                                       .is_over = [&] { return time_.is_over(); }};
        auto tuned = partition::tune(*job_.setup, best->partition, tuning, told(execute_, on_, "partition, tuned"));
        choice_.cut_short |= time_.is_over();
        if (!tuned) return;
        const StepTime step = policy_step(tuned->partition, batches_.front());
        choice_.tried.insert(best, {.partition = std::move(tuned->partition), .batches = 1, .step = *step});
    }

    // Modules in phases hold what all microbatches of a step have, not only those in flight.
    void refuse_phases_too_large() {
        std::vector<PartitionTried*> phased;
        for (PartitionTried& one : choice_.tried)
            if (!phase_modules(one.partition).empty() && one.why_not.empty()) phased.push_back(&one);
        std::vector<char> fits(phased.size() * whole_.size(), 1);
        run_jobs(execute_, fits.size(), [&](std::size_t job) {
            const Microbatches& batch = whole_[job % whole_.size()];
            if (batch.size() > sizes.candidate_microbatches)
                fits[job] = policy_step(phased[job / whole_.size()]->partition, batch).has_value();
        });
        for (std::size_t job = 0; job < fits.size(); ++job)
            if (!fits[job]) phased[job / whole_.size()]->why_not = "does not fit";
    }

    // For whose tasks of all replicas there is no time, however little of it each gets.
    void refuse_too_many_tasks() {
        if (effort_.most_tasks_of_replica == SIZE_MAX) return;
        std::vector<std::size_t> tasks;
        for (const PartitionTried& one : choice_.tried)
            tasks.push_back(
                count_tasks(one.partition, partition::units(one.partition, job_.setup->model, whole_.front())));
        const std::size_t most = std::max(effort_.most_tasks_of_replica, *std::min_element(tasks.begin(), tasks.end()));
        for (std::size_t c = 0; c < tasks.size(); ++c) {
            if (tasks[c] <= most) continue;
            choice_.tried[c].why_not = no_time_left;
            choice_.cut_short = true;
        }
    }

    std::size_t tasks_of(const Partition& partition) const {
        return count_tasks(partition, partition::units(partition, job_.setup->model, batches_.front()));
    }

    std::size_t tasks_of_first() const { return tasks_of(choice_.tried.front().partition); }

    // What is left of the effort after all candidates on the first batch.
    std::size_t batches_judged() const {
        const std::size_t tasks = std::max<std::size_t>(tasks_of_first(), 1);
        const std::size_t tried = std::min(effort_.most_by_policies, choice_.tried.size() * tasks);
        const std::size_t candidates = std::min(sizes.candidates_on_all, choice_.tried.size());
        return std::clamp<std::size_t>((effort_.most_by_policies - tried) / (candidates * tasks), 1, batches_.size());
    }

    static int kind_of(const Partition& partition) {
        return !phase_modules(partition).empty() ? 2 : partition.chains.size() > 1 ? 1 : 0;
    }

    // Policies compare partitions of one kind against each other; between kinds only a search is fair: what a policy
    // lacks on modules apart, or around those in phases, it does not lack on a chain. So the best of each kind comes
    // first, then the best of each other layout of modules, which differ in what they leave of the memory.
    void kinds_first() {
        std::array<bool, 3> seen{};
        std::vector<ModuleLayouts> layouts;
        std::vector<PartitionTried> best, other_layouts, others;
        for (PartitionTried& one : choice_.tried) {
            bool& known = seen[static_cast<std::size_t>(kind_of(one.partition))];
            const bool first = one.why_not.empty() && !known;
            known = known || first;
            const auto& own = one.partition.layouts;
            const bool of_layout = one.why_not.empty() && kind_of(one.partition) == 1 &&
                                   std::find(layouts.begin(), layouts.end(), own) == layouts.end();
            if (of_layout) layouts.push_back(own);
            (first ? best : of_layout ? other_layouts : others).push_back(std::move(one));
        }
        std::move(other_layouts.begin(), other_layouts.end(), std::back_inserter(best));
        std::move(others.begin(), others.end(), std::back_inserter(best));
        choice_.tried = std::move(best);
    }

    void sort() {
        const auto rank = [](const PartitionTried& one) {
            return std::tuple(!one.why_not.empty(), !one.searched, -static_cast<std::int64_t>(one.batches), one.step);
        };
        std::stable_sort(choice_.tried.begin(), choice_.tried.end(),
                         [&](const PartitionTried& a, const PartitionTried& b) { return rank(a) < rank(b); });
    }

    StepTime policy_step(const Partition& partition, const Microbatches& batch) const {
        const Step known = evaluate(*job_.setup, partition, batch, {.name = "choice"},
                                    {.split = false, .bound = std::nullopt, .policies = candidate_policies});
        if (known.shortage || known.fastest() == nullptr) return std::nullopt;
        return known.fastest()->makespan() + known.cut.step.optimizer;
    }

    // By policies on the first `count` batches; none: one of them does not fit.
    StepTime mean_step(const Partition& partition, std::size_t count) const {
        std::vector<Duration> steps;
        for (std::size_t b = 0; b < count; ++b) {
            const StepTime step = policy_step(partition, batches_[b]);
            if (!step) return std::nullopt;
            steps.push_back(*step);
        }
        return mean_of(steps);
    }

    // Which candidates are worth long searches.
    void search_shortly() {
        choice_.cut_short |= effort_.semifinalists > 0 && time_.is_over();
        if (effort_.semifinalists == 0 || time_.is_over()) return;
        try_out(0, effort_.semifinalists, 1, true);
        sort();
        kinds_first();
    }

    // As many batches as the effort allows, each finalist on all of them.
    void search() {
        std::size_t finalists = 0;
        while (finalists < std::min(effort_.finalists, choice_.tried.size()) &&
               choice_.tried[finalists].why_not.empty())
            ++finalists;
        const std::size_t tasks = tasks_of_first();
        finalists = std::min(finalists, effort_.most_tasks / std::max<std::size_t>(tasks, 1));
        if (finalists < 2) return;
        const std::size_t batches = std::clamp<std::size_t>(effort_.most_tasks / (finalists * tasks), 1,
                                                            std::min(effort_.batches, batches_.size()));
        // The first of them first where a caller may end it, as few at once as keep all threads busy.
        const std::size_t busy = (threads_of(execute_) + batches - 1) / batches;
        const std::size_t at_once = time_.keep_going() ? busy : finalists;
        for (std::size_t f = 0; f < finalists; f += at_once) {
            choice_.cut_short = choice_.cut_short || time_.is_over();
            if (choice_.cut_short) return;
            try_out(f, std::min(f + at_once, finalists), batches, true);
        }
    }

    // With a pipeline some of the microbatches in flight can keep more than others. Without one there is one in flight,
    // and a plan gets the fewest blocks to run again with which the whole sample fits.
    void add_mode_that_fits(Partition& partition) const {
        const auto fits = [&](Recompute mode) {
            Partition one = partition;
            one.modes = {mode};
            return std::all_of(batches_.begin(), batches_.end(),
                               [&](const Microbatches& batch) { return policy_step(one, batch).has_value(); });
        };
        std::int64_t most = 0;
        for (const auto& module : job_.setup->model.modules) most = std::max(most, module.architecture.layers);
        if (fits(Recompute::none) || !fits(Recompute::full)) return;
        std::int64_t too_few = 0, enough = most;
        while (enough - too_few > 1) {
            const std::int64_t n = std::midpoint(too_few, enough);
            (fits(Recompute::blocks(n)) ? enough : too_few) = n;
        }
        const bool is_half = enough == recomputed_layers(most, Recompute::half);
        if (enough < most && !is_half) partition.modes.insert(partition.modes.end() - 1, Recompute::blocks(enough));
    }

    const PartitionTried& taken() const {
        const PartitionTried* best = &choice_.tried.front();
        for (const PartitionTried& one : choice_.tried) {
            const PartitionTried& first = choice_.tried.front();
            if (!one.why_not.empty() || one.searched != first.searched || one.batches != first.batches) break;
            const bool near =
                static_cast<double>(one.step.count()) <= margins.chunks * static_cast<double>(first.step.count());
            if (near && one.partition.chunks_per_rank < best->partition.chunks_per_rank) best = &one;
        }
        return *best;
    }

    const Job& job_;
    const ChoiceEffort& effort_;
    const Executor& execute_;
    const Time& time_;
    const OnDoing& on_;
    std::vector<Microbatches> whole_, batches_;  // the sample, and of each batch the first microbatches
    PartitionChoice choice_;
};

}  // namespace

PartitionChoice choose_partition(const Job& job, const Batch& batch, const ChoiceEffort& effort,
                                 const Executor& execute, const Time& time, const OnDoing& on) {
    if (job.fixed) return {job.fixed->partition, job.fixed->chosen_on, {}, false};
    auto candidates = partition::partitions_for_job(*job.setup, cut_on(job, batch), job.partition, job.layouts);
    for (Partition& one : candidates) one.modes = menu_of(job);
    return PartitionTrial(job, batch, effort, execute, time, on).run(std::move(candidates));
}

Request choose_packing(std::vector<Request> packed, const Executor& execute) {
    const Request& first = packed.front();
    const auto choice = choose_partition(first.job, first.batch, quick_choice, execute);
    const std::size_t batches = std::min(batches_of(first.job, first.batch).size(), sizes.packing_batches);
    std::vector<Duration> steps(packed.size() * batches);
    run_jobs(execute, steps.size(), [&](std::size_t k) {
        const Request& request = packed[k / batches];
        // By the initial schedules of a search: which packing is shorter rounds seldom change.
        steps[k] = searched_step(request.job, choice.partition, batches_of(request.job, request.batch)[k % batches],
                                 quick_policies, 0)
                       .value_or(Duration::max());
    });
    std::size_t best = 0;
    std::vector<double> sums(packed.size());
    for (std::size_t k = 0; k < steps.size(); ++k) sums[k / batches] += static_cast<double>(steps[k].count());
    for (std::size_t p = 1; p < packed.size(); ++p)
        if (sums[p] < margins.packing * sums[0] && sums[p] < sums[best]) best = p;
    if (!packed[best].job.fixed) packed[best].job.fixed = partition::PartitionFile{choice.partition, choice.chosen_on};
    return std::move(packed[best]);
}

std::vector<const StageLoad*> PartitionLoads::all() const {
    std::vector<const StageLoad*> loads;
    for (const StageLoad& one : in_phases) loads.push_back(&one);
    for (const StageLoad& one : stages) loads.push_back(&one);
    return loads;
}

std::vector<Duration> PartitionLoads::rank_times() const {
    std::vector<Duration> times;
    for (const StageLoad* one : all()) {
        times.resize(std::max(times.size(), index(one->stage.rank) + 1));
        times[index(one->stage.rank)] += one->time;
    }
    return times;
}

PartitionLoads loads_of(const Job& job, const Batch& batch, const Partition& partition) {
    const Setup& setup = *job.setup;
    LayerCosts costs = LayerCosts::usual(setup, partition.layouts);
    const auto units = partition::units(partition, setup.model, cut_on(job, batch));
    const auto load_of = [&](StageLayers stage, std::size_t chain, std::int64_t gpus) {
        StageLoad load{std::move(stage)};
        for (const auto& microbatch : units)
            for (const Unit& unit : microbatch[chain])
                for (const PassKind pass : {PassKind::forward, PassKind::backward})
                    load.time += costs.stage(load.stage, unit.shapes, pass).time;
        load.time /= static_cast<std::int64_t>(units.size()) * gpus;
        return load;
    };
    PartitionLoads loads;
    loads.usable = capacity_of(setup);
    const std::size_t chains = partition.chains.size();
    for (std::size_t c = 0; c < chains; ++c)
        for (const StageLayers& stage : partition.chains[c].stages) loads.stages.push_back(load_of(stage, c, 1));
    // Of each rank's GPUs their mean share: items are dealt by cost.
    const auto modules = phase_modules(partition);
    for (std::int64_t r = 0; r < setup.layout.pp; ++r)
        for (std::size_t d = 0; d < modules.size(); ++d) {
            const LayerRange all{modules[d], 0, setup.model.modules[modules[d]].architecture.layers};
            loads.in_phases.push_back(load_of({RankId{static_cast<std::uint32_t>(r)}, {all}}, chains + d,
                                              setup.layout.gpus_of_rank() * setup.layout.pp));
        }
    const auto built = build(setup, partition, {units.front()}, {.name = "loads"});
    if (!built.shortage)
        for (const StaticMemory& memory : built.cut.step.memory) loads.fixed.push_back(memory.total());
    return loads;
}

}  // namespace pipeweaver::planner
