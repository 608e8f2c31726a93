#include "emit/targets/torch_buffers.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace pipeweaver::emit {

using namespace schedule;

namespace {

using Place = std::int64_t;  // in a rank's row; -1: before its first pass

// One microbatch's passes through one stage.
struct Passes {
    std::size_t forward = 0;
    std::size_t backward = 0;  ///< B or I
    std::size_t last = 0;      ///< B or W
};
using Chain = std::map<std::int64_t, std::map<std::int64_t, Passes>>;  // by stage and microbatch

Chain chain_of(const Problem& problem) {
    Chain chain;
    for (std::size_t t = 0; t < problem.tasks.size(); ++t) {
        const Task& task = problem.tasks[t];
        Passes& passes = chain[*task.stage][*task.microbatch];
        if (task.kind == TaskKind::forward) passes.forward = t;
        if (task.kind == TaskKind::backward || task.kind == TaskKind::input_gradient) passes.backward = t;
        if (task.kind == TaskKind::backward || task.kind == TaskKind::weight_gradient) passes.last = t;
    }
    return chain;
}

class Counting {
public:
    Counting(const Problem& problem, const Schedule& schedule, const Replay& replay)
        : problem_(problem),
          chain_(chain_of(problem)),
          place_(problem.tasks.size()),
          before_(problem.tasks.size()),
          by_start_(problem.tasks.size()) {
        for (const auto& row : schedule.order)
            for (std::size_t i = 0; i < row.size(); ++i) {
                place_[index(row[i])] = static_cast<Place>(i);
                if (i > 0) before_[index(row[i])].push_back(index(row[i - 1]));
            }
        for (const Edge& edge : problem.edges) before_[index(edge.to)].push_back(index(edge.from));
        std::iota(by_start_.begin(), by_start_.end(), std::size_t{0});
        std::sort(by_start_.begin(), by_start_.end(), [&](std::size_t a, std::size_t b) {
            return std::tuple(replay.start[a], a) < std::tuple(replay.start[b], b);
        });
    }

    std::vector<BuffersInUse> run() const {
        std::vector<BuffersInUse> all(chain_.size());
        for (std::size_t r = 0; r < problem_.ranks.size(); ++r) {
            const std::vector<Place> needs = needs_of(r);
            for (std::size_t s = 0; s < all.size(); ++s)
                if (rank_of(s) == r) all[s] = {most(s, s - 1, needs, true), most(s, s + 1, needs, false)};
        }
        return all;
    }

private:
    std::size_t rank_of(std::size_t stage) const {
        return index(problem_.tasks[chain_.at(static_cast<std::int64_t>(stage)).begin()->second.forward].rank);
    }

    // Per task: the last pass of the rank that must have ended before it, or is it.
    std::vector<Place> needs_of(std::size_t rank) const {
        std::vector<Place> needs(problem_.tasks.size(), -1);
        for (const std::size_t task : by_start_) {
            for (const std::size_t one : before_[task]) needs[task] = std::max(needs[task], needs[one]);
            if (index(problem_.tasks[task].rank) == rank) needs[task] = place_[task];
        }
        return needs;
    }

    // Of the stage's microbatches that come from its neighbour, forward or backward.
    std::int64_t most(std::size_t stage, std::size_t neighbour, const std::vector<Place>& needs, bool forward) const {
        if (neighbour >= chain_.size() || rank_of(neighbour) == rank_of(stage)) return 0;
        std::vector<std::pair<Place, std::int64_t>> events;  // uses end at a place before others begin there
        for (const auto& [microbatch, passes] : chain_.at(static_cast<std::int64_t>(stage))) {
            const Passes& sender = chain_.at(static_cast<std::int64_t>(neighbour)).at(microbatch);
            events.emplace_back(needs[forward ? sender.forward : sender.backward] + 1, 1);
            events.emplace_back(place_[passes.last] + 1, -1);
        }
        std::sort(events.begin(), events.end());
        std::int64_t used = 0, peak = 0;
        for (const auto& [place, change] : events) peak = std::max(peak, used += change);
        return peak;
    }

    const Problem& problem_;
    Chain chain_;
    std::vector<Place> place_;
    std::vector<std::vector<std::size_t>> before_;
    std::vector<std::size_t> by_start_;
};

}  // namespace

std::vector<BuffersInUse> buffers_in_use(const Problem& problem, const Schedule& schedule, const Replay& replay) {
    return Counting(problem, schedule, replay).run();
}

}  // namespace pipeweaver::emit
