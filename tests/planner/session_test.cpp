#include "pipeweaver/planner/session.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/record.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/search/policies.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/plan_files.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/times.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using testing::planned;
using testing::small_request;

namespace {

const Time until_rounds;

const Time at_once = testing::ended(schedule::StopReason::stopped);

partition::Partition dip_of(const Request& request) {
    return partition::partitioner("dip").make(*request.job.setup, request.batch.microbatches, 0);
}

// The first plan of a job, in partition dip: no more than a session needs of it.
Plan first_plan(const Request& request) {
    return planned(testing::on_partition(request, dip_of(request)), in_order, {.targets = false, .robustness = false});
}

// A job of some replicas of the small model, and its first plan.
struct Job {
    Request request;
    Plan first = first_plan(request);
};

// Planned once for all tests.
const Job& job_of_two() {
    static const Job job{small_request(2)};
    return job;
}

Request long_request() {
    auto request = small_request(1, {9, 1, 0, 4, 7, 2, 12, 3});
    request.job.max_rounds = testing::full_or_short(60, 15);
    return request;
}

const Job& long_job() {
    static const Job job{long_request()};
    return job;
}

// A batch of the session's job, with a sample a microbatch and so many images each.
Batch next_batch(const Session& session, const std::vector<int>& images) {
    auto made = small_request(1, images);
    Batch next = session.job().batch("next", std::move(made.batch.samples));
    next.microbatches = std::move(made.batch.microbatches);
    return next;
}

void check_verified(const Request& request, const Plan& plan) {
    std::map<std::string, std::string> files;
    for (auto& file : testing::plan_files(request.job, request.batch, plan, "p"))
        files[file.path.string()] = std::move(file.content);
    for (std::size_t r = 0; r < plan.replicas.size(); ++r) {
        const std::string folder = "p/replica-00" + std::to_string(r);
        const auto verdict =
            testing::verify(files.at(folder + "/problem.json.gz"), files.at(folder + "/solution.json"));
        CHECK_MESSAGE(verdict.ok, verdict.violation);
    }
    CHECK(files.count("p/torch/schedule.csv") == 0);
}

}  // namespace

TEST_CASE("a plan without a search takes as long as its own baseline says") {
    auto request = small_request(testing::full_or_short(2, 1));
    request = testing::on_partition(request, dip_of(request));
    Wanted wanted{.targets = false, .robustness = false, .opponents = false};
    const auto searched = planned(request, in_order, wanted);
    wanted.search = false;
    for (const std::string policy : {"gpipe", "dual-queue"}) {
        CAPTURE(policy);
        wanted.policies = {policy};
        const auto plan = planned(request, in_order, wanted);
        const auto& all = searched.baselines.all;
        const auto same =
            std::find_if(all.begin(), all.end(), [&](const Baseline& one) { return one.policy == policy; });
        REQUIRE(same != all.end());
        CHECK(plan.makespan == same->makespan);
        CHECK(plan.makespan >= searched.makespan);
        CHECK(plan.replicas.front().found.strategy == policy);
        check_verified(request, plan);
    }
}

TEST_CASE("a policy that applies nowhere is refused with the reason") {
    auto request = small_request();
    request = testing::on_partition(request, dip_of(request));
    Wanted wanted{.targets = false, .robustness = false, .opponents = false};
    wanted.search = false;
    wanted.policies = {"1f1b"};
    CHECK_THROWS_WITH_AS(static_cast<void>(planned(request, in_order, wanted)),
                         doctest::Contains("dip: the policy '1f1b' does not apply: "), Error);
    wanted.policies = {"1f1b", "zb-h1"};
    for (const char* said : {"dip: the policy '1f1b' does not apply: ", "; the policy 'zb-h1' does not apply: "})
        CHECK_THROWS_WITH_AS(static_cast<void>(planned(request, in_order, wanted)), doctest::Contains(said), Error);
}

