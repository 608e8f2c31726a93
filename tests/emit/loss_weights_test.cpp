// What the losses of a step are weighted by, worked by hand: over all microbatches and replicas the weights sum to 1.
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

// 3 microbatches of 1024 text tokens with 5, 0 and 2 images of 64 tokens; of each so many tokens have a loss.
Request request_with(const std::vector<std::int64_t>& loss_tokens) {
    Request request = testing::small_request(1, {5, 0, 2});
    request.job.max_rounds = 1;
    request.job.fixed = partition::PartitionFile{
        partition::partitioner("megatron").make(*request.job.setup, request.batch.microbatches, 1), {}};
    for (std::size_t m = 0; m < loss_tokens.size(); ++m) request.batch.microbatches[m].loss_tokens = loss_tokens[m];
    return request;
}

// Of each microbatch: as it stands in the assignment, and as the lists of actions add up to.
void check_weights(const Request& request, const std::vector<double>& expected) {
    Wanted wanted{.targets = false, .robustness = false, .opponents = false};
    wanted.policies = {"1f1b"};
    wanted.search = false;
    const Plan plan = testing::planned(request, in_order, wanted);
    const ReplicaPlan& replica = plan.replicas.front();
    const auto losses = emit::loss_totals(request.job, request.batch, plan.partition());
    const auto data = emit::replica_data(request.job, request.batch, replica, losses);
    std::vector<double> listed(expected.size());
    const auto& tasks = replica.cut.step.problem.tasks;
    const auto last = static_cast<std::uint32_t>(replica.cut.step.problem.stages.size() - 1);
    for (std::size_t t = 0; t < tasks.size(); ++t)
        if (tasks[t].kind == schedule::TaskKind::forward && tasks[t].stage == last)
            listed[replica.microbatches[static_cast<std::size_t>(*tasks[t].microbatch)]] += data.loss_weight[t];
    for (std::size_t m = 0; m < expected.size(); ++m) {
        CAPTURE(m);
        CHECK(emit::microbatch_weight(request.batch.microbatches[replica.microbatches[m]], plan.partition(),
                                      replica.cut.units[m],
                                      losses) == doctest::Approx(expected[replica.microbatches[m]]));
        CHECK(listed[m] == doctest::Approx(expected[m]));
    }
}

}  // namespace

TEST_CASE("the losses of a step are weighted by their loss tokens") {
    check_weights(request_with({100, 0, 300}), {0.25, 0, 0.75});
}

TEST_CASE("in a step without loss tokens the losses are weighted by positions") {
    const Request request = request_with({0, 0, 0});
    const auto losses = emit::loss_totals(request.job, request.batch, request.job.fixed->partition);
    CHECK(losses.tokens == 0);
    CHECK(losses.positions == 3 * 1024 + 7 * 64);
    check_weights(request, {(1024. + 320) / 3520, 1024. / 3520, (1024. + 128) / 3520});
}
