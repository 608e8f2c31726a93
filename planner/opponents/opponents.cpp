#include "pipeweaver/planner/opponents.hpp"

#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/partition/said_layers.hpp"
#include "pipeweaver/partition/tune.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "planner/job/sample.hpp"
#include "planner/replicas/assignment.hpp"
#include "planner/way/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Partition;

namespace {

// How a replica's microbatches are shared out where a way has more replicas on the same GPUs.
std::vector<Microbatches> groups_of(const Setup& setup, const Microbatches& all, std::size_t groups) {
    if (groups == 1) return {all};
    const auto shares = partition::balance(partition::microbatch_costs(setup, all), groups);
    std::vector<Microbatches> parts;
    for (const auto& share : shares) parts.push_back(of_share(all, share));
    return parts;
}

// Ways of one cut stand side by side: first and end of each such row.
std::vector<std::pair<std::size_t, std::size_t>> same_cuts(const std::vector<OpponentWay>& ways) {
    std::vector<std::pair<std::size_t, std::size_t>> rows;
    for (std::size_t w = 0; w < ways.size(); ++w) {
        if (w > 0 && ways[w].cut == ways[w - 1].cut)
            rows.back().second = w + 1;
        else
            rows.emplace_back(w, w + 1);
    }
    return rows;
}

// How many replicas of the way run on the GPUs of one of the plan's: one, too, where there are fewer than the plan's.
std::size_t replicas_for_one(const Way& way, const Setup& plan) {
    return static_cast<std::size_t>(std::max<std::int64_t>(1, way.setup->layout.dp / plan.layout.dp));
}

NotApplicable not_applicable(const OpponentWay& way, const WayResult& ran, const Job& job) {
    return {way.name,
            way.partition.chunks_per_rank,
            way.policy,
            ran.why_not,
            ran.short_by,
            launches(target(job.target), way),
            is_in_layout_of(way, job)};
}

class OpponentTrial {
public:
    OpponentTrial(const Job& job, const Batch& batch, const Executor& execute, const Time& time)
        : job_(job),
          batch_(batch),
          setup_(*job.setup),
          execute_(execute),
          time_(time),
          batches_(batches_of(job, batch)) {}

    Opponents run() {
        add_chains();
        add_without_pipeline();
        // Those in the job's own layout are tried however short the time.
        std::stable_partition(result_.ways.begin(), result_.ways.end(),
                              [&](const OpponentWay& way) { return way.setup == job_.setup; });
        try_first_batch();
        try_all_batches();
        return std::move(result_);
    }

private:
    // The way with each policy that runs it.
    void add(const Way& way) {
        const std::size_t cut = cuts_++;
        const bool is_chain = way.partition.chunks_per_rank == 1;
        for (const std::string_view policy :
             {is_chain ? search::one_f_one_b_policy : search::interleaved_policy, search::gpipe_policy}) {
            if (!way.has_pipeline && policy != search::one_f_one_b_policy) continue;
            OpponentWay& one = result_.ways.emplace_back(OpponentWay{way, cut});
            one.policy = policy;
        }
    }

    void add_chains() {
        if (setup_.layout.pp == 1) return;
        const auto sample = cut_on(job_, batch_);
        for (const partition::Cutting& one : partition::cuttings(partition::Use::opponent, setup_))
            if (auto why = one.why_not(setup_))
                result_.not_applicable.push_back(
                    {one.by->name, one.chunks_per_rank, search::one_f_one_b_policy, std::move(*why)});
            else
                add({.name = one.by->name, .setup = job_.setup, .partition = one.make(setup_, sample)});
    }

    // What engineers take; and without a pipeline the job's own, too.
    std::vector<int> zero_stages(std::int64_t tp) const {
        const int least = std::max(1, target(job_.target).launch.least_zero), most = 3;
        std::vector<int> stages{least, most};
        const int own = setup_.recipe.zero;
        if (setup_.layout.pp == 1 && tp == setup_.layout.tp && own != least && own != most) stages.push_back(own);
        return stages;
    }

