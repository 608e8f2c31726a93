#include "pipeweaver/planner/plan_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/partition/no_cut.hpp"
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "planner/job/sample.hpp"
#include "planner/way/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <thread>
#include <utility>

namespace pipeweaver::planner {

namespace {

// What a schedule may be searched for beside a target's launch flags.
bool may_be_beside(const Target& one) { return one.searches && (has_own_plan(one) || one.action_lists); }

std::vector<std::string> targets_beside(const std::string& text) {
    std::vector<std::string> all;
    if (text.empty()) return all;
    const auto allowed = target_options(may_be_beside);
    for (const std::string& one : parts_of(text)) {
        if (std::find(allowed.begin(), allowed.end(), one) == allowed.end())
            fail(ErrorKind::input, "--also: {}", unknown("target", one, allowed));
        all.push_back(target_called(one));
    }
    return all;
}

// Of what is open, that which may go with the rest.
emulator::Layout said_layout(const WorkloadOptions& as) {
    const std::int64_t ep = as.ep.number.value_or(1);
    return {.tp = as.tp.number.value_or(ep), .cp = as.cp.number.value_or(1), .ep = ep};
}

// What is said to run now is run, by whatever launches it.
void require_launched_zero(const PlanOptions& asked, const emulator::Layout& layout) {
    const auto& zero = asked.workload.overrides.zero;
    const Target& of = target(target_called(asked.target));
    const auto has = [&](const Target& one) { return launches_zero(one.launch, *zero, layout); };
    if (!zero || has(of) || !asked.now.empty() || !asked.layers.empty()) return;
    std::vector<std::string> others;
    for (const Target& one : targets())
        if (has(one)) others.push_back(one.option);
    const bool replicates = of.launch.replicates && of.launch.least_zero > 0;
    fail(ErrorKind::input, "--zero: is {}, but --target {} launches {}{} to {} alone; allowed with {} are --target {}",
         *zero, of.option,
         !replicates                           ? ""
         : launches_zero(of.launch, 0, layout) ? "0 and "
                                               : "0 with --cp 1 and an --ep that divides --tp, and ",
         of.launch.least_zero, of.launch.most_zero, *zero, fmt::join(others, ", "));
}

// Of a target whose GPUs all train the whole model no degree is left to choose but that of GPUs that share samples.
void put_degrees_of_replicas(const Target& of, WorkloadOptions& as) {
    if (!of.launch.replicas_alone) return;
    const std::initializer_list<std::pair<std::string_view, Degree*>> all{
        {"tp", &as.tp}, {"cp", &as.cp}, {"pp", &as.pp}, {"ep", &as.ep}};
    for (const auto& [name, degree] : all) {
        if (degree == &as.cp && of.launch.exchanges_heads) continue;
        if (degree->number.value_or(1) != 1)
            fail(ErrorKind::input, "--{}: is {}, but with --target {} every GPU trains the whole model; allowed is 1",
                 name, *degree->number, of.option);
        *degree = {1, false};
    }
}

// Of a target that has one way for GPUs to share sequences.
void put_context(const Target& of, WorkloadOptions& as) {
    if (!of.launch.sends_keys) return;
    if (as.context == "all-to-all")
        fail(ErrorKind::input, "--context: is all-to-all, but --target {} exchanges no heads; allowed is ring",
             of.option);
    as.context = "ring";
}

}  // namespace

void PlanOptions::add_to(OptionTable& options) {
    job.add_to(options);
    batch.add_to(options);
    options.choice(
        "target", target, target_options(),
        fmt::format("what runs the plan: the headline and the ladder's rungs are of what it can run (default: {})",
                    targets().front().option));
    options.text("also", also, "NAME,...",
                 fmt::format("search a schedule for these, too, where --target is told no more than launch flags: {} "
                             "(default: none; other targets have both)",
                             fmt::join(target_options(may_be_beside), ", ")));
    options.text(
        "now", now, "WORDS",
        "what is run today, for the ladder: a partition, a policy, a recomputation, chunks:N and packing:WAY, those "
        "that are known, like first-stage,1f1b,blocks:8,packing:ffd; or a launch script of Megatron-LM or "
        "Megatron-Bridge, as `check` "
        "reads it, whose layout, recipe and microbatches are the plan's then (default: the fastest that the target "
        "launches)");
    options.text("set", set, "NAME=VALUE,...", "variables of the script of --now that it leaves to its caller");
    options.text(
        "layers", layers, "N,N,...|MODULE:N,N,.../...",
        "today's layers of the backbone in each stage, where encoders lie on the first and generators on the last; or "
        "of every module that is named");
    options.flag("robust", robust,
                 "of the schedules found up to 1 % longer than the shortest, the one with the smallest median if "
                 "costs are wrong by their own error estimates (without: one clearly better then, and at most 0.1 "
                 "% longer)");
    options.text("replicas", replicas, "LIST",
                 "plan these replicas alone, like 3 or 0-15,20: each as in the plan of all, without opponents, and "
                 "without PyTorch's schedule unless it is wanted (default: all)");
    options.choice("actions", actions, {"whole", "by-rank"},
                   "action lists of all ranks of a replica in one file, or each rank's own, zipped, in actions/ "
                   "(default: whole)");
    options.text("out", out, "DIR", "folder of the plan (required)");
    options.writes();
    add_split(options, split);
    add_recompute_menu(options, recompute);
}

void PlanOptions::fill(Job& of, const WorkloadOptions& as, const SearchLimits& limits) const {
    of.max_rounds = limits.rounds();
    batch.fill(of);
    job.fill(of, as);
    of.robust = robust;
    of.target = target_called(target);
    of.also = targets_beside(also);
    of.lists_by_rank = actions == "by-rank";
    of.split = split_of(split);
    if (partition::asks_for_copies(of.layouts) && planner::target(of.target).one_chain)
        fail(
            ErrorKind::input,
            "--module-tp: {} runs one chain, whose modules have the tp of the job; allowed with --target torch-actions "
            "and any",
            planner::target(of.target).option);
    of.recompute = recompute_menu(recompute, planner::target(of.target));
    // A link to the host that is said may carry activations.
    of.offloads = of.recompute.empty() && as.overrides.host_link && planner::target(of.target).offloaded_passes;
    if (of.fixed && !of.recompute.empty()) of.fixed->partition.modes = of.recompute;
    if (of.fixed) require_for_passes(of.fixed->partition.modes);
    if (of.fixed) require_offload_carried(of.fixed->partition.modes, "--partition", planner::target(of.target));
    if (of.words) of.words->add(values_of(batch));
}

WorkloadOptions PlanOptions::for_target(WorkloadOptions as) const {
    require_launched_zero(*this, said_layout(workload));
    as.target = target_called(target);
    const Target& of = planner::target(as.target);
    as.equal_microbatches = as.equal_microbatches || of.equal_microbatches;
    if (as.recipe.empty()) as.recipe = of.recipe;
    put_degrees_of_replicas(of, as);
    put_context(of, as);
    return as;
}

Request PlanOptions::packed(const WorkloadOptions& as, const SearchLimits& limits, const Executor& execute) const {
    Request request = for_target(as).request(static_cast<std::uint64_t>(limits.seed), execute);
    const emulator::Setup& setup = *request.job.setup;  // with the degrees that were left open
    if (workload.overrides.zero == setup.recipe.zero) require_launched_zero(*this, setup.layout);
    require_kept_deferred();
    fill(request.job, as, limits);
    batch.carry(request.job, request.batch);
    return request;
}

void PlanOptions::require_kept_deferred() const {
    std::error_code none;
    if (!batch.deferred.empty() &&
        std::filesystem::equivalent(batch.deferred, std::filesystem::path(out) / "deferred.jsonl", none))
        fail(ErrorKind::input, "--deferred: {} is a file of --out, which replaces it; allowed is another folder",
             batch.deferred);
}

Request PlanOptions::request(const SearchLimits& limits, const Executor& execute) const {
    if (workload.packing != WorkloadOptions::automatic) return packed(workload, limits, execute);
    const bool fixed_shapes = planner::target(target_called(target)).fixed_shapes;
    auto all = packed_in_each(
        [&](workloads::Packing one) { return (one == workloads::Packing::padded) == fixed_shapes; }, limits, execute);
    return all.size() == 1 ? std::move(all.front()) : choose_packing(std::move(all), execute);
}

std::vector<Request> PlanOptions::packings(const SearchLimits& limits, const Executor& execute) const {
    const bool fixed_shapes = planner::target(target_called(target)).fixed_shapes;
    // What may be left for a later step is another step's batch: it goes by the packing that is asked for.
    if (workload.packing.empty() && !batch.defer)
        return packed_in_each([&](workloads::Packing one) { return one != workloads::Packing::padded || fixed_shapes; },
                              limits, execute);
    std::vector<Request> all;
    all.push_back(request(limits, execute));
    return all;
}

std::vector<Request> PlanOptions::own_packings(const Job& chosen, const SearchLimits& limits,
                                               const Executor& execute) const {
    const auto own = workload.with_own(chosen);
    if (!own) return {};
    PlanOptions in_own = *this;
    in_own.workload = *own;
    in_own.job.module_tp.clear();  // of the plan's layout: what runs now has the job's tp for all
    return in_own.packings(limits, execute);
}

std::vector<Request> PlanOptions::packed_in_each(const std::function<bool(workloads::Packing)>& which,
                                                 const SearchLimits& limits, const Executor& execute) const {
    std::vector<workloads::Packing> ways;
    std::copy_if(workloads::packings().begin(), workloads::packings().end(), std::back_inserter(ways), which);
    // A layout is chosen for evenly packed samples, as most plans have them, and is that of all.
    const auto even = std::find(ways.begin(), ways.end(), workloads::Packing::balanced);
    WorkloadOptions as = workload;
    as.packing = name_of(even == ways.end() ? ways.front() : *even);
    const Request first = packed(as, limits, execute);
    as = as.with_chosen(first.job);
    std::vector<Request> all;
    for (const workloads::Packing one : ways) {
        as.packing = name_of(one);
        all.push_back(one == first.job.packing ? first : packed(as, limits, execute));
        // One setup for all: their layers are priced once, and what was made for one is for the others, too.
        all.back().job.setup = first.job.setup;
        all.back().job.layout_choice = first.job.layout_choice;
    }
    return all;
}

Wanted PlanOptions::wanted(const Job& of) const {
    Wanted wanted;
    if (replicas.empty()) return wanted;
    const std::int64_t all = of.setup->layout.dp;
    for (const std::int64_t one : parse_integers("--replicas", replicas, 0, all - 1, static_cast<std::size_t>(all)))
        wanted.replicas.push_back(static_cast<std::size_t>(one));
    std::sort(wanted.replicas.begin(), wanted.replicas.end());
    wanted.replicas.erase(std::unique(wanted.replicas.begin(), wanted.replicas.end()), wanted.replicas.end());
    wanted.opponents = wanted.robustness = false;
    wanted.targets = has_own_plan(planner::target(of.target));
    return wanted;
}

Plan PlanOptions::make_plan(const Request& request, const Executor& execute, const Time& time,
                            const Wanted& wanted) const {
    MadePlan made = try_plan(request.job, request.batch, execute, time, wanted);
    if (made.plan) return std::move(*made.plan);
    if (has_own_plan(planner::target(request.job.target))) fail(ErrorKind::limit, "{}", made.why_not);
    const emulator::Setup& setup = *request.job.setup;
    std::string cut;
    if (setup.layout.pp > 1)
        if (const auto none = partition::why_no_cut_fits(setup, request.batch.microbatches)) cut = none->text() + "; ";
    const auto asked = for_target(workload).layout_request(setup, request.batch.microbatches, request.job.seed);
    fail(ErrorKind::limit, "{}; {}{}", made.why_not, cut, what_would_fit(asked, execute));
}

void PlanConfiguration::configure(const Json& document) {
    OptionTable options;
    plan.workload.add_to(options);
    plan.add_to(options);
    limits.add_to(options);
    options.configure(document);
}

void SearchLimits::add_to(OptionTable& options) {
    options.group("Limits of the search");
    options.parsed(
        "budget", "TIME",
        "the most time for the whole command, every replica included, like 1s or 300ms: what is left out for it is "
        "said (default: none, all is done until searches have stopped gaining, with equal results on any machine)",
        [this](const std::string& text) { budget = parse_duration(text); },
        [this] { return budget ? std::optional(fmt::format("{}ns", budget->count())) : std::nullopt; });
    options.integer(
        "max-rounds", max_rounds, 0, 1'000'000'000,
        "rounds of each search, which ends no sooner and no later (default: until it has stopped gaining; of rows of "
        "`recommend` 20)");
    options.integer("seed", seed, 0, 9'007'199'254'740'991, "seed of all random choices (default 1)");
    options.integer("threads", threads, 1, 1024, "threads of the search (default: all cores); no result depends on it");
}

std::optional<std::uint64_t> SearchLimits::rounds() const {
    return max_rounds ? std::optional(static_cast<std::uint64_t>(*max_rounds)) : std::nullopt;
}

int SearchLimits::wanted_threads() const {
    return threads > 0 ? static_cast<int>(threads)
                       : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

// Where not all cores can have one, half of what can be made is left to whatever else needs threads and memory.
int SearchLimits::thread_count() const {
    const int wanted = wanted_threads();
    const int possible = possible_threads(wanted);
    if (possible == wanted) return wanted;
    if (threads == 0) return std::max(1, possible / 2);
    fail(ErrorKind::limit, "--threads: is {}, {} can be made within the limits of processes and memory here", threads,
         possible);
}

}  // namespace pipeweaver::planner
