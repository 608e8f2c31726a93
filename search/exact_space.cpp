#include "search/exact_space.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace pipeweaver::search {

namespace {

void insert(std::uint64_t* set, std::uint32_t task) { set[task / 64] |= std::uint64_t{1} << (task % 64); }
bool contains(const std::uint64_t* set, std::uint32_t task) { return (set[task / 64] >> (task % 64) & 1) != 0; }

// Calls visit(task) for the tasks of a set, ascending.
template <class Visit>
void each(const std::uint64_t* set, std::size_t words, Visit visit) {
    for (std::size_t w = 0; w < words; ++w)
        for (std::uint64_t left = set[w]; left != 0; left &= left - 1)
            visit(static_cast<std::uint32_t>(w * 64 + static_cast<std::size_t>(std::countr_zero(left))));
}

constexpr unsigned modes_per_word = 8;
constexpr unsigned mode_bits = 8;

}  // namespace

ExactSpace::ExactSpace(const Flat& flat, std::vector<std::int64_t> head, std::vector<std::int64_t> rest)
    : flat_(&flat), head_(std::move(head)), rest_(std::move(rest)) {
    PIPEWEAVER_ASSERT(flat.tasks() <= most_tasks);
    set_words_ = (flat.tasks() + 63) / 64;
    fill_sets();
    fill_modes();
    fill_unit();
}

void ExactSpace::fill_sets() {
    before_.assign(flat_->tasks() * set_words_, 0);
    after_ = before_;
    on_rank_.assign(flat_->ranks() * set_words_, 0);
    for (std::uint32_t i = 0; i < flat_->tasks(); ++i) {
        for (const Arc& arc : flat_->before[i]) insert(&before_[i * set_words_], arc.task);
        for (const Arc& arc : flat_->after[i]) insert(&after_[i * set_words_], arc.task);
        insert(&on_rank_[flat_->rank_of[i] * set_words_], i);
    }
}

// Of equal modes only the first is tried. (A mode that is worse in every number than another could be left out as well
// where no task can give back more than is held; equal ones are the common case.)
void ExactSpace::fill_modes() {
    const auto& pairs = flat_->problem().pairs;
    role_.assign(flat_->tasks(), 0);
    choices_.resize(pairs.size());
    bool any = false;
    for (std::size_t p = 0; p < pairs.size(); ++p) {
        const auto& pair = pairs[p];
        const auto costs_of = [&](std::uint32_t m) {
            std::vector<std::int64_t> numbers;
            for (const TaskId id : {pair.forward, pair.backward, pair.weight.value_or(pair.backward)}) {
                const Cost& cost = flat_->cost(static_cast<std::uint32_t>(id), m);
                numbers.insert(numbers.end(), {cost.duration, cost.acquire, cost.release});
            }
            return numbers;
        };
        for (std::uint32_t m = 0; m < pair.modes.size(); ++m) {
            const auto same = [&](std::uint32_t other) { return costs_of(other) == costs_of(m); };
            if (std::none_of(choices_[p].begin(), choices_[p].end(), same)) choices_[p].push_back(m);
        }
        if (choices_[p].size() < 2) continue;
        any = true;
        role_[index(pair.forward)] = 1;
        role_[index(pair.weight.value_or(pair.backward))] = 2;
    }
    mode_words_ = any ? (pairs.size() + modes_per_word - 1) / modes_per_word : 0;
}

void ExactSpace::fill_unit() {
    std::int64_t unit = 0;
    for (const Cost& cost : flat_->cost_table) unit = std::gcd(unit, cost.duration);
    for (const Arc& arc : flat_->before.items) unit = std::gcd(unit, arc.lag_ns);
    for (const std::int64_t tail : flat_->tail) unit = std::gcd(unit, tail);
    unit_ = std::max<std::int64_t>(unit, 1);
}

std::vector<std::uint64_t> ExactSpace::root() const {
    return std::vector<std::uint64_t>(times_begin() + flat_->ranks(), 0);
}

ExactState::ExactState(const ExactSpace& space)
    : space_(space),
      clock_(space.flat().ranks()),
      used_(space.flat().ranks()),
      ready_(space.flat().tasks()),
      head_(space.flat().tasks()),
      jobs_(space.flat().ranks()) {
    waiting_.reserve(space.flat().tasks());
    open_.reserve(space.flat().tasks());
    heap_.reserve(space.flat().tasks());
    for (auto& jobs : jobs_) jobs.reserve(space.flat().tasks());
}

