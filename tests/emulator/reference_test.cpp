// What runs forward beside the model that is trained, a copy as it was (DPO, KTO, GRPO) or a teacher (distillation):
// FLOPs, weights, logits, sends and time by hand.
#include "emulator/pricing/stage_memory.hpp"
#include "emulator/pricing/stage_walk.hpp"
#include "emulator/step/step_parts.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/layer_store.hpp"
#include "pipeweaver/emulator/layer_times.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

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

// Of each piece: where it stands, and how often and for how long it runs.
using Sign = std::tuple<std::size_t, std::int64_t, std::int64_t, bool, Duration>;
std::vector<Sign> signs(const std::vector<PassPiece>& pieces) {
    std::vector<Sign> all;
    for (const PassPiece& piece : pieces)
        all.emplace_back(piece.module, piece.layer, piece.times, piece.lists.size() == 1,
                         piece.lists.front().cost.time);
    return all;
}

// How often an operator runs.
std::int64_t named(const std::vector<PassPiece>& pieces, std::string_view name) {
    std::int64_t sum = 0;
    for (const PassPiece& piece : pieces)
        for (const auto& list : piece.lists)
            for (const Operator& op : list.operators) sum += op.name == name ? piece.times : 0;
    return sum;
}

// The small model with other layers of the language model, and of another width.
workloads::Model teacher(std::int64_t layers, std::int64_t hidden = 2048) {
    workloads::Model model = testing::small_model();
    model.name = "teacher";
    model.modules[0].architecture = testing::small_network(workloads::ModuleKind::vision_encoder, 6, hidden / 2);
    model.modules[1].architecture = testing::small_network(workloads::ModuleKind::language_model, layers, hidden);
    model.edges[0].projector_in = hidden / 2;
    model.edges[0].projector_out = hidden;
    return model;
}

testing::SmallWorkload taught(const Layout& layout, workloads::Model by) {
    testing::SmallWorkload workload = pairs(layout, false);
    workload.model.teacher = {std::move(by)};
    return workload;
}

// What forwards, and what backwards send between ranks.
std::pair<Bytes, Bytes> sent(const testing::SmallWorkload& workload) {
    const auto cut = workload.cut("uniform");
    auto input = workload.input(cut);
    input.capacity = Bytes{std::int64_t{1} << 50};
    const StepProblem step = require_step(build_step(input));
    std::pair<Bytes, Bytes> sum;
    for (const Transfer& transfer : step.transfers) {
        const auto& from = step.problem.tasks[index(step.problem.edges[transfer.edge].from)];
        (from.kind == schedule::TaskKind::forward ? sum.first : sum.second) += transfer.message;
    }
    return sum;
}

testing::SmallWorkload without_reference(testing::SmallWorkload workload) {
    workload.model.reference = false;
    return workload;
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
    // First all of the copy, whose loss is its last, then all of the model.
    REQUIRE(signs(once).size() > 1);
    CHECK(signs(once).front() != signs(once).back());
    auto expected = signs(once);
    for (const Sign& sign : signs(once)) expected.push_back(sign);
    CHECK(signs(twice) == expected);
    CHECK(cost_of(twice, dpo.recipe).time == both.stage(stage, shapes, PassKind::forward).time);
}

TEST_CASE("nothing of the copy goes to the host, and it has no adapters") {
    const Layout layout{.tp = 2, .pp = 2, .dp = 1};
    auto adapted = pairs(layout, true);
    adapted.model.modules[1].trainable = false;
    adapted.model.modules[1].adapters = workloads::Adapters{.rank = 16};
    std::vector<PassShape> shapes(2);
    shapes[1] = PassShape{{1088}};
    const StageLayers stage{RankId{0}, {{1, 0, 4}}};
    const auto counted = [&](const testing::SmallWorkload& workload, Recompute recompute, std::string_view name) {
        LayerCosts costs(workload, 0, LayerCosts::Store::own);
        return named(costs.pieces(stage, shapes, PassKind::forward, recompute), name);
    };
    // A forward of four layers of four projections each: with adapters in the model alone.
    CHECK(counted(adapted, Recompute::none, "adapter up") == 4 * 4);
    CHECK(counted(adapted, Recompute::none, "qkv") == 2 * 4);
    CHECK(counted(pairs(layout, true), Recompute::offload, "offload") == 4);
    CHECK(counted(pairs(layout, false), Recompute::offload, "offload") == 4);
    // The sum of layers is what their list has.
    LayerCosts own(adapted, 0, LayerCosts::Store::own);
    CHECK(own.stage(stage, shapes, PassKind::forward).time ==
          cost_of(own.pieces(stage, shapes, PassKind::forward), adapted.recipe).time);
    const auto alone = without_reference(adapted);
    LayerCosts once(alone, 0, LayerCosts::Store::own);
    CHECK(own.stage(stage, shapes, PassKind::forward).kernels <
          2 * once.stage(stage, shapes, PassKind::forward).kernels);
}

