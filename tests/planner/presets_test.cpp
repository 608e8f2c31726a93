// The published set-ups plan in their published layouts, and what comes out is right.
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

Request preset(const std::string& name) {
    Request request;
    request.model = workloads::model(name);
    request.layout = {.tp = request.model.tp, .pp = request.model.pp, .dp = request.model.dp};
    request.cluster = workloads::find_cluster("h100-sxm:" + std::to_string(request.layout.gpus()));
    auto drawn = workloads::draw_batch(name.starts_with("dip-vlm") ? "vlm-mix" : "t2v-mix", request.model, 1,
                                       4 * request.layout.dp);
    request.samples = std::move(drawn.samples);
    request.microbatches = std::move(drawn.microbatches);
    request.max_rounds = 2;
    return request;
}

}  // namespace

TEST_CASE("the published set-ups plan in their own layouts, with schedules that the verifier accepts") {
    for (const std::string name : {"dip-vlm-s", "dip-vlm-m", "dip-vlm-l", "dip-t2v-s", "dip-t2v-l"}) {
        CAPTURE(name);
        const auto request = preset(name);
        const auto costs = costdb::CostDatabase::embedded(request.cluster.device);
        const auto plan = make_plan(request, costs, in_order, [](double) { return search::KeepGoing{}; });

        std::map<std::string, std::string> files;
        for (auto& file : emit::plan_files(request, plan, "plan")) files[file.path.string()] = std::move(file.content);
        const auto verdict =
            testing::verify(files.at("plan/replica-000/problem.json.gz"), files.at("plan/replica-000/solution.json"));
        CHECK_MESSAGE(verdict.ok, verdict.violation);
        CHECK(plan.lower_bound <= plan.makespan);
        for (const auto& baseline : plan.baselines) CHECK(plan.makespan <= baseline.makespan);
        // Every module trains: each has backward passes.
        const auto& tasks = plan.replicas[0].candidate.step.problem.tasks;
        for (const auto& module : request.model.modules)
            CHECK(std::any_of(tasks.begin(), tasks.end(), [&](const emulator::Task& task) {
                return task.kind == emulator::TaskKind::backward && task.module.find(module.name) != std::string::npos;
            }));
        CHECK(plan.mfu > 0.05);
        CHECK(plan.mfu < 0.7);
    }
}