std::uint32_t ExactState::mode_of(std::uint32_t task) const {
    const std::uint32_t pair = space_.flat().pair_of[task];
    if (pair == emulator::Replayer::unpaired || space_.key_words() == space_.set_words()) return 0;
    const std::uint64_t word = record_[space_.set_words() + pair / modes_per_word];
    return static_cast<std::uint32_t>(word >> (pair % modes_per_word * mode_bits) & 0xff);
}

void ExactState::load(Record record, ExactStep last) {
    const Flat& flat = space_.flat();
    record_ = record;
    last_ = last;
    std::fill(used_.begin(), used_.end(), 0);
    waiting_.clear();
    open_.clear();
    const std::uint64_t* times = record.data() + space_.times_begin();
    for (std::int64_t& clock : clock_) clock = static_cast<std::int64_t>(*times++);
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        ready_[i] = 0;
        if (placed(i)) {
            used_[flat.rank_of[i]] += cost(i).net();
            continue;
        }
        bool some = false, all = true;
        for (std::size_t w = 0; w < space_.set_words(); ++w) {
            some = some || (space_.before(i)[w] & record[w]) != 0;
            all = all && (space_.before(i)[w] & ~record[w]) == 0;
        }
        if (some) ready_[i] = static_cast<std::int64_t>(*times++);
        if (all) open_.push_back(i);
    }
    for (const std::uint32_t i : flat.topological)
        if (!placed(i)) waiting_.push_back(i);
    if (last.task != UINT32_MAX)
        last_start_ = clock_[flat.rank_of[last.task]] - flat.cost(last.task, last.mode).duration;
}

std::int64_t ExactState::start(std::uint32_t task) const {
    return std::max(clock_[space_.flat().rank_of[task]], ready_[task]);
}

bool ExactState::fits(std::uint32_t task, const Cost& cost) const {
    const std::uint32_t rank = space_.flat().rank_of[task];
    const std::int64_t level = used_[rank] + cost.acquire;
    return level <= space_.flat().room[rank] && level >= cost.release;
}

// Could the task have been started in the moment of the last step, and before it?
bool ExactState::against_order(std::uint32_t task) const {
    const auto& rank_of = space_.flat().rank_of;
    return last_.task != UINT32_MAX && task < last_.task && rank_of[task] != rank_of[last_.task] &&
           start(task) == last_start_ && !contains(space_.before(task), last_.task);
}

void ExactState::steps(std::int64_t limit, std::vector<ExactStep>& out) {
    out.clear();
    const std::uint64_t* barred = record_.data() + space_.key_words();
    const auto add = [&](std::uint32_t task, std::uint32_t mode) {
        const Cost& cost = space_.flat().cost(task, mode);
        if (start(task) + cost.duration + space_.rest(task) < limit && fits(task, cost)) out.push_back({task, mode});
    };
    for (const std::uint32_t task : open_) {
        if (contains(barred, task) || against_order(task)) continue;
        if (space_.opens(task))
            for (const std::uint32_t mode : space_.choices(task)) add(task, mode);
        else
            add(task, mode_of(task));
    }
}

