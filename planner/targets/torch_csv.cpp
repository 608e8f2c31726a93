// What PyTorch's pipeline runtime can run (torch.distributed.pipelining, observed on 2.13.0): one chain of stages 0 ...
// S-1; every stage has exactly one F and one B (or I and W) for each of microbatches 0 ... M-1; edges only F(s) ->
// F(s+1), B(s+1) -> B(s), F(s) -> B(s), I -> W; every rank has a stage; one mode for each pair. The last stage's
// forwards run in the order of the microbatches, or losses are paired wrongly.
#include "pipeweaver/planner/targets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace pipeweaver::planner {

using namespace schedule;

namespace {

std::string named(const Problem& problem, std::size_t task) {
    return fmt::format("task {} '{}'", task, problem.tasks[task].label);
}

struct Size {
    std::int64_t stages = 0;
    std::int64_t microbatches = 0;
};

Size size_of(const Problem& problem) {
    Size size;
    for (const Task& task : problem.tasks) {
        size.stages = std::max(size.stages, task.stage.value_or(-1) + 1);
        size.microbatches = std::max(size.microbatches, task.microbatch.value_or(-1) + 1);
    }
    return size;
}

std::optional<std::string> unsupported_task(const Problem& problem) {
    for (std::size_t i = 0; i < problem.tasks.size(); ++i) {
        const Task& task = problem.tasks[i];
        if (task.kind == TaskKind::other) return fmt::format("{}: PyTorch has no action of kind X", named(problem, i));
        if (!task.stage || !task.microbatch) return fmt::format("{}: has no stage or microbatch", named(problem, i));
        if (task.item.value_or(0) != 0)
            return fmt::format("{}: PyTorch passes whole microbatches, this is sub-microbatch {}", named(problem, i),
                               *task.item);
    }
    return std::nullopt;
}

using Actions =
    std::map<std::tuple<std::int64_t, std::int64_t, char>, std::size_t>;  // (stage, microbatch, kind) -> task

std::optional<std::string> unsupported_counts(const Problem& problem, const Size& size, Actions& actions) {
    for (std::size_t i = 0; i < problem.tasks.size(); ++i) {
        const Task& task = problem.tasks[i];
        if (!actions.try_emplace({*task.stage, *task.microbatch, letter(task.kind)}, i).second)
            return fmt::format("{}: is there twice for its stage and microbatch", named(problem, i));
    }
    for (std::int64_t s = 0; s < size.stages; ++s)
        for (std::int64_t m = 0; m < size.microbatches; ++m) {
            const auto has = [&](char kind) { return actions.contains({s, m, kind}); };
            if (!has('F'))
                return fmt::format("stage {} has no F of microbatch {}: PyTorch runs every stage for every microbatch",
                                   s, m);
            if (!has('B') && !has('I') && !has('W'))
                return fmt::format(
                    "stage {} has no backward of microbatch {}, as a frozen module before the first trained one: "
                    "PyTorch runs a backward of every stage",
                    s, m);
            if (has('B') == has('I') || has('I') != has('W'))
                return fmt::format("stage {} needs one B, or one I and one W, of microbatch {}", s, m);
        }
    return std::nullopt;
}

std::optional<std::string> unsupported_ranks(const Problem& problem, const Size& size) {
    std::map<std::int64_t, RankId> rank_of;
    for (std::size_t i = 0; i < problem.tasks.size(); ++i) {
        const auto [place, added] = rank_of.try_emplace(*problem.tasks[i].stage, problem.tasks[i].rank);
        if (place->second != problem.tasks[i].rank)
            return fmt::format("{}: stage {} is on two ranks", named(problem, i), *problem.tasks[i].stage);
    }
    std::set<std::size_t> used;
    for (const auto& [stage, rank] : rank_of) used.insert(index(rank));
    for (std::size_t r = 0; r < problem.ranks.size(); ++r)
        if (!used.contains(r)) return fmt::format("rank {} has no stage: PyTorch needs one on every rank", r);
    if (static_cast<std::int64_t>(rank_of.size()) != size.stages)
        return fmt::format("stages are not numbered 0 to {}", size.stages - 1);
    return std::nullopt;
}

bool allowed(const Task& from, const Task& to) {
    if (from.microbatch != to.microbatch) return false;
    const bool gradient = to.kind == TaskKind::backward || to.kind == TaskKind::input_gradient;
    const bool from_gradient = from.kind == TaskKind::backward || from.kind == TaskKind::input_gradient;
    if (from.kind == TaskKind::forward && to.kind == TaskKind::forward) return *to.stage == *from.stage + 1;
    if (from.kind == TaskKind::forward && gradient) return to.stage == from.stage;
    if (from_gradient && gradient) return *to.stage == *from.stage - 1;
    return from_gradient && to.kind == TaskKind::weight_gradient && to.stage == from.stage;
}

std::optional<std::string> unsupported_edges(const Problem& problem, const Size& size, const Actions& actions) {
    std::set<std::pair<std::size_t, std::size_t>> there;
    for (const Edge& edge : problem.edges) {
        if (!allowed(problem.tasks[index(edge.from)], problem.tasks[index(edge.to)]))
            return fmt::format("{} -> {}: PyTorch has one chain of stages and no other dependency",
                               named(problem, index(edge.from)), named(problem, index(edge.to)));
        there.emplace(index(edge.from), index(edge.to));
    }
    const auto backward = [&](std::int64_t stage, std::int64_t m) {
        const auto whole = actions.find({stage, m, 'B'});
        return whole != actions.end() ? whole->second : actions.at({stage, m, 'I'});
    };
    for (std::int64_t s = 0; s + 1 < size.stages; ++s)
        for (std::int64_t m = 0; m < size.microbatches; ++m)
            if (!there.contains({actions.at({s, m, 'F'}), actions.at({s + 1, m, 'F'})}) ||
                !there.contains({backward(s + 1, m), backward(s, m)}))
                return fmt::format(
                    "stages {} and {} are not joined in both directions for microbatch {}: PyTorch sends activations "
                    "from each stage to the next, and gradients back",
                    s, s + 1, m);
    return std::nullopt;
}

}  // namespace

