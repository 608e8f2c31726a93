#include "search/walk.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <bit>

namespace pipeweaver::search {

namespace {

constexpr std::uint32_t none = UINT32_MAX;

Groups<Arc> without_implied(const Flat& flat) {
    Groups<Arc> kept;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        for (const Arc& arc : flat.before[i])
            if (flat.rank_of[arc.task] != flat.rank_of[i] || arc.lag_ns > 0) kept.items.push_back(arc);
        kept.first.push_back(static_cast<std::uint32_t>(kept.items.size()));
    }
    return kept;
}

// The sum of all tasks' ends stays below 2^62 in units of 2^shift: no end exceeds the sum of all durations and lags.
unsigned shift_for(const Flat& flat) {
    std::uint64_t horizon = 1;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        std::int64_t longest = 0;
        for (std::uint32_t m = 0; m < flat.modes(i); ++m) longest = std::max(longest, flat.cost(i, m).duration);
        horizon += static_cast<std::uint64_t>(longest);
        for (const Arc& arc : flat.before[i]) horizon += static_cast<std::uint64_t>(arc.lag_ns);
    }
    const int bits = static_cast<int>(std::bit_width(horizon)) + static_cast<int>(std::bit_width(flat.tasks()));
    return bits > 62 ? static_cast<unsigned>(bits - 62) : 0;
}

}  // namespace

Walk::Walk(const Flat& flat)
    : flat_(flat),
      before_(without_implied(flat)),
      shift_(shift_for(flat)),
      first_(flat.ranks() + 1),
      at_(flat.tasks()),
      row_(flat.tasks()),
      spot_(flat.tasks()),
      previous_(flat.tasks()),
      used_(flat.tasks()),
      end_(flat.tasks() + 1),
      old_end_(flat.tasks()),
      mark_(flat.tasks() + 1) {
    for (const std::uint32_t rank : flat.rank_of) ++first_[rank + 1];
    for (std::uint32_t r = 0; r < flat.ranks(); ++r) first_[r + 1] += first_[r];
    window_.reserve(flat.tasks());
    scratch_.reserve(flat.tasks());
    critical_.reserve(flat.tasks());
}

double Walk::value(const Energy& energy, double weight) const {
    const double unit = static_cast<double>(std::int64_t{1} << shift_);
    return static_cast<double>(energy.makespan) +
           weight * unit * static_cast<double>(energy.ends) / static_cast<double>(flat_.tasks());
}

void Walk::fill_rows() {
    auto next = first_;
    std::vector<std::uint32_t> last(flat_.ranks(), flat_.tasks());
    std::vector<std::int64_t> used(flat_.ranks(), 0);
    for (std::uint32_t i = 0; i < sequence_.size(); ++i) {
        const std::uint32_t task = sequence_[i], rank = flat_.rank_of[task];
        at_[task] = i;
        spot_[task] = next[rank]++;
        row_[spot_[task]] = task;
        previous_[task] = last[rank];
        last[rank] = task;
        used_[spot_[task]] = used[rank];
        used[rank] += cost_[task].net();
    }
}

void Walk::load(std::span<const std::uint32_t> sequence, std::span<const std::uint32_t> mode) {
    sequence_.assign(sequence.begin(), sequence.end());
    mode_.assign(mode.begin(), mode.end());
    cost_ = flat_.costs(mode_);
    fill_rows();
    std::fill(end_.begin(), end_.end(), 0);
    energy_ = {};
    evaluate(0, INT64_MAX);
    step_ = Step::none;
    critical_known_ = false;
}

void Walk::copy(const Walk& other) {
    sequence_ = other.sequence_;
    at_ = other.at_;
    row_ = other.row_;
    spot_ = other.spot_;
    previous_ = other.previous_;
    used_ = other.used_;
    cost_ = other.cost_;
    mode_ = other.mode_;
    end_ = other.end_;
    energy_ = other.energy_;
    step_ = Step::none;
    critical_known_ = false;
}

std::int64_t Walk::makespan() const {
    std::int64_t latest = 0;
    for (std::uint32_t r = 0; r < flat_.ranks(); ++r)
        if (first_[r] < first_[r + 1]) latest = std::max(latest, end_[row_[first_[r + 1] - 1]] + flat_.tail[r]);
    return latest;
}