    // Every tp inside a node that divides the model, with replicas on the GPUs that are left.
    void add_without_pipeline() {
        const auto& layout = setup_.layout;
        const std::int64_t gpus = layout.gpus() / layout.cp;
        for (std::int64_t tp = 1; tp <= std::min(setup_.cluster.gpus_per_node, gpus); tp *= 2)
            for (const int zero : zero_stages(tp)) {
                Layout flat = layout;
                flat.tp = tp;
                flat.pp = 1;
                // Whole replicas on the GPUs of one of the plan's, or on those of several.
                const std::int64_t gpus_of_one = layout.tp * layout.pp;
                if (gpus_of_one % tp != 0 && (tp % gpus_of_one != 0 || layout.dp % (tp / gpus_of_one) != 0)) continue;
                flat.dp = gpus / tp;
                const std::int64_t of_expert = setup_.recipe.execution.experts.tensor_parallel;
                flat.placement = {};  // its own, by what its recipe sends
                flat.ep = default_ep(flat, setup_.model, of_expert);
                if (conflict(flat, setup_.model, of_expert)) continue;
                Recipe recipe = setup_.recipe;
                recipe.zero = zero;
                if (zero >= 2) recipe.bucket = {};
                const bool own = layout.pp == 1 && tp == layout.tp && zero == setup_.recipe.zero;
                const auto setup =
                    own ? job_.setup : std::make_shared<const Setup>(with_layout(with_recipe(setup_, recipe), flat));
                const auto& by = partition::partitioner(partition::megatron_partition);
                const auto whole = by.make(*setup, batches_.front(), 1);
                add({.name = name_without_pipeline(*setup), .has_pipeline = false, .setup = setup, .partition = whole});
            }
    }

    // None, and why, where the way has too many replicas for the batch.
    std::optional<BuiltWay> built(const OpponentWay& way, const Microbatches& batch, std::string& why_not) const {
        const std::size_t replicas = replicas_for_one(way, setup_);
        // Fewer replicas than the plan's have the batches of several.
        Microbatches all = batch;
        for (std::int64_t more = setup_.layout.dp / way.setup->layout.dp; more > 1; --more)
            all.insert(all.end(), batch.begin(), batch.end());
        if (batch.size() >= replicas) return BuiltWay(way, groups_of(*way.setup, all, replicas), target(job_.target));
        why_not = fmt::format("{} microbatches are fewer than its {} replicas", batch.size(), replicas);
        return std::nullopt;
    }

    void try_first_batch() {
        const auto cuts = same_cuts(result_.ways);
        std::vector<WayResult> ran(result_.ways.size());
        run_jobs(execute_, cuts.size(), [&](std::size_t c) {
            std::string why_not;
            std::optional<BuiltWay> steps;
            if (c >= sizes.opponents_anyhow && time_.is_over())
                why_not = no_time_left;
            else
                steps = built(result_.ways[cuts[c].first], batches_.front(), why_not);
            for (std::size_t w = cuts[c].first; w < cuts[c].second; ++w)
                ran[w] = steps ? steps->run(result_.ways[w].policy, {}) : WayResult{.why_not = why_not};
        });
        std::vector<OpponentWay> running;
        for (std::size_t w = 0; w < ran.size(); ++w) {
            OpponentWay& way = result_.ways[w];
            if (!ran[w].runs()) {
                result_.not_applicable.push_back(not_applicable(way, ran[w], job_));
                result_.not_applicable.back().on_sample = std::make_shared<const OpponentWay>(std::move(way));
                continue;
            }
            way.recompute = ran[w].recompute;
            way.step = ran[w].step;
            way.batches = 1;
            running.push_back(std::move(way));
        }
        result_.ways = std::move(running);
        sort();
    }

    // Asked of clocks alone: of a record of one the questions count, and threads ask these in any order.
    bool is_late() const { return time_.left() && time_.is_over(); }

    // The fastest with one recomputation for all batches: of those that are fastest for one of them, the fastest that
    // fits all.
    void try_all_batches() {
        const std::size_t count = std::min(sizes.opponents_on_all, result_.ways.size());
        run_jobs(execute_, batches_.size() == 1 ? 0 : count, [&](std::size_t w) {
            if (!time_.is_over()) try_all_batches(result_.ways[w]);
        });
        sort();
    }

