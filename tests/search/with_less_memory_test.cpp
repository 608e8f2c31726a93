// List schedules that are faster with less memory, and what a search makes of them.
#include "search/improve/with_less_memory.hpp"

#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/search.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/verified.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

// Without capacities.
Problem roomy_problem(std::uint32_t n) {
    const Shape shape{.ranks = 2 + n % 3,
                      .microbatches = 4 + n % 5,
                      .stages = 2 + n % 5,
                      .split = n % 2 == 0,
                      .modes = n % 7 < 3,
                      .items = n % 3 == 0};
    Problem problem = random_problem(shape, 500'000 + n);
    for (Rank& rank : problem.ranks) rank.capacity.reset();
    return problem;
}

Problem with_percent_of(Problem problem, const std::vector<Bytes>& peak, std::int64_t percent) {
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) {
        const Bytes base = problem.ranks[r].base;
        problem.ranks[r].capacity = base + Bytes{(peak[r] - base).count * percent / 100};
    }
    return problem;
}

Found found_in(const Problem& problem, std::uint64_t rounds) {
    Options options;
    options.max_rounds = rounds;
    return solve(Replayer(problem), options, in_order);
}

struct Anomaly {
    Duration with_all{}, with_less{};  // of the policy; 0 where it does not apply
};

// The policy with all memory that it wants and, the best of all, with parts of it.
Anomaly anomaly_of(const std::string& policy, const Problem& problem) {
    const auto all = apply_policy(policy, Replayer(problem));
    if (!all.schedule) return {};
    Anomaly found{all.replay.makespan, all.replay.makespan};
    for (std::int64_t percent = 95; percent >= 50; percent -= 5) {
        const auto part = with_percent_of(problem, all.replay.peak, percent);
        const auto less = apply_policy(policy, Replayer(part));
        if (less.schedule) found.with_less = std::min(found.with_less, less.replay.makespan);
    }
    return found;
}

}  // namespace

TEST_CASE("where a list policy is faster with less memory, a search takes the faster schedule before its first round") {
    const std::uint32_t count = testing::full_or_short<std::uint32_t>(60, 12);
    std::uint32_t anomalies = 0;
    double most = 0;
    for (std::uint32_t n = 0; n < count; ++n) {
        CAPTURE(n);
        const Problem problem = roomy_problem(n);
        if (problem.tasks.empty()) continue;
        const Found found = found_in(problem, 0);
        REQUIRE(found.schedule);
        for (const std::string policy : {"dual-queue", "critical-path", "bubble-filling", "nesting"}) {
            CAPTURE(policy);
            const Anomaly anomaly = anomaly_of(policy, problem);
            if (anomaly.with_all == Duration{}) continue;  // it does not apply
            CHECK(found.replay.makespan <= anomaly.with_less);
            if (anomaly.with_less == anomaly.with_all) continue;
            ++anomalies;
            most = std::max(most, 1 - static_cast<double>(anomaly.with_less.count()) /
                                          static_cast<double>(anomaly.with_all.count()));
        }
    }
    CHECK(anomalies >= count / 2);
    CHECK(most > 0.07);
}

TEST_CASE("a policy under less memory can be what all of a search's starts are slower than") {
    // Critical-path takes 121 with 65 % of the memory that it wants, and 123 is the best of all starts.
    const Problem problem = roomy_problem(30);
    const Found found = found_in(problem, 0);
    REQUIRE(found.schedule);
    CHECK(found.history.back().found_by == "critical-path");
    CHECK(found.replay.makespan == anomaly_of("critical-path", problem).with_less);
    CHECK(found.replay.makespan < anomaly_of("critical-path", problem).with_all);
    testing::check_verified(problem, found);
}
