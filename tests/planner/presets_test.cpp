// The published set-ups plan in their published layouts, and what comes out is right.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using testing::planned;

namespace {

Request preset(const std::string& name, std::int64_t replicas, std::int64_t microbatches) {
    Request request;
    const auto model = workloads::model(name);
    const emulator::Layout layout{.tp = model.tp, .pp = model.pp, .dp = replicas};
    request.setup = std::make_shared<emulator::Setup>(emulator::Setup{
        model, workloads::find_cluster("h100-sxm:" + std::to_string(layout.gpus())), layout, testing::small_costs()});
    auto drawn =
        workloads::draw_batch(name.starts_with("dip-vlm") ? "vlm-mix" : "t2v-mix", model, 1, microbatches * replicas);
    request.samples = std::move(drawn.samples);
    request.microbatches = std::move(drawn.microbatches);
    request.max_rounds = 2;
    return request;
}

void check_verified(const Request& request, const Plan& plan) {
    std::map<std::string, std::string> files;
    for (auto& file : emit::plan_files(request, plan, "plan")) files[file.path.string()] = std::move(file.content);
    const auto verdict =
        testing::verify(files.at("plan/replica-000/problem.json.gz"), files.at("plan/replica-000/solution.json"));
    CHECK_MESSAGE(verdict.ok, verdict.violation);
}

}  // namespace

TEST_CASE("the published set-ups plan in their own layouts, with schedules that the verifier accepts") {
    for (const std::string name : {"dip-vlm-s", "dip-vlm-m", "dip-vlm-l", "dip-t2v-s", "dip-t2v-l"}) {
        CAPTURE(name);
        const auto request = preset(name, 1, 4);
        const auto& model = request.setup->model;
        CHECK(request.setup->layout.gpus() == model.tp * model.pp * model.dp);
        const auto plan = planned(request);
        check_verified(request, plan);
        CHECK(plan.lower_bound <= plan.makespan);
        for (const auto& baseline : plan.baselines.all) CHECK(plan.makespan <= baseline.makespan);
        // Every module trains: each has backward passes.
        const auto& tasks = plan.replicas[0].cut.step.problem.tasks;
        for (const auto& module : model.modules)
            CHECK(std::any_of(tasks.begin(), tasks.end(), [&](const schedule::Task& task) {
                const bool backward =
                    task.kind == schedule::TaskKind::backward || task.kind == schedule::TaskKind::input_gradient;
                return backward && task.module.find(module.name) != std::string::npos;
            }));
        CHECK(plan.mfu > 0.05);
        CHECK(plan.mfu < 0.7);
    }
}

TEST_CASE("the published set-ups of thousands of GPUs plan, here with two of their replicas") {
    for (const std::string name : {"dip-vlm-xl-8k", "dip-vlm-xl-16k", "dip-t2v-xl-3k", "dip-t2v-xl-6k"}) {
        CAPTURE(name);
        const auto request = preset(name, 2, 2);
        const auto plan = planned(request);
        check_verified(request, plan);
        CHECK(plan.replicas.size() == 2);
    }
}