TEST_CASE("what is not wanted is left out of a plan") {
    const auto request = small_request();
    const auto whole = planned(request);
    REQUIRE(whole.robustness);
    REQUIRE(whole.target("torch-csv").found.schedule);

    const auto small = planned(request, in_order, {.targets = false, .robustness = false, .opponents = false});
    CHECK(!small.robustness);
    CHECK(!small.target("torch-csv").found.schedule);
    CHECK(small.target("torch-csv").why_not == "not asked for");
    CHECK(small.makespan == whole.makespan);
    REQUIRE(small.baselines.all.size() == whole.baselines.all.size());
    check_verified(request, small);

    const auto partition = partition::partitioner("balanced").make(*request.job.setup, request.batch.microbatches, 2);
    const auto cut = planned(testing::on_partition(request, partition), in_order,
                             {.targets = false, .robustness = false, .opponents = false});
    CHECK(cut.partition().name == "balanced");
    CHECK(cut.partition().chunks_per_rank == 2);
    for (const Baseline& one : cut.baselines.all) CHECK((one.partition == "balanced" && one.chunks_per_rank == 2));

    const auto chosen =
        planned(request, in_order,
                {.targets = false, .robustness = false, .opponents = false, .policies = {"dual-queue", "gpipe"}});
    for (const auto& name : {"dual-queue", "gpipe"})
        CHECK(std::any_of(chosen.baselines.all.begin(), chosen.baselines.all.end(),
                          [&](const Baseline& one) { return one.policy == name; }));
    for (const Baseline& one : chosen.baselines.all) CHECK((one.policy == "dual-queue" || one.policy == "gpipe"));
    for (const NotApplicable& one : chosen.baselines.not_applicable)
        CHECK((one.policy == "dual-queue" || one.policy == "gpipe"));
}

TEST_CASE("a job asks for its next batch as for its first one, on the same setup") {
    auto first = small_request();
    first.job.seed = 7;
    first.job.sharing = partition::Sharing::in_turn;
    const Session session(first.job, first_plan(first));
    std::vector<workloads::Sample> samples(2);
    samples[0] = {"a", 1024, 1024, {}};
    samples[1] = {"b", 512, 512, {}};

    const auto next = session.job().batch("second", samples);
    CHECK(next.name == "second");
    CHECK(session.job().setup == first.job.setup);
    CHECK(session.job().seed == 7);
    CHECK(session.job().sharing == partition::Sharing::in_turn);
    CHECK(next.samples.size() == 2);
    CHECK(next.microbatches.size() == workloads::pack(samples, session.job().setup->model).size());
    CHECK(next.microbatches.front().tokens >= 1024);
}

TEST_CASE("plans of a running job keep its partition, and the search is never slower than the draft") {
    const Session session(job_of_two().request.job, job_of_two().first);
    REQUIRE(session.partition().name == "dip");
    // Of these batches alone, the partition would be another.
    for (const auto& images : testing::full_or_short<std::vector<std::vector<int>>>(
             {{5, 0, 2, 9, 1, 4, 0, 7}, {0, 0, 0, 0, 1, 0}, {9, 9, 9, 9}}, {{0, 0, 0, 0, 1, 0}, {9, 9, 9, 9}})) {
        const auto request = next_batch(session, images);
        std::optional<Plan> draft;
        const auto keep = [&](Plan plan) { draft = std::move(plan); };
        const auto plan = session.plan(request, in_order, until_rounds, keep);
        REQUIRE(draft);
        CHECK(plan.makespan <= draft->makespan);
        CHECK(draft->lower_bound <= plan.makespan);
        for (const Plan* one : {&plan, static_cast<const Plan*>(&*draft)}) {
            check_verified({session.job(), request}, *one);
            for (const ReplicaPlan& replica : one->replicas)
                CHECK(replica.cut.step.problem.stages.size() ==
                      session.partition().chains[0].stages.size() + session.partition().chains[1].stages.size());
        }
        const auto again = session.plan(request, on_own_threads(3), until_rounds);
        CHECK(again.replicas.back().found.schedule == plan.replicas.back().found.schedule);
    }
}

TEST_CASE("searches of a running job begin with the order of its first plan, if that was searched for") {
    auto request = long_job().request;
    const Plan& first = long_job().first;
    request.job.max_rounds = 0;
    const auto again = [&](const Plan& plan) {
        const Session session(request.job, plan);
        Batch batch = session.job().batch("again", request.batch.samples);
        batch.microbatches = request.batch.microbatches;
        return session.plan(batch, in_order, until_rounds);
    };
    CHECK(again(first).makespan == first.makespan);
    Wanted wanted{.targets = false, .robustness = false, .opponents = false};
    wanted.search = false;
    const Plan unsearched = planned(testing::on_partition(request, dip_of(request)), in_order, wanted);
    CHECK(again(unsearched).makespan > first.makespan);
}

