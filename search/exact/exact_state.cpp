#include "search/exact/exact_state.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <bit>

namespace pipeweaver::search {

ExactState::ExactState(const ExactSpace& space)
    : space_(space),
      clock_(space.flat().ranks()),
      fixed_(space.flat().ranks()),
      undecided_(space.flat().ranks()),
      ready_(space.flat().tasks()),
      head_(space.flat().tasks()),
      jobs_(space.flat().ranks()) {
    waiting_.reserve(space.flat().tasks());
    open_.reserve(space.flat().tasks());
    left_.resize(space.flat().tasks());
    for (auto& jobs : jobs_) jobs.reserve(space.flat().tasks());
}

void ExactState::load(Record record, ExactStep last) {
    const Flat& flat = space_.flat();
    record_ = record;
    last_ = last;
    load_memory();
    const std::uint64_t* times = record.data() + space_.memory_begin() + 2 * record[0];
    for (std::int64_t& clock : clock_) clock = static_cast<std::int64_t>(*times++);
    load_tasks(times);
    if (last.task != UINT32_MAX)
        last_start_ = clock_[flat.rank_of[last.task]] - flat.cost(last.task, last.mode).duration;
}

void ExactState::load_memory() {
    for (auto& list : undecided_) list.clear();
    const std::uint64_t* memory = record_.data() + space_.memory_begin();
    for (std::uint64_t k = 0; k < record_[0]; ++k, memory += 2) {
        const auto pair = static_cast<std::uint32_t>(memory[0]);
        undecided_[space_.flat().rank_of[space_.forward(pair)]].push_back({pair, static_cast<std::int64_t>(memory[1])});
    }
    std::fill(fixed_.begin(), fixed_.end(), 0);
}

void ExactState::load_tasks(const std::uint64_t* times) {
    const Flat& flat = space_.flat();
    waiting_.clear();
    open_.clear();
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        ready_[i] = 0;
        if (placed(i)) {
            fixed_[flat.rank_of[i]] += net(i);
            continue;
        }
        bool some = false, all = true;
        for (std::size_t w = 0; w < space_.set_words(); ++w) {
            some = some || (space_.before(i)[w] & record_[1 + w]) != 0;
            all = all && (space_.before(i)[w] & ~record_[1 + w]) == 0;
        }
        if (some) ready_[i] = static_cast<std::int64_t>(*times++);
        if (all) open_.push_back(i);
    }
    for (const std::uint32_t i : flat.topological)
        if (!placed(i)) waiting_.push_back(i);
}

// What a placed task leaves taken, undecided pairs left out. (A finished pair leaves nothing.)
std::int64_t ExactState::net(std::uint32_t task) const {
    if (space_.role(task) == ExactSpace::Role::plain) return cost(task, 0).net();
    const std::uint8_t byte = space_.byte(record_, space_.flat().pair_of[task]);
    return byte < 0x80 ? 0 : cost(task, byte & 0x7fU).net();
}

std::int64_t ExactState::start(std::uint32_t task) const {
    return std::max(clock_[space_.flat().rank_of[task]], ready_[task]);
}

// Could the task have been started in the moment of the last step, and before it?
bool ExactState::against_order(std::uint32_t task) const {
    const auto& rank_of = space_.flat().rank_of;
    return last_.task != UINT32_MAX && task < last_.task && rank_of[task] != rank_of[last_.task] &&
           start(task) == last_start_ && !contains(space_.before(task), last_.task);
}

std::int64_t ExactState::least_held(std::uint32_t rank) const {
    std::int64_t sum = 0;
    for (const Undecided& one : undecided_[rank]) sum += class_of(one.pair).least_held;
    return sum;
}

bool ExactState::fits(const ExactStep& step) const {
    const Flat& flat = space_.flat();
    const std::uint32_t rank = flat.rank_of[step.task];
    if (space_.role(step.task) == ExactSpace::Role::backward && space_.byte(record_, flat.pair_of[step.task]) < 0x80)
        return fits_backward(step.task, step.mode);
    const Cost& cost = flat.cost(step.task, step.mode);
    std::int64_t acquire = cost.acquire;
    if (space_.role(step.task) == ExactSpace::Role::forward)
        for (const ExactClass& one : space_.classes(flat.pair_of[step.task]))
            if (one.modes.front() == step.mode) acquire = cost.release + one.least_held;
    const std::int64_t level = fixed_[rank] + acquire;
    return level >= cost.release && level + least_held(rank) <= flat.room[rank];
}

