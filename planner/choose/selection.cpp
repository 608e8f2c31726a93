#include "planner/choose/selection.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

[[noreturn]] void nothing_fits(const Comparison& compared) {
    for (const auto& replica : compared)
        for (const Compared& one : replica) {
            if (one.known.shortage) fail(ErrorKind::limit, "{}", one.known.shortage->text());
            if (!one.found.why_not.empty()) fail(ErrorKind::limit, "{}: {}", one.partition().name, one.found.why_not);
        }
    fail(ErrorKind::limit, "no partition has a schedule that fits the ranks' memory");
}

// Of all replicas; nothing: one of them has no schedule.
std::optional<Duration> slowest_of(const Comparison& compared, std::size_t partition) {
    Duration slowest{};
    for (const auto& replica : compared) {
        const search::Found& found = replica[partition].found;
        if (!found.schedule) return std::nullopt;
        slowest = std::max(slowest, found.replay.makespan);
    }
    return slowest;
}

// The searched partition whose slowest replica is fastest; ties go to the earlier.
std::size_t winner(const Comparison& compared, const std::vector<std::size_t>& searched) {
    std::optional<std::size_t> best;
    for (const std::size_t p : searched) {
        const auto time = slowest_of(compared, p);
        if (time && (!best || *time < *slowest_of(compared, *best))) best = p;
    }
    if (!best) nothing_fits(compared);
    return *best;
}

// A problem with what was found for it, and all replicas of a partition.
struct Solved {
    const StepProblem* step;
    search::Found* found;
};
using Way = std::vector<Solved>;
using Picks = std::vector<std::size_t>;  // for each problem of a way: 0 is `found`'s schedule, k is near[k - 1]

bool proven(const Solved& solved) { return solved.found->replay.makespan == solved.found->bound; }

const Solved& slowest_of(const Way& way) {
    return *std::max_element(way.begin(), way.end(), [](const Solved& a, const Solved& b) {
        return a.found->replay.makespan < b.found->replay.makespan;
    });
}

Side side_of(const Way& way, const Picks& picks) {
    Side side;
    for (std::size_t r = 0; r < way.size(); ++r) {
        const search::Found& found = *way[r].found;
        side.push_back({way[r].step, picks[r] == 0 ? &*found.schedule : &found.alternatives[picks[r] - 1].schedule});
    }
    return side;
}

void take(const Solved& solved, std::size_t pick) {
    if (pick == 0) return;
    search::Found& found = *solved.found;
    search::FoundSchedule known = std::move(found.alternatives[pick - 1]);
    found.alternatives.erase(found.alternatives.begin() + static_cast<std::ptrdiff_t>(pick - 1));
    found.schedule = std::move(known.schedule);
    found.replay = replay_on_ports(*solved.step, *found.schedule).replay;
    found.strategy = std::move(known.strategy);
    if (found.stop_reason == StopReason::optimal && !proven(solved)) found.stop_reason = StopReason::stopped;
}

// A choice among schedules of several ways, the first of which has the smallest makespan.
class Choosing {
public:
    Choosing(const std::vector<Way>& ways, std::optional<Duration> limit, const ChoiceRule& rule, std::uint64_t seed,
             const Executor& execute)
        : ways_(ways), rule_(rule), seed_(seed), execute_(execute) {
        choice_.rule = rule;
        const Solved& slowest = slowest_of(ways.front());
        choice_.smallest = slowest.found->replay.makespan;
        longest_ = choice_.smallest;
        if (!keeps(slowest))
            longest_ += Duration{static_cast<std::int64_t>(rule.within * static_cast<double>(longest_.count()))};
        if (limit) longest_ = std::max(choice_.smallest, std::min(longest_, *limit));
    }

    // Changes what was found in the way that is taken; returns its number.
    std::size_t run() {
        std::vector<std::size_t> way{0};
        std::vector<Picks> picks{Picks(ways_.front().size(), 0)};
        for (std::size_t w = 0; w < ways_.size(); ++w) {
            if (slowest_of(ways_[w]).found->replay.makespan > longest_) continue;
            if (w > 0) choice_.alternatives += ways_[w].size();
            Picks best;
            for (const Solved& solved : ways_[w]) best.push_back(best_of(solved));
            if (w == 0 && best == picks.front()) continue;
            way.push_back(w);
            picks.push_back(std::move(best));
        }
        if (way.size() == 1) return 0;
        std::vector<Side> sides;
        for (std::size_t i = 0; i < way.size(); ++i) sides.push_back(side_of(ways_[way[i]], picks[i]));
        const std::size_t taken = judge(sides, rule_.by_median, {seed_}, execute_).taken;
        if (taken == 0) return 0;
        choice_.other = true;
        const Draws draws{.seed = seed_, .paired = true};
        choice_.over_smallest = robustness(sides[taken], {sides.data(), 1}, draws, execute_).against.front();
        for (std::size_t r = 0; r < picks[taken].size(); ++r) take(ways_[way[taken]][r], picks[taken][r]);
        return way[taken];
    }