// Times the sequence from place `from`; gives up, false, once the makespan must exceed the limit.
bool Walk::evaluate(std::uint32_t from, std::int64_t limit) {
    timed_first_ = from;
    old_energy_ = energy_;
    std::int64_t ends = energy_.ends;
    const auto tasks = static_cast<std::uint32_t>(sequence_.size());
    for (std::uint32_t i = from; i < tasks; ++i) {
        const std::uint32_t task = sequence_[i];
        std::int64_t start = end_[previous_[task]];
        for (const Arc& arc : before_[task]) start = std::max(start, end_[arc.task] + arc.lag_ns);
        const std::int64_t end = start + cost_[task].duration;
        const std::int64_t old = end_[task];
        old_end_[i] = old;
        end_[task] = end;
        ends += (end >> shift_) - (old >> shift_);
        if (end > limit - flat_.rest[task]) {
            timed_last_ = i + 1;
            return false;
        }
    }
    timed_last_ = tasks;
    energy_ = {makespan(), ends};
    return true;
}

void Walk::restore_ends() {
    for (std::uint32_t i = timed_first_; i < timed_last_; ++i) end_[sequence_[i]] = old_end_[i];
    energy_ = old_energy_;
}

// Would the rank's memory allow the task at spot `from` to run at the earlier spot `to`?
bool Walk::fits_moved_before(std::uint32_t from, std::uint32_t to) const {
    const Cost& moved = cost_[row_[from]];
    const std::int64_t room = flat_.room[flat_.rank_of[row_[from]]], net = moved.net();
    if (used_[to] + moved.acquire > room || used_[to] + net < 0) return false;
    for (std::uint32_t k = to; k < from; ++k) {
        const std::int64_t level = used_[k] + net + cost_[row_[k]].acquire;
        if (level > room || level - cost_[row_[k]].release < 0) return false;
    }
    return true;
}

// The same at the later spot `to`.
bool Walk::fits_moved_after(std::uint32_t from, std::uint32_t to) const {
    const Cost& moved = cost_[row_[from]];
    const std::int64_t room = flat_.room[flat_.rank_of[row_[from]]], net = moved.net();
    std::int64_t level = 0;
    for (std::uint32_t k = from + 1; k <= to; ++k) {
        level = used_[k] - net + cost_[row_[k]].acquire;
        if (level > room) return false;
        level -= cost_[row_[k]].release;
        if (level < 0) return false;
    }
    return level + moved.acquire <= room && level + net >= 0;
}

// Takes the task at spot `from` out of its row and puts it in at spot `to`.
void Walk::shift_row(std::uint32_t from, std::uint32_t to) {
    if (from > to)
        std::rotate(row_.begin() + to, row_.begin() + from, row_.begin() + from + 1);
    else
        std::rotate(row_.begin() + from, row_.begin() + from + 1, row_.begin() + to + 1);
    const std::uint32_t low = std::min(from, to), high = std::max(from, to);
    const std::uint32_t rank = flat_.rank_of[row_[low]];
    std::uint32_t last = low == first_[rank] ? flat_.tasks() : row_[low - 1];
    std::int64_t level = used_[low];
    for (std::uint32_t k = low; k <= high; ++k) {
        spot_[row_[k]] = k;
        previous_[row_[k]] = last;
        last = row_[k];
        used_[k] = level;
        level += cost_[last].net();
    }
    if (high + 1 < first_[rank + 1]) previous_[row_[high + 1]] = last;
}

void Walk::next_stamp() {
    if (++stamp_ > 0) return;
    std::fill(mark_.begin(), mark_.end(), 0);
    stamp_ = 1;
}

// Marks what must stay before `task` among the places [first, last) of the sequence when it leaves its place in its
// row. False if a task of its own rank is among them.
bool Walk::mark_ancestors(std::uint32_t task, std::uint32_t first, std::uint32_t last) {
    const std::uint32_t rank = flat_.rank_of[task];
    for (const Arc& arc : flat_.before[task]) mark_[arc.task] = stamp_;
    for (std::uint32_t i = last; i-- > first;) {
        const std::uint32_t seen = sequence_[i];
        if (mark_[seen] != stamp_) continue;
        if (flat_.rank_of[seen] == rank) return false;
        for (const Arc& arc : before_[seen]) mark_[arc.task] = stamp_;
        mark_[previous_[seen]] = stamp_;
    }
    return true;
}

