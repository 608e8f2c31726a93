#include "pipeweaver/planner/plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/report.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/plan_files.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using testing::planned;
using testing::small_request;

namespace {

std::map<std::string, std::string> files_of(const Request& request, const Plan& plan) {
    std::map<std::string, std::string> files;
    for (auto& file : testing::plan_files(request.job, request.batch, plan, "plan"))
        files[file.path.string()] = std::move(file.content);
    return files;
}

void check_verified(const std::map<std::string, std::string>& files, const std::string& folder) {
    CAPTURE(folder);
    const auto verdict = testing::verify(files.at(folder + "/problem.json.gz"), files.at(folder + "/solution.json"));
    CHECK_MESSAGE(verdict.ok, verdict.violation);
}

std::vector<std::int64_t> one_or_two_replicas() {
    return testing::full_or_short<std::vector<std::int64_t>>({1, 2}, {1});
}

// The small request's, planned once for all tests.
const Plan& small_plan() {
    static const Plan plan = planned(small_request());
    return plan;
}

Request request_of_ten() {
    auto request = small_request(10, {5, 0, 2, 9, 1, 4, 0, 7, 3, 6, 5, 2, 8, 1, 0, 4, 6, 2, 3, 9});
    request.job.max_rounds = 2;
    return request;
}

// With opponents in the full form.
Wanted scope_of_ten() { return {.opponents = !testing::short_form()}; }

const Plan& plan_of_ten() {
    static const Plan plan = planned(request_of_ten(), on_threads(2), scope_of_ten());
    return plan;
}

}  // namespace

TEST_CASE(
    "every schedule of a plan passes the independent verifier, and beats or meets every policy on its partition") {
    for (const std::int64_t dp : one_or_two_replicas()) {
        const auto request = small_request(dp);
        const auto plan = planned(request, in_order, {});
        const auto files = files_of(request, plan);
        check_verified(files, "plan/replica-000");
        if (dp == 2) check_verified(files, "plan/replica-001");
        check_verified(files, "plan/torch");
        REQUIRE(plan.baselines.all.size() > 4);
        for (const auto& baseline : plan.baselines.all) {
            if (baseline.is_opponent) continue;
            CHECK(plan.makespan <= baseline.makespan);
            REQUIRE(baseline.bound);
            CHECK(*baseline.bound <= baseline.makespan);
        }
        CHECK(plan.lower_bound <= plan.makespan);
        CHECK(plan.step > plan.makespan);
    }
}

TEST_CASE("a plan is the same on one thread, on several, and with jobs run backwards") {
    auto request = small_request();
    request.job.partition = "dip";
    const auto backwards = [](std::size_t count, const std::function<void(std::size_t)>& job) {
        for (std::size_t i = count; i-- > 0;) job(i);
    };
    const auto expected = files_of(request, planned(request));
    CHECK(files_of(request, planned(request, backwards)) == expected);
    CHECK(files_of(request, planned(request, on_threads(2))) == expected);
    if (!testing::short_form()) CHECK(files_of(request, planned(request, on_threads(16))) == expected);

    auto replicas = small_request(2);
    replicas.job.max_rounds = 1;
    const auto both = files_of(replicas, planned(replicas));
    if (!testing::short_form()) CHECK(files_of(replicas, planned(replicas, backwards)) == both);
    CHECK(files_of(replicas, planned(replicas, on_threads(4))) == both);

    // So many that they are searched side by side.
    auto many = small_request(4);
    many.job.max_rounds = 1;
    const auto all = files_of(many, planned(many));
    if (!testing::short_form()) CHECK(files_of(many, planned(many, on_threads(2))) == all);
    CHECK(files_of(many, planned(many, on_own_threads(2))) == all);

    // The search has to have had something to choose, or this would prove nothing.
    auto other = request;
    other.job.seed = 2;
    CHECK(files_of(other, planned(other)).at("plan/replica-000/solution.json") !=
          expected.at("plan/replica-000/solution.json"));
}