// With the pair in this mode and the others holding the least, do all budgets hold?
bool ExactState::fits_budgets(std::uint32_t pair, std::uint32_t mode) const {
    const std::uint32_t forward = space_.forward(pair);
    std::int64_t sum = 0;
    bool passed = false;
    for (const Undecided& one : undecided_[space_.flat().rank_of[forward]]) {
        passed = passed || one.pair == pair;
        sum += one.pair == pair ? cost(forward, mode).net() : class_of(one.pair).least_held;
        if (passed && sum > one.budget) return false;
    }
    return true;
}

bool ExactState::fits_backward(std::uint32_t task, std::uint32_t mode) const {
    const std::uint32_t rank = space_.flat().rank_of[task], pair = space_.flat().pair_of[task];
    const std::int64_t others = least_held(rank) - class_of(pair).least_held;
    const std::int64_t level = fixed_[rank] + others + cost(space_.forward(pair), mode).net();
    return level + cost(task, mode).acquire <= space_.flat().room[rank] && fits_budgets(pair, mode);
}

void ExactState::steps(std::int64_t limit, std::vector<ExactStep>& out) {
    using Role = ExactSpace::Role;
    out.clear();
    const std::uint64_t* barred = record_.data() + space_.key_end();
    const auto add = [&](std::uint32_t task, std::uint32_t mode) {
        if (start(task) + cost(task, mode).duration + space_.tail(task) < limit && fits({task, mode}))
            out.push_back({task, mode});
    };
    for (const std::uint32_t task : open_) {
        if (contains(barred, task) || against_order(task)) continue;
        if (space_.role(task) == Role::plain) {
            add(task, 0);
            continue;
        }
        const std::uint32_t pair = space_.flat().pair_of[task];
        const std::uint8_t byte = space_.byte(record_, pair);
        if (space_.role(task) == Role::forward)
            for (const ExactClass& one : space_.classes(pair)) add(task, one.modes.front());
        else if (byte >= 0x80)
            add(task, byte & 0x7fU);
        else
            for (const std::uint32_t mode : class_of(pair).modes) add(task, mode);
    }
}

// The budgets of the rank after the pair's mode is decided and its backward has started.
void ExactState::decide(const ExactStep& step, std::vector<Undecided>& list) const {
    const std::uint32_t pair = space_.flat().pair_of[step.task], rank = space_.flat().rank_of[step.task];
    const std::int64_t held = cost(space_.forward(pair), step.mode).net();
    const auto at = std::find_if(list.begin(), list.end(), [&](const Undecided& one) { return one.pair == pair; });
    for (auto one = at; one != list.end(); ++one) one->budget -= held;
    if (at != list.begin()) (at - 1)->budget = std::min((at - 1)->budget, at->budget);
    list.erase(at);
    if (list.empty()) return;
    const std::int64_t level = fixed_[rank] + held + cost(step.task, step.mode).acquire;
    list.back().budget = std::min(list.back().budget, space_.flat().room[rank] - level);
}

void ExactState::change_budgets(const ExactStep& step, std::vector<Undecided>& list) {
    const Flat& flat = space_.flat();
    const std::uint32_t rank = flat.rank_of[step.task], pair = flat.pair_of[step.task];
    const Cost& taken = cost(step.task, step.mode);
    const auto role = space_.role(step.task);
    const bool opens = role == ExactSpace::Role::forward && class_after(step, pair).modes.size() > 1;
    if (opens)
        list.push_back({pair, flat.room[rank] - fixed_[rank] - taken.release});
    else if (role == ExactSpace::Role::backward && space_.byte(record_, pair) < 0x80)
        decide(step, list);
    else if (!list.empty())
        list.back().budget = std::min(list.back().budget, flat.room[rank] - fixed_[rank] - taken.acquire);
    lower_budgets(step, list);
}

