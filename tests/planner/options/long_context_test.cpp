// From which length on sparse attention pays, and what options say of attention.
#include "pipeweaver/planner/long_context.hpp"

#include "pipeweaver/base/error.hpp"
#include "planner/options/attention_options.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

emulator::Setup setup_of(const emulator::Layout& layout, std::vector<double> sparsity = {}) {
    auto setup = testing::small_setup(layout);
    auto network = testing::small_network(workloads::ModuleKind::diffusion_transformer, 4, 2048);
    network.attention.sparsity = std::move(sparsity);
    setup.model.modules.push_back({"dit", network, workloads::PassUnit::items, {workloads::Modality::image}, true});
    return setup;
}

}  // namespace

TEST_CASE("the more is left out, the shorter the clips for which it pays, and the faster the long ones") {
    const LongContext all = long_context(setup_of({.tp = 1}, {0.3}));
    REQUIRE(all.sparse.size() == 6);  // its own and five usual ones
    CHECK(all.sparse.front().sparsity == 0.3);
    for (std::size_t i = 0; i < all.sparse.size(); ++i) {
        CAPTURE(all.sparse[i].sparsity);
        REQUIRE(all.sparse[i].from);
        CHECK(all.sparse[i].ratio > 1 - all.sparse[i].sparsity);
        CHECK(all.sparse[i].ratio < 1);
        if (i == 0) continue;
        CHECK(*all.sparse[i].from <= *all.sparse[i - 1].from);
        CHECK(all.sparse[i].ratio < all.sparse[i - 1].ratio);
    }
    REQUIRE(all.shares.size() == 1);  // of the diffusion transformer alone
    CHECK((all.shares[0].share > 0.5 && all.shares[0].share < 1));
    CHECK(all.contexts.empty());
    CHECK(std::count(all.lengths.begin(), all.lengths.end(), LongContext::length) == 1);
}

TEST_CASE("from the shortest length on one way to share context parallelism out is the fastest") {
    const LongContext all = long_context(setup_of({.cp = 4}));
    REQUIRE(!all.contexts.empty());
    CHECK(all.contexts.front().from == all.lengths.front());
    for (std::size_t i = 0; i < all.contexts.size(); ++i) {
        CHECK(all.contexts[i].ulysses * all.contexts[i].ring == 4);
        if (i > 0) CHECK(all.contexts[i].from > all.contexts[i - 1].from);
        if (i > 0) CHECK(all.contexts[i].ulysses != all.contexts[i - 1].ulysses);
    }
}

TEST_CASE("options say sparsity and context of modules, or are told in one line") {
    auto model = setup_of({.tp = 1}).model;
    const auto& dit = model.modules.back();
    set_sparsity(model, "0.5");
    CHECK(dit.architecture.attention.sparsity == std::vector<double>{0.5});
    set_sparsity(model, "dit=0.5/0.6/0/1");
    CHECK(dit.architecture.attention.sparsity == std::vector<double>{0.5, 0.6, 0, 1});
    set_contexts(model, "dit=4x2,vit=1x8", 8);
    CHECK((dit.ulysses == 4 && model.modules.front().ulysses == 1));
    set_contexts(model, "dit=2", {});
    CHECK(dit.ulysses == 2);
    CHECK_THROWS_WITH_AS(set_sparsity(model, "dit=0.5/0.6"),
                         "--sparsity: has 2 numbers, allowed are one or one for each of the 4 layers of 'dit'", Error);
    CHECK_THROWS_AS(set_sparsity(model, "1.5"), Error);
    CHECK_THROWS_AS(set_sparsity(model, "dit="), Error);
    CHECK_THROWS_WITH_AS(set_sparsity(model, "llm=0.5"),
                         "--sparsity: is of diffusion transformers with dense attention alone, and 'llm' is none",
                         Error);
    CHECK_THROWS_WITH_AS(set_sparsity(model, "dti=0.5"),
                         "--sparsity: 'small' has no module 'dti', known are vit, llm, dit", Error);
    CHECK_THROWS_WITH_AS(set_contexts(model, "dit=4x4", 8),
                         "--module-context: 'dit=4x4' are 16 GPUs, must be those of --cp, 8", Error);
    CHECK_THROWS_WITH_AS(set_contexts(model, "dit", 8),
                         "--module-context: 'dit' is not MODULE=ULYSSESxRING; write it like dit=4x2", Error);
    CHECK_THROWS_AS(set_contexts(model, "dit=2x2x2", 8), Error);
}
