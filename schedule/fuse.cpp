#include "pipeweaver/schedule/fuse.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace pipeweaver::schedule {

namespace {

std::optional<Bytes> smaller(std::optional<Bytes> a, std::optional<Bytes> b) {
    if (!a || !b) return a ? a : b;
    return std::min(*a, *b);
}

// Adds pipelines to what the first one is.
class Fusing {
public:
    explicit Fusing(const Pipeline& first) {
        all_.problem.ranks.resize(first.problem.ranks.size());
        all_.in_turn.order.resize(first.problem.ranks.size());
    }

    // Rank r of the pipeline lies on the rank `begin` + r, or so many from the end of its ranks.
    void add(const Pipeline& pipeline, std::size_t begin, bool backwards) {
        const std::size_t ranks = pipeline.problem.ranks.size();
        begin_ = backwards ? begin + ranks - 1 : begin;
        backwards_ = backwards;
        add_ranks(pipeline);
        const std::int64_t stages = stages_;
        for (Stage stage : pipeline.problem.stages) {
            stage.rank = place(stage.rank);
            stage.stage += stages;
            stages_ = std::max(stages_, stage.stage + 1);
            all_.problem.stages.push_back(std::move(stage));
        }
        add_tasks(pipeline, stages);
        tasks_ = all_.problem.tasks.size();
    }

    Fused take() { return std::move(all_); }

private:
    RankId place(RankId rank) const {
        const std::size_t at = backwards_ ? begin_ - index(rank) : begin_ + index(rank);
        return RankId{static_cast<std::uint32_t>(at)};
    }
    TaskId place(TaskId task) const { return TaskId{static_cast<std::uint32_t>(tasks_ + index(task))}; }

    void add_ranks(const Pipeline& pipeline) {
        for (std::size_t r = 0; r < pipeline.problem.ranks.size(); ++r) {
            const Rank& own = pipeline.problem.ranks[r];
            const std::size_t at = index(place(RankId{static_cast<std::uint32_t>(r)}));
            Rank& rank = all_.problem.ranks[at];
            rank.capacity = smaller(rank.capacity, own.capacity);
            rank.base = rank.base + own.base;
            rank.tail += own.tail;
            for (const TaskId task : pipeline.schedule.order[r]) all_.in_turn.order[at].push_back(place(task));
        }
    }

    void add_tasks(const Pipeline& pipeline, std::int64_t stages) {
        for (Task task : pipeline.problem.tasks) {
            task.rank = place(task.rank);
            if (task.stage) *task.stage += stages;
            task.label = pipeline.name + " " + task.label;
            task.module = task.module.empty() ? pipeline.name : pipeline.name + " " + task.module;
            all_.problem.tasks.push_back(std::move(task));
        }
        for (const Edge& edge : pipeline.problem.edges)
            all_.problem.edges.push_back({place(edge.from), place(edge.to), edge.lag});
        for (Pair pair : pipeline.problem.pairs) {
            pair.forward = place(pair.forward);
            pair.backward = place(pair.backward);
            if (pair.weight) pair.weight = place(*pair.weight);
            all_.problem.pairs.push_back(std::move(pair));
        }
        const auto& mode = pipeline.schedule.mode;
        all_.in_turn.mode.insert(all_.in_turn.mode.end(), mode.begin(), mode.end());
    }

    Fused all_;
    std::size_t begin_ = 0, tasks_ = 0;
    std::int64_t stages_ = 0;
    bool backwards_ = false;
};

}  // namespace

Fused fuse(std::span<const Pipeline> pipelines) {
    std::size_t beside = 0;
    for (std::size_t i = 1; i < pipelines.size(); ++i) beside += pipelines[i].problem.ranks.size();
    if (pipelines.size() < 2 || beside != pipelines.front().problem.ranks.size())
        fail(ErrorKind::input, "pipelines beside '{}' have {} ranks together: allowed are its own {}",
             pipelines.empty() ? "" : pipelines.front().name, beside,
             pipelines.empty() ? 0 : pipelines.front().problem.ranks.size());
    Fusing all(pipelines.front());
    all.add(pipelines.front(), 0, false);
    for (std::size_t i = 1, begin = 0; i < pipelines.size(); ++i) {
        all.add(pipelines[i], begin, true);
        begin += pipelines[i].problem.ranks.size();
    }
    Fused fused = all.take();
    fused.problem.name = pipelines[0].problem.name + " beside " + pipelines[1].problem.name;
    fused.problem.source = "pipeweaver fuse";
    return fused;
}

}  // namespace pipeweaver::schedule
