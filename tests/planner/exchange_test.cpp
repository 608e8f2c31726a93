#include "pipeweaver/partition/partitioners.hpp"
#include "planner/replicas/assignment.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using testing::small_request;

namespace {

partition::Partition cut(const Request& request, std::string_view name) {
    return partition::partitioner(name).make(*request.job.setup, request.batch.microbatches, 1);
}

// Of the slowest replica under the policy.
Duration slowest(const Request& request, const partition::Partition& partition, const Assignment& assignment,
                 const std::string& policy) {
    Duration slowest{};
    for (const Microbatches& microbatches : assignment.microbatches) {
        const auto known = evaluate(*request.job.setup, partition, microbatches, {.name = "one"},
                                    {.split = false, .bound = std::nullopt, .policies = {{policy}}});
        slowest = std::max(slowest, known.run(policy)->makespan());
    }
    return slowest;
}

std::vector<std::size_t> all_of(const Assignment& assignment) {
    std::vector<std::size_t> all;
    for (const auto& share : assignment.shares) all.insert(all.end(), share.begin(), share.end());
    std::sort(all.begin(), all.end());
    return all;
}

std::vector<int> images(std::uint64_t seed, std::size_t count) {
    std::mt19937_64 random(seed);
    std::vector<int> images;
    for (std::size_t i = 0; i < count; ++i) images.push_back(static_cast<int>(random() % 24));
    return images;
}

}  // namespace

TEST_CASE("replicas trade microbatches until their plans are more even, and none is lost or doubled") {
    std::size_t traded = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        CAPTURE(seed);
        const Request request = small_request(4, images(seed, 40));
        const auto chain = cut(request, "balanced");
        const Assignment by_load = assign(request.job, request.batch, in_order);
        const Assignment assignment = exchange(request.job, request.batch, chain, by_load, in_order);
        std::vector<std::size_t> every(request.batch.microbatches.size());
        std::iota(every.begin(), every.end(), std::size_t{0});
        CHECK(all_of(assignment) == every);
        for (std::size_t r = 0; r < assignment.shares.size(); ++r) {
            REQUIRE(assignment.microbatches[r].size() == assignment.shares[r].size());
            CHECK(assignment.shares[r].size() == by_load.shares[r].size());
            for (std::size_t i = 0; i < assignment.shares[r].size(); ++i)
                CHECK(assignment.microbatches[r][i].samples ==
                      request.batch.microbatches[assignment.shares[r][i]].samples);
        }
        const double even =
            static_cast<double>(assignment.loads.largest.count()) / static_cast<double>(assignment.loads.mean.count());
        const double before =
            static_cast<double>(by_load.loads.largest.count()) / static_cast<double>(by_load.loads.mean.count());
        CHECK(even <= std::max(before, 1.001));
        if (assignment.shares == by_load.shares) continue;
        ++traded;
        bool better = false;
        for (const std::string policy : {"dual-queue", "gpipe", "interleaved"})
            better = better || slowest(request, chain, assignment, policy) < slowest(request, chain, by_load, policy);
        CHECK(better);
    }
    CHECK(traded >= 2);
}

TEST_CASE("shares do not depend on who asks: threads, or what prices are known already") {
    const Request request = small_request(4, images(1, 40));
    const auto chain = cut(request, "balanced");
    const auto first =
        exchange(request.job, request.batch, chain, assign(request.job, request.batch, in_order), in_order);
    CHECK(exchange(request.job, request.batch, chain, assign(request.job, request.batch, on_threads(3)), on_threads(3))
              .shares == first.shares);
}

TEST_CASE("what was asked for in turn, one replica and several chains stay as they were shared out") {
    Request request = small_request(4, images(2, 40));
    const Assignment by_load = assign(request.job, request.batch, in_order);
    CHECK(exchange(request.job, request.batch, cut(request, "dip"), by_load, in_order).shares == by_load.shares);
    request.job.sharing = partition::Sharing::in_turn;
    const Assignment in_turn = assign(request.job, request.batch, in_order);
    CHECK(exchange(request.job, request.batch, cut(request, "balanced"), in_turn, in_order).shares == in_turn.shares);
    const Request alone = small_request(1, images(2, 8));
    CHECK(exchange(alone.job, alone.batch, cut(alone, "balanced"), assign(alone.job, alone.batch, in_order), in_order)
              .shares.front()
              .size() == 8);
}
