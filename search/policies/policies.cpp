#include "pipeweaver/search/policies.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/schedule/memory.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "search/construct/dispatch.hpp"
#include "search/instance/modes.hpp"
#include "search/policies/module_policies.hpp"
#include "search/policies/policy_row.hpp"
#include "search/policies/v_blocks.hpp"
#include "search/policies/zero_bubble.hpp"

#include <algorithm>

namespace pipeweaver::search {

namespace {

PolicyOrder as_task_ids(const Order& order) {
    PolicyOrder result{{}, order.why_not};
    for (const auto& tasks : order.ranks) {
        auto& mine = result.ranks.emplace_back();
        for (const std::uint32_t task : tasks) mine.push_back(TaskId{task});
    }
    return result;
}

std::string why_it_failed(const schedule::Replayer& replayer, const schedule::Replay& replay) {
    const std::size_t number = index(*replay.stuck_at);
    const schedule::Task& task = replayer.problem().tasks[number];
    const auto at = fmt::format("rank {} at task {} '{}'", index(task.rank), number, task.label);
    switch (replay.outcome) {
        case schedule::Outcome::out_of_memory:
            return fmt::format("does not fit: {} is {} short", at, human(replay.short_by));
        case schedule::Outcome::underflow:
            return fmt::format("{} gives back {} that it did not take", at, human(replay.short_by));
        case schedule::Outcome::deadlock:
            return fmt::format(
                "its fixed order cannot run here: {} would wait for a task that the order puts behind it", at);
        case schedule::Outcome::completed:
            break;
    }
    return {};
}

// The order under these modes, or why it fails.
PolicyResult run_in_order(const schedule::Replayer& replayer, const PolicyOrder& order,
                          std::vector<std::uint32_t> mode) {
    schedule::Schedule schedule{order.ranks, std::move(mode)};
    auto replay = replayer.replay(schedule);
    if (replay.outcome == schedule::Outcome::out_of_memory)
        return {{}, {}, why_it_failed(replayer, replay), replay.short_by};
    if (replay.outcome != schedule::Outcome::completed) return {{}, {}, why_it_failed(replayer, replay)};
    return {std::move(schedule), std::move(replay), {}};
}

// Tries the order under all uniform modes, fastest first.
PolicyResult run_fixed(const Flat& flat, const PolicyOrder& order) {
    PolicyResult result;
    result.why_not = order.why_not;
    if (!order.why_not.empty()) return result;
    for (const auto& mode : uniform_modes(flat)) {
        result = run_in_order(*flat.replayer, order, mode);
        if (result.schedule) break;
    }
    return result;
}

// Lets the scheduler build a schedule under the fastest uniform modes that it finds safe.
template <class Scheduler, class Run>
PolicyResult build(const Flat& flat, Scheduler scheduler, Run run) {
    PolicyResult result;
    for (const auto& mode : uniform_modes(flat)) {
        if (const auto shortage = scheduler.prepare(flat.costs(mode))) {
            result.why_not = "does not fit: " + shortage->text(flat);
            continue;
        }
        run(scheduler);
        result.schedule = as_schedule(flat, scheduler.sequence(), mode);
        result.replay = flat.replayer->replay(*result.schedule);
        result.why_not.clear();
        PIPEWEAVER_ASSERT(result.replay.outcome == schedule::Outcome::completed);
        return result;
    }
    return result;
}

PolicyResult not_applicable(std::string why) { return {{}, {}, std::move(why)}; }

PolicyResult run_dual_queue(const Flat& flat) {
    return build(flat, Dispatcher(flat), [&](Dispatcher& d) { d.run(Choice::dual_queue, flat.place); });
}

// The best of the list schedules by this position, with these windows.
PolicyResult build_lists(const Flat& flat, const ListRules& rules) {
    PolicyResult best;
    for (const std::uint32_t window : rules.windows) {
        auto result = build(flat, Dispatcher(flat),
                            [&](Dispatcher& dispatcher) { dispatcher.run(Choice::list, rules.position, {}, window); });
        if (!best.schedule || (result.schedule && result.replay.makespan < best.replay.makespan))
            best = std::move(result);
    }
    return best;
}

PolicyResult run_bubble_filling(const Flat& flat) {
    if (auto why = one_module_only(flat); !why.empty()) return not_applicable(std::move(why));
    return build_lists(flat, bubble_filling_rules(flat));
}

PolicyResult run_nesting(const Flat& flat) {
    if (auto why = one_module_only(flat); !why.empty()) return not_applicable(std::move(why));
    return build_lists(flat, nesting_rules(flat));
}

// By the longest path from a task to the end: T. L. Adam, K. M. Chandy, J. R. Dickson, Communications of the ACM 17,
// 1974.
PolicyResult run_critical_path(const Flat& flat) {
    const auto key = [&](std::uint32_t i) { return std::pair(-(flat.shortest[i] + flat.tail[i]), flat.place[i]); };
    const auto position = keys_by(flat.tasks(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    return build(flat, Dispatcher(flat), [&](Dispatcher& d) { d.run(Choice::look_ahead, position); });
}

const std::vector<PolicyRow>& policy_rows() {
    static const std::vector<PolicyRow> all{
        {{gpipe_policy, "all forwards, then all backwards", false, true}, gpipe_order, nullptr},
        {{one_f_one_b_policy, "one forward, one backward; one stage on each rank", false, true},
         one_forward_one_backward_order,
         nullptr},
        {{interleaved_policy, "one forward, one backward, with several stages on each rank in a loop", false, true},
         interleaved_order,
         nullptr},
        {{dual_queue_policy,
          "DIP's stage interleaving: a queue of forwards and one of backwards on each rank, in turn"},
         nullptr,
         run_dual_queue},
        {{"zb-h1", "zero bubble with 1F1B's memory: weight gradients postponed; one stage on each rank", true, true},
         zb_h1_order,
         nullptr},
        {{"zb-v", "zero bubble with two stages on each rank, placed like a V", true, true, true}, zb_v_order, nullptr},
        {{"v-half", "a V with about half of zb-v's memory: its block repeated at a wider interval", true, true, true},
         v_half_order,
         nullptr},
        {{"v-min", "a V with the least memory, on many ranks a third of zb-v's", true, true, true},
         v_min_order,
         nullptr},
        {{"bubble-filling", "Optimus-style: the largest module first, the others in its bubbles"},
         nullptr,
         run_bubble_filling},
        {{"nesting", "BigMac-style: all modules of a few microbatches at a time, whatever the batch"},
         nullptr,
         run_nesting},
        {{"critical-path", "list schedule by the longest path behind a task, looking ahead to what is about to arrive"},
         nullptr,
         run_critical_path}};
    return all;
}

// An order knows nothing of modes, and a Flat of the few costs that are left is made in a fraction of the time.
schedule::Problem in_first_modes(const schedule::Problem& problem) {
    schedule::Problem first{
        problem.name, problem.source, problem.ranks, problem.stages, problem.tasks, problem.edges, {}};
    for (const schedule::Pair& pair : problem.pairs)
        first.pairs.push_back({pair.forward, pair.backward, pair.weight, {pair.modes.front()}});
    return first;
}

const PolicyRow& policy_row(std::string_view name) {
    return policy_rows()[static_cast<std::size_t>(&policy(name) - policies().data())];
}

}  // namespace

const std::vector<Policy>& policies() {
    static const std::vector<Policy> all = [] {
        std::vector<Policy> list;
        for (const PolicyRow& row : policy_rows()) list.push_back(row.policy);
        return list;
    }();
    return all;
}

const Policy& policy(std::string_view name, std::string_view option) {
    std::vector<std::string> names;
    for (const Policy& known : policies()) {
        if (known.name == name) return known;
        names.push_back(known.name);
    }
    fail(ErrorKind::input, "{}{}", option, unknown("policy", name, names));
}

PolicyResult apply_list_policy(std::string_view name, const Flat& flat) {
    const PolicyRow& known = policy_row(name);
    PIPEWEAVER_ASSERT(known.apply != nullptr);
    return known.apply(flat);
}

PolicyResult apply_row(const PolicyRow& row, const schedule::Replayer& replayer) {
    const Flat flat(replayer);
    return row.order != nullptr ? run_fixed(flat, as_task_ids(row.order(flat))) : row.apply(flat);
}

PolicyResult apply_policy(std::string_view name, const schedule::Replayer& replayer) {
    return apply_row(policy_row(name), replayer);
}

PolicyOrder fixed_order(std::string_view name, const schedule::Replayer& replayer) {
    const PolicyRow& known = policy_row(name);
    PIPEWEAVER_ASSERT(known.order != nullptr);
    const schedule::Problem problem = in_first_modes(replayer.problem());
    const schedule::Replayer in_first(problem);
    return as_task_ids(known.order(Flat(in_first)));
}

OrderMemory::OrderMemory(const schedule::Replayer& replayer, const PolicyOrder& order)
    : replayer_(replayer), order_(order), costs_(replayer.problem().tasks.size()) {}

bool OrderMemory::fits(std::size_t rank, std::uint32_t mode) {
    const auto& problem = replayer_.problem();
    for (const TaskId task : order_.ranks[rank]) {
        const std::uint32_t pair = replayer_.pair_of(index(task));
        const bool paired = pair != schedule::Replayer::unpaired;
        costs_[index(task)] = replayer_.cost(index(task), paired ? mode_of(problem.pairs[pair], mode) : 0);
    }
    const schedule::Rank& own = problem.ranks[rank];
    bool fits = true;
    schedule::walk_memory(own, order_.ranks[rank], costs_, [&](TaskId, Bytes during, Bytes after) {
        fits = fits && !(own.capacity && during > *own.capacity) && after >= own.base;
    });
    return fits;
}

PolicyResult apply_policy_by_rank(std::string_view name, const schedule::Replayer& replayer) {
    const PolicyOrder order = fixed_order(name, replayer);
    if (!order.why_not.empty()) return not_applicable(order.why_not);
    const auto& problem = replayer.problem();
    const auto rank_of = [&](const schedule::Pair& pair) { return index(problem.tasks[index(pair.forward)].rank); };
    std::vector<std::vector<const schedule::Pair*>> pairs(problem.ranks.size());
    for (const schedule::Pair& pair : problem.pairs) pairs[rank_of(pair)].push_back(&pair);
    OrderMemory memory(replayer, order);
    std::vector<std::uint32_t> of_rank(pairs.size(), 0);
    for (std::size_t r = 0; r < pairs.size(); ++r)
        // Where none fits, the replay says what the slowest is short of.
        for (const std::uint32_t mode : modes_by_time(pairs[r])) {
            of_rank[r] = mode;
            if (memory.fits(r, mode)) break;
        }
    std::vector<std::uint32_t> modes;
    for (const schedule::Pair& pair : problem.pairs) modes.push_back(mode_of(pair, of_rank[rank_of(pair)]));
    return run_in_order(replayer, order, std::move(modes));
}

Found as_found(std::string_view policy, PolicyResult result, const Bound& bound) {
    Found found;
    found.bound = bound.value;
    found.bound_name = bound.name;
    found.strategy = policy;
    if (!result.schedule) {
        found.why_not = fmt::format("the policy '{}' does not apply: {}", policy, result.why_not);
        return found;
    }
    const Duration makespan = result.replay.makespan;
    if (makespan == bound.value) found.stop_reason = schedule::StopReason::optimal;
    found.first = {*result.schedule, makespan, found.strategy};
    found.history = {{0, 0, makespan, bound.value, found.strategy}};
    found.schedule = std::move(result.schedule);
    found.replay = std::move(result.replay);
    return found;
}

}  // namespace pipeweaver::search
