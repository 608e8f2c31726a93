// The ladder: what is run now, and what each step gains.
#include "pipeweaver/planner/ladder.hpp"

#include "emit/plan/ladder_facts.hpp"
#include "emit/plan/launch_files.hpp"
#include "emit/plan/parts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/plan_folder.hpp"
#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/ends.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/plan_options.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "planner/ladder/rungs.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/times.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

// The same samples, as they come and packed evenly.
std::vector<Request> packings(std::int64_t dp, const std::string& target) {
    std::vector<Request> all;
    for (const auto packing : {workloads::Packing::given, workloads::Packing::balanced}) {
        Request request = testing::small_request(dp);
        std::vector<workloads::Sample> samples;
        for (int i = 0; i < 80; ++i) {
            workloads::Sample sample;
            sample.id = "s" + std::to_string(i);
            sample.text_tokens = sample.loss_tokens = 700 + 90 * (i % 5);
            sample.items.resize(i < 40 ? 0 : 5);  // in their order some microbatches have all images
            for (workloads::Item& item : sample.items) {
                item.tokens = 64;
                item.patches = 4096;
            }
            samples.push_back(std::move(sample));
        }
        request.job.packing = packing;
        request.job.target = target;
        request.job.max_rounds = 2;
        request.job.sample = {};
        request.batch = request.job.batch("own", std::move(samples));
        if (target == "torchtitan")  // which shards gradients at least
            testing::change_setup(request, [](emulator::Setup& setup) { setup.recipe.zero = 2; });
        all.push_back(std::move(request));
    }
    return all;
}

// Headroom that leaves so many times that size of each GPU's memory.
void leave(Request& request, Bytes size, double factor) {
    const double usable = static_cast<double>(emulator::usable_bytes(request.job.setup->cluster).count);
    testing::change_setup(request, [&](emulator::Setup& setup) {
        const double kept = 1e6 * (1 - factor * static_cast<double>(size.count) / usable);
        setup.headroom.parts_per_million = static_cast<decltype(setup.headroom.parts_per_million)>(kept);
    });
}

Plan planned_on(const LadderStart& start) {
    Wanted wanted;
    wanted.robustness = false;
    wanted.known_opponents = &start.opponents;
    Plan plan = make_plan(start.request.job, start.request.batch, in_order, {}, wanted);
    plan.ladder = ladder_of(start, plan, in_order);
    return plan;
}

}  // namespace

TEST_CASE("no rung is slower than the one before, and the best is of the target that is asked for") {
    for (const std::string& target : testing::full_or_short<std::vector<std::string>>(
             {"free", "megatron", "torchtitan", "torch-csv"}, {"megatron", "torch-csv"})) {
        const auto start = begin_ladder(packings(2, target), {}, {}, in_order, {});
        CAPTURE(target);
        CAPTURE(start.why_none);
        const Plan plan = planned_on(start);
        const Ladder& ladder = plan.ladder;
        REQUIRE(ladder.rungs.size() == 5);
        for (std::size_t i = 1; i < ladder.rungs.size(); ++i) {
            CHECK(ladder.rungs[i].step <= ladder.rungs[i - 1].step);
            CHECK((ladder.rungs[i].step == ladder.rungs[i - 1].step) == !ladder.rungs[i].why_nothing.empty());
        }
        CHECK(ladder.best().target == planner::target(target).option);
        for (const Rung& rung : ladder.rungs) {
            CHECK(rung.tokens == ladder.now().tokens);
            CHECK(rung.peak <= rung.usable);
            CHECK(rung.peak > Bytes{});
        }
        for (const Baseline& row : plan.baselines.all)
            if (row.launched) CHECK(ladder.rungs[3].step <= row.step);
        for (const Rung& rung : ladder.beyond) CHECK(rung.step < ladder.best().step);
    }
}

TEST_CASE("rungs are told as they become known, as the ladder has them in the end") {
    std::vector<Ladder> told;
    const auto start = begin_ladder(packings(2, "megatron"), {}, {}, in_order, {}, {},
                                    [&](const Ladder& so_far) { told.push_back(so_far); });
    Wanted wanted;
    wanted.robustness = wanted.targets = false;
    wanted.start = &start;
    wanted.on_ladder = [&](const Ladder& so_far) { told.push_back(so_far); };
    const Plan plan = make_plan(start.request.job, start.request.batch, in_order, {}, wanted);
    const Ladder ladder = ladder_of(start, plan, in_order);
    REQUIRE(told.size() == 3);
    CHECK(told.front().rungs.size() == 1);  // now, before the samples are packed otherwise
    CHECK(told[1].rungs.size() == 2);
    CHECK(told.back().rungs.size() == 4);  // all but the schedule, before it is searched
    REQUIRE(ladder.rungs.size() == 5);
    for (const Ladder& so_far : told)
        for (std::size_t i = 0; i < so_far.rungs.size(); ++i) {
            const Rung &known = so_far.rungs[i], &at_last = ladder.rungs[i];
            CHECK(known.name == at_last.name);
            CHECK(known.way == at_last.way);
            CHECK(known.step == at_last.step);
            CHECK(known.why_nothing == at_last.why_nothing);
            CHECK(known.needs == at_last.needs);
            CHECK(known.command == at_last.command);
            CHECK(so_far.is_over_now(known) == ladder.is_over_now(at_last));
        }
}

