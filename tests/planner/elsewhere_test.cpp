// What is launched in other layouts, and the ladder from a layout of the user's own to one that was chosen.
#include "planner/ladder/elsewhere.hpp"

#include "pipeweaver/partition/said_layers.hpp"
#include "pipeweaver/planner/ladder.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/plan_options.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "planner/ladder/rungs.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/times.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

PlanOptions small_options() {
    PlanOptions asked;
    asked.workload.model = "dip-vlm-s";
    asked.workload.cluster = "h100-sxm:16";
    asked.workload.dataset = "vlm-mix";
    asked.workload.microbatches = 2;
    return asked;
}

void check_command(const Rung& rung, const emulator::Layout& layout) {
    CHECK(rung.command.find("--tp " + std::to_string(layout.tp)) != std::string::npos);
    CHECK(rung.command.find("--pp " + std::to_string(layout.pp)) != std::string::npos);
}

}  // namespace

TEST_CASE("the best other layouts run the same samples on the same GPUs as the target launches them") {
    const Request request = testing::small_request(2);
    const Job& job = request.job;
    const auto found = launched_elsewhere(job, request.batch, {}, in_order, {});
    CHECK(found.is_whole);
    REQUIRE(!found.ways.empty());
    CHECK(found.ways.size() <= 3);
    CHECK(found.layouts > found.ways.size());
    for (const OpponentWay& way : found.ways) {
        const emulator::Setup& setup = *way.setup;
        CHECK(setup.layout.gpus() == job.setup->layout.gpus());
        CHECK((name_of(setup.layout) != name_of(job.setup->layout) || setup.recipe.zero != job.setup->recipe.zero));
        CHECK(launches(target(job.target), way));
        CHECK(way.cut_on_batch);
    }
    const auto rows = run_opponents({found.ways, {}}, job, request.batch, in_order);
    CHECK(rows.all.size() == found.ways.size());
    for (const Baseline& row : rows.all) CHECK(!row.on_own_ranks);
}

TEST_CASE("other layouts have the context parallel GPUs that are kept") {
    const Request request = testing::small_request(2);
    const auto found = launched_elsewhere(request.job, request.batch, 1, in_order, {});
    REQUIRE(!found.ways.empty());
    for (const OpponentWay& way : found.ways) CHECK(way.setup->layout.cp == 1);
}

TEST_CASE("what the sample refused for memory is tried on the batch, of what the target launches alone") {
    const auto way = [](const char* name) { return std::make_shared<const OpponentWay>(OpponentWay{{.name = name}}); };
    const auto refused = [&](const char* name, bool launched, bool own, std::int64_t short_by, bool on_sample) {
        return NotApplicable{.partition = name,
                             .policy = "1f1b",
                             .why = "a reason",
                             .short_by = Bytes{short_by},
                             .launched = launched,
                             .in_own_layout = own,
                             .on_sample = on_sample ? way(name) : nullptr};
    };
    const Opponents again =
        refused_on_sample({refused("mended", true, true, 5, true), refused("not launched", false, true, 5, true),
                           refused("elsewhere", true, false, 5, true), refused("no memory", true, true, 0, true),
                           refused("on the batch", true, true, 5, false), refused("mended, too", true, true, 1, true)});
    REQUIRE(again.ways.size() == 2);
    CHECK(again.ways[0].name == "mended");
    CHECK(again.ways[1].name == "mended, too");
    REQUIRE(again.not_applicable.size() == 4);
    CHECK(again.not_applicable.front().partition == "not launched");
}

