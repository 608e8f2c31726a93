#include "search/improve/spend_memory.hpp"

#include "search/instance/modes.hpp"
#include "search/tuning.hpp"

#include <algorithm>

namespace pipeweaver::search {

namespace {

// What each rank uses while each of its tasks runs, in their order.
class Levels {
public:
    Levels(const Flat& flat, const std::vector<std::uint32_t>& sequence, const std::vector<std::uint32_t>& mode)
        : flat_(flat), used_(flat.ranks()), at_(flat.tasks()) {
        std::vector<std::int64_t> held(flat.ranks(), 0);
        for (const std::uint32_t task : sequence) {
            const std::uint32_t rank = flat.rank_of[task];
            const std::uint32_t pair = flat.pair_of[task];
            const Cost& cost = flat.cost(
                task, pair == schedule::Replayer::unpaired ? 0 : mode_of(flat.problem().pairs[pair], mode[pair]));
            at_[task] = used_[rank].size();
            used_[rank].push_back(held[rank] + cost.acquire);
            held[rank] += cost.net();
        }
    }

    std::size_t length(std::uint32_t pair) const {
        const auto tasks = tasks_of(flat_.problem().pairs[pair]);
        return at_[tasks[2]] - at_[tasks[0]] + 1;
    }

    // Goes over to the mode if every level that it changes stays within the rank's room.
    bool change(std::uint32_t pair, std::uint32_t from, std::uint32_t to) {
        if (!walk(
                pair, from, to, [](std::int64_t used, std::int64_t room) { return used <= room; }, 0))
            return false;
        walk(
            pair, from, to, [](std::int64_t, std::int64_t) { return true; }, 1);
        return true;
    }

private:
    // Adds `factor` times the change to each level on the way; false where `holds` says so of a level with the change.
    template <class Holds>
    bool walk(std::uint32_t pair, std::uint32_t from, std::uint32_t to, Holds holds, std::int64_t factor) {
        const auto tasks = tasks_of(flat_.problem().pairs[pair]);
        const std::uint32_t rank = flat_.rank_of[tasks[0]];
        std::vector<std::int64_t>& used = used_[rank];
        std::size_t next = 0;  // of the pair's tasks
        std::int64_t held = 0;
        for (std::size_t p = at_[tasks[0]]; p < used.size(); ++p) {
            std::int64_t change = held;
            if (next < tasks.size() && p == at_[tasks[next]]) {
                const Cost &before = flat_.cost(tasks[next], from), &after = flat_.cost(tasks[next], to);
                change += after.acquire - before.acquire;
                held += after.net() - before.net();
                while (next < tasks.size() && at_[tasks[next]] == p) ++next;
            } else if (next == tasks.size() && held == 0) {
                break;
            }
            if (change != 0 && !holds(used[p] + change, flat_.room[rank])) return false;
            used[p] += factor * change;
        }
        return true;
    }

    const Flat& flat_;
    std::vector<std::vector<std::int64_t>> used_;
    std::vector<std::size_t> at_;  // per task: its place on its rank
};

struct Change {
    double worth = 0;
    std::uint32_t pair = 0, mode = 0;
};

// All that save time, the most for the memory that they take first.
std::vector<Change> changes_of(const Flat& flat, const Levels& levels, const std::vector<std::uint32_t>& mode) {
    std::vector<Change> all;
    const auto& pairs = flat.problem().pairs;
    for (std::uint32_t k = 0; k < pairs.size(); ++k) {
        const schedule::Mode& own = pairs[k].modes[mode_of(pairs[k], mode[k])];
        for (std::uint32_t m = 0; m < pairs[k].modes.size(); ++m) {
            const schedule::Mode& other = pairs[k].modes[m];
            const std::int64_t saved = time_of(own) - time_of(other);
            if (saved <= 0) continue;
            const std::int64_t more = std::max<std::int64_t>(1, (other.held - own.held).count);
            all.push_back(
                {static_cast<double>(saved) / (static_cast<double>(more) * static_cast<double>(levels.length(k))), k,
                 m});
        }
    }
    std::stable_sort(all.begin(), all.end(), [](const Change& a, const Change& b) { return a.worth > b.worth; });
    return all;
}

}  // namespace

void spend_memory(const Flat& flat, IncrementalSchedule& current, Candidate& candidate) {
    Levels levels(flat, candidate.sequence, candidate.mode);
    auto mode = candidate.mode;
    const auto& pairs = flat.problem().pairs;
    bool any = false;
    for (const Change& one : changes_of(flat, levels, mode)) {
        const std::uint32_t own = mode_of(pairs[one.pair], mode[one.pair]);
        if (time_of(pairs[one.pair].modes[one.mode]) >= time_of(pairs[one.pair].modes[own])) continue;
        if (!levels.change(one.pair, own, one.mode)) continue;
        mode[one.pair] = one.mode;
        any = true;
    }
    if (!any) return;
    current.load(candidate.sequence, mode);
    if (!better(current.energy(), candidate.energy)) return;
    // By start time: a task that comes later in time comes later in the sequence, so windows of steps are short.
    auto sequence = candidate.sequence;
    std::stable_sort(sequence.begin(), sequence.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return current.start(a) < current.start(b); });
    current.load(sequence, mode);
    store(current, candidate);
}

bool worth_spending(const Flat& flat) { return flat.tasks() >= tuning.engine.spent_tasks_from; }

}  // namespace pipeweaver::search
