#include "pipeweaver/partition/partition.hpp"

#include "partition/cut.hpp"
#include "partition/one_chain.hpp"
#include "partition/rank_memory.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

using namespace pipeweaver;
using namespace pipeweaver::partition;

namespace {

std::int64_t largest_part(const std::vector<std::int64_t>& weights, const std::vector<std::size_t>& ends) {
    std::int64_t largest = 0;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
        largest =
            std::max(largest, std::accumulate(weights.begin() + static_cast<std::ptrdiff_t>(begin),
                                              weights.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{0}));
        begin = end;
    }
    return largest;
}

// Every way to cut, tried.
std::int64_t best_cut(const std::vector<std::int64_t>& weights, std::size_t from, std::size_t parts) {
    if (parts == 1)
        return std::accumulate(weights.begin() + static_cast<std::ptrdiff_t>(from), weights.end(), std::int64_t{0});
    std::int64_t best = std::numeric_limits<std::int64_t>::max(), sum = 0;
    for (std::size_t end = from + 1; end + parts - 1 <= weights.size(); ++end) {
        sum += weights[end - 1];
        best = std::min(best, std::max(sum, best_cut(weights, end, parts - 1)));
    }
    return best;
}

testing::SmallWorkload on_four_ranks() { return testing::SmallWorkload({.tp = 1, .pp = 4, .dp = 1}, {7, 0, 3, 12}); }

// Every layer of every module once, in order.
void check_covers(const Partition& partition, const workloads::Model& model) {
    std::vector<std::int64_t> next(model.modules.size());
    for (const auto& chain : partition.chains)
        for (const auto& stage : chain.stages)
            for (const auto& part : stage.parts) {
                CHECK(part.first == next[part.module]);
                CHECK(part.count > 0);
                next[part.module] += part.count;
            }
    for (std::size_t m = 0; m < next.size(); ++m) CHECK(next[m] == model.modules[m].architecture.layers);
}

}  // namespace

TEST_CASE("a row is cut as evenly as can be, which trying every cut confirms") {
    Random random(5);
    for (int round = 0; round < 300; ++round) {
        std::vector<std::int64_t> weights(1 + random.below(9));
        for (auto& weight : weights) weight = static_cast<std::int64_t>(random.below(round % 2 == 0 ? 20 : 3));
        const std::size_t parts = 1 + random.below(weights.size());
        const auto ends = cut_evenly(weights, parts);
        REQUIRE(ends.size() == parts);
        CHECK(ends.back() == weights.size());
        CHECK(std::adjacent_find(ends.begin(), ends.end(), std::greater_equal<>()) == ends.end());  // no empty part
        CHECK(largest_part(weights, ends) == best_cut(weights, 0, parts));
    }
}

TEST_CASE("dip gives each module its own chain over all ranks, uneven counts to the earlier chunks") {
    const auto setup = on_four_ranks();
    const auto partition = setup.cut("dip");
    REQUIRE(partition.chains.size() == 2);
    check_covers(partition, setup.model);
    const auto& vit = partition.chains[0].stages;
    for (std::size_t s = 0; s < vit.size(); ++s) CHECK(index(vit[s].rank) == s % 4);
    if (vit.size() == 4)
        CHECK((vit[0].parts[0].count == 2 && vit[1].parts[0].count == 2 && vit[2].parts[0].count == 1));
}

TEST_CASE("dip's sub-microbatch is the smallest with 95 % of the best efficiency") {
    const auto setup = on_four_ranks();
    const auto partition = setup.cut("dip");
    emulator::LayerCosts costs(setup);
    const auto efficiency = [&](std::int64_t images) {
        const emulator::PassShape shape{std::vector<std::int64_t>(static_cast<std::size_t>(images), 256)};
        const auto time = costs.layer(0, 0, shape, emulator::PassKind::forward).total() +
                          costs.layer(0, 0, shape, emulator::PassKind::backward).total();
        return static_cast<double>(images) / static_cast<double>(time.count());
    };
    double best = 0;
    for (std::int64_t n = 1; n <= 12; ++n) best = std::max(best, efficiency(n));
    const std::int64_t chosen = partition.unit_items[0];
    CHECK(efficiency(chosen) >= 0.95 * best);
    for (std::int64_t n = 1; n < chosen; ++n) CHECK(efficiency(n) < 0.95 * best);
}

