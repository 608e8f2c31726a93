// Where the ladder begins: what is run today, on which samples, and what others would launch.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "planner/job/sample.hpp"
#include "planner/ladder/elsewhere.hpp"
#include "planner/ladder/rungs.hpp"
#include "planner/replicas/assignment.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

// The job with each replica taking its microbatches in turn, as a plain data loader hands them out.
Request in_turn(Request request) {
    request.job.sharing = partition::Sharing::in_turn;
    if (request.job.words) request.job.words->set("assignment", "in-turn");
    return request;
}

// A policy that the target's users do not launch is emulated all the same, on the cut that is said to be theirs.
void require_cut_beside(const NowWanted& now, const Job& job) {
    const Target& runs = target(job.target);
    const auto& policies = runs.launch.policies;
    const bool is_launched = std::find(policies.begin(), policies.end(), now.policy) != policies.end();
    if (now.policy.empty() || !now.partition.empty() || !now.layers.empty() || is_launched) return;
    fail(ErrorKind::limit,
         "--now: {} is none of the policies that {} launches ({}): name a partition beside it if you run it",
         now.policy, runs.option, fmt::join(policies, ", "));
}

// Ways that are said to be run, with the policies and partitions that were left open as the target launches them.
Opponents ways_said(const Request& request, const NowWanted& now) {
    const Job& job = request.job;
    require_cut_beside(now, job);
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
            OpponentWay way{{.name = cut.name,
                             .setup = job.setup,
                             .partition = cut,
                             .layers = partition::text_of(now.layers),
                             .policy = policy,
                             .recompute = now.recompute}};
            if (!now.layers.empty()) way.name = "layers " + way.layers;
            const bool is_named = !now.partition.empty() || !now.layers.empty();
            if (is_named || launches(target(job.target), way)) all.ways.push_back(std::move(way));
        }
    return all;
}

// What the target does where its users say so.
NowWanted as_launched(NowWanted said, const Job& job) {
    if (said.recompute == StepRecompute{.everywhere = Recompute::selective})
        said.recompute = StepRecompute{
            .everywhere = selective_of(target(job.target).launch, job.setup->recipe.execution.fused_attention)};
    return said;
}

// The place of the request whose samples are packed as they are today.
std::size_t place_of_now(const std::vector<Request>& packings, const NowWanted& now) {
    if (!now.packing) return 0;
    const auto found = std::find_if(packings.begin(), packings.end(),
                                    [&](const Request& one) { return one.job.packing == *now.packing; });
    if (found != packings.end()) return static_cast<std::size_t>(found - packings.begin());
    std::vector<std::string_view> names;
    for (const Request& one : packings) names.push_back(workloads::name_of(one.job.packing));
    fail(ErrorKind::input, "--now: packing:{} is no way that this plan packs, {} {}", workloads::name_of(*now.packing),
         names.size() == 1 ? "allowed is" : "allowed are", fmt::join(names, ", "));
}

// What runs now, where it is none of the opponents as it is.
void add_said(Opponents& all, OpponentWay now, workloads::Packing cut_packing) {
    const bool is_there = std::any_of(all.ways.begin(), all.ways.end(), [&](const OpponentWay& one) {
        return one.name == now.name && one.policy == now.policy && one.recompute == now.recompute &&
               one.partition.chunks_per_rank == now.partition.chunks_per_rank;
    });
    if (is_there) return;
    now.cut_packing = cut_packing;
    now.cut = all.ways.size() + all.not_applicable.size();  // a number of its own
    all.ways.push_back(std::move(now));
}

bool is_said(const NowWanted& now) {
    return !(now.partition.empty() && now.policy.empty() && now.layers.empty()) || now.recompute || now.chunks;
}

// What runs now goes first, and so is tried however short the time: no plan is then slower than it.
void add_first(Opponents& all, OpponentWay now, workloads::Packing cut_packing) {
    now.cut_packing = cut_packing;
    all.ways.insert(all.ways.begin(), std::move(now));
}

// Where the sample refuses all that is launched, what fits the batch is what is left of it.
void add_now(Opponents& all, const OpponentWay& now, const Job& job, workloads::Packing cut_packing, bool is_said) {
    if (lacks_time(all.not_applicable))
        add_first(all, now, cut_packing);
    else if (is_said || first_launched(all, job) == nullptr)
        add_said(all, now, cut_packing);
}

