// LoRA and frozen modules: flags of ms-swift, Megatron-LM's examples/multimodal, Megatron-Bridge and sharded trainers.
#include "launch/fit/tuning.hpp"

#include "launch/read/shell/patterns.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace pipeweaver::launch {

namespace {

using frameworks::Effect;
using workloads::Adapters;
using workloads::Model;

// Which matrices a name of a linear layer is; projected together have one pair. Those of linear attention (in_proj,
// out_proj of Mamba-2) go with those of full attention, and of latent attention all that lead to its heads go together:
// where one is named alone, all are counted.
struct Target {
    std::string_view name;
    bool Adapters::*matrix;
};
constexpr std::array targets{Target{"linear_qkv", &Adapters::qkv},
                             Target{"q_proj", &Adapters::qkv},
                             Target{"k_proj", &Adapters::qkv},
                             Target{"v_proj", &Adapters::qkv},
                             Target{"in_proj", &Adapters::qkv},
                             Target{"out_proj", &Adapters::output},
                             Target{"q_a_proj", &Adapters::qkv},
                             Target{"q_b_proj", &Adapters::qkv},
                             Target{"kv_b_proj", &Adapters::qkv},
                             Target{"kv_a_proj_with_mqa", &Adapters::qkv},
                             Target{"linear_q_proj", &Adapters::qkv},
                             Target{"linear_q_down_proj", &Adapters::qkv},
                             Target{"linear_q_up_proj", &Adapters::qkv},
                             Target{"linear_kv_down_proj", &Adapters::qkv},
                             Target{"linear_kv_up_proj", &Adapters::qkv},
                             Target{"linear_proj", &Adapters::output},
                             Target{"o_proj", &Adapters::output},
                             Target{"linear_fc1", &Adapters::up},
                             Target{"gate_proj", &Adapters::up},
                             Target{"up_proj", &Adapters::up},
                             Target{"linear_fc2", &Adapters::down},
                             Target{"down_proj", &Adapters::down}};

bool is_all(const std::string& name) { return name == "all-linear" || name == "all"; }

// "q_proj", or "*_proj" and "*.layers.*.q_proj" of NeMo AutoModel 0.5.0 (components/_peft/module_matcher.py), whose
// last part is a layer's name.
bool is_target(std::string_view said, std::string_view name) {
    if (said.find('*') == std::string_view::npos) return said == name;
    const std::string_view last = said.substr(said.rfind('.') + 1);
    return last.starts_with('*') ? name.ends_with(last.substr(1)) : name == last;
}

// Whether it names any matrix.
bool put_target(const std::string& said, Adapters& adapters) {
    bool is_any = false;
    for (const Target& target : targets) {
        if (!is_target(said, target.name)) continue;
        adapters.*(target.matrix) = true;
        is_any = true;
    }
    return is_any;
}

// Where no rank is said, ms-swift's; where no target is known, all.
Adapters adapters_of(const Tuning& tuning, std::vector<Doubt>& doubts) {
    constexpr std::int64_t usual_rank = 8;
    Adapters adapters{.rank = tuning.rank.value_or(usual_rank), .apart = tuning.apart};
    const auto& said = tuning.targets;
    if (said.empty() || std::any_of(said.begin(), said.end(), is_all)) return adapters;
    adapters.qkv = adapters.output = adapters.up = adapters.down = false;
    for (const std::string& name : said)
        if (!put_target(name, adapters))
            doubts.push_back({Effect::more, "adapters of '" + name + "' are not counted", tuning.says_targets});
    if (!(adapters.qkv || adapters.output || adapters.up || adapters.down))
        adapters.qkv = adapters.output = adapters.up = adapters.down = true;
    return adapters;
}

// Whole matrices of the vocabulary, padded or with new tokens, of which a GPU has at most a copy in 32 bits beside the
// frozen one, its gradient and that in a bucket, two moments, masters, one in 16 bits at work and the root of a moment
// at the update (PEFT 0.18 utils/other.py ModulesToSaveWrapper). Of other modules it is not known.
void doubt_whole(const Tuning& tuning, const Model& model, std::vector<Doubt>& doubts) {
    constexpr std::array<std::string_view, 4> of_vocabulary{"embed_tokens", "lm_head", "word_embeddings",
                                                            "output_layer"};
    constexpr std::int64_t bytes = 4 + 4 + 4 + 8 + 4 + 2 + 4, more_entries = 4096;
    if (tuning.whole.empty()) return;
    const auto& network = model.modules[model.backbone()].architecture;
    const bool has_one_embedding = model.backbone() == 0 && network.layer_embedding == 0;
    const auto is_known = [&](const std::string& name) {
        if (name == "all-embedding") return has_one_embedding;
        return std::find(of_vocabulary.begin(), of_vocabulary.end(), name) != of_vocabulary.end();
    };
    const auto count = static_cast<std::int64_t>(tuning.whole.size());
    Doubt doubt{Effect::more, "modules that are trained whole beside adapters", tuning.says_whole};
    if (std::all_of(tuning.whole.begin(), tuning.whole.end(), is_known))
        doubt.most = Bytes{count * bytes * (network.vocab + more_entries) * network.hidden};
    doubts.push_back(std::move(doubt));
}

// Three averages in 32 bits of each value (PEFT 0.18 tuners/adalora/layer.py RankAllocator), and what it is scaled by.
void doubt_rates(const Model& model, std::vector<Doubt>& doubts, const std::string& says) {
    constexpr std::int64_t bytes = 4 * 4;
    std::int64_t values = 0;
    for (const workloads::Module& module : model.modules) {
        if (!module.adapters) continue;
        const auto& network = module.architecture;
        for (std::int64_t layer = 0; layer < network.layers; ++layer) {
            const auto parts = workloads::adapter_parameters(network, layer, *module.adapters);
            values += parts.split + parts.copied + parts.experts;
            values += (network.moe ? network.moe->experts : 0) *
                      workloads::expert_adapter_parameters(network, layer, *module.adapters);
        }
    }
    doubts.push_back({Effect::more, "how much each of AdaLoRA's adapters matters", says, false, Bytes{bytes * values}});
}

void freeze_towers(const Tuning& tuning, Model& model) {
    const std::size_t backbone = model.backbone();
    for (std::size_t m = 0; m < backbone && tuning.freeze_tower; ++m) model.modules[m].trainable = false;
    for (workloads::ModelEdge& edge : model.edges)
        if (edge.to == backbone && edge.projector_in > 0 && tuning.freeze_projector != tuning.freeze_tower)
            edge.projector_trainable = !tuning.freeze_projector;
}

// Megatron-Bridge 0.6.0 peft/module_matcher.py: a layer's own name, or a pattern of its whole one. Encoders of
// transformers have no layers of Megatron's names, which are the default.
bool reaches_towers(const Tuning& tuning, const Model& model) {
    if (!tuning.finds_by_name || !model.built || model.built->framework != "megatron-bridge") return true;
    constexpr std::string_view own = "linear_";
    constexpr std::array<std::string_view, 4> layers{"self_attention.linear_qkv", "self_attention.linear_proj",
                                                     "mlp.linear_fc1", "mlp.linear_fc2"};
    const auto& said = tuning.targets;
    if (model.built->lies.tensor == workloads::OnTensorRanks::whole)
        return std::any_of(said.begin(), said.end(), [&](std::string_view one) {
            return !one.substr(one.rfind('.') + 1).starts_with(own);  // no '.': all of it
        });
    const auto is_theirs = [&](std::string_view one) {
        return std::any_of(layers.begin(), layers.end(), [&](std::string_view layer) {
            const std::string whole = "module.vision_model.decoder.layers.0." + std::string(layer);
            return is_like(whole, one) || is_like(whole.substr(whole.find('.') + 1), one);
        });
    };
    constexpr std::ptrdiff_t many_stars = 4;  // more take long
    return said.empty() || std::any_of(said.begin(), said.end(), [&](std::string_view one) {
               const auto stars = std::count(one.begin(), one.end(), '*');
               return stars == 0 || stars > many_stars || is_theirs(one);
           });
}

// Adapters of encoders have a rank of their own, or none.
void put_adapters(const Tuning& tuning, Model& model, std::vector<Doubt>& doubts) {
    const Adapters adapters = adapters_of(tuning, doubts);
    const std::int64_t usual = reaches_towers(tuning, model) ? adapters.rank : 0;
    for (std::size_t m = 0; m <= model.backbone(); ++m) {
        workloads::Module& module = model.modules[m];
        const bool is_tower = m < model.backbone();
        const std::int64_t rank = is_tower ? tuning.tower_rank.value_or(usual) : adapters.rank;
        if (rank == 0 && tuning.leaves_others) continue;
        module.trainable = false;
        if ((is_tower ? tuning.freeze_tower : tuning.freeze_language) || rank == 0) continue;
        module.adapters = adapters;
        module.adapters->rank = rank;
        if (!module.architecture.moe || !(adapters.up || adapters.down)) continue;
        module.adapters->experts = tuning.experts;
        if (!tuning.experts_doubt.empty()) doubts.push_back({Effect::less, tuning.experts_doubt, tuning.says_targets});
    }
}

}  // namespace