TEST_CASE("megatron cuts one chain of all layers, a stage may hold the end of one module and the start of the next") {
    const auto setup = on_four_ranks();
    for (const std::int64_t chunks : {1, 2, 3}) {
        const auto partition = setup.cut("megatron", chunks);
        REQUIRE(partition.chains.size() == 1);
        CHECK(static_cast<std::int64_t>(partition.chains[0].stages.size()) == 4 * chunks);
        check_covers(partition, setup.model);
    }
    CHECK_THROWS_WITH_AS(static_cast<void>(setup.cut("megatron", 4)), "16 stages are more than the model's 14 layers",
                         Error);
}

TEST_CASE("units slice a microbatch's items evenly and in order, each item once") {
    const auto setup = on_four_ranks();
    auto partition = setup.cut("dip");
    partition.unit_items[0] = 5;
    const auto all = units(partition, setup.model, setup.microbatches);
    const auto sizes = [&](std::size_t mb) {
        std::vector<std::size_t> found;
        for (const auto& unit : all[mb][0]) found.push_back(unit.items.size());
        return found;
    };
    CHECK(sizes(0) == std::vector<std::size_t>{4, 3});
    CHECK(sizes(1).empty());
    CHECK(sizes(3) == std::vector<std::size_t>{4, 4, 4});
    std::vector<std::size_t> seen;
    for (const auto& unit : all[3][0]) seen.insert(seen.end(), unit.items.begin(), unit.items.end());
    for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == i);
    for (std::size_t mb = 0; mb < 4; ++mb) {
        REQUIRE(all[mb][1].size() == 1);
        CHECK(all[mb][1][0].shapes[1].lengths == setup.microbatches[mb].lengths);
    }
}

TEST_CASE("one chain keeps dip's stages in a row, and passes whole microbatches") {
    const auto setup = on_four_ranks();
    const auto partition = setup.cut("dip");
    const auto row = in_one_chain(partition, setup.model);
    check_covers(row, setup.model);
    CHECK(row.chains[0].stages.size() == partition.chains[0].stages.size() + partition.chains[1].stages.size());
    const auto all = units(row, setup.model, setup.microbatches);
    CHECK(all[0][0].size() == 1);
    CHECK(all[0][0][0].shapes[0].lengths.size() == 7);
    CHECK(all[0][0][0].shapes[1].positions() == setup.microbatches[0].tokens);
}

TEST_CASE("padding makes every microbatch as large as the largest, and says how much of it is air") {
    const auto setup = on_four_ranks();
    const auto padded = pad(setup.microbatches);
    CHECK(padded.tokens == 1024 + 12 * 64);
    CHECK(padded.items == 12);
    for (const auto& microbatch : padded.microbatches) {
        CHECK(microbatch.items.size() == 12);
        CHECK(std::accumulate(microbatch.lengths.begin(), microbatch.lengths.end(), std::int64_t{0}) == padded.tokens);
    }
    CHECK(padded.real_patches == (7 + 3 + 12) * 256);
    CHECK(padded.padded_patches == 4 * 12 * 256);
}

TEST_CASE("padded clips are as the largest, in as many groups of frames") {
    auto setup = on_four_ranks();
    for (auto& microbatch : setup.microbatches)
        for (auto& item : microbatch.items) item.size.spans = 2;
    auto& largest = setup.microbatches[0].items[0].size;
    largest.patches *= 4;
    largest.spans = 8;
    for (const auto& microbatch : pad(setup.microbatches).microbatches)
        for (const auto& item : microbatch.items) CHECK(item.size == setup.microbatches[0].items[0].size);
}

