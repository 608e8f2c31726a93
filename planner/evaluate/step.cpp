#include "planner/evaluate/step.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "pipeweaver/search/standing.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;

Microbatches of_share(const Microbatches& all, const std::vector<std::size_t>& share) {
    Microbatches mine;
    for (const std::size_t m : share) mine.push_back(all[m]);
    return mine;
}

std::vector<std::size_t> largest_first(const std::vector<Duration>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    return order;
}

std::size_t fullest(const std::vector<Microbatches>& replicas) {
    const auto most = [](const Microbatches& all) {
        std::int64_t positions = 0;
        for (const auto& one : all) positions = std::max(positions, workloads::positions_of(one));
        return positions;
    };
    return static_cast<std::size_t>(
        std::max_element(replicas.begin(), replicas.end(),
                         [&](const Microbatches& a, const Microbatches& b) { return most(a) < most(b); }) -
        replicas.begin());
}

bool pads(const Target& target, const Layout& layout) { return target.fixed_shapes && layout.pp > 1; }

std::vector<Microbatches> of_shares(const Microbatches& all, const partition::Shares& shares) {
    std::vector<Microbatches> replicas;
    for (const auto& share : shares) replicas.push_back(of_share(all, share));
    return replicas;
}

Microbatches together(const std::vector<Microbatches>& replicas) {
    Microbatches all;
    for (const Microbatches& one : replicas) all.insert(all.end(), one.begin(), one.end());
    return all;
}

std::vector<Microbatches> as_run_by(const Target& target, const Layout& layout, std::vector<Microbatches> replicas) {
    if (!pads(target, layout)) return replicas;
    auto padded = partition::pad(together(replicas)).microbatches;
    auto next = padded.begin();
    for (Microbatches& one : replicas)
        for (auto& microbatch : one) microbatch = std::move(*next++);
    return replicas;
}

std::string problem_name(const Setup& setup, const Partition& partition, std::size_t replica) {
    return fmt::format("{}-{}{}-r{:03}", setup.model.name, partition.name, partition.chunks_per_rank, replica);
}

StepInput as_wanted(StepInput input, const StepWanted& wanted) {
    input.name = wanted.name;
    input.replica = static_cast<std::int64_t>(wanted.replica);
    if (!wanted.menu.empty()) input.modes = wanted.menu;
    input.mode_of_rank = wanted.mode_of_rank;
    input.priced_split = wanted.priced_split && input.setup->recipe.is_serial();
    input.input_gradient_frees = wanted.target->input_gradient_frees;
    if (wanted.target->buffers_for_all) input.receive_buffers = static_cast<std::int64_t>(input.units.size());
    input.capacity = wanted.capacity;
    return input;
}

std::optional<std::string> why_not_plannable(std::size_t microbatches, std::size_t tasks, std::size_t most) {
    if (tasks <= most) return std::nullopt;
    return fmt::format(
        "a replica has {} microbatches of {} tasks or more, allowed are {} tasks: take a smaller batch, or more "
        "replicas (--dp)",
        microbatches, tasks, most);
}

