#include "search/policies/module_policies.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace pipeweaver::search {

namespace {

// Work of each module, by name.
std::map<std::string_view, std::int64_t> work_of_modules(const Flat& flat) {
    std::map<std::string_view, std::int64_t> work;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) work[flat.problem().tasks[i].module] += flat.shortest[i];
    return work;
}

// How many microbatches fill the pipeline: the longest path of one over the work of its busiest rank, averages.
std::uint32_t microbatches_in_flight(const Flat& flat) {
    const auto& tasks = flat.problem().tasks;
    struct Span {
        std::int64_t first = INT64_MAX, last = 0;
        std::vector<std::int64_t> work;  // per rank
    };
    std::map<std::int64_t, Span> spans;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        Span& mine = spans[tasks[i].microbatch.value_or(-1)];
        mine.work.resize(flat.ranks());
        mine.work[flat.rank_of[i]] += flat.shortest[i];
        mine.first = std::min(mine.first, flat.head[i]);
        mine.last = std::max(mine.last, flat.head[i] + flat.shortest[i]);
    }
    double length = 0, pace = 1;
    for (const auto& [microbatch, span] : spans) {
        length += static_cast<double>(span.last - span.first);
        pace += static_cast<double>(*std::max_element(span.work.begin(), span.work.end()));
    }
    return 1 + static_cast<std::uint32_t>(std::min(length / pace, static_cast<double>(spans.size())));
}

}  // namespace

std::string one_module_only(const Flat& flat) {
    const auto work = work_of_modules(flat);
    if (work.contains("")) return "not every task has a module";
    if (work.size() < 2) return "there is only one module";
    return {};
}

ListRules bubble_filling_rules(const Flat& flat) {
    const auto work = work_of_modules(flat);
    const auto backbone = std::max_element(work.begin(), work.end(), [](const auto& a, const auto& b) {
                              return a.second < b.second;
                          })->first;
    const auto key = [&](std::uint32_t i) {
        return std::tuple(flat.problem().tasks[i].module != backbone, flat.late[i] == 0, flat.place[i]);
    };
    const std::uint32_t few = microbatches_in_flight(flat);
    return {keys_by(flat.tasks(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); }),
            {0, few, 2 * few}};
}

ListRules nesting_rules(const Flat& flat) {
    const auto key = [&](std::uint32_t i) {
        return std::tuple(flat.late[i] == 0, flat.problem().tasks[i].microbatch.value_or(-1), flat.place[i]);
    };
    const std::uint32_t few = microbatches_in_flight(flat);
    return {keys_by(flat.tasks(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); }), {few, 2 * few}};
}

}  // namespace pipeweaver::search