// The class of an undecided pair; of the one that the step begins, the step's.
const ExactClass& ExactState::class_after(const ExactStep& step, std::uint32_t pair) const {
    if (space_.byte(record_, pair) != 0) return class_of(pair);
    for (const ExactClass& one : space_.classes(pair))
        if (one.modes.front() == step.mode) return one;
    PIPEWEAVER_ASSERT(false);
    return space_.classes(pair).front();
}

// Lowers each budget to what it and the others allow: to the largest sum of held memory below it, and to what the next
// budget leaves.
void ExactState::lower_budgets(const ExactStep& step, std::vector<Undecided>& list) {
    constexpr std::size_t many = 24;  // sums; beyond, budgets are bounded by sums of the most held only
    std::int64_t most = 0;
    fresh_.assign(1, {0, 0});
    for (Undecided& one : list) {
        const ExactClass& choice = class_after(step, one.pair);
        const std::uint32_t forward = space_.forward(one.pair);
        most = one.budget = std::min(one.budget, most + choice.most_held);
        sums_.clear();
        for (const auto& [sum, unused] : fresh_)
            for (const std::uint32_t mode : choice.modes)
                if (sum + cost(forward, mode).net() <= one.budget)
                    sums_.emplace_back(sum + cost(forward, mode).net(), 0);
        std::sort(sums_.begin(), sums_.end());
        sums_.erase(std::unique(sums_.begin(), sums_.end()), sums_.end());
        if (!sums_.empty()) most = one.budget = sums_.back().first;
        if (sums_.size() > many) sums_.clear();
        fresh_.swap(sums_);
    }
    for (std::size_t j = list.size(); j-- > 1;)
        list[j - 1].budget = std::min(list[j - 1].budget, list[j].budget - class_after(step, list[j].pair).least_held);
}

void ExactState::append_memory(const ExactStep& step, std::vector<std::uint64_t>& out) {
    for (std::uint32_t r = 0; r < undecided_.size(); ++r) {
        const bool here = r == space_.flat().rank_of[step.task];
        if (here) {
            changed_ = undecided_[r];
            change_budgets(step, changed_);
        }
        for (const Undecided& one : here ? changed_ : undecided_[r]) {
            out.push_back(one.pair);
            out.push_back(static_cast<std::uint64_t>(one.budget));
        }
    }
}

void ExactState::append_key(const ExactStep& step, std::vector<std::uint64_t>& out) {
    using Role = ExactSpace::Role;
    const std::size_t begin = out.size();
    const std::uint32_t pair = space_.flat().pair_of[step.task];
    out.insert(out.end(), record_.begin(), record_.begin() + static_cast<std::ptrdiff_t>(space_.memory_begin()));
    std::uint64_t* record = &out[begin];
    insert(record + 1, step.task);
    if (space_.closes(step.task))
        space_.set_byte(record, pair, 0);
    else if (space_.role(step.task) == Role::forward)
        for (std::size_t c = 0; c < space_.classes(pair).size(); ++c) {
            const auto& modes = space_.classes(pair)[c].modes;
            if (modes.front() != step.mode) continue;
            space_.set_byte(record, pair, modes.size() > 1 ? ExactSpace::undecided(c) : ExactSpace::decided(step.mode));
        }
    else if (space_.role(step.task) == Role::backward)
        space_.set_byte(record, pair, ExactSpace::decided(step.mode));

    std::uint64_t* barred = record + space_.key_end();
    const std::uint32_t rank = space_.flat().rank_of[step.task];
    const std::int64_t now = start(step.task);
    for (std::size_t w = 0; w < space_.set_words(); ++w) barred[w] &= ~space_.on_rank(rank)[w];
    for (const std::uint32_t task : open_)
        if (space_.flat().rank_of[task] != rank && start(task) < now) insert(barred, task);
}

void ExactState::append_after(ExactStep step, std::vector<std::uint64_t>& out) {
    const std::size_t begin = out.size();
    append_key(step, out);
    append_memory(step, out);
    out[begin] = (out.size() - begin - space_.memory_begin()) / 2;
    append_times(step, out.size(), out);
}

