#include "pipeweaver/planner/ladder.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "planner/job/sample.hpp"
#include "planner/ladder/elsewhere.hpp"
#include "planner/opponents/tuned_cut.hpp"
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
    std::string text = way.name;
    if (way.has_pipeline) text += " " + way.policy;
    if (way.partition.chunks_per_rank > 1) text += fmt::format(", {} chunks", way.partition.chunks_per_rank);
    return recompute == "none" ? text : text + ", " + recompute;
}

LaunchedWay launched_way(const OpponentWay& way, const std::string& recompute, const Emulation& emulation,
                         const Batch& batch) {
    LaunchedWay launched{.setup = way.setup,
                         .has_pipeline = way.has_pipeline,
                         .partition = way.partition,
                         .policy = way.policy,
                         .recompute = recompute,
                         .makespan = emulation.makespan,
                         .usable = capacity_of(*way.setup)};
    if (!emulation.by_rank.empty()) launched.by_rank = emulation.by_rank.front();
    const auto replicas = static_cast<std::int64_t>(emulation.replicas.size());
    const auto all = static_cast<std::int64_t>(batch.microbatches.size());
    for (std::int64_t r = 0; r < replicas; ++r) launched.microbatches.push_back(all / replicas + (r < all % replicas));
    for (const auto& microbatch : batch.microbatches)
        launched.most_tokens = std::max(launched.most_tokens, microbatch.tokens);
    launched.peak.resize(emulation.replicas.front().memory.size());
    for (const ReplicaEmulation& replica : emulation.replicas)
        for (std::size_t r = 0; r < launched.peak.size(); ++r)
            launched.peak[r] = std::max(launched.peak[r], replica.memory[r].peak);
    return launched;
}

// The step as a way runs it: what its command prints.
Rung emulated(std::string name, const Request& of, const OpponentWay& way, const std::string& recompute,
              const Executor& execute) {
    const Target& runs = target(of.job.target);
    EmulationRequest request;
    request.job = of.job;
    request.job.setup = way.setup;
    request.job.fixed = partition::PartitionFile{way.partition, {}};
    request.batch = of.job.in_layout(of.batch, way.setup->layout);
    request.policy = way.policy;
    request.recompute = recompute_named(recompute);
    request.recompute_by_rank = recompute == by_rank_name;
    if (launches(runs, way)) request.target = &runs;
    const Emulation emulation = emulate(request, execute);
    Rung rung{.name = std::move(name), .target = runs.option, .way = words_of(way, recompute)};
    rung.step = emulation.step;
    rung.tokens = emulation.tokens;
    rung.microbatches = request.batch.microbatches.size();
    const Bytes usable = capacity_of(*way.setup);
    for (const ReplicaEmulation& replica : emulation.replicas)
        for (const RankMemory& rank : replica.memory)
            if (is_over(rung, rank.peak, usable)) {
                rung.peak = rank.peak;
                rung.usable = usable;
            }
    rung.command = command_of(way, recompute, of.job, of.batch);
    rung.launched = std::make_shared<const LaunchedWay>(launched_way(way, recompute, emulation, request.batch));
    return rung;
}

// None: it does not fit so.
std::optional<Rung> emulated_if_it_fits(const std::string& name, const Request& of, const OpponentWay& way,
                                        const std::string& recompute, const Executor& execute) {
    try {
        return emulated(name, of, way, recompute, execute);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::limit) throw;
        return std::nullopt;
    }
}

// A way with a recomputation that fits all replicas.
struct Fitting {
    const OpponentWay* way = nullptr;
    std::string recompute;
    Rung rung;
};

// The row was judged on the most loaded replicas; where another one needs more memory, all recompute more. None: that
// does not fit either.
std::optional<Fitting> fitting(const std::string& name, const Request& of, const OpponentWay& way, const Baseline& row,
                               const Executor& execute) {
    if (auto rung = emulated_if_it_fits(name, of, way, row.recompute, execute))
        return Fitting{&way, row.recompute, std::move(*rung)};
    std::string more = recompute_that_fits(way, row.recompute, of.job, of.batch, execute);
    if (more.empty()) return std::nullopt;
    auto rung = emulated_if_it_fits(name, of, way, more, execute);
    if (!rung) return std::nullopt;
    return Fitting{&way, std::move(more), std::move(*rung)};
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
            way.layers = partition::text_of(now.layers);
            if (!now.layers.empty()) way.name = "layers " + way.layers;
            const bool is_named = !now.partition.empty() || !now.layers.empty();
            if (is_named || launches(target(job.target), way)) all.ways.push_back(std::move(way));
        }
    return all;
}