TEST_CASE("a generator's items read the tokens of their own sample") {
    using namespace workloads;
    Model model;
    auto dit = testing::small_network(ModuleKind::diffusion_transformer, 4, 1024);
    dit.cross_attention_dim = 2048;
    dit.text_tokens = 77;
    const auto llm = testing::small_network(ModuleKind::language_model, 4, 2048);
    model.modules = {{"llm", llm, PassUnit::microbatch, {Modality::text}, true},
                     {"dit", dit, PassUnit::items, {Modality::video}, true}};
    model.edges = {{0, 1}};
    const Item clip{.modality = Modality::video, .patches = 1344, .seconds = 1, .target = true};
    const std::vector<workloads::Sample> samples{
        {"a", 100, 100, {clip, clip}}, {"b", 300, 300, {}}, {"c", 0, 0, {clip}}};

    const auto microbatches = pack(samples, model);
    REQUIRE(microbatches.size() == 1);
    const auto shape = shape_in(model.modules[1], microbatches[0], 0, 3);
    CHECK(shape.lengths == std::vector<std::int64_t>{1344, 1344, 1344});
    CHECK(shape.context == std::vector<std::int64_t>{100, 100, 77});  // sample c has no text: the usual number
    CHECK(shape_in(model.modules[0], microbatches[0], 0, 0).context.empty());

    const Partition by_clip{
        "dip", 1, {{"llm", {{RankId{0}, {{0, 0, 4}}}}}, {"dit", {{RankId{0}, {{1, 0, 4}}}}}}, {0, 2}, {}};
    const auto all = units(by_clip, model, microbatches);
    REQUIRE(all[0][1].size() == 2);
    CHECK(all[0][1][0].shapes[1].context == std::vector<std::int64_t>{100, 100});
    CHECK(all[0][1][1].shapes[1].context == std::vector<std::int64_t>{77});
}

namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& times) {
    return std::accumulate(times.begin(), times.end(), std::int64_t{0});
}

// Of the stages of a chain, by the time of their layers.
std::vector<std::int64_t> stage_times(const testing::SmallWorkload& setup, const Partition& partition) {
    std::vector<std::int64_t> all;
    for (const auto& stage : partition.chains.front().stages) {
        std::int64_t sum = 0;
        for (const auto& part : stage.parts)
            for (std::int64_t i = 0; i < part.count; ++i)
                sum += times_of(setup, setup.microbatches, {{part.module, part.first + i, 1}}).front();
        all.push_back(sum);
    }
    return all;
}

}  // namespace

TEST_CASE("beside like layers lie as many of a teacher's as there is room for, and each takes its own time") {
    testing::SmallWorkload setup({.tp = 1, .pp = 4, .dp = 1}, {2, 1});
    setup.model.teacher = {setup.model};
    setup.model.teacher.front().modules[1].architecture.layers = 12;
    const auto layers = layers_of(setup.model, {1});
    std::vector<std::int64_t> alone;
    for (const auto& layer : layers) alone.push_back(times_of(setup, setup.microbatches, {layer}).front());
    // One and two of twelve in turn.
    REQUIRE(alone.size() == 8);
    CHECK(alone[2] < alone[3]);
    CHECK(times_of(setup, setup.microbatches, layers) == alone);
}

TEST_CASE("first-stage has the encoder whole on the first stage, and no cut has a shorter longest stage") {
    for (const int images : {1, 12, 60})
        for (const std::int64_t chunks : {1, 2}) {
            CAPTURE(images);
            testing::SmallWorkload setup({.tp = 1, .pp = 4, .dp = 1}, {images, 0, images / 2, 1});
            setup.model.modules[0].architecture.layers = 3;
            const auto cut = setup.cut("first-stage", chunks);
            check_covers(cut, setup.model);
            const auto& stages = cut.chains.front().stages;
            REQUIRE(stages.size() == static_cast<std::size_t>(4 * chunks));
            const auto vit = times_of(setup, setup.microbatches, layers_of(setup.model, {0}));
            const auto llm = times_of(setup, setup.microbatches, layers_of(setup.model, {1}));
            CHECK(stages.front().parts.front().module == 0);
            CHECK(stages.front().parts.front().count == 3);
            std::vector<std::int64_t> weights = llm;
            weights.insert(weights.begin(), sum_of(vit));
            const auto times = stage_times(setup, cut);
            CHECK(*std::max_element(times.begin(), times.end()) == best_cut(weights, 0, stages.size()));
            // Where the encoder alone is the longest, the other stages are even among themselves.
            if (stages.front().parts.size() == 1)
                CHECK(*std::max_element(times.begin() + 1, times.end()) == best_cut(llm, 0, stages.size() - 1));
        }
}

