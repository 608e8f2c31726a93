#include "pipeweaver/partition/partition.hpp"

#include "partition/cut.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
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
    const auto row = in_one_chain(partition);
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