TEST_CASE("another layout has the framework's switch on where that is faster, and only there") {
    const auto found_with = [](std::string_view deals) {
        Request request = testing::small_request(2);
        request.job.target = "megatron";
        testing::change_setup(request, [&](emulator::Setup& setup) {
            workloads::build_as(setup.model,
                                {.framework = "a",
                                 .source = "b",
                                 .lies = {workloads::OnTensorRanks::all_positions, workloads::OnContextRanks::each},
                                 .deals = deals});
        });
        return launched_elsewhere(request.job, request.batch, 2, in_order, {}).ways;
    };
    const auto with = found_with("model.deals=true"), without = found_with("");
    REQUIRE(!with.empty());
    const auto is_dealt = [](const OpponentWay& way) { return way.name.ends_with(images_dealt); };
    CHECK(std::any_of(with.begin(), with.end(), is_dealt));
    CHECK(std::none_of(without.begin(), without.end(), is_dealt));
    for (const OpponentWay& way : with) {
        CHECK(is_dealt(way) == workloads::deals_images(way.setup->model));
        for (const OpponentWay& other : without) {
            const bool is_same = name_of(way.setup->layout) == name_of(other.setup->layout) &&
                                 way.setup->recipe.zero == other.setup->recipe.zero;
            if (!is_same) continue;
            CHECK(way.step <= other.step);
            CHECK(is_dealt(way) == (way.step < other.step));
        }
    }
}

TEST_CASE("no layout elsewhere is launched that its GPUs do not hold on the batch") {
    for (const std::int64_t kept_free : {0, 300'000, 480'000}) {
        Request request = testing::small_request(1);
        testing::change_setup(request, [&](emulator::Setup& setup) { setup.headroom = {kept_free}; });
        for (const OpponentWay& way : launched_elsewhere(request.job, request.batch, 1, in_order, {}).ways) {
            CHECK(way.setup->headroom == request.job.setup->headroom);
            const Request moved = moved_to(way, request);
            CHECK(run_on_all(way, moved.job, moved.batch, in_order).runs());
        }
    }
}

TEST_CASE("what is launched with images dealt is tried where the framework has a switch for it") {
    Request request = testing::small_request(1);
    testing::change_setup(request, [](emulator::Setup& setup) { setup.layout.cp = 2; });
    request.job.target = "megatron";
    CHECK(with_images_dealt(*request.job.setup) == nullptr);
    const auto built = [&](std::string_view deals) {
        testing::change_setup(request, [&](emulator::Setup& setup) {
            workloads::build_as(setup.model,
                                {.framework = "a",
                                 .source = "b",
                                 .lies = {workloads::OnTensorRanks::all_positions, workloads::OnContextRanks::each},
                                 .deals = deals});
        });
    };
    built("");
    CHECK(with_images_dealt(*request.job.setup) == nullptr);
    built("model.deals=true");
    REQUIRE(with_images_dealt(*request.job.setup));
    CHECK(with_images_dealt(*with_images_dealt(*request.job.setup)) == nullptr);  // it is on
    bool is_whole = true;
    const auto ways = launched_switched(request.job, request.batch, in_order, {}, is_whole);
    CHECK(is_whole);
    REQUIRE(!ways.empty());
    for (const OpponentWay& way : ways) {
        CHECK(way.name.ends_with(images_dealt));
        CHECK(workloads::deals_images(way.setup->model));
        CHECK(is_in_layout_of(way, request.job) == way.has_pipeline);
        request.job.words.emplace();
        CHECK(command_of(way, request.job, request.batch).find(" --deal-images") != std::string::npos);
    }
    CHECK(launched_switched(request.job, request.batch, in_order, testing::after_questions(0), is_whole).empty());
    CHECK_FALSE(is_whole);
    testing::change_setup(request, [](emulator::Setup& setup) { setup.layout.cp = 1; });
    CHECK(with_images_dealt(*request.job.setup) == nullptr);  // one group has all
}

