// Recordings joined to the tasks of a plan.
#include "pipeweaver/measured/run.hpp"

#include "pipeweaver/base/error.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace pipeweaver::measured {

using namespace schedule;

Planned planned_of(const Solved& solved, const std::string& name, std::int64_t replica) {
    Planned planned{name, replica, solved.file.problem, solved.schedule, {}, {}};
    for (Rank& rank : planned.problem.ranks) rank.tail = Duration{0};
    const Replayer replayer(planned.problem);
    const auto replay = replayer.replay(planned.schedule);
    if (replay.outcome != Outcome::completed)
        fail(ErrorKind::limit, "{}: {}", name, why_it_fails(planned.problem, replay));
    planned.makespan = replay.makespan;
    const auto costs = replayer.costs(planned.schedule.mode);
    planned.duration.reserve(costs.size());
    for (const TaskCost& cost : costs) planned.duration.push_back(cost.duration);
    return planned;
}

std::string group_of(const Problem& problem, const Task& task) {
    for (const Stage& stage : problem.stages) {
        if (!task.stage || stage.stage != *task.stage || stage.parts.empty()) continue;
        std::vector<std::string> names;
        for (const StagePart& part : stage.parts)
            if (std::find(names.begin(), names.end(), part.module) == names.end()) names.push_back(part.module);
        return fmt::format("{}", fmt::join(names, "+"));
    }
    return task.module.empty() ? "stages" : task.module;
}

namespace {

using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, char>;  // stage, microbatch, item, kind

std::string text_of(const RecordedPass& pass) {
    const std::string item = pass.item == 0 ? "" : fmt::format(", item {}", pass.item);
    return fmt::format("{} of stage {}, microbatch {}{}", pass.kind, pass.stage, pass.microbatch, item);
}

// "0", "0-5": how many there are from 0 on.
std::string range_of(std::size_t count) { return count < 2 ? "0" : fmt::format("0-{}", count - 1); }

class Joiner {
public:
    explicit Joiner(const Planned& planned) : planned_(planned) {
        const Problem& problem = planned.problem;
        for (std::size_t t = 0; t < problem.tasks.size(); ++t) {
            const Task& task = problem.tasks[t];
            if (!task.stage || !task.microbatch || task.kind == TaskKind::other)
                fail(ErrorKind::input,
                     "{}: tasks[{}]: says no stage, microbatch or kind of pass: nothing can be joined", planned.name,
                     t);
            tasks_[{*task.stage, *task.microbatch, task.item.value_or(0), letter(task.kind)}] = t;
            rank_of_stage_[*task.stage] = index(task.rank);
            microbatches_.insert(*task.microbatch);
        }
    }

    Run joined(const std::vector<Recording>& recordings) {
        if (recordings.empty()) fail(ErrorKind::input, "{}: nothing recorded is given", planned_.name);
        std::vector<const Recording*> of_rank(planned_.problem.ranks.size());
        for (const Recording& one : recordings) {
            check_plan(one);
            ranks_.push_back(rank_of(one));
            const Recording*& known = of_rank[ranks_.back()];
            if (known != nullptr)
                fail(ErrorKind::input, "{}: is of rank {}, as {} is", one.name, ranks_.back(), known->name);
            known = &one;
        }
        require_all(of_rank);
        Run run;
        run.steps.reserve(recordings.front().steps.size());
        for (std::size_t s = 0; s < recordings.front().steps.size(); ++s) run.steps.push_back(step(recordings, s));
        return run;
    }

private:
    void check_plan(const Recording& one) const {
        if (one.problem && *one.problem != planned_.problem.name)
            fail(ErrorKind::input, "{}: problem: is a run of '{}', the plan is '{}'", one.name, *one.problem,
                 planned_.problem.name);
        if (one.replica && *one.replica != planned_.replica)
            fail(ErrorKind::input, "{}: replica: is {}, recordings of replica {} are compared", one.name, *one.replica,
                 planned_.replica);
        if (one.ranks && static_cast<std::size_t>(*one.ranks) != planned_.problem.ranks.size())
            fail(ErrorKind::input, "{}: ranks: is {}, the plan has {}", one.name, *one.ranks,
                 planned_.problem.ranks.size());
        if (one.steps.empty()) fail(ErrorKind::input, "{}: steps: holds none", one.name);
        check_microbatches(one);
        for (const RecordedStep& step : one.steps)
            for (const RecordedPass& pass : step.passes)
                if (!rank_of_stage_.contains(pass.stage))
                    fail(ErrorKind::input, "{}: ran stage {}, the plan has stages {}", one.name, pass.stage,
                         range_of(rank_of_stage_.size()));
    }