TEST_CASE("layers that are priced one by one have their copies") {
    const Layout layout{.tp = 2, .pp = 2, .dp = 1};
    const auto dpo = pairs(layout, true), sft = pairs(layout, false);
    const std::vector<std::vector<PassShape>> microbatches{{{}, PassShape{{1024}}}};
    const auto both = layer_times(dpo, microbatches), alone = layer_times(sft, microbatches);
    const auto first = static_cast<std::size_t>(dpo.model.modules[0].architecture.layers);
    REQUIRE(alone[first].forward > Duration{});
    CHECK(both[first].forward == 2 * alone[first].forward);
    CHECK(both[first].backward == alone[first].backward);
}

TEST_CASE("what a copy or a teacher gives is sent on with what the model gives, and gradients are the model's alone") {
    const Layout layout{.tp = 2, .pp = 2, .dp = 1};
    const auto [forward, backward] = sent(pairs(layout, false));
    CHECK(forward == backward);
    CHECK(sent(pairs(layout, true)) == std::pair(forward + forward, backward));
    CHECK(sent(taught(layout, teacher(8))) == std::pair(forward + forward, backward));
    // Of twice the width.
    CHECK(sent(taught(layout, teacher(8, 4096))) == std::pair(forward + forward + forward, backward));
}

TEST_CASE("a teacher's layers lie on the stages in proportion, frozen, and all of them do") {
    const Layout layout{.tp = 2, .pp = 2, .dp = 1};
    const Held alone = held(pairs(layout, false));
    for (const std::int64_t layers : {5, 8, 24}) {
        CAPTURE(layers);
        const auto all = held(taught(layout, teacher(layers)));
        const auto network = testing::small_model().modules[1].architecture;
        const std::int64_t of_layer = workloads::layer_parameter_parts(network, 0).common(2);
        CHECK(all.trained == alone.trained);
        CHECK(all.frozen == alone.trained + (layers - 8) * of_layer);
    }
    const auto model = testing::small_model(), other = teacher(20);
    const LayerRange first = range_beside(model, other, {1, 0, 3}), last = range_beside(model, other, {1, 3, 5});
    CHECK(std::pair(first.first, first.count) == std::pair<std::int64_t, std::int64_t>(0, 7));
    CHECK(std::pair(last.first, last.count) == std::pair<std::int64_t, std::int64_t>(7, 13));
    CHECK(stage_beside(model, teacher(4), {RankId{0}, {{1, 0, 1}}}).parts.empty());
}

TEST_CASE("a teacher of the model's own sizes takes the time of its copy, and one of more layers more FLOPs") {
    const Layout layout{.tp = 2, .pp = 2, .dp = 1};
    const auto copied = pairs(layout, true), equal = taught(layout, teacher(8)), large = taught(layout, teacher(16));
    LayerCosts beside_copy(copied, 0, LayerCosts::Store::own), beside_equal(equal, 0, LayerCosts::Store::own);
    std::vector<PassShape> shapes(2);
    shapes[1] = PassShape{{1088}};
    for (const LayerRange part : {LayerRange{1, 0, 4}, LayerRange{1, 4, 4}}) {
        const StageLayers stage{RankId{0}, {part}};
        for (const PassKind pass : {PassKind::forward, PassKind::backward})
            CHECK(beside_equal.stage(stage, shapes, pass).time == beside_copy.stage(stage, shapes, pass).time);
    }
    const auto cut = equal.cut("uniform");
    CHECK(model_flops(equal.input(cut)) == doctest::Approx(4 * 4 * forward_by_hand()));
    constexpr double tokens = 1088, h = 2048, of_layer = 2 * tokens * 16 * h * h + 4 * h * tokens * tokens / 2;
    CHECK(model_flops(large.input(cut)) == doctest::Approx(4 * (4 * forward_by_hand() + 8 * of_layer)));
}

TEST_CASE("a teacher's logits are kept until the loss on the stage that has its head, and on no other") {
    const Layout layout{.tp = 2, .pp = 2, .dp = 1};
    const auto copied = pairs(layout, true), with = taught(layout, teacher(8));
    const auto cut = with.cut("uniform");
    std::vector<PassShape> shapes(2);
    shapes[1] = PassShape{{1088}};
    const auto more = [&](const LayerRange& part) {
        const StageLayers stage{RankId{0}, {part}};
        return pass_memory(with.input(cut), stage, shapes, Recompute::none, true).held -
               pass_memory(copied.input(cut), stage, shapes, Recompute::none, true).held;
    };
    CHECK(more({1, 0, 4}) == Bytes{});
    CHECK(more({1, 4, 4}) == Bytes{with.recipe.kept.logit * 1088 * 32000 / 2});
}

