#include "pipeweaver/launch/rules.hpp"

#include "launch/rules/rule.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace pipeweaver::launch {

namespace {

std::vector<std::span<const MegatronRule>> megatron_tables() {
    return {pattern_rules(),  argument_rules(), environment_rules(), custom_rules(), configuration_rules(),
            pipeline_rules(), expert_rules(),   recompute_rules(),   step_rules()};
}

template <class Rule>
bool is_of(const Rule& rule, const Framework& framework) {
    return rule.versions.empty() || has_version(rule.versions, framework.of_rules());
}

template <class Rule, class Launch>
void add_broken(std::span<const Rule> rules, Phase phase, const Launch& launch, std::int64_t gpus,
                const Framework& framework, std::vector<BrokenRule>& broken, std::string_view alone = {}) {
    for (const Rule& rule : rules)
        if (rule.phase == phase && is_of(rule, framework) && (alone.empty() || rule.id == alone))
            if (auto why = rule.broken(launch, gpus))
                broken.push_back({rule.id, rule.says, rule.source, rule.phase, std::move(*why)});
}

// Sizes without which no rule can be asked.
void require_sizes(const MegatronLaunch& l) {
    const auto one = [&](const MegatronLaunch::Number& size, const char* flag, const char* what) {
        return Needed{size.has_value(), written(l.dialect, flag), what};
    };
    const char* const of_model = "say it, or name a model with --model";
    require_given({one(l.layers, "num-layers", of_model), one(l.hidden, "hidden-size", of_model),
                   one(l.heads, "num-attention-heads", of_model),
                   one(l.seq_length, "seq-length", "say it in the launch"),
                   one(l.micro_batch, "micro-batch-size", "say it in the launch")});
}

template <class Rule>
void list(std::span<const Rule> rules, std::string_view framework, std::vector<RuleText>& texts) {
    for (const Rule& rule : rules)
        texts.push_back({framework, rule.versions, rule.phase, rule.id, rule.says, rule.source});
}

constexpr std::array phases{Phase::arguments, Phase::groups, Phase::configuration, Phase::build, Phase::step};

}  // namespace

std::string_view name_of(Phase phase) {
    constexpr std::array<std::string_view, 5> names{"arguments", "groups", "configuration", "build", "step"};
    return names[static_cast<std::size_t>(phase)];
}

bool has_version(std::string_view versions, std::string_view version) {
    while (!versions.empty()) {
        const std::size_t end = std::min(versions.find('|'), versions.size());
        if (versions.substr(0, end) == version) return true;
        versions.remove_prefix(std::min(end + 1, versions.size()));
    }
    return false;
}

// Megatron-Bridge: 3rdparty/Megatron-LM of each tag; src/megatron/bridge/models/transformer_config.py finalize(), whose
// _set_moe_expert_tensor_parallel_default() came with 0.6.0.
const std::vector<Framework>& frameworks() {
    using enum frameworks::Dialect;
    static const std::vector<Framework> all{
        {"megatron-core", "0.16.1", "NVIDIA/Megatron-LM core_v0.16.1 (55ac7082)", megatron_arguments},
        {"megatron-core", "0.17.1", "NVIDIA/Megatron-LM core_v0.17.1 (266f1c97)", megatron_arguments},
        {"megatron-core", "0.18.2", "NVIDIA/Megatron-LM core_v0.18.2 (571370c8)", megatron_arguments},
        {"megatron-core", "0.19.0", "NVIDIA/Megatron-LM core_v0.19.0 (5be96267)", megatron_arguments},
        {"megatron-core", "0.20.0", "NVIDIA/Megatron-LM d98e8a64 (22 August 2026)", megatron_arguments},
        {"megatron-bridge", "0.6.0", "NVIDIA-NeMo/Megatron-Bridge v0.6.0, NVIDIA/Megatron-LM cd4afffa (0.19.0)",
         bridge_overrides, "0.19.0", OfVersion{true, true}},
        {"megatron-bridge", "0.5.1", "NVIDIA-NeMo/Megatron-Bridge v0.5.1, NVIDIA/Megatron-LM 458c8d0e (0.18.2)",
         bridge_overrides, "0.18.2", OfVersion{true, false}},
        {"megatron-bridge", "0.4.2", "NVIDIA-NeMo/Megatron-Bridge v0.4.2, NVIDIA/Megatron-LM 2edffadb (0.17.1)",
         bridge_overrides, "0.17.1", OfVersion{true, false}},
        {"megatron-bridge", "0.3.1", "NVIDIA-NeMo/Megatron-Bridge v0.3.1, NVIDIA/Megatron-LM 55ac7082 (0.16.1)",
         bridge_overrides, "0.16.1", OfVersion{}},
        {"torchtitan", "0.3.0", "torchtitan 0.3.0, PyTorch 2.13.0", Dialect::titan_settings},
        {"llama-factory", "ff6d4d12", "hiyouga/LLaMA-Factory ff6d4d12 (18 August 2026)", Dialect::sharded_settings},
        {"ms-swift", "3602360a", "modelscope/ms-swift 3602360a (22 August 2026)", Dialect::sharded_settings},
        {"veomni", "d9774494", "ByteDance-Seed/VeOmni d9774494 (21 August 2026)", Dialect::sharded_settings},
        {"nemo-automodel", "0.5.0", "NVIDIA-NeMo/Automodel 0.5.0 (36044ad3)", Dialect::sharded_settings},
        {"hugging-face-trainer", "00349ae8", "huggingface/transformers 00349ae8", Dialect::sharded_settings},
        {"megatron-mimo", "067f987d", "NVIDIA-NeMo/Megatron-Bridge 067f987d (22 August 2026)", Dialect::grid_variables},
    };
    return all;
}

