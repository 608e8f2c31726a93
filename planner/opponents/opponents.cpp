#include "pipeweaver/planner/opponents.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "planner/job/sample.hpp"
#include "planner/opponents/opponent_run.hpp"
#include "planner/replicas/assignment.hpp"
#include "planner/schedule/recompute_settings.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Partition;

namespace {

// A step of one replica as a way runs it.
struct Ran {
    std::string recompute;
    Duration makespan{}, step{};
    std::string why_not;
};

// The replicas' steps of a batch, cut as a way cuts them and built with every setting: any policy can be run on them.
class BuiltSteps {
public:
    // As `target` would run the way, if it launches it.
    BuiltSteps(const OpponentWay& way, const std::vector<Microbatches>& replicas, const Target& target)
        : target_(launches(target, way) ? &target : &targets().front()),
          settings_(settings_of(*target_, *way.setup, way.partition)) {
        for (const Microbatches& microbatches : replicas) {
            known_.push_back(build(*way.setup, way.partition,
                                   target_->fixed_shapes ? partition::pad(microbatches).microbatches : microbatches,
                                   {.name = "opponent",
                                    .target = target_,
                                    .menu = settings_,
                                    .priced_split = false,
                                    .most_tasks = sizes.tasks}));
            if (known_.back().shortage) break;
        }
    }

    // With the setting of that name; without one, or where it does not fit, with the fastest that does.
    std::optional<SettingRun> scheduled(std::size_t replica, std::string_view policy, const std::string& recompute,
                                        std::string& why_not) const {
        std::optional<SettingRun> found;
        const Step& known = known_[replica];
        if (known.shortage) {
            why_not = known.shortage->text();
            return found;
        }
        if (!recompute.empty()) found = run_setting(known.cut.step, policy, settings_, recompute);
        if (!found) found = fastest_setting(known.cut.step, policy, settings_, why_not, target_->launch.by_rank);
        return found;
    }

    // The slowest replica, all of them with one setting: the one that is named, or where it does not fit all, of those
    // that are fastest for one of them the fastest that does.
    Ran run(std::string_view policy, const std::string& recompute) const {
        std::vector<std::string> settings;
        Ran ran;
        for (std::size_t r = 0; r < known_.size(); ++r) {
            const auto found = scheduled(r, policy, recompute, ran.why_not);
            if (!found) return ran;
            if (std::find(settings.begin(), settings.end(), found->recompute) == settings.end())
                settings.push_back(found->recompute);
        }
        std::optional<Ran> best;
        for (const std::string& setting : settings)
            if (auto all = with_setting(policy, setting); all && (!best || all->step < best->step)) best = all;
        if (best) return in_full(policy, *best);
        ran.why_not = "no recomputation fits all replicas";
        return ran;
    }

    Step take(std::size_t replica) { return std::move(known_[replica]); }

private:
    // Nothing where it does not fit one of them.
    std::optional<Ran> with_setting(std::string_view policy, const std::string& setting) const {
        Ran slowest{setting, {}, {}, {}};
        for (const Step& known : known_) {
            const auto found = run_setting(known.cut.step, policy, settings_, setting);
            if (!found) return std::nullopt;
            take_slower(slowest, found->makespan, known);
        }
        return slowest;
    }

    static void take_slower(Ran& slowest, Duration makespan, const Step& of) {
        const Duration step = makespan + of.cut.step.optimizer;
        if (step <= slowest.step) return;
        slowest.makespan = makespan;
        slowest.step = step;
    }

    // With what reductions in buckets add. Settings are chosen without it.
    Ran in_full(std::string_view policy, const Ran& chosen) const {
        if (known_.front().input.setup->recipe.bucket == Bytes{}) return chosen;
        Ran slowest{chosen.recompute, {}, {}, {}};
        for (const Step& known : known_) {
            const auto found = run_setting(known.cut.step, policy, settings_, chosen.recompute);
            take_slower(slowest, replay_in_full(known, false, found->schedule).replay.makespan, known);
        }
        return slowest;
    }

    static std::vector<Recompute> settings_of(const Target& target, const Setup& setup, const Partition& partition) {
        auto all = opponent_settings(setup, partition);
        if (!target.launch.blocks)
            std::erase_if(all, [](const Recompute& one) { return one.kind == Recompute::Kind::blocks; });
        return all;
    }