TEST_CASE("a store tells stages apart beside which other numbers of a teacher's layers lie") {
    // Of six layers in eight, beside the third and fourth lie two, beside the fifth and sixth one.
    const auto model = testing::small_model(), other = teacher(6);
    CHECK(range_beside(model, other, {1, 2, 2}).count == 2);
    CHECK(range_beside(model, other, {1, 4, 2}).count == 1);
    const auto forwards = [&](bool stores) {
        auto workload = taught({.tp = 1, .pp = 7, .dp = 1}, other);
        if (stores) workload.store = std::make_shared<LayerStore>();
        const auto cut = workload.cut("uniform");
        auto input = workload.input(cut);
        input.capacity = Bytes{std::int64_t{1} << 50};
        const StepProblem step = require_step(build_step(input));
        std::vector<Duration> all;
        for (const auto& task : step.problem.tasks)
            if (task.kind == schedule::TaskKind::forward && task.microbatch == 0) all.push_back(task.duration);
        return all;
    };
    const auto alone = forwards(false);
    REQUIRE(alone.size() == 7);
    CHECK(alone[5] < alone[4]);
    CHECK(forwards(true) == alone);
}

TEST_CASE("what gathers weights gathers a teacher's blocks and head, too, where they are larger than the model's") {
    auto equal = taught({.tp = 2, .pp = 1, .dp = 2}, teacher(8)),
         large = taught({.tp = 2, .pp = 1, .dp = 2}, teacher(8, 4096));
    const auto cut = equal.cut("uniform");
    const auto ranks = rank_parameters(large.input(cut));
    // A block of the encoder, one of the language model, and the head, each on two GPUs.
    const auto& networks = large.model.teacher.front().modules;
    const std::int64_t by_parts = workloads::layer_parameter_parts(networks[0].architecture, 0).common(2) +
                                  workloads::layer_parameter_parts(networks[1].architecture, 0).common(2) +
                                  workloads::head_parameters(networks[1].architecture) / 2;
    REQUIRE(ranks.size() == 1);
    CHECK(ranks[0].teacher_layers == by_parts);
    CHECK(rank_parameters(equal.input(cut))[0].teacher_layers == ranks[0].whole_layers);
    const auto workspace = [&](testing::SmallWorkload workload, int zero) {
        workload.recipe.zero = zero;
        return static_memory(workload.input(cut)).front().workspace;
    };
    CHECK(workspace(large, 2) == workspace(equal, 2));
    CHECK(workspace(large, 3) - workspace(equal, 3) ==
          Bytes{2 * large.recipe.state.weight * (by_parts - ranks[0].whole_layers)});
}

// Of each module two blocks, and the larger of embedding and head, which the language model alone has.
TEST_CASE("where weights are shared out, frozen ones are gathered for a block at work and one on its way") {
    testing::SmallWorkload all({.tp = 1, .pp = 1, .dp = 2});
    for (auto& module : all.model.modules) module.trainable = false;
    std::int64_t most = 0;
    for (const auto& module : all.model.modules) {
        const auto& network = module.architecture;
        most =
            std::max(most, 2 * workloads::layer_parameters(network, 0) +
                               std::max(workloads::embedding_parameters(network), workloads::head_parameters(network)));
    }
    const auto cut = all.cut("uniform");
    const auto workspace = [&](int zero) {
        all.recipe.zero = zero;
        return static_memory(all.input(cut)).front().workspace;
    };
    CHECK(workspace(2) == Bytes{});
    CHECK(workspace(3) == Bytes{all.recipe.state.weight * most});
}

TEST_CASE("a teacher with fewer layers sends nothing before its first") {
    const auto of_teacher = [](std::int64_t layers) {
        const Layout layout{.tp = 1, .pp = 7, .dp = 1};
        return sent(taught(layout, teacher(layers))).first - sent(pairs(layout, false)).first;
    };
    // Behind two of eight layers none of three has run: of six sends one less.
    const Bytes of_one{std::int64_t{4} * 2 * (1024 + 64) * 2048};
    CHECK(range_beside(testing::small_model(), teacher(3), {1, 0, 2}).count == 0);
    CHECK(of_teacher(8) - of_teacher(3) == of_one);
}
