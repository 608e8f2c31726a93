#include "search/construct/priority_list.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <map>

namespace pipeweaver::search {

PriorityList::PriorityList(const Flat& flat) : ListScheduler(flat) {
    const auto& tasks = flat.problem().tasks;
    std::map<std::int64_t, std::uint32_t> place;
    for (const auto& task : tasks) place.emplace(task.microbatch.value_or(-1), 0);
    std::uint32_t next = 0;
    for (auto& [number, mine] : place) mine = next++;
    size_.assign(place.size(), 0);
    for (const auto& task : tasks) {
        microbatch_.push_back(place[task.microbatch.value_or(-1)]);
        ++size_[microbatch_.back()];
    }
}

void PriorityList::begin() {
    ListScheduler::begin();
    left_ = size_;
    ended_ = 0;
    gate_open_ = false;
    ready_.assign(flat_.ranks(), {});
    for (std::uint32_t i = 0; i < flat_.tasks(); ++i)
        if (missing_[i] == 0) ready_[flat_.rank_of[i]].push_back(i);
}

std::int64_t PriorityList::start(std::uint32_t task) const {
    return std::max(clock_[flat_.rank_of[task]], ready_at_[task]);
}

// Refused by memory, or of a microbatch that may not begin yet.
bool PriorityList::waits(std::uint32_t task) const {
    if (refused(task)) return true;
    const std::uint32_t microbatch = microbatch_[task];
    return rules_->window > 0 && !gate_open_ && microbatch >= ended_ + rules_->window &&
           left_[microbatch] == size_[microbatch];
}

PriorityList::NextTask PriorityList::next_task(std::uint32_t rank) const {
    NextTask best;
    std::int64_t horizon = INT64_MAX;  // tasks that start later are not looked at
    for (const std::uint32_t task : ready_[rank]) {
        if (waits(task)) continue;
        best.time = std::min(best.time, start(task) + (rules_->look_ahead ? costs_[task].duration : 0));
        horizon = rules_->look_ahead ? best.time - 1 : best.time;
    }
    for (const std::uint32_t task : ready_[rank]) {
        if (waits(task) || start(task) > horizon) continue;
        if (best.task == UINT32_MAX || rules_->position[task] < rules_->position[best.task]) best.task = task;
    }
    return best;
}

void PriorityList::place(std::uint32_t task) {
    std::erase(ready_[flat_.rank_of[task]], task);
    append(task, start(task));
    for (const Arc& arc : flat_.after[task]) {
        if (missing_[arc.task] > 0) continue;
        ready_[flat_.rank_of[arc.task]].push_back(arc.task);
        stale_[flat_.rank_of[arc.task]] = 1;
    }
    const bool first = left_[microbatch_[task]]-- == size_[microbatch_[task]];
    const std::uint32_t before = ended_;
    while (ended_ < left_.size() && left_[ended_] == 0) ++ended_;
    // What waited for the window, or went on only because it was lifted, is looked at again.
    if (rules_->window > 0 && (first || gate_open_ || ended_ != before)) all_stale();
    gate_open_ = false;
}

void PriorityList::run(const ListRules& rules) {
    rules_ = &rules;
    begin();
    while (sequence_.size() < flat_.tasks()) {
        const std::uint32_t rank = next_rank([this](std::uint32_t r) { return next_task(r); });
        const std::uint32_t task = next_task_[rank].task;
        if (task == UINT32_MAX) {
            PIPEWEAVER_ASSERT(rules.window > 0 && !gate_open_);
            gate_open_ = true;
            all_stale();
        } else if (memory_.allows(task)) {
            place(task);
        } else {
            set_refused(task);
            stale_[rank] = 1;
        }
    }
    rules_ = nullptr;
}

}  // namespace pipeweaver::search
