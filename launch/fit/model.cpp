#include "pipeweaver/launch/model.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/frameworks/built_encoders.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::launch {

namespace {

using workloads::Architecture;
using workloads::AttentionKind;
using workloads::MixtureOfExperts;
using Number = MegatronLaunch::Number;

std::int64_t needed(const MegatronLaunch& l, const Number& size, const char* flag) {
    if (!size) fail_missing(written(l.dialect, flag), "say it, or name a model with --model");
    return *size;
}

// First layer and distance, as model files have them.
MixtureOfExperts where_experts_are(const MegatronLaunch& l) {
    const std::string name = written(l.dialect, "moe-layer-freq");
    const auto pattern = layer_pattern(l.moe_freq, *l.layers, name);
    std::vector<std::int64_t> layers;
    for (std::size_t i = 0; i < pattern.size(); ++i)
        if (pattern[i]) layers.push_back(static_cast<std::int64_t>(i));
    if (layers.empty()) fail(ErrorKind::input, "{}: no layer has experts", name);
    MixtureOfExperts moe;
    moe.moe_layers = static_cast<std::int64_t>(layers.size());
    moe.first_layer = layers.front();
    moe.every = layers.size() > 1 ? layers[1] - layers[0] : 1;
    for (std::size_t i = 1; i < layers.size(); ++i)
        if (layers[i] - layers[i - 1] != moe.every)
            fail(ErrorKind::input, "{}: is '{}'; what fits is answered for layers of experts at one distance", name,
                 l.moe_freq);
    return moe;
}

MixtureOfExperts experts_of(const MegatronLaunch& l) {
    MixtureOfExperts moe = where_experts_are(l);
    moe.experts = *l.experts;
    moe.top_k = l.top_k;
    moe.expert_ffn = *l.expert_ffn;
    moe.shared_ffn = l.shared_ffn.value_or(0);
    return moe;
}

// What is taken of a tokenizer; empty: the launch says the vocabulary itself.
std::string entries_of(const MegatronLaunch& l) {
    if (!l.most_vocab || l.vocab) return {};
    const std::string tokenizer =
        l.tokenizer_model.empty() ? l.tokenizer_type : fmt::format("{} '{}'", l.tokenizer_type, l.tokenizer_model);
    if (l.least_vocab == l.most_vocab)
        return fmt::format("{} has {} entries, padded to {}", tokenizer, *l.most_vocab, *l.padded_vocab);
    return fmt::format("{} has {} to {} entries, of which the most are counted, padded to {}", tokenizer,
                       *l.least_vocab, *l.most_vocab, *l.padded_vocab);
}

void put_attention(const MegatronLaunch& l, Architecture& a) {
    a.kv_heads = l.groups.value_or(a.heads);
    a.head_dim = *l.kv_channels;
    a.qkv_bias = l.qkv_bias || l.linear_bias;
    a.attention.qk_norm = l.qk_norm;
    if (!l.latent_attention) return;
    a.kv_heads = a.heads;
    a.head_dim = l.qk_head_dim;
    a.attention.kind = AttentionKind::latent;
    a.attention.qk_norm = false;
    a.attention.q_lora_rank = l.q_lora_rank;
    a.attention.kv_lora_rank = l.kv_lora_rank;
    a.attention.qk_nope_head_dim = l.qk_head_dim;
    a.attention.qk_rope_head_dim = l.qk_position_dim;
    a.attention.v_head_dim = l.v_head_dim;
}

void refuse_other_attention(const MegatronLaunch& l) {
    if (!l.attention_variant.empty())
        fail(ErrorKind::input, "{}: is '{}': name the model with --model, whose layers it does not say",
             written(l.dialect, "experimental-attention-variant"), l.attention_variant);
    if (!l.hybrid_pattern.empty())
        fail(ErrorKind::input, "{}: name the model with --model, whose layers it does not say",
             written(l.dialect, "hybrid-layer-pattern"));
}

const Architecture& language_model_of(const workloads::Model& model) {
    const Architecture& a = model.modules[model.backbone()].architecture;
    if (a.kind != workloads::ModuleKind::language_model)
        fail(ErrorKind::input,
             "--model: the backbone of '{}' is no language model, whose rules these are; `pipeweaver emulate` with its "
             "layout has the memory of every rank",
             model.name);
    return a;
}

// Takes a size of the model, or holds the launch's against it.
void take(const MegatronLaunch& l, Number& size, std::int64_t of_model, const char* flag, const std::string& model) {
    if (size && *size != of_model)
        fail(ErrorKind::input, "{}: is {}, but {} has {}", written(l.dialect, flag), *size, model, of_model);
    size = of_model;
}

// Whether a switch is on; none: it is not said.
std::optional<bool> switched(const SaidLaunch& said, std::string_view name) {
    std::optional<bool> on;
    for (const Setting& one : said.settings)
        if (!name.empty() && one.name == name)
            on = one.values.empty() || one.values.front() == "true" || one.values.front() == "True";
    return on;
}

bool lists_ranks(const SaidLaunch& said) { return switched(said, "custom-pipeline-recompute-layers").has_value(); }

// The row with the switches that the launch says: "model.vision_dp_when_cp=true", "recompute-vision".
workloads::Built as_said(const SaidLaunch& said, const workloads::Built& row, bool is_asked_to_deal) {
    const bool deals = is_asked_to_deal || switched(said, row.deals.substr(0, row.deals.find('='))).value_or(false);
    workloads::Built own = deals && !row.deals.empty() ? dealing(row) : row;
    const auto again = switched(said, row.recompute_by);
    const bool is_default = again == (row.recompute == workloads::EncoderRecompute::always);
    if (again && !is_default) own = recomputing_otherwise(own);
    // LoongForge's list is of all that lies on a rank: 45 layers of InternViT beside one of the language model
    // (0.1.1, examples/internvl2.5/finetuning/sft_internvl2.5_78b.sh).
    if (lists_ranks(said)) own.recompute = workloads::EncoderRecompute::as_backbone;
    return own;
}

// As the program that is launched builds them, as far as it is known.
void build_as_launched(const SaidLaunch& said, bool is_asked_to_deal, workloads::Model& model) {
    if (said.entry == nullptr) {
        if (model.built && lists_ranks(said)) workloads::build_as(model, as_said(said, *model.built, is_asked_to_deal));
        return;
    }
    const std::array by{said.entry->builds};
    if (const auto* row = frameworks::built_encoder(by, model.family))
        workloads::build_as(model, as_said(said, *row, is_asked_to_deal));
}

}  // namespace