Tuning tuning_of(const MegatronLaunch& l) {
    Tuning tuning;
    const bool is_bridges = l.dialect == Dialect::bridge_overrides && l.lora_rank;
    tuning.tuner = l.tuner.empty() || is_bridges ? (is_bridges ? "lora" : "full") : l.tuner;
    tuning.rank = l.lora_rank;
    tuning.targets = l.lora_targets;
    tuning.whole = l.whole_modules;
    tuning.says_whole = written(l.dialect, "modules-to-save");
    tuning.finds_by_name = l.dialect == Dialect::bridge_overrides;
    tuning.freeze_language = l.freeze_llm;
    tuning.freeze_tower = l.freeze_vit;
    tuning.freeze_projector = l.freeze_aligner;
    // ms-swift: mcore_bridge 1.6.5 tuners/lora.py, a pair for each of num_gemms experts. Megatron-Bridge 0.3 to 0.6:
    // peft/lora.py, one for all experts of a GPU unless share_expert_adapters is off (0.5), which is not read.
    if (l.dialect == Dialect::bridge_overrides) tuning.experts = workloads::ExpertAdapters::together;
    tuning.says_tuner = written(l.dialect, "tuner-type");
    tuning.says_targets = written(l.dialect, "target-modules");
    tuning.says_frozen = written(l.dialect, "freeze-llm");
    return tuning;
}

