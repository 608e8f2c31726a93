// What a job chooses once: its partition, its opponents, its static order.
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "pipeweaver/planner/static_order.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "planner/evaluate/step.hpp"
#include "planner/job/sample.hpp"
#include "planner/way/run.hpp"
#include "planner/way/settings.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/times.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using testing::small_request;

namespace {

// A job of two sample batches, and a third that is planned.
Request small_job(std::int64_t dp = 1) {
    Request request = small_request(dp);
    request.job.target = "any";  // dealt modules, too
    request.job.sample.name = {"mix", {101, 102}, 8, {}};
    request.job.sample.batches = {testing::small_batch({4, 1, 7, 0, 3, 9, 2, 5}),
                                  testing::small_batch({0, 8, 2, 2, 6, 1, 3, 0})};
    return request;
}

Executor backwards() {
    return [](std::size_t count, const std::function<void(std::size_t)>& job) {
        for (std::size_t i = count; i-- > 0;) job(i);
    };
}

constexpr ChoiceEffort small_effort{3, 2, 2, 100'000};

// Of the small job, made once for all tests.
const PartitionChoice& small_choice() {
    static const PartitionChoice choice = choose_partition(small_job().job, small_job().batch, small_effort, in_order);
    return choice;
}

}  // namespace

TEST_CASE("the partition of a job is the best of its candidates, the same on any number of threads") {
    const Request request = small_job();
    const PartitionChoice& choice = small_choice();
    REQUIRE(choice.tried.size() >= 8);
    CHECK(choice.chosen_on == request.job.sample.name);
    CHECK(choice.tried.front().searched);
    CHECK(choice.tried.front().batches == 2);
    Duration taken{};
    for (const PartitionTried& one : choice.tried) {
        if (!one.searched) continue;
        CHECK(choice.tried.front().step <= one.step);
        if (one.partition.name == choice.partition.name && one.partition.unit_items == choice.partition.unit_items &&
            one.partition.chunks_per_rank == choice.partition.chunks_per_rank)
            taken = one.step;
    }
    REQUIRE(taken > Duration{});
    CHECK(static_cast<double>(taken.count()) <= 1.005 * static_cast<double>(choice.tried.front().step.count()));
    for (const Executor& execute :
         testing::full_or_short<std::vector<Executor>>({backwards(), on_threads(2), on_threads(16)}, {on_threads(2)})) {
        const auto again = choose_partition(request.job, request.batch, small_effort, execute);
        REQUIRE(again.tried.size() == choice.tried.size());
        CHECK(partition::to_json({again.partition, {}}, *request.job.setup) ==
              partition::to_json({choice.partition, {}}, *request.job.setup));
        for (std::size_t i = 0; i < choice.tried.size(); ++i) CHECK(again.tried[i].step == choice.tried[i].step);
    }
}

TEST_CASE("a partition of each kind is searched: policies judge none against another kind") {
    std::array<int, 3> searched{};
    for (const PartitionTried& one : small_choice().tried)
        if (one.searched)
            ++searched[!phase_modules(one.partition).empty() ? 2 : one.partition.chains.size() > 1 ? 1 : 0];
    CHECK(searched == std::array{1, 1, 1});
}

TEST_CASE("a batch does not change the partition of a job, and a fixed one is taken as it is") {
    Request request = small_job();
    const auto first = choose_partition(request.job, request.batch, quick_choice, in_order).partition;
    request.batch.microbatches = testing::small_batch({30, 30, 30, 30});
    CHECK(partition::to_json({choose_partition(request.job, request.batch, quick_choice, in_order).partition, {}},
                             *request.job.setup) == partition::to_json({first, {}}, *request.job.setup));
    request.job.fixed = partition::PartitionFile{first, {"other", {7}, 4, {}}};
    const auto fixed = choose_partition(request.job, request.batch, quick_choice, in_order);
    CHECK(fixed.tried.empty());
    CHECK(fixed.chosen_on.text() == "other, seed 7");
    const auto plan = testing::planned(request);
    CHECK(plan.partition().name == first.name);
    CHECK(plan.partition().unit_items == first.unit_items);
}

TEST_CASE("partitions for whose tasks there is no time are not tried, but for the one with the fewest") {
    const Request request = small_job();
    const auto tasks_of = [&](const partition::Partition& one) {
        const auto first = batches_of(request.job, request.batch).front();
        return count_tasks(one, partition::units(one, request.job.setup->model, first));
    };
    ChoiceEffort effort = small_effort;
    effort.most_tasks_of_replica = 1;
    const PartitionChoice choice = choose_partition(request.job, request.batch, effort, in_order);
    CHECK(choice.cut_short);
    std::size_t left_out = 0;
    for (const PartitionTried& one : choice.tried) {
        if (one.why_not == no_time_left) ++left_out;
        CHECK((one.why_not != no_time_left || tasks_of(one.partition) > tasks_of(choice.partition)));
    }
    CHECK(left_out > 0);
    effort.most_tasks_of_replica = 1'000'000;
    CHECK_FALSE(choose_partition(request.job, request.batch, effort, in_order).cut_short);
}

namespace {

// The small job's choice, ended for this reason when the first round of such work is through.
PartitionChoice ended_after(std::string_view work, schedule::StopReason reason) {
    bool over = false;
    const Time time =
        Time::until({}, [&](const search::Progress&) { return over ? std::optional(reason) : std::nullopt; });
    const OnDoing on = [&](const Doing& doing) { over = over || (doing.what == work && doing.number == doing.of); };
    return choose_partition(small_job().job, small_job().batch, small_effort, in_order, time, on);
}

template <class Which>
auto count(const PartitionChoice& choice, const Which& which) {
    return std::count_if(choice.tried.begin(), choice.tried.end(), which);
}

}  // namespace

TEST_CASE("searches of a choice end when they are told to, the best candidates having been first") {
    const auto is_searched = [](const PartitionTried& one) { return one.searched; };
    const auto choice = ended_after("partition, by searches", schedule::StopReason::budget);
    CHECK(choice.cut_short);
    CHECK(count(choice, is_searched) == 1);
    CHECK(choice.tried.front().searched);
    CHECK(choice.partition.name == choice.tried.front().partition.name);
    CHECK(count(small_choice(), is_searched) == 3);
}

TEST_CASE("a choice that a budget or whoever asked for it ends early is of what policies say of one batch") {
    for (const auto reason : {schedule::StopReason::stopped, schedule::StopReason::budget}) {
        const auto choice = ended_after("partition", reason);
        CHECK(choice.cut_short);
        CHECK(count(choice, [](const PartitionTried& one) { return one.batches > 1 || one.searched; }) == 0);
        CHECK(choice.partition.name == choice.tried.front().partition.name);
    }
}

TEST_CASE("opponents are cut on the sample, ranked on it, and run as emulate runs them") {
    for (const auto dp : testing::full_or_short<std::vector<std::int64_t>>({1, 2}, {1})) {
        Request request = small_job(dp);
        if (dp == 2)
            request.batch.microbatches = testing::small_batch({5, 0, 2, 9, 1, 4, 0, 7, 3, 3, 8, 0, 1, 6, 2, 5});
        request.batch.samples.clear();
        const auto opponents = choose_opponents(request.job, request.batch, on_threads(2));
        REQUIRE(opponents.ways.size() > 10);
        for (const char* name : {"balanced", "megatron", "first-stage", "three-phase", "no-pipeline"})
            CHECK(std::any_of(opponents.ways.begin(), opponents.ways.end(),
                              [&](const OpponentWay& way) { return way.name.starts_with(name); }));
        for (std::size_t w = 1; w < opponents.ways.size(); ++w)
            if (opponents.ways[w].batches == opponents.ways[w - 1].batches)
                CHECK(opponents.ways[w - 1].step <= opponents.ways[w].step);
        CHECK(opponents.ways.front().batches == 2);

        const auto run = run_opponents(opponents, request.job, request.batch, in_order);
        REQUIRE(run.all.size() + run.not_applicable.size() == opponents.ways.size() + opponents.not_applicable.size());
        std::size_t compared = 0;
        for (const Baseline& one : run.all) {
            const auto way = std::find_if(opponents.ways.begin(), opponents.ways.end(), [&](const OpponentWay& known) {
                return one.partition == known.name && known.policy == one.policy &&
                       known.partition.chunks_per_rank == one.chunks_per_rank;
            });
            REQUIRE(way != opponents.ways.end());
            if (!way->has_pipeline) continue;
            EmulationRequest same;
            same.job = request.job;
            same.batch = request.batch;
            same.job.fixed = partition::PartitionFile{way->partition, {}};
            same.policy = one.policy;
            same.recompute = one.recompute;
            CHECK(emulate(same, in_order).step == one.step);
            ++compared;
        }
        CHECK(compared > 8);
    }
}

TEST_CASE("the fastest opponents run on the whole sample, the others on its first batch alone") {
    Request request = small_job();
    request.job.sample.batches.push_back(testing::small_batch({3, 3, 0, 1, 2, 8, 0, 4}));
    const auto ways = choose_opponents(request.job, request.batch, in_order).ways;
    REQUIRE(ways.size() > sizes.opponents_on_all);
    for (std::size_t w = 0; w < ways.size(); ++w) {
        CAPTURE(ways[w].name);
        CHECK(ways[w].batches == (w < sizes.opponents_on_all ? 3 : 1));
    }
}

TEST_CASE("an opponent's command has the way's layout, and the packing that the job has") {
    Request request = small_job();
    OptionValues words;
    for (const char* name : {"model", "packing", "cp", "ep"}) words.set(name, "said");
    request.job.words = words;
    OpponentWay way{{.name = "balanced",
                     .setup = request.job.setup,
                     .policy = "1f1b",
                     .recompute = {{.everywhere = emulator::Recompute::full}}}};
    way.partition.name = "balanced";
    for (const auto packing : {workloads::Packing::given, workloads::Packing::balanced}) {
        request.job.packing = packing;
        const std::string command = command_of(way, request.job, request.batch);
        CHECK(command.starts_with("pipeweaver emulate --model said"));
        CHECK(command.find("--tp 2 --pp 4 --dp 1 ") != std::string::npos);
        CHECK(command.find("--policy 1f1b --recompute full") != std::string::npos);
        const bool packs = packing == workloads::Packing::balanced;
        CHECK((command.find(" --packing balanced ") != std::string::npos) == packs);
        CHECK((command.find("--packing") != std::string::npos) == packs);
        for (const char* other : {"--cp", "--ep"}) CHECK(command.find(other) == std::string::npos);
    }
    request.job.words.reset();
    CHECK(command_of(way, request.job, request.batch).empty());
}

TEST_CASE("an opponent's command says the experts' layout where it is not the usual one: its step is another") {
    Request request = small_job();
    request.job.words.emplace().set("model", "said");
    auto setup = std::make_shared<emulator::Setup>(
        with_layout(*request.job.setup, {.tp = 1, .pp = 4, .dp = 1, .cp = 2, .ep = 2}));
    OpponentWay way{{.name = "balanced",
                     .setup = setup,
                     .policy = "1f1b",
                     .recompute = {{.everywhere = emulator::Recompute::full}}}};
    const std::string command = command_of(way, request.job, request.batch);
    CHECK(command.find(" --cp 2 ") != std::string::npos);
    CHECK(command.find(" --ep 2 ") != std::string::npos);
    setup->layout.ep = 1;
    CHECK(command_of(way, request.job, request.batch).find("--ep") == std::string::npos);
}

// Of the first setting and those that are fastest for a batch that it does not fit: the first fastest that fits all.
TEST_CASE("an opponent has one recomputation on the whole sample, which fits all of it where one does") {
    std::size_t changed = 0;
    for (const std::int64_t headroom : {0, 960'000, 965'000, 970'000}) {
        CAPTURE(headroom);
        Request request = small_job();
        request.job.sample.batches = {testing::small_batch({0, 1, 0, 1, 0, 0, 1, 0}),
                                      testing::small_batch({3, 9, 0, 9, 9, 2, 9, 4})};
        testing::change_setup(request, [&](emulator::Setup& setup) { setup.headroom.parts_per_million = headroom; });
        for (const OpponentWay& way : choose_opponents(request.job, request.batch, in_order).ways) {
            if (way.batches != 2 || !way.has_pipeline) continue;
            CAPTURE(way.name);
            CAPTURE(way.policy);
            const auto& target = planner::target(request.job.target);
            const BuiltWay light(way, {request.job.sample.batches[0]}, target);
            const BuiltWay full(way, {request.job.sample.batches[1]}, target);
            const WayResult first = light.run(way.policy, {});
            const WayResult other = full.run(way.policy, first.recompute);
            if (!other.runs()) continue;
            const WayResult both = light.run(way.policy, other.recompute);
            const bool fits = both.recompute == other.recompute;
            changed += other.recompute != first.recompute && fits ? 1 : 0;
            if (!fits) continue;
            CHECK(way.recompute == other.recompute);
            CHECK(way.step == (both.step + other.step) / 2);
        }
    }
    CHECK(changed > 3);
}

TEST_CASE("a job without pipeline ranks has opponents without a pipeline alone, on its own GPUs") {
    Request request = small_request();
    request.job.setup = std::make_shared<emulator::Setup>(testing::small_setup({.tp = 8, .pp = 1, .dp = 1}));
    const auto opponents = choose_opponents(request.job, request.batch, in_order);
    for (const OpponentWay& way : opponents.ways) {
        CHECK(!way.has_pipeline);
        CHECK(way.setup->layout.gpus() == request.job.setup->layout.gpus());
        const bool own = way.setup->layout.tp == 8 && way.setup->recipe.zero == request.job.setup->recipe.zero;
        CHECK(own == (way.setup == request.job.setup));
    }
    const auto is_own = [&](const OpponentWay& way) { return way.setup == request.job.setup; };
    CHECK(std::count_if(opponents.ways.begin(), opponents.ways.end(), is_own) == 1);
    for (const int zero : {0, 2}) {
        testing::change_setup(request, [&](emulator::Setup& setup) { setup.recipe.zero = zero; });
        const auto others = choose_opponents(request.job, request.batch, in_order);
        CHECK(std::count_if(others.ways.begin(), others.ways.end(), is_own) == 1);
    }
}

TEST_CASE("one order for all batches runs them all, no faster than their own search, and is itself on its own batch" *
          pipeweaver::testing::on_release_libraries()) {
    Request request = small_job();
    request.job.max_rounds = testing::full_or_short(20, 8);
    request.job.recompute = emulator::usual_modes();  // few rounds find little among more
    const auto partition = choose_partition(request.job, request.batch, quick_choice, in_order).partition;
    Job alone = request.job;
    alone.sample.batches.resize(1);
    const StaticOrder first(alone, request.batch, partition, in_order, {});
    Request own = request;
    own.batch.microbatches = request.job.sample.batches.front();
    own.job.fixed = partition::PartitionFile{partition, {}};
    const auto plan = testing::planned(own, in_order, {.targets = false, .robustness = false, .opponents = false});
    const auto carried = first.step(own.job, own.batch, in_order);
    REQUIRE(carried);
    CHECK(*carried <= plan.step + plan.step / 20);

    const StaticOrder order(request.job, request.batch, partition, in_order, {});
    own.batch.microbatches = request.batch.microbatches;
    const auto step = order.step(own.job, own.batch, in_order);
    REQUIRE(step);
    const auto best = testing::planned(own, in_order, {.targets = false, .robustness = false, .opponents = false});
    CHECK(*step >= best.step);
    CHECK(order.step(own.job, own.batch, on_threads(4)) == step);
}

TEST_CASE("a plan with dealt encoders is no slower than the opponent it begins from, and every item has one GPU") {
    Request request = small_job();
    request.job.partition = "three-phase";
    const Plan plan = testing::planned(request, in_order, {.targets = false, .robustness = false});
    const emulator::StepProblem& step = plan.replicas.front().cut.step;
    CHECK(!phase_modules(plan.partition()).empty());
    CHECK(schedule::replay(step.problem, *plan.replicas.front().found.schedule).outcome ==
          schedule::Outcome::completed);
    std::size_t beaten = 0;
    for (const Baseline& one : plan.baselines.all)
        if (one.partition == "three-phase" && one.recompute == no_recompute) {
            CHECK(plan.step <= one.step);
            ++beaten;
        }
    CHECK(beaten > 0);
    CHECK(plan.baselines.chosen_on == request.job.sample.name);
    std::map<std::tuple<std::size_t, std::size_t, std::size_t>, int> taken;
    REQUIRE(step.dealt.size() == 8);  // 4 ranks of 2 GPUs
    for (const auto& gpu : step.dealt)
        for (const emulator::DealtItem& item : gpu) ++taken[{item.microbatch, item.phase, item.unit}];
    std::size_t items = 0;
    for (const auto& microbatch : request.batch.microbatches) items += microbatch.items.size();
    CHECK(taken.size() == items);
    CHECK(std::all_of(taken.begin(), taken.end(), [](const auto& one) { return one.second == 1; }));
    const auto lists = emit::actions_of(request.job, request.batch, plan.replicas.front(),
                                        emit::loss_totals(request.job, request.batch, plan.partition()));
    CHECK(emit::why_not_runnable(lists) == std::nullopt);
}

TEST_CASE("a job tries encoders in phases and copies in chains, unless a layout of the module is asked for") {
    const auto any = [](const PartitionChoice& choice, const auto& is_so) {
        return std::any_of(choice.tried.begin(), choice.tried.end(),
                           [&](const PartitionTried& one) { return is_so(one.partition); });
    };
    const auto in_phases = [](const partition::Partition& one) { return !phase_modules(one).empty(); };
    const auto with_copies = [](const partition::Partition& one) { return partition::shares_ranks(one); };
    CHECK(any(small_choice(), in_phases));
    CHECK(any(small_choice(), with_copies));
    Request request = small_job();
    request.job.layouts = partition::parse_module_tp("vit=2", *request.job.setup);
    const auto one_tp = choose_partition(request.job, request.batch, small_effort, in_order);
    CHECK(!any(one_tp, in_phases));
    CHECK(!any(one_tp, with_copies));
    request.job.layouts = partition::parse_module_tp("vit=1:dealt", *request.job.setup);
    const auto dealt = choose_partition(request.job, request.batch, small_effort, in_order);
    CHECK(std::all_of(dealt.tried.begin(), dealt.tried.end(),
                      [&](const PartitionTried& one) { return with_copies(one.partition); }));
}

TEST_CASE("without a pipeline a plan that must recompute gets the fewest blocks that fit the sample") {
    Request request = small_job();
    request.job.target = "free";
    const emulator::Layout flat{.tp = 8, .pp = 1, .dp = 1};
    request.job.setup = std::make_shared<emulator::Setup>(testing::small_setup(flat));
    request.job.layouts = partition::parse_module_tp("vit=8", *request.job.setup);  // others take another memory
    const auto choose = [&] { return choose_partition(request.job, request.batch, small_effort, in_order).partition; };
    CHECK(choose().modes == menu_of(request.job));  // all of it fits

    // A little less memory than it takes where nothing is recomputed.
    const auto peak_of = [&](emulator::Recompute mode) {
        Request one = request;
        one.job.fixed = partition::PartitionFile{choose(), {}};
        one.job.fixed->partition.modes = {mode};
        return testing::planned(one).replicas.front().found.replay.peak.front();
    };
    const double usable = static_cast<double>(emulator::usable_bytes(request.job.setup->cluster).count);
    const Bytes enough = peak_of(emulator::Recompute::none);
    testing::change_setup(request, [&](emulator::Setup& setup) {
        const double left = 1 - static_cast<double>(enough.count) / usable;
        setup.headroom.parts_per_million = static_cast<std::int64_t>(left * 1e6) + 2;
    });
    REQUIRE(emulator::capacity_of(*request.job.setup) < enough);
    const auto modes = choose().modes;
    REQUIRE(modes.size() == 5);
    CHECK(modes[3].kind == emulator::Recompute::Kind::blocks);
    CHECK(peak_of(modes[3]) <= emulator::capacity_of(*request.job.setup));
    CHECK(modes[3].layers == 1);
}
