#include "planner/schedule/split_search.hpp"

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/plan_files.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/two_stages.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using schedule::Pair;
using testing::planned;

namespace {

Request request_of(Split split) {
    Request request = testing::small_request(1, {5, 0, 2, 9, 1, 4});
    // Where nothing but products hides traffic, parts of backwards lose what their order wins.
    testing::change_setup(request, [](emulator::Setup& setup) {
        setup.recipe.execution.tensor_overlap = emulator::TensorOverlap::inside_gemms;
    });
    request.job.split = split;
    return request;
}

// Planned once for all tests.
const Plan& plan_of(Split split) {
    static std::map<Split, Plan> known;
    if (!known.contains(split)) known[split] = planned(request_of(split));
    return known[split];
}

std::ptrdiff_t split_in(const schedule::Problem& problem) {
    return std::count_if(problem.pairs.begin(), problem.pairs.end(), [](const Pair& pair) { return pair.weight; });
}

const schedule::Problem& problem_of(const Plan& plan) { return plan.replicas.front().cut.step.problem; }

void check_verified(const Request& request, const Plan& plan) {
    std::map<std::string, std::string> files;
    for (auto& file : testing::plan_files(request.job, request.batch, plan, "p"))
        files[file.path.string()] = std::move(file.content);
    for (const std::string folder : {"p/replica-000", "p/torch"}) {
        CAPTURE(folder);
        const auto verdict =
            testing::verify(files.at(folder + "/problem.json.gz"), files.at(folder + "/solution.json"));
        CHECK_MESSAGE(verdict.ok, verdict.violation);
    }
}

}  // namespace

TEST_CASE(
    "where input and weight gradients take much longer than the backward, none is split unless a policy wins by it") {
    auto request = request_of(Split::automatic);
    testing::change_setup(request, [](emulator::Setup& setup) {
        setup.recipe.execution.tensor_overlap = emulator::TensorOverlap::launch_order;
    });
    const auto automatic = planned(request);
    request.job.split = Split::never;
    const auto never = planned(request);
    CHECK(split_in(problem_of(automatic)) == 0);
    CHECK(automatic.makespan == never.makespan);
    CHECK(automatic.lower_bound <= never.lower_bound);
}

TEST_CASE("a plan splits backwards where it gains by that, and never loses by being allowed to" *
          pipeweaver::testing::on_release_libraries()) {
    const auto never = request_of(Split::never), automatic = request_of(Split::automatic);
    const Plan &whole = plan_of(Split::never), &free = plan_of(Split::automatic);
    CHECK(split_in(problem_of(whole)) == 0);
    CHECK(free.makespan < whole.makespan);
    CHECK(split_in(problem_of(free)) > 0);
    CHECK(free.lower_bound <= whole.lower_bound);
    check_verified(never, whole);
    check_verified(automatic, free);
    for (const auto& baseline : free.baselines.all) CHECK(free.makespan <= baseline.makespan);
}

TEST_CASE("what is left split in a plan is split for a reason") {
    const auto request = request_of(Split::always);
    const Plan& plan = plan_of(Split::always);
    check_verified(request, plan);
    const auto& replica = plan.replicas.front();
    const auto keep = emulator::needed(problem_of(plan), *replica.found.schedule, replica.found.replay);
    const auto& first = replica.found.first->schedule;  // what the search began with is pictured, too
    const auto there = emulator::needed(problem_of(plan), first, schedule::replay(problem_of(plan), first));
    for (std::size_t k = 0; k < keep.size(); ++k)
        CHECK((keep[k] || there[k]) == problem_of(plan).pairs[k].weight.has_value());
}

TEST_CASE("zb-h1 is a baseline of chains with a stage on each rank, and says elsewhere why not") {
    const auto request = request_of(Split::automatic);
    const auto on_chain = partition::partitioner("balanced").make(*request.job.setup, request.batch.microbatches, 1);
    const auto plan = planned(testing::on_partition(request, on_chain));
    std::size_t there = 0;
    for (const auto& baseline : plan.baselines.all) {
        if (baseline.policy != "zb-h1") continue;
        ++there;
        CHECK(baseline.chunks_per_rank == 1);
        const auto chain = std::find_if(plan.baselines.all.begin(), plan.baselines.all.end(), [&](const Baseline& one) {
            return one.policy == "1f1b" && one.partition == baseline.partition && one.chunks_per_rank == 1;
        });
        REQUIRE(chain != plan.baselines.all.end());
        CHECK(baseline.makespan < chain->makespan);
        if (baseline.bound) CHECK(*baseline.bound <= baseline.makespan);
    }
    CHECK(there == 1);
    for (const auto& refused : plan.baselines.not_applicable)
        if (refused.policy == "zb-v") CHECK(refused.why.find("split") == std::string::npos);
    const auto whole = planned(testing::on_partition(request_of(Split::never), on_chain));
    for (const auto& refused : whole.baselines.not_applicable)
        if (refused.policy == "zb-h1") CHECK(refused.why == "no backward is split into I and W");
}

