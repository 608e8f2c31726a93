#include "search/improve/with_less_memory.hpp"

#include "search/improve/initial_schedules.hpp"
#include "search/policies/policy_row.hpp"

#include <array>
#include <utility>

namespace pipeweaver::search {

namespace {

constexpr std::array percents{95, 90, 85, 80, 75, 70, 65, 60, 55, 50};

std::int64_t percent_of(std::int64_t bytes, int percent) { return bytes / 100 * percent + bytes % 100 * percent / 100; }

Candidate best_under_less(const Flat& flat, const std::string& policy) {
    Candidate best;
    const auto usual = apply_list_policy(policy, flat);
    if (!usual.schedule) return best;
    Flat less = flat;
    for (const int percent : percents) {
        for (std::uint32_t r = 0; r < flat.ranks(); ++r)
            less.room[r] = percent_of((usual.replay.peak[r] - flat.problem().ranks[r].base).count, percent);
        const auto result = apply_list_policy(policy, less);
        if (!result.schedule) continue;
        auto candidate = given_schedule(flat, *result.schedule);
        if (better(candidate, best)) best = std::move(candidate);
    }
    return best;
}

}  // namespace

std::vector<UnderLess> with_less_memory(const Flat& flat, const Executor& execute) {
    std::vector<UnderLess> all;
    for (const Policy& policy : policies())
        if (!policy.fixed_order) all.push_back({policy.name, {}});
    execute(all.size(), [&](std::size_t k) { all[k].candidate = best_under_less(flat, all[k].policy); });
    std::erase_if(all, [](const UnderLess& one) { return !one.candidate.valid(); });
    return all;
}

}  // namespace pipeweaver::search
