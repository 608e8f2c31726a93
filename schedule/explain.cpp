#include "pipeweaver/schedule/explain.hpp"

#include "pipeweaver/schedule/fixed_order.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace pipeweaver::schedule {

std::string_view name_of(Activity doing) {
    constexpr std::array<std::string_view, 4> names{"runs", "waits", "ends", "is done"};
    return names.at(static_cast<std::size_t>(doing));
}

namespace {

constexpr std::size_t most_tried = 64, most_shortenings = 5, most_waits = 3;

// What a change makes of the schedule's times.
struct Changes {
    std::vector<std::int64_t> duration_ns, end_ns;
};

class Explaining {
public:
    Explaining(const Replayer& replayer, const Schedule& schedule, const Query& asked)
        : replayer_(replayer),
          schedule_(schedule),
          asked_(asked),
          causes_(replayer, schedule),
          order_(replayer, schedule) {}

    Explanation run() {
        all_.times = timeline_of(replayer_, schedule_);
        all_.about = asked_.task;
        if (asked_.at) add_state(*asked_.at);
        add_chain();
        add_shortenings();
        for (std::size_t r = 0; r < schedule_.order.size(); ++r) all_.waits.push_back(waits_of(r));
        return std::move(all_);
    }

private:
    Duration start(TaskId task) const { return Duration{all_.times.start_ns[index(task)]}; }
    Duration end(TaskId task) const { return Duration{all_.times.end_ns[index(task)]}; }
    Duration tail(std::size_t rank) const { return replayer_.problem().ranks[rank].tail; }

    void add_state(const Instant& at) {
        all_.state = state_at(at);
        const auto& order = schedule_.order[index(at.rank)];
        all_.about = all_.state->task;
        if (all_.state->doing == Activity::ends) all_.about = order.back();
    }

    RankState state_at(const Instant& at) const {
        Duration before{};
        for (const TaskId task : schedule_.order[index(at.rank)]) {
            if (at.time < start(task)) return {Activity::waits, before, start(task), task};
            if (at.time < end(task)) return {Activity::runs, start(task), end(task), task};
            before = end(task);
        }
        const bool has_tasks = !schedule_.order[index(at.rank)].empty();
        const Duration done = before + (has_tasks ? tail(index(at.rank)) : Duration{});
        if (at.time < done) return {Activity::ends, before, done, std::nullopt};
        return {Activity::is_done, done, all_.times.makespan, std::nullopt};
    }

    // The last task of the rank that ends last, tail included; the first of such ranks.
    std::optional<TaskId> last_task() {
        for (std::size_t r = 0; r < schedule_.order.size(); ++r) {
            const auto& order = schedule_.order[r];
            if (order.empty() || end(order.back()) + tail(r) != all_.times.makespan) continue;
            all_.tail = tail(r);
            return order.back();
        }
        return std::nullopt;
    }

    void add_chain() {
        std::optional<TaskId> task = all_.about ? all_.about : last_task();
        while (task) {
            const auto cause = causes_.of(*task, all_.times.times());
            all_.chain.push_back({*task, cause});
            task = cause ? std::optional(cause->task) : std::nullopt;
        }
    }

    void add_shortenings() {
        if (all_.about && !(all_.state && all_.state->doing == Activity::waits))
            all_.shortening.push_back(shorter_task(*all_.about));
        std::vector<Shortening> tasks, passes, transfers;
        for (const TaskId task : longest_tasks())
            if (task != all_.about) tasks.push_back(shorter_task(task));
        for (const TaskId task : passes_of_chain()) passes.push_back(shorter_pass(task));
        for (const ChainLink& link : longest_transfers()) transfers.push_back(without_transfer(link));
        for (auto* kind : {&passes, &tasks, &transfers}) add_best(std::move(*kind));
    }

    void add_best(std::vector<Shortening> found) {
        std::erase_if(found, [](const Shortening& one) { return one.shorter + one.earlier == Duration{}; });
        std::stable_sort(found.begin(), found.end(), [](const Shortening& a, const Shortening& b) {
            return std::tuple(a.earlier, a.shorter) > std::tuple(b.earlier, b.shorter);
        });
        if (found.size() > most_shortenings) found.resize(most_shortenings);
        all_.shortening.insert(all_.shortening.end(), found.begin(), found.end());
    }

    std::int64_t duration_ns(TaskId task) const {
        return all_.times.end_ns[index(task)] - all_.times.start_ns[index(task)];
    }