void tune_best(Opponents& opponents, const Request& of, std::vector<std::string>& left_out, const Executor& execute,
               const Time& time) {
    const bool is_whole = add_tuned(opponents, of.job, of.batch, execute, time);
    if (!is_whole && !lacks(left_out, doing::tuned_cuts)) left_out.emplace_back(doing::tuned_cuts);
}

void add_switched(Opponents& opponents, const Request& of, std::vector<std::string>& left_out, const Executor& execute,
                  const Time& time) {
    bool is_whole = true;
    auto ways = launched_switched(of.job, of.batch, execute, time, is_whole);
    std::move(ways.begin(), ways.end(), std::back_inserter(opponents.ways));
    if (!is_whole && !lacks(left_out, doing::tuned_cuts)) left_out.emplace_back(doing::tuned_cuts);
}

// What flags say in the plan's layout.
void tune(LadderStart& start, const Executor& execute, const Time& time) {
    tune_best(start.opponents, start.request, start.left_out, execute, time);
    add_switched(start.opponents, start.request, start.left_out, execute, time);
}

void add_elsewhere(LadderStart& start, const std::optional<std::int64_t>& cp, const Executor& execute,
                   const Time& time) {
    Elsewhere other = launched_elsewhere(start.request.job, start.request.batch, cp, execute, time);
    start.layouts = other.layouts;
    if (!other.is_whole) start.left_out.emplace_back(doing::other_layouts);
    std::move(other.ways.begin(), other.ways.end(), std::back_inserter(start.opponents.ways));
}

// The fastest that the target launches in the user's own layout, where that is not the plan's.
Rung flags_rung(const Request& own, const Rung& before, std::vector<std::string>& left_out, const Executor& execute,
                const Time& time) {
    Opponents here = launched_here(choose_opponents(own.job, own.batch, execute, time), own.job);
    tune_best(here, own, left_out, execute, time);
    add_switched(here, own, left_out, execute, time);
    std::erase_if(here.ways, [&](const OpponentWay& way) { return !is_in_layout_of(way, own.job); });
    WhyNone why_none;
    auto best = fastest_of("flags", here, own, execute, time, why_none);
    if (!best) return nothing("flags", before, std::move(why_none.text));
    Rung rung = std::move(best->rung);
    const bool is_whole = best->is_whole && !lacks(left_out, doing::tuned_cuts);
    if (rung.step >= before.step)
        return nothing("flags", before, std::string(is_whole ? no_better_flags : none_in_time));
    rung.needs = needs_of_flags(own.job, best->way);
    rung.files = before.files;
    return rung;
}

// Whether what the target launches is all that the job's plan can be.
bool is_launched_only(const Job& job) { return !searches_order(job) && !job.fixed && job.partition.empty(); }

// The place of the packing that most plans have, unless another is said to be run.
std::size_t place_elsewhere(const std::vector<Request>& packings, const NowWanted& wanted) {
    if (wanted.packing) return place_of_now(packings, wanted);
    const auto even = std::find_if(packings.begin(), packings.end(),
                                   [](const Request& one) { return one.job.packing == workloads::Packing::balanced; });
    return even == packings.end() ? 0 : static_cast<std::size_t>(even - packings.begin());
}

std::string sentence_of(const WhyNone& why, const Job& job) {
    if (why.of.empty()) return why.text;
    const bool of_memory =
        std::any_of(why.of.begin(), why.of.end(), [](const auto& one) { return one.short_by > Bytes{}; });
    return fmt::format("nothing that {} launches {} in {}; nearest is {}", target(job.target).option,
                       of_memory ? "fits" : "runs", name_of(job.setup->layout), why.text);
}

// Each of what was refused may stand beside rows of another layout.
void say_why_none(LadderStart& start, WhyNone why, const Job& job) {
    start.why_none = sentence_of(why, job);
    for (NotApplicable& one : why.of) one.partition = fmt::format("{}: {}", name_of(job.setup->layout), one.partition);
    start.opponents.not_applicable = std::move(why.of);
}

// What of encoders may be otherwise elsewhere.
std::string priced_so(const workloads::Model& model) {
    const std::string built = model.built && !model.built->source.empty() ? workloads::how_built(model) : "";
    return built.empty() ? "" : fmt::format("; priced with {} (--encoders names another launcher)", built);
}