// Else a budget's search would have other parts of it for who reads along.
TEST_CASE("the rungs that flags launch are made before an order is searched, whether or not they are told") {
    const auto start = begin_ladder(packings(1, "torch-csv"), {}, {}, in_order, {});
    std::vector<std::string> order;
    Wanted wanted;
    wanted.robustness = wanted.targets = false;
    wanted.start = &start;
    wanted.on_ladder = [&](const Ladder& so_far) { order.push_back(so_far.rungs.back().name); };
    wanted.on_doing = [&](const Doing& doing) { order.emplace_back(doing.what); };
    const Time asked = Time::until({}, {});  // without one a search tells nothing of itself
    const Plan told = make_plan(start.request.job, start.request.batch, in_order, asked, wanted);
    const auto made = std::find(order.begin(), order.end(), "layout");
    REQUIRE(made != order.end());
    CHECK(std::find(order.begin(), made, doing::replica) == made);
    CHECK(std::find(made, order.end(), doing::replica) != order.end());

    wanted.on_ladder = {};
    const Plan silent = make_plan(start.request.job, start.request.batch, in_order, asked, wanted);
    REQUIRE(silent.ladder.rungs.size() == 4);
    for (std::size_t i = 0; i < silent.ladder.rungs.size(); ++i)
        CHECK(silent.ladder.rungs[i].step == told.ladder.rungs[i].step);
    CHECK(ladder_of(start, silent, in_order).rungs.size() == 5);
}

TEST_CASE("for a target that is told launch flags the plan is the fastest that they launch, and no order is searched") {
    for (const std::string& target :
         testing::full_or_short<std::vector<std::string>>({"megatron", "torchtitan"}, {"torchtitan"})) {
        auto start = begin_ladder(packings(2, target), {}, {}, in_order, {});
        const Plan plan = planned_on(start);
        CHECK((!plan.is_searched && plan.is_opponents));
        CHECK(plan.ladder.rungs.back().why_nothing.starts_with("not asked for: --also torch-actions"));
        const auto& rows = plan.baselines.all;
        const auto row = std::find_if(rows.begin(), rows.end(),
                                      [](const Baseline& one) { return one.launched && one.on_own_ranks; });
        REQUIRE(row != rows.end());
        CHECK(plan.step == row->step);  // as the target runs it: torchtitan pads
        for (const TargetPlan& own : plan.targets) CHECK(own.why_not == "not asked for: add --also torch-csv");
        // What a step is padded with is in no file.
        testing::TemporaryFolder folder("launched");
        const auto& request = start.request;
        emit::write_plan_folder(request.job, request.batch, plan, folder.path(), {{"format", "pipeweaver-run/1"}},
                                in_order);
        const auto totals = emit::loss_totals(request.job, request.batch, plan.partition());
        double weights = 0;
        for (const ReplicaPlan& replica : plan.replicas)
            for (const auto& rank : emit::actions_of(request.job, request.batch, replica, totals).ranks)
                for (const emit::Action& action : rank)
                    if (const auto* pass = std::get_if<emit::Compute>(&action))
                        weights += pass->loss_weight.value_or(0);
        CHECK(weights == doctest::Approx(1));
        const auto text = emit::plan_text(start.request.job, start.request.batch, plan, false);
        CHECK(text.find("no order was searched") != std::string::npos);
        CHECK(text.find("left out  nothing") != std::string::npos);

        start.request.job.also = {"free"};
        const Plan both = planned_on(start);
        CHECK(both.is_searched);
        CHECK_FALSE(both.ladder.rungs.back().why_nothing.starts_with("not asked for"));
        CHECK(both.targets.front().why_not == "not asked for: add --also torch-csv");
    }
}

TEST_CASE("what is run now is what is said, in turn and as samples come") {
    const auto given = packings(1, "megatron");
    const NowWanted now = parse_now("first-stage,1f1b,full", "");
    const auto start = begin_ladder(given, {}, now, in_order, {});
    REQUIRE(start.now);
    CHECK(start.now->way == "first-stage 1f1b, full");
    EmulationRequest same;
    same.job = given.front().job;
    same.job.partition = "first-stage";
    same.batch = given.front().batch;
    same.recompute = {.everywhere = emulator::Recompute::full};
    CHECK(start.now->step == emulate(same, in_order).step);
    same.batch = given.back().batch;
    const Duration packed = emulate(same, in_order).step;
    CHECK(start.data->step == std::min(start.now->step, packed));
    CHECK((start.request.job.packing == workloads::Packing::balanced) == (packed < start.now->step));
}

TEST_CASE("where the host decides, what runs now and what is advised have both ends") {
    const Request given = packings(1, "free").front();
    const auto start = begin_ladder({given}, {}, {}, in_order, {});
    const Plan plan = planned_on(start);
    const Ladder& ladder = plan.ladder;
    REQUIRE(ladder.now().host);
    const LaunchedWay& now = *ladder.now().launched;
    EmulationRequest same;
    same.job = testing::on_partition(given, now.partition).job;
    same.job.setup = std::make_shared<const emulator::Setup>(*waiting_for_host(*given.job.setup));
    same.batch = given.batch;
    same.policy = now.policy;
    same.recompute = now.recompute;
    CHECK(ladder.now().host->step == emulate(same, in_order).step);
    REQUIRE(ladder.headline > 0);
    REQUIRE(ladder.best().host);
    CHECK(ladder.best().host->step > ladder.best().step);
    for (std::size_t i = 1; i < ladder.rungs.size(); ++i)
        if (i != ladder.headline) CHECK(!ladder.rungs[i].host);

    const auto text = emit::plan_text(given.job, given.batch, plan, false);
    CHECK(text.find("\nhost      now takes ") != std::string::npos);
    const auto json = emit::plan_json(given.job, given.batch, plan);
    CHECK(json.at("ladder").at(0).at("step_range_ns").at(0) == ladder.now().step.count());
    CHECK(json.at("headline").at("step_range_ns").at(1) == ladder.best().host->most().count());
}

TEST_CASE("of a plan's own order the far end is what emulate has of the order launched kernel by kernel") {
    Request given = packings(1, "free").front();
    std::vector<workloads::Sample> text = given.batch.samples;
    std::erase_if(text, [](const workloads::Sample& one) { return !one.items.empty(); });
    given.batch = given.job.batch("text", std::move(text));  // whose layers are short
    Wanted wanted{.targets = false, .robustness = false, .opponents = false, .policies = {"1f1b"}, .search = false};
    auto cut =
        partition::partitioner(partition::megatron_partition).make(*given.job.setup, given.batch.microbatches, 1);
    cut.modes = {emulator::Recompute::none};
    given = testing::on_partition(given, cut);
    const Plan plan = testing::planned(given, in_order, wanted);
    const auto end = far_end(plan, *given.job.setup);
    REQUIRE(end);
    EmulationRequest same;
    same.job = given.job;
    same.batch = given.batch;
    same.recompute = {.everywhere = emulator::Recompute::none};
    CHECK(plan.step == emulate(same, in_order).step);
    same.job.setup = std::make_shared<const emulator::Setup>(*waiting_for_host(*given.job.setup));
    CHECK(end->step == emulate(same, in_order).step);
}

