// What a plan's ladder says in words, of ladders made by hand.
#include "emit/plan/ladder_facts.hpp"
#include "emit/plan/parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

Rung rung(const char* name, std::chrono::milliseconds step) {
    Rung one;
    one.name = name;
    one.step = step;
    one.tokens = 1'000'000;
    return one;
}

}  // namespace

TEST_CASE("what all tokens take is said as things are, and on the best rung where that is another") {
    Job job = testing::small_request().job;
    Ladder ladder;
    ladder.rungs = {rung("now", std::chrono::milliseconds(2000)), rung("data", std::chrono::milliseconds(1500)),
                    rung("schedule", std::chrono::milliseconds(1000))};
    ladder.headline = 2;
    CHECK(emit::training_lines(job, ladder).empty());

    job.training_tokens = 1'000'000'000'000;  // a million steps: 23.1 days of 2 s, 11.6 of 1 s
    const auto lines = emit::training_lines(job, ladder);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].find(" tokens, now: 23.1 days, ") != std::string::npos);
    CHECK(lines[1].find(" tokens, schedule: 11.6 days, ") != std::string::npos);

    ladder.headline = 0;
    CHECK(emit::training_lines(job, ladder) == std::vector{lines[0]});
}

TEST_CASE("a search of one round is told as one") {
    Plan plan;
    plan.is_searched = true;
    plan.makespan = plan.lower_bound = std::chrono::seconds(1);
    plan.replicas.resize(1);
    plan.replicas[0].found.rounds = 1;
    CHECK(emit::search_text(plan).starts_with("search: 1 round, ended by "));
    plan.replicas[0].found.rounds = 20;
    CHECK(emit::search_text(plan).starts_with("search: 20 rounds, ended by "));
}

TEST_CASE("where nothing runs now there is no factor over it, and no rung is what runs now") {
    Job job = testing::small_request().job;
    job.training_tokens = 1'000'000'000'000;
    Ladder ladder;
    ladder.rungs = {rung("layout", std::chrono::milliseconds(1000))};
    CHECK(emit::over_now_text(ladder, ladder.best()) == "1.000x");
    ladder.why_none = "nothing fits";
    CHECK(emit::over_now_text(ladder, ladder.best()) == "-");
    CHECK_FALSE(emit::named_way(ladder, ladder.best()).starts_with("best known today"));
    const auto lines = emit::training_lines(job, ladder);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].find(" tokens, layout: ") != std::string::npos);
}

TEST_CASE("where the advised rung is the slower one once the host is waited for that is said") {
    Ladder ladder;
    ladder.rungs = {rung("now", std::chrono::milliseconds(2000)), rung("layout", std::chrono::milliseconds(1500))};
    ladder.headline = 1;
    CHECK(emit::host_text(ladder).empty());
    ladder.rungs[1].host = HostBound{.as = "eager", .step = std::chrono::milliseconds(3000)};
    CHECK(emit::host_text(ladder).ends_with("; --launched takes one"));
    ladder.rungs[0].host = HostBound{.as = "eager", .step = std::chrono::milliseconds(3100)};
    CHECK(emit::host_text(ladder).ends_with("; --launched takes one"));
    ladder.rungs[0].host->step = std::chrono::milliseconds(2900);
    CHECK(emit::host_text(ladder).ends_with("; --launched takes one; kernel by kernel now is the faster"));
    ladder.headline = 0;
    CHECK(emit::host_text(ladder).ends_with("; --launched takes one"));
}

TEST_CASE("a model's first line has the parameters of each module") {
    workloads::Model model = testing::small_request().job.setup->model;
    const auto text = workloads::parameters_by_module(model);
    for (const workloads::Module& module : model.modules) CHECK(text.find(module.name + " ") != std::string::npos);
    CHECK(text.ends_with(" B parameters"));
    CHECK(text.find("frozen") == std::string::npos);
    model.modules.front().trainable = false;
    const auto partly = workloads::parameters_by_module(model);
    CHECK(partly.starts_with(text.substr(0, text.find(", ")) + " frozen, "));
    CHECK(partly.ends_with(text.substr(text.find(", "))));
    model.modules.front().adapters.emplace();
    CHECK(workloads::parameters_by_module(model) == text);
    workloads::Architecture& first = model.modules.front().architecture;
    first.layers = 1'000'000;
    CHECK(workloads::parameters_by_module(model) != text);
}

