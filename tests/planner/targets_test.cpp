#include "pipeweaver/planner/targets.hpp"

#include "emit/targets/torch_csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/stage_plan.hpp"
#include "planner/targets/target_plan.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::planner;

namespace {

// Two stages on two ranks, two microbatches; ids: stage * 8 + microbatch * 4 + (F 0, I 1, W 2 or B 1).
Problem chain(bool split) {
    Problem problem;
    problem.name = "chain";
    problem.ranks.resize(2);
    const std::uint32_t per = split ? 3 : 2;
    const auto id = [&](std::uint32_t stage, std::uint32_t mb, std::uint32_t part) {
        return TaskId{(stage * 2 + mb) * per + part};
    };
    for (std::uint32_t s = 0; s < 2; ++s)
        for (std::int64_t m = 0; m < 2; ++m) {
            const auto add = [&](TaskKind kind) {
                Task task;
                task.rank = RankId{s};
                task.kind = kind;
                task.duration = Duration{10};
                task.stage = s;
                task.microbatch = m;
                task.label = std::string(1, letter(kind)) + std::to_string(s) + std::to_string(m);
                problem.tasks.push_back(task);
            };
            add(TaskKind::forward);
            add(split ? TaskKind::input_gradient : TaskKind::backward);
            if (split) add(TaskKind::weight_gradient);
        }
    for (std::uint32_t m = 0; m < 2; ++m) {
        problem.edges.push_back({id(0, m, 0), id(1, m, 0), Duration{1}});
        problem.edges.push_back({id(1, m, 0), id(1, m, 1), Duration{0}});
        problem.edges.push_back({id(1, m, 1), id(0, m, 1), Duration{1}});
        for (std::uint32_t s = 0; s < 2 && split; ++s) problem.edges.push_back({id(s, m, 1), id(s, m, 2), Duration{0}});
    }
    return problem;
}

const Target& torch() { return target("torch-csv"); }

std::vector<TaskId> ids(std::initializer_list<std::uint32_t> numbers) {
    std::vector<TaskId> all;
    for (const auto n : numbers) all.push_back(TaskId{n});
    return all;
}

}  // namespace

TEST_CASE("a chain is expressible, with whole or split backwards") {
    CHECK(torch().inexpressible(chain(false)) == std::nullopt);
    CHECK(torch().inexpressible(chain(true)) == std::nullopt);
}

TEST_CASE("what PyTorch cannot run is refused with the rule and the task") {
    const auto refused = [](auto change) {
        auto problem = chain(false);
        change(problem);
        return torch().inexpressible(problem).value_or("expressible");
    };
    CHECK(refused([](Problem& p) { p.tasks[1].item = 2; }) ==
          "task 1 'B00': PyTorch passes whole microbatches, this is sub-microbatch 2");
    CHECK(refused([](Problem& p) { p.tasks[0].kind = TaskKind::other; }) ==
          "task 0 'F00': PyTorch has no action of kind X");
    CHECK(refused([](Problem& p) { p.tasks[0].stage.reset(); }) == "task 0 'F00': has no stage or microbatch");
    CHECK(refused([](Problem& p) { p.tasks[2].microbatch = 0; }) ==
          "task 2 'F01': is there twice for its stage and microbatch");
    CHECK(refused([](Problem& p) { p.tasks[2].microbatch = 2; }) ==
          "stage 0 has no F of microbatch 1: PyTorch runs every stage for every microbatch");
    CHECK(refused([](Problem& p) { p.tasks.erase(p.tasks.begin() + 1); }) ==
          "stage 0 has no backward of microbatch 0, as a frozen module before the first trained one: PyTorch runs a "
          "backward of every stage");
    CHECK(refused([](Problem& p) { p.tasks[1].kind = TaskKind::input_gradient; }) ==
          "stage 0 needs one B, or one I and one W, of microbatch 0");
    CHECK(refused([](Problem& p) { p.tasks[0].rank = RankId{1}; }) == "task 1 'B00': stage 0 is on two ranks");
    CHECK(refused([](Problem& p) {
              p.edges.push_back({TaskId{0}, TaskId{2}, Duration{0}});
          }) == "task 0 'F00' -> task 2 'F01': PyTorch has one chain of stages and no other dependency");
    CHECK(refused([](Problem& p) { p.edges.erase(p.edges.begin() + 2); }) ==
          "stages 0 and 1 are not joined in both directions for microbatch 0: PyTorch sends activations from each "
          "stage to "
          "the next, and gradients back");
    CHECK(refused([](Problem& p) { p.ranks.resize(3); }) == "rank 2 has no stage: PyTorch needs one on every rank");
    CHECK(refused([](Problem& p) {
              p.pairs = {{TaskId{0}, TaskId{1}, {}, {Mode{}, Mode{}}}};
          }) == "task 0 'F00': has 2 memory modes; PyTorch cannot choose one for each microbatch");
}

TEST_CASE("several stages a rank are other classes of PyTorch than one") {
    // torch.distributed.pipelining: ScheduleGPipe and Schedule1F1B are PipelineScheduleSingle, which takes one stage.
    CHECK(target("torch-csv").launch.order ==
          "Schedule1F1B or ScheduleGPipe; with chunks ScheduleInterleaved1F1B or ScheduleLoopedBFS");
}

