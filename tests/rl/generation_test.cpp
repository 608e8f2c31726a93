// Answers decoded by instances: by hand, and against one token step after the other.
#include "pipeweaver/rl/generation.hpp"

#include "pipeweaver/base/random.hpp"
#include "tests/rl/slow_generation.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::rl;

namespace {

using namespace std::chrono_literals;

std::vector<Duration> times(std::initializer_list<int> ns) {
    std::vector<Duration> all;
    for (const int one : ns) all.emplace_back(one);
    return all;
}

TEST_CASE("an answer that waits takes the slot of the first that ends") {
    const std::vector<std::int64_t> answers{3, 5, 2};
    Decoding decoding{.token = times({10, 15})};
    CHECK(generate(decoding, answers, 1).ends == times({45, 75, 75}));

    decoding.prompt = 7ns;  // two, and later one, while others wait
    CHECK(generate(decoding, answers, 1).ends == times({59, 96, 96}));
    CHECK(generate(decoding, answers, 1).end == 96ns);
}

TEST_CASE("tokens in front slow each token step down") {
    const std::vector<std::int64_t> answers{3};
    CHECK(generate({.token = times({10}), .front_ps = 1000, .prompt = {}, .prompt_tokens = 10}, answers, 1).end ==
          63ns);
    CHECK(generate({.token = times({10}), .front_ps = 10, .prompt = {}, .prompt_tokens = 10}, answers, 1).end == 31ns);
}

TEST_CASE("the tail moves to one instance and goes on where it was") {
    const std::vector<std::int64_t> answers{2, 6};
    const auto found = generate({.token = times({10, 12})}, answers, 2, Tail{1, 1, 5ns});
    CHECK(found.ends == times({20, 65}));
    CHECK(found.busy == times({65, 20}));
    CHECK(found.tail_moves == 20ns);
}

TEST_CASE("every token step one by one gives the same ends, with tails and without") {
    std::int64_t moved = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
        Decoding decoding{
            .token = {}, .front_ps = 1000 * below(3), .prompt = Duration{below(30)}, .prompt_tokens = below(5)};
        Duration token{1 + below(20)};
        for (std::int64_t slots = 1 + below(4); slots > 0; --slots)
            decoding.token.push_back(token += Duration{below(5)});
        std::vector<std::int64_t> answers;
        for (std::int64_t i = 1 + below(12); i > 0; --i) answers.push_back(1 + below(9));
        const std::int64_t instances = 1 + below(4);
        std::optional<Tail> tail;
        if (below(2) == 0)
            tail =
                Tail{1 + below(answers.size()), 1 + below(static_cast<std::uint64_t>(instances)), Duration{below(9)}};
        const Generation slow = SlowGeneration(decoding, answers, instances, tail).run();
        const Generation fast = generate(decoding, answers, instances, tail);
        CHECK(fast.ends == slow.ends);
        CHECK(fast.busy == slow.busy);
        CHECK(fast.end == slow.end);
        CHECK(fast.tail_moves == slow.tail_moves);
        if (slow.tail_moves) ++moved;
    }
    CHECK(moved > 100);
}

TEST_CASE("what is fitted takes as long as was measured") {
    const std::vector<std::int64_t> answers{300, 5000, 1200, 40};
    const Decoding decoding{.token = times({1'000'000, 1'100'000}), .front_ps = 50, .prompt = 3ms, .prompt_tokens = 64};
    const Duration end = generate(fitted(decoding, answers, 2, 90s), answers, 2).end;
    CHECK(std::abs(end.count() - 90'000'000'000) < 90'000'000);  // a thousandth: picoseconds are rounded
}

}  // namespace