TEST_CASE("what encoders recompute is tried otherwise where a launch has a setting for it, and gradients reach them") {
    using enum workloads::EncoderRecompute;
    Request request = testing::small_request(1);
    request.job.target = "megatron";
    request.job.words.emplace();
    const auto built = [&](workloads::EncoderRecompute how, std::string_view by) {
        testing::change_setup(request, [&](emulator::Setup& setup) {
            workloads::build_as(setup.model,
                                {.framework = "a",
                                 .source = "b",
                                 .lies = {workloads::OnTensorRanks::all_positions, workloads::OnContextRanks::each},
                                 .recompute = how,
                                 .recompute_by = by});
        });
        return switched(*request.job.setup);
    };
    CHECK(built(never, "").empty());
    CHECK(built(as_backbone, "").empty());
    const auto again = built(never, "recompute-vision");
    REQUIRE(again.size() == 1);
    CHECK(again.front().name == encoders_again);
    CHECK(again.front().setup->model.built->recompute == as_backbone);
    CHECK(workloads::recompute_switch(*again.front().setup->model.built) == "--recompute-vision");
    CHECK(switched(*again.front().setup).empty());  // it is on
    bool is_whole = true;
    const auto ways = launched_switched(request.job, request.batch, in_order, {}, is_whole);
    REQUIRE(!ways.empty());
    for (const OpponentWay& way : ways) {
        CHECK(way.name.ends_with(encoders_again));
        CHECK(command_of(way, request.job, request.batch).find(" --encoder-recompute as-backbone") !=
              std::string::npos);
        CHECK(switches_of(way) == ", --recompute-vision");
    }

    // What always runs again takes longer than what does not: the same way of both.
    const auto kept = built(always, "vit-gradient-checkpointing");
    REQUIRE(kept.size() == 1);
    CHECK(kept.front().name == encoders_kept);
    CHECK(workloads::recompute_switch(*kept.front().setup->model.built) == "--vit-gradient-checkpointing false");
    const auto piped = std::find_if(ways.begin(), ways.end(), [](const auto& one) { return one.has_pipeline; });
    REQUIRE(piped != ways.end());
    OpponentWay way = *piped;
    way.recompute = no_recompute;
    way.setup = request.job.setup;
    const Duration before = run_on_all(way, request.job, request.batch, in_order).step;
    way.setup = kept.front().setup;
    CHECK(run_on_all(way, request.job, request.batch, in_order).step < before);

    testing::change_setup(request, [](emulator::Setup& setup) {
        for (std::size_t m = 0; m < setup.model.backbone(); ++m) setup.model.modules[m].trainable = false;
    });
    CHECK(switched(*request.job.setup).empty());
}

TEST_CASE("the best cuts that are launched are tuned, and said in words that make them again") {
    const Request request = testing::small_request(1);
    Opponents opponents = choose_opponents(request.job, request.batch, in_order);
    const auto before = run_opponents(launched_here(opponents, request.job), request.job, request.batch, in_order);
    const std::size_t known = opponents.ways.size();
    CHECK(!add_tuned(opponents, request.job, request.batch, in_order, testing::after_questions(0)));
    CHECK(opponents.ways.size() == known);
    CHECK(add_tuned(opponents, request.job, request.batch, in_order, {}));
    REQUIRE(opponents.ways.size() > known);
    const emulator::Setup& setup = *request.job.setup;
    for (std::size_t w = known; w < opponents.ways.size(); ++w) {
        const OpponentWay& way = opponents.ways[w];
        CHECK(way.name.ends_with(" tuned"));
        CHECK(launches(target(request.job.target), way));
        const auto again = partition::cut_by_layers(setup, partition::parse_layers(way.layers));
        CHECK(partition::text_of(partition::said_layers(setup.model, again)) == way.layers);
        CHECK(again.chunks_per_rank == way.partition.chunks_per_rank);
    }
    // The sample is the batch: what was tuned is faster on it.
    const auto after = run_opponents(opponents, request.job, request.batch, in_order);
    CHECK(after.fastest_opponent()->step < before.fastest_opponent()->step);
}

TEST_CASE("without time no other layout is tried, which the answer says") {
    const Request request = testing::small_request(2);
    const auto found = launched_elsewhere(request.job, request.batch, {}, in_order, testing::after_questions(0));
    CHECK(found.ways.empty());
    CHECK(!found.is_whole);
    const auto some = launched_elsewhere(request.job, request.batch, {}, in_order, testing::after_questions(1));
    CHECK(!some.is_whole);
}