TEST_CASE("what the next rungs would bring and are not worth is said, of no other rung") {
    Ladder ladder;
    ladder.rungs = {rung("now", std::chrono::milliseconds(2000)), rung("data", std::chrono::milliseconds(1980)),
                    rung("flags", std::chrono::milliseconds(1500)), rung("layout", std::chrono::milliseconds(1450)),
                    rung("schedule", std::chrono::milliseconds(1490))};
    CHECK(emit::not_worth_lines(ladder).empty());
    CHECK(emit::keep_text(ladder) == "stay with the best known today, no other rung is shorter");

    ladder.rungs[1].worth = Worth{.over = "now", .gain = 2000.0 / 1980};
    CHECK(emit::not_worth_lines(ladder) ==
          std::vector<std::string>{"data would bring 1.01 % more than now, and a change is worth 2.0 %"});
    CHECK(emit::keep_text(ladder) == "stay with the best known today, no other rung is worth the change");
    ladder.now_is_said = true;
    CHECK(emit::keep_text(ladder) == "keep what you run, no other rung is worth the change");
    ladder.rungs[2].worth = Worth{.over = "now", .gain = 4.0 / 3, .wins = 200, .draws = 200, .is_enough = true};
    ladder.rungs[3].worth = Worth{.over = "flags", .gain = 1500.0 / 1450, .wins = 171, .draws = 200};
    ladder.headline = 2;
    CHECK(emit::not_worth_lines(ladder) ==
          std::vector<std::string>{"layout would bring 3.45 % more than flags, but is faster in 171 of 200 draws of "
                                   "wrong costs alone, and a change is worth 190 of them"});
}

TEST_CASE("who stays in the own layout is told the last rung there that is worth its change") {
    const Job job = testing::small_request().job;
    Ladder ladder;
    ladder.rungs = {rung("now", std::chrono::milliseconds(2000)), rung("data", std::chrono::milliseconds(1800)),
                    rung("flags", std::chrono::milliseconds(1780)), rung("layout", std::chrono::milliseconds(1000)),
                    rung("schedule", std::chrono::milliseconds(990))};
    Rung &data = ladder.rungs[1], &layout = ladder.rungs[3], &schedule = ladder.rungs[4];
    layout.reshards = schedule.reshards = true;
    ladder.headline = 3;
    const auto hints = [&] { return emit::rung_hints(job, ladder, layout); };
    const auto take = [](const char* name) { return std::vector{std::string("to stay in your layout take ") + name}; };
    CHECK(hints() == take("data"));  // flags are 1.011x of it, and a change is worth 1.02x
    ladder.rungs[2].step = std::chrono::milliseconds(1700);
    ladder.rungs[2].worth = Worth{.over = "data", .gain = 1800.0 / 1700, .wins = 188, .draws = 200};
    CHECK(hints() == take("data"));
    ladder.rungs[2].worth->is_enough = true;
    CHECK(hints() == take("flags"));
    ladder.rungs[2].worth->is_enough = false;
    data.worth = Worth{.over = "now", .gain = 2000.0 / 1800, .wins = 189, .draws = 200};
    CHECK(hints() == take("flags"));  // 1.18x of what runs now, against which it was not drawn
    ladder.rungs[2].why_nothing = "no other cut";
    CHECK(hints().empty());
    ladder.why_none = "nothing fits";
    ladder.rungs.erase(ladder.rungs.begin(), ladder.rungs.begin() + 3);
    CHECK(emit::rung_hints(job, ladder, ladder.rungs[0]).empty());
}

