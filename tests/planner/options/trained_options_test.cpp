// What of a model options train: frozen parts, adapters, states on the host.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using workloads::Adapters;
using workloads::ExpertAdapters;

namespace {

WorkloadOptions of(const std::string& model = "qwen2.5-vl-7b") {
    WorkloadOptions options;
    options.model = model;
    return options;
}

// Of each module: trained whole, adapters, frozen; then the projector.
std::string trained(const WorkloadOptions& options) {
    const workloads::Model model = options.found_model();
    std::string all;
    for (const workloads::Module& module : model.modules) all += module.adapters ? 'a' : module.trainable ? 't' : 'f';
    const auto& edge = model.edges.front();
    return all + (edge.projector_trainable.value_or(model.modules[edge.from].trainable) ? 't' : 'f');
}

std::string problem(const WorkloadOptions& options) {
    try {
        static_cast<void>(options.found_model());
        return "";
    } catch (const Error& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE("--freeze freezes the parts that are named alone, with --lora adapters train in place of the others") {
    WorkloadOptions options = of();
    options.frozen = "vit";
    CHECK(trained(options) == "ftt");
    options.frozen = "vit,projectors";
    CHECK(trained(options) == "ftf");
    options.frozen = "llm,projectors";
    CHECK(trained(options) == "tff");
    options.lora_rank = 16;
    CHECK(trained(options) == "aff");
    options.frozen = "vit";
    CHECK(trained(options) == "faf");  // projectors are trained where --train says so alone
    options.frozen.clear();
    CHECK(trained(options) == "aaf");
    options.lora_modules = "llm";
    CHECK(trained(options) == "taf");
    options.lora_modules.clear();
    options.trained = "llm,projectors";
    CHECK(trained(options) == "fat");
}

TEST_CASE("--lora says rank, matrices and experts, and pairs apart are those of the target's trainers") {
    WorkloadOptions options = of("qwen3-30b-a3b");
    options.lora_rank = 8;
    const auto adapters = [&] { return *options.found_model().modules.front().adapters; };
    CHECK(adapters() == Adapters{.rank = 8});
    options.lora_targets = "qkv,down";
    CHECK(adapters() == Adapters{.rank = 8, .output = false, .up = false});
    options.lora_experts = "each";
    CHECK(adapters().experts == ExpertAdapters::each);
    options.lora_experts = "together";
    CHECK(adapters().experts == ExpertAdapters::together);
    CHECK(!adapters().apart);
    options.target = "deepspeed";
    CHECK(adapters().apart);
    options.target = "megatron";
    options.lora_apart = true;
    CHECK(adapters().apart);
}

TEST_CASE("what --freeze and --lora cannot mean is refused by name") {
    WorkloadOptions options = of();
    options.frozen = "audio";
    CHECK(problem(options) == "--freeze: is 'audio', must be one of vit, llm, projectors");
    options.frozen = "all";
    CHECK(problem(options).starts_with("--freeze: is 'all', must be one of"));
    options.frozen = "vit,llm,projectors";
    CHECK(problem(options) == "--freeze: of 'qwen2.5-vl-7b' nothing is left to train");
    options.trained = "llm";
    CHECK(problem(options) == "--train, --freeze: allowed is one of the two");
    options = of();
    options.lora_targets = "qkv";
    CHECK(problem(options) == "--lora-targets: goes with --lora RANK");
    options.lora_rank = 4;
    options.lora_targets = "q_proj";
    CHECK(problem(options) == "--lora-targets: is 'q_proj', must be one of qkv, output, up, down");
    options.lora_targets.clear();
    options.lora_modules = "audio";
    CHECK(problem(options) == "--lora-modules: is 'audio', must be one of vit, llm");
    options.lora_modules.clear();
    options.lora_experts = "each";
    CHECK(problem(options).starts_with("--lora-experts: none of the modules with adapters has experts"));
    options = of("step3-316b-llm");  // factored attention
    options.lora_rank = 4;
    CHECK(problem(options).starts_with("--lora: no module of 'step3-316b-llm' can have adapters"));
    options.model = "step3-321b";  // of which the encoder can
    CHECK(problem(options).starts_with("--lora: 'llm' is trained and cannot have adapters: --freeze it"));
    options.lora_modules = "vit";
    CHECK(trained(options) == "atf");
    options.lora_modules.clear();
    options.frozen = "llm";
    CHECK(trained(options) == "aff");
}

// Of 12 bytes: a half leaves 6, a third 8, rounded up, as Megatron Core's fraction does.
TEST_CASE("states on the host are a part of the optimizer's bytes") {
    const emulator::StateBytes all{};
    REQUIRE(all.optimizer == 12);
    CHECK(with_offloaded(all, 0.5).optimizer == 6);
    CHECK(with_offloaded(all, 0.5).offloaded == 6);
    CHECK(with_offloaded(all, 0.33).optimizer == 9);
    CHECK(with_offloaded(with_offloaded(all, 0.5), 1).offloaded == 12);
    CHECK(with_offloaded(all, 0) == all);
    OptionTable table;
    RecipeOverrides overrides;
    overrides.add_to(table);
    overrides.offload_percent = 25;
    const emulator::Recipe recipe = overrides.over({});
    CHECK(recipe.state.optimizer == 9);
    CHECK(emulator::find_recipe(to_json(recipe)).state == recipe.state);
}
