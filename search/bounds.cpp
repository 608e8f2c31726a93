#include "pipeweaver/search/bounds.hpp"

#include "pipeweaver/base/assert.hpp"
#include "search/flat.hpp"
#include "search/one_machine.hpp"

#include <algorithm>

namespace pipeweaver::search {

namespace {

std::int64_t critical_path(const Flat& flat) {
    std::int64_t longest = 0;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i)
        longest = std::max(longest, flat.head[i] + flat.shortest[i] + flat.rest[i]);
    return longest;
}

std::vector<std::vector<Job>> jobs_by_rank(const Flat& flat, const std::vector<std::int64_t>& head,
                                           const std::vector<std::int64_t>& rest) {
    std::vector<std::vector<Job>> jobs(flat.ranks());
    for (std::uint32_t i = 0; i < flat.tasks(); ++i)
        jobs[flat.rank_of[i]].push_back({head[i], flat.shortest[i], rest[i]});
    return jobs;
}

std::int64_t rank_work(const Flat& flat) {
    std::int64_t largest = 0;
    for (const auto& jobs : jobs_by_rank(flat, flat.head, flat.rest))
        if (!jobs.empty()) largest = std::max(largest, head_work_tail(jobs));
    return largest;
}

std::int64_t one_machine(const Flat& flat) {
    const auto [head, rest] = tightened(flat);
    std::int64_t largest = 0;
    for (const auto& jobs : jobs_by_rank(flat, head, rest)) largest = std::max(largest, preemptive_makespan(jobs));
    return largest;
}

}  // namespace

std::vector<Bound> lower_bounds(const emulator::Replayer& replayer) {
    const Flat flat(replayer);
    return {{"critical path", Duration{critical_path(flat)}},
            {"rank work", Duration{rank_work(flat)}},
            {"one machine", Duration{one_machine(flat)}}};
}

Bound best_bound(const emulator::Replayer& replayer) {
    const auto bounds = lower_bounds(replayer);
    return *std::max_element(bounds.begin(), bounds.end(),
                             [](const Bound& a, const Bound& b) { return a.value < b.value; });
}

double relative_gap(Duration found, Duration bound) {
    PIPEWEAVER_ASSERT(bound > Duration::zero());
    return static_cast<double>((found - bound).count()) / static_cast<double>(bound.count());
}

}  // namespace pipeweaver::search