// The same for what must stay behind it, among the places (first, last].
bool Walk::mark_descendants(std::uint32_t task, std::uint32_t first, std::uint32_t last) {
    const std::uint32_t rank = flat_.rank_of[task];
    mark_[task] = stamp_;
    for (std::uint32_t i = first + 1; i <= last; ++i) {
        const std::uint32_t seen = sequence_[i];
        if (flat_.rank_of[seen] == rank) {
            for (const Arc& arc : flat_.before[seen])
                if (mark_[arc.task] == stamp_) return false;
            continue;
        }
        bool after = mark_[previous_[seen]] == stamp_;
        for (const Arc& arc : before_[seen]) after = after || mark_[arc.task] == stamp_;
        if (after) mark_[seen] = stamp_;
    }
    return true;
}

// Puts the marked tasks of the places [first, last] before or behind the others, each part in its order.
void Walk::reorder(std::uint32_t first, std::uint32_t last, bool marked_first) {
    window_first_ = first;
    window_last_ = last;
    window_.assign(sequence_.begin() + first, sequence_.begin() + last + 1);
    scratch_.clear();
    std::uint32_t place = first;
    for (const std::uint32_t task : window_) {
        if ((mark_[task] == stamp_) == marked_first) {
            at_[task] = place;
            sequence_[place++] = task;
        } else {
            scratch_.push_back(task);
        }
    }
    for (const std::uint32_t task : scratch_) {
        at_[task] = place;
        sequence_[place++] = task;
    }
}

void Walk::restore_window() {
    for (std::uint32_t i = window_first_; i <= window_last_; ++i) {
        sequence_[i] = window_[i - window_first_];
        at_[sequence_[i]] = i;
    }
}

bool Walk::finish_move(Step step, std::uint32_t from, std::uint32_t to, std::int64_t limit) {
    shift_row(from, to);
    step_ = step;
    step_from_ = from;
    step_to_ = to;
    if (evaluate(window_first_, limit)) return true;
    take_back();
    return false;
}

bool Walk::propose_before(std::uint32_t task, std::uint32_t other, std::int64_t limit) {
    if (!fits_moved_before(spot_[task], spot_[other])) return false;
    next_stamp();
    const std::uint32_t first = at_[other], last = at_[task];
    if (!mark_ancestors(task, first, last)) return false;
    mark_[task] = stamp_;
    reorder(first, last, true);
    return finish_move(Step::before, spot_[task], spot_[other], limit);
}

bool Walk::propose_after(std::uint32_t task, std::uint32_t other, std::int64_t limit) {
    if (!fits_moved_after(spot_[task], spot_[other])) return false;
    next_stamp();
    const std::uint32_t first = at_[task], last = at_[other];
    if (!mark_descendants(task, first, last)) return false;
    reorder(first, last, false);
    return finish_move(Step::after, spot_[task], spot_[other], limit);
}

void Walk::set_mode(std::uint32_t pair, std::uint32_t mode) {
    const emulator::Pair& changed = flat_.problem().pairs[pair];
    mode_[pair] = mode;
    const auto set = [&](TaskId task) {
        const auto i = static_cast<std::uint32_t>(task);
        cost_[i] = flat_.cost(i, mode);
    };
    set(changed.forward);
    set(changed.backward);
    if (changed.weight) set(*changed.weight);
}

// Memory before the tasks at the spots (first, last + 1] of one row from that at `first`. False if it goes wrong.
bool Walk::refill_memory(std::uint32_t first, std::uint32_t last) {
    const std::uint32_t rank = flat_.rank_of[row_[first]];
    const std::int64_t room = flat_.room[rank];
    bool fits = true;
    std::int64_t level = used_[first];
    for (std::uint32_t k = first; k <= last; ++k) {
        used_[k] = level;
        level += cost_[row_[k]].acquire;
        fits = fits && level <= room;
        level -= cost_[row_[k]].release;
        fits = fits && level >= 0;
    }
    return fits;
}

