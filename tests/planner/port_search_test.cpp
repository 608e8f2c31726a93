// Plans where links are so slow that transfers wait for ports.
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "planner/schedule/split_search.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/plan_files.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using testing::planned;

namespace {

// Every stage is a node, and the network between them has so small a part of its speed.
Request slow_request(std::int64_t part, std::int64_t dp = 1) {
    Request request = testing::small_request(dp, {5, 0, 2, 9, 1, 4, 12, 7});
    testing::change_setup(request, [&](emulator::Setup& setup) {
        setup.recipe.execution.tensor_overlap = emulator::TensorOverlap::inside_gemms;
        setup.cluster.gpus_per_node = setup.layout.gpus_of_rank();
        setup.cluster.network = Bandwidth{setup.cluster.network.bytes_per_second / part};
    });
    return request;
}

// Of a part of 100, planned once for all tests.
struct Slow {
    Request request = slow_request(100);
    Plan plan = planned(request);
};

const Slow& slow() {
    static const Slow one;
    return one;
}

// dip-vlm-m as published, on links of a tenth of their speed.
Request slow_preset() {
    Request request;
    const auto model = workloads::model("dip-vlm-m");
    auto cluster = workloads::find_cluster("h100-sxm:32");
    cluster.network = Bandwidth{cluster.network.bytes_per_second / 10};
    cluster.node_link = Bandwidth{cluster.node_link.bytes_per_second / 10};
    const emulator::Layout layout{.tp = model.tp, .pp = model.pp, .dp = 1};
    request.job.setup =
        std::make_shared<emulator::Setup>(emulator::Setup{model, cluster, layout, testing::small_costs()});
    auto drawn = workloads::draw_batch("vlm-mix", model, 1, 8);
    request.batch.samples = std::move(drawn.samples);
    request.batch.microbatches = std::move(drawn.microbatches);
    request.job.max_rounds = 3;
    return request;
}

std::map<std::string, std::string> files_of(const Request& request, const Plan& plan) {
    std::map<std::string, std::string> files;
    for (auto& file : testing::plan_files(request.job, request.batch, plan, "p"))
        files[file.path.string()] = std::move(file.content);
    return files;
}

void check_files(const Request& request, const Plan& plan) {
    const auto files = files_of(request, plan);
    for (const std::string folder : {"p/replica-000", "p/torch"}) {
        if (!files.contains(folder + "/solution.json")) continue;
        CAPTURE(folder);
        const std::string &problem = files.at(folder + "/problem.json.gz"),
                          &solution = files.at(folder + "/solution.json");
        const auto verdict = testing::verify(problem, solution);
        CHECK_MESSAGE(verdict.ok, verdict.violation);
        CHECK(solution.find(std::to_string(verdict.makespan_ns)) != std::string::npos);
    }
}

// Of the plan's problem as if every transfer went at once.
schedule::Problem alone(const emulator::StepProblem& step) {
    auto problem = step.problem;
    for (const emulator::Transfer& one : step.transfers) problem.edges[one.edge].lag = one.lag;
    return problem;
}

}  // namespace

TEST_CASE("a plan on slow links has its waits in makespan, starts and files, and beats or meets every baseline") {
    for (const std::int64_t part : testing::full_or_short<std::vector<std::int64_t>>({10, 100}, {100})) {
        CAPTURE(part);
        const Request request = part == 100 ? slow().request : slow_request(part);
        const Plan plan = part == 100 ? slow().plan : planned(request);
        const ReplicaPlan& replica = plan.replicas.front();
        CHECK(replica.waits.waited > 0);
        CHECK(replica.found.replay == schedule::replay(replica.cut.step.problem, *replica.found.schedule));
        const auto at_once = schedule::replay(alone(replica.cut.step), *replica.found.schedule);
        CHECK(plan.makespan == at_once.makespan + replica.waits.lost);
        CHECK(plan.lower_bound <= at_once.makespan);
        for (const Baseline& one : plan.baselines.all) {
            CAPTURE(one.policy);
            CHECK(plan.makespan <= one.makespan);
        }
        for (const TargetPlan& target : plan.targets) {
            if (!target.found.schedule) continue;
            CAPTURE(target.target);
            auto step = target.cut.step;
            step.problem = alone(step);
            CHECK(target.waits == emulator::replay_on_ports(step, *target.found.schedule).waits);
        }
        check_files(request, plan);
        CHECK(files_of(request, plan).at("p/plan.json").find("\"port_waits\"") != std::string::npos);
    }
}

TEST_CASE("a plan on slow links is the same on one thread and on several, with the files of both") {
    // One replica in the short form.
    const Request request = testing::short_form() ? slow().request : slow_request(100, 2);
    const auto one = files_of(request, testing::short_form() ? slow().plan : planned(request));
    CHECK(one == files_of(request, planned(request, on_threads(4))));
}

TEST_CASE("a published set-up on links of a tenth of their speed passes the independent verifier" *
          testing::on_release_libraries()) {
    const Request request = slow_preset();
    const Plan plan = planned(request);
    CHECK(plan.replicas.front().waits.waited > 0);
    for (const Baseline& one : plan.baselines.all) CHECK(plan.makespan <= one.makespan);
    check_files(request, plan);
}

TEST_CASE("what loses much to ports is searched again, and the better is kept" *
          pipeweaver::testing::on_release_libraries()) {
    const Request request = slow_request(200);
    const Plan plan = planned(request);
    emulator::StepProblem step = plan.replicas.front().cut.step;
    step.problem = alone(step);
    search::Options options;
    options.max_rounds = 5;
    const auto first = search_on_ports(step, options, in_order, {});
    REQUIRE(first.schedule);
    const auto waits = emulator::replay_on_ports(step, *first.schedule).waits;
    REQUIRE(loses_much(first.replay.makespan, waits.lost));
    const auto again = search_again(step, first, options, in_order, {});
    CHECK(again.replay.makespan <= first.replay.makespan);
    CHECK(again.replay == emulator::replay_on_ports(step, *again.schedule).replay);
    CHECK(again.bound == first.bound);
    const auto stopped = [](const search::Progress&) { return std::optional(schedule::StopReason::budget); };
    CHECK(search_again(step, first, options, in_order, stopped).schedule == first.schedule);
}

TEST_CASE("one in a hundred is not worth another search") {
    CHECK_FALSE(loses_much(Duration{101}, Duration{1}));
    CHECK(loses_much(Duration{102}, Duration{2}));
}

TEST_CASE("a step is emulated with its waits, and so is a plan's schedule that is given back") {
    const Request& request = slow().request;
    EmulationRequest asked;
    asked.job = request.job;
    asked.batch = request.batch;
    const Emulation emulation = emulate(asked, in_order);
    CHECK(emulation.replicas.front().waits.waited > 0);
    CHECK(emulation.replicas.front().waits.lost > Duration{});

    const Plan& plan = slow().plan;
    const ReplicaPlan& replica = plan.replicas.front();
    const auto problem = schedule::parse_problem("problem", to_json(replica.cut.step.problem));
    asked.job.fixed = partition::PartitionFile{plan.partition(), {}};
    asked.schedules = {{"p", {problem, *replica.found.schedule}}};
    const Emulation given = emulate(asked, in_order);
    CHECK(given.makespan == plan.makespan);
    CHECK(given.replicas.front().waits == replica.waits);
}
