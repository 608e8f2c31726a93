#include "pipeweaver/planner/ladder.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "planner/job/sample.hpp"
#include "planner/replicas/assignment.hpp"
#include "planner/schedule/recompute_settings.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

bool is_over(const Rung& rung, Bytes peak, Bytes usable) {
    return rung.usable == Bytes{} || usable - peak < rung.usable - rung.peak;
}

std::string words_of(const OpponentWay& way, const std::string& recompute) {
    std::string text = way.layers.empty() ? way.name : fmt::format("layers {}", fmt::join(way.layers, "|"));
    if (way.has_pipeline) text += " " + way.policy;
    if (way.partition.chunks_per_rank > 1) text += fmt::format(", {} chunks", way.partition.chunks_per_rank);
    return recompute == "none" ? text : text + ", " + recompute;
}

// The step as a way runs it: what its command prints.
Rung emulated(std::string name, const Request& of, const OpponentWay& way, const std::string& recompute,
              const Executor& execute) {
    const Target& runs = target(of.job.target);
    EmulationRequest request;
    request.job = of.job;
    request.job.setup = way.setup;
    request.job.fixed = partition::PartitionFile{way.partition, {}};
    request.batch = of.batch;
    request.policy = way.policy;
    request.recompute = recompute_named(recompute);
    request.recompute_by_rank = recompute == by_rank_name;
    if (launches(runs, way)) request.target = &runs;
    const Emulation emulation = emulate(request, execute);
    Rung rung{.name = std::move(name), .target = runs.option, .way = words_of(way, recompute)};
    rung.step = emulation.step;
    rung.tokens = emulation.tokens;
    rung.microbatches = of.batch.microbatches.size();
    const Bytes usable = capacity_of(*way.setup);
    for (const ReplicaEmulation& replica : emulation.replicas)
        for (const RankMemory& rank : replica.memory)
            if (is_over(rung, rank.peak, usable)) {
                rung.peak = rank.peak;
                rung.usable = usable;
            }
    rung.command = command_of(way, recompute, of.job, of.batch);
    return rung;
}

// A rung that is no faster than the one before it: the same step.
Rung nothing(std::string name, const Rung& before, std::string why) {
    Rung rung = before;
    rung.name = std::move(name);
    rung.why_nothing = std::move(why);
    rung.needs.clear();
    rung.files.clear();
    return rung;
}

// The job with each replica taking its microbatches in turn, as a plain data loader hands them out.
Request in_turn(Request request) {
    request.job.sharing = partition::Sharing::in_turn;
    if (request.job.words) request.job.words->set("assignment", "in-turn");
    return request;
}

// Ways that are said to be run, with the policies and partitions that were left open as the target launches them.
Opponents ways_said(const Request& request, const NowWanted& now) {
    const Job& job = request.job;
    const Launch& launch = target(job.target).launch;
    Opponents all;
    std::vector<partition::Partition> cuts;
    if (!now.layers.empty())
        cuts.push_back(partition::cut_by_layers(*job.setup, now.layers));
    else
        for (const std::string& name :
             now.partition.empty() ? launch.partitions : std::vector<std::string>{now.partition})
            cuts.push_back(
                partition::partitioner(name).make(*job.setup, cut_on(job, request.batch), now.chunks.value_or(1)));
    for (const auto& cut : cuts)
        for (const std::string& policy : now.policy.empty() ? launch.policies : std::vector<std::string>{now.policy}) {
            OpponentWay way{.name = cut.name, .setup = job.setup, .partition = cut, .policy = policy};
            way.recompute = now.recompute;
            way.layers = now.layers;
            all.ways.push_back(std::move(way));
        }
    return all;
}

bool is_said(const NowWanted& now) {
    return !(now.partition.empty() && now.policy.empty() && now.recompute.empty() && now.layers.empty()) || now.chunks;
}

// Those that the target launches in the job's own layout.
Opponents launched_here(const Opponents& all, const Job& job) {
    Opponents some = all;
    std::erase_if(some.ways,
                  [&](const OpponentWay& way) { return way.setup != job.setup || !launches(target(job.target), way); });
    return some;
}

std::string why_not_of(const std::vector<NotApplicable>& all) {
    std::string text;
    for (const NotApplicable& one : all)
        text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", one.partition, one.policy, one.why);
    return text;
}

struct Now {
    const OpponentWay* way = nullptr;
    std::string recompute;
};

// The fastest of the ways, with the recomputation that it runs with.
Now fastest_of(const Opponents& ways, const Request& request, const Executor& execute, const Time& time,
               std::string& why_none) {
    if (ways.ways.empty()) {
        why_none = why_not_of(ways.not_applicable);
        return {};
    }
    const Baselines rows = run_opponents(ways, request.job, request.batch, execute, time);
    if (const Baseline* row = rows.fastest_opponent()) return {&ways.ways[*row->way], row->recompute};
    why_none = why_not_of(rows.not_applicable);
    return {};
}

