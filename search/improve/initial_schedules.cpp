#include "search/improve/initial_schedules.hpp"

#include "pipeweaver/search/options.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "search/improve/spend_memory.hpp"
#include "search/instance/modes.hpp"
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

constexpr std::array list_choices{std::pair(Choice::dual_queue, dual_queue_policy),
                                  std::pair(Choice::in_order, "in order"), std::pair(Choice::list, "list"),
                                  std::pair(Choice::backward_first, "backward first")};

void spend(const Flat& flat, IncrementalSchedule& current, InitialSchedule& start) {
    if (!start.candidate.valid()) return;
    start.before = start.candidate.energy;
    start.mode = start.candidate.mode;
    if (worth_spending(flat)) spend_memory(flat, current, start.candidate);
}

}  // namespace

InitialSchedules::InitialSchedules(const Flat& flat, std::vector<schedule::Schedule> given, bool have_policies)
    : flat_(flat), given_(std::move(given)), have_policies_(have_policies) {
    for (const Policy& policy : policies()) policies_.push_back(policy.name);
    if (!is_large()) add_all_alone();
}

bool InitialSchedules::is_large() const { return flat_.tasks() > most_tasks_at_leisure; }

void InitialSchedules::add_all_alone() {
    for (std::size_t n = 0; n < given_.size() + policies_.size(); ++n) jobs_.push_back({.alone = true, .number = n});
}

// What is begun late in a large problem is seldom begun at all: what is best most often where memory is short, the
// modes that keep least, goes first.
void InitialSchedules::add_lists() {
    by_ = priorities(flat_);
    mode_ = uniform_modes(flat_);
    if (!flat_.problem().pairs.empty())
        for (auto& mode : frugal_modes(flat_)) mode_.push_back(std::move(mode));
    const auto early = static_cast<std::size_t>(
        std::find_if(by_.begin(), by_.end(), [](const Priority& one) { return one.name == "short first"; }) -
        by_.begin());
    const auto add = [&](std::size_t mode, std::size_t priority, std::size_t first, std::size_t end) {
        jobs_.push_back({.priority = priority, .mode = mode, .first_choice = first, .end_choice = end});
    };
    if (is_large()) {
        for (std::size_t mode = mode_.size(); mode-- > 0;) add(mode, early, 0, 1);
        add_all_alone();
    }
    for (std::size_t mode = 0; mode < mode_.size(); ++mode)
        for (std::size_t priority = 0; priority < by_.size(); ++priority)
            add(mode, priority, is_large() && priority == early ? 1 : 0, list_choices.size());
}

bool InitialSchedules::done() const { return !mode_.empty() && next_ == jobs_.size(); }

void InitialSchedules::try_alone(std::size_t number, InitialSchedule& mine) const {
    IncrementalSchedule current(flat_);
    if (number < given_.size()) {
        mine.name = "start";
        mine.candidate = given_schedule(flat_, given_[number]);
    } else {
        mine.name = policies_[number - given_.size()];
        if (have_policies_) return;  // counted all the same: random numbers go by how many starts there were
        const auto result = apply_policy(mine.name, *flat_.replayer);
        if (result.schedule) mine.candidate = candidate_of(flat_, *result.schedule);
    }
    spend(flat_, current, mine);
}

// By several choices: what memory allows is worked out once for all of them.
void InitialSchedules::try_lists(const Job& job, std::span<InitialSchedule> mine) const {
    const Priority& priority = by_[job.priority];
    const auto mode = mode_.begin() + static_cast<std::ptrdiff_t>(job.mode);
    // No schedule of modes that come twice would be taken. They stay among the starts: random numbers go by how many
    // there were.
    if (std::find(mode_.begin(), mode, *mode) != mode) return;
    Dispatcher dispatcher(flat_);
    const auto shortage = dispatcher.prepare(flat_.costs(*mode));
    IncrementalSchedule current(flat_);
    for (std::size_t k = 0; k < mine.size(); ++k) {
        const auto& [choice, name] = list_choices[job.first_choice + k];
        mine[k].name = fmt::format("{}, {}", name, priority.name);
        mine[k].shortage = shortage;
        if (shortage) continue;
        dispatcher.run(choice, priority.position);
        current.load(dispatcher.sequence(), *mode);
        store(current, mine[k].candidate);
        spend(flat_, current, mine[k]);
    }
}

std::vector<InitialSchedule> InitialSchedules::next(std::size_t most, const Executor& execute) {
    const std::size_t begin = next_;
    std::vector<std::size_t> first;  // of each job, in what is returned
    std::size_t count = 0;
    for (; !done() && (count == 0 || count < most); ++next_) {
        if (next_ == jobs_.size()) add_lists();
        first.push_back(count);
        count += jobs_[next_].schedules();
    }
    std::vector<InitialSchedule> starts(count);
    execute(first.size(), [&](std::size_t k) {
        const Job& job = jobs_[begin + k];
        const auto mine = std::span(starts).subspan(first[k], job.schedules());
        if (job.alone)
            try_alone(job.number, mine.front());
        else
            try_lists(job, mine);
    });
    return starts;
}

}  // namespace pipeweaver::search
