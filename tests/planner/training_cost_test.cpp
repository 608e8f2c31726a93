// What a whole training run takes at the pace of a step.
#include "pipeweaver/planner/training_cost.hpp"

#include "pipeweaver/base/error.hpp"

#include <doctest/doctest.h>

#include <chrono>

using namespace pipeweaver;
using namespace pipeweaver::planner;

TEST_CASE("a training run is its steps, and its GPUs are paid for all of them") {
    workloads::Cluster cluster = workloads::find_cluster("h100-sxm:32");
    cluster.price_per_gpu_hour = 2.5;
    // 1001 tokens are 11 steps of 100: 11 x 360 s = 1.1 h, on 32 GPUs 35.2 GPU-hours.
    const auto cost = training_cost(1001, std::chrono::seconds(360), 100, cluster);
    CHECK(cost.steps == 11);
    CHECK(cost.days == doctest::Approx(1.1 / 24));
    CHECK(cost.gpu_hours == doctest::Approx(35.2));
    CHECK(*cost.usd == doctest::Approx(88));
    CHECK(*cost.kwh == doctest::Approx(35.2 * 0.7));
    CHECK(training_text(cost, cluster) == "0.0 days, 35 GPU-hours, 88 USD at 2.50 a GPU-hour, 25 kWh at 700 W a GPU");
}

TEST_CASE("what is not known of price and power is left out") {
    const workloads::Cluster cluster = workloads::find_cluster("cpu:8");
    const auto cost = training_cost(1'000'000'000, std::chrono::milliseconds(500), 1000, cluster);
    CHECK(!cost.usd);
    CHECK(!cost.kwh);
    CHECK(training_text(cost, cluster) == "5.8 days, 1,111 GPU-hours");
}

TEST_CASE("tokens are numbers with a magnitude") {
    CHECK(parse_tokens("300B") == 300'000'000'000);
    CHECK(parse_tokens("1.5t") == 1'500'000'000'000);
    CHECK(parse_tokens("20M") == 20'000'000);
    CHECK(parse_tokens("64k") == 64'000);
    CHECK(parse_tokens("12345") == 12345);
    for (const char* text : {"", "B", "-1B", "0", "0.1", "3x", "3BB", "1e9", "20000T", "nan"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(static_cast<void>(parse_tokens(text)), Error);
    }
    CHECK(tokens_text(300'000'000'000) == "300 B");
    CHECK(tokens_text(1'500'000) == "1.5 M");
    CHECK(tokens_text(999) == "999");
}