    const Target* target_;
    std::vector<Recompute> settings_;
    std::vector<Step> known_;
};

// How a replica's microbatches are shared out where a way has more replicas on the same GPUs.
std::vector<Microbatches> groups_of(const Setup& setup, const Microbatches& all, std::size_t groups) {
    if (groups == 1) return {all};
    const auto shares = partition::balance(partition::microbatch_costs(setup, all), groups);
    std::vector<Microbatches> parts;
    for (const auto& share : shares) {
        parts.emplace_back();
        for (const std::size_t i : share) parts.back().push_back(all[i]);
    }
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
std::size_t replicas_for_one(const OpponentWay& way, const Setup& plan) {
    return static_cast<std::size_t>(std::max<std::int64_t>(1, way.setup->layout.dp / plan.layout.dp));
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
        try_first_batch();
        try_all_batches();
        return std::move(result_);
    }

private:
    // The way with each policy that runs it.
    void add(OpponentWay way) {
        way.cut = cuts_++;
        for (const std::string_view policy :
             {std::string_view(way.partition.chunks_per_rank == 1 ? "1f1b" : "interleaved"),
              std::string_view("gpipe")}) {
            if (!way.has_pipeline && policy != "1f1b") continue;
            result_.ways.push_back(way);
            result_.ways.back().policy = policy;
        }
    }

    void add_chains() {
        if (setup_.layout.pp == 1) return;
        const auto sample = cut_on(job_, batch_);
        for (const partition::Cutting& one : partition::cuttings(partition::Use::opponent, setup_)) try {
                add({.name = one.by->name, .setup = job_.setup, .partition = one.make(setup_, sample)});
            } catch (const Error& error) {
                if (error.kind() == ErrorKind::io) throw;
                result_.not_applicable.push_back({one.by->name, one.chunks_per_rank, "1f1b", error.what()});
            }
    }

    // Every tp inside a node that divides the model, with replicas on the GPUs that are left.
    void add_without_pipeline() {
        const auto& layout = setup_.layout;
        const std::int64_t gpus = layout.gpus() / layout.cp;
        for (std::int64_t tp = 1; tp <= std::min(setup_.cluster.gpus_per_node, gpus); tp *= 2)
            for (const int zero : {1, 3}) {
                Layout flat = layout;
                flat.tp = tp;
                flat.pp = 1;
                // Whole replicas on the GPUs of one of the plan's, or on those of several.
                const std::int64_t gpus_of_one = layout.tp * layout.pp;
                if (gpus_of_one % tp != 0 && (tp % gpus_of_one != 0 || layout.dp % (tp / gpus_of_one) != 0)) continue;
                flat.dp = gpus / tp;
                flat.ep = default_ep(flat, setup_.model);
                if (conflict(flat, setup_.model)) continue;
                Recipe recipe = setup_.recipe;
                recipe.zero = zero;
                if (zero >= 2) recipe.bucket = {};
                const bool own = layout.pp == 1 && tp == layout.tp && zero == setup_.recipe.zero;
                const auto setup =
                    own ? job_.setup : std::make_shared<const Setup>(with_recipe(with_layout(setup_, flat), recipe));
                const auto whole = partition::partitioner("megatron").make(*setup, batches_.front(), 1);
                const auto name =
                    fmt::format("no-pipeline tp {}{}", tp, zero >= 3 ? fmt::format(" zero {}", zero) : "");
                add({.name = name, .has_pipeline = false, .setup = setup, .partition = whole});
            }
    }

    // None, and why, where the way has too many replicas for the batch.
    std::optional<BuiltSteps> built(const OpponentWay& way, const Microbatches& batch, std::string& why_not) const {
        const std::size_t replicas = replicas_for_one(way, setup_);
        // Fewer replicas than the plan's have the batches of several.
        Microbatches all = batch;
        for (std::int64_t more = setup_.layout.dp / way.setup->layout.dp; more > 1; --more)
            all.insert(all.end(), batch.begin(), batch.end());
        if (batch.size() >= replicas) return BuiltSteps(way, groups_of(*way.setup, all, replicas), target(job_.target));
        why_not = fmt::format("{} microbatches are fewer than its {} replicas", batch.size(), replicas);
        return std::nullopt;
    }

    void try_first_batch() {
        const auto cuts = same_cuts(result_.ways);
        std::vector<std::string> refused(result_.ways.size());
        run_jobs(execute_, cuts.size(), [&](std::size_t c) {
            std::string why_not;
            std::optional<BuiltSteps> steps;
            if (c >= sizes.opponents_anyhow && time_.is_over())
                why_not = no_time_left;
            else
                steps = built(result_.ways[cuts[c].first], batches_.front(), why_not);
            for (std::size_t w = cuts[c].first; w < cuts[c].second; ++w) {
                OpponentWay& way = result_.ways[w];
                const Ran ran = steps ? steps->run(way.policy, {}) : Ran{{}, {}, {}, why_not};
                refused[w] = ran.why_not;
                way.recompute = ran.recompute;
                way.step = ran.step;
                way.batches = 1;
            }
        });
        std::vector<OpponentWay> running;
        for (std::size_t w = 0; w < refused.size(); ++w) {
            OpponentWay& way = result_.ways[w];
            if (refused[w].empty())
                running.push_back(std::move(way));
            else
                result_.not_applicable.push_back({way.name, way.partition.chunks_per_rank, way.policy, refused[w]});
        }
        result_.ways = std::move(running);
        sort();
    }

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
        std::vector<BuiltSteps> steps;
        std::string why_not;
        for (const Microbatches& batch : batches_) {
            auto built_steps = built(way, batch, why_not);
            if (!built_steps) return;
            steps.push_back(std::move(*built_steps));
        }
        std::vector<std::string> settings{way.recompute};
        for (const BuiltSteps& batch : steps) {
            const Ran ran = batch.run(way.policy, way.recompute);
            if (std::find(settings.begin(), settings.end(), ran.recompute) == settings.end() && ran.why_not.empty())
                settings.push_back(ran.recompute);
        }
        std::optional<std::pair<bool, Duration>> best;
        for (const std::string& setting : settings) {
            bool fits = true;
            Duration sum{};
            for (const BuiltSteps& batch : steps) {
                const Ran ran = batch.run(way.policy, setting);
                fits = fits && ran.recompute == setting;
                sum += ran.step;
            }
            const std::pair how(!fits, sum);
            if (best && how >= *best) continue;
            best = how;
            way.recompute = setting;
            way.step = sum / static_cast<std::int64_t>(batches_.size());
        }
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

// The way's replicas, the most loaded ones of many.
std::vector<Microbatches> examined_replicas(const OpponentWay& way, const Job& job, const Batch& batch,
                                            const Executor& execute) {
    Job own = job;
    own.setup = way.setup;
    Assignment assignment = assign(own, batch, execute);
    const auto costs = partition::microbatch_costs(*way.setup, batch.microbatches, execute);
    const auto loads = partition::loads(assignment.shares, costs);
    std::vector<std::size_t> order(loads.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });
    order.resize(std::min(order.size(), sizes.replicas_examined * replicas_for_one(way, *job.setup)));
    std::vector<Microbatches> all;
    all.reserve(order.size());
    for (const std::size_t r : order) all.push_back(std::move(assignment.microbatches[r]));
    return all;
}

}  // namespace

