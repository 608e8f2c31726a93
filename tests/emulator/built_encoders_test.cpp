// An encoder that lies as a framework builds it: what each GPU computes, holds and sends, worked out by hand.
#include "emulator/pricing/stage_memory.hpp"
#include "emulator/step/step_parts.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/module_layout.hpp"
#include "pipeweaver/emulator/shares.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using workloads::Lies;
using workloads::OnContextRanks;
using workloads::OnTensorRanks;

namespace {

constexpr Lies whole{OnTensorRanks::whole, OnContextRanks::each};
constexpr Lies not_sequence_parallel{OnTensorRanks::all_positions, OnContextRanks::each};

// vit (6 layers, h 1024) whole on the first stage, llm (8 layers) cut in two.
struct Lying : testing::SmallWorkload {
    explicit Lying(const Lies& lies, const Layout& in = {.tp = 4, .pp = 2, .dp = 1, .cp = 2})
        : testing::SmallWorkload(in) {
        model.modules[0].lies = lies;
        cut_so.name = "by hand";
        cut_so.chains = {{"all", {{RankId{0}, {{0, 0, 6}, {1, 0, 4}}}, {RankId{1}, {{1, 4, 4}}}}}};
        cut_so.unit_items = {0};
        step_of = input(cut_so);
    }

    std::vector<Operator> of_vit(PassKind pass) const {
        const LayerCosts priced(*this, 0, LayerCosts::Store::own);
        std::vector<Operator> all;
        const PassShape shape{{1024, 1024, 512}};
        const StageLayers stage{RankId{0}, {{0, 0, 1}}};
        std::vector<PassShape> shapes(model.modules.size());
        shapes[0] = shape;
        for (const auto& piece : priced.pieces(stage, shapes, pass))
            for (const auto& list : piece.lists) all.insert(all.end(), list.operators.begin(), list.operators.end());
        return all;
    }

    Bytes kept_by_vit() const {
        std::vector<PassShape> shapes(model.modules.size());
        shapes[0] = PassShape{{1024, 1024, 512}};
        return pass_memory(step_of, {RankId{0}, {{0, 1, 1}}}, shapes, Recompute::none, true).held;
    }

    partition::Partition cut_so;
    StepInput step_of;
};

std::int64_t collectives_of(const std::vector<Operator>& operators, costdb::CollectiveKind kind) {
    return std::count_if(operators.begin(), operators.end(), [&](const Operator& op) {
        const auto* one = std::get_if<costdb::Collective>(&op.query);
        return one != nullptr && one->kind == kind;
    });
}

std::int64_t flops_of(const std::vector<Operator>& operators) {
    std::int64_t flops = 0;
    for (const Operator& op : operators)
        if (const auto* one = std::get_if<costdb::Gemm>(&op.query)) flops += 2 * one->m * one->n * one->k;
    return flops;
}

}  // namespace

TEST_CASE("an encoder that lies whole computes all images on every GPU, and sends nothing") {
    const Lying split{Lies{}}, on_each{whole};
    const auto divided = split.of_vit(PassKind::forward), all = on_each.of_vit(PassKind::forward);
    CHECK(flops_of(all) == 8 * flops_of(divided));  // tp 4 x cp 2
    CHECK(collectives_of(all, costdb::CollectiveKind::all_gather) == 0);
    CHECK(std::none_of(all.begin(), all.end(),
                       [](const Operator& op) { return std::holds_alternative<costdb::Collective>(op.query); }));
    CHECK(collectives_of(divided, costdb::CollectiveKind::all_gather) > 0);
    CHECK(on_each.kept_by_vit() > 7 * split.kept_by_vit());
}

TEST_CASE("an encoder without sequence parallelism sums outputs on all GPUs of a context group") {
    const Lying split{Lies{}}, on_each{not_sequence_parallel};
    const auto all = on_each.of_vit(PassKind::forward);
    CHECK(flops_of(all) == 2 * flops_of(split.of_vit(PassKind::forward)));  // cp 2
    CHECK(collectives_of(all, costdb::CollectiveKind::all_reduce) == 2);
    CHECK(collectives_of(all, costdb::CollectiveKind::all_gather) == 0);
    CHECK(collectives_of(all, costdb::CollectiveKind::all_to_all) == 0);
}

TEST_CASE("images that are dealt over context groups are those of the fullest, equally many in their order") {
    const Lying all{not_sequence_parallel}, dealt{Lies{OnTensorRanks::all_positions, OnContextRanks::dealt}};
    // 1024 + 1024 patches on one group, 512 on the other.
    CHECK(5 * flops_of(dealt.of_vit(PassKind::forward)) == 4 * flops_of(all.of_vit(PassKind::forward)));
    const auto shares =
        shares_of(dealt.model.modules[0].architecture, PassShape{{4, 4, 4, 4, 800}}, {4, 3, Sharing::counted});
    REQUIRE(shares.size() == 3);
    CHECK((shares[0].whole.size() == 2 && shares[1].whole.size() == 2 && shares[2].whole.size() == 1));
    CHECK(shares[2].whole.front().sequence == 4);
}