    void try_all_batches(OpponentWay& way) const {
        std::vector<BuiltWay> steps;
        std::string why_not;
        for (const Microbatches& batch : batches_) {
            auto built_steps = built(way, batch, why_not);
            if (!built_steps) return;
            steps.push_back(std::move(*built_steps));
        }
        std::vector<StepRecompute> settings{*way.recompute};
        for (const BuiltWay& batch : steps) {
            if (is_late()) return;
            const WayResult ran = batch.run(way.policy, way.recompute);
            if (ran.runs() && std::find(settings.begin(), settings.end(), ran.recompute) == settings.end())
                settings.push_back(ran.recompute);
        }
        std::vector<std::pair<bool, Duration>> sums;  // of each setting: whether it does not fit, then the steps
        sums.reserve(settings.size());
        for (const StepRecompute& setting : settings) {
            auto& [does_not_fit, sum] = sums.emplace_back();
            if (is_late()) return;  // it stays as the first batch has it
            for (const BuiltWay& batch : steps) {
                const WayResult ran = batch.run(way.policy, setting);
                does_not_fit = does_not_fit || !ran.runs() || ran.recompute != setting;
                sum += ran.step;
            }
        }
        const auto best = std::min_element(sums.begin(), sums.end());  // of equal ones the first
        way.recompute = settings[static_cast<std::size_t>(best - sums.begin())];
        way.step = best->second / static_cast<std::int64_t>(batches_.size());
        way.batches = batches_.size();
    }

    void sort() {
        std::stable_sort(result_.ways.begin(), result_.ways.end(), [](const OpponentWay& a, const OpponentWay& b) {
            return std::tuple(b.batches, a.step) < std::tuple(a.batches, b.step);
        });
    }

    const Job& job_;
    const Batch& batch_;
    const Setup& setup_;
    const Executor& execute_;
    const Time& time_;
    std::vector<Microbatches> batches_;
    std::size_t cuts_ = 0;
    Opponents result_;
};

Job in_setup_of(const Way& way, const Job& job) {
    Job own = job;
    own.setup = way.setup;
    return own;
}

// The way's replicas, of many the most loaded ones and the fullest, in which a way must fit, too.
std::vector<Microbatches> examined_replicas(const Way& way, const Job& job, const Batch& batch,
                                            const Executor& execute) {
    Assignment assignment = assign(in_setup_of(way, job), batch, execute);
    const auto costs = partition::microbatch_costs(*way.setup, batch.microbatches, execute);
    const auto loads = partition::loads(assignment.shares, costs);
    std::vector<std::size_t> order = largest_first(loads);
    order.resize(std::min(order.size(), sizes.replicas_examined * replicas_for_one(way, *job.setup)));
    const std::size_t full = fullest(assignment.microbatches);
    if (std::find(order.begin(), order.end(), full) == order.end()) order.push_back(full);
    return some_as_run(way, target(job.target), assignment.microbatches, order);
}

// The best of the job's own layout that its target launches as one chain, each of another cut.
std::vector<OpponentWay> best_chains(const Opponents& opponents, const Job& job) {
    std::vector<OpponentWay> best;
    for (const OpponentWay& way : launched_here(opponents, job).ways) {
        if (best.size() == sizes.cuts_tuned) break;
        const Partition& cut = way.partition;
        const bool is_chain =
            way.has_pipeline && way.layers.empty() && phase_modules(cut).empty() && cut.chains.size() == 1;
        const bool is_known =
            std::any_of(best.begin(), best.end(), [&](const OpponentWay& other) { return other.cut == way.cut; });
        if (is_chain && !is_known) best.push_back(way);
    }
    return best;
}

// How many microbatches tell cuts apart: whole groups of one for each rank, where there are as many.
std::size_t tuned_on(std::size_t microbatches, const Layout& layout) {
    const std::size_t some = std::min(microbatches, sizes.candidate_microbatches);
    const auto ranks = static_cast<std::size_t>(layout.pp);
    return some == microbatches || some < ranks ? some : some - some % ranks;
}

OpponentWay with_cut(const OpponentWay& way, Partition cut) {
    OpponentWay tuned = way;
    tuned.name = way.partition.name + " tuned";
    tuned.layers = partition::text_of(partition::said_layers(way.setup->model, cut));
    tuned.partition = std::move(cut);
    return tuned;
}

}  // namespace

Opponents choose_opponents(const Job& job, const Batch& batch, const Executor& execute, const Time& time) {
    return OpponentTrial(job, batch, execute, time).run();
}