void require_plannable(std::size_t microbatches, std::size_t tasks, std::size_t most) {
    if (const auto why = why_not_plannable(microbatches, tasks, most)) fail(ErrorKind::input, "{}", *why);
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

search::Bound bound_of(const Step& step, bool may_split, search::BoundEffort effort) {
    const StepProblem& whole = step.cut.step;
    if (may_split && step.split) return bound_of_every_choice(whole, *step.split, effort);
    return search::best_bound(Replayer(whole.problem), effort);
}

const PolicyRun* Step::run(std::string_view policy) const {
    const auto found =
        std::find_if(policies.begin(), policies.end(), [&](const PolicyRun& one) { return one.policy == policy; });
    return found == policies.end() ? nullptr : &*found;
}

const PolicyRun* Step::fastest() const {
    const PolicyRun* best = nullptr;
    const auto standing = [this](const PolicyRun& run) {
        return search::standing_of(form(run.on_split).problem, run.result.replay);
    };
    for (const PolicyRun& one : policies)
        if (one.applies() && (best == nullptr || standing(one) < standing(*best))) best = &one;
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
    std::stable_partition(left.begin(), left.end(),
                          [](const PolicyRun* run) { return run->policy == search::dual_queue_policy; });
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

bool Step::lacks_policies() const {
    return std::any_of(policies.begin(), policies.end(), [](const PolicyRun& run) { return run.left_out; });
}

std::vector<PolicyRun> policies_of(const Problem& problem, const Executor& execute, bool fixed_orders_alone) {
    auto all = runs_of({}, false);
    if (fixed_orders_alone)
        std::erase_if(all, [](const PolicyRun& run) { return !search::policy(run.policy).fixed_order; });
    const Replayer replayer(problem);
    run_jobs(execute, all.size(),
             [&](std::size_t i) { all[i].result = search::apply_policy(all[i].policy, replayer); });
    return all;
}

Step build(const Setup& setup, const Partition& partition, const Microbatches& microbatches, const StepWanted& wanted) {
    auto units = partition::units(partition, setup.model, microbatches);
    if (wanted.most_tasks) require_plannable(microbatches.size(), count_tasks(partition, units), *wanted.most_tasks);
    return build(setup, partition, std::move(units), wanted);
}

Step build(const Setup& setup, const Partition& partition, Units units, const StepWanted& wanted) {
    Step result{.input = as_wanted(partition::step_input(setup, partition, std::move(units)), wanted),
                .cut = {partition, {}, {}}};
    BuiltStep built = build_step(result.input);
    result.shortage = std::move(built.shortage);
    if (result.shortage) return result;
    result.cut.step = std::move(*built.step);
    if (wanted.target->inexpressible != nullptr)
        result.inexpressible = wanted.target->inexpressible(result.cut.step.problem);
    return result;
}

Cut take_cut(Step step) {
    step.cut.units = std::move(step.input.units);
    return std::move(step.cut);
}

PortReplay settle(const StepInput& input, StepProblem& step, const Schedule& schedule) {
    PortReplay settled = replay_on_ports(step, schedule);
    step.problem = with_lags(std::move(step.problem), settled.lags);
    if (input.setup->recipe.bucket == Bytes{}) return settled;
    set_tails(input, step, schedule);
    settled.replay = replay(step.problem, schedule);
    return settled;
}

PortReplay replay_in_full(const Step& step, bool on_split, const Schedule& schedule) {
    if (step.input.setup->recipe.bucket == Bytes{}) return replay_on_ports(step.form(on_split), schedule);
    StepProblem form = step.form(on_split);
    return settle(step.input, form, schedule);
}

void apply_policies(Step& step, const PoliciesWanted& wanted, const Executor& execute) {
    if (step.shortage || step.inexpressible) return;
    if (wanted.split && !step.split) step.split = split_step(step.cut.step);
    auto before = std::exchange(step.policies, runs_of(wanted.policies, wanted.split && step.split));
    auto left = take_over(std::move(before), step.policies);
    const Replayer whole(step.cut.step.problem);
    std::optional<Replayer> split;
    if (step.split) split.emplace(step.split->problem);
    const auto apply = [&](PolicyRun& run) {
        run.result = (wanted.mode_by_rank ? search::apply_policy_by_rank : search::apply_policy)(
            run.policy, run.on_split ? *split : whole);
        if (!run.applies()) return;
        PortReplay in_full = replay_in_full(step, run.on_split, *run.result.schedule);
        run.result.replay = std::move(in_full.replay);
        run.waits = in_full.waits;
        // Starts follow from the schedule; kept for all replicas and policies they would be most of the memory.
        std::vector<Duration>().swap(run.result.replay.start);
    };
    if (wanted.one_anyhow && step.fastest() == nullptr && wanted.time.keep_going())
        apply_until_one_applies(left, apply);
    // Asked in their order, whichever thread asks: which are left out follows from how often the time was not over.
    std::mutex asking;
    auto next = left.begin();
    const auto apply_next = [&] {
        std::unique_lock lock(asking);
        PolicyRun& run = **next++;
        run.left_out = wanted.time.is_over();
        lock.unlock();
        if (run.left_out)
            run.result.why_not = no_time_left;
        else
            apply(run);
    };
    // The bound takes about as long as all policies together, so it goes first.
    const std::size_t bounds = wanted.bound ? 1 : 0;
    run_jobs(execute, bounds + left.size(), [&](std::size_t i) {
        if (i < bounds)
            step.bound = bound_of(step, wanted.split, *wanted.bound);
        else
            apply_next();
    });
}

Step evaluate(const Setup& setup, const Partition& partition, const Microbatches& microbatches, const StepWanted& step,
              const PoliciesWanted& wanted, const Executor& execute) {
    Step known = build(setup, partition, microbatches, step);
    apply_policies(known, wanted, execute);
    return known;
}

}  // namespace pipeweaver::planner