TEST_CASE("weights that lie whole are on every GPU, their states shared out over context groups and replicas alone") {
    const auto memory = [](const Lies& lies) {
        return static_memory(Lying(lies, {.tp = 4, .pp = 2, .dp = 2, .cp = 2}).step_of).front();
    };
    const auto split = memory({}), on_each = memory(whole);
    // Six layers of 12 h^2 and the projector of 1024 x 2048: three quarters more of each on a GPU.
    const std::int64_t more = 3 * (6 * 12 * 1024 * 1024 + 1024 * 2048) / 4;
    CHECK(on_each.weights - split.weights == Bytes{2 * more});
    CHECK(on_each.gradients - split.gradients == Bytes{4 * more});
    CHECK(on_each.optimizer - split.optimizer == Bytes{12 * more / 4});  // cp 2 x dp 2
}

TEST_CASE(
    "gradients of an encoder that lies whole are averaged over tensor parallel GPUs where its framework does it") {
    const auto averages = [](bool does, bool trains) {
        Lying one{whole};
        one.model.modules[0].trainable = trains;
        workloads::build_as(one.model, {.framework = "a", .source = "b", .lies = whole, .averages_gradients = does});
        std::vector<Bytes> bytes;
        for (const Operator& op : ends_of_ranks(one.step_of))
            if (op.name == "average whole encoders") {
                const auto& asked = std::get<costdb::Collective>(op.query);
                CHECK((asked.kind == costdb::CollectiveKind::all_reduce && asked.gpus == 4));
                bytes.push_back(asked.message);
            }
        return bytes;
    };
    // Six layers of 12 h^2 in fp32, on the first rank alone.
    CHECK(averages(true, true) == std::vector<Bytes>{Bytes{4 * 6 * 12 * 1024 * 1024}});
    CHECK(averages(false, true).empty());
    CHECK(averages(true, false).empty());
}

TEST_CASE("degrees that divide the language model alone are no conflict with an encoder that lies whole") {
    auto model = testing::small_model();
    model.modules[0].architecture.heads = 6;
    const Layout layout{.tp = 4, .pp = 2, .dp = 1};
    REQUIRE(conflict(layout, model));
    model.modules[0].lies = whole;
    CHECK_FALSE(conflict(layout, model));
    const Layout context{.tp = 1, .pp = 2, .dp = 1, .cp = 4};
    CHECK_FALSE(conflict(context, model));
    build_as(model, {.framework = "a", .source = "b", .most_cp = 1});
    REQUIRE(conflict(context, model));
    CHECK(conflict(context, model)->message ==
          "--cp: a builds '" + model.name +
              "' for 1 context parallel group at most (b); allowed with --encoders split is any");
}

TEST_CASE("a teacher's encoder lies as the model's, and what its own degrees conflict with is said to be its") {
    auto model = testing::small_model(), teacher = model;
    teacher.name = "large";
    teacher.modules[0].architecture.heads = 6;
    model.modules[0].lies = whole;
    model.teacher = {teacher};
    const Layout layout{.tp = 4, .pp = 2, .dp = 1};
    CHECK_FALSE(conflict(layout, model));
    model.teacher.front().modules[1].architecture.heads = 6;
    REQUIRE(conflict(layout, model));
    CHECK(
        conflict(layout, model)->message ==
        "--tp: of the teacher 'large': 4 does not divide the 6 attention heads of module 'llm'; the next smaller that "
        "divides those of every module is 2");
}

TEST_CASE("an encoder that its framework never or always recomputes does so whatever is said") {
    const auto held = [](workloads::EncoderRecompute how, Recompute recompute) {
        Lying one{Lies{}};
        workloads::build_as(one.model, {.framework = "a", .source = "b", .recompute = how});
        std::vector<PassShape> shapes(one.model.modules.size());
        shapes[0] = PassShape{{1024, 1024, 512}};
        const StageLayers stage{RankId{0}, {{0, 1, 2}}};
        LayerCosts priced(one, 0, LayerCosts::Store::own);
        return std::pair(pass_memory(one.step_of, stage, shapes, recompute, true).held,
                         priced.stage(stage, shapes, PassKind::backward, recompute).time);
    };
    using enum workloads::EncoderRecompute;
    const auto none = held(as_backbone, Recompute::none), full = held(as_backbone, Recompute::full);
    REQUIRE(full.first < none.first);
    REQUIRE(full.second > none.second);
    for (const Recompute said : {Recompute::none, Recompute::half, Recompute::full, Recompute::selective}) {
        CHECK(held(never, said) == none);
        CHECK(held(always, said) == full);
    }
}
