// The published set-ups plan in their published layouts, and what comes out is right.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/schedule/fixed_order.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/plan_files.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using testing::planned;

namespace {

Request preset(const std::string& name, std::int64_t replicas, std::int64_t microbatches, std::uint64_t seed = 1) {
    Request request;
    const auto model = workloads::model(name);
    const emulator::Layout layout{.tp = model.tp, .pp = model.pp, .dp = replicas};
    request.job.setup = std::make_shared<emulator::Setup>(emulator::Setup{
        model, workloads::find_cluster("h100-sxm:" + std::to_string(layout.gpus())), layout, testing::small_costs()});
    auto drawn = workloads::draw_batch(name.starts_with("dip-vlm") ? "vlm-mix" : "t2v-mix", model, seed,
                                       microbatches * replicas);
    request.batch.samples = std::move(drawn.samples);
    request.batch.microbatches = std::move(drawn.microbatches);
    request.job.max_rounds = 2;
    return request;
}

void check_verified(const Request& request, const Plan& plan) {
    std::map<std::string, std::string> files;
    for (auto& file : testing::plan_files(request.job, request.batch, plan, "plan"))
        files[file.path.string()] = std::move(file.content);
    const auto verdict =
        testing::verify(files.at("plan/replica-000/problem.json.gz"), files.at("plan/replica-000/solution.json"));
    CHECK_MESSAGE(verdict.ok, verdict.violation);
}

// Of the plan's own order if passes of all modules that others read take so much of their time.
Duration with_other_encoders(const Request& request, const ReplicaPlan& replica, double factor) {
    const auto& step = replica.cut.step;
    std::vector<double> factors(request.job.setup->model.modules.size(), 1);
    for (const auto& edge : request.job.setup->model.edges) factors[edge.from] = factor;
    const schedule::FixedOrder order(schedule::Replayer(step.problem), *replica.found.schedule);
    std::vector<std::int64_t> durations, ends;
    for (std::size_t i = 0; i < step.problem.tasks.size(); ++i) {
        double longer = 0;
        for (const auto& [module, part] : step.mixes[step.mix[i]]) longer += part * factors[module];
        durations.push_back(std::llround(longer * static_cast<double>(order.durations()[i])));
    }
    return order.makespan(durations, ends);
}

const Baseline& baseline_of(const Plan& plan, const Gain& gain) {
    const auto& all = plan.baselines.all;
    return *std::find_if(all.begin(), all.end(), [&](const Baseline& one) {
        return one.partition == gain.partition && one.policy == gain.policy &&
               one.chunks_per_rank == gain.chunks_per_rank;
    });
}

// Whether the makespan with encoders 10 % longer is between p10 and p90. Checks that close schedules may win and lose.
bool holds_longer_encoders(const Request& request, const Plan& plan) {
    REQUIRE(plan.robustness);
    const Robustness& robust = *plan.robustness;
    for (const Gain& gain : robust.against)
        if (baseline_of(plan, gain).makespan <= plan.makespan * 103 / 100)
            CHECK(std::max(gain.wins, gain.losses) < robust.replays);
    CHECK(with_other_encoders(request, plan.replicas.front(), 1) == plan.makespan);
    const Duration longer = with_other_encoders(request, plan.replicas.front(), 1.1);
    return robust.p10 <= longer && longer <= robust.p90;
}

}  // namespace

TEST_CASE("a plan whose encoders take 10 % longer is as long as robustness said" *
          pipeweaver::testing::on_release_libraries()) {
    for (const std::string name : {"dip-vlm-s", "dip-t2v-s"}) {
        const auto request = preset(name, 1, 4);
        CHECK(holds_longer_encoders(request, planned(request, in_order, {.targets = false})));
    }
}

TEST_CASE("of ten presets and batches eight are as long as robustness said" * testing::in_long_runs()) {
    int inside = 0;
    for (const std::string name : {"dip-vlm-s", "dip-vlm-m", "dip-vlm-l", "dip-t2v-s", "dip-t2v-l"})
        for (const std::uint64_t seed : {1U, 2U}) {
            auto request = preset(name, 1, 16, seed);
            request.job.max_rounds = 50;
            const auto plan = planned(request, on_threads(2), {.targets = false, .opponents = false});
            inside += holds_longer_encoders(request, plan) ? 1 : 0;
        }
    CHECK(inside >= 8);
}

TEST_CASE("the published set-ups plan in their own layouts, with schedules that the verifier accepts") {
    for (const auto& name : testing::full_or_short<std::vector<std::string>>(
             {"dip-vlm-s", "dip-vlm-m", "dip-vlm-l", "dip-t2v-s", "dip-t2v-l"}, {"dip-t2v-s"})) {
        CAPTURE(name);
        const auto request = preset(name, 1, 4);
        const auto& model = request.job.setup->model;
        CHECK(request.job.setup->layout.gpus() == model.tp * model.pp * model.dp);
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
    for (const auto& name : testing::full_or_short<std::vector<std::string>>(
             {"dip-vlm-xl-8k", "dip-vlm-xl-16k", "dip-t2v-xl-3k", "dip-t2v-xl-6k"}, {"dip-t2v-xl-3k"})) {
        CAPTURE(name);
        const auto request = preset(name, 2, 2);
        const auto plan = planned(request);
        check_verified(request, plan);
        CHECK(plan.replicas.size() == 2);
    }
}

TEST_CASE("the balanced chain fits all published set-ups, with 1F1B and interleaved") {
    for (const auto& name : testing::full_or_short<std::vector<std::string>>(
             {"dip-vlm-s", "dip-vlm-m", "dip-vlm-l", "dip-t2v-s", "dip-t2v-l", "dip-vlm-xl-8k", "dip-vlm-xl-16k",
              "dip-t2v-xl-3k", "dip-t2v-xl-6k"},
             {"dip-vlm-m", "dip-vlm-xl-8k", "dip-t2v-l"}))
        for (const std::int64_t chunks : {1, 4}) {
            CAPTURE(name);
            CAPTURE(chunks);
            EmulationRequest request;
            const Request asked = preset(name, name.find("xl") == std::string::npos ? 1 : 2, 16);
            request.job = asked.job;
            request.batch = asked.batch;
            auto setup = std::make_shared<emulator::Setup>(with_recipe(*request.job.setup, {}));
            setup->headroom = emulator::usual_headroom;
            request.job.setup = std::move(setup);
            request.job.partition = "balanced";
            request.chunks_per_rank = chunks;
            if (chunks > 1) request.policy = "interleaved";
            CHECK(emulate(request, on_threads(2)).step > Duration{0});  // throws where it does not fit
        }
}