TEST_CASE("the last stage's forwards must run in microbatch order, all others may not") {
    const auto problem = chain(false);
    const auto rules = torch().rules(problem);
    CHECK(rules.fixed_order[0].empty());
    CHECK(rules.fixed_order[1] == ids({4, 6}));
    CHECK(torch().breaks(problem, {{ids({2, 0, 1, 3}), ids({4, 6, 5, 7})}, {}}) == std::nullopt);
    CHECK(torch().breaks(problem, {{ids({0, 2, 1, 3}), ids({6, 4, 5, 7})}, {}}) ==
          "task 6 'F11': the last stage's forwards must run in the order of the microbatches");
}

TEST_CASE("the CSV has a row a rank, and an I followed by its W is a B where nothing starts between the two") {
    auto problem = chain(true);
    // Rank 0's second forward ends at 50: its backward of microbatch 0 need not have waited for the W 31-41 of rank 1.
    // That of microbatch 1 starts at 72, behind the I 61-71.
    problem.tasks[3].duration = Duration{40};
    const Schedule schedule{{ids({0, 3, 1, 4, 2, 5}), ids({6, 7, 8, 9, 10, 11})}, {}};
    const auto files = emit::torch_csv(problem, schedule);
    CHECK(files.csv == "0F0,0F1,0I0,0I1,0W0,0W1\n1F0,1B0,1F1,1I1,1W1\n");
    CHECK(files.schedule.find("\"stage_to_rank\": [\n  0,\n  1\n ]") != std::string::npos);
}

TEST_CASE("an order against the rules is not written") {
    CHECK_THROWS_WITH_AS(static_cast<void>(emit::torch_csv(chain(false), {{ids({0, 2, 1, 3}), ids({6, 4, 5, 7})}, {}})),
                         "torch-csv: task 6 'F11': the last stage's forwards must run in the order of the microbatches",
                         Error);
}

TEST_CASE("targets have names of their own, and what --target calls them leads back to them") {
    const std::string free = targets().front().name;
    CHECK(free == "free");
    CHECK(target_called("") == free);
    const auto options = target_options();
    REQUIRE(options.size() == targets().size());
    for (std::size_t i = 0; i < options.size(); ++i) {
        CHECK(&target(targets()[i].name) == &targets()[i]);
        CHECK(target_called(options[i]) == targets()[i].name);
    }
    CHECK(rules_of(target(free), chain(false)).fixed_order.empty());
    auto split_in_two = chain(false);
    split_in_two.tasks[1].item = 2;
    CHECK_THROWS_WITH_AS(static_cast<void>(rules_of(torch(), split_in_two)),
                         doctest::Contains("torch-csv: task 1 'B00': PyTorch passes whole microbatches"), Error);
}

TEST_CASE("a target with a fixed chain needs no rules of its own") {
    Target plain = torch();
    plain.inexpressible = nullptr;
    plain.rules = nullptr;
    plain.breaks = nullptr;
    const auto request = testing::small_request();
    const auto partitions = partition::partitions_for(partition::Use::framework, *request.job.setup,
                                                      request.batch.microbatches, "megatron");
    const auto plan = make_target_plan(request.job, plain, partitions, {request.batch.microbatches}, in_order, {});
    REQUIRE(plan.found.schedule);
    for (const TargetBaseline& one : plan.baselines) CHECK(plan.found.replay.makespan <= one.makespan);
}

TEST_CASE("of a target with fixed shapes one schedule is for every replica, with one number of microbatches") {
    const auto request = testing::small_request(1, {9, 8, 9, 7, 1, 2, 1, 1});
    const auto partitions = partition::partitions_for(partition::Use::framework, *request.job.setup,
                                                      request.batch.microbatches, "balanced");
    const auto& all = request.batch.microbatches;
    const Microbatches large(all.begin(), all.begin() + 4), small(all.begin() + 4, all.end());
    const auto made = [&](const std::vector<Microbatches>& replicas) {
        return make_target_plan(request.job, torch(), partitions, replicas, in_order, {});
    };
    const auto alone = made({small}), both = made({small, large}), turned = made({large, small});
    REQUIRE(both.found.schedule);
    CHECK(both.replica == 1);
    CHECK(turned.replica == 0);
    CHECK(both.padding.microbatches.size() == 4);
    CHECK(both.padding.real_tokens == made({all}).padding.real_tokens);
    CHECK(alone.found.replay.makespan < both.found.replay.makespan);
    CHECK(turned.found.replay.makespan == both.found.replay.makespan);

    const auto uneven = made({small, {large.begin(), large.end() - 1}});
    CHECK(uneven.repeated == 1);
    CHECK(uneven.padding.microbatches.size() == 4);
    CHECK(uneven.padding.real_tokens == both.padding.real_tokens - large.back().tokens);
    CHECK(uneven.padding.padded_tokens == both.padding.padded_tokens);
    CHECK(both.repeated == 0);
}

