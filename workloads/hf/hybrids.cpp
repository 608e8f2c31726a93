#include "workloads/hf/hybrids.hpp"

#include "workloads/hf/keys.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::workloads::hf {

namespace {

LinearAttention mamba_of(const Part& part, std::int64_t usual_chunk) {
    LinearAttention linear;
    linear.kind = LinearKind::mamba2;
    linear.key_heads = needed(part, key::mamba_groups);
    linear.value_heads = needed(part, key::mamba_heads);
    linear.key_dim = needed(part, key::mamba_state);
    linear.value_dim = needed(part, key::mamba_head_dim);
    linear.convolution = needed(part, key::mamba_convolution);
    linear.chunk = size(part, key::mamba_chunk).value_or(usual_chunk);
    return linear;
}

char letter_of(const Json& name, const Reading& reading) {
    const std::string kind = name.text();
    if (kind == "mamba") return 'M';
    if (kind == "attention") return '*';
    if (kind == "mlp") return '-';
    if (kind == "moe") return 'E';
    refuse(name, reading, fmt::format("is '{}', allowed are mamba, attention, mlp and moe", kind));
}

// hybrid_override_pattern, or layers_block_type of later files.
std::string letters_of_file(const Part& part, std::int64_t layers) {
    std::string letters;
    if (const auto text = given(part, key::mixers)) {
        letters = text->text();
    } else if (const auto names = given(part, key::mixer_types)) {
        for (const Json& name : names->elements()) letters += letter_of(name, *part.reading);
    } else {
        refuse(part, "the key 'hybrid_override_pattern' is missing");
    }
    if (std::ssize(letters) != layers)
        refuse(part, fmt::format("hybrid_override_pattern has {} letters for {} layers", letters.size(), layers));
    return letters;
}

MixtureOfExperts nemotron_experts(const Part& part, std::int64_t layers, std::int64_t with_experts) {
    MixtureOfExperts moe;
    moe.moe_layers = with_experts;
    moe.first_layer = layers - with_experts;  // which they are the letters say
    moe.experts = needed(part, key::experts);
    moe.top_k = needed(part, key::top_k);
    moe.expert_ffn = needed(part, key::expert_ffn);
    moe.shared_ffn = count(part, key::shared_experts) > 0 ? needed(part, key::shared_ffn) : 0;
    moe.latent = count(part, key::expert_latent);
    return moe;
}

}  // namespace

void nemotron_blocks(const Part& part, const DecoderRow& /*row*/, Architecture& a) {
    const std::string letters = letters_of_file(part, a.layers);
    a.linear = mamba_of(part, 128);
    const auto with_experts = std::count(letters.begin(), letters.end(), 'E');
    if (with_experts > 0) a.moe = nemotron_experts(part, a.layers, with_experts);
    a.ffn = with_experts > 0 ? size(part, key::ffn).value_or(a.moe->expert_ffn) : needed(part, key::ffn);
    a.layer_pattern = period_of(letters);
}

void falcon_blocks(const Part& part, const DecoderRow& /*row*/, Architecture& a) {
    a.ffn = needed(part, key::ffn);
    a.linear = mamba_of(part, 256);
    if (const auto inner = size(part, key::mamba_inner); inner && *inner != a.linear->values())
        refuse(part, fmt::format("mamba_d_ssm is {}, not the {} of its heads", *inner, a.linear->values()));
    a.layer_pattern = "P";
}

void kimi_blocks(const Part& part, const DecoderRow& row, Architecture& a) {
    read_feed_forward(part, row, a);
    const auto member = given(part, key::delta_part);
    if (!member) refuse(part, "the key 'linear_attn_config' is missing");
    const Part delta{*member, part.reading, "linear_attn_config"};
    LinearAttention linear;
    linear.key_heads = linear.value_heads = needed(delta, key::heads);
    linear.key_dim = linear.value_dim = needed(delta, key::head_dim);
    linear.convolution = needed(delta, key::delta_convolution);
    a.linear = linear;
    std::string letters(static_cast<std::size_t>(a.layers), 'L');
    const auto full = given(delta, key::delta_full);
    if (!full) refuse(delta, "the key 'full_attn_layers' is missing");
    for (const Json& layer : full->elements()) letters[static_cast<std::size_t>(layer.integer(1, a.layers) - 1)] = 'F';
    if (letters.find('L') == std::string::npos) refuse(*full, *part.reading, "names every layer");
    a.layer_pattern = period_of(letters);
    const std::int64_t gate = linear.values() * (a.hidden - 2 * (a.hidden / linear.value_heads + linear.value_dim));
    assume(*part.reading,
           fmt::format("delta attention is taken as a gated delta net, whose output gate is one matrix: "
                       "{:.2f} billion parameters too many",
                       static_cast<double>(std::count(letters.begin(), letters.end(), 'L') * gate) / 1e9));
}

}  // namespace pipeweaver::workloads::hf