Baselines run_opponents(const Opponents& opponents, const Job& job, const Batch& batch, const Executor& execute,
                        const Time& time) {
    const auto& ways = opponents.ways;
    const OpponentWay* const fastest_launched = searches_order(job) ? nullptr : first_launched(opponents, job);
    const OpponentWay* const anyhow = fastest_launched != nullptr || ways.empty() ? fastest_launched : &ways.front();
    std::vector<WayResult> ran(ways.size());
    run_jobs(execute, ways.size(), [&](std::size_t w) {
        const OpponentWay& way = ways[w];
        const Batch packed = job.in_layout(batch, way.setup->layout);
        if (packed.microbatches.size() < static_cast<std::size_t>(way.setup->layout.dp)) {
            ran[w].why_not = "the batch has fewer microbatches than its replicas";
            return;
        }
        if (&way != anyhow && time.is_over()) {
            ran[w].why_not = no_time_left;
            return;
        }
        const BuiltWay built(way, examined_replicas(way, job, packed, in_order), target(job.target));
        const IsLate is_late = [&] { return &way != anyhow && time.left() && time.is_over(); };
        ran[w] = built.run(way.policy, way.recompute, false, is_late);
    });
    Baselines result;
    result.not_applicable = opponents.not_applicable;
    for (std::size_t w = 0; w < ways.size(); ++w) {
        OpponentWay way = ways[w];
        if (!ran[w].runs()) {
            result.not_applicable.push_back(not_applicable(way, ran[w], job));
            continue;
        }
        Baseline baseline{way.name, way.partition.chunks_per_rank, way.policy};
        baseline.makespan = ran[w].makespan;
        baseline.step = ran[w].step;
        way.recompute = baseline.recompute = ran[w].recompute;
        baseline.command = command_of(way, job, batch);
        baseline.is_opponent = true;
        baseline.way = w;
        baseline.launched = launches(target(job.target), way);
        baseline.on_own_ranks = way.setup == job.setup;
        baseline.padded = baseline.launched && pads(target(job.target), way.setup->layout);
        result.all.push_back(std::move(baseline));
    }
    std::stable_sort(result.all.begin(), result.all.end(),
                     [](const Baseline& a, const Baseline& b) { return a.step < b.step; });
    return result;
}

OpponentWay way_of(const Baseline& row, const Opponents& all) {
    OpponentWay way = all.ways[*row.way];
    way.recompute = row.recompute;
    return way;
}

OpponentResult run_on_all(const Way& way, const Job& job, const Batch& batch, const Executor& execute, bool exactly) {
    Batch own = job.in_layout(batch, way.setup->layout);
    Assignment assignment = assign(in_setup_of(way, job), own, execute);
    return {run_way(way, std::move(assignment.microbatches), target(job.target), exactly, execute), std::move(own),
            std::move(assignment.shares)};
}

bool add_tuned(Opponents& opponents, const Job& job, const Batch& batch, const Executor& execute, const Time& time) {
    const auto batches = batches_of(job, batch);
    std::vector<Microbatches> few(batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                         batches.size(), sizes.batches_tuned_on)));
    for (Microbatches& one : few) one.resize(tuned_on(one.size(), job.setup->layout));
    const Target& runs = target(job.target);
    for (const OpponentWay& way : best_chains(opponents, job)) {
        if (time.is_over()) return false;
        const partition::Tuning tuning{.step_of = [&](const Partition& cut) -> std::optional<Duration> {
                                           const OpponentWay tried = with_cut(way, cut);
                                           if (!launches(runs, tried)) return std::nullopt;
                                           const WayResult ran = BuiltWay(tried, few, runs).run(way.policy, {});
                                           return ran.runs() ? std::optional(ran.step) : std::nullopt;
                                       },
                                       .most_steps = sizes.steps_tuned,
                                       .is_over = [&] { return time.is_over(); }};
        auto found = partition::tune(*job.setup, way.partition, tuning, execute);
        if (!found) continue;
        OpponentWay tuned = with_cut(way, std::move(found->partition));
        // With one recomputation for the whole sample.
        const WayResult ran = BuiltWay(tuned, batches, runs).run(way.policy, {});
        if (!ran.runs()) continue;
        tuned.recompute = ran.recompute;
        tuned.cut = opponents.ways.size() + opponents.not_applicable.size();  // a number of its own
        opponents.ways.push_back(std::move(tuned));
    }
    return !time.is_over();
}

}  // namespace pipeweaver::planner
