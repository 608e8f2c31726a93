// Random steps with a layout for each module: by passes and kernel by kernel they are the same, and the job's own
// layout by name is no layout.
#include "tests/support/effort.hpp"
#include "tests/support/random_job.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using namespace pipeweaver::testing;

namespace {

// With an audio encoder beside the other, or a generator of clips behind the backbone, or both.
workloads::Model with_more_modules(Random& random, workloads::Model model, bool may_generate) {
    auto& modules = model.modules;
    const std::int64_t hidden = modules[llm].architecture.hidden;
    auto& edge = model.edges.front();
    if (random.below(2) == 0) {
        workloads::Module ear = modules[vit];
        ear.name = "ear";
        ear.modalities = {workloads::Modality::audio};
        ear.architecture.layers = between(random, 4, 6);
        modules.insert(modules.begin() + 1, ear);
        edge.to = 2;
        model.edges.push_back({1, 2, 4, 4 * ear.architecture.hidden, hidden});
    }
    if (may_generate && random.below(2) == 0) {
        workloads::Module dit = modules.front();
        dit.name = "dit";
        dit.modalities = {workloads::Modality::video};
        dit.trainable = true;
        dit.architecture = small_network(workloads::ModuleKind::diffusion_transformer, between(random, 4, 6), 1024);
        dit.architecture.mmdit = random.below(2) == 0;
        if (!dit.architecture.mmdit) dit.architecture.cross_attention_dim = hidden;
        model.edges.push_back({model.backbone(), modules.size(), 1, hidden, dit.architecture.mmdit ? 1024 : hidden});
        modules.push_back(dit);
    }
    return model;
}

// Sound to hear and clips to make, in every replica's first microbatch and some others.
void add_items(Random& random, std::vector<Microbatch>& batch, std::int64_t replicas) {
    for (std::size_t m = 0; m < batch.size(); ++m) {
        const auto add = [&](workloads::Modality modality, bool target) {
            for (std::int64_t i = between(random, m < static_cast<std::size_t>(replicas) ? 1 : 0, 4); i > 0; --i) {
                const std::int64_t tokens = 8 * between(random, 2, 40);
                batch[m].items.push_back({batch[m].samples.front(),
                                          batch[m].items.size(),
                                          {modality, target ? 0 : tokens, 4 * tokens, 0, target},
                                          between(random, 16, 512)});
                if (!target) batch[m].tokens += tokens;
            }
        };
        add(workloads::Modality::audio, false);
        add(workloads::Modality::video, true);
        batch[m].lengths = {batch[m].tokens};
    }
}

// "vit=1:split,dit=2:hybrid": for each module that takes items a layout that its heads allow, or none.
std::string random_layouts(Random& random, const Setup& setup) {
    constexpr std::array ways{Sharing::dealt, Sharing::split, Sharing::hybrid};
    std::string text;
    for (std::size_t m = 0; m < setup.model.modules.size(); ++m) {
        const auto& module = setup.model.modules[m];
        const Sharing way = ways[random.below(ways.size())];
        const std::int64_t tp = std::int64_t{1} << random.below(3), gpus = setup.layout.gpus_of_rank();
        if (m == setup.model.backbone() || gpus % tp != 0) continue;
        if (why_not({tp, gpus / tp, way}, setup.model, m, setup.layout, "")) continue;
        text += fmt::format("{}{}={}:{}", text.empty() ? "" : ",", module.name, tp, name_of(way));
    }
    return text.empty() ? "auto" : text;
}

Recipe random_recipe(Random& random) {
    Recipe recipe;
    recipe.zero = static_cast<int>(random.below(4));
    if (recipe.zero < 2 && random.below(2) == 0) recipe.bucket = Bytes{10'000'000};
    if (random.below(4) == 0) recipe.launch = Duration{20'000};
    if (recipe.zero >= 2 || recipe.bucket > Bytes{}) recipe.overlap_slowdown = 1.1;
    recipe.execution.sequence_parallel = random.below(4) > 0;
    return recipe;
}

Case random_modules(Random& random, bool in_phases) {
    Layout layout = random_layout(random);
    layout.tp = std::int64_t{2} << random.below(2);
    Recipe recipe = random_recipe(random);
    if (in_phases) {
        recipe.zero %= 2;
        layout.pp = std::max<std::int64_t>(2, layout.pp);
    }
    Case one = random_case(random,
                           in_phases              ? "three-phase"
                           : random.below(2) == 0 ? "modules"
                                                  : "dip",
                           layout, recipe);
    Setup setup = one.setup();
    setup.model = with_more_modules(random, setup.model, !in_phases);
    setup.store = std::make_shared<LayerStore>();
    add_items(random, one.request.batch.microbatches, layout.dp);
    if (!in_phases) one.request.job.layouts = partition::parse_module_tp(random_layouts(random, setup), setup);
    one.request.job.setup = std::make_shared<Setup>(std::move(setup));
    const std::array modes{Recompute::none,      Recompute::half,     Recompute::full,
                           Recompute::selective, Recompute::offload,  Recompute::blocks(2),
                           Recompute::encoders,  Recompute::backbone, Recompute::core_attention};
    one.request.recompute = {.everywhere = modes[random.below(modes.size())]};
    one.request.policy = in_phases ? "1f1b" : random.below(2) == 0 ? "gpipe" : "dual-queue";
    return one;
}

// Without a store every kernel is priced and replayed on its own.
planner::Emulation emulated_kernel_by_kernel(const Case& one) {
    planner::EmulationRequest request = one.request;
    Setup setup = one.setup();
    setup.store.reset();
    request.job.setup = std::make_shared<Setup>(std::move(setup));
    return planner::emulate(request, in_order);
}

void check_identity(std::uint64_t number, bool in_phases, std::array<std::size_t, 3>& seen) {
    CAPTURE(number);
    Random random(number, in_phases ? 461 : 460);
    const Case one = random_modules(random, in_phases);
    CAPTURE(one.setup().recipe.zero);
    CAPTURE(name_of(one.recompute()));
    const auto by_passes = planner::emulate(one.request, in_order);
    const auto by_kernels = emulated_kernel_by_kernel(one);
    REQUIRE(by_passes.replicas.size() == by_kernels.replicas.size());
    for (std::size_t r = 0; r < by_passes.replicas.size(); ++r) {
        const ReplicaEmulation &a = by_passes.replicas[r], &b = by_kernels.replicas[r];
        CHECK(a.step == b.step);
        CHECK(a.makespan == b.makespan);
        CHECK(a.time == b.time);  // exposed traffic among it
        CHECK(a.memory == b.memory);
        CHECK(a == b);
    }
    for (const ModuleLayout& layout : by_passes.partition.layouts)
        if (layout.copies > 1) ++seen[static_cast<std::size_t>(layout.sharing)];
}

}  // namespace

TEST_CASE("steps of modules with copies are the same by passes and kernel by kernel") {
    std::array<std::size_t, 3> seen{};
    const auto tried = pipeweaver::testing::cases(60);
    for (std::uint64_t number = 0; number < tried.count; ++number) check_identity(number, false, seen);
    for (const std::size_t sharing : seen) CHECK(sharing >= tried.share(10));
}

TEST_CASE("steps with encoders in phases are the same by passes and kernel by kernel") {
    std::array<std::size_t, 3> seen{};
    const auto tried = pipeweaver::testing::cases(32);
    for (std::uint64_t number = 0; number < tried.count; ++number) check_identity(number, true, seen);
    CHECK(seen.front() >= tried.share(20));
}

TEST_CASE("the tensor parallelism of the job, asked for by name, gives the nanoseconds of no option") {
    for (std::uint64_t number = 0; number < 8; ++number) {
        CAPTURE(number);
        Random random(number, 462);
        Layout layout = random_layout(random);
        layout.tp = std::int64_t{2} << random.below(2);
        Case one = random_case(random, number % 2 == 0 ? "modules" : "dip", layout, Recipe{});
        one.request.policy = "gpipe";
        const auto plain = planner::emulate(one.request, in_order);
        one.request.job.layouts = partition::parse_module_tp(fmt::format("vit={}", layout.tp), one.setup());
        const auto named = planner::emulate(one.request, in_order);
        CHECK(plain.replicas == named.replicas);
        CHECK(plain.step == named.step);
        CHECK(named.partition.unit_items == plain.partition.unit_items);
        // Copies are another step.
        one.request.job.layouts = partition::parse_module_tp("vit=1:dealt", one.setup());
        CHECK(planner::emulate(one.request, in_order).step != plain.step);
    }
}
