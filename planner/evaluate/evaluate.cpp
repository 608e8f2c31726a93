#include "planner/evaluate/evaluate.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/search/policies.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;

std::string problem_name(const Setup& setup, const Partition& partition, std::size_t replica) {
    return fmt::format("{}-{}{}-r{:03}", setup.model.name, partition.name, partition.chunks_per_rank, replica);
}

StepInput step_input(const Setup& setup, const Partition& partition, Units units, const StepWanted& wanted) {
    StepInput input;
    input.name = wanted.name;
    input.setup = &setup;
    input.replica = static_cast<std::int64_t>(wanted.replica);
    input.chains = partition.chains;
    input.dealt = partition.dealt;
    input.units = std::move(units);
    input.modes = wanted.menu.empty() ? partition.modes : wanted.menu;
    input.mode_of_rank = wanted.mode_of_rank;
    input.priced_split = wanted.priced_split && setup.recipe.is_serial();
    input.input_gradient_frees = wanted.target->input_gradient_frees;
    if (wanted.target->buffers_for_all) input.receive_buffers = static_cast<std::int64_t>(input.units.size());
    input.capacity = wanted.capacity;
    return input;
}

void require_plannable(std::size_t microbatches, std::size_t tasks, std::size_t most) {
    if (tasks <= most) return;
    fail(ErrorKind::input,
         "a replica has {} microbatches of {} tasks or more, allowed are {} tasks: take a smaller batch, or more "
         "replicas (--dp)",
         microbatches, tasks, most);
}

std::size_t count_tasks(const Partition& partition, const Units& units) {
    std::size_t tasks = 0;
    for (const auto& microbatch : units)
        for (std::size_t c = 0; c < partition.chains.size(); ++c)
            tasks += 2 * microbatch[c].size() * partition.chains[c].stages.size();
    return tasks;
}

std::optional<StepProblem> split_step(const StepProblem& whole) {
    const SplitChoice choice = splittable(whole);
    const auto count = static_cast<std::size_t>(std::count(choice.begin(), choice.end(), true));
    if (count == 0 || whole.problem.tasks.size() + count > sizes.tasks) return std::nullopt;
    return split_backwards(whole, choice).step;
}

search::Bound bound_of_every_choice(const StepProblem& whole, const StepProblem& split, search::BoundEffort effort) {
    Problem least = split.problem;
    for (std::size_t k = 0; k < least.pairs.size(); ++k) {
        Pair& pair = least.pairs[k];
        if (!pair.weight) continue;
        for (std::size_t m = 0; m < pair.modes.size(); ++m) {
            Mode& mode = pair.modes[m];
            mode.transient = whole.problem.pairs[k].modes[m].transient;
            mode.kept = std::min(mode.kept, mode.held + mode.transient);
            const Duration together = whole.problem.pairs[k].modes[m].backward;
            mode.weight = std::min(mode.weight, together - Duration{1});
            mode.backward = std::min(mode.backward, together - mode.weight);
        }
        const auto costs = costs_in(pair, pair.modes.front());
        apply(least.tasks[index(pair.forward)], costs[0]);
        apply(least.tasks[index(pair.backward)], costs[1]);
        apply(least.tasks[index(*pair.weight)], costs[2]);
    }
    return search::best_bound(Replayer(least), effort);
}

search::Bound bound_of(const StepProblem& whole, bool may_split, search::BoundEffort effort) {
    const auto split = may_split ? split_step(whole) : std::nullopt;
    return split ? bound_of_every_choice(whole, *split, effort) : search::best_bound(Replayer(whole.problem), effort);
}

const PolicyRun* Evaluation::run(std::string_view policy) const {
    const auto found =
        std::find_if(policies.begin(), policies.end(), [&](const PolicyRun& one) { return one.policy == policy; });
    return found == policies.end() ? nullptr : &*found;
}

const PolicyRun* Evaluation::fastest() const {
    const PolicyRun* best = nullptr;
    for (const PolicyRun& one : policies)
        if (one.applies() && (best == nullptr || one.makespan() < best->makespan())) best = &one;
    return best;
}

