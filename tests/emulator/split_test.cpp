#include "pipeweaver/emulator/split.hpp"

#include "pipeweaver/workloads/activations.hpp"
#include "tests/support/small_workload.hpp"
#include "tests/support/two_stages.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;

namespace {

TaskId id(std::uint32_t number) { return TaskId{number}; }

Schedule order(const std::vector<std::uint32_t>& rank0, const std::vector<std::uint32_t>& rank1) {
    Schedule schedule{{{}, {}}, {0, 0, 0, 0}};
    for (const auto i : rank0) schedule.order[0].push_back(id(i));
    for (const auto i : rank1) schedule.order[1].push_back(id(i));
    return schedule;
}

struct Small : testing::SmallWorkload {
    StepProblem step(bool frees = true) const {
        auto input = SmallWorkload::input(cut("dip"));
        input.name = "small";
        input.input_gradient_frees = frees;
        return require_step(build_step(input));
    }
};

}  // namespace

TEST_CASE("weight gradients of a plain block need 32 s b h bytes, as table 1 of the zero-bubble paper says") {
    const auto network = testing::small_network(workloads::ModuleKind::vision_encoder, 2, 1024);  // ffn 4 h
    const auto needs = workloads::weight_gradient_needs(network, 0, 100, 0, 1);
    CHECK(needs.inputs == Bytes{14 * 1024 * 100});
    CHECK(needs.gradients == Bytes{18 * 1024 * 100});
}

TEST_CASE(
    "gradients of outputs that are split by columns are kept split, the others as the input gradient gathered them") {
    // Gated, h 2048, ffn 8192, 100 positions on 2 GPUs: inputs of qkv, projection, up, down; gradients of qkv and up.
    const auto network = testing::small_network(workloads::ModuleKind::language_model, 2, 2048);
    const auto needs = workloads::weight_gradient_needs(network, 0, 100, 0, 2);
    CHECK(needs.inputs == Bytes{100 * (2 * 2048 + 2 * 2048 + 2 * 2048 + 2 * 8192) / 2});
    CHECK(needs.gradients == Bytes{100 * (6 * 2048 + 4 * 8192) / 2 + 100 * 4 * 2048});
}

TEST_CASE("without tensor parallelism I and W take as long as B, but for roundings and norms, with it no less") {
    for (const std::int64_t tp : {1, 2}) {
        Small setup;
        setup.recipe.execution.norms_again = false;
        setup.layout.tp = tp;
        const auto whole = setup.step();
        for (std::size_t k = 0; k < whole.split.size(); ++k)
            for (std::size_t m = 0; m < whole.split[k].modes.size(); ++m) {
                const Mode& parts = whole.split[k].modes[m];
                const Duration together = parts.backward + parts.weight;
                const Duration backward = whole.problem.pairs[k].modes[m].backward;
                CHECK(together >= backward);
                if (tp == 1) CHECK(together <= backward + Duration{100});
            }
    }
}

TEST_CASE("where its recipe says so a split backward takes longer, but not what it computes again") {
    Small usual, slow;
    slow.recipe.split_slowdown = 1.25;
    const auto whole = usual.step(), slower = slow.step();
    for (std::size_t k = 0; k < whole.split.size(); ++k) {
        const auto &a = whole.split[k].modes, &b = slower.split[k].modes;
        REQUIRE(a.size() == b.size());
        for (std::size_t m = 0; m < a.size(); ++m) {
            CHECK(slower.problem.pairs[k].modes[m].backward == whole.problem.pairs[k].modes[m].backward);
            // To the nanosecond.
            CHECK(std::abs(4 * b[m].weight.count() - 5 * a[m].weight.count()) <= 2);
            // The first mode computes nothing again.
            CHECK(b[m].backward - a[m].backward == b.front().backward - a.front().backward);
        }
    }
    const auto split = require_step(split_backwards(slower, splittable(slower)));
    for (std::size_t i = 0; i < split.problem.tasks.size(); ++i)
        if (split.problem.tasks[i].kind != TaskKind::other)
            CHECK(split.cost_of(i).time == split.problem.tasks[i].duration);
}

TEST_CASE("W gives back what I kept, in every mode") {
    const auto whole = Small().step();
    const auto choice = splittable(whole);
    const auto split = require_step(split_backwards(whole, choice));
    std::size_t weights = 0;
    for (std::size_t k = 0; k < choice.size(); ++k) {
        const Pair &own = whole.problem.pairs[k], &pair = split.problem.pairs[k];
        CHECK(pair.forward == own.forward);
        CHECK(pair.backward == own.backward);
        CHECK(pair.weight.has_value() == choice[k]);
        // Nothing waits for the gradient of raw images.
        const bool first = whole.problem.tasks[index(own.forward)].stage == 0;
        if (first) CHECK(!choice[k]);
        if (!pair.weight) continue;
        ++weights;
        CHECK(split.problem.tasks[index(pair.backward)].kind == TaskKind::input_gradient);
        CHECK(split.problem.tasks[index(*pair.weight)].kind == TaskKind::weight_gradient);
        for (std::size_t m = 0; m < own.modes.size(); ++m) {
            const Mode &a = own.modes[m], &b = pair.modes[m];
            CHECK(b.weight == pair.modes[0].weight);  // recomputation is I's
            CHECK(b.kept == pair.modes[0].kept);      // and is not done twice
            CHECK(b.held == a.held);
            CHECK(b.transient >= a.transient);
            CHECK(b.kept <= b.held + b.transient);
        }
    }
    for (std::size_t i = 0; i < split.problem.tasks.size(); ++i)
        if (split.problem.tasks[i].kind != TaskKind::other)
            CHECK(split.cost_of(i).time == split.problem.tasks[i].duration);
    CHECK(weights > 0);
    CHECK(split.problem.tasks.size() == whole.problem.tasks.size() + weights);
    // Nor for that of a text-only microbatch's first stage.
    const auto text = std::find_if(whole.problem.pairs.begin(), whole.problem.pairs.end(), [&](const Pair& pair) {
        return whole.problem.tasks[index(pair.forward)].microbatch == 1;
    });
    CHECK(!choice[static_cast<std::size_t>(text - whole.problem.pairs.begin())]);
    CHECK(choice[static_cast<std::size_t>(text - whole.problem.pairs.begin()) + 1]);
}