    void check_microbatches(const Recording& one) const {
        std::set<std::int64_t> ran;
        for (const RecordedPass& pass : one.steps.front().passes) ran.insert(pass.microbatch);
        if (ran.size() > microbatches_.size() || (!ran.empty() && !microbatches_.contains(*ran.rbegin())))
            fail(ErrorKind::input, "{}: ran microbatch {}, the plan has microbatches {}: it is another run's", one.name,
                 *ran.rbegin(), range_of(microbatches_.size()));
    }

    // What it says, or, of a trace that does not or counts all processes, where its stages lie.
    std::size_t rank_of(const Recording& one) const {
        std::set<std::size_t> ranks;
        for (const RecordedPass& pass : one.steps.front().passes) ranks.insert(rank_of_stage_.at(pass.stage));
        if (ranks.empty()) fail(ErrorKind::input, "{}: step 0 has no pass", one.name);
        if (ranks.size() > 1)
            fail(ErrorKind::input, "{}: ran stages that the plan has on ranks {}: a file is of one rank", one.name,
                 fmt::join(ranks, ", "));
        if (one.problem && one.rank && static_cast<std::size_t>(*one.rank) != *ranks.begin())
            fail(ErrorKind::input, "{}: is of rank {} and ran stages that the plan has on rank {}", one.name, *one.rank,
                 *ranks.begin());
        return *ranks.begin();
    }

    void require_all(const std::vector<const Recording*>& of_rank) const {
        const Recording* first = nullptr;
        for (std::size_t r = 0; r < of_rank.size(); ++r) {
            if (planned_.schedule.order[r].empty()) continue;
            if (of_rank[r] == nullptr)
                fail(ErrorKind::input, "{}: nothing recorded is of rank {}; the plan has ranks {}", planned_.name, r,
                     range_of(of_rank.size()));
            if (first == nullptr) first = of_rank[r];
            if (of_rank[r]->steps.size() != first->steps.size())
                fail(ErrorKind::input, "{}: holds {} steps, {} holds {}", of_rank[r]->name, of_rank[r]->steps.size(),
                     first->name, first->steps.size());
        }
    }

    Step step(const std::vector<Recording>& recordings, std::size_t number) {
        Step step{std::vector<Span>(planned_.problem.tasks.size()), {}};
        std::vector<char> found(planned_.problem.tasks.size());
        for (const Recording& one : recordings)
            for (const RecordedPass& pass : one.steps[number].passes) take(one, number, pass, step, found);
        require_found(recordings, number, found);
        require_order(recordings, number, step);
        add_edges(step);
        add_messages(recordings, number, step);
        return step;
    }

    void take(const Recording& one, std::size_t number, const RecordedPass& pass, Step& step,
              std::vector<char>& found) const {
        const auto set = [&](std::size_t task, const Span& time) {
            if (found[task] != 0) fail(ErrorKind::input, "{}: step {}: {} ran twice", one.name, number, text_of(pass));
            found[task] = 1;
            step.task[task] = time;
        };
        if (const auto own = task_of(pass, pass.kind)) return set(*own, pass.time);
        const auto input = task_of(pass, 'I'), weight = task_of(pass, 'W');
        if (pass.kind == 'B' && input && weight) {
            const auto all = static_cast<double>((planned_.duration[*input] + planned_.duration[*weight]).count());
            const double share = static_cast<double>(planned_.duration[*input].count()) / all;
            const Duration cut =
                pass.time.start +
                Duration{static_cast<std::int64_t>(share * static_cast<double>(pass.time.length().count()))};
            set(*input, {pass.time.start, cut});
            return set(*weight, {cut, pass.time.end});
        }
        fail(ErrorKind::input, "{}: step {}: ran {}, which the plan does not have: it is another run's", one.name,
             number, text_of(pass));
    }