// Whether time ended the choice.
bool lacks_some(const Opponents& opponents) {
    const auto& refused = opponents.not_applicable;
    return std::any_of(refused.begin(), refused.end(),
                       [](const NotApplicable& one) { return one.why == no_time_left; });
}

// What runs now goes first, and so is tried however short the time: no plan is then slower than it.
void add_first(Opponents& all, OpponentWay now, workloads::Packing cut_packing) {
    now.cut_packing = cut_packing;
    all.ways.insert(all.ways.begin(), std::move(now));
}

bool is_shared_by_cost(const Job& job) {
    return job.setup->layout.dp > 1 && job.sharing == partition::Sharing::balanced;
}

class Data {
public:
    Data(const std::vector<Request>& packings, const Now& now, const Rung& given, const Executor& execute)
        : packings_(packings), now_(now), execute_(execute), best_(given) {}

    // The rung, and the place of the packing that it has; none: samples as they come, in turn.
    std::optional<std::size_t> run() {
        std::optional<std::size_t> taken;
        for (std::size_t p = 0; p < packings_.size(); ++p) {
            const auto tried = run(packings_[p]);
            if (!tried || tried->step >= best_.step) continue;
            best_ = *tried;
            taken = p;
        }
        return taken;
    }

    Rung take() { return std::move(best_); }

private:
    // None: it does not fit so.
    std::optional<Rung> run(const Request& request) const {
        try {
            OpponentWay way = *now_.way;
            way.cut_packing = packings_.front().job.packing;
            Rung rung = emulated("data", request, way, now_.recompute, execute_);
            rung.needs = fmt::format("a sampler: packed {}{}", workloads::name_of(request.job.packing),
                                     is_shared_by_cost(request.job) ? ", shared out by cost" : "");
            rung.files = {"assignment.json"};
            return rung;
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::limit) throw;
            return std::nullopt;
        }
    }

    const std::vector<Request>& packings_;
    const Now& now_;
    const Executor& execute_;
    Rung best_;
};

}  // namespace

LadderStart begin_ladder(std::vector<Request> packings, const NowWanted& wanted, const Executor& execute,
                         const Time& time) {
    LadderStart start;
    const Request given = in_turn(packings.front());
    require_sensible(given.job, given.batch);
    const Opponents chosen =
        is_said(wanted) ? ways_said(given, wanted) : choose_opponents(given.job, given.batch, execute, time);
    const Opponents here = is_said(wanted) ? chosen : launched_here(chosen, given.job);
    const Now now = fastest_of(here, given, execute, time, start.why_none);
    const auto take = [&](std::size_t p) { start.request = std::move(packings[p]); };
    if (now.way == nullptr && is_said(wanted)) fail(ErrorKind::limit, "--now: {}", start.why_none);
    if (now.way == nullptr) {
        take(0);
        start.opponents = chosen;
        return start;
    }
    if (!wanted.recompute.empty() && now.recompute != wanted.recompute)
        fail(ErrorKind::limit, "--now: the step does not fit with recompute {}; it does with {}", wanted.recompute,
             now.recompute);
    start.now = emulated("now", given, *now.way, now.recompute, execute);
    start.now->needs = "nothing: what is run today";
    Data data(packings, now, *start.now, execute);
    const auto taken = data.run();
    start.data =
        taken ? data.take() : nothing("data", *start.now, "samples as they come, taken in turn, are packed as well");
    take(taken.value_or(0));
    // What is chosen on samples that are packed otherwise would not be the job's.
    // What is chosen on samples that are packed otherwise is not the job's.
    const bool same = taken.value_or(0) == 0;
    if (!is_said(wanted) && same)
        start.opponents = chosen;
    else
        start.opponents = choose_opponents(start.request.job, start.request.batch, execute, time);
    if (lacks_some(start.opponents)) add_first(start.opponents, *now.way, given.job.packing);
    return start;
}

namespace {

class Climb {
public:
    Climb(const LadderStart& start, const Plan& plan, const Executor& execute)
        : start_(start), job_(start.request.job), runs_(target(job_.target)), plan_(plan), execute_(execute) {}

    Ladder run() {
        if (!start_.now) {
            ladder_.why_none = start_.why_none;
            return std::move(ladder_);
        }
        ladder_.rungs = {*start_.now, *start_.data};
        add_row("flags", true, "no other cut, chunks or recomputation that the flags can say is faster");
        add_row("layout", false, "no way without a pipeline is faster on these GPUs");
        add_schedule();
        add_beyond();
        for (std::size_t i = 0; i < ladder_.rungs.size(); ++i)
            if (ladder_.rungs[i].target == runs_.option && ladder_.rungs[i].why_nothing.empty()) ladder_.headline = i;
        return std::move(ladder_);
    }

private:
    const Rung& last() const { return ladder_.rungs.back(); }

