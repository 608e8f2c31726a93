#include "pipeweaver/search/carry_over.hpp"

#include "pipeweaver/base/assert.hpp"
#include "search/construct/dispatch.hpp"
#include "search/instance/modes.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace pipeweaver::search {

namespace {

using schedule::Problem;
using schedule::Task;

// What a task is, but for microbatch and item.
using Role = std::tuple<RankId, std::optional<std::int64_t>, schedule::TaskKind, std::string_view>;
// Per role: places (microbatch, item) with the previous task there.
using Likes = std::map<Role, std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t>>;

Role role_of(const Task& task) { return {task.rank, task.stage, task.kind, task.module}; }

// Microbatch numbers in use, by number or by work, the heaviest first.
std::vector<std::int64_t> microbatches_of(const Problem& problem, bool by_work) {
    std::map<std::int64_t, std::int64_t> work;
    for (const Task& task : problem.tasks) work[task.microbatch.value_or(0)] += task.duration.count();
    std::vector<std::int64_t> all;
    all.reserve(work.size());
    for (const auto& [number, ns] : work) all.push_back(number);
    if (by_work)
        std::stable_sort(all.begin(), all.end(), [&](std::int64_t a, std::int64_t b) { return work[a] > work[b]; });
    return all;
}

// Places of microbatches in that list.
std::map<std::int64_t, std::int64_t> places_of(const Problem& problem, bool by_work) {
    std::map<std::int64_t, std::int64_t> place;
    for (const std::int64_t number : microbatches_of(problem, by_work)) {
        const auto next = static_cast<std::int64_t>(place.size());
        place.emplace(number, next);
    }
    return place;
}

constexpr std::uint32_t no_like = UINT32_MAX;

// Per task of `next` the previous task like it, or no_like.
std::vector<std::uint32_t> match(const Problem& previous, const Problem& next, bool by_work) {
    const auto place_before = places_of(previous, by_work), place_now = places_of(next, by_work);
    Likes likes;
    for (std::uint32_t i = 0; i < previous.tasks.size(); ++i) {
        const Task& task = previous.tasks[i];
        likes[role_of(task)].emplace(std::pair(place_before.at(task.microbatch.value_or(0)), task.item.value_or(0)), i);
    }
    std::vector<std::uint32_t> like;
    for (const Task& task : next.tasks) {
        const auto found = likes.find(role_of(task));
        if (found == likes.end()) {
            like.push_back(no_like);
            continue;
        }
        const std::pair where(place_now.at(task.microbatch.value_or(0)), task.item.value_or(0));
        const auto next_one = found->second.upper_bound(where);
        like.push_back(next_one == found->second.begin() ? next_one->second : std::prev(next_one)->second);
    }
    return like;
}

// Per task the start of its like; without one, that of the last task it waits for.
std::vector<std::int64_t> wishes(const Flat& flat, const std::vector<std::uint32_t>& like,
                                 const std::vector<Duration>& start) {
    std::vector<std::int64_t> wish(flat.tasks(), 0);
    for (const std::uint32_t i : flat.topological) {
        if (like[i] != no_like) wish[i] = start[like[i]].count();
        for (const Arc& arc : flat.before[i])
            if (like[i] == no_like) wish[i] = std::max(wish[i], wish[arc.task]);
    }
    return wish;
}

std::vector<std::uint32_t> modes_like(const Problem& previous, const schedule::Schedule& schedule,
                                      const schedule::Replayer& before, const Flat& flat,
                                      const std::vector<std::uint32_t>& like) {
    std::vector<std::uint32_t> mode;
    for (const auto& pair : flat.problem().pairs) {
        const std::uint32_t other = like[index(pair.forward)];
        const std::uint32_t theirs = other == no_like ? schedule::Replayer::unpaired : before.pair_of(other);
        const bool alike =
            theirs != schedule::Replayer::unpaired && previous.pairs[theirs].modes.size() == pair.modes.size();
        mode.push_back(alike ? schedule.mode[theirs] : 0);
    }
    return mode;
}

}  // namespace

std::vector<schedule::Schedule> carry_over(const Problem& previous, const schedule::Schedule& schedule,
                                           const schedule::Replayer& next) {
    const schedule::Replayer before(previous);
    const auto replay = before.replay(schedule);
    PIPEWEAVER_ASSERT(replay.outcome == schedule::Outcome::completed);
    const Flat flat(next);
    std::vector<schedule::Schedule> made;
    for (const bool by_work : {false, true}) {
        const auto like = match(previous, next.problem(), by_work);
        if (std::all_of(like.begin(), like.end(), [](std::uint32_t task) { return task == no_like; })) return made;
        const auto wish = wishes(flat, like, replay.start);
        const auto position = keys_by(flat.tasks(), [&](std::uint32_t a, std::uint32_t b) {
            return std::pair(wish[a], flat.place[a]) < std::pair(wish[b], flat.place[b]);
        });
        auto modes = uniform_modes(flat);
        modes.insert(modes.begin(), modes_like(previous, schedule, before, flat, like));
        for (const auto& mode : modes) {
            Dispatcher dispatcher(flat);
            if (dispatcher.prepare(flat.costs(mode))) continue;
            dispatcher.run_by_key(wish);
            made.push_back(as_schedule(flat, dispatcher.sequence(), mode));
            for (const Choice choice : {Choice::list, Choice::dual_queue}) {
                dispatcher.change_costs(flat.costs(mode));
                dispatcher.run(choice, position);
                made.push_back(as_schedule(flat, dispatcher.sequence(), mode));
            }
            break;
        }
    }
    return made;
}

}  // namespace pipeweaver::search