// "; --headroom 3% keeps less free", where more is.
std::string to_keep_less(const emulator::Setup& setup) {
    constexpr emulator::Headroom least = emulator::usual_headroom;
    if (setup.headroom.parts_per_million <= least.parts_per_million) return {};
    return fmt::format("; --headroom {:.0f}% keeps less free", 100 * least.fraction());
}

// Where nothing that the target launches fits in the user's own layout: what it launches in another.
void move_elsewhere(LadderStart& start, const std::vector<Request>& packings, const NowWanted& wanted,
                    const Executor& execute, const Time& time) {
    Request request = packings[place_elsewhere(packings, wanted)];
    Opponents all;
    if (request.job.layout_choice)
        all = launched_here(choose_opponents(request.job, request.batch, execute, time), request.job);
    request.job.layout_choice.reset();  // it was chosen for searched orders
    Elsewhere other = launched_elsewhere(request.job, request.batch, wanted.cp, execute, time);
    start.layouts = other.layouts;
    if (!other.is_whole) start.left_out.emplace_back(doing::other_layouts);
    std::move(other.ways.begin(), other.ways.end(), std::back_inserter(all.ways));
    WhyNone none_there;
    auto best = fastest_of("layout", all, request, execute, time, none_there);
    if (!best)
        fail(ErrorKind::limit, "{}; {}{}{}", start.why_none,
             other.is_whole ? fmt::format("nor does it in the best of {} other layouts of the same GPUs", other.layouts)
                            : std::string("there was no time for other layouts, leave --budget out"),
             to_keep_less(*request.job.setup), priced_so(request.job.setup->model));
    start.request = moved_to(best->way, request);
    start.layout = std::move(best->rung);
    start.opponents.ways = {std::move(best->way)};
}

bool is_shared_by_cost(const Job& job) {
    return job.setup->layout.dp > 1 && job.sharing == partition::Sharing::balanced;
}

class Data {
public:
    Data(const std::vector<Request>& packings, workloads::Packing packed_now, const Fitting& now,
         const Executor& execute)
        : packings_(packings), packed_now_(packed_now), now_(now), execute_(execute), best_(now.rung) {}

    // The rung, and the place of the packing that it has; none: samples as they are packed now, in turn.
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
        OpponentWay way = now_.way;
        way.cut_packing = packed_now_;
        auto found = fitting("data", request, std::move(way), execute_, true);
        if (!found) return std::nullopt;
        found->rung.needs = fmt::format("a sampler: packed {}{}", workloads::name_of(request.job.packing),
                                        is_shared_by_cost(request.job) ? ", shared out by cost" : "");
        found->rung.files = {"assignment.json"};
        return std::move(found->rung);
    }

    const std::vector<Request>& packings_;
    workloads::Packing packed_now_;
    const Fitting& now_;
    const Executor& execute_;
    Rung best_;
};

std::string why_no_data(const NowWanted& now) {
    if (!now.packing) return "samples as they come, taken in turn, are packed as well";
    return fmt::format("samples that are packed {} and taken in turn are packed as well",
                       workloads::name_of(*now.packing));
}

// What is counted of it in models with or without blocks that have some.
std::string about_second_products(const workloads::Model& model) {
    for (const workloads::Module& module : model.modules)
        for (std::int64_t layer = 0; layer < module.architecture.layers; ++layer)
            if (workloads::has_second_products(module.architecture, layer))
                return "every second product of plain attention and dense feed-forwards runs again, too";
    return "of these blocks it is counted as norms and activation functions alone";
}

std::string remark_of(const NowWanted& wanted, const NowWanted& said, const Job& job) {
    if (said.recompute == wanted.recompute) return wanted.remark;
    const bool is_core = said.recompute->everywhere == Recompute::core_attention;
    const std::string what = is_core ? "attention is run again, and as it is fused nothing less is kept than with none"
                                     : about_second_products(job.setup->model);
    return fmt::format("{}{}{} of {} is {}: {}", wanted.remark, wanted.remark.empty() ? "" : "; ",
                       name_of(*wanted.recompute), target(job.target).option, name_of(*said.recompute), what);
}

void require_recompute(const NowWanted& said, const Way& way) {
    if (said.recompute && way.recompute != said.recompute)
        fail(ErrorKind::limit, "--now: with recompute {} the step does not fit; it runs with {}",
             name_of(*said.recompute), name_of(*way.recompute));
}

