// Recomputation of the first n blocks of every part: between none and full, and never less time or more memory with
// more of them.
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;

namespace {

// A small model with other layers and frozen modules, somehow cut, trained and batched.
struct Drawn : testing::SmallWorkload {
    explicit Drawn(std::uint64_t number)
        : SmallWorkload({.tp = 2, .pp = 2, .dp = 2}, {static_cast<int>(number % 4), 0, 3}) {
        Random random(number);
        for (auto& module : model.modules) module.architecture.layers = 4 + static_cast<std::int64_t>(random.below(9));
        model.modules[random.below(2)].trainable = random.below(3) > 0;
        recipe.zero = static_cast<int>(random.below(4));
        const std::vector<std::string> cutters{"megatron", "balanced", "dip"};
        const std::string& cutter = cutters[random.below(3)];
        partition = cut(cutter, cutter == "dip" ? 1 : 1 + static_cast<std::int64_t>(random.below(2)));
    }

    StepProblem step(std::vector<Recompute> modes) const {
        auto wanted = input(partition);
        wanted.modes = std::move(modes);
        wanted.capacity = Bytes{std::int64_t{1} << 50};
        return require_step(build_step(wanted));
    }

    std::int64_t most_blocks() const {
        std::int64_t most = 0;
        for (const Chain& chain : partition.chains)
            for (const StageLayers& stage : chain.stages)
                for (const LayerRange& part : stage.parts) most = std::max(most, part.count);
        return most;
    }

    partition::Partition partition;
};

void check_same(const PassCost& one, const PassCost& other) {
    CHECK(one.time == other.time);
    CHECK(one.kernels == other.kernels);
    CHECK(one.exposed == other.exposed);
    for (std::size_t c = 0; c < operator_classes; ++c)
        for (std::size_t b = 0; b < PassCost::bases; ++b) {
            CHECK(one.shares[c][b].time == other.shares[c][b].time);
            CHECK(one.shares[c][b].error_ns == other.shares[c][b].error_ns);
        }
}

void check_same(const StepProblem& one, const StepProblem& other) {
    CHECK(to_json(one.problem) == to_json(other.problem));
    REQUIRE(one.cost.size() == other.cost.size());
    for (std::size_t i = 0; i < one.cost.size(); ++i) check_same(one.cost_of(i), other.cost_of(i));
    REQUIRE(one.split.size() == other.split.size());
    for (std::size_t k = 0; k < one.split.size(); ++k) {
        check_same(one.costs[one.split[k].input], other.costs[other.split[k].input]);
        REQUIRE(one.split[k].modes.size() == other.split[k].modes.size());
        for (std::size_t m = 0; m < one.split[k].modes.size(); ++m) {
            CHECK(one.split[k].modes[m].backward == other.split[k].modes[m].backward);
            CHECK(one.split[k].modes[m].transient == other.split[k].modes[m].transient);
            CHECK(one.split[k].modes[m].kept == other.split[k].modes[m].kept);
        }
    }
}

// All blocks of a part but two.
std::int64_t all_but_two(std::int64_t count, std::int64_t, bool) { return std::max<std::int64_t>(0, count - 2); }

constexpr RecomputeRow toy_row{.name = "toy", .for_plans = false, .layers = all_but_two};
constexpr Recompute toy{Recompute::Kind::blocks, 0, &toy_row};

}  // namespace

TEST_CASE("a recomputation of whole blocks is a row") {
    CHECK(name_of(toy) == "toy");
    CHECK_FALSE(is_for_plans(toy));
    CHECK_FALSE(toy.repeats_parts());
    CHECK(recomputed_layers(5, toy) == 3);
    bool saves = false;
    for (std::uint64_t number = 0; number < 8; ++number) {
        CAPTURE(number);
        const Drawn drawn(number);
        const auto step = drawn.step({Recompute::none, toy, Recompute::full});
        for (const Pair& pair : step.problem.pairs) {
            const Mode &none = pair.modes.at(0), &some = pair.modes.at(1), &full = pair.modes.at(2);
            CHECK(some.held <= none.held);
            CHECK(some.held >= full.held);
            CHECK(some.backward >= none.backward);
            CHECK(some.backward <= full.backward);
            saves = saves || (some.held < none.held && some.held > full.held);
        }
    }
    CHECK(saves);
}

