// LoRA and frozen modules: flags of ms-swift, Megatron-LM's examples/multimodal and Megatron-Bridge.
#include "launch/fit/tuning.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace pipeweaver::launch {

namespace {

using frameworks::Effect;
using workloads::Adapters;
using workloads::Model;

bool has_adapters(const MegatronLaunch& l) {
    return l.tuner == "lora" || (l.dialect == Dialect::bridge_overrides && l.lora_rank);
}

// Which matrices a name of a linear layer is; projected together have one pair.
struct Target {
    std::string_view name;
    bool Adapters::*matrix;
};
constexpr std::array targets{Target{"linear_qkv", &Adapters::qkv},     Target{"q_proj", &Adapters::qkv},
                             Target{"k_proj", &Adapters::qkv},         Target{"v_proj", &Adapters::qkv},
                             Target{"linear_proj", &Adapters::output}, Target{"o_proj", &Adapters::output},
                             Target{"linear_fc1", &Adapters::up},      Target{"gate_proj", &Adapters::up},
                             Target{"up_proj", &Adapters::up},         Target{"linear_fc2", &Adapters::down},
                             Target{"down_proj", &Adapters::down}};

// Where no rank is said, ms-swift's.
Adapters adapters_of(const MegatronLaunch& l, std::vector<Doubt>& doubts) {
    constexpr std::int64_t usual_rank = 8;
    Adapters adapters{.rank = l.lora_rank.value_or(usual_rank)};
    const auto& said = l.lora_targets;
    if (said.empty() || std::find(said.begin(), said.end(), "all-linear") != said.end()) return adapters;
    adapters.qkv = adapters.output = adapters.up = adapters.down = false;
    for (const std::string& name : said) {
        const auto* const found =
            std::find_if(targets.begin(), targets.end(), [&](const Target& target) { return target.name == name; });
        if (found != targets.end())
            adapters.*(found->matrix) = true;
        else
            doubts.push_back(
                {Effect::more, "adapters of '" + name + "' are not counted", written(l.dialect, "target-modules")});
    }
    return adapters;
}

void freeze_towers(const MegatronLaunch& l, Model& model) {
    const std::size_t backbone = model.backbone();
    for (std::size_t m = 0; m < backbone && l.freeze_vit; ++m) model.modules[m].trainable = false;
    for (workloads::ModelEdge& edge : model.edges)
        if (edge.to == backbone && edge.projector_in > 0 && l.freeze_aligner != l.freeze_vit)
            edge.projector_trainable = !l.freeze_aligner;
}

void put_adapters(const MegatronLaunch& l, Model& model, std::vector<Doubt>& doubts) {
    const Adapters adapters = adapters_of(l, doubts);
    for (std::size_t m = 0; m <= model.backbone(); ++m) {
        workloads::Module& module = model.modules[m];
        const bool frozen = m == model.backbone() ? l.freeze_llm : l.freeze_vit;
        module.trainable = false;
        if (frozen) continue;
        module.adapters = adapters;
        if (module.architecture.moe && (adapters.up || adapters.down))
            doubts.push_back(
                {Effect::more, "adapters of routed experts are not counted", written(l.dialect, "target-modules")});
    }
}

bool trains(const Model& model) {
    const auto& edges = model.edges;
    return std::any_of(model.modules.begin(), model.modules.end(), [](const auto& one) { return one.trains(); }) ||
           std::any_of(edges.begin(), edges.end(),
                       [](const auto& one) { return one.projector_trainable.value_or(false); });
}

}  // namespace

bool is_tuned(const MegatronLaunch& l, const Model& model) {
    return l.freeze_llm || has_adapters(l) || (model.backbone() > 0 && (l.freeze_vit || l.freeze_aligner));
}

void put_tuning(const MegatronLaunch& l, Model& model, std::vector<Doubt>& doubts) {
    if (!l.tuner.empty() && l.tuner != "full" && l.tuner != "lora")
        doubts.push_back(
            {Effect::less, "a tuner '" + l.tuner + "' is counted as training all", written(l.dialect, "tuner-type")});
    if (!is_tuned(l, model)) return;
    freeze_towers(l, model);
    if (l.freeze_llm) model.modules[model.backbone()].trainable = false;
    if (has_adapters(l)) put_adapters(l, model, doubts);
    if (trains(model)) return;
    model.modules[model.backbone()].trainable = true;  // what is trained is not known to us
    doubts.push_back({Effect::less, "a frozen language model is counted as trained", written(l.dialect, "freeze-llm")});
}

}  // namespace pipeweaver::launch