bool is_said(const NowWanted& now) {
    return !(now.partition.empty() && now.policy.empty() && now.recompute.empty() && now.layers.empty()) || now.chunks;
}

std::string why_not_of(const std::vector<NotApplicable>& all) {
    std::string text;
    for (const NotApplicable& one : all)
        text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", one.partition, one.policy, one.why);
    return text;
}

// The fastest of the ways. None, and why, where none fits.
std::optional<Fitting> fastest_of(const std::string& name, const Opponents& ways, const Request& request,
                                  const Executor& execute, const Time& time, std::string& why_none) {
    std::optional<Fitting> best;
    if (ways.ways.empty()) {
        why_none = why_not_of(ways.not_applicable);
        return best;
    }
    const Baselines rows = run_opponents(ways, request.job, request.batch, execute, time);
    for (const Baseline& row : rows.all) {
        if (best && best->rung.step <= row.step) break;
        auto tried = fitting(name, request, ways.ways[*row.way], row, execute);
        const bool as_judged = tried && tried->recompute == row.recompute;
        if (tried && (!best || tried->rung.step < best->rung.step)) best = std::move(tried);
        if (as_judged) break;
    }
    if (!best) why_none = rows.all.empty() ? why_not_of(rows.not_applicable) : "no recomputation fits all replicas";
    return best;
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

// What is left out for lack of time.
constexpr std::string_view other_layouts = "other layouts", tuned_cuts = "tuned cuts";

bool lacks(const std::vector<std::string>& left_out, std::string_view what) {
    return std::find(left_out.begin(), left_out.end(), what) != left_out.end();
}

void tune_best(Opponents& opponents, const Request& of, std::vector<std::string>& left_out, const Executor& execute,
               const Time& time) {
    const bool is_whole = add_tuned(opponents, of.job, of.batch, execute, time);
    if (!is_whole && !lacks(left_out, tuned_cuts)) left_out.emplace_back(tuned_cuts);
}

void add_elsewhere(LadderStart& start, const std::optional<std::int64_t>& cp, const Executor& execute,
                   const Time& time) {
    Elsewhere other = launched_elsewhere(start.request.job, start.request.batch, cp, execute, time);
    start.layouts = other.layouts;
    if (!other.is_whole) start.left_out.emplace_back(other_layouts);
    std::move(other.ways.begin(), other.ways.end(), std::back_inserter(start.opponents.ways));
}

constexpr std::string_view no_better_flags = "no other cut, chunks or recomputation that the flags can say is faster";

std::string needs_of_flags(const Job& job, const OpponentWay& way, const std::string& recompute) {
    const std::int64_t chunks = way.partition.chunks_per_rank;
    const Launch& launch = target(job.target).launch;
    return fmt::format("layers {} ({}), {} with {} chunk{} a rank ({}), recompute {} ({})",
                       partition::text_of(partition::said_layers(job.setup->model, way.partition)), launch.cut,
                       way.policy, chunks, chunks == 1 ? "" : "s", launch.order, recompute, launch.recompute);
}

// The fastest that the target launches in the user's own layout, where that is not the plan's.
Rung flags_rung(const Request& own, const Rung& before, std::vector<std::string>& left_out, const Executor& execute,
                const Time& time) {
    Opponents here = launched_here(choose_opponents(own.job, own.batch, execute, time), own.job);
    tune_best(here, own, left_out, execute, time);
    std::string why_none;
    auto best = fastest_of("flags", here, own, execute, time, why_none);
    if (!best) return nothing("flags", before, std::move(why_none));
    Rung rung = std::move(best->rung);
    if (rung.step >= before.step) return nothing("flags", before, std::string(no_better_flags));
    rung.needs = needs_of_flags(own.job, *best->way, best->recompute);
    rung.files = before.files;
    return rung;
}

bool is_shared_by_cost(const Job& job) {
    return job.setup->layout.dp > 1 && job.sharing == partition::Sharing::balanced;
}

class Data {
public:
    Data(const std::vector<Request>& packings, const Fitting& now, const Executor& execute)
        : packings_(packings), now_(now), execute_(execute), best_(now.rung) {}

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
        OpponentWay way = *now_.way;
        way.cut_packing = packings_.front().job.packing;
        auto rung = emulated_if_it_fits("data", request, way, now_.recompute, execute_);
        if (!rung) return rung;
        rung->needs = fmt::format("a sampler: packed {}{}", workloads::name_of(request.job.packing),
                                  is_shared_by_cost(request.job) ? ", shared out by cost" : "");
        rung->files = {"assignment.json"};
        return rung;
    }

    const std::vector<Request>& packings_;
    const Fitting& now_;
    const Executor& execute_;
    Rung best_;
};

}  // namespace