Time time_to_choose(const Request& given, const Executor& execute, const Time& whole, double runs,
                    const Way* like = nullptr) {
    const Time own = time_for_opponents(given.job, given.batch, execute, whole, runs, like);
    return searches_order(given.job) ? own : own.fraction(fractions.choosing);
}

// Where no order is searched what is left is known better once it is known what runs now.
Time time_after_now(const Time& before, const Request& given, const Way& now, const Executor& execute,
                    const Time& whole) {
    if (searches_order(given.job)) return before;
    return time_to_choose(given, execute, whole, runs_to_launch, &now);
}

Rung as_now(Rung rung, const Job& job, std::string remark) {
    rung.needs = "nothing: what is run today";
    if (job.packing != workloads::Packing::given)
        rung.way += fmt::format(", packed {}", workloads::name_of(job.packing));
    rung.remark = std::move(remark);
    return rung;
}

Opponents chosen_for(const Request& request, const Executor& execute, const Time& time) {
    return choose_opponents(request.job, request.batch, execute, time);
}

// The rungs that there are so far.
void tell_ladder(const OnLadder& on, const LadderStart& start) {
    if (!on) return;
    Ladder ladder{.now_is_said = start.now_is_said};
    for (const auto* rung : {&start.now, &start.data, &start.flags})
        if (*rung) ladder.rungs.push_back(**rung);
    on(ladder);
}

}  // namespace

LadderStart begin_ladder(std::vector<Request> packings, const std::vector<Request>& own, const NowWanted& wanted,
                         const Executor& on_threads, const Time& whole, const OnDoing& on, const OnLadder& on_ladder) {
    const Executor execute = told(on_threads, on, doing::known_schedules);
    LadderStart start;
    const std::vector<Request>& from = own.empty() ? packings : own;
    const std::size_t packed_now = place_of_now(from, wanted);
    const Request given = in_turn(from[packed_now]);
    require_sensible(given.job, given.batch);
    Time time = time_to_choose(given, on_threads, whole, runs_of_ladder + runs_to_launch);
    const NowWanted said = as_launched(wanted, given.job);
    const Opponents chosen =
        is_said(said) ? ways_said(given, said) : choose_opponents(given.job, given.batch, execute, time);
    const Opponents here = is_said(wanted) ? chosen : launched_here(chosen, given.job);
    WhyNone why_none;
    auto now = fastest_of("now", here, given, execute, time, why_none);
    if (!now && is_said(wanted)) fail(ErrorKind::limit, "--now: {}", why_none.text);
    if (!now) say_why_none(start, std::move(why_none), given.job);
    start.now_is_said = is_said(wanted) || wanted.packing;
    if (!now && is_launched_only(given.job)) {
        // The rungs of what runs now and of the data take no time.
        move_elsewhere(start, packings, wanted, told(on_threads, on, doing::other_layouts),
                       time_to_choose(given, on_threads, whole, runs_to_launch));
        return start;
    }
    if (!now) {
        start.request = std::move(packings[packed_now]);
        start.opponents = own.empty() ? chosen : chosen_for(start.request, execute, time);
        return start;
    }
    require_recompute(said, now->way);
    start.now = now->rung = as_now(std::move(now->rung), given.job, remark_of(wanted, said, given.job));
    tell_ladder(on_ladder, start);
    Data data(from, given.job.packing, *now, execute);
    const auto better = data.run();
    start.data = better ? data.take() : nothing("data", *start.now, why_no_data(wanted));
    tell_ladder(on_ladder, start);
    const std::size_t taken = better.value_or(packed_now);
    time = time_after_now(time, given, now->way, on_threads, whole);
    if (!own.empty()) start.flags = flags_rung(own[taken], *start.data, start.left_out, execute, time);
    if (start.flags) tell_ladder(on_ladder, start);
    start.request = std::move(packings[taken]);
    // What is chosen on samples that are packed otherwise, or in another layout, is not the job's.
    const bool same = taken == packed_now && own.empty();
    start.opponents = !is_said(wanted) && same ? chosen : chosen_for(start.request, execute, time);
    if (own.empty()) add_now(start.opponents, now->way, start.request.job, given.job.packing, is_said(wanted));
    // Another layout gains more than another cut: it comes first where time is short.
    add_elsewhere(start, wanted.cp, told(on_threads, on, doing::other_layouts), time);
    tune(start, told(on_threads, on, doing::tuned_cuts), time);
    return start;
}

}  // namespace pipeweaver::planner