TEST_CASE("of a target's own schedule the far end is what emulate has of its only order launched kernel by kernel") {
    Request given = testing::small_request(1, {0});  // of one microbatch, in one chain, there is one order
    given.job.split = Split::never;
    given = testing::on_partition(
        given,
        partition::partitioner(partition::megatron_partition).make(*given.job.setup, given.batch.microbatches, 1));
    const Plan plan = testing::planned(given, in_order, {.robustness = false, .opponents = false});
    const TargetPlan& own = plan.target("torch-csv");
    REQUIRE(own.found.schedule);
    EmulationRequest same;
    same.job = given.job;
    same.job.target = own.target;
    same.target = &target(own.target);
    same.batch = given.batch;
    same.policy = "1f1b";
    same.recompute = own.recompute;
    const Duration near = emulate(same, in_order).step;
    CHECK(own.found.replay.makespan + own.cut.step.optimizer == near);
    const auto end = far_end(own, *given.job.setup, near);
    REQUIRE(end);
    same.job.setup = std::make_shared<const emulator::Setup>(*waiting_for_host(*given.job.setup));
    CHECK(end->step == emulate(same, in_order).step);
    CHECK(end->step > near);

    emulator::Setup graphs = with_layout(*given.job.setup, given.job.setup->layout);
    graphs.recipe = launched_as(graphs.recipe, emulator::Launched::graphs);
    CHECK(!far_end(own, graphs, near));
}

TEST_CASE("what is run now recomputes on each rank what is said of it") {
    const auto given = packings(1, "megatron");
    const NowWanted now = parse_now("first-stage,1f1b,by-rank:none/blocks:1/full/full", "");
    const auto start = begin_ladder(given, {}, now, in_order, {});
    REQUIRE(start.now);
    CHECK(start.now->way == "first-stage 1f1b, by-rank:none/blocks:1/full/full");
    EmulationRequest same;
    same.job = given.front().job;
    same.job.partition = "first-stage";
    same.batch = given.front().batch;
    same.recompute = now.recompute;
    CHECK(start.now->step == emulate(same, in_order).step);
    same.recompute = StepRecompute{.everywhere = emulator::Recompute::full};
    CHECK(start.now->step < emulate(same, in_order).step);
}

TEST_CASE("a target of fixed shapes pads in pipelines, and what it pads to is said") {
    const auto step_of = [](const Request& given, const char* name) {
        EmulationRequest same;
        same.job = given.job;
        same.job.target = name;
        same.target = &target(name);
        same.job.partition = "megatron";
        same.job.sharing = partition::Sharing::in_turn;
        same.batch = given.batch;
        same.recompute = {.everywhere = emulator::Recompute::full};
        return emulate(same, in_order).step;
    };
    const NowWanted now = parse_now("megatron,1f1b,full", "");
    Request piped = packings(1, "torchtitan").front();
    testing::change_setup(piped, [](emulator::Setup& setup) { setup.recipe.zero = 2; });
    const auto padded = begin_ladder({piped}, {}, now, in_order, {});
    REQUIRE(padded.now->padding);
    CHECK(padded.now->padding->items >= 5);
    CHECK(padded.now->padding->of_items > 0.3);
    CHECK(padded.now->step == step_of(piped, "torchtitan"));
    CHECK(padded.now->step > step_of(piped, "free"));

    // All replicas to the largest microbatch of the batch.
    Request twice = packings(2, "torchtitan").front();
    testing::change_setup(twice, [](emulator::Setup& setup) { setup.recipe.zero = 2; });
    const auto two = begin_ladder({twice}, {}, now, in_order, {});
    std::int64_t real = 0, most = 0;
    for (const auto& one : twice.batch.microbatches) {
        real += one.tokens;
        most = std::max(most, one.tokens);
    }
    const auto all = static_cast<std::int64_t>(twice.batch.microbatches.size()) * most;
    REQUIRE(two.now->padding);
    CHECK(two.now->padding->tokens == most);
    CHECK(two.now->padding->of_tokens == doctest::Approx(1 - static_cast<double>(real) / static_cast<double>(all)));
    CHECK(two.now->step == step_of(twice, "torchtitan"));

    Request flat = piped;
    testing::change_setup(flat, [](emulator::Setup& setup) { setup.layout = {.tp = 2, .pp = 1, .dp = 4}; });
    const auto as_they_are = begin_ladder({flat}, {}, now, in_order, {});
    CHECK(!as_they_are.now->padding);
    CHECK(as_they_are.now->step == step_of(flat, "free"));
    CHECK(!begin_ladder(packings(1, "free"), {}, now, in_order, {}).now->padding);
}

TEST_CASE("layers that are said are a cut of their own") {
    auto given = packings(1, "megatron");
    const emulator::Setup& setup = *given.front().job.setup;
    const auto layers = setup.model.modules[setup.model.backbone()].architecture.layers;
    const auto start =
        begin_ladder(given, {}, parse_now("1f1b", "0," + std::to_string(layers - 2) + ",1,1"), in_order, {});
    CHECK(start.now->way.starts_with("layers 0,"));
    for (const char* wrong : {"1,1,1,1", "1,2", "x"})
        CHECK_THROWS_AS(static_cast<void>(begin_ladder(given, {}, parse_now("", wrong), in_order, {})), Error);
}