    const RobustChoice& choice() const { return choice_; }

private:
    // What is proven optimal is given up only where that was asked for.
    bool keeps(const Solved& solved) const { return !rule_.by_median && proven(solved); }

    std::size_t best_of(const Solved& solved) {
        const Duration longest = keeps(solved) ? solved.found->replay.makespan : longest_;
        std::vector<Side> sides{{{solved.step, &*solved.found->schedule}}};
        for (const search::FoundSchedule& known : solved.found->alternatives)
            if (known.makespan <= longest) sides.push_back({{solved.step, &known.schedule}});
        choice_.alternatives += sides.size() - 1;
        return sides.size() == 1 ? 0 : judge(sides, rule_.by_median, {seed_}, execute_).taken;
    }

    const std::vector<Way>& ways_;
    const ChoiceRule& rule_;
    std::uint64_t seed_;
    const Executor& execute_;
    RobustChoice choice_;
    Duration longest_{};
};

Way way_of(Comparison& compared, std::size_t partition) {
    Way way;
    for (auto& replica : compared) way.push_back({&replica[partition].searched(), &replica[partition].found});
    return way;
}

}  // namespace

std::vector<std::size_t> worth_searching(const Comparison& compared) {
    std::vector<std::size_t> chosen;
    std::optional<std::size_t> best;
    const auto slowest = [&](std::size_t p) {
        std::optional<Duration> worst;
        for (const auto& replica : compared) {
            const PolicyRun* fastest = replica[p].known.fastest();
            if (fastest == nullptr) return std::optional<Duration>();
            worst = std::max(worst.value_or(Duration{0}), fastest->makespan());
        }
        return worst;
    };
    for (std::size_t p = 0; p < compared.front().size(); ++p) {
        if (p == 0) {
            if (!compared.front()[0].known.shortage) chosen.push_back(0);
        } else if (slowest(p) && (!best || *slowest(p) < *slowest(*best))) {
            best = p;
        }
    }
    if (best) chosen.push_back(*best);
    return chosen;
}

void search_in(Compared& compared, const Request& request, const SearchWanted& wanted, const Executor& execute,
               const Limits& limits) {
    search::Options options{"default", request.seed, request.max_rounds, {}, {}, {}};
    options.bounds = wanted.bounds;
    const StepProblem& whole = compared.known.cut.step;
    options.alternatives =
        wanted.rule.near(whole.problem.tasks.size(), static_cast<std::size_t>(request.setup->layout.dp));
    auto known = searchable(compared.known, request.split == Split::never ? std::nullopt : split_step(whole));
    if (wanted.more) {
        for (schedule::Schedule& one : wanted.more(whole)) known.starts.push_back(std::move(one));
        if (known.split)
            for (schedule::Schedule& one : wanted.more(*known.split)) known.split_starts.push_back(std::move(one));
    }
    auto searched = search_split(known, request.split, options, execute, limits);
    compared.found = std::move(searched.found);
    if (searched.split) compared.parts = std::move(known.split);
}

Selection select(Comparison& compared, const std::vector<std::size_t>& searched, std::optional<Duration> limit,
                 const ChoiceRule& rule, std::uint64_t seed, const Executor& execute) {
    std::vector<std::size_t> partitions{winner(compared, searched)};
    for (const std::size_t p : searched)
        if (p != partitions.front() && slowest_of(compared, p)) partitions.push_back(p);
    std::vector<Way> ways;
    ways.reserve(partitions.size());
    for (const std::size_t p : partitions) ways.push_back(way_of(compared, p));
    Choosing choosing(ways, limit, rule, seed, execute);
    const std::size_t taken = choosing.run();
    return {partitions[taken], choosing.choice()};
}

RobustChoice choose(const StepProblem& step, search::Found& found, std::optional<Duration> limit,
                    const ChoiceRule& rule, std::uint64_t seed, const Executor& execute) {
    const std::vector<Way> ways{{{&step, &found}}};
    Choosing choosing(ways, limit, rule, seed, execute);
    choosing.run();
    return choosing.choice();
}

std::size_t slowest_replica(const Comparison& compared, std::size_t best) {
    return slowest_replicas(compared, best, 1).front();
}

std::vector<std::size_t> slowest_replicas(const Comparison& compared, std::size_t best, std::size_t most) {
    std::vector<std::size_t> replicas(compared.size());
    std::iota(replicas.begin(), replicas.end(), std::size_t{0});
    if (replicas.size() <= most) return replicas;
    std::stable_sort(replicas.begin(), replicas.end(), [&](std::size_t a, std::size_t b) {
        return compared[a][best].found.replay.makespan > compared[b][best].found.replay.makespan;
    });
    replicas.resize(most);
    std::sort(replicas.begin(), replicas.end());
    return replicas;
}

}  // namespace pipeweaver::planner