TEST_CASE("a recompute setting is read back by its name") {
    for (const Recompute setting : {Recompute::none, Recompute::selective, Recompute::second_products, Recompute::half,
                                    Recompute::full, Recompute::core_attention, Recompute::offload, Recompute::encoders,
                                    Recompute::backbone, Recompute::blocks(1), Recompute::blocks(1234)})
        CHECK(recompute_named(name_of(setting)) == setting);
    CHECK(name_of(Recompute::blocks(3)) == "blocks:3");
    for (const std::string name : {"", "blocks", "blocks:", "blocks:0", "blocks:-1", "blocks:x", "blocks:1x",
                                   "blocks: 1", "blocks:1.5", "blocks:99999999999999999999", "Full", "by-rank"})
        CHECK_MESSAGE(!recompute_named(name), name);
    CHECK(recompute_names() == std::vector<std::string>{"none", "selective", "second-products", "core-attention",
                                                        "half", "full", "offload", "encoders", "backbone", "blocks:N"});
}

TEST_CASE("every second product that runs again is between selective and full recomputation") {
    CHECK_FALSE(is_for_plans(Recompute::second_products));
    bool saves = false;
    for (std::uint64_t number = 0; number < 8; ++number) {
        CAPTURE(number);
        const auto step = Drawn(number).step({Recompute::selective, Recompute::second_products, Recompute::full});
        for (const Pair& pair : step.problem.pairs) {
            const Mode &selective = pair.modes.at(0), &products = pair.modes.at(1), &full = pair.modes.at(2);
            CHECK(products.held <= selective.held);
            CHECK(products.held >= full.held);
            CHECK(products.forward == selective.forward);
            CHECK(products.backward >= selective.backward);
            CHECK(products.backward <= full.backward);
            saves = saves || (products.held < selective.held && products.backward > selective.backward);
        }
    }
    CHECK(saves);
}

TEST_CASE("fused attention that runs again saves nothing, and makes no backward shorter") {
    bool longer = false;
    for (std::uint64_t number = 0; number < 8; ++number) {
        CAPTURE(number);
        const auto step = Drawn(number).step({Recompute::none, Recompute::core_attention});
        for (const Pair& pair : step.problem.pairs) {
            const Mode &none = pair.modes.at(0), &again = pair.modes.at(1);
            CHECK(again.held == none.held);
            CHECK(again.forward == none.forward);
            CHECK(again.backward >= none.backward);
            longer = longer || again.backward > none.backward;
        }
    }
    CHECK(longer);
}

TEST_CASE("no blocks are none, and as many as a part has, or more, are full: bit for bit") {
    for (std::uint64_t number = 0; number < 24; ++number) {
        CAPTURE(number);
        const Drawn drawn(number);
        const std::int64_t most = drawn.most_blocks();
        check_same(drawn.step({Recompute::blocks(0)}), drawn.step({Recompute::none}));
        const auto full = drawn.step({Recompute::full});
        check_same(drawn.step({Recompute::blocks(most)}), full);
        check_same(drawn.step({Recompute::blocks(most + 7)}), full);
        // As one mode of several, too.
        check_same(drawn.step({Recompute::none, Recompute::blocks(0), Recompute::blocks(most)}),
                   drawn.step({Recompute::none, Recompute::none, Recompute::full}));
    }
}

TEST_CASE("half of a part's blocks is as many blocks") {
    Drawn drawn(1);
    drawn.partition = drawn.cut("dip");
    for (const Chain& chain : drawn.partition.chains)
        for (const StageLayers& stage : chain.stages)
            for (const LayerRange& part : stage.parts)
                CHECK(recomputed_layers(part.count, Recompute::half) ==
                      recomputed_layers(part.count, Recompute::blocks((part.count + 1) / 2)));
}

