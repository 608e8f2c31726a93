// A framework with an order of its own: a row in the planner and a row in emit.
#include "pipeweaver/emit/targets.hpp"
#include "planner/targets/target_plan.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

const Target toy{.name = "toy",
                 .option = "toy",
                 .about = "all forwards, then all backwards",
                 .folder = "toy",
                 .title = "Toy",
                 .file = "toy.txt",
                 .searches = false,
                 .policies = {"gpipe"},
                 .one_chain = true,
                 .recompute = RecomputeBy::step};

std::vector<FileToWrite> order_file(const emit::ToEmit& from, const std::filesystem::path& out) {
    return {{out / "toy.txt", fmt::format("{} ranks, {} tasks on the first\n", from.problem.ranks.size(),
                                          from.schedule.order.front().size())}};
}

const emit::Target toy_files{
    .name = "toy", .about = "its order", .of = "toy", .files = {"toy.txt"}, .write = order_file};

}  // namespace

TEST_CASE("a framework with an order of its own is a row in the planner and one in emit") {
    const Request request = testing::small_request();
    const auto partitions = partition::partitions_for(partition::Use::framework, *request.job.setup,
                                                      request.batch.microbatches, "balanced");
    TargetPlan plan = make_target_plan(request.job, toy, partitions, {request.batch.microbatches}, in_order, {});
    plan.microbatches = {0, 1, 2, 3, 4, 5, 6, 7};
    REQUIRE(plan.found.schedule);
    CHECK(plan.found.strategy == "gpipe");
    CHECK(plan.found.rounds == 0);
    for (const TargetBaseline& one : plan.baselines) CHECK(one.policy == "gpipe");
    CHECK(plan.found.replay.makespan == plan.best("gpipe")->makespan);

    const emit::ToEmit from{.problem = plan.cut.step.problem, .schedule = *plan.found.schedule};
    const auto files = toy_files.write(from, "out");
    REQUIRE(files.size() == 1);
    CHECK(files.front().content == "4 ranks, 16 tasks on the first\n");  // 8 microbatches, forward and backward
}