TEST_CASE(
    "however short the time, what runs now is among the rows, and no plan is slower than it on the plan's ranks") {
    auto all = packings(2, "free");
    for (Request& request : all) request.job.setup = all.front().job.setup;  // as options make them
    const Time over = testing::after_questions(0);
    const auto start = begin_ladder(all, {}, {}, in_order, over);
    REQUIRE(start.now);
    REQUIRE(start.request.job.packing == workloads::Packing::balanced);  // the ways were chosen on the other
    Wanted wanted;
    wanted.robustness = wanted.targets = false;
    wanted.known_opponents = &start.opponents;
    const Plan plan = make_plan(start.request.job, start.request.batch, in_order, over, wanted);
    const Ladder ladder = ladder_of(start, plan, in_order);
    const auto& rows = plan.baselines.all;
    CHECK(std::any_of(rows.begin(), rows.end(), [](const Baseline& row) { return row.launched && row.on_own_ranks; }));
    for (const Baseline& row : rows)
        if (row.launched && row.on_own_ranks) CHECK(plan.step <= row.step);
    for (const Rung& rung : ladder.rungs) CHECK(rung.step <= ladder.now().step);
}

TEST_CASE("that no flag is faster is said of all of them, or of those that there was time for") {
    const auto said_of_flags = [](const Time& time) {
        const auto given = packings(1, "megatron");
        auto start = begin_ladder({given.front()}, {}, {}, in_order, time);
        start.now->step = start.data->step = Duration(1);  // faster than any
        Wanted wanted;
        wanted.robustness = wanted.targets = false;
        wanted.known_opponents = &start.opponents;
        const Plan plan = make_plan(start.request.job, start.request.batch, in_order, time, wanted);
        return ladder_of(start, plan, in_order).rungs[2].why_nothing;
    };
    CHECK(said_of_flags({}) == "no other cut, chunks or recomputation that the flags can say is faster");
    CHECK(said_of_flags(testing::after_questions(0)) == "of those that there was time for none is faster");
}

TEST_CASE("a tuned cut that there was no time to run is one of those that flags say") {
    auto start = begin_ladder({packings(1, "megatron").front()}, {}, {}, in_order, {});
    REQUIRE(start.left_out.empty());
    OpponentWay tuned = start.opponents.ways.front();
    for (const OpponentWay& way : start.opponents.ways)
        if (way.setup == start.request.job.setup && launches(target("megatron"), way)) tuned = way;
    tuned.name += " tuned";
    tuned.layers = "said so";
    start.opponents.ways.push_back(tuned);
    start.now->step = start.data->step = Duration(1);  // faster than any
    Wanted wanted;
    wanted.robustness = wanted.targets = false;
    wanted.known_opponents = &start.opponents;
    const auto said = [&](std::uint64_t questions) {
        const Plan plan =
            make_plan(start.request.job, start.request.batch, in_order, testing::after_questions(questions), wanted);
        const auto& refused = plan.baselines.not_applicable;
        const bool lacks_tuned = std::any_of(refused.begin(), refused.end(), [&](const NotApplicable& one) {
            return one.partition == tuned.name && one.why == no_time_left;
        });
        return std::pair(lacks_tuned, ladder_of(start, plan, in_order).rungs[2].why_nothing);
    };
    // Asked of each but the fastest that is launched, the tuned one last.
    const std::uint64_t all = start.opponents.ways.size() - 1;
    CHECK(said(all) == std::pair<bool, std::string>(false, no_better_flags));
    CHECK(said(all - 1) == std::pair<bool, std::string>(true, none_in_time));
}

TEST_CASE("where a target launches nothing of the job the reason is the job's own layout's") {
    Request request = packings(1, "megatron").front();
    testing::change_setup(request, [](emulator::Setup& setup) { setup.recipe.zero = 2; });
    CHECK(begin_ladder({request}, {}, {}, in_order, {}).why_none ==
          "--zero, --recipe: the job has ZeRO 2, but megatron launches ZeRO 0 to 1 alone");
    CHECK_THROWS_WITH_AS(static_cast<void>(begin_ladder({request}, {}, parse_now("1f1b", ""), in_order, {})),
                         "--now: --zero, --recipe: the job has ZeRO 2, but megatron launches ZeRO 0 to 1 alone", Error);
    Request titan = packings(1, "torchtitan").front();
    testing::change_setup(titan, [](emulator::Setup& setup) { setup.recipe.zero = 1; });
    CHECK(begin_ladder({titan}, {}, {}, in_order, {}).why_none ==
          "--zero, --recipe: the job has ZeRO 1, but torchtitan launches ZeRO 2 to 3 alone");

    Request flat = packings(1, "megatron").front();
    testing::change_setup(flat, [](emulator::Setup& setup) {
        setup.layout = {.tp = 2, .pp = 1, .dp = 4};
        setup.headroom.parts_per_million = 999'999;
    });
    CHECK_THROWS_WITH_AS(static_cast<void>(begin_ladder({flat}, {}, {}, in_order, {})),
                         doctest::Contains("--tp auto --pp auto --dp auto"), Error);
    flat.job.target = "free";  // searches an order
    const auto start = begin_ladder({flat}, {}, {}, in_order, {});
    CHECK(start.why_none.starts_with(
        "nothing that torch-actions launches fits in tp 2 x pp 1 x dp 4; nearest is no-pipeline tp 2 1f1b: "));
    CHECK(start.why_none.find("tp 1 ") == std::string::npos);
    CHECK_FALSE(start.layout);
}