TEST_CASE("a plan that is wanted at once is the draft") {
    const Session session(job_of_two().request.job, job_of_two().first);
    std::optional<Plan> draft;
    const auto plan = session.plan(next_batch(session, {5, 0, 2, 9, 1, 4, 0, 7}), in_order, at_once,
                                   [&](Plan made) { draft = std::move(made); });
    REQUIRE(draft);
    for (std::size_t r = 0; r < 2; ++r) CHECK(plan.replicas[r].found.schedule == draft->replicas[r].found.schedule);
}

TEST_CASE("a draft tries a few quick policies, the plan all of them") {
    const auto first = small_request();
    const Session session(first.job, first_plan(first));
    std::optional<Plan> draft;
    const auto plan = session.plan(next_batch(session, {5, 0, 2, 9, 1, 4, 0, 7}), in_order, until_rounds,
                                   [&](Plan made) { draft = std::move(made); });
    REQUIRE(draft);
    const auto tried = [](const Plan& one) { return one.baselines.all.size() + one.baselines.not_applicable.size(); };
    CHECK(tried(*draft) == 3);
    CHECK(tried(plan) == search::policies().size());
    CHECK(draft->lower_bound <= plan.lower_bound);  // which is the quick one in a draft
}

TEST_CASE("a running job splits backwards where its first plan does, unless the request says it") {
    for (const Split split : {Split::never, Split::always}) {
        auto first = small_request();
        first.job.split = split;
        const auto plan = first_plan(first);
        auto open = first;
        open.job.split = Split::automatic;
        const Session session(open.job, plan);
        const auto next = next_batch(session, {5, 0, 2, 9, 1, 4, 0, 7});
        CHECK(session.job().split == split);
        check_verified({session.job(), next}, session.plan(next, in_order, until_rounds));

        open.job.split = split == Split::never ? Split::always : Split::never;
        CHECK(Session(open.job, plan).job().split == open.job.split);
    }
}

TEST_CASE("the next batch prices no layer that the first one priced") {
    const auto first = small_request();
    const Session session(first.job, first_plan(first));
    const auto before = first.job.setup->store->statistics();
    REQUIRE(before.misses > 0);

    // The same microbatches in another order.
    static_cast<void>(session.plan(next_batch(session, {7, 0, 4, 1, 9, 2, 0, 5}), in_order, until_rounds));
    const auto same = first.job.setup->store->statistics();
    CHECK(same.misses == before.misses);
    CHECK(same.hits > before.hits);

    static_cast<void>(session.plan(next_batch(session, {7, 0, 4, 1, 11, 2, 0, 5}), in_order, until_rounds));
    CHECK(first.job.setup->store->statistics().misses > same.misses);
}

TEST_CASE("the steps of a batch price all that its plan needs") {
    const auto first = small_request(2);
    const Session session(first.job, first_plan(first));
    const auto batch = next_batch(session, {6, 0, 3, 8, 1, 4, 0, 10});
    const auto steps = session.steps(batch, in_order);
    const auto priced = first.job.setup->store->statistics();

    const auto plan = session.plan(batch, on_threads(2), at_once);
    CHECK(first.job.setup->store->statistics().misses == priced.misses);
    REQUIRE(steps.size() == plan.replicas.size());
    for (std::size_t r = 0; r < steps.size(); ++r) {
        CHECK(steps[r].partition.name == plan.partition().name);
        CHECK(steps[r].units.size() == plan.replicas[r].microbatches.size());
        CHECK(steps[r].step.problem.name == plan.replicas[r].cut.step.problem.name);
    }
}