TEST_CASE("without a pipeline a target with fixed shapes pads nothing") {
    auto request = testing::small_request(1, {9, 8, 9, 7, 1, 2, 1, 1});
    const auto& all = request.batch.microbatches;
    const Microbatches large(all.begin(), all.begin() + 4), small(all.begin() + 4, all.end() - 1);
    const auto made = [&](const std::vector<Microbatches>& replicas) {
        const auto partitions = partition::partitions_for(partition::Use::framework, *request.job.setup,
                                                          request.batch.microbatches, "megatron");
        return make_target_plan(request.job, torch(), partitions, replicas, in_order, {});
    };
    CHECK(partition::is_padded(made({small, large}).padding));
    testing::change_setup(request, [](emulator::Setup& setup) { setup.layout = {.tp = 2, .pp = 1, .dp = 2}; });
    const auto both = made({small, large}), alone = made({large});
    REQUIRE(both.found.schedule);
    CHECK_FALSE(partition::is_padded(both.padding));
    CHECK(both.replica == 1);
    CHECK(both.repeated == 1);  // one schedule has one number for all
    CHECK(both.found.replay.makespan == alone.found.replay.makespan);
    CHECK(both.peak_of_fullest == alone.peak_of_fullest);

    // The most loaded replica does not hold most.
    const Microbatches one_large{all[0], all[4], all[6], all[7]}, many{all[1], all[3], all[1], all[3]};
    const auto most_to_do = made({one_large, many}), fullest = made({one_large});
    CHECK(most_to_do.replica == 1);
    const auto peaks = [](const TargetPlan& plan) { return peaks_of(plan.cut.step, plan.found.replay.peak); };
    REQUIRE(peaks(fullest).size() == 1);
    CHECK(most_to_do.peak_of_fullest == peaks(fullest).front());
    CHECK(most_to_do.peak_of_fullest > peaks(most_to_do).front());
}

TEST_CASE("measured stages run in the order of a target that has one of its own, or it is said why not") {
    StageRequest request;
    request.table = parse_stage_table("t.csv",
                                      "stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,"
                                      "send_bytes\n0,0,10,20,,1,1,1\n1,1,10,20,,1,1,1\n");
    request.options.microbatches = 4;
    Target own;
    own.name = own.folder = "own";
    own.searches = false;
    own.policies = {"gpipe", "1f1b"};
    const auto fastest = schedule_stages(request, own, in_order, {});
    CHECK(fastest.problem.name == "t-own");
    REQUIRE(fastest.found.schedule);
    CHECK(fastest.found.replay.makespan == std::chrono::microseconds(5 * 30));
    CHECK(fastest.found.strategy == "1f1b");  // as fast, and holds less

    own.policies = {"zb-h1"};
    CHECK(schedule_stages(request, own, in_order, {}).found.why_not.find("split") != std::string::npos);
    request.options.capacity = Bytes{4};
    own.policies = {"gpipe"};
    CHECK(!schedule_stages(request, own, in_order, {}).found.schedule);
    own.buffers_for_all = true;
    CHECK(schedule_stages(request, own, in_order, {}).found.why_not.starts_with("with receive buffers for all"));
}

TEST_CASE("where memory is short each rank recomputes what it needs, and the schedule keeps PyTorch's rules") {
    auto request = testing::small_request(1, {9, 8, 9, 7, 9, 9, 8, 9});
    request.job.split = Split::never;
    const auto partitions = partition::partitions_for(partition::Use::framework, *request.job.setup,
                                                      request.batch.microbatches, "balanced");
    const auto made = [&] {
        return make_target_plan(request.job, torch(), partitions, {request.batch.microbatches}, in_order, {});
    };
    const auto ample = made();
    REQUIRE(ample.found.schedule);
    CHECK(ample.recompute == no_recompute);
    CHECK(ample.by_rank.empty());

    const double usable = static_cast<double>(emulator::usable_bytes(request.job.setup->cluster).count);
    const Bytes most = *std::max_element(ample.found.replay.peak.begin(), ample.found.replay.peak.end());
    std::size_t by_rank = 0;
    for (const double left : {0.9, 0.8, 0.75, 0.7, 0.67}) {
        CAPTURE(left);
        testing::change_setup(request, [&](emulator::Setup& setup) {
            const double part = left * static_cast<double>(most.count) / usable;
            setup.headroom.parts_per_million = static_cast<std::int64_t>(1e6 * (1 - part));
        });
        const auto plan = made();
        REQUIRE(plan.found.schedule);
        CHECK(!torch().breaks(plan.cut.step.problem, *plan.found.schedule));
        for (const Bytes peak : plan.found.replay.peak) CHECK(peak <= emulator::capacity_of(*request.job.setup));
        for (const TargetBaseline& one : plan.baselines) CHECK(plan.found.replay.makespan <= one.makespan);
        CHECK(plan.by_rank.size() == (plan.recompute.by_rank ? 4 : 0));
        if (plan.by_rank.empty()) continue;
        ++by_rank;
        const auto more = [](emulator::Recompute one) { return one != emulator::Recompute::none; };
        CHECK(std::any_of(plan.by_rank.begin(), plan.by_rank.end(), more));
    }
    CHECK(by_rank >= 2);
}