TEST_CASE("a robust plan gives up at most a hundredth and never falls behind a baseline, on any number of threads") {
    for (const std::int64_t dp : one_or_two_replicas()) {
        // Large enough not to be proven before there is a choice.
        auto request = small_request(dp, {5, 0, 2, 9, 1, 4, 0, 7, 3, 8, 0, 6});
        request.job.max_rounds = testing::full_or_short(12, 6);
        request.job.robust = true;
        request.job.recompute = emulator::usual_modes();
        const auto plan = planned(request, on_threads(2));
        CHECK(plan.choice.rule.by_median);
        CHECK(plan.choice.alternatives > 0);
        CHECK(plan.choice.smallest <= plan.makespan);
        CHECK(static_cast<double>(plan.makespan.count()) <= 1.01 * static_cast<double>(plan.choice.smallest.count()));
        CHECK(plan.choice.other == (plan.choice.over_smallest.wins + plan.choice.over_smallest.losses > 0));
        for (const auto& baseline : plan.baselines.all)
            if (!baseline.is_opponent) CHECK(plan.makespan <= baseline.makespan);
        const auto files = files_of(request, plan);
        check_verified(files, "plan/replica-000");
        check_verified(files, "plan/torch");
        CHECK(files_of(request, planned(request)) == files);

        request.job.robust = false;
        const auto usual = planned(request);
        CHECK(usual.choice.smallest == plan.choice.smallest);
        CHECK(static_cast<double>(usual.makespan.count()) <=
              1.001 * static_cast<double>(usual.choice.smallest.count()));
    }
}

TEST_CASE("a replica that is planned alone has the files that it has in the plan of all") {
    for (const auto& partition : testing::full_or_short<std::vector<std::string>>({"", "balanced"}, {""})) {
        auto request = request_of_ten();
        request.job.partition = partition;
        const auto all =
            files_of(request, partition.empty() ? plan_of_ten() : planned(request, on_threads(2), scope_of_ten()));
        for (const std::size_t r : testing::full_or_short<std::vector<std::size_t>>({0, 4, 9}, {0, 9})) {
            const Wanted wanted{.targets = false, .robustness = false, .opponents = false, .replicas = {r}};
            const auto plan = planned(request, in_order, wanted);
            REQUIRE(plan.replicas.size() == 1);
            CHECK(plan.replicas.front().number == r);
            std::size_t compared = 0;
            for (const auto& [path, content] : files_of(request, plan)) {
                if (path.find("/replica-") == std::string::npos && path.find("partition.json") == std::string::npos)
                    continue;
                REQUIRE(all.contains(path));
                CHECK(content == all.at(path));
                ++compared;
            }
            CHECK(compared >= 4);
        }
    }
}

TEST_CASE("replicas that are handed over are let go, but for those that are looked at again") {
    const auto request = request_of_ten();
    const Plan& kept = plan_of_ten();
    std::mutex mutex;
    std::map<std::size_t, std::size_t> tasks;  // of each replica, when it was handed over
    Wanted wanted = scope_of_ten();
    wanted.on_replica = [&](const ReplicaPlan& replica) {
        const std::scoped_lock lock(mutex);
        tasks[replica.number] = replica.cut.step.problem.tasks.size();
    };
    const auto plan = planned(request, on_threads(2), wanted);
    REQUIRE(tasks.size() == 10);
    std::size_t steps = 0;
    for (std::size_t r = 0; r < 10; ++r) {
        CHECK(tasks[r] == kept.replicas[r].cut.step.problem.tasks.size());
        const bool has_step = !plan.replicas[r].cut.step.problem.tasks.empty();
        steps += has_step ? 1 : 0;
        CHECK((has_step || (!plan.replicas[r].examined && r != plan.slowest)));
    }
    CHECK(steps == sizes.replicas_examined + 1);
    CHECK(emit::plan_table(request.job, request.batch, plan) == emit::plan_table(request.job, request.batch, kept));
    CHECK(emit::assignment_json(request.job, request.batch, plan) ==
          emit::assignment_json(request.job, request.batch, kept));
    CHECK(emit::report(request.job, request.batch, plan) == emit::report(request.job, request.batch, kept));
}

