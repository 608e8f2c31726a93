// What torchtitan's files say is what is read of them: memory of a plan's launch is that of `check`, to the byte.
#include "emit/targets/launch_script.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/launch/check.hpp"
#include "pipeweaver/launch/launch.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/plan_options.hpp"
#include "planner/ladder/rungs.hpp"
#include "planner/way/run.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using emulator::Recompute;

namespace {

constexpr const char* cluster = "h200-sxm:8";

struct Asked {
    const char* model;
    std::int64_t tp, pp, ep;
    int zero;
};

// Two microbatches of one sample of 4096 tokens on each replica.
planner::Request request_of(const Asked& of) {
    planner::PlanOptions asked;
    asked.workload.model = of.model;
    asked.workload.cluster = cluster;
    asked.workload.dataset = "constant-4096";
    asked.workload.microbatches = 2;
    asked.workload.microbatch_tokens = 4096;
    asked.workload.packing = "given";
    asked.workload.tp = {of.tp, false};
    asked.workload.pp = {of.pp, false};
    asked.workload.ep = {of.ep, false};
    asked.workload.overrides.zero = of.zero;
    asked.job.sample = "batch";
    asked.target = "torchtitan";
    return asked.request({}, in_order);
}

planner::OpponentWay way_of(const planner::Request& request) {
    const auto& setup = request.job.setup;
    planner::OpponentWay way;
    way.has_pipeline = setup->layout.pp > 1;
    way.setup = setup;
    way.policy = "1f1b";
    way.partition =
        partition::partitioner(way.has_pipeline ? "balanced" : "megatron").make(*setup, request.batch.microbatches, 1);
    way.name = way.partition.name;
    return way;
}

// The settings that plans for torchtitan choose from.
std::vector<Recompute> settings_of(const planner::OpponentWay& way) {
    return planner::WayOfTarget(way, planner::target("torchtitan")).settings;
}

// As the flags of the way are written with the recomputation, and planned.
launch::Launch launched(const planner::Request& request, planner::OpponentWay way, Recompute recompute) {
    way.recompute = planner::StepRecompute{.everywhere = recompute};
    const auto fits = planner::fitting("flags", request, std::move(way), in_order, true);
    REQUIRE(fits);
    return launch::launch_of(fits->rung);
}

std::string script_of(const launch::Launch& launch) {
    REQUIRE_MESSAGE(!emit::why_no_torchtitan(launch), *emit::why_no_torchtitan(launch));
    return emit::torchtitan_files(launch, "").front().content +
           "torchrun -m torchtitan.train \"${PIPEWEAVER_FLAGS[@]}\"\n";
}

// What the ranks hold of the script as it is read.
std::vector<Bytes> read_back(const Asked& of, const std::string& script) {
    launch::CheckAsked asked;
    asked.said = launch::read_script(script, "launch.sh");
    asked.cluster = cluster;
    asked.model = of.model;
    const auto checked = launch::check(asked, in_order);
    REQUIRE(checked.fit);
    std::vector<Bytes> peaks;
    for (const auto& rank : checked.fit->ranks) peaks.push_back(rank.peak);
    return peaks;
}

}  // namespace

TEST_CASE("selective that is planned for torchtitan is read back with the plan's memory on each rank") {
    // Dense and gated in a pipeline; experts, of which no product is a second one, beside norms of queries and keys;
    // compressed attention, which has no second products at all.
    const Asked dense{"llama3-8b", 2, 2, 1, 2}, experts{"qwen3-30b-a3b", 1, 2, 4, 2};
    for (const Asked& of : testing::full_or_short<std::vector<Asked>>(
             {dense, experts, {"qwen3-30b-a3b", 4, 1, 8, 3}, {"deepseek-v2-lite", 1, 2, 4, 2}}, {dense, experts})) {
        CAPTURE(of.model);
        CAPTURE(of.pp);
        const auto request = request_of(of);
        const auto way = way_of(request);
        const auto settings = settings_of(way);
        REQUIRE(settings.size() == 3);
        auto launch = launched(request, way, settings[1]);
        CHECK(read_back(of, script_of(launch)) == launch.peak);
        for (const auto& [setting, word] :
             {std::pair(settings[0], "none"), std::pair(settings[1], "selective"), std::pair(settings[2], "full")}) {
            launch.recompute = name_of(setting);
            CHECK(script_of(launch).find(std::string("activation-checkpoint:") + word + "\n") != std::string::npos);
        }
    }
}

TEST_CASE("torchtitan's selective keeps less than norms and activation functions alone would leave, and takes longer") {
    const auto request = request_of({"llama3-8b", 2, 2, 1, 2});
    const auto way = way_of(request);
    const auto norms = launched(request, way, Recompute::selective);
    const auto products = launched(request, way, Recompute::second_products);
    CHECK(products.peak.front() < norms.peak.front());
    CHECK(products.makespan > norms.makespan);
    // It has no word for those, as launches of older plans have them.
    CHECK(
        emit::why_no_torchtitan(norms) ==
        "the launch was planned with selective as norms and activation functions alone, but torchtitan's selective is "
        "second-products: plan again");
}