    std::optional<std::size_t> task_of(const RecordedPass& pass, char kind) const {
        const auto found = tasks_.find({pass.stage, pass.microbatch, pass.item, kind});
        return found == tasks_.end() ? std::nullopt : std::optional(found->second);
    }

    const Recording& of_rank(const std::vector<Recording>& recordings, RankId rank) const {
        const auto at = std::find(ranks_.begin(), ranks_.end(), index(rank)) - ranks_.begin();
        return recordings[static_cast<std::size_t>(at)];
    }

    void require_found(const std::vector<Recording>& recordings, std::size_t number,
                       const std::vector<char>& found) const {
        for (std::size_t t = 0; t < found.size(); ++t) {
            if (found[t] != 0) continue;
            const Task& task = planned_.problem.tasks[t];
            fail(ErrorKind::input, "{}: step {}: {} is missing, which the plan has",
                 of_rank(recordings, task.rank).name, number,
                 text_of({letter(task.kind), *task.stage, *task.microbatch, task.item.value_or(0), {}}));
        }
    }

    void require_order(const std::vector<Recording>& recordings, std::size_t number, const Step& step) const {
        for (const auto& order : planned_.schedule.order)
            for (std::size_t i = 1; i < order.size(); ++i) {
                const std::size_t before = index(order[i - 1]), after = index(order[i]);
                if (step.task[before].start <= step.task[after].start) continue;
                const Task& task = planned_.problem.tasks[after];
                fail(ErrorKind::input,
                     "{}: step {}: ran '{}' before '{}', the plan has them the other way round: it is the run of "
                     "another schedule",
                     of_rank(recordings, task.rank).name, number, task.label, planned_.problem.tasks[before].label);
            }
    }

    void add_edges(Step& step) const {
        for (const Edge& edge : planned_.problem.edges) {
            const std::size_t from = index(planned_.problem.tasks[index(edge.from)].rank);
            const std::size_t to = index(planned_.problem.tasks[index(edge.to)].rank);
            if (from != to)
                step.messages.push_back({from, to, step.task[index(edge.from)].end, step.task[index(edge.to)].start});
        }
    }

    // Sends and waits of one tensor, which both ends call by one number.
    void add_messages(const std::vector<Recording>& recordings, std::size_t number, Step& step) const {
        std::map<std::int64_t, std::pair<std::size_t, Duration>> sent;
        for (std::size_t i = 0; i < recordings.size(); ++i)
            for (const RecordedMessage& message : recordings[i].steps[number].messages)
                if (!message.arrived) sent[message.tensor] = {ranks_[i], message.at};
        for (std::size_t i = 0; i < recordings.size(); ++i)
            for (const RecordedMessage& message : recordings[i].steps[number].messages) {
                const auto from = sent.find(message.tensor);
                if (message.arrived && from != sent.end() && from->second.first != ranks_[i])
                    step.messages.push_back({from->second.first, ranks_[i], from->second.second, message.at});
            }
    }

    const Planned& planned_;
    std::map<Key, std::size_t> tasks_;
    std::map<std::int64_t, std::size_t> rank_of_stage_;
    std::set<std::int64_t> microbatches_;
    std::vector<std::size_t> ranks_;  // of each recording
};

}  // namespace

Run join(const Planned& planned, const std::vector<Recording>& recordings) {
    return Joiner(planned).joined(recordings);
}

}  // namespace pipeweaver::measured