void ExactState::append_times(const ExactStep& step, std::size_t begin, std::vector<std::uint64_t>& out) {
    const Flat& flat = space_.flat();
    const std::size_t words = space_.set_words();
    const std::uint32_t rank = flat.rank_of[step.task];
    const std::int64_t now = start(step.task), end = now + cost(step.task, step.mode).duration;
    // A rank that has run all its tasks keeps its last end; on the others nothing starts before this step.
    for (std::uint32_t r = 0; r < flat.ranks(); ++r) {
        bool finished = true;
        for (std::size_t w = 0; w < words; ++w) finished = finished && (space_.on_rank(r)[w] & ~record_[1 + w]) == 0;
        const std::int64_t free = r == rank ? end : finished ? clock_[r] : std::max(clock_[r], now);
        out.push_back(static_cast<std::uint64_t>(free));
    }
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        if (placed(i) || i == step.task) continue;
        const bool follows = contains(space_.after(step.task), i);
        bool some = follows;
        for (std::size_t w = 0; w < words && !some; ++w) some = (space_.before(i)[w] & record_[1 + w]) != 0;
        if (!some) continue;
        std::int64_t ready = std::max(ready_[i], static_cast<std::int64_t>(out[begin + flat.rank_of[i]]));
        if (follows)
            for (const Arc& arc : flat.before[i])
                if (arc.task == step.task) ready = std::max(ready, end + arc.lag_ns);
        out.push_back(static_cast<std::uint64_t>(ready));
    }
}

// Of a pair not begun, the shortest; of an undecided one, the shortest of its class; else as decided.
std::int64_t ExactState::shortest(std::uint32_t task) const {
    const Flat& flat = space_.flat();
    if (space_.role(task) == ExactSpace::Role::plain) return cost(task, 0).duration;
    const std::uint32_t pair = flat.pair_of[task];
    const std::uint8_t byte = space_.byte(record_, pair);
    if (byte == 0) return flat.shortest[task];
    if (byte >= 0x80) return cost(task, byte & 0x7fU).duration;
    const ExactClass& one = class_of(pair);
    if (space_.role(task) == ExactSpace::Role::weight) return one.shortest_weight;
    std::int64_t least = INT64_MAX;
    for (const std::uint32_t mode : one.modes)
        if (cost(task, mode).duration < least && fits_budgets(pair, mode)) least = cost(task, mode).duration;
    return std::max(least == INT64_MAX ? 0 : least, one.shortest_backward);
}

// Longest paths through what is left, then Jackson's preemptive bound on each rank (one_machine.hpp).
std::int64_t ExactState::bound(std::int64_t limit) {
    const Flat& flat = space_.flat();
    std::int64_t largest = 0;
    for (std::uint32_t r = 0; r < flat.ranks(); ++r) {
        jobs_[r].clear();
        if (clock_[r] > 0) largest = std::max(largest, clock_[r] + flat.rank_tail[r]);
    }
    for (const std::uint32_t i : waiting_) {
        std::int64_t head = std::max(space_.head(i), start(i));
        for (const Arc& arc : flat.before[i])
            if (!placed(arc.task)) head = std::max(head, head_[arc.task] + shortest(arc.task) + arc.lag_ns);
        head_[i] = head;
        const std::int64_t work = shortest(i);
        largest = std::max(largest, head + work + space_.tail(i));
        if (largest >= limit) return largest;
        jobs_[flat.rank_of[i]].push_back({head, work, space_.tail(i), i});
    }
    for (std::uint32_t r = 0; r < flat.ranks() && largest < limit; ++r) {
        largest = std::max(largest, machine_bound(r, limit));
        if (largest < limit && !undecided_[r].empty()) largest = std::max(largest, choice_bound(r, limit));
    }
    return largest;
}