bool launches(const Target& target, const OpponentWay& way) {
    const auto has = [](const std::vector<std::string>& all, const std::string& one) {
        return std::find(all.begin(), all.end(), one) != all.end();
    };
    if (!way.has_pipeline) return way.setup->recipe.zero <= target.launch.most_zero;
    return has(target.launch.partitions, way.partition.name) && has(target.launch.policies, way.policy);
}

Opponents choose_opponents(const Job& job, const Batch& batch, const Executor& execute, const Time& time) {
    return OpponentTrial(job, batch, execute, time).run();
}

Baselines run_opponents(const Opponents& opponents, const Job& job, const Batch& batch, const Executor& execute,
                        const Time& time) {
    const auto& ways = opponents.ways;
    std::vector<Ran> ran(ways.size());
    run_jobs(execute, ways.size(), [&](std::size_t w) {
        const OpponentWay& way = ways[w];
        if (batch.microbatches.size() < static_cast<std::size_t>(way.setup->layout.dp)) {
            ran[w].why_not = "the batch has fewer microbatches than its replicas";
            return;
        }
        if (w > 0 && time.is_over())
            ran[w].why_not = no_time_left;
        else
            ran[w] = BuiltSteps(way, examined_replicas(way, job, batch, in_order), target(job.target))
                         .run(way.policy, way.recompute);
    });
    Baselines result;
    result.not_applicable = opponents.not_applicable;
    for (std::size_t w = 0; w < ways.size(); ++w) {
        const OpponentWay& way = ways[w];
        if (!ran[w].why_not.empty()) {
            result.not_applicable.push_back({way.name, way.partition.chunks_per_rank, way.policy, ran[w].why_not});
            continue;
        }
        Baseline baseline{way.name, way.partition.chunks_per_rank, way.policy};
        baseline.makespan = ran[w].makespan;
        baseline.step = ran[w].step;
        baseline.recompute = ran[w].recompute;
        baseline.command = command_of(way, ran[w].recompute, job, batch);
        baseline.is_opponent = true;
        baseline.way = w;
        baseline.launched = launches(target(job.target), way);
        baseline.on_own_ranks = way.setup == job.setup;
        result.all.push_back(std::move(baseline));
    }
    std::stable_sort(result.all.begin(), result.all.end(),
                     [](const Baseline& a, const Baseline& b) { return a.step < b.step; });
    return result;
}

