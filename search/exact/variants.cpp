#include "search/exact/variants.hpp"

#include "search/bounds/one_machine.hpp"

#include <algorithm>
#include <tuple>

namespace pipeweaver::search {

namespace {

std::uint32_t rank_of(const Flat& flat, const schedule::Pair& pair) { return flat.rank_of[index(pair.forward)]; }

// Leaves the pair this mode only.
void set_only_mode(schedule::Problem& problem, schedule::Pair& pair, const schedule::Mode& mode) {
    pair.modes = {schedule::Mode{mode}};
    const auto costs = schedule::costs_in(pair, pair.modes.front());
    schedule::apply(problem.tasks[index(pair.forward)], costs[0]);
    schedule::apply(problem.tasks[index(pair.backward)], costs[1]);
    if (pair.weight) schedule::apply(problem.tasks[index(*pair.weight)], costs[2]);
}

// In every number the smallest over the pair's modes that fit.
schedule::Mode smallest_of(const Flat& flat, const schedule::Pair& pair) {
    std::vector<schedule::Mode> modes;
    for (std::uint32_t m = 0; m < pair.modes.size(); ++m)
        if (flat.fits(static_cast<std::uint32_t>(pair.forward), m)) modes.push_back(pair.modes[m]);
    schedule::Mode least = modes.front();
    for (const schedule::Mode& mode : modes) {
        least.forward = std::min(least.forward, mode.forward);
        least.backward = std::min(least.backward, mode.backward);
        least.weight = std::min(least.weight, mode.weight);
        least.held = std::min(least.held, mode.held);
        least.forward_transient = std::min(least.forward_transient, mode.forward_transient);
        least.transient = std::min(least.transient, mode.transient);
        least.kept = std::min(least.kept, mode.kept);
    }
    // A backward gives nothing back that it did not find or take.
    least.kept = std::min(least.kept, least.held + least.transient);
    return least;
}

bool gives_back_alone(const Flat& flat, std::uint32_t task) {
    return flat.pair_of[task] == schedule::Replayer::unpaired && flat.cost(task, 0).net() < 0;
}

}  // namespace

std::unique_ptr<const Variant> with_choice_on(const Flat& flat, const Rules& rules, std::uint32_t rank) {
    for (std::uint32_t i = 0; i < flat.tasks(); ++i)
        if (flat.rank_of[i] != rank && gives_back_alone(flat, i)) return nullptr;
    schedule::Problem easier = flat.problem();
    bool any = false;
    for (schedule::Pair& pair : easier.pairs) {
        if (rank_of(flat, pair) == rank || pair.modes.size() == 1) continue;
        any = true;
        set_only_mode(easier, pair, smallest_of(flat, pair));
    }
    return any ? std::make_unique<const Variant>(std::move(easier), rules) : nullptr;
}

std::unique_ptr<const Variant> with_rank_as_in(const Flat& flat, const Rules& rules, std::uint32_t rank,
                                               const schedule::Schedule& schedule) {
    schedule::Problem narrower = flat.problem();
    for (std::size_t p = 0; p < narrower.pairs.size(); ++p) {
        schedule::Pair& pair = narrower.pairs[p];
        if (rank_of(flat, pair) == rank) set_only_mode(narrower, pair, pair.modes[schedule.mode[p]]);
    }
    Rules narrower_rules = rules;
    narrower_rules.fixed_order.resize(flat.ranks());
    narrower_rules.fixed_order[rank] = schedule.order[rank];
    return std::make_unique<const Variant>(std::move(narrower), narrower_rules);
}

std::optional<std::uint32_t> busiest_with_choice(const Flat& flat) {
    const Tightened windows = tightened(flat);
    std::vector<std::vector<Job>> jobs(flat.ranks());
    std::vector<std::int64_t> work(flat.ranks(), 0);
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        jobs[flat.rank_of[i]].push_back({windows.head[i], flat.shortest[i], windows.tail[i]});
        work[flat.rank_of[i]] += flat.shortest[i];
    }
    std::vector<char> choice(flat.ranks(), 0);
    for (const schedule::Pair& pair : flat.problem().pairs)
        if (pair.modes.size() > 1) choice[rank_of(flat, pair)] = 1;
    std::optional<std::uint32_t> busiest;
    std::pair<std::int64_t, std::int64_t> most;
    for (std::uint32_t r = 0; r < flat.ranks(); ++r) {
        if (choice[r] == 0) continue;
        const std::pair now(preemptive_makespan(jobs[r]), work[r]);
        if (busiest && now <= most) continue;
        busiest = r;
        most = now;
    }
    return busiest;
}

}  // namespace pipeweaver::search