TEST_CASE("a batch of samples is packed for each layout, one that was drawn is the same in all") {
    Request request = testing::small_request(1);
    request.job.packing = workloads::Packing::balanced;
    for (int i = 0; i < 30; ++i) {
        workloads::Sample sample = request.batch.samples.front();
        sample.id = "more" + std::to_string(i);
        request.batch.samples.push_back(sample);
    }
    request.batch = request.job.batch("own", request.batch.samples);
    emulator::Layout other = request.job.setup->layout;
    other.dp = 5;
    other.pp = 1;
    const Batch packed = request.job.in_layout(request.batch, other);
    CHECK(packed.microbatches.size() % 5 == 0);
    CHECK(packed.microbatches.size() != request.batch.microbatches.size());
    request.batch.drawn = true;
    CHECK(request.job.in_layout(request.batch, other).microbatches.size() == request.batch.microbatches.size());
}

TEST_CASE("beside a layout that is chosen the ladder begins in the user's own" * testing::on_release_libraries()) {
    PlanOptions asked = small_options();
    CHECK(asked.own_packings(asked.packings({}, in_order).front().job, {}, in_order).empty());
    asked.workload.layout_as = "auto";
    asked.workload.tp = {8, false};
    asked.workload.pp = {2, false};
    SearchLimits limits;
    limits.max_rounds = 1;
    const auto chosen = asked.packings(limits, in_order);
    const auto own = asked.own_packings(chosen.front().job, limits, in_order);
    REQUIRE(own.size() == chosen.size());
    const Job& own_job = own.front().job;
    CHECK(own_job.setup->layout.tp == 8);
    CHECK(own_job.setup->layout.pp == 2);
    CHECK(own.front().batch.samples == chosen.front().batch.samples);

    const auto start = begin_ladder(chosen, own, {}, in_order, {});
    REQUIRE(start.flags);
    CHECK(start.request.job.setup == chosen.front().job.setup);
    Wanted wanted;
    wanted.robustness = wanted.targets = false;
    wanted.known_opponents = &start.opponents;
    const Plan plan = make_plan(start.request.job, start.request.batch, in_order, {}, wanted);
    const Ladder ladder = ladder_of(start, plan, in_order);
    REQUIRE(ladder.rungs.size() == 5);
    check_command(ladder.rungs[0], own_job.setup->layout);
    check_command(ladder.rungs[2], own_job.setup->layout);
    CHECK(ladder.rungs[3].step < ladder.rungs[2].step);
    CHECK(ladder.rungs[3].command.find("--global-batch 2mb") != std::string::npos);
    for (const Baseline& row : plan.baselines.all)
        if (row.launched) CHECK(ladder.rungs[3].step <= row.step);
    CHECK(ladder.rungs[4].reshards == ladder.rungs[4].why_nothing.empty());
}

TEST_CASE("a job whose layout is given is told of a faster one" * testing::on_release_libraries()) {
    PlanOptions asked = small_options();
    asked.workload.microbatches = 8;
    asked.workload.tp = {8, false};
    asked.workload.pp = {2, false};
    SearchLimits limits;
    limits.max_rounds = 1;
    const auto start = begin_ladder(asked.packings(limits, in_order), {}, {}, in_order, {});
    CHECK(!start.flags);
    CHECK(start.left_out.empty());
    Wanted wanted;
    wanted.robustness = wanted.targets = false;
    wanted.known_opponents = &start.opponents;
    const Plan plan = make_plan(start.request.job, start.request.batch, in_order, {}, wanted);
    const Ladder ladder = ladder_of(start, plan, in_order);
    const Rung& layout = ladder.rungs[3];
    REQUIRE(layout.why_nothing.empty());
    CHECK(layout.needs.find("launch with tp ") == 0);
    CHECK(layout.reshards);
    // Without a pipeline there is no order to search.
    const bool has_pipeline = layout.command.find("--pp 1 ") == std::string::npos;
    CHECK(layout.search.starts_with("--tp ") == has_pipeline);
    for (std::string_view option : {"--tp", "--cp", "--pp", "--zero"}) {
        const auto at = layout.command.find(std::string(option) + " ");
        if (!has_pipeline || at == std::string::npos) continue;
        const auto words = layout.command.substr(at, layout.command.find(' ', at + option.size() + 1) - at);
        CHECK(layout.search.find(words) != std::string::npos);
    }
    CHECK(layout.command.find("--tp 8 --pp 2") == std::string::npos);
    CHECK(layout.command.find("--sample") == std::string::npos);
    CHECK(ladder.rungs[4].step <= layout.step);
}