void ExactState::append_after(ExactStep step, std::vector<std::uint64_t>& out) {
    const Flat& flat = space_.flat();
    const std::size_t words = space_.set_words(), begin = out.size();
    const std::uint32_t rank = flat.rank_of[step.task], pair = flat.pair_of[step.task];
    const std::int64_t now = start(step.task), end = now + flat.cost(step.task, step.mode).duration;
    out.insert(out.end(), record_.begin(), record_.begin() + static_cast<std::ptrdiff_t>(space_.times_begin()));

    insert(&out[begin], step.task);
    const unsigned shift = pair % modes_per_word * mode_bits;
    if (space_.opens(step.task)) out[begin + words + pair / modes_per_word] |= std::uint64_t{step.mode} << shift;
    if (space_.closes(step.task)) out[begin + words + pair / modes_per_word] &= ~(std::uint64_t{0xff} << shift);

    std::uint64_t* barred = &out[begin + space_.key_words()];
    for (std::size_t w = 0; w < words; ++w) barred[w] &= ~space_.on_rank(rank)[w];
    for (const std::uint32_t task : open_)
        if (flat.rank_of[task] != rank && start(task) < now) insert(barred, task);

    // A rank that has run all its tasks keeps its last end; on the others nothing starts before this step.
    const auto finished = [&](std::uint32_t r) {
        for (std::size_t w = 0; w < words; ++w)
            if ((space_.on_rank(r)[w] & ~out[begin + w]) != 0) return false;
        return true;
    };
    const auto free_at = [&](std::uint32_t r) {
        return r == rank ? end : finished(r) ? clock_[r] : std::max(clock_[r], now);
    };
    for (std::uint32_t r = 0; r < flat.ranks(); ++r) out.push_back(static_cast<std::uint64_t>(free_at(r)));
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        if (placed(i) || i == step.task) continue;
        const bool follows = contains(space_.after(step.task), i);
        bool some = follows;
        for (std::size_t w = 0; w < words && !some; ++w) some = (space_.before(i)[w] & record_[w]) != 0;
        if (!some) continue;
        std::int64_t ready = std::max(ready_[i], free_at(flat.rank_of[i]));
        if (follows)
            for (const Arc& arc : flat.before[i])
                if (arc.task == step.task) ready = std::max(ready, end + arc.lag_ns);
        out.push_back(static_cast<std::uint64_t>(ready));
    }
}

// Of a pair not begun, the shortest; else the mode it is in.
std::int64_t ExactState::shortest(std::uint32_t task) const {
    const Flat& flat = space_.flat();
    const std::uint32_t pair = flat.pair_of[task];
    if (pair == emulator::Replayer::unpaired) return flat.shortest[task];
    const bool begun = placed(static_cast<std::uint32_t>(flat.problem().pairs[pair].forward));
    return begun ? cost(task).duration : flat.shortest[task];
}

// Longest paths through what is left, then Jackson's preemptive bound on each rank (one_machine.hpp).
std::int64_t ExactState::bound(std::int64_t limit) {
    const Flat& flat = space_.flat();
    std::int64_t largest = 0;
    for (std::uint32_t r = 0; r < flat.ranks(); ++r) {
        jobs_[r].clear();
        if (clock_[r] > 0) largest = std::max(largest, clock_[r] + flat.tail[r]);
    }
    for (const std::uint32_t i : waiting_) {
        std::int64_t head = std::max(space_.head(i), start(i));
        for (const Arc& arc : flat.before[i])
            if (!placed(arc.task)) head = std::max(head, head_[arc.task] + shortest(arc.task) + arc.lag_ns);
        head_[i] = head;
        const std::int64_t work = shortest(i);
        largest = std::max(largest, head + work + space_.rest(i));
        if (largest >= limit) return largest;
        jobs_[flat.rank_of[i]].push_back({head, work, space_.rest(i)});
    }
    for (std::uint32_t r = 0; r < flat.ranks() && largest < limit; ++r)
        largest = std::max(largest, machine_bound(r, limit));
    return largest;
}

std::int64_t ExactState::machine_bound(std::uint32_t rank, std::int64_t limit) {
    auto& jobs = jobs_[rank];
    std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.head < b.head; });
    const auto shorter_tail = [](const auto& a, const auto& b) { return a.first < b.first; };
    heap_.clear();  // (tail, work left)
    std::int64_t now = 0, makespan = 0;
    for (std::size_t next = 0; next < jobs.size() || !heap_.empty();) {
        if (heap_.empty()) now = std::max(now, jobs[next].head);
        for (; next < jobs.size() && jobs[next].head <= now; ++next) {
            heap_.emplace_back(jobs[next].tail, jobs[next].work);
            std::push_heap(heap_.begin(), heap_.end(), shorter_tail);
        }
        const std::int64_t until = next < jobs.size() ? jobs[next].head : INT64_MAX;
        auto& [tail, work] = heap_.front();
        const std::int64_t part = std::min(work, until - now);
        now += part;
        work -= part;
        if (work > 0) continue;
        makespan = std::max(makespan, now + tail);
        if (makespan >= limit) return makespan;
        std::pop_heap(heap_.begin(), heap_.end(), shorter_tail);
        heap_.pop_back();
    }
    return makespan;
}

std::int64_t ExactState::lateness() const { return std::accumulate(clock_.begin(), clock_.end(), std::int64_t{0}); }

}  // namespace pipeweaver::search