TEST_CASE("no factor stands between a padded rung and one that is not, and a padded one says so") {
    Ladder ladder;
    ladder.rungs = {rung("now", std::chrono::milliseconds(2000)), rung("data", std::chrono::milliseconds(1600)),
                    rung("layout", std::chrono::milliseconds(1000))};
    ladder.rungs[0].padding = ladder.rungs[1].padding = Padding{.tokens = 75'600, .items = 1, .of_tokens = 0.314};
    ladder.headline = 2;
    CHECK(emit::over_now_text(ladder, ladder.rungs[1]) == "1.250x");
    CHECK(emit::over_now_text(ladder, ladder.rungs[2]) == "-");
    CHECK(ladder.compared() == nullptr);
    CHECK(emit::rung_padding_text(ladder.rungs[1]) == "padded to 75600 tokens, 31.4 % of them padding");
    CHECK(emit::rung_padding_text(ladder.rungs[2]).empty());
    ladder.rungs[1].padding->of_items = 0.5;
    CHECK(emit::rung_padding_text(ladder.rungs[1]) ==
          "padded to 75600 tokens, 31.4 % of them padding, and to 1 item, 50.0 % of their positions padding");
    ladder.rungs[2].worth = Worth{.over = "data", .gain = 1.6};
    ladder.headline = 1;
    CHECK(ladder.compared() == &ladder.rungs[0]);
    CHECK(
        emit::not_worth_lines(ladder).front().starts_with("layout would be faster than data, of which one is padded"));
}

TEST_CASE("where shapes vary the room on the fullest GPU is said, at risk below what they may take") {
    Request request = testing::small_request();
    const auto said = [&](double part, const char* target = "any") {
        Rung one = rung("now", std::chrono::milliseconds(2000));
        const Bytes memory = workloads::device(request.job.setup->cluster.device).memory;
        one.peak = Bytes{static_cast<std::int64_t>(part * static_cast<double>(memory.count))};
        request.job.target = target;
        return emit::room_text(emit::room_of(request.job, request.batch, one));
    };
    // Its microbatches have 5, 0, 2, 9, 1, 4, 0 and 7 images.
    CHECK(said(0.75).starts_with(
        "at risk: microbatches have 7 shapes, and 20.0 of 80.0 GiB are left on the fullest GPU; "));
    CHECK(said(0.75).find("an allocator may take 26.0 % of it") != std::string::npos);
    CHECK(said(0.75).find("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True") != std::string::npos);
    CHECK(said(0.73) ==
          "microbatches have 7 shapes, and 21.6 of 80.0 GiB are left on the fullest GPU, more than the "
          "26.0 % that an allocator may take where shapes vary");
    CHECK(said(0.75, "torch-csv").empty());  // pads all to one shape
    CHECK(said(0.75).ends_with("; --headroom auto keeps room for it"));
    CHECK(said(0.75, "megatron").ends_with(", as the files do"));
    CHECK(said(0.75, "free").ends_with(", as pipeweaver.torch does"));
    // Known schedules are PyTorch's own, whose segments do not expand.
    Rung known = rung("now", std::chrono::milliseconds(2000));
    known.peak = Bytes{workloads::device(request.job.setup->cluster.device).memory.count / 4 * 3};
    auto way = std::make_shared<LaunchedWay>();
    way->setup = request.job.setup;
    known.launched = way;
    CHECK(emit::room_text(emit::room_of(request.job, request.batch, known))
              .ends_with("is set, which PyTorch's own schedules (torch.distributed.pipelining) leave to you; "
                         "--headroom 20% keeps room for it"));
    // A launch that packs for itself: its own microbatches have 5, 0 and 2 images.
    Batch own = request.batch;
    own.microbatches.resize(3);
    way->batch = std::make_shared<const Batch>(std::move(own));
    CHECK(emit::room_text(emit::room_of(request.job, request.batch, known)).find("microbatches have 3 shapes, ") !=
          std::string::npos);
    // A rung without a pipeline does not pad; for the plan's layout, which does, auto keeps no more.
    auto flat = std::make_shared<LaunchedWay>();
    flat->setup = std::make_shared<const emulator::Setup>(with_layout(*request.job.setup, {.tp = 2, .pp = 1, .dp = 4}));
    Rung layout = rung("layout", std::chrono::milliseconds(2000));
    layout.peak = Bytes{workloads::device(request.job.setup->cluster.device).memory.count / 4 * 3};
    layout.launched = flat;
    request.job.target = "torch-csv";
    CHECK(emit::room_text(emit::room_of(request.job, request.batch, layout))
              .ends_with("; --headroom 20% keeps room for it"));
    for (auto& microbatch : request.batch.microbatches) {
        microbatch.items.clear();
        microbatch.lengths = {1024};
    }
    request.batch.microbatches.front().lengths = {1031};
    CHECK(said(0.9).empty());  // sequences of text are packed up to one length
    testing::change_setup(request, [](emulator::Setup& setup) {
        setup.model.modules[setup.model.backbone()].architecture.kind = workloads::ModuleKind::diffusion_transformer;
    });
    CHECK(said(0.9).starts_with("at risk: microbatches have 2 shapes"));
}

TEST_CASE("a rung's pace is its tokens over its step, and a gain what the longer step is over the shorter") {
    CHECK(emit::tokens_per_second(rung("now", std::chrono::milliseconds(2000))) == doctest::Approx(500'000));
    CHECK(ratio(std::chrono::seconds(3), std::chrono::seconds(2)) == doctest::Approx(1.5));
}

TEST_CASE("how encoders lie is said of the advised rung, which may deal images where the plan does not") {
    const Request request = testing::small_request();
    Plan plan = testing::planned(request);
    auto dealt = std::make_shared<emulator::Setup>(*request.job.setup);
    workloads::Built built{.framework = "a framework", .source = "a file", .deals = "deal=true"};
    built.lies.context = workloads::OnContextRanks::dealt;
    workloads::build_as(dealt->model, built);
    auto launched = std::make_shared<LaunchedWay>();
    launched->setup = dealt;
    plan.ladder.rungs = {rung("now", std::chrono::milliseconds(2000)), rung("data", std::chrono::milliseconds(2000))};
    plan.ladder.rungs.back().launched = launched;  // whose files are written
    const auto says = [&](const char* words) {
        return emit::plan_text(request.job, request.batch, plan, false).find(words) != std::string::npos;
    };
    CHECK(!says("\nencoders "));
    plan.ladder.rungs.front().launched = launched;
    CHECK(says("\nencoders "));
    CHECK(says("deal=true"));
    CHECK(!says("--deal-images"));  // it is on already
}

TEST_CASE("peaks of a plan are those at the optimizer's update where passes hold less") {
    Request request = testing::small_request();
    const auto first = testing::planned(request);
    // As many bytes a parameter as every rank has room for.
    std::int64_t update = std::numeric_limits<std::int64_t>::max();
    const std::int64_t each = request.job.setup->recipe.state.optimizer;
    for (const emulator::StaticMemory& rank : first.replicas.front().cut.step.memory) {
        const Bytes left = capacity_of(*request.job.setup) - rank.weights - rank.gradients - rank.optimizer;
        update = std::min(update, left.count / (rank.optimizer.count / each) - 1);
    }
    testing::change_setup(request, [&](emulator::Setup& setup) { setup.recipe.state.update = update; });
    request = testing::on_partition(std::move(request), first.partition());
    const Plan plan = testing::planned(request);
    const ReplicaPlan& replica = plan.replicas.front();
    const auto said = nlohmann::json::parse(emit::plan_json(request.job, request.batch, plan).dump());
    bool any = false;
    for (std::size_t r = 0; r < replica.cut.step.memory.size(); ++r) {
        const Bytes at_update = replica.cut.step.memory[r].at_update;
        any = any || at_update > replica.found.replay.peak[r];
        const auto peak = said.at("replicas").at(0).at("memory").at(r).at("peak_bytes").get<std::int64_t>();
        CHECK(Bytes{peak} == std::max(at_update, replica.found.replay.peak[r]));
    }
    CHECK(any);
}