TEST_CASE("between I and W a stage keeps its blocks' needs, and I takes what they are more than the activations") {
    const Small setup;
    const auto whole = setup.step();
    const auto split = require_step(split_backwards(whole, splittable(whole)));
    // The language model's last stage, with the head; 1024 + 2 * 64 tokens.
    const std::int64_t last = split.problem.stages.back().stage, n = *split.problem.stages.back().parts[0].layers;
    const auto pair = std::find_if(split.problem.pairs.begin(), split.problem.pairs.end(), [&](const Pair& p) {
        const Task& task = split.problem.tasks[index(p.forward)];
        return task.module == "llm" && task.microbatch == 2 && task.stage == last;
    });
    REQUIRE(pair != split.problem.pairs.end());
    const std::int64_t m = 1152, h = 2048, columns = 32000;
    const std::int64_t block = m * (16 * h + 6 * 4 * h) / 2;
    const std::int64_t needs = m * (12 * h + 24 * h) / 2 + 4 * m * h;
    const std::int64_t head_needs = 2 * m * columns / 2 + 2 * m * h / 2;
    CHECK(pair->modes[0].kept == Bytes{n * needs + head_needs});
    CHECK(pair->modes[0].held == Bytes{n * block + 2 * m * columns / 2 + 2 * m * h / 2});
    // The largest sum of blocks before (their activations), at (activations) and behind the one at work (needs), and
    // the workspace 4 m F/2 of the up projection's gradient.
    const std::int64_t workspace = std::max(4 * m * 4 * h / 2, 6 * m * h);
    CHECK(pair->modes[0].transient == Bytes{n * (needs - block) + workspace});
    // All recomputed: a block's needs (22 m h) are more than its activations (20 m h), so I takes most at its end.
    CHECK(pair->modes[2].transient == Bytes{n * (needs - 2 * m * h / 2) + workspace});
}

TEST_CASE("PyTorch's I frees nothing") {
    const auto whole = Small().step(false);
    const auto split = require_step(split_backwards(whole, splittable(whole)));
    for (const Pair& pair : split.problem.pairs)
        if (pair.weight) CHECK(split.problem.tasks[index(pair.backward)].release == 0_B);
}

TEST_CASE("frozen modules have no weight gradient and stay whole") {
    Small setup;
    setup.model.modules[1].trainable = false;
    const auto whole = setup.step();
    const auto choice = splittable(whole);
    for (std::size_t k = 0; k < choice.size(); ++k)
        if (whole.problem.tasks[index(whole.problem.pairs[k].forward)].module == "llm") CHECK(!choice[k]);
    CHECK(std::count(choice.begin(), choice.end(), true) > 0);
}

TEST_CASE("a schedule takes as long with every W directly behind its I") {
    // Rank 0: F 0-1, F 1-2, B 4-6, B 7-9; rank 1: F 1-2, B 2-4, F 4-5, B 5-7.
    const auto whole = testing::two_stages();
    const auto known = order({0, 4, 3, 7}, {1, 2, 5, 6});
    CHECK(replay(whole.problem, known).makespan == Duration{9});
    const auto split = require_step(split_backwards(whole, splittable(whole)));
    const auto same = with_weights(split.problem, known);
    CHECK(same == order({0, 4, 3, 7}, {1, 2, 8, 5, 6, 9}));
    // I ends before B would: rank 0's backwards begin at 3 and 6.
    CHECK(replay(split.problem, same).makespan == Duration{8});
    // And with both W last: I 2-3, F 3-4, I 4-5, W 5-7; rank 0: B 3-5, B 5-7.
    CHECK(replay(split.problem, order({0, 4, 3, 7}, {1, 2, 5, 6, 8, 9})).makespan == Duration{7});
}

TEST_CASE("an I and its W are one again where that changes no start, and only there") {
    // Rank 0's second forward runs 1-4, so its backwards begin at 4 and 6 though the first I ends at 3: W 3-4 may be
    // part of B. The second I ends at 6, its W at 7: B would come too late.
    const auto whole = testing::two_stages(3);
    const auto split = require_step(split_backwards(whole, splittable(whole)));
    const auto schedule = order({0, 4, 3, 7}, {1, 2, 8, 5, 6, 9});
    const auto before = replay(split.problem, schedule);
    CHECK(before.makespan == Duration{8});
    const auto keep = needed(split.problem, schedule, before);
    CHECK(keep == SplitChoice{false, false, true, false});

    const auto kept = require_step(split_backwards(whole, keep));
    const auto joined = merged(split.problem, schedule, kept.problem);
    CHECK(joined == order({0, 4, 3, 7}, {1, 2, 5, 6, 8}));
    CHECK(kept.problem.tasks[2].kind == TaskKind::backward);
    CHECK(kept.problem.tasks[6].label == "m1.s1.I");
    CHECK(kept.problem.tasks[8].label == "m1.s1.W");
    const auto after = replay(kept.problem, joined);
    CHECK(after.makespan == before.makespan);
    for (std::size_t i = 0; i < 8; ++i) CHECK(after.start[i] == before.start[i]);
}