namespace {

// The policies that are wanted, still to be applied.
std::vector<PolicyRun> runs_of(const std::optional<std::vector<std::string>>& wanted, bool can_split) {
    std::vector<PolicyRun> all;
    for (const auto& policy : search::policies())
        if (!wanted || std::find(wanted->begin(), wanted->end(), policy.name) != wanted->end())
            all.push_back({policy.name, policy.needs_split && can_split});
    return all;
}

// Takes over what was applied before; returns what is still to be applied.
std::vector<PolicyRun*> take_over(std::vector<PolicyRun> before, std::vector<PolicyRun>& wanted) {
    std::vector<PolicyRun*> left;
    for (PolicyRun& run : wanted) {
        const auto same = std::find_if(before.begin(), before.end(),
                                       [&](const PolicyRun& one) { return one.policy == run.policy && !one.left_out; });
        if (same == before.end())
            left.push_back(&run);
        else
            run = std::move(*same);
    }
    return left;
}

// The dual queue first: it is as quick as any, and seldom far from the best. Those that were tried are taken out.
template <class Apply>
void apply_until_one_applies(std::vector<PolicyRun*>& left, const Apply& apply) {
    std::stable_partition(left.begin(), left.end(), [](const PolicyRun* run) { return run->policy == "dual-queue"; });
    std::size_t tried = 0;
    bool applies = false;
    while (!applies && tried < left.size()) {
        PolicyRun& run = *left[tried++];
        apply(run);
        applies = run.applies();
    }
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(tried));
}

}  // namespace

std::vector<PolicyRun> apply_policies(const Problem& problem, const Executor& execute) {
    auto all = runs_of({}, false);
    const Replayer replayer(problem);
    run_jobs(execute, all.size(),
             [&](std::size_t i) { all[i].result = search::apply_policy(all[i].policy, replayer); });
    return all;
}

Evaluation build(const Setup& setup, const Partition& partition, Units units, const StepWanted& step) {
    Evaluation result{.cut = {partition, {}, {}}};
    StepInput input = step_input(setup, partition, std::move(units), step);
    BuiltStep built = build_step(input);
    result.cut.units = std::move(input.units);
    result.shortage = std::move(built.shortage);
    if (result.shortage) return result;
    result.cut.step = std::move(*built.step);
    if (step.target->inexpressible != nullptr)
        result.inexpressible = step.target->inexpressible(result.cut.step.problem);
    return result;
}

void judge(Evaluation& known, const EvaluationWanted& wanted, const Executor& execute) {
    if (known.shortage || known.inexpressible) return;
    const StepProblem& whole = known.cut.step;
    if (wanted.split) known.split = split_step(whole);
    auto before = std::exchange(known.policies, runs_of(wanted.policies, known.split.has_value()));
    auto left = take_over(std::move(before), known.policies);
    const Replayer of_whole(whole.problem);
    std::optional<Replayer> of_split;
    if (known.split) of_split.emplace(known.split->problem);
    const auto find_bound = [&] {
        known.bound = known.split ? bound_of_every_choice(whole, *known.split, *wanted.bound)
                                  : search::best_bound(of_whole, *wanted.bound);
    };
    const auto apply_policy = [&](PolicyRun& run) {
        const Replayer& replayer = run.on_split ? *of_split : of_whole;
        run.result = wanted.mode_by_rank ? search::apply_policy_by_rank(run.policy, replayer)
                                         : search::apply_policy(run.policy, replayer);
        if (!run.applies()) return;
        PortReplay on_ports = replay_on_ports(run.on_split ? *known.split : whole, *run.result.schedule);
        run.result.replay = std::move(on_ports.replay);
        run.waits = on_ports.waits;
        // Starts follow from the schedule; kept for all replicas and policies they would be most of the memory.
        std::vector<Duration>().swap(run.result.replay.start);
    };
    if (wanted.one_anyhow && known.fastest() == nullptr && wanted.time.keep_going())
        apply_until_one_applies(left, apply_policy);
    const auto apply_in_time = [&](PolicyRun& run) {
        run.left_out = wanted.time.is_over();
        if (run.left_out)
            run.result.why_not = no_time_left;
        else
            apply_policy(run);
    };
    // The bound takes about as long as all policies together, so it goes first.
    const std::size_t bounds = wanted.bound ? 1 : 0;
    run_jobs(execute, bounds + left.size(),
             [&](std::size_t i) { i < bounds ? find_bound() : apply_in_time(*left[i - bounds]); });
    if (!wanted.keep_split) known.split.reset();
}

Evaluation evaluate(const Setup& setup, const Partition& partition, Units units, const StepWanted& step,
                    const EvaluationWanted& wanted, const Executor& execute) {
    Evaluation known = build(setup, partition, std::move(units), step);
    judge(known, wanted, execute);
    return known;
}

}  // namespace pipeweaver::planner
