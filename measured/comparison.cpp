#include "pipeweaver/measured/comparison.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/measured/drift.hpp"
#include "pipeweaver/schedule/fixed_order.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace pipeweaver::measured {

using namespace schedule;

namespace {

using Group = std::pair<std::string, char>;

std::vector<Group> groups_of(const Problem& problem) {
    std::vector<Group> groups;
    groups.reserve(problem.tasks.size());
    for (const Task& task : problem.tasks) groups.emplace_back(group_of(problem, task), letter(task.kind));
    return groups;
}

// A pass takes a nanosecond at least.
std::int64_t length_ns(const Span& span) { return std::max<std::int64_t>(1, span.length().count()); }

std::vector<std::int64_t> measured_durations(const Step& step) {
    std::vector<std::int64_t> durations;
    durations.reserve(step.task.size());
    for (const Span& span : step.task) durations.push_back(length_ns(span));
    return durations;
}

Duration length_of(const Problem& problem, const Step& step, const Clocks& clocks) {
    Duration first = Duration::max(), last = Duration::min();
    for (std::size_t t = 0; t < step.task.size(); ++t) {
        const Duration offset = clocks.offset[index(problem.tasks[t].rank)];
        first = std::min(first, step.task[t].start + offset);
        last = std::max(last, step.task[t].end + offset);
    }
    return last - first;
}

void require_agreement(const Planned& planned, std::size_t step, const Clocks& clocks, Duration length) {
    constexpr std::int64_t hundredth = 100;
    if (clocks.loosened.count() > length.count() / hundredth)
        fail(ErrorKind::input,
             "{}: step {}: whatever the clocks of the ranks, some message arrived {} before it was sent: the files are "
             "not of one run, or times on a GPU were taken by the host",
             planned.name, step, human(clocks.loosened));
}

// The step of the middle length.
void choose_step(const Planned& planned, const Run& run, Comparison& answer) {
    std::vector<std::pair<Duration, std::size_t>> lengths;
    std::vector<Clocks> clocks;
    lengths.reserve(run.steps.size());
    clocks.reserve(run.steps.size());
    for (std::size_t s = 0; s < run.steps.size(); ++s) {
        clocks.push_back(align(planned.problem.ranks.size(), run.steps[s].messages));
        lengths.emplace_back(length_of(planned.problem, run.steps[s], clocks.back()), s);
        require_agreement(planned, s, clocks.back(), lengths.back().first);
    }
    std::sort(lengths.begin(), lengths.end());
    const auto [length, step] = lengths[(lengths.size() - 1) / 2];
    answer.steps = run.steps.size();
    answer.step = step;
    answer.measured = length;
    answer.clocks = std::move(clocks[step]);
}

std::vector<GroupError> sums_of(const Planned& planned, const std::vector<Group>& groups,
                                const std::vector<std::int64_t>& measured) {
    std::map<Group, GroupError> sums;
    for (std::size_t t = 0; t < groups.size(); ++t) {
        GroupError& sum = sums.try_emplace(groups[t], GroupError{groups[t].first, groups[t].second}).first->second;
        ++sum.passes;
        sum.planned += planned.duration[t];
        sum.measured += Duration{measured[t]};
    }
    std::vector<GroupError> all;
    all.reserve(sums.size());
    for (auto& [group, sum] : sums) all.push_back(std::move(sum));
    const auto change = [](const GroupError& one) { return std::abs((one.measured - one.planned).count()); };
    std::stable_sort(all.begin(), all.end(),
                     [&](const GroupError& a, const GroupError& b) { return change(a) > change(b); });
    return all;
}

// One group after the other gets its measured durations.
void attribute(const Planned& planned, const std::vector<Group>& groups, const std::vector<std::int64_t>& measured,
               Comparison& answer) {
    const Replayer replayer(planned.problem);
    const FixedOrder order(replayer, planned.schedule);
    std::vector<std::int64_t> durations(order.durations().begin(), order.durations().end()), ends;
    Duration before = order.makespan(durations, ends);
    answer.planned = before;
    answer.groups = sums_of(planned, groups, measured);
    for (GroupError& group : answer.groups) {
        for (std::size_t t = 0; t < groups.size(); ++t)
            if (groups[t] == Group{group.modules, group.kind}) durations[t] = measured[t];
        const Duration after = order.makespan(durations, ends);
        group.on_step = after - before;
        before = after;
    }
    answer.run = before - answer.planned;
    answer.wait = answer.measured - before;
}

void add_ranks(const Planned& planned, const Run& run, const std::vector<std::int64_t>& measured, Comparison& answer) {
    answer.ranks.resize(planned.problem.ranks.size());
    for (std::size_t t = 0; t < measured.size(); ++t) {
        RankTimes& rank = answer.ranks[index(planned.problem.tasks[t].rank)];
        rank.planned_busy += planned.duration[t];
        rank.measured_busy += Duration{measured[t]};
    }
    const auto factors = rank_factors(planned, run);
    for (std::size_t r = 0; r < answer.ranks.size(); ++r) {
        RankTimes& rank = answer.ranks[r];
        rank.planned_wait = answer.planned - rank.planned_busy;
        rank.measured_wait = answer.measured - rank.measured_busy;
        rank.factor = factors[r];
        rank.slow = factors[r] && *factors[r] >= slow_factor;
    }
}

}  // namespace

std::vector<std::optional<double>> rank_factors(const Planned& planned, const Run& run) {
    const auto groups = groups_of(planned.problem);
    RankGroups ran;
    for (const Step& step : run.steps)
        for (std::size_t t = 0; t < groups.size(); ++t) {
            const auto& [modules, kind] = groups[t];
            const auto rank = static_cast<std::int64_t>(index(planned.problem.tasks[t].rank));
            GroupTimes& sum = ran[rank][{modules, std::string(1, kind)}];
            sum.planned += static_cast<double>(planned.duration[t].count());
            sum.measured += static_cast<double>(length_ns(step.task[t]));
        }
    std::vector<std::optional<double>> factors(planned.problem.ranks.size());
    for (const auto& [rank, factor] : beside_peers(ran)) factors[static_cast<std::size_t>(rank)] = factor;
    return factors;
}

Comparison compare(const Planned& planned, const Run& run) {
    Comparison answer;
    choose_step(planned, run, answer);
    const auto measured = measured_durations(run.steps[answer.step]);
    attribute(planned, groups_of(planned.problem), measured, answer);
    add_ranks(planned, run, measured, answer);
    answer.tasks.resize(measured.size());
    for (std::size_t t = 0; t < measured.size(); ++t) answer.tasks[t] = {t, planned.duration[t], Duration{measured[t]}};
    std::stable_sort(answer.tasks.begin(), answer.tasks.end(), [](const TaskError& a, const TaskError& b) {
        return std::abs((a.measured - a.planned).count()) > std::abs((b.measured - b.planned).count());
    });
    return answer;
}

}  // namespace pipeweaver::measured