    std::vector<TaskId> longest_tasks() const {
        std::vector<TaskId> tasks;
        for (const ChainLink& link : all_.chain) tasks.push_back(link.task);
        std::stable_sort(tasks.begin(), tasks.end(),
                         [this](TaskId a, TaskId b) { return duration_ns(a) > duration_ns(b); });
        if (tasks.size() > most_tried) tasks.resize(most_tried);
        return tasks;
    }

    std::vector<ChainLink> longest_transfers() const {
        std::vector<ChainLink> links;
        for (const ChainLink& link : all_.chain)
            if (link.cause && link.cause->lag > Duration{}) links.push_back(link);
        std::stable_sort(links.begin(), links.end(),
                         [](const ChainLink& a, const ChainLink& b) { return a.cause->lag > b.cause->lag; });
        if (links.size() > most_tried) links.resize(most_tried);
        return links;
    }

    // One task of each module's pass that the chain has.
    std::vector<TaskId> passes_of_chain() const {
        std::set<std::pair<std::string_view, TaskKind>> seen;
        std::vector<TaskId> firsts;
        for (const ChainLink& link : all_.chain) {
            const Task& task = replayer_.problem().tasks[index(link.task)];
            if (seen.emplace(task.module, task.kind).second) firsts.push_back(link.task);
        }
        if (firsts.size() > most_tried) firsts.resize(most_tried);
        return firsts;
    }

    static void shorten(std::int64_t& ns) { ns -= ns / shortened_by; }

    Shortening shorter_task(TaskId task) {
        changes_.duration_ns.assign(order_.durations().begin(), order_.durations().end());
        shorten(changes_.duration_ns[index(task)]);
        return replayed(Changed::task, task);
    }

    Shortening shorter_pass(TaskId of) {
        changes_.duration_ns.assign(order_.durations().begin(), order_.durations().end());
        const auto& tasks = replayer_.problem().tasks;
        for (std::size_t i = 0; i < tasks.size(); ++i)
            if (tasks[i].module == tasks[index(of)].module && tasks[i].kind == tasks[index(of)].kind)
                shorten(changes_.duration_ns[i]);
        return replayed(Changed::pass, of);
    }

    Shortening replayed(Changed changed, TaskId task) {
        const Duration makespan = order_.makespan(changes_.duration_ns, changes_.end_ns);
        Shortening one{changed, task, std::nullopt, makespan, all_.times.makespan - makespan, {}};
        if (all_.about)
            one.earlier = start(*all_.about) -
                          Duration{changes_.end_ns[index(*all_.about)] - changes_.duration_ns[index(*all_.about)]};
        return one;
    }

    Shortening without_transfer(const ChainLink& link) const {
        const Problem& problem = replayer_.problem();
        std::vector<Duration> lags;
        for (const Edge& edge : problem.edges) {
            const bool is_it = edge.from == link.cause->task && edge.to == link.task;
            lags.push_back(is_it ? Duration{} : edge.lag);
        }
        const Replay replay = Replayer(problem, lags).replay(schedule_);
        Shortening one{
            Changed::transfer, link.task, link.cause->task, replay.makespan, all_.times.makespan - replay.makespan, {}};
        if (all_.about) one.earlier = start(*all_.about) - replay.start[index(*all_.about)];
        return one;
    }

    RankWaits waits_of(std::size_t rank) const {
        RankWaits waits;
        Duration before{};
        for (const TaskId task : schedule_.order[rank]) {
            // Whatever begins later than the task before it ended needs what ended just then.
            if (const auto cause = causes_.of(task, all_.times.times()); start(task) > before && cause)
                waits.longest.push_back({before, start(task), task, *cause});
            waits.total += start(task) - before;
            before = end(task);
        }
        waits.done = all_.times.makespan - before - (schedule_.order[rank].empty() ? Duration{} : tail(rank));
        std::stable_sort(waits.longest.begin(), waits.longest.end(),
                         [](const RankWait& a, const RankWait& b) { return a.to - a.from > b.to - b.from; });
        if (waits.longest.size() > most_waits) waits.longest.resize(most_waits);
        return waits;
    }

    const Replayer& replayer_;
    const Schedule& schedule_;
    const Query& asked_;
    Causes causes_;
    FixedOrder order_;
    Changes changes_;
    Explanation all_;
};

}  // namespace

Explanation explain(const Replayer& replayer, const Schedule& schedule, const Query& asked) {
    return Explaining(replayer, schedule, asked).run();
}

}  // namespace pipeweaver::schedule
