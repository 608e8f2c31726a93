// A copy of the model as it was beside the one that is trained (DPO, KTO, GRPO): FLOPs, weights and time by hand.
#include "emulator/pricing/stage_memory.hpp"
#include "emulator/step/step_parts.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::emulator;

namespace {

// Two pairs of answers to a prompt of an image each, and so four samples.
testing::SmallWorkload pairs(const Layout& layout, bool reference) {
    testing::SmallWorkload workload(layout, {1, 1, 1, 1});
    workload.model.reference = reference;
    return workload;
}

// Of one sample of 1024 tokens of text and an image of 256 patches, which are 64 tokens.
double forward_by_hand() {
    constexpr double tokens = 1088, h = 2048, patches = 256, v = 1024, vocabulary = 32000;
    // Matrices of 4 h^2 and 3 x 4 h^2, half of all pairs of positions; of the encoder 4 v^2 and 2 x 4 v^2, all pairs.
    const double llm = 8 * (2 * tokens * 16 * h * h + 4 * h * tokens * tokens / 2) + 2 * tokens * vocabulary * h;
    const double vit = 6 * (2 * patches * 12 * v * v + 4 * v * patches * patches);
    return llm + vit;
}

struct Held {
    std::int64_t trained = 0, frozen = 0;
};

Held held(const testing::SmallWorkload& workload) {
    const auto cut = workload.cut("uniform");
    Held sum;
    for (const RankParameters& rank : rank_parameters(workload.input(cut)))
        for (const WeightGroup& group : rank.groups) {
            sum.trained += group.trained;
            sum.frozen += group.frozen;
        }
    return sum;
}

}  // namespace

TEST_CASE("a step with a reference has three passes of the model and one forward of its copy") {
    const Layout layout{.tp = 2, .pp = 2, .dp = 1};
    const auto sft = pairs(layout, false), dpo = pairs(layout, true);
    const auto cut = sft.cut("uniform");
    CHECK(model_flops(sft.input(cut)) == doctest::Approx(4 * 3 * forward_by_hand()));
    CHECK(model_flops(dpo.input(cut)) == doctest::Approx(4 * 4 * forward_by_hand()));
    // Of a frozen encoder the copy runs, too.
    auto frozen = pairs(layout, true);
    frozen.model.modules[0].trainable = false;
    auto alone = frozen;
    alone.model.reference = false;
    CHECK(model_flops(frozen.input(cut)) - model_flops(alone.input(cut)) == doctest::Approx(4 * forward_by_hand()));
}

TEST_CASE("the copy's weights have neither gradients nor states, and what is frozen has none of its own") {
    const Layout layout{.tp = 2, .pp = 2, .dp = 1};
    const Held sft = held(pairs(layout, false)), dpo = held(pairs(layout, true));
    CHECK(dpo.trained == sft.trained);
    CHECK(sft.frozen == 0);
    CHECK(dpo.frozen == sft.trained);
    auto adapted = pairs(layout, true);
    for (auto& module : adapted.model.modules) module.trainable = false;
    adapted.model.modules[1].adapters = workloads::Adapters{.rank = 16};
    auto without = adapted;
    without.model.reference = false;
    CHECK(held(adapted).frozen == held(without).frozen);
}

TEST_CASE("the copy runs in front of each forward, and no backward is longer") {
    const Layout layout{.tp = 2, .pp = 2, .dp = 1};
    const auto sft = pairs(layout, false), dpo = pairs(layout, true);
    LayerCosts trained(sft, 0, LayerCosts::Store::own), both(dpo, 0, LayerCosts::Store::own);
    std::vector<PassShape> shapes(2);
    shapes[1] = PassShape{{1088}};
    const StageLayers stage{RankId{0}, {{1, 0, 8}}};
    CHECK(both.stage(stage, shapes, PassKind::backward).time == trained.stage(stage, shapes, PassKind::backward).time);
    CHECK(both.stage(stage, shapes, PassKind::forward).kernels ==
          2 * trained.stage(stage, shapes, PassKind::forward).kernels);
    const auto once = trained.pieces(stage, shapes, PassKind::forward);
    const auto twice = both.pieces(stage, shapes, PassKind::forward);
    REQUIRE(twice.size() == 2 * once.size());
    CHECK(twice.front().layer == twice[once.size()].layer);
    CHECK(cost_of(twice, dpo.recipe).time == both.stage(stage, shapes, PassKind::forward).time);
}