TEST_CASE("by how much nothing fits is said of the batch, of its fullest replica, whatever the sample's batches hold") {
    Request request = packings(1, "free").front();
    testing::change_setup(request, [](emulator::Setup& setup) { setup.layout = {.tp = 2, .pp = 1, .dp = 4}; });
    EmulationRequest same;
    same.job = request.job;
    same.job.partition = "megatron";
    same.job.sharing = partition::Sharing::in_turn;
    same.batch = request.batch;
    same.recompute = {.everywhere = emulator::Recompute::full};  // holds least
    same.any_memory = true;
    const auto memory = emulate(same, in_order).replicas.front().memory.front();
    const Bytes always = memory.peak - memory.activations - memory.transient;
    leave(request, always, 1.0005);
    const auto& all = request.batch.microbatches;
    request.job.sample.batches = {{all.front()}};
    REQUIRE(workloads::positions_of(all.front()) < workloads::positions_of(all.back()));

    same.any_memory = false;
    same.job.setup = request.job.setup;
    const MadeEmulation none = try_emulate(same, in_order);
    REQUIRE(none.why_not);
    const std::string said = none.why_not->what();
    const auto end = said.find(" short (");
    REQUIRE(end != std::string::npos);
    const auto amount = [](const std::string& text) {  // "696.43 MiB short"
        const auto last = text.rfind(" MiB short");
        REQUIRE(last != std::string::npos);
        return std::stod(text.substr(text.rfind(' ', last - 1) + 1));
    };
    const auto start = begin_ladder({request}, {}, {}, in_order, {});
    // A way without a pipeline has no buffers of one.
    CHECK(amount(start.why_none) == doctest::Approx(amount(said.substr(0, end + 6))).epsilon(0.02));
    const auto chosen = choose_opponents(request.job, request.batch, in_order, {});
    const auto by_sample =
        std::find_if(chosen.not_applicable.begin(), chosen.not_applicable.end(),
                     [](const auto& one) { return one.launched && one.partition == "no-pipeline tp 2"; });
    REQUIRE(by_sample != chosen.not_applicable.end());
    CHECK(start.why_none.find(by_sample->why) == std::string::npos);
}

TEST_CASE("what the batch has room for is launched, though no batch of the sample fits") {
    Request request = packings(1, "megatron").front();
    testing::change_setup(request, [](emulator::Setup& setup) { setup.layout = {.tp = 2, .pp = 1, .dp = 4}; });
    const workloads::Microbatch heavy = request.batch.microbatches.back();
    auto light = request.batch.samples;
    light.resize(40);  // without images
    request.batch = request.job.batch("light", std::move(light));
    request.job.sample.batches = {{heavy}};
    EmulationRequest same;
    same.job = request.job;
    same.job.partition = "megatron";
    same.job.sharing = partition::Sharing::in_turn;
    same.batch = request.batch;
    same.recompute = {.everywhere = emulator::Recompute::full};
    same.any_memory = true;
    Bytes most{};
    for (const auto& replica : emulate(same, in_order).replicas) most = std::max(most, replica.memory.front().peak);
    leave(request, most, 1.001);
    REQUIRE(first_launched(choose_opponents(request.job, request.batch, in_order, {}), request.job) == nullptr);
    const auto start = begin_ladder({request}, {}, {}, in_order, {});
    REQUIRE(start.now);
    CHECK(start.now->peak <= start.now->usable);
    const Plan plan = planned_on(start);
    CHECK(plan.is_opponents);
    CHECK(plan.step <= start.now->step);
}

TEST_CASE("where nothing that flags launch fits in the user's layout, the ladder is what they launch in another") {
    auto all = packings(1, "megatron");
    for (Request& one : all)
        testing::change_setup(one, [](emulator::Setup& setup) { setup.layout = {.tp = 1, .pp = 1, .dp = 8}; });
    EmulationRequest same;
    same.job = all.front().job;
    same.job.partition = "megatron";
    same.job.sharing = partition::Sharing::in_turn;
    same.batch = all.front().batch;
    same.recompute = {.everywhere = emulator::Recompute::full};  // holds least
    same.any_memory = true;
    Bytes least{};
    for (const auto& replica : emulate(same, in_order).replicas)
        for (const auto& rank : replica.memory) least = std::max(least, rank.peak);
    for (Request& one : all) leave(one, least, 0.9);

    const auto start = begin_ladder(all, {}, {}, in_order, {});
    CHECK_FALSE(start.now);
    REQUIRE(start.layout);
    CHECK(start.request.job.setup->layout.tp * start.request.job.setup->layout.pp > 1);
    const std::string none = "nothing that megatron launches fits in tp 1 x pp 1 x dp 8; nearest is no-pipeline tp 1 ";
    CHECK(start.why_none.starts_with(none));
    const Plan plan = planned_on(start);
    CHECK_FALSE(plan.is_searched);
    CHECK(plan.step == start.layout->step);
    const Rung& best = plan.ladder.best();
    CHECK(best.name == "layout");
    CHECK(best.reshards);
    CHECK(best.peak <= best.usable);
    CHECK(plan.ladder.launched() == &best);
    CHECK(plan.ladder.rungs.back().why_nothing.starts_with("not asked for: --also torch-actions"));

    const Job& job = start.request.job;
    CHECK(emit::rung_steps(job, plan.ladder, best).back() == "reshard the checkpoint to " + name_of(job.setup->layout));
    const auto text = emit::plan_text(job, start.request.batch, plan, false);
    CHECK(text.find("\nnow       nothing that megatron launches fits in ") != std::string::npos);
    CHECK(text.find("\ndo        layout:") != std::string::npos);
    const auto json = emit::plan_json(job, start.request.batch, plan);
    CHECK(json.at("why_none") == start.why_none);
    CHECK(json.at("ladder").at(0).at("over_now").is_null());
    CHECK(json.at("headline").at("over_now").is_null());
    CHECK(json.at("not_applicable").at(0).at("partition").get<std::string>().starts_with("tp 1 x pp 1 x dp 8: "));
}

TEST_CASE("what is said to be run and cannot be is an error that says why") {
    CHECK_THROWS_WITH_AS(
        static_cast<void>(begin_ladder(packings(1, "free"), {}, parse_now("zb-v,first-stage", ""), in_order, {})),
        doctest::Contains("--now: first-stage zb-v: "), Error);
    CHECK_THROWS_WITH_AS(
        static_cast<void>(begin_ladder(packings(1, "megatron"), {}, parse_now("zb-v", ""), in_order, {})),
        "--now: zb-v is none of the policies that megatron launches (1f1b, interleaved): name a "
        "partition beside it if you run it",
        Error);
}

