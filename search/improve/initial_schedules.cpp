#include "search/improve/initial_schedules.hpp"

#include "pipeweaver/search/policies.hpp"
#include "search/improve/spend_memory.hpp"
#include "search/instance/modes.hpp"
#include "search/instance/priorities.hpp"
#include "search/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace pipeweaver::search {

namespace {

// A schedule as a candidate, if it runs, fits and keeps the rules.
Candidate candidate_of(const Flat& flat, const schedule::Schedule& schedule) {
    Candidate candidate;
    if (flat.replayer->replay(schedule).outcome != schedule::Outcome::completed) return candidate;
    auto sequence = sequence_of(flat, schedule);
    if (!sequence) return candidate;
    IncrementalSchedule current(flat);
    current.load(*sequence, schedule.mode);
    // By start time: a task that comes later in time comes later in the sequence, so windows of steps are short.
    std::stable_sort(sequence->begin(), sequence->end(),
                     [&](std::uint32_t a, std::uint32_t b) { return current.start(a) < current.start(b); });
    current.load(*sequence, schedule.mode);
    store(current, candidate);
    return candidate;
}

// Is it a schedule of this problem at all? replay() may only be asked then.
bool belongs(const Flat& flat, const schedule::Schedule& schedule) {
    const auto& pairs = flat.problem().pairs;
    if (schedule.order.size() != flat.ranks() || schedule.mode.size() != pairs.size()) return false;
    for (std::size_t k = 0; k < pairs.size(); ++k)
        if (schedule.mode[k] >= pairs[k].modes.size()) return false;
    std::vector<char> seen(flat.tasks(), 0);
    std::size_t tasks = 0;
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (const TaskId task : schedule.order[r]) {
            if (index(task) >= flat.tasks() || flat.rank_of[index(task)] != r || seen[index(task)] != 0) return false;
            seen[index(task)] = 1;
            ++tasks;
        }
    return tasks == flat.tasks();
}

}  // namespace

Candidate given_schedule(const Flat& flat, const schedule::Schedule& schedule) {
    return belongs(flat, schedule) ? candidate_of(flat, schedule) : Candidate{};
}

namespace {

bool suits(const Flat& flat, const Policy& policy) {
    if (flat.tasks() <= tuning.initial.most_tasks_for_all) return true;
    for (const char* slow : {"bubble-filling", "nesting", "critical-path"})
        if (policy.name == slow) return false;
    return true;
}

constexpr std::array list_choices{std::pair(Choice::dual_queue, "dual-queue"), std::pair(Choice::in_order, "in order"),
                                  std::pair(Choice::list, "list"), std::pair(Choice::backward_first, "backward first")};

// A list schedule by each choice: what memory allows is worked out once for all of them.
struct ListRecipes {
    const Priority* priority;
    const std::vector<std::uint32_t>* mode;
    bool repeated;  // the same modes come before
};

std::vector<ListRecipes> list_recipes(const std::vector<Priority>& by,
                                      const std::vector<std::vector<std::uint32_t>>& modes) {
    std::vector<ListRecipes> all;
    for (auto mode = modes.begin(); mode != modes.end(); ++mode) {
        const bool repeated = std::find(modes.begin(), mode, *mode) != mode;
        for (const auto& priority : by) all.push_back({&priority, &*mode, repeated});
    }
    return all;
}

void spend(const Flat& flat, IncrementalSchedule& current, InitialSchedule& start) {
    if (!start.candidate.valid()) return;
    start.before = start.candidate.energy;
    start.mode = start.candidate.mode;
    if (worth_spending(flat)) spend_memory(flat, current, start.candidate);
}

void run(const Flat& flat, const ListRecipes& lists, std::span<InitialSchedule> starts) {
    // No schedule of them would be taken. They stay among the starts: random numbers go by how many there were.
    if (lists.repeated) return;
    Dispatcher dispatcher(flat);
    const auto shortage = dispatcher.prepare(flat.costs(*lists.mode));
    IncrementalSchedule current(flat);
    for (std::size_t k = 0; k < list_choices.size(); ++k) {
        const auto& [choice, name] = list_choices[k];
        starts[k].name = fmt::format("{}, {}", name, lists.priority->name);
        starts[k].shortage = shortage;
        if (shortage) continue;
        dispatcher.run(choice, lists.priority->position);
        current.load(dispatcher.sequence(), *lists.mode);
        store(current, starts[k].candidate);
        spend(flat, current, starts[k]);
    }
}

}  // namespace

std::vector<InitialSchedule> initial_schedules(const Flat& flat, const std::vector<schedule::Schedule>& given,
                                               const Executor& execute) {
    std::vector<std::string> known;
    for (const Policy& policy : policies())
        if (suits(flat, policy)) known.push_back(policy.name);
    auto by = priorities(flat);
    auto modes = uniform_modes(flat);
    if (flat.tasks() > tuning.initial.most_tasks_for_all) {
        by.resize(1);
        modes.resize(1);
    }
    if (!flat.problem().pairs.empty())
        for (auto& mode : frugal_modes(flat)) modes.push_back(std::move(mode));
    const auto lists = list_recipes(by, modes);
    const std::size_t alone = given.size() + known.size();
    std::vector<InitialSchedule> starts(alone + lists.size() * list_choices.size());
    execute(alone + lists.size(), [&](std::size_t k) {
        if (k >= alone) {
            const std::size_t first = alone + (k - alone) * list_choices.size();
            return run(flat, lists[k - alone], std::span(starts).subspan(first, list_choices.size()));
        }
        InitialSchedule& mine = starts[k];
        IncrementalSchedule current(flat);
        if (k < given.size()) {
            mine.name = "start";
            mine.candidate = given_schedule(flat, given[k]);
        } else {
            mine.name = known[k - given.size()];
            const auto result = apply_policy(mine.name, *flat.replayer);
            if (result.schedule) mine.candidate = candidate_of(flat, *result.schedule);
        }
        spend(flat, current, mine);
    });
    return starts;
}

}  // namespace pipeweaver::search
