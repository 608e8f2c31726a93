#include "pipeweaver/emulator/emulation.hpp"

#include "emulator/emulate/critical_path.hpp"
#include "emulator/emulate/gradient_buckets.hpp"
#include "emulator/emulate/step_times.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::emulator {

using namespace schedule;

Duration RankTime::busy() const {
    return std::accumulate(exposed.begin(), exposed.end(), compute) + gradients + optimizer;
}

Duration RankTime::total() const { return busy() + bubble; }

namespace {

// When each rank is through, and when its gradients are.
std::vector<RankEnd> ends_of(const ScheduledStep& step, const StepTimes& times) {
    std::vector<RankEnd> ends;
    for (std::size_t r = 0; r < step.schedule().order.size(); ++r) {
        const auto& order = step.schedule().order[r];
        RankEnd end;
        if (!order.empty()) {
            end.tasks = times.end[index(order.back())];
            end.gradients = end_of_gradients(step, times, RankId{static_cast<std::uint32_t>(r)}, end.tasks);
        }
        ends.push_back(end);
    }
    return ends;
}

class Report {
public:
    Report(const ScheduledStep& step, const StepTimes& times) : step_(step), times_(times) {}

    ReplicaEmulation run(bool with_path) {
        const std::size_t ranks = step_.step().problem.ranks.size();
        ends_ = ends_of(step_, times_);
        std::int64_t makespan = 0;
        for (const RankEnd& end : ends_) makespan = std::max(makespan, end.gradients);
        const Duration optimizer = step_.step().optimizer;
        out_.makespan = Duration{makespan};
        out_.step = out_.makespan + optimizer;
        for (std::size_t r = 0; r < ranks; ++r) {
            out_.time.push_back(time_of_rank(r, optimizer));
            out_.memory.push_back(memory_of_rank(r));
        }
        if (with_path) out_.critical = critical_path(step_, times_, ends_, optimizer);
        out_.kernels = static_cast<std::uint64_t>(times_.kernels);
        return std::move(out_);
    }

private:
    RankTime time_of_rank(std::size_t r, Duration optimizer) const {
        RankTime time;
        for (const TaskId id : step_.schedule().order[r]) {
            const std::size_t task = index(id);
            time.compute += Duration{times_.end[task] - times_.start[task]};
            for (std::size_t s = 0; s < streams; ++s) {
                time.exposed[s] += times_.exposed[task][s];
                time.compute -= times_.exposed[task][s];
            }
        }
        time.gradients = Duration{ends_[r].gradients - ends_[r].tasks};
        time.optimizer = optimizer;
        time.bubble = out_.step - time.busy();
        return time;
    }

    RankMemory memory_of_rank(std::size_t r) const {
        RankMemory memory;
        memory.fixed = step_.step().memory[r];
        memory.peak = times_.peak[r];
        const Bytes base = step_.step().problem.ranks[r].base;
        memory.timeline.push_back({Duration{0}, base});
        Bytes before = base;
        std::int64_t in_flight = 0;
        bool found = false, freed = false, refilled = false;
        for (const TaskId id : step_.schedule().order[r]) {
            const std::size_t task = index(id);
            const Bytes during = before + step_.costs()[task].acquire, after = times_.holding[task];
            if (during > before) memory.timeline.push_back({Duration{times_.start[task]}, during});
            if (after != during) memory.timeline.push_back({Duration{times_.end[task]}, after});
            if (after > before) {
                ++in_flight;
                refilled = refilled || freed;
            }
            if (!found && during == memory.peak) {
                found = true;
                memory.in_flight = in_flight;
                memory.activations = std::max(before, after) - base;
                memory.transient = during - std::max(before, after);
            }
            if (after < before) {
                --in_flight;
                freed = true;
            }
            before = after;
        }
        if (!refilled) memory.in_flight = 1;
        if (const Bytes more = memory.fixed.at_update - memory.peak; more > Bytes{}) {
            memory.transient += more;
            memory.peak += more;
        }
        return memory;
    }

    const ScheduledStep& step_;
    const StepTimes& times_;
    std::vector<RankEnd> ends_;
    ReplicaEmulation out_;
};

}  // namespace

ReplicaEmulation emulate(const StepInput& input, const StepProblem& step, const Schedule& schedule,
                         const EmulationOptions& options) {
    const ScheduledStep scheduled(input, step, schedule);
    const StepTimes times = options.reuse ? times_by_passes(scheduled) : times_by_kernels(scheduled);
    return Report(scheduled, times).run(options.critical_path);
}

void set_tails(const StepInput& input, StepProblem& step, const Schedule& schedule) {
    if (input.setup->recipe.bucket == Bytes{}) return;
    const ScheduledStep scheduled(input, step, schedule);
    const auto ends = ends_of(scheduled, times_by_passes(scheduled));
    const Replay replay = scheduled.replayer().replay(schedule);
    for (std::size_t r = 0; r < ends.size(); ++r) {
        if (schedule.order[r].empty()) continue;
        const std::size_t last = index(schedule.order[r].back());
        const Duration end = replay.start[last] + scheduled.costs()[last].duration;
        step.problem.ranks[r].tail = Duration{ends[r].gradients} - end;
    }
}

}  // namespace pipeweaver::emulator
