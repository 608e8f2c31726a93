// Lengths of answers, typed in and of a file.
#include "pipeweaver/rl/lengths.hpp"

#include "pipeweaver/base/error.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

using namespace pipeweaver;
using namespace pipeweaver::rl;

namespace {

std::vector<std::int64_t> sorted(std::vector<std::int64_t> tokens) {
    std::sort(tokens.begin(), tokens.end());
    return tokens;
}

TEST_CASE("answers lie in the middle of equal shares, in an order of the seed") {
    const Lengths lengths = lengths_of("0:100,50:200,100:400");
    CHECK(sorted(drawn(lengths, 4, 1)) == std::vector<std::int64_t>{125, 175, 250, 350});
    CHECK(drawn(lengths, 64, 1) == drawn(lengths, 64, 1));
    CHECK(drawn(lengths, 64, 1) != drawn(lengths, 64, 2));
    CHECK(sorted(drawn(lengths, 64, 1)) == sorted(drawn(lengths, 64, 2)));
    CHECK(lengths_of("0:1k,100:2K") == Lengths{{0, 1024}, {100, 2048}});
}

TEST_CASE("a file of as many answers gives these") {
    const testing::TemporaryFolder folder("lengths");
    const auto path = folder.path() / "lengths.txt";
    std::ofstream(path) << "700\n30\r\n\n9k\n31\n";
    CHECK(sorted(drawn(lengths_of(path), 4, 7)) == std::vector<std::int64_t>{30, 31, 700, 9216});
    std::ofstream(path) << "30\nmany\n";
    CHECK_THROWS_WITH_AS(lengths_of(path),
                         (path.string() + ":2: is 'many', must be a whole number from 1 to 1000000").c_str(), Error);
}

TEST_CASE("a mean and the longest are met") {
    const auto tokens = drawn(lengths_of("mean:700,longest:1500"), 1'000, 1);
    double sum = 0;
    for (const std::int64_t one : tokens) sum += static_cast<double>(one);
    CHECK(std::abs(sum / 1'000 - 700) < 7);
    CHECK(*std::max_element(tokens.begin(), tokens.end()) > 1'490);
    const auto skewed = drawn(lengths_of("mean:1000,longest:100000"), 10'000, 1);
    CHECK(std::abs(std::accumulate(skewed.begin(), skewed.end(), std::int64_t{0}) / 10'000 - 1'000) < 20);
    CHECK(drawn(lengths_of("mean:9,longest:9"), 3, 1) == std::vector<std::int64_t>{9, 9, 9});
}

TEST_CASE("quantiles that cannot be are refused") {
    const auto refused = [](const std::string& text, const char* message) {
        CAPTURE(text);
        CHECK_THROWS_WITH_AS(lengths_of(text), message, Error);
    };
    refused("0:10,50", "--lengths: is '50', must be PERCENT:TOKENS, like 50:2k, up to 1000000 tokens");
    refused("0:10,200:20", "--lengths: is '200:20', must be PERCENT:TOKENS, like 50:2k, up to 1000000 tokens");
    refused("0:10,50:5,100:20", "--lengths: is '50:5', must be above the one before it, in percent and tokens");
    refused("mean:9,longest:8",
            "--lengths: is 'mean:9,longest:8', must be mean:TOKENS,longest:TOKENS, the mean no more");
    refused("mean:9,100:10", "--lengths: is 'mean:9,100:10', must be mean:TOKENS,longest:TOKENS, the mean no more");
    refused("10:10,100:20", "--lengths: is '10:10,100:20', must be from 0 to 100 percent, like 0:256,50:2k,100:8k");
}

}  // namespace
