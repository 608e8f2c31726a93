#include "pipeweaver/groups/step_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace pipeweaver::groups {

namespace {

// Passes of a stage, round by round.
struct StageTasks {
    std::vector<TaskId> forward;
    std::vector<std::optional<TaskId>> backward;  // none: no gradient comes
};

class ProblemOfGroups {
public:
    ProblemOfGroups(const Placing& placing, Bytes capacity) : placing_(placing) {
        problem_.name = "groups";
        problem_.source = "pipeweaver groups";
        for (std::size_t g = 0; g < placing.groups.size(); ++g) add_group(g, capacity);
        for (const Bridge& bridge : placing.split.bridges) {
            const Duration lag = std::max(choice(bridge.from).bridge, choice(bridge.to).bridge);
            link(last_[bridge.from], first_[bridge.to], lag);
        }
    }

    schedule::Problem take() { return std::move(problem_); }

private:
    const Choice& choice(std::size_t group) const { return placing_.split.groups[group].choices.front(); }

    void add_group(std::size_t group, Bytes capacity) {
        const Placed& placed = placing_.groups[group];
        first_.push_back(stages_.size());
        for (std::size_t s = 0; s < choice(group).stages.size(); ++s) {
            problem_.ranks.push_back({capacity, placed.base[s], choice(group).tail});
            add_stage(placed, choice(group).stages[s], placed.held[s]);
        }
        last_.push_back(stages_.size() - 1);
        for (std::size_t s = first_.back(); s < last_.back(); ++s) link(s, s + 1, choice(group).hop);
    }

    void add_stage(const Placed& placed, const Stage& stage, Bytes held) {
        const auto number = static_cast<std::int64_t>(stages_.size());
        const RankId rank{static_cast<std::uint32_t>(number)};
        problem_.stages.push_back({number, rank, {}});
        StageTasks& tasks = stages_.emplace_back();
        for (std::size_t r = 0; r < stage.forward.size(); ++r) {
            const bool returns = stage.backward[r] > Duration{};
            schedule::Mode mode;
            mode.forward = std::max(stage.forward[r], Duration{1});
            mode.backward = std::max(stage.backward[r], Duration{1});
            mode.held = returns ? held : Bytes{};
            const TaskId forward = add_task(placed, rank, schedule::TaskKind::forward, r);
            problem_.tasks.back().duration = mode.forward;
            tasks.forward.push_back(forward);
            tasks.backward.emplace_back();
            if (!returns) continue;
            const TaskId backward = add_task(placed, rank, schedule::TaskKind::backward, r);
            tasks.backward.back() = backward;
            problem_.edges.push_back({forward, backward, {}});
            problem_.pairs.push_back({forward, backward, {}, {mode}});
            const auto costs = schedule::costs_in(problem_.pairs.back(), mode);
            schedule::apply(problem_.tasks[index(forward)], costs[0]);
            schedule::apply(problem_.tasks[index(backward)], costs[1]);
        }
    }

    TaskId add_task(const Placed& placed, RankId rank, schedule::TaskKind kind, std::size_t round) {
        schedule::Task task;
        task.rank = rank;
        task.kind = kind;
        task.label = fmt::format("{} {}{}.{}", placed.name, schedule::letter(kind), index(rank), round);
        task.stage = static_cast<std::int64_t>(index(rank));
        task.microbatch = static_cast<std::int64_t>(round);
        task.module = placed.name;
        problem_.tasks.push_back(std::move(task));
        return TaskId{static_cast<std::uint32_t>(problem_.tasks.size() - 1)};
    }

    void link(std::size_t from, std::size_t to, Duration lag) {
        for (std::size_t r = 0; r < stages_[from].forward.size(); ++r) {
            problem_.edges.push_back({stages_[from].forward[r], stages_[to].forward[r], lag});
            if (stages_[from].backward[r] && stages_[to].backward[r])
                problem_.edges.push_back({*stages_[to].backward[r], *stages_[from].backward[r], lag});
        }
    }

    const Placing& placing_;
    schedule::Problem problem_;
    std::vector<StageTasks> stages_;
    std::vector<std::size_t> first_, last_;  // per group
};

}  // namespace

schedule::Problem problem_of(const Placing& placing, Bytes capacity) {
    return ProblemOfGroups(placing, capacity).take();
}

}  // namespace pipeweaver::groups