const Framework& framework_called(std::string_view text) {
    std::vector<std::string> known;
    for (const Framework& one : frameworks()) {
        if (text == one.name || text == one.text()) return one;
        known.push_back(one.text());
    }
    fail(ErrorKind::input, "--framework: {}", must_be(text, one_of(known)));
}

std::vector<RuleText> rule_texts() {
    std::vector<RuleText> texts;
    for (const auto& table : megatron_tables()) list(table, "megatron-core", texts);
    list(titan_rules(), "torchtitan", texts);
    for (const Framework& one : frameworks())
        for (const auto& table : sharded_rules(one.name)) list(table, one.name, texts);
    list(grid_rules(), "megatron-mimo", texts);
    return texts;
}

std::vector<BrokenRule> broken_rules(const MegatronLaunch& launch, std::int64_t gpus, const Framework& framework) {
    const MegatronLaunch all = settled(launch);
    require_sizes(all);
    MegatronLaunch said = launch;
    said.layers = all.layers;
    std::vector<BrokenRule> broken;
    for (const Phase phase : phases) {
        const bool as_said = phase == Phase::arguments;
        if (as_said && launch.dialect != Dialect::megatron_arguments) continue;
        for (const auto& table : megatron_tables())
            add_broken(table, phase, as_said ? said : all, gpus, framework, broken);
        if (!broken.empty()) break;
    }
    return broken;
}

std::vector<BrokenRule> broken_without_sizes(const MegatronLaunch& launch, std::int64_t gpus,
                                             const Framework& framework) {
    const MegatronLaunch all = settled(launch);
    std::vector<BrokenRule> broken;
    add_broken(configuration_rules(), Phase::groups, all, gpus, framework, broken);
    if (!broken.empty() || !all.micro_batch || !all.global_batch) return broken;
    add_broken(step_rules(), Phase::step, all, gpus, framework, broken, "global-batch");
    return broken;
}

const Framework* version_that_constructs(const MegatronLaunch& launch, std::int64_t gpus, const Framework& other_than) {
    const auto& all = frameworks();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Framework& one) {
        return one.name == other_than.name && one.version != other_than.version &&
               broken_rules(launch, gpus, one).empty();
    });
    return found == all.end() ? nullptr : &*found;
}

std::vector<BrokenRule> broken_rules(const TitanLaunch& launch, std::int64_t gpus, const Framework& framework) {
    std::vector<BrokenRule> broken;
    for (const Phase phase : phases) {
        add_broken(titan_rules(), phase, launch, gpus, framework, broken);
        if (!broken.empty()) break;
    }
    return broken;
}

std::vector<BrokenRule> broken_rules(const ShardedLaunch& launch, std::int64_t gpus, const Framework& framework) {
    std::vector<BrokenRule> broken;
    for (const Phase phase : phases) {
        for (const auto& table : sharded_rules(framework.name))
            add_broken(table, phase, launch, gpus, framework, broken);
        if (!broken.empty()) break;
    }
    return broken;
}

std::vector<BrokenRule> broken_rules(const GridsLaunch& launch, std::int64_t gpus, const Framework& framework) {
    std::vector<BrokenRule> broken;
    for (const Phase phase : phases) {
        add_broken(grid_rules(), phase, launch, gpus, framework, broken);
        if (!broken.empty()) break;
    }
    return broken;
}

}  // namespace pipeweaver::launch