TEST_CASE("of many replicas the most loaded have full bounds, and the step has theirs") {
    auto request = request_of_ten();
    request.job.split = Split::never;
    const auto plan = planned(request, in_order, {.targets = false, .robustness = false, .opponents = false});
    Duration largest{};
    int full = 0, quick = 0;
    for (const ReplicaPlan& replica : plan.replicas) {
        const schedule::Replayer replayer(replica.cut.step.problem);
        CHECK(replica.found.bound <= replica.found.replay.makespan);
        const Duration least = search::best_bound(replayer, search::BoundEffort::quick).value;
        (replica.found.bound > least ? full : quick) += 1;
        largest = std::max(largest, replica.found.bound);
    }
    CHECK(full > 0);
    CHECK(full <= static_cast<int>(sizes.replicas_examined));
    CHECK(quick >= 2);
    CHECK(plan.lower_bound == largest);
    for (const auto& baseline : plan.baselines.all)
        if (baseline.partition == plan.partition().name) CHECK(baseline.bound == largest);
}

TEST_CASE("replicas share the microbatches, and the slowest decides") {
    auto request = small_request(2);
    request.job.sharing = partition::Sharing::in_turn;
    const auto plan = planned(request);
    REQUIRE(plan.replicas.size() == 2);
    CHECK(plan.replicas[0].microbatches == std::vector<std::size_t>{0, 2, 4, 6});
    CHECK(plan.replicas[1].microbatches == std::vector<std::size_t>{1, 3, 5, 7});
    CHECK(plan.makespan == std::max(plan.replicas[0].found.replay.makespan, plan.replicas[1].found.replay.makespan));
    CHECK(plan.replicas[0].cut.partition.name == plan.replicas[1].cut.partition.name);
}

TEST_CASE("the bound of a step is the largest of its replicas', for the plan and for each baseline") {
    auto request = small_request(2);
    request.job.partition = "dip";
    request.job.sharing = partition::Sharing::in_turn;
    request.batch.microbatches = testing::small_batch({9, 0, 9, 1, 9, 0, 8, 2});
    const auto plan = planned(request);
    Duration bound{}, makespan{};
    for (const auto& replica : plan.replicas) {
        bound = std::max(bound, replica.found.bound);
        makespan = std::max(makespan, replica.found.replay.makespan);
    }
    CHECK(plan.lower_bound == bound);
    CHECK(plan.replicas[plan.slowest].found.replay.makespan == makespan);
    REQUIRE(!plan.baselines.all.empty());
    for (const auto& baseline : plan.baselines.all)
        if (!baseline.is_opponent) CHECK(baseline.bound == bound);
}

TEST_CASE("a bound that the search proves is that of the policies, too") {
    auto request = small_request(1, {5, 2});
    request.job.partition = "dip";
    request.job.split = Split::never;
    request.job.max_rounds = 40;
    const auto plan = planned(request);
    const schedule::Replayer replayer(plan.replicas.front().cut.step.problem);
    REQUIRE(plan.lower_bound > search::best_bound(replayer).value);  // or there would be nothing to hand on
    REQUIRE(!plan.baselines.all.empty());
    for (const auto& baseline : plan.baselines.all) CHECK(baseline.bound == plan.lower_bound);
}

TEST_CASE("replicas that share by cost are faster than in turn, and every microbatch keeps its loss weight") {
    auto request = small_request(2);
    request.job.partition = "dip";
    request.batch.microbatches = testing::small_batch({9, 0, 9, 0, 7, 1, 8, 0});  // in turn all images are replica 0's
    for (std::size_t i = 0; i < request.batch.microbatches.size(); ++i)
        request.batch.microbatches[i].loss_tokens = 100 + static_cast<std::int64_t>(i);
    const auto balanced = planned(request);
    auto turn = request;
    turn.job.sharing = partition::Sharing::in_turn;
    const auto in_turn = planned(turn);
    CHECK(balanced.makespan < in_turn.makespan);
    CHECK(balanced.loads.largest < balanced.loads.largest_in_turn);
    CHECK(in_turn.loads.largest == in_turn.loads.largest_in_turn);
    CHECK(balanced.loads.mean == in_turn.loads.mean);

    const auto weights = [&](const Plan& plan) {
        std::map<std::int64_t, double> by_loss_tokens;
        const auto document = JsonDocument("assignment", emit::assignment_json(request.job, request.batch, plan));
        for (const auto& replica : document.root().at("replicas").elements())
            for (const auto& microbatch : replica.at("microbatches").elements())
                by_loss_tokens[microbatch.at("loss_tokens").integer(0, 1000)] =
                    microbatch.at("loss_weight").number(0, 1);
        return by_loss_tokens;
    };
    std::map<std::int64_t, double> expected;
    for (std::int64_t i = 100; i < 108; ++i) expected[i] = static_cast<double>(i) / 828;
    CHECK(weights(balanced) == expected);
    CHECK(weights(in_turn) == expected);
}

