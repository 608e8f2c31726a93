// Microbatches are dealt by what they take to load where that decides.
#include "planner/replicas/loading.hpp"

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "planner/replicas/assignment.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using partition::Shares;
using testing::small_request;

namespace {

using namespace std::chrono_literals;

loader::Loader decoding(const std::string& queue) {
    return loader::find_loader(R"({"format":"pipeweaver-loader/1",)" + queue +
                               R"(,"stages":[{"name":"read","on":"storage","sample_ns":40},)"
                               R"({"name":"decode","on":"core","sample_ns":60},{"name":"copy","on":"copy",)"
                               R"("pack_ns":50}]})");
}

Duration loading_of_two_samples(const std::string& queue) {
    workloads::Microbatch both;
    both.samples = {0, 1};
    return loading_times(decoding(queue), {}, {{}, {}}, {both}).front();
}

// Of all ways to deal to two replicas as many each, the one whose slowest is fastest.
Duration by_trying(const Feeding& of) {
    const std::size_t count = of.costs.size();
    Duration least = Duration::max();
    for (std::uint32_t mask = 0; mask < (1U << count); ++mask) {
        if (static_cast<std::size_t>(std::popcount(mask)) != count / 2) continue;
        Shares shares(2);
        for (std::size_t m = 0; m < count; ++m) shares[(mask >> m) & 1U].push_back(m);
        least = std::min(least, slowest_fed(of, shares));
    }
    return least;
}

// Two replicas of microbatches without images, every other of which has samples that take a long time to decode.
Request every_other_decodes(std::int64_t sample_ns) {
    Request request = small_request(2, {0, 0, 0, 0, 0, 0, 0, 0});
    for (std::size_t i = 0; i < request.batch.samples.size(); ++i) {
        workloads::Item sound{.modality = workloads::Modality::audio, .seconds = i % 2 == 0 ? 1.0 : 0.0};
        request.batch.samples[i].items = {sound};
    }
    loader::Loader loader{.name = "made", .queue = {.workers = 1}, .taking = {}, .stages = {}};
    loader.stages.push_back({.name = "decode", .on = loader::On::core, .rates = {}, .source = {}});
    loader.stages.back().rates.audio_second = Duration{sample_ns};
    request.job.loader = loader;
    return request;
}

Input fed(const Request& request, bool deals_by_loading) {
    EmulationRequest asked;
    asked.job = request.job;
    asked.batch = request.batch;
    asked.any_memory = true;
    asked.loader = request.job.loader;
    if (!deals_by_loading) asked.job.loader.reset();
    return *emulate(asked, in_order).input;
}

}  // namespace

TEST_CASE("a microbatch takes its queue what the slowest of workers, cores and copies take") {
    CHECK(loading_of_two_samples(R"("workers":1)") == 200ns);
    CHECK(loading_of_two_samples(R"("workers":2)") == 100ns);
    CHECK(loading_of_two_samples(R"("workers":4,"cores":1)") == 120ns);
    CHECK(loading_of_two_samples(R"("workers":8)") == 50ns);
    CHECK(loading_of_two_samples(R"("workers":0)") == 250ns);
}

TEST_CASE("shares stay as they are where the loader keeps up, and are dealt by it where it decides") {
    const Shares by_cost{{0, 2}, {1, 3}};
    Feeding of{.costs = {10ns, 10ns, 10ns, 10ns}, .loading = {8ns, 1ns, 8ns, 1ns}, .stages = 1, .beside = true};
    CHECK(slowest_fed(of, by_cost) == 20ns);
    CHECK(!shares_by_loading(of, by_cost));
    of.loading = {100ns, 1ns, 100ns, 1ns};
    CHECK(slowest_fed(of, by_cost) == 200ns);
    const auto shares = shares_by_loading(of, by_cost);
    REQUIRE(shares);
    CHECK(slowest_fed(of, *shares) == 101ns);
    // What cannot be replayed is not dealt by.
    of.loading = {loader::most_work / 2, 1ns, loader::most_work / 2, 1ns};
    CHECK(!shares_by_loading(of, by_cost));
    // A pipeline of four trains a quarter of what it has to do, and waits until it is filled: (20 + 3 * 10) / 4.
    of.loading = {};
    of.loading.resize(4);
    of.stages = 4;
    CHECK(slowest_fed(of, by_cost) == 12ns);
    // The training process loads 16 and trains 20, or loads 9.
    of = {.costs = of.costs, .loading = {8ns, 1ns, 8ns, 1ns}, .stages = 1, .beside = false};
    CHECK(slowest_fed(of, by_cost) == 36ns);
    CHECK(slowest_fed(of, shares_by_loading(of, by_cost).value()) == 29ns);
}

TEST_CASE("no step gets longer by it, and none is a tenth longer than the best that trying all finds") {
    std::size_t changed = 0;
    for (std::uint64_t number = 0; number < 60; ++number) {
        CAPTURE(number);
        Random random(7, number);
        Feeding of{.costs = {}, .loading = {}, .stages = 1, .beside = number % 3 != 0};
        for (int m = 0; m < 10; ++m) {
            of.costs.push_back(Duration{100 + static_cast<std::int64_t>(random.below(900))});
            of.loading.push_back(Duration{static_cast<std::int64_t>(random.below(2'000))});
        }
        const Shares by_cost = partition::balance(of.costs, 2);
        const auto shares = shares_by_loading(of, by_cost);
        const Duration found = slowest_fed(of, shares.value_or(by_cost)), best = by_trying(of);
        CHECK(found <= slowest_fed(of, by_cost));
        CHECK(found <= best + best / 10);
        if (shares) CHECK((*shares)[0].size() == by_cost[0].size());
        changed += shares ? 1 : 0;
    }
    CHECK(changed >= 50);
}

TEST_CASE("GPUs wait less where microbatches are dealt by their loading, and no less where it does not decide") {
    const Request slow = every_other_decodes(20'000'000'000);
    const Assignment by_loading = assign(slow.job, slow.batch, in_order);
    CHECK(by_loading.loads.by_loading);
    for (const auto& share : by_loading.shares)
        CHECK(std::count_if(share.begin(), share.end(), [](std::size_t m) { return m % 2 == 0; }) == 2);
    const Input dealt = fed(slow, true), by_cost = fed(slow, false);
    REQUIRE(by_cost.step == 80s);
    // A worker may have two packs ahead, and waits for GPUs that train for some milliseconds.
    CHECK(dealt.step >= 40s);
    CHECK(dealt.step < 41s);
    CHECK(dealt.waits < by_cost.waits / 2 + 1s);
    const Request quick = every_other_decodes(1);
    CHECK(!assign(quick.job, quick.batch, in_order).loads.by_loading);
    CHECK(fed(quick, true).step == fed(quick, false).step);
    CHECK(fed(quick, true).waits == 0ns);
}