bool Walk::propose_modes(std::span<const ModeChange> changes, std::int64_t limit) {
    std::uint32_t first = none, last = 0, from = none;
    changed_modes_ = changes.size();
    for (std::size_t k = 0; k < changes.size(); ++k) {
        const emulator::Pair& pair = flat_.problem().pairs[changes[k].pair];
        const auto forward = static_cast<std::uint32_t>(pair.forward);
        const auto end = static_cast<std::uint32_t>(pair.weight ? *pair.weight : pair.backward);
        first = std::min(first, spot_[forward]);
        last = std::max(last, spot_[end]);
        from = std::min(from, at_[forward]);
        old_modes_[k] = {changes[k].pair, mode_[changes[k].pair]};
        set_mode(changes[k].pair, changes[k].mode);
    }
    step_ = Step::modes;
    step_from_ = first;
    step_to_ = last;
    timed_first_ = timed_last_ = 0;
    old_energy_ = energy_;
    if (refill_memory(first, last) && evaluate(from, limit)) return true;
    take_back();
    return false;
}

void Walk::keep() {
    step_ = Step::none;
    critical_known_ = false;
}

void Walk::take_back() {
    restore_ends();
    if (step_ == Step::before || step_ == Step::after) {
        shift_row(step_to_, step_from_);
        restore_window();
    } else if (step_ == Step::modes) {
        for (std::size_t k = changed_modes_; k-- > 0;) set_mode(old_modes_[k].pair, old_modes_[k].mode);
        refill_memory(step_from_, step_to_);
    }
    step_ = Step::none;
}

const std::vector<std::uint32_t>& Walk::critical() {
    if (critical_known_) return critical_;
    critical_known_ = true;
    critical_.clear();
    std::uint32_t task = flat_.tasks();
    for (std::uint32_t r = 0; r < flat_.ranks() && task == flat_.tasks(); ++r) {
        if (first_[r] == first_[r + 1]) continue;
        const std::uint32_t last = row_[first_[r + 1] - 1];
        if (end_[last] + flat_.tail[r] == energy_.makespan) task = last;
    }
    while (task != flat_.tasks()) {
        const std::int64_t begin = start(task);
        const std::uint32_t previous = previous_[task];
        std::uint32_t next = flat_.tasks();
        if (previous != flat_.tasks() && end_[previous] == begin) {
            critical_.push_back(task);
            next = previous;
        } else {
            for (const Arc& arc : before_[task])
                if (end_[arc.task] + arc.lag_ns == begin) next = arc.task;
        }
        task = next;
    }
    return critical_;
}

std::uint32_t Walk::neighbour(std::uint32_t task, std::int64_t distance) const {
    const std::uint32_t rank = flat_.rank_of[task];
    const std::int64_t spot = static_cast<std::int64_t>(spot_[task]) + distance;
    if (spot < first_[rank] || spot >= first_[rank + 1]) return none;
    return row_[static_cast<std::size_t>(spot)];
}

Walk::Levels Walk::levels(std::uint32_t rank) const {
    Levels levels;
    double sum = 0;
    for (std::uint32_t k = first_[rank]; k < first_[rank + 1]; ++k) {
        const std::int64_t level = used_[k] + cost_[row_[k]].acquire;
        levels.peak = std::max(levels.peak, level);
        sum += static_cast<double>(level);
    }
    if (first_[rank] < first_[rank + 1]) levels.average = sum / static_cast<double>(first_[rank + 1] - first_[rank]);
    return levels;
}

bool Walk::overlap(std::uint32_t pair, std::uint32_t other) const {
    const auto span = [&](std::uint32_t which) {
        const emulator::Pair& p = flat_.problem().pairs[which];
        return std::pair(spot_[index(p.forward)], spot_[index(p.weight ? *p.weight : p.backward)]);
    };
    const auto [begin, end] = span(pair);
    const auto [other_begin, other_end] = span(other);
    return begin < other_end && other_begin < end;
}

}  // namespace pipeweaver::search