LadderStart begin_ladder(std::vector<Request> packings, const std::vector<Request>& own, const NowWanted& wanted,
                         const Executor& execute, const Time& time) {
    LadderStart start;
    const std::vector<Request>& from = own.empty() ? packings : own;
    const Request given = in_turn(from.front());
    require_sensible(given.job, given.batch);
    const Opponents chosen =
        is_said(wanted) ? ways_said(given, wanted) : choose_opponents(given.job, given.batch, execute, time);
    const Opponents here = is_said(wanted) ? chosen : launched_here(chosen, given.job);
    auto now = fastest_of("now", here, given, execute, time, start.why_none);
    const auto take = [&](std::size_t p) { start.request = std::move(packings[p]); };
    if (!now && is_said(wanted)) fail(ErrorKind::limit, "--now: {}", start.why_none);
    if (!now) {
        take(0);
        start.opponents =
            own.empty() ? chosen : choose_opponents(start.request.job, start.request.batch, execute, time);
        return start;
    }
    if (!wanted.recompute.empty() && now->recompute != wanted.recompute)
        fail(ErrorKind::limit,
             "--now: with recompute {} the step does not fit, or {} has no such setting; it runs with {}",
             wanted.recompute, target(given.job.target).option, now->recompute);
    now->rung.needs = "nothing: what is run today";
    start.now = now->rung;
    Data data(from, *now, execute);
    const auto taken = data.run();
    start.data =
        taken ? data.take() : nothing("data", *start.now, "samples as they come, taken in turn, are packed as well");
    if (!own.empty()) start.flags = flags_rung(own[taken.value_or(0)], *start.data, start.left_out, execute, time);
    take(taken.value_or(0));
    // What is chosen on samples that are packed otherwise, or in another layout, is not the job's.
    const bool same = taken.value_or(0) == 0 && own.empty();
    if (!is_said(wanted) && same)
        start.opponents = chosen;
    else
        start.opponents = choose_opponents(start.request.job, start.request.batch, execute, time);
    if (own.empty() && lacks_some(start.opponents)) add_first(start.opponents, *now->way, given.job.packing);
    // Another layout gains more than another cut: it comes first where time is short.
    add_elsewhere(start, wanted.cp, execute, time);
    tune_best(start.opponents, start.request, start.left_out, execute, time);
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
        if (start_.flags)
            ladder_.rungs.push_back(*start_.flags);
        else
            add_row(
                "flags", [](const Baseline& row) { return row.on_own_ranks; }, std::string(no_better_flags));
        add_row(
            "layout", [this](const Baseline& row) { return start_.flags || !row.on_own_ranks; }, why_no_layout());
        ladder_.left_out = start_.left_out;
        add_schedule();
        add_beyond();
        for (std::size_t i = 0; i < ladder_.rungs.size(); ++i)
            if (ladder_.rungs[i].target == runs_.option && ladder_.rungs[i].why_nothing.empty()) ladder_.headline = i;
        return std::move(ladder_);
    }