TEST_CASE("first-stage has a generator whole on the last stage") {
    emulator::Setup setup{workloads::find_model("dip-t2v-s"),
                          workloads::find_cluster("h100-sxm:16"),
                          {.tp = 4, .pp = 4, .dp = 1},
                          nullptr};
    setup.costs = std::make_shared<const costdb::CostDatabase>(costdb::CostDatabase::embedded(setup.cluster.device));
    const auto batch = workloads::draw_batch("t2v-mix", setup.model, 1, 2).microbatches;
    const auto cut = partitioner("first-stage").make(setup, batch, 1);
    check_covers(cut, setup.model);
    const auto& last = cut.chains.front().stages.back().parts;
    CHECK(last.back().module == 1);
    CHECK(last.back().count == setup.model.modules[1].architecture.layers);
    CHECK_THROWS_WITH_AS(static_cast<void>(partitioner("first-stage").make(setup, batch, 9)),
                         "36 stages are more than the 32 layers of llm and what lies whole before and after them",
                         Error);
}

TEST_CASE("balanced is cut by time alone where that fits, else so that every rank holds what it must") {
    testing::SmallWorkload setup({.tp = 1, .pp = 4, .dp = 1}, {40, 40, 40, 40, 40, 40});
    for (const std::int64_t chunks : {1, 2}) {
        CAPTURE(chunks);
        setup.headroom = {};
        const auto by_time = setup.cut("balanced", chunks);
        CHECK(by_time.notes.empty());
        const auto before = stage_times(setup, by_time);
        CHECK(*std::max_element(before.begin(), before.end()) ==
              best_cut(times_of(setup, setup.microbatches, layers_of(setup.model, {0, 1})), 0, before.size()));
        // A twentieth less than its fullest rank holds.
        const auto least = RankMemory(setup, setup.microbatches, chunks).least(by_time.chains.front());
        const Bytes most = *std::max_element(least.begin(), least.end()), usable = emulator::capacity_of(setup);
        setup.headroom = {1'000'000 - most.count * 950'000 / usable.count};
        const RankMemory tight(setup, setup.microbatches, chunks);
        REQUIRE(tight.shortage(by_time.chains.front()));

        const auto fitting = setup.cut("balanced", chunks);

        check_covers(fitting, setup.model);
        CHECK(!tight.shortage(fitting.chains.front()));
        CHECK(fitting.notes.size() == 1);
        const auto after = stage_times(setup, fitting);
        CHECK(*std::max_element(after.begin(), after.end()) >= *std::max_element(before.begin(), before.end()));
    }
    setup.headroom = {990'000};
    CHECK(setup.cut("balanced").notes.front().find("no cut was found that fits") != std::string::npos);
}

TEST_CASE("an encoder reads each group of a clip's frames as a sequence of its own") {
    using namespace workloads;
    const auto samples =
        parse_batch("b", R"({"id":"a","text_tokens":9,"videos":[{"frames":81,"fps":16,"width":832,"height":480}]})",
                    model("qwen2.5-vl-7b"));
    const auto microbatches = pack(samples, model("qwen2.5-vl-7b"));
    REQUIRE(microbatches.size() == 1);
    const auto shape = shape_in(model("qwen2.5-vl-7b").modules[0], microbatches[0], 0, 1);
    CHECK(shape.lengths == std::vector<std::int64_t>(5, 34 * 60));
    CHECK(microbatches[0].tokens == 9 + 5 * 17 * 30);
}

TEST_CASE("three-phase has a chain of the backbone alone, and the encoder's items one by one") {
    auto setup = on_four_ranks();
    const auto cut = setup.cut("three-phase", 2);
    CHECK(phase_modules(cut) == std::vector<std::size_t>{0});
    CHECK(cut.layouts.front() == in_phases(setup.layout));
    REQUIRE(cut.chains.size() == 1);
    CHECK(cut.chains.front().name == "llm");
    CHECK(cut.chains.front().stages.size() == 8);
    const auto all = units(cut, setup.model, setup.microbatches);
    for (const std::size_t m : {0U, 1U, 2U, 3U}) {
        REQUIRE(all[m].size() == 2);
        CHECK(all[m][0].size() == 1);
        CHECK(all[m][1].size() == setup.microbatches[m].items.size());
        for (const auto& item : all[m][1]) CHECK(item.shapes[0].lengths == std::vector<std::int64_t>{256});
    }
    const auto row = in_one_chain(cut, setup.model);
    check_covers(row, setup.model);
}

TEST_CASE("encoders that feed another encoder cannot be dealt: its items lie on other GPUs") {
    auto setup = on_four_ranks();
    CHECK(!why_not_dealt(setup));
    workloads::Module resampler = setup.model.modules.front();
    resampler.name = "resampler";
    setup.model.modules.insert(setup.model.modules.begin() + 1, resampler);
    setup.model.edges = {{0, 1, 1, 0, 0}, {1, 2, 4, 1024, 2048}};
    CHECK(why_not_dealt(setup) == "goes with encoders that feed llm alone, vit feeds resampler");
}

TEST_CASE("a job is offered three-phase by itself where a rank has several GPUs") {
    for (const std::int64_t tp : {1, 2}) {
        const testing::SmallWorkload setup{{.tp = tp, .pp = 4, .dp = 1}, {5, 0, 2, 9}};
        const auto chunks_of_dealt = [&](std::string_view name) {
            std::vector<std::int64_t> chunks;
            for (const Partition& one : partitions_for(Use::job, setup, setup.microbatches, name))
                if (!phase_modules(one).empty()) chunks.push_back(one.chunks_per_rank);
            return chunks;
        };
        const std::vector<std::int64_t> all{1, 2};  // of the backbone's 8 layers on 4 ranks
        CHECK(chunks_of_dealt({}) == (tp == 1 ? std::vector<std::int64_t>{} : all));
        CHECK(chunks_of_dealt("three-phase") == all);
        CHECK(chunks_of_dealt("balanced").empty());
    }
}

TEST_CASE("three-phase says where it does not apply") {
    auto setup = on_four_ranks();
    setup.recipe.zero = 3;
    CHECK_THROWS_WITH_AS(static_cast<void>(setup.cut("three-phase")),
                         "partition three-phase: is emulated with --zero 0 or 1, 3 was asked for", Error);
    setup.recipe.zero = 1;
    CHECK_THROWS_WITH_AS(static_cast<void>(setup.cut("three-phase", 3)),
                         "12 stages are more than the pipeline's 8 layers", Error);
    setup.recipe.zero = 3;
    CHECK_THROWS_WITH_AS(static_cast<void>(partitions_for(Use::job, setup, setup.microbatches, "three-phase")),
                         "partition three-phase: is emulated with --zero 0 or 1, 3 was asked for", Error);
    for (const Partition& one : partitions_for(Use::job, setup, setup.microbatches)) CHECK(phase_modules(one).empty());
    setup.recipe.zero = 1;
    setup.model.modules.erase(setup.model.modules.begin());
    setup.model.edges.clear();
    CHECK_THROWS_WITH_AS(static_cast<void>(setup.cut("three-phase")),
                         "partition three-phase: model small has no encoder before llm", Error);
}