std::optional<std::string> inexpressible_in_torch_csv(const Problem& problem) {
    if (auto why = unsupported_task(problem)) return why;
    const Size size = size_of(problem);
    Actions actions;
    if (auto why = unsupported_counts(problem, size, actions)) return why;
    if (auto why = unsupported_ranks(problem, size)) return why;
    if (auto why = unsupported_edges(problem, size, actions)) return why;
    for (const Pair& pair : problem.pairs)
        if (pair.modes.size() > 1)
            return fmt::format("{}: has {} memory modes; PyTorch cannot choose one for each microbatch",
                               named(problem, index(pair.forward)), pair.modes.size());
    return std::nullopt;
}

search::Rules rules_of_torch_csv(const Problem& problem) {
    const Size size = size_of(problem);
    std::vector<std::pair<std::int64_t, TaskId>> last;
    RankId rank{};
    for (std::size_t i = 0; i < problem.tasks.size(); ++i) {
        const Task& task = problem.tasks[i];
        if (task.stage != size.stages - 1 || task.kind != TaskKind::forward) continue;
        last.emplace_back(*task.microbatch, TaskId{static_cast<std::uint32_t>(i)});
        rank = task.rank;
    }
    std::sort(last.begin(), last.end());
    search::Rules rules;
    rules.fixed_order.resize(problem.ranks.size());
    for (const auto& [microbatch, task] : last) rules.fixed_order[index(rank)].push_back(task);
    return rules;
}

std::optional<std::string> breaks_torch_csv(const Problem& problem, const Schedule& schedule) {
    const std::int64_t last = size_of(problem).stages - 1;
    for (const auto& order : schedule.order) {
        std::int64_t next = 0;
        for (const TaskId id : order) {
            const Task& task = problem.tasks[index(id)];
            if (task.stage != last || task.kind != TaskKind::forward) continue;
            if (*task.microbatch != next++)
                return fmt::format("{}: the last stage's forwards must run in the order of the microbatches",
                                   named(problem, index(id)));
        }
    }
    return std::nullopt;
}

}  // namespace pipeweaver::planner