    // The fastest row of the table that the target launches, on the plan's ranks or on others.
    void add_row(const std::string& name, bool on_own_ranks, const std::string& why_nothing) {
        for (const Baseline& row : plan_.baselines.all) {
            if (!row.is_opponent || !row.launched || row.on_own_ranks != on_own_ranks) continue;
            const OpponentWay& way = start_.opponents.ways[*row.way];
            Rung rung = emulated(name, start_.request, way, row.recompute, execute_);
            if (rung.step >= last().step) break;
            rung.needs =
                on_own_ranks ? needs_of_flags(way, row.recompute) : "another launch, and a checkpoint in its layout";
            rung.files = start_.data->files;
            ladder_.rungs.push_back(std::move(rung));
            return;
        }
        ladder_.rungs.push_back(nothing(name, last(), why_nothing));
    }

    std::string needs_of_flags(const OpponentWay& way, const std::string& recompute) const {
        const std::int64_t chunks = way.partition.chunks_per_rank;
        return fmt::format("layers {} ({}), {} with {} chunk{} a rank ({}), recompute {} ({})",
                           backbone_layers(way.partition), runs_.launch.cut, way.policy, chunks, chunks == 1 ? "" : "s",
                           runs_.launch.order, recompute, runs_.launch.recompute);
    }

    // Of the backbone, stage by stage.
    std::string backbone_layers(const partition::Partition& partition) const {
        std::vector<std::int64_t> layers;
        for (const Chain& chain : partition.chains)
            for (const StageLayers& stage : chain.stages) {
                layers.push_back(0);
                for (const LayerRange& part : stage.parts)
                    if (part.module == job_.setup->model.backbone()) layers.back() += part.count;
            }
        return fmt::format("{}", fmt::join(layers, "|"));
    }

    // The plan's own schedule, or the target's.
    void add_schedule() {
        Rung rung = has_own_plan(runs_) ? of_target() : of_plan();
        if (rung.target.empty()) {
            ladder_.beyond.push_back(rung);
            ladder_.rungs.push_back(nothing("schedule", last(), "no runtime carries the plan's partition yet"));
        } else if (rung.step >= last().step) {
            const double seconds = static_cast<double>(rung.step.count()) * 1e-9;
            ladder_.rungs.push_back(nothing("schedule", last(), fmt::format("{}, takes {:.3f} s", rung.way, seconds)));
        } else {
            ladder_.rungs.push_back(std::move(rung));
        }
    }

    void take_memory(Rung& rung, const std::vector<schedule::Rank>& ranks, const std::vector<Bytes>& peak) const {
        for (std::size_t r = 0; r < peak.size(); ++r)
            if (is_over(rung, peak[r], *ranks[r].capacity)) {
                rung.peak = peak[r];
                rung.usable = *ranks[r].capacity;
            }
    }

    Rung batch_rung() const {
        Rung rung{.name = "schedule"};
        rung.microbatches = start_.request.batch.microbatches.size();
        for (const auto& microbatch : start_.request.batch.microbatches) rung.tokens += microbatch.tokens;
        return rung;
    }

    Rung of_plan() const {
        Rung rung = batch_rung();
        const bool carried = plan_.partition().dealt.empty();
        rung.way = fmt::format("{}, {}", plan_.partition().name, plan_.is_opponents ? "a known order" : "searched");
        rung.step = plan_.step;
        for (const ReplicaPlan& replica : plan_.replicas)
            take_memory(rung, replica.cut.step.problem.ranks, replica.found.replay.peak);
        rung.needs = carried ? "pipeweaver.torch runs it" : "no runtime deals items over the GPUs of a rank yet";
        if (!carried) return rung;
        rung.target = targets().front().option;
        rung.files = {"replica-*/actions.json"};
        return rung;
    }

    Rung of_target() const {
        const TargetPlan& own = plan_.target(runs_.name);
        Rung rung = batch_rung();
        rung.target = runs_.option;
        rung.way = fmt::format("{}, searched", own.cut.partition.name);
        rung.step = own.found.replay.makespan + own.cut.step.optimizer;
        take_memory(rung, own.cut.step.problem.ranks, own.found.replay.peak);
        rung.needs = fmt::format("{} loads it{}", runs_.title, plan_.replicas.size() > 1 ? "; of replica 0 alone" : "");
        rung.files = {fmt::format("{}/{}", runs_.folder, runs_.file)};
        return rung;
    }

    // What engineers try elsewhere and the target does not launch, where it is faster than everything that it does.
    void add_beyond() {
        const Duration best = last().step;
        for (const Baseline& row : plan_.baselines.all) {
            if (!row.is_opponent || row.launched || row.step >= best) continue;
            ladder_.beyond.push_back(
                emulated(row.partition, start_.request, start_.opponents.ways[*row.way], row.recompute, execute_));
            ladder_.beyond.back().target.clear();
            return;
        }
    }

    const LadderStart& start_;
    const Job& job_;
    const Target& runs_;
    const Plan& plan_;
    const Executor& execute_;
    Ladder ladder_;
};

}  // namespace

Ladder ladder_of(const LadderStart& start, const Plan& plan, const Executor& execute) {
    return Climb(start, plan, execute).run();
}

}  // namespace pipeweaver::planner