private:
    const Rung& last() const { return ladder_.rungs.back(); }

    // The fastest row of the table that the target launches, on the plan's ranks or on others.
    template <class Which>
    void add_row(const std::string& name, Which which, std::string why_nothing) {
        for (const Baseline& row : plan_.baselines.all) {
            if (!row.is_opponent || !row.launched || !which(row)) continue;
            if (row.step >= last().step) break;
            auto found = fitting(name, start_.request, start_.opponents.ways[*row.way], row, execute_);
            if (!found || found->rung.step >= last().step) continue;
            found->rung.needs = name == "flags" ? needs_of_flags(job_, *found->way, found->recompute)
                                                : needs_of_layout(*found->way, found->recompute);
            found->rung.files = start_.data->files;
            ladder_.rungs.push_back(std::move(found->rung));
            return;
        }
        ladder_.rungs.push_back(nothing(name, last(), std::move(why_nothing)));
    }

    std::string why_no_layout() const {
        if (lacks(start_.left_out, other_layouts)) return "of those that there was time for none is faster";
        if (job_.layout_choice)
            return fmt::format("{} was chosen among {} layouts", name_of(job_.setup->layout), start_.layouts);
        return fmt::format("none of {} layouts that fit is faster as flags launch it", start_.layouts);
    }

    // "--tp 4 --cp 2 --pp 4 --dp 1 --zero 2".
    static std::string degrees_of(const Setup& setup) {
        const auto above_one = [](std::string_view option, std::int64_t degree) {
            return degree > 1 ? fmt::format(" --{} {}", option, degree) : std::string();
        };
        const Layout& layout = setup.layout;
        return fmt::format("--tp {}{} --pp {} --dp {}{} --zero {}", layout.tp, above_one("cp", layout.cp), layout.pp,
                           layout.dp, above_one("ep", layout.ep), setup.recipe.zero);
    }

    // Of a way on other ranks.
    std::string needs_of_layout(const OpponentWay& way, const std::string& recompute) const {
        const Setup& setup = *way.setup;
        const auto launch = fmt::format("launched with {}, zero {}", name_of(setup.layout), setup.recipe.zero);
        const std::string_view checkpoint = "a checkpoint in that layout";
        if (!way.has_pipeline) return fmt::format("{}; {}", launch, checkpoint);
        return fmt::format("{}, {}; {}{}", launch, needs_of_flags(job_, way, recompute), checkpoint,
                           way.setup == job_.setup ? "" : fmt::format("; a search there: {}", degrees_of(setup)));
    }

    // The plan's own schedule, or the target's.
    void add_schedule() {
        Rung rung = has_own_plan(runs_) ? of_target() : of_plan();
        if (rung.step >= last().step) {
            const double seconds = static_cast<double>(rung.step.count()) * 1e-9;
            ladder_.rungs.push_back(
                nothing("schedule", last(),
                        fmt::format("{}, takes {:.3f} s in {}", rung.way, seconds, name_of(job_.setup->layout))));
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

    // " (vit tp 1 x 8 copies, hybrid)": of modules whose copies share a rank.
    std::string layouts_of_plan() const {
        const auto& layouts = plan_.partition().layouts;
        std::string text;
        for (std::size_t m = 0; m < layouts.size(); ++m)
            if (layouts[m].copies > 1 && !layouts[m].in_phases)
                text += fmt::format("{}{} {}", text.empty() ? " (" : "; ",
                                    start_.request.job.setup->model.modules[m].name, emulator::name_of(layouts[m]));
        return text.empty() ? text : text + ")";
    }

    Rung of_plan() const {
        Rung rung = batch_rung();
        rung.way = fmt::format("{}{}, {}", plan_.partition().name, layouts_of_plan(),
                               plan_.is_opponents ? "a known order" : "searched");
        rung.step = plan_.step;
        for (const ReplicaPlan& replica : plan_.replicas)
            take_memory(rung, replica.cut.step.problem.ranks, replica.found.replay.peak);
        rung.needs = "pipeweaver.torch runs it";
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
        const bool first_alone = plan_.replicas.size() > 1 && !runs_.fixed_shapes;
        rung.needs = fmt::format("{} loads it{}", runs_.title, first_alone ? "; of replica 0 alone" : "");
        rung.files = {fmt::format("{}/{}", runs_.folder, runs_.file)};
        return rung;
    }

    // What engineers try elsewhere and the target does not launch, where it is faster than everything that it does.
    void add_beyond() {
        const Duration best = last().step;
        for (const Baseline& row : plan_.baselines.all) {
            if (!row.is_opponent || row.launched || row.step >= best) continue;
            auto found = fitting(row.partition, start_.request, start_.opponents.ways[*row.way], row, execute_);
            if (!found || found->rung.step >= best) continue;
            ladder_.beyond.push_back(std::move(found->rung));
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

const Rung* Ladder::launched() const {
    const Rung* best = nullptr;
    for (const Rung& rung : rungs)
        if (rung.launched && (best == nullptr || rung.why_nothing.empty())) best = &rung;
    return best;
}

Ladder ladder_of(const LadderStart& start, const Plan& plan, const Executor& execute) {
    return Climb(start, plan, execute).run();
}

}  // namespace pipeweaver::planner