// Least time by which the backwards of undecided pairs whose tail is `tail` or more must together exceed their
// shortest, for the budgets to hold; nothing if they cannot. A multiple-choice knapsack with budgets on all prefixes:
// sums of (held, extra) pair by pair, those dropped that are beyond the budget or no better than another.
std::optional<std::int64_t> ExactState::least_extra(std::uint32_t rank, std::int64_t tail) {
    sums_.assign(1, {0, 0});
    for (const Undecided& one : undecided_[rank]) {
        const auto backward = static_cast<std::uint32_t>(space_.flat().problem().pairs[one.pair].backward);
        const ExactClass& choice = class_of(one.pair);
        fresh_.clear();
        const auto add = [&](std::int64_t held, std::int64_t extra) {
            for (const auto& [sum, before] : sums_)
                if (sum + held <= one.budget) fresh_.emplace_back(sum + held, before + extra);
        };
        if (space_.tail(backward) < tail) {
            add(choice.least_held, 0);
        } else {
            const std::int64_t least = shortest(backward);
            for (const std::uint32_t mode : choice.modes)
                add(cost(space_.forward(one.pair), mode).net(),
                    std::max<std::int64_t>(0, cost(backward, mode).duration - least));
        }
        std::sort(fresh_.begin(), fresh_.end());
        sums_.clear();
        for (const auto& sum : fresh_)
            if (sums_.empty() || sum.second < sums_.back().second) sums_.push_back(sum);
    }
    if (sums_.empty()) return std::nullopt;
    return sums_.back().second;
}

// For sets of the rank's tasks with the largest tails: first head, all work, what choices add, smallest tail.
std::int64_t ExactState::choice_bound(std::uint32_t rank, std::int64_t limit) {
    auto& jobs = jobs_[rank];
    std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.tail > b.tail; });
    std::int64_t head = INT64_MAX, work = 0, largest = 0, extra = 0;
    for (std::size_t k = 0; k < jobs.size(); ++k) {
        head = std::min(head, jobs[k].head);
        work += jobs[k].work;
        if (k + 1 < jobs.size() && jobs[k + 1].tail == jobs[k].tail) continue;
        const bool more = std::any_of(undecided_[rank].begin(), undecided_[rank].end(), [&](const Undecided& one) {
            const auto backward = static_cast<std::uint32_t>(space_.flat().problem().pairs[one.pair].backward);
            const std::int64_t tail = space_.tail(backward);
            return tail >= jobs[k].tail && (k == 0 || tail < jobs[k - 1].tail);
        });
        if (more) {
            const auto least = least_extra(rank, jobs[k].tail);
            if (!least) return limit;
            extra = *least;
        }
        largest = std::max(largest, head + work + extra + jobs[k].tail);
        if (largest >= limit) break;
    }
    return largest;
}

// Jackson's preemptive schedule, as in one_machine.cpp. The tails of a rank's tasks never change, so released tasks are
// a set of places in the order of tails, the largest first.
std::int64_t ExactState::machine_bound(std::uint32_t rank, std::int64_t limit) {
    auto& jobs = jobs_[rank];
    std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.head < b.head; });
    released_.fill(0);
    std::int64_t now = 0, makespan = 0;
    std::size_t next = 0, open = 0;
    while (next < jobs.size() || open > 0) {
        if (open == 0) now = std::max(now, jobs[next].head);
        for (; next < jobs.size() && jobs[next].head <= now; ++next, ++open) {
            const std::uint32_t place = space_.by_tail(jobs[next].task);
            released_[place / 64] |= std::uint64_t{1} << (place % 64);
            left_[place] = {jobs[next].work, jobs[next].tail};
        }
        std::size_t word = 0;
        while (released_[word] == 0) ++word;
        auto& [work, tail] = left_[word * 64 + static_cast<std::size_t>(std::countr_zero(released_[word]))];
        const std::int64_t until = next < jobs.size() ? jobs[next].head : INT64_MAX;
        const std::int64_t part = std::min(work, until - now);
        now += part;
        work -= part;
        if (work > 0) continue;
        makespan = std::max(makespan, now + tail);
        if (makespan >= limit) return makespan;
        released_[word] &= released_[word] - 1;
        --open;
    }
    return makespan;
}

std::int64_t ExactState::lateness() const { return std::accumulate(clock_.begin(), clock_.end(), std::int64_t{0}); }

}  // namespace pipeweaver::search