TEST_CASE("only the partition that was asked for is planned on") {
    for (const auto& name :
         testing::full_or_short<std::vector<std::string>>({"dip", "megatron", "balanced"}, {"megatron"})) {
        auto request = small_request();
        request.job.partition = name;
        const auto plan = planned(request);
        CHECK(plan.replicas[0].cut.partition.name == name);
        for (const auto& baseline : plan.baselines.all)
            if (!baseline.is_opponent) CHECK(baseline.partition == name);
    }
}

TEST_CASE("shares of the busy time sum to one") {
    const Plan& plan = small_plan();
    double sum = 0;
    for (const auto basis :
         {costdb::Basis::exact, costdb::Basis::interpolated, costdb::Basis::extrapolated, costdb::Basis::modelled})
        sum += plan.shares.of(basis);
    CHECK(sum == doctest::Approx(1));
}

TEST_CASE("a model that fits in no partition is refused with rank and bytes") {
    auto request = small_request();
    testing::change_setup(request, [](emulator::Setup& setup) {
        setup.model.modules[1].architecture = testing::small_network(workloads::ModuleKind::language_model, 96, 16384);
    });
    const MadePlan made = try_plan(request.job, request.batch, in_order, {}, {.opponents = false});
    CHECK_FALSE(made.plan.has_value());
    try {
        static_cast<void>(planned(request));
        FAIL("it was planned");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::limit);
        CHECK(std::string(error.what()).find("GiB short") != std::string::npos);
        CHECK(made.why_not == error.what());
    }
    CHECK_THROWS_WITH_AS(static_cast<void>(plan_without_search(request.job, request.batch, in_order, {})),
                         doctest::Contains("GiB short"), Error);
}

TEST_CASE("a batch without any image plans as a language model alone would") {
    auto request = small_request();
    request.batch.microbatches = testing::small_batch({0, 0, 0, 0});
    const auto plan = planned(request);
    for (const auto& task : plan.replicas[0].cut.step.problem.tasks)
        CHECK(task.module.find("llm") != std::string::npos);
    CHECK(plan.target("torch-csv").found.schedule.has_value() != !plan.target("torch-csv").why_not.empty());
}

TEST_CASE("the schedule for PyTorch is never slower than a known one with the same padding") {
    Request request = small_request();  // on modules apart: PyTorch then gets chains of its own
    request.job.fixed = partition::PartitionFile{
        partition::partitioner("dip").make(*request.job.setup, request.batch.microbatches, 0), {}};
    const auto plan = planned(request);
    REQUIRE(plan.target("torch-csv").found.schedule);
    for (const std::string_view policy : {"1f1b", "interleaved", "gpipe"}) {
        CAPTURE(policy);
        const auto* best = plan.target("torch-csv").best(policy);
        REQUIRE(best != nullptr);
        CHECK(plan.target("torch-csv").found.replay.makespan <= best->makespan);
        for (const auto& one : plan.target("torch-csv").baselines)
            if (one.policy == policy) CHECK(best->makespan <= one.makespan);
    }
    CHECK(plan.target("torch-csv").best("bigmac") == nullptr);
}

TEST_CASE("a step is a makespan and its own partition's optimizer") {
    const Plan& plan = small_plan();
    const auto& won = plan.replicas.front().cut.partition;
    for (const auto& baseline : plan.baselines.all) {
        CHECK(baseline.step > baseline.makespan);
        if (baseline.partition == won.name && baseline.chunks_per_rank == won.chunks_per_rank)
            CHECK(baseline.step - baseline.makespan == plan.step - plan.makespan);
    }
}
