#include "groups/timetable.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::groups {

Timetable::Timetable(const Split& split, std::span<const std::size_t> taken, std::optional<Duration> longest)
    : longest_(longest) {
    PIPEWEAVER_ASSERT(taken.size() == split.groups.size());
    for (std::size_t g = 0; g < taken.size(); ++g) add_group(split, g, split.groups[g].choices[taken[g]]);
    for (const Bridge& bridge : split.bridges) {
        const Choice& from = split.groups[bridge.from].choices[taken[bridge.from]];
        const Choice& to = split.groups[bridge.to].choices[taken[bridge.to]];
        link(last_[bridge.from], first_[bridge.to], std::max(from.bridge, to.bridge));
    }
    const auto rounds = static_cast<std::size_t>(split.rounds);
    limit(split);
    run(rounds);
}

void Timetable::add_group([[maybe_unused]] const Split& split, std::size_t group, const Choice& choice) {
    first_.push_back(rows_.size());
    for (const Stage& stage : choice.stages) {
        PIPEWEAVER_ASSERT(stage.forward.size() == static_cast<std::size_t>(split.rounds));
        PIPEWEAVER_ASSERT(stage.backward.size() == stage.forward.size() && stage.most_in_flight >= 1);
        Row row;
        row.times = &stage;
        row.group = group;
        row.tail = choice.tail;
        row.rest = std::accumulate(stage.forward.begin(), stage.forward.end(), Duration{});
        row.rest = std::accumulate(stage.backward.begin(), stage.backward.end(), row.rest);
        rows_.push_back(std::move(row));
    }
    last_.push_back(rows_.size() - 1);
    for (std::size_t r = first_.back(); r < last_.back(); ++r) link(r, r + 1, choice.hop);
}

void Timetable::link(std::size_t from, std::size_t to, Duration lag) {
    rows_[from].after.push_back({to, lag});
    rows_[to].before.push_back({from, lag});
}

void Timetable::limit(const Split& split) {
    const auto rounds = static_cast<std::size_t>(split.rounds);
    std::vector<std::size_t> behind(rows_.size(), 1);
    for (std::size_t r = rows_.size(); r-- > 0;)
        for (const Link& next : rows_[r].after) behind[r] = std::max(behind[r], behind[next.stage] + 1);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        Row& row = rows_[r];
        const auto most = static_cast<std::size_t>(row.times->most_in_flight);
        row.ahead = std::min({rounds, most, behind[r]});
        for (const Link& previous : row.before) row.ahead = std::min(row.ahead, rows_[previous.stage].ahead);
        is_longer_ = is_longer_ || (split.as_far && row.ahead < std::min(rounds, behind[r]));
    }
}

// A stage with fewer forwards ahead than one behind it would wait for a backward that waits for its forward: limit()
// rules that out, so some stage can always go on.
void Timetable::run(std::size_t rounds) {
    for (Row& row : rows_) {
        row.forward_end.reserve(rounds);
        row.backward_end.reserve(rounds);
    }
    for (bool moved = true; moved && !is_longer_;) {
        moved = false;
        for (Row& row : rows_)
            while (advance(row, rounds)) moved = true;
        for (std::size_t r = rows_.size(); r-- > 0;)
            while (advance(rows_[r], rounds)) moved = true;
    }
    for ([[maybe_unused]] const Row& row : rows_) PIPEWEAVER_ASSERT(is_longer_ || row.backwards == rounds);
}

bool Timetable::advance(Row& row, std::size_t rounds) {
    if (row.backwards == rounds || is_longer_) return false;
    const bool forward = row.forwards < rounds && row.forwards < row.backwards + row.ahead;
    return forward ? go_forward(row) : go_back(row);
}

bool Timetable::go_forward(Row& row) {
    Duration start = row.now;
    for (const Link& previous : row.before) {
        const Row& from = rows_[previous.stage];
        if (from.forwards <= row.forwards) return false;
        start = std::max(start, from.forward_end[row.forwards] + previous.lag);
    }
    if (row.forwards == 0) row.begins = start;
    pass(row, start, row.times->forward[row.forwards]);
    row.forward_end.push_back(row.now);
    ++row.forwards;
    return true;
}

bool Timetable::go_back(Row& row) {
    Duration start = row.now;
    for (const Link& next : row.after) {
        const Row& from = rows_[next.stage];
        if (from.backwards <= row.backwards) return false;
        start = std::max(start, from.backward_end[row.backwards] + next.lag);
    }
    pass(row, start, row.times->backward[row.backwards]);
    row.backward_end.push_back(row.now);
    ++row.backwards;
    return true;
}

void Timetable::pass(Row& row, Duration start, Duration time) {
    row.now = start + time;
    row.rest -= time;
    is_longer_ = is_longer_ || (longest_ && row.now + row.rest + row.tail > *longest_);
}

Duration Timetable::step() const {
    Duration step{};
    for (const Row& row : rows_) step = std::max(step, row.now + row.tail);
    return step;
}

Replayed Timetable::replayed() const {
    Replayed replayed{step(), std::vector<Spent>(first_.size()), {}};
    replayed.ahead.resize(first_.size());
    for (const Row& row : rows_) {
        Spent& spent = replayed.spent[row.group];
        replayed.ahead[row.group].push_back(static_cast<std::int64_t>(row.ahead));
        Duration busy{};
        for (std::size_t r = 0; r < row.forwards; ++r) busy += row.times->forward[r] + row.times->backward[r];
        spent.busy += busy;
        spent.fill += row.begins;
        spent.waiting += row.now - row.begins - busy;
        spent.ending += row.tail;
        spent.drain += replayed.step - row.now - row.tail;
    }
    return replayed;
}

}  // namespace pipeweaver::groups