workloads::Model named_model(const std::string& name, const SaidLaunch& said, const AskedEncoders& encoders) {
    planner::WorkloadOptions options;
    options.model = name;
    options.encoders = encoders.built_by;
    options.deal_images = encoders.deals_images;
    if (encoders.built_by.empty()) options.target = said.dialect == Dialect::titan_settings ? "torchtitan" : "megatron";
    workloads::Model model = options.found_model();
    if (encoders.built_by.empty()) build_as_launched(said, encoders.deals_images, model);
    options.require_dealt(model);
    return model;
}

MegatronLaunch with_encoders(MegatronLaunch l, const workloads::Model& model, const SaidLaunch& said) {
    if (!model.built || said.entry == nullptr || said.entry->builds != model.built->framework) return l;
    l.first_stage_layers = model.built->first_layers;
    l.most_cp = model.built->most_cp;
    l.asks_loss_per_token = !model.built->loss_per_token;
    l.built_source = model.built->source;
    if (said.entry->counts_loss_per_token && said.named.find("_pretrain_") == std::string::npos)
        l.asks_loss_per_token = l.averages_gradients = false;
    return l;
}

bool is_multimodal(const workloads::Model& model) { return model.modules.size() > 1; }

SaidModel model_of(const MegatronLaunch& l) {
    refuse_other_attention(l);
    SaidModel said;
    Architecture a;
    a.kind = workloads::ModuleKind::language_model;
    a.name = "launch";
    a.layers = needed(l, l.layers, "num-layers");
    a.hidden = needed(l, l.hidden, "hidden-size");
    a.heads = needed(l, l.heads, "num-attention-heads");
    a.ffn = *l.ffn;
    if (!l.padded_vocab)
        fail_missing(written(l.dialect, "vocab-size"),
                     fmt::format("say it or {}, or name a model with --model",
                                 written(Dialect::megatron_arguments, "padded-vocab-size")));
    a.vocab = *l.padded_vocab;
    if (std::string entries = entries_of(l); !entries.empty()) said.assumed.push_back(std::move(entries));
    a.gated = l.gated();
    a.tied_embeddings = !l.untied;
    put_attention(l, a);
    if (l.experts) a.moe = experts_of(l);
    const std::int64_t sequence = needed(l, l.seq_length, "seq-length");
    said.model.name = "launch";
    said.model.modules = {{"llm", std::move(a), workloads::PassUnit::microbatch, {workloads::Modality::text}, true}};
    said.model.microbatch_tokens = sequence * needed(l, l.micro_batch, "micro-batch-size");
    if (!l.gated() && l.dialect == Dialect::bridge_overrides)
        said.assumed.emplace_back("model.gated_linear_unit is not said: the feed-forward has no gate");
    return said;
}