TEST_CASE("encoders and the backbone run again alone, and together they are full") {
    const Drawn drawn(1);
    const std::size_t backbone = drawn.model.backbone();
    for (const Chain& chain : drawn.partition.chains)
        for (const StageLayers& stage : chain.stages)
            for (const LayerRange& part : stage.parts) {
                const bool own = part.module == backbone;
                CHECK(recomputed_layers(drawn.model, part, Recompute::backbone) == (own ? part.count : 0));
                CHECK(recomputed_layers(drawn.model, part, Recompute::encoders) == (own ? 0 : part.count));
            }
    for (std::uint64_t number = 0; number < 24; ++number) {
        CAPTURE(number);
        const Drawn one(number);
        const auto step = one.step({Recompute::none, Recompute::encoders, Recompute::backbone, Recompute::full});
        Duration none{}, encoders{}, of_backbone{}, full{};
        for (const Pair& pair : step.problem.pairs) {
            none += pair.modes[0].backward;
            encoders += pair.modes[1].backward;
            of_backbone += pair.modes[2].backward;
            full += pair.modes[3].backward;
            CHECK(pair.modes[1].held <= pair.modes[0].held);
            CHECK(pair.modes[3].held <= pair.modes[2].held);
        }
        CHECK(of_backbone > none);
        CHECK(encoders >= none);
        if (one.recipe.is_serial()) CHECK(encoders - none + of_backbone - none == full - none);
    }
}

TEST_CASE("with more blocks a backward takes no less time, and a pass holds no more") {
    for (std::uint64_t number = 100; number < 140; ++number) {
        CAPTURE(number);
        const Drawn drawn(number);
        std::vector<Recompute> menu;
        for (std::int64_t n = 0; n <= drawn.most_blocks(); ++n) menu.push_back(Recompute::blocks(n));
        const auto step = drawn.step(menu);
        bool changes = false;
        for (const Pair& pair : step.problem.pairs) {
            REQUIRE(pair.modes.size() == menu.size());
            for (std::size_t n = 1; n < menu.size(); ++n) {
                const Mode &fewer = pair.modes[n - 1], &more = pair.modes[n];
                CHECK(more.forward == fewer.forward);
                CHECK(more.backward >= fewer.backward);
                CHECK(more.held <= fewer.held);
                changes = changes || more.held < fewer.held;
                // With the first block comes the room to run one again; later ones take turns in it.
                if (n > 1) CHECK(more.transient == fewer.transient);
            }
        }
        CHECK(changes);
    }
}

TEST_CASE("ranks with a mode each cost what they do where all have the menu and take that mode") {
    const std::vector<Recompute> menu{Recompute::none, Recompute::selective, Recompute::blocks(2), Recompute::full};
    for (std::uint64_t number = 0; number < 40; ++number) {
        CAPTURE(number);
        const Drawn drawn(number);
        Random random(number);
        const std::vector<std::size_t> taken{random.below(menu.size()), random.below(menu.size())};
        auto wanted = drawn.input(drawn.partition);
        wanted.modes = menu;
        wanted.capacity = Bytes{std::int64_t{1} << 50};
        const StepProblem all = require_step(build_step(wanted));
        wanted.mode_of_rank = {menu[taken[0]], menu[taken[1]]};
        const StepProblem one = require_step(build_step(wanted));
        REQUIRE(one.problem.tasks.size() == all.problem.tasks.size());
        REQUIRE(one.problem.pairs.size() == all.problem.pairs.size());
        for (std::size_t k = 0; k < all.problem.pairs.size(); ++k) {
            const Pair& pair = one.problem.pairs[k];
            const std::size_t rank = index(one.problem.tasks[index(pair.forward)].rank);
            REQUIRE(pair.modes.size() == 1);
            const Mode &mode = pair.modes.front(), &expected = all.problem.pairs[k].modes[taken[rank]];
            CHECK(mode.forward == expected.forward);
            CHECK(mode.backward == expected.backward);
            CHECK(mode.held == expected.held);
            CHECK(mode.transient == expected.transient);
            CHECK(one.problem.tasks[index(pair.backward)].duration == mode.backward);
            CHECK(one.cost_of(index(pair.backward)).time == mode.backward);
        }
    }
}