TEST_CASE("action lists have every I before its W, and no recomputation in W") {
    const Plan& plan = plan_of(Split::automatic);
    const auto& replica = plan.replicas.front();
    const auto text = to_json(emit::derive_actions(replica.cut.step, *replica.found.schedule, replica.found.replay,
                                                   emulator::usual_modes(), {}));
    const auto document = JsonDocument("actions", text);
    std::ptrdiff_t inputs = 0, weights = 0;
    for (const auto& rank : document.root().at("actions").elements()) {
        std::map<std::string, bool> waiting;  // (stage, microbatch, item) of an I whose W has not come
        for (const auto& action : rank.elements()) {
            const auto op = action.at("op").text();
            if (op != "I" && op != "W") continue;
            const auto number = [&](const char* key) { return std::to_string(action.at(key).integer(0, 1000)) + " "; };
            const auto place = number("stage") + number("microbatch") + number("item");
            if (op == "I") {
                ++inputs;
                waiting[place] = true;
            } else {
                ++weights;
                CHECK(waiting[place]);
            }
        }
    }
    CHECK(inputs == split_in(problem_of(plan)));
    CHECK(weights == inputs);
    CHECK(inputs > 0);
}

namespace {

// The two stages with 10 bytes on rank 1: a forward holds 2, a backward takes 1 more while it runs, I takes
// `transient`.
emulator::StepProblem tight(std::int64_t transient) {
    auto step = testing::two_stages();
    step.problem.ranks[1].capacity = Bytes{10};
    for (std::size_t k = 0; k < step.problem.pairs.size(); k += 2) {
        schedule::Pair& whole = step.problem.pairs[k];
        whole.modes[0].held = step.split[k].modes[0].held = Bytes{2};
        whole.modes[0].transient = Bytes{1};
        step.split[k].modes[0].transient = Bytes{transient};
        step.split[k].modes[0].kept = Bytes{2};
        const auto costs = schedule::costs_in(whole, whole.modes[0]);
        apply(step.problem.tasks[index(whole.forward)], costs[0]);
        apply(step.problem.tasks[index(whole.backward)], costs[1]);
    }
    return step;
}

Searched searched(const emulator::StepProblem& step, Split split) {
    Searchable known;
    known.whole = &step;
    const auto split_form = split_step(step);
    if (split_form) known.split = &*split_form;
    if (known.split) known.bound = bound_of_every_choice(step, *known.split);
    search::Options options;
    options.max_rounds = 3;
    return search_split(known, split, options, in_order, {});
}

}  // namespace

TEST_CASE("backwards stay whole where an input gradient does not fit") {
    // Whole: 9; split: 7 (worked out in tests/emulator/split_test.cpp).
    const auto fits = searched(tight(3), Split::automatic);
    CHECK(fits.split);
    CHECK(fits.found.replay.makespan == Duration{7});
    CHECK(!searched(tight(3), Split::never).split);
    CHECK(searched(tight(3), Split::never).found.replay.makespan == Duration{9});

    // The first W must have run before the second I: 8, though another choice of backwards might do better.
    const auto scarce = searched(tight(8), Split::automatic);
    CHECK(scarce.split);
    CHECK(scarce.found.replay.makespan == Duration{8});
    CHECK(scarce.found.bound == Duration{7});
    CHECK(scarce.found.stop_reason == schedule::StopReason::rounds);

    CHECK(!split_step(tight(9)));  // not even alone
    CHECK(!searched(tight(9), Split::always).split);
}

TEST_CASE("the bound of every choice is no more than any choice's makespan, and with memory enough that of all split") {
    const auto step = tight(1);
    const auto found = searched(step, Split::always).found;
    CHECK(found.bound == Duration{7});
    CHECK(found.stop_reason == schedule::StopReason::optimal);
    CHECK(bound_of_every_choice(step, split_step(step).value()).value <= found.bound);
}