std::optional<OpponentRun> pipelined_opponent(const Job& job, const Opponents& opponents, const Baselines& baselines,
                                              const std::vector<Microbatches>& replicas) {
    const OpponentWay* best = nullptr;
    OpponentRun run;
    for (const Baseline& one : baselines.all) {
        if (!one.way || !one.on_own_ranks) continue;
        if (best && one.step >= run.baseline.step) continue;
        best = &opponents.ways[*one.way];
        run.baseline = one;
    }
    if (!best) return std::nullopt;
    BuiltSteps steps(*best, replicas, target(job.target));
    std::string why_not;
    for (std::size_t r = 0; r < replicas.size(); ++r) {
        auto found = steps.scheduled(r, best->policy, run.baseline.recompute, why_not);
        if (!found) return std::nullopt;
        run.steps.push_back(steps.take(r));
        run.schedules.push_back(std::move(found->schedule));
    }
    return run;
}

std::string command_of(const OpponentWay& way, const std::string& recompute, const Job& job, const Batch& batch) {
    if (!job.words) return {};
    const Setup& setup = *way.setup;
    const Layout& layout = setup.layout;
    OptionValues values = *job.words;
    const bool says_bucket = values.find("bucket") != nullptr;
    for (const char* own : {"ep", "packing", "microbatches", "bucket"}) values.erase(own);
    if (job.packing != workloads::Packing::given) values.set("packing", std::string(name_of(job.packing)));
    values.set("tp", std::to_string(layout.tp));
    values.set("pp", std::to_string(layout.pp));
    values.set("dp", std::to_string(layout.dp));
    if (layout.ep != default_ep(layout, setup.model)) values.set("ep", std::to_string(layout.ep));
    if (batch.drawn_microbatches > 0) {
        const std::int64_t all = batch.drawn_microbatches * job.setup->layout.dp;
        if (all % layout.dp != 0) return {};
        values.set("microbatches", std::to_string(all / layout.dp));
        values.set("seed", std::to_string(job.seed));
    }
    values.set("zero", std::to_string(setup.recipe.zero));
    if (says_bucket || job.setup->recipe.bucket > Bytes{})
        values.set("bucket", fmt::format("{}B", setup.recipe.bucket.count));
    if (way.layers.empty())
        values.set("partition", way.partition.name);
    else
        values.set("layers", fmt::format("{}", fmt::join(way.layers, ",")));
    if (way.has_pipeline && way.layers.empty()) {
        values.set("chunks", std::to_string(way.partition.chunks_per_rank));
        if (auto sample = job.sample.name.option(); !sample.empty()) values.set("sample", std::move(sample));
    }
    if (way.has_pipeline && way.layers.empty() && way.cut_packing.value_or(job.packing) != job.packing)
        values.set("sample-packing", std::string(name_of(*way.cut_packing)));
    values.set("policy", way.policy);
    values.set("recompute", recompute);
    if (const Target& of = target(job.target); of.fixed_shapes && launches(of, way)) values.set("target", of.option);
    return values.command("pipeweaver emulate");
}

}  // namespace pipeweaver::planner