namespace {

constexpr std::size_t replicas = sizes.replicas_examined + 1;

// Replicas of one sequence a microbatch, whose attention takes long, and a last one of short sequences, which has a few
// more tokens to hold and less to do: it is not among the most loaded.
Request with_a_fuller_replica() {
    Request request = testing::small_request(static_cast<std::int64_t>(replicas), std::vector<int>(replicas * 6));
    for (std::size_t m = 0; m < request.batch.microbatches.size(); ++m) {
        workloads::Microbatch& one = request.batch.microbatches[m];
        one.lengths = {16384};
        if (m % replicas == replicas - 1) one.lengths.assign(18, 1024);
        one.tokens = one.loss_tokens = m % replicas == replicas - 1 ? 18432 : 16384;
    }
    request.job.target = "megatron";
    return request;
}

// As full as that of first-stage under 1F1B where nothing runs again.
Bytes fullest(const Request& request, std::size_t replica) {
    EmulationRequest none;
    none.job = request.job;
    none.job.partition = "first-stage";
    none.job.sharing = partition::Sharing::in_turn;
    none.batch = request.batch;
    none.recompute = no_recompute;
    none.any_memory = true;
    Bytes most{};
    const Emulation step = emulate(none, in_order);
    for (const auto& rank : step.replicas[replica].memory) most = std::max(most, rank.peak);
    return most;
}

}  // namespace

TEST_CASE("where a recomputation that the most loaded replicas fit with does not fit another, all recompute more") {
    Request request = with_a_fuller_replica();
    const Bytes loaded = fullest(request, 0), full = fullest(request, replicas - 1);
    REQUIRE(full > loaded);
    const double usable = static_cast<double>(emulator::capacity_of(*request.job.setup).count);
    const double middle = static_cast<double>(loaded.count + full.count) / 2;
    testing::change_setup(request, [&](emulator::Setup& setup) {
        setup.headroom.parts_per_million = static_cast<std::int64_t>(1e6 * (1 - middle / usable));
    });
    request.job.max_rounds = 1;
    for (const std::string& target :
         testing::full_or_short<std::vector<std::string>>({"megatron", "free"}, {"megatron"})) {
        request.job.target = target;
        const auto start = begin_ladder({request}, {}, parse_now("first-stage,1f1b", ""), in_order, {});
        REQUIRE(start.now);
        CHECK(start.now->peak <= start.now->usable);
        CHECK(start.now->way != "first-stage 1f1b");
        for (const Rung& rung : planned_on(start).ladder.rungs) CHECK(rung.peak <= rung.usable);
        CHECK_THROWS_WITH_AS(
            static_cast<void>(begin_ladder({request}, {}, parse_now("first-stage,1f1b,none", ""), in_order, {})),
            doctest::Contains("--now: with recompute none the step does not fit"), Error);
    }
}

TEST_CASE("what is run now is packed as it is said, and is among the rows") {
    const auto all = packings(2, "megatron");
    const auto start = begin_ladder(all, {}, parse_now("first-stage,1f1b,full,packing:balanced", ""), in_order, {});
    CHECK(start.now_is_said);
    CHECK(start.now->way == "first-stage 1f1b, full, packed balanced");
    const auto alone = begin_ladder({all[1]}, {}, parse_now("first-stage,1f1b,full", ""), in_order, {});
    CHECK(start.now->step == alone.now->step);
    CHECK(start.now->step != begin_ladder(all, {}, parse_now("first-stage,1f1b,full", ""), in_order, {}).now->step);
    CHECK(start.data->step <= start.now->step);
    const auto& ways = start.opponents.ways;
    CHECK(std::count_if(ways.begin(), ways.end(), [](const OpponentWay& way) {
              return way.name == "first-stage" && way.policy == "1f1b" &&
                     way.recompute == StepRecompute{.everywhere = emulator::Recompute::full};
          }) == 1);

    CHECK(begin_ladder(all, {}, parse_now("packing:balanced", ""), in_order, {}).now_is_said);
    CHECK(!begin_ladder(all, {}, {}, in_order, {}).now_is_said);
    CHECK_THROWS_WITH_AS(static_cast<void>(begin_ladder(all, {}, parse_now("packing:ffd", ""), in_order, {})),
                         "--now: packing:ffd is no way that this plan packs, allowed are given, balanced", Error);
}