MegatronLaunch with_model(MegatronLaunch l, const workloads::Model& model) {
    const Architecture& a = language_model_of(model);
    const MegatronLaunch as_said = l;
    l.is_named = true;
    const auto put = [&](Number& size, std::int64_t of_model, const char* flag) {
        take(as_said, size, of_model, flag, a.name);
    };
    put(l.layers, a.layers, "num-layers");
    put(l.hidden, a.hidden, "hidden-size");
    put(l.heads, a.heads, "num-attention-heads");
    if (l.ffn || !a.moe || a.moe->moe_layers < a.layers) put(l.ffn, a.ffn, "ffn-hidden-size");
    if (a.attention.kind == AttentionKind::dense) {
        put(l.groups, a.kv_heads, "num-query-groups");
        put(l.kv_channels, a.head_dim, "kv-channels");
        l.grouped_query = true;
    }
    l.latent_attention = l.latent_attention || a.attention.kind == AttentionKind::latent;
    if (l.latent_attention) l.grouped_query = false;
    l.least_vocab = l.most_vocab = std::nullopt;
    if (!l.vocab && !l.padded_vocab) {
        l.vocab = a.vocab;
        l.pads_vocab = true;
    }
    if (a.moe) {
        put(l.experts, a.moe->experts, "num-experts");
        put(l.expert_ffn, a.moe->expert_ffn, "moe-ffn-hidden-size");
        if (a.moe->shared_ffn > 0) put(l.shared_ffn, a.moe->shared_ffn, "moe-shared-expert-intermediate-size");
        if (!a.qkv_bias) l.linear_bias = false;
    } else if (l.experts.value_or(0) > 0) {
        fail(ErrorKind::input, "{}: is {}, but {} has none", written(l.dialect, "num-experts"), *l.experts, a.name);
    }
    if (a.linear && a.linear->kind == workloads::LinearKind::mamba2) {
        l.state_groups = a.linear->key_heads;
        l.state_heads = a.linear->value_heads;
    }
    return l;
}

TitanLaunch with_model(TitanLaunch l, const workloads::Model& model) {
    const Architecture& a = language_model_of(model);
    l.layers = a.layers;
    l.heads = a.heads;
    l.kv_heads = a.kv_heads;
    l.experts = a.moe ? a.moe->experts : 0;
    l.tied_embeddings = a.tied_embeddings;
    return l;
}

}  // namespace pipeweaver::launch