Tuning tuning_of(const ShardedLaunch& l) {
    Tuning tuning;
    tuning.tuner = l.tuner;
    tuning.rank = l.lora_rank;
    tuning.targets = l.lora_targets;
    tuning.whole = l.whole_modules;
    tuning.rates = l.rates;
    tuning.says_whole = written(l, &frameworks::ShardedLaunch::whole_modules);
    tuning.tower_rank = l.tower_lora_rank;
    tuning.leaves_others = l.lora_leaves_others;
    // Where encoders have a rank of their own, adapters count more than what freezes the weights beside them.
    const bool own_ranks = l.has_adapters() && l.tower_lora_rank.has_value();
    tuning.freeze_language = l.freeze_language && !(own_ranks && l.lora_rank.value_or(0) > 0);
    tuning.freeze_tower = l.freeze_tower && !(own_ranks && *l.tower_lora_rank > 0);
    // PEFT 0.18 tuners_utils.py: all-linear are torch.nn.Linear; LLaMA-Factory model/model_utils/misc.py the same.
    tuning.apart = true;
    tuning.experts_doubt =
        "each routed expert has adapters, as long as experts are linear layers (transformers 4, not 5)";
    tuning.freeze_projector = l.freeze_projector || (own_ranks && !l.lora_leaves_others);
    tuning.says_tuner = written(l, &frameworks::ShardedLaunch::tuner);
    tuning.says_targets = written(l, &frameworks::ShardedLaunch::lora_targets);
    tuning.says_frozen = written(l, &frameworks::ShardedLaunch::freeze_language);
    return tuning;
}

bool is_tuned(const Tuning& tuning, const Model& model) {
    return tuning.freeze_language || tuning.tuner == "lora" ||
           (model.backbone() > 0 && (tuning.freeze_tower || tuning.freeze_projector));
}

namespace {

// "freeze" (LLaMA-Factory) trains some of the layers. Others train few weights, and keep for them what training all
// does not: factors, rotated copies, new blocks (ms-swift 3602360a swift/pipelines/train/tuner.py, PEFT 0.18).
void doubt_tuner(const Tuning& tuning, std::vector<Doubt>& doubts) {
    if (tuning.tuner == "full" || tuning.tuner == "lora") return;
    if (tuning.tuner == "freeze")
        doubts.push_back({Effect::less, "a tuner 'freeze' is counted as training all", tuning.says_tuner});
    else
        doubts.push_back({Effect::either,
                          "what '" + tuning.tuner + "' trains and keeps is not counted, but all weights as trained",
                          tuning.says_tuner});
}

}  // namespace

void put_tuning(const Tuning& tuning, Model& model, std::vector<Doubt>& doubts) {
    doubt_tuner(tuning, doubts);
    if (!is_tuned(tuning, model)) return;
    freeze_towers(tuning, model);
    if (tuning.freeze_language) model.modules[model.backbone()].trainable = false;
    if (tuning.tuner == "lora") {
        put_adapters(tuning, model, doubts);
        doubt_whole(tuning, model, doubts);
        if (tuning.rates) doubt_rates(model, doubts, tuning.says_tuner);
    }
    if (trains_any(model)) return;
    model.modules[model.backbone()].trainable = true;  // what is trained is not known to us
    doubts.push_back({Effect::less, "a frozen language model is counted as trained", tuning.says_frozen});
}

}  // namespace pipeweaver::launch