TEST_CASE("what is done for a rung is said in steps: its launch, its samples, its checkpoint") {
    const auto start = begin_ladder(packings(2, "megatron"), {}, parse_now("first-stage,1f1b,full", ""), in_order, {});
    Plan plan = planned_on(start);
    const Job& job = start.request.job;
    Ladder ladder;
    ladder.rungs.assign(3, *start.now);
    Rung &data = ladder.rungs[1], &layout = ladder.rungs[2];
    data.name = "data";
    data.step = start.now->step * 9 / 10;
    data.needs = "a sampler: packed balanced";
    data.files = layout.files = {"assignment.json"};
    layout.name = "layout";
    layout.needs = "launch with others";
    layout.reshards = true;
    layout.search = "--tp 2 --pp 4 --dp 2 --zero 0";
    LaunchedWay other = *layout.launched;
    other.setup = std::make_shared<const emulator::Setup>(
        with_recipe(*other.setup, emulator::Recipe{.zero = 1 - other.setup->recipe.zero}));
    layout.launched = std::make_shared<const LaunchedWay>(other);
    ladder.headline = 2;
    plan.ladder = ladder;
    const Ladder& of = plan.ladder;

    const auto steps = emit::rung_steps(job, of, of.rungs[2]);
    REQUIRE(steps.size() == 3);
    CHECK(steps[0].find("launch with others") != std::string::npos);
    const bool has_script = of.rungs[2].files.size() < emit::files_of_rung(job, of, of.rungs[2]).size();
    CHECK(steps[0].starts_with("source megatron/megatron.sh in your launch script") == has_script);
    CHECK(steps[1] == "feed launch-assignment.json to a sampler: which samples each replica takes");
    CHECK(steps[2] == "reshard the checkpoint to " + name_of(other.setup->layout));
    const auto hints = emit::rung_hints(job, of, of.rungs[2]);
    CHECK(hints.size() == (has_script ? 2 : 3));
    CHECK(hints[hints.size() - 2] == "to stay in your layout take data");
    CHECK(hints.back() == "a search in that layout: --tp 2 --pp 4 --dp 2 --zero 0");
    const auto text = emit::plan_text(job, start.request.batch, plan, false);
    CHECK(text.find("\ndo        layout:\n          1. ") != std::string::npos);
    CHECK(text.find("\n          2. feed launch-assignment.json ") != std::string::npos);
    CHECK(text.find("\n          to stay in your layout take data\n") != std::string::npos);
    CHECK(emit::what_to_do(job, of, of.rungs[2]).front().starts_with("1. "));

    ladder.rungs.push_back(*start.now);
    ladder.rungs[3].name = "schedule";
    ladder.rungs[3].needs = "a runtime";
    ladder.rungs[3].launched.reset();
    ladder.rungs[3].step = ladder.rungs[1].step * 9 / 10;
    CHECK(emit::rung_steps(job, ladder, ladder.rungs[3]) == std::vector<std::string>{"a runtime"});
    const auto with_schedule = emit::rung_hints(job, ladder, ladder.rungs[2]);
    CHECK(with_schedule[with_schedule.size() - 2] == "to stay in your layout take schedule");
    ladder.rungs[3].reshards = true;
    CHECK(emit::rung_steps(job, ladder, ladder.rungs[3]).back() ==
          "reshard the checkpoint to " + name_of(job.setup->layout));

    CHECK(emit::rung_steps(job, of, of.rungs[1]) ==
          std::vector<std::string>{"feed assignment.json to a sampler: packed balanced"});
    CHECK(emit::rung_hints(job, of, of.rungs[1]).empty());
    CHECK(emit::what_to_do(job, of, of.rungs[1]) ==
          std::vector<std::string>{"feed assignment.json to a sampler: packed balanced"});
}

TEST_CASE("a plan that keeps what runs today says why its target has no files of it") {
    const auto start = begin_ladder(packings(2, "megatron"), {}, parse_now("first-stage,1f1b,full", ""), in_order, {});
    Job job = start.request.job;
    job.target = "deepspeed";  // whose trainers have no pipeline
    Plan plan = planned_on(start);
    plan.ladder = {};
    plan.ladder.rungs = {*start.now};
    plan.ladder.rungs.front().target = job.target;
    REQUIRE(plan.ladder.is_now(plan.ladder.best()));
    const auto hints = emit::rung_hints(job, plan.ladder, plan.ladder.best());
    REQUIRE(!hints.empty());
    CHECK(hints.front() == "no files in deepspeed/: every GPU trains the whole model, here tp is 2");
    CHECK(std::set<std::string>(hints.begin(), hints.end()).size() == hints.size());
    CHECK(emit::plan_text(job, start.request.batch, plan, false).find("no files in deepspeed/: every GPU") !=
          std::string::npos);
}

TEST_CASE("words that are no part of a way are named, with what is allowed") {
    CHECK_THROWS_WITH_AS(static_cast<void>(parse_now("1f1b,fast", "")), doctest::Contains("--now: 'fast' is unknown"),
                         Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(parse_now("1f1b,gpipe", "")), "--now: names two policies: 1f1b and gpipe",
                         Error);
    CHECK_THROWS_AS(static_cast<void>(parse_now("first-stage", "4,4,4,4")), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(parse_now("chunks:0", "")),
                         "--now: chunks: is '0', must be a whole number from 1 to 1024", Error);
    CHECK(parse_now("chunks:2,interleaved", "").chunks == 2);
    CHECK(parse_now("packing:ffd", "").packing == workloads::Packing::first_fit_decreasing);
    CHECK_THROWS_WITH_AS(static_cast<void>(parse_now("packing:best", "")),
                         doctest::Contains("--now: packing is 'best', must be one of given, ffd"), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(parse_now("packing:ffd,packing:given", "")),
                         "--now: names two packings: ffd and given", Error);
}

TEST_CASE("a plan that finds nothing faster than an opponent is that opponent's") {
    auto start = begin_ladder(packings(1, "free"), {}, {}, in_order, {});
    Wanted wanted;
    wanted.robustness = wanted.targets = wanted.search = false;
    wanted.policies = {"dual-queue"};
    wanted.known_opponents = &start.opponents;
    // One microbatch after the other: behind any pipeline.
    start.request.job.partition = "megatron";
    const Plan plan = make_plan(start.request.job, start.request.batch, in_order, {}, wanted);
    const Baseline* best = nullptr;
    for (const Baseline& row : plan.baselines.all)
        if (row.launched && row.on_own_ranks && best == nullptr) best = &row;
    REQUIRE(best != nullptr);
    CHECK(plan.step <= best->step);
    if (plan.is_opponents) CHECK(plan.step == best->step);
}

TEST_CASE("a plan on the cut of a partition file has that cut, though an opponent with another is faster") {
    auto start = begin_ladder(packings(1, "free"), {}, {}, in_order, {});
    Wanted wanted;
    wanted.robustness = wanted.targets = wanted.search = false;
    wanted.policies = {"dual-queue"};
    wanted.known_opponents = &start.opponents;
    Job& job = start.request.job;
    job.partition = "megatron";  // one microbatch after the other: behind any pipeline
    REQUIRE(make_plan(job, start.request.batch, in_order, {}, wanted).is_opponents);
    job.fixed = partition::PartitionFile{
        partition::partitioner("megatron").make(*job.setup, start.request.batch.microbatches, 1), {}};
    job.partition.clear();
    CHECK(make_plan(job, start.request.batch, in_order, {}, wanted).is_opponents);  // it was chosen, for no chunks
    job.fixed->is_read = true;
    const Plan plan = make_plan(job, start.request.batch, in_order, {}, wanted);
    CHECK_FALSE(plan.is_opponents);
    CHECK(plan.partition().name == "megatron");
    CHECK(plan.step > start.now->step);
}

