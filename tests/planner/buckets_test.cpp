// Gradients reduced in buckets beside the last backwards: a plan counts them as `emulate` does.
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "planner/evaluate/step.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

// Two replicas, whose gradients go in pieces of a few layers.
Request in_buckets() {
    Request request = testing::small_request(2, {5, 0, 2, 9, 1, 4, 0, 7, 3, 3, 8, 0, 1, 6, 2, 5});
    testing::change_setup(request, [](emulator::Setup& setup) { setup.recipe.bucket = Bytes{8'000'000}; });
    return request;
}

}  // namespace

TEST_CASE("with buckets every replica's schedule takes what emulating it takes, and is below no bound") {
    const Request request = in_buckets();
    const Plan plan = testing::planned(request);
    for (const ReplicaPlan& replica : plan.replicas) {
        const emulator::StepInput input =
            as_wanted(partition::step_input(*request.job.setup, replica.cut.partition, replica.cut.units),
                      {.name = "same", .replica = replica.number});
        const auto emulated = emulator::emulate(input, replica.cut.step, *replica.found.schedule);
        CHECK(replica.found.replay.makespan == emulated.makespan);
        CHECK(schedule::replay(replica.cut.step.problem, *replica.found.schedule).makespan == emulated.makespan);
        CHECK(replica.found.bound <= emulated.makespan);
        // Reductions are in no rank's tail before a schedule is known.
        const Step known = build(*request.job.setup, replica.cut.partition, replica.cut.units, {.name = "same"});
        const auto& before = known.cut.step.problem.ranks;
        const auto& after = replica.cut.step.problem.ranks;
        for (std::size_t r = 0; r < after.size(); ++r) CHECK(before[r].tail <= after[r].tail);
        CHECK(std::any_of(after.begin(), after.end(), [&](const auto& rank) {
            return rank.tail > before[static_cast<std::size_t>(&rank - after.data())].tail;
        }));
    }
    for (const Baseline& policy : plan.baselines.all) CHECK(plan.step <= policy.step);
}

TEST_CASE("with buckets opponents take what their commands print") {
    const Request request = in_buckets();
    const auto opponents = choose_opponents(request.job, request.batch, in_order);
    const auto rows = run_opponents(opponents, request.job, request.batch, in_order);
    std::size_t compared = 0;
    for (const Baseline& row : rows.all) {
        const OpponentWay& way = opponents.ways[*row.way];
        if (!row.on_own_ranks) continue;
        EmulationRequest same;
        same.job = request.job;
        same.job.fixed = partition::PartitionFile{way.partition, {}};
        same.batch = request.batch;
        same.policy = row.policy;
        same.recompute = row.recompute;
        CHECK(emulate(same, in_order).step == row.step);
        ++compared;
    }
    CHECK(compared > 5);
}
