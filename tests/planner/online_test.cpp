#include "pipeweaver/planner/online.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using pipeweaver::testing::small_request;

namespace {

costdb::CostDatabase costs_of(const Request& request) { return costdb::CostDatabase::embedded(request.cluster.device); }

search::KeepGoing until_rounds(double) { return {}; }

search::KeepGoing at_once(double) {
    return [](const search::Progress&) { return std::optional(schedule::StopReason::stopped); };
}

partition::Partition dip_of(const Request& request, const costdb::CostDatabase& costs) {
    return partition::dip({&request.model, &request.cluster, &costs, request.layout, &request.microbatches});
}

void check_verified(const Request& request, const Plan& plan) {
    std::map<std::string, std::string> files;
    for (auto& file : emit::plan_files(request, plan, "p")) files[file.path.string()] = std::move(file.content);
    for (std::size_t r = 0; r < plan.replicas.size(); ++r) {
        const std::string folder = "p/replica-00" + std::to_string(r);
        const auto verdict =
            testing::verify(files.at(folder + "/problem.json.gz"), files.at(folder + "/solution.json"));
        CHECK_MESSAGE(verdict.ok, verdict.violation);
    }
    CHECK(files.count("p/torch/schedule.csv") == 0);
}

}  // namespace

TEST_CASE("a plan by policy takes as long as the plan's own baseline says") {
    const auto request = small_request(2);
    const auto costs = costs_of(request);
    const auto full = make_plan(request, costs, in_order, until_rounds);
    REQUIRE(full.baselines.size() > 4);
    for (const auto& policy : {"1f1b", "gpipe", "dual-queue"}) {
        CAPTURE(policy);
        auto fastest = Duration::max();
        for (const Baseline& one : full.baselines)
            if (one.policy == policy) fastest = std::min(fastest, one.makespan);
        const auto plan = plan_by_policy(request, costs, in_order, policy);
        CHECK(plan.makespan == fastest);
        CHECK(plan.replicas.front().found.strategy == policy);
        CHECK(!plan.robustness);
        check_verified(request, plan);
    }
    const auto any = plan_by_policy(request, costs, in_order);
    for (const Baseline& one : full.baselines) CHECK(any.makespan <= one.makespan);
}

TEST_CASE("a policy that is unknown or applies nowhere is refused with the reason") {
    const auto request = small_request();
    const auto costs = costs_of(request);
    CHECK_THROWS_WITH_AS(static_cast<void>(plan_by_policy(request, costs, in_order, "1f1c")),
                         doctest::Contains("did you mean '1f1b'?"), Error);
    const auto dip = dip_of(request, costs);
    CHECK_THROWS_WITH_AS(static_cast<void>(plan_by_policy(request, costs, in_order, "1f1b", dip)),
                         doctest::Contains("the policy '1f1b' does not apply: dip: "), Error);
}

TEST_CASE("plans of a running job keep its partition, and the search is never behind the draft") {
    const auto first = small_request(2);
    const auto costs = costs_of(first);
    const auto dip = dip_of(first, costs);
    // Of these batches alone, the partition would be another.
    for (const std::vector<int>& images :
         {std::vector<int>{5, 0, 2, 9, 1, 4, 0, 7}, {0, 0, 0, 0, 1, 0}, {9, 9, 9, 9}}) {
        const auto request = small_request(2, images);
        std::optional<Plan> draft;
        const auto keep = [&](Plan plan) { draft = std::move(plan); };
        const auto plan = plan_online(request, dip, costs, in_order, until_rounds, keep);
        REQUIRE(draft);
        CHECK(plan.makespan <= draft->makespan);
        CHECK(draft->lower_bound <= plan.makespan);
        for (const Plan* one : {&plan, static_cast<const Plan*>(&*draft)}) {
            check_verified(request, *one);
            for (const ReplicaPlan& replica : one->replicas)
                CHECK(replica.candidate.step.problem.stages.size() ==
                      replica.candidate.partition.chains[0].stages.size() +
                          replica.candidate.partition.chains[1].stages.size());
        }
        const auto again = plan_online(request, dip, costs, on_own_threads(3), until_rounds);
        CHECK(again.replicas.back().found.schedule == plan.replicas.back().found.schedule);
    }
}

TEST_CASE("a plan that is wanted at once is the draft") {
    const auto request = small_request(2);
    const auto costs = costs_of(request);
    std::optional<Plan> draft;
    const auto plan = plan_online(request, dip_of(request, costs), costs, in_order, at_once,
                                  [&](Plan made) { draft = std::move(made); });
    REQUIRE(draft);
    for (std::size_t r = 0; r < 2; ++r) CHECK(plan.replicas[r].found.schedule == draft->replicas[r].found.schedule);
}

TEST_CASE("a running job splits backwards where its first plan does") {
    auto request = small_request();
    const auto costs = costs_of(request);
    const auto dip = dip_of(request, costs);
    request.split = Split::never;
    CHECK(split_like(plan_online(request, dip, costs, in_order, until_rounds)) == Split::never);
    request.split = Split::always;
    const auto plan = plan_online(request, dip, costs, in_order, until_rounds);
    REQUIRE(split_like(plan) == Split::always);
    check_verified(request, plan);
}