TEST_CASE("once time is over modules are not tried on GPUs of their own, which is said") {
    const auto start = begin_ladder(packings(1, "any"), {}, {}, in_order, {});
    const Plan plan = planned_on(start);
    const auto are_left_out = [&](const Time& time) {
        return lacks(ladder_of(start, plan, in_order, time).left_out, doing::own_gpus);
    };
    CHECK(are_left_out(Time::until([] { return Duration{}; })));
    CHECK_FALSE(are_left_out({}));
}

TEST_CASE("the terminal has the ladder in few lines of a hundred columns, and says what is left out") {
    const auto start = begin_ladder(packings(1, "free"), {}, {}, in_order, {});
    const Plan plan = planned_on(start);
    const auto text = emit::plan_text(start.request.job, start.request.batch, plan, false);
    std::istringstream lines(text);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) CHECK(line.size() <= 100);
    CHECK(count <= 27);
    for (const char* part :
         {"now ", "data ", "flags ", "layout ", "schedule ", "trust ", "in-situ factors borrowed", "left out"})
        CHECK(text.find(part) != std::string::npos);
    CHECK(text.find("left out  nothing") != std::string::npos);
    const auto tokens = workloads::tokens_by_modality(start.request.batch.samples, start.request.job.setup->model);
    CHECK(tokens.find(" tokens of text, ") != std::string::npos);
    CHECK(text.find("\n" + workloads::parameters_by_module(start.request.job.setup->model) + "\n" + tokens + "\n") !=
          std::string::npos);
    CHECK(text.find("\nnow       best known today: ") != std::string::npos);
    Plan said = plan;
    said.ladder.now_is_said = true;
    CHECK(emit::plan_text(start.request.job, start.request.batch, said, false).find("best known") == std::string::npos);
    Plan late = plan;
    late.lacks_robustness = true;
    CHECK(emit::plan_text(start.request.job, start.request.batch, late, false)
              .find("left out  for lack of time: replays under wrong costs; without --budget nothing is") !=
          std::string::npos);
    const auto json = emit::plan_json(start.request.job, start.request.batch, plan);
    CHECK(json.at("ladder").size() == 5);
    CHECK(json.at("headline").at("step_ns") == plan.ladder.best().step.count());
    const auto whole = emit::plan_text(start.request.job, start.request.batch, plan, true);
    CHECK(whole.starts_with(text));
    CHECK(whole.find("the fastest known schedule that torch-actions launches: ") != std::string::npos);
    CHECK((whole.find("\nwhat follows is of the plan in the folder") == std::string::npos) ==
          (plan.ladder.best().step == plan.step));
    const Rung* below = plan.ladder.compared();
    REQUIRE((below == nullptr) == (plan.ladder.headline == 0));
    if (below != nullptr) CHECK(json.at("headline").at("compared").at("step_ns") == below->step.count());
    CHECK(json.at("beyond").size() == plan.ladder.beyond.size());
    Plan without = plan;
    without.ladder = {};
    const auto plain = emit::plan_json(start.request.job, start.request.batch, without);
    for (const char* key : {"ladder", "beyond"}) CHECK((plain.at(key).is_array() && plain.at(key).empty()));
    CHECK_FALSE(plain.contains("headline"));
}

TEST_CASE(
    "where a target's runtime wants equally many microbatches of all replicas, every rung that flags launch has them") {
    SearchLimits limits;
    limits.max_rounds = 1;
    for (const std::string& packing :
         testing::full_or_short<std::vector<std::string>>({"", "given", "balanced"}, {""})) {
        PlanOptions asked;
        asked.workload.model = "dip-vlm-s";
        asked.workload.cluster = "h100-sxm:24";
        asked.workload.dataset = "vlm-mix";
        asked.workload.tp = {2, false};
        asked.workload.pp = {4, false};
        asked.workload.global_batch = GlobalBatch{40, false};
        asked.workload.packing = packing;
        asked.job.sample = "batch";
        asked.target = "megatron";
        const auto own = asked.packings(limits, in_order);
        for (const Request& one : own) CHECK(one.batch.microbatches.size() % 3 == 0);
        const auto start = begin_ladder(own, {}, {}, in_order, {});
        CHECK((start.now->way.find("packed balanced") != std::string::npos) == (asked.workload.packing == "balanced"));
        const Plan plan = planned_on(start);
        std::size_t launches = 0;
        for (const Rung& rung : plan.ladder.rungs) {
            if (!rung.launched) continue;
            ++launches;
            CHECK(rung.command.find("--equal-microbatches") != std::string::npos);
            for (const std::int64_t one : rung.launched->microbatches)
                CHECK(one == rung.launched->microbatches.front());
        }
        CHECK(launches >= 3);
        CHECK(emit::plan_json(start.request.job, start.request.batch, plan)
                  .at("asked")
                  .at("equal_microbatches")
                  .get<bool>());
    }
}

TEST_CASE("samples are packed in every way on one setup, or in the one that is asked for") {
    PlanOptions asked;
    asked.workload.model = "dip-vlm-s";
    asked.workload.cluster = "h100-sxm:16";
    asked.workload.dataset = "vlm-mix";
    asked.workload.microbatches = 2;
    const SearchLimits limits;
    const auto all = asked.packings(limits, in_order);
    REQUIRE(all.size() == 3);
    for (const Request& one : all) {
        CHECK(one.job.setup == all.front().job.setup);
        CHECK(one.batch.samples == all.front().batch.samples);
        const emulator::Setup& setup = *one.job.setup;
        const auto drawn = workloads::draw_batch("vlm-mix", setup.model, static_cast<std::uint64_t>(limits.seed),
                                                 2 * setup.layout.dp, one.job.packing);
        CHECK(one.batch.microbatches.size() == drawn.microbatches.size());
    }
    CHECK(all.front().job.packing == workloads::Packing::given);
    asked.workload.packing = "ffd";
    const auto one = asked.packings({}, in_order);
    REQUIRE(one.size() == 1);
    CHECK(one.front().job.packing == workloads::Packing::first_fit_decreasing);
}
