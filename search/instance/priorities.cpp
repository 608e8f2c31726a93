#include "search/instance/priorities.hpp"

#include <map>
#include <set>
#include <tuple>

namespace pipeweaver::search {

namespace {

// Per task: the work of its microbatch.
std::vector<std::int64_t> microbatch_work(const Flat& flat) {
    const auto& all = flat.problem().tasks;
    std::map<std::int64_t, std::int64_t> work;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) work[all[i].microbatch.value_or(-1)] += flat.shortest[i];
    std::vector<std::int64_t> of_task;
    of_task.reserve(all.size());
    for (const auto& task : all) of_task.push_back(work[task.microbatch.value_or(-1)]);
    return of_task;
}

template <class Key>
std::vector<std::uint32_t> sorted(const Flat& flat, Key key) {
    return keys_by(flat.tasks(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
}

}  // namespace

std::vector<std::uint32_t> segments_of(const Flat& flat) {
    const auto& all = flat.problem().tasks;
    std::vector<std::set<std::int64_t>> stages(flat.ranks());
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) stages[flat.rank_of[i]].insert(all[i].stage.value_or(0));
    std::vector<std::map<std::int64_t, std::uint32_t>> number(flat.ranks());
    for (std::uint32_t r = 0; r < flat.ranks(); ++r)
        for (const std::int64_t stage : stages[r])
            number[r].emplace(stage, static_cast<std::uint32_t>(number[r].size()));
    std::vector<std::uint32_t> segment(flat.tasks());
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) segment[i] = number[flat.rank_of[i]][all[i].stage.value_or(0)];
    return segment;
}

std::vector<Priority> priorities(const Flat& flat) {
    const auto work = microbatch_work(flat);
    const auto segment = segments_of(flat);
    // Backwards take segments and microbatches the other way round.
    const auto turned = [&](std::uint32_t i, std::int64_t value) { return flat.late[i] != 0 ? -value : value; };
    return {
        {"in order", flat.place},
        {"critical path", sorted(flat, [&](std::uint32_t i) { return std::pair(-flat.tail[i], flat.place[i]); })},
        {"short first",
         sorted(flat, [&](std::uint32_t i) { return std::tuple(flat.late[i], turned(i, work[i]), flat.place[i]); })},
        {"long first",
         sorted(flat, [&](std::uint32_t i) { return std::tuple(flat.late[i], turned(i, -work[i]), flat.place[i]); })},
        {"breadth first", sorted(flat, [&](std::uint32_t i) {
             return std::tuple(flat.late[i], turned(i, segment[i]), flat.place[i]);
         })}};
}

}  // namespace pipeweaver::search