TEST_CASE("a plan that a clock ended comes out again from where its searches ended") {
    auto first = small_request(2, {9, 1, 0, 4, 7, 2, 12, 3});
    const Plan plan_of_first = first_plan(first);
    first.job.max_rounds.reset();
    const Session session(first.job, plan_of_first);
    const Batch batch = next_batch(session, {5, 0, 2, 9, 1, 4, 0, 7});
    std::vector<Duration> makespans;
    for (const auto questions : testing::full_or_short<std::vector<std::uint64_t>>({0, 3, 15, 40}, {0, 15})) {
        Endings endings;
        const Plan then = session.plan(batch, on_own_threads(3), testing::after_questions(questions), {}, &endings);
        REQUIRE(endings.size() == 2);
        const Plan now = session.plan_again(batch, in_order, endings);
        CHECK(emit::plan_json(session.job(), batch, now).dump() == emit::plan_json(session.job(), batch, then).dump());
        for (std::size_t r = 0; r < 2; ++r) {
            CHECK(now.replicas[r].found.schedule == then.replicas[r].found.schedule);
            CHECK(now.replicas[r].found.rounds == then.replicas[r].found.rounds);
            CHECK(endings[r].has_value() == (questions > 0));
        }
        makespans.push_back(then.makespan);
    }
    CHECK(makespans.back() < makespans.front());  // or the searches would have had nothing to do
    CHECK(session.by_policy(batch, in_order).makespan == makespans.front());
}

TEST_CASE("a session without patience searches on until it is told to end" * testing::in_long_runs()) {
    auto request = small_request(2, {9, 1, 0, 4, 7, 2, 12, 3});
    const Plan first = first_plan(request);
    request.job.max_rounds.reset();
    request.job.split = Split::never;
    request.job.fixed = partition::PartitionFile{first.partition(), {}};
    const Session patient(request.job, {0}, std::nullopt, patience),
        other(request.job, {0}, std::nullopt, std::nullopt);
    const Batch batch = next_batch(patient, {5, 0, 2, 9, 1, 4, 0, 7});
    constexpr std::uint64_t questions = 400;
    const auto found = [&](const Session& session) {
        return session.plan(batch, in_order, testing::after_questions(questions)).replicas.front().found;
    };
    const auto by_itself = found(patient), at_the_end = found(other);
    CHECK(by_itself.stop_reason == schedule::StopReason::no_gain);
    CHECK(at_the_end.stop_reason == schedule::StopReason::budget);
    CHECK(at_the_end.rounds > by_itself.rounds);
    CHECK(at_the_end.replay.makespan <= by_itself.replay.makespan);
}

TEST_CASE("a batch that was begun has a plan by policy, and is planned on as the batch itself") {
    const auto first = small_request();
    const Session session(first.job, first_plan(first));
    const Batch batch = next_batch(session, {5, 0, 2, 9, 1, 4, 0, 7});
    Begun begun = session.begin(batch, on_threads(2));
    REQUIRE(begun.has_policy());
    const auto text = [&](const Plan& plan) { return emit::plan_json(session.job(), batch, plan).dump(); };
    CHECK(text(session.by_policy(begun)) == text(session.by_policy(batch, in_order)));
    const Plan direct = session.plan(batch, in_order, until_rounds);
    CHECK(text(session.plan(std::move(begun), in_order, until_rounds)) == text(direct));
}

TEST_CASE("a session that was kept as files plans as the one that it was") {
    auto request = long_job().request;
    const Plan& first = long_job().first;
    request.job.max_rounds = 5;
    const Session session(request.job, first);

    const auto order = StaticOrder::of_plan(first);
    REQUIRE(order);
    const auto problem = schedule::parse_problem("problem", schedule::to_json(order->problem()));
    auto kept = request;
    kept.job.fixed = partition::PartitionFile{first.partition(), {}};
    const auto& pairs = order->problem().pairs;
    const bool split =
        std::any_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.weight.has_value(); });
    kept.job.split = split ? Split::always : Split::never;
    const Session again(kept.job, {0}, StaticOrder(first.partition(), problem.problem, order->schedule()), patience);

    const Batch batch = next_batch(session, {5, 0, 2, 9, 1, 4, 0, 7});
    CHECK(again.plan(batch, in_order, until_rounds).replicas.front().found.schedule ==
          session.plan(batch, in_order, until_rounds).replicas.front().found.schedule);
}

TEST_CASE("a kept session says the headroom where its target leaves that to the shapes of a batch") {
    auto request = small_request();
    testing::change_setup(request, [](emulator::Setup& setup) { setup.headroom = emulator::usual_headroom; });
    const Plan plan = first_plan(request);
    const auto kept_for = [&](const char* target) {
        request.job.target = target;
        return keep("{}", std::nullopt, request.job, plan);
    };
    CHECK(kept_for("any").find(R"("headroom":"3%")") != std::string::npos);
    CHECK(kept_for("free").find(R"("headroom")") == std::string::npos);  // its segments expand
}
