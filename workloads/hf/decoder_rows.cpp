// The table of language models. Defaults are those of the configuration classes of huggingface/transformers
// (configuration_*.py), as far as files leave them out.
#include "workloads/hf/decoders.hpp"

#include <algorithm>

namespace pipeweaver::workloads::hf {

namespace {

constexpr std::array llama_text{Default{"hidden_size", 4096}, Default{"intermediate_size", 11008},
                                Default{"num_hidden_layers", 32}, Default{"num_attention_heads", 32},
                                Default{"vocab_size", 32000}};
constexpr std::array mistral_text{Default{"hidden_size", 4096},      Default{"intermediate_size", 14336},
                                  Default{"num_hidden_layers", 32},  Default{"num_attention_heads", 32},
                                  Default{"num_key_value_heads", 8}, Default{"vocab_size", 32000},
                                  Default{"sliding_window", 4096}};
constexpr std::array mixtral_text{Default{"hidden_size", 4096},      Default{"intermediate_size", 14336},
                                  Default{"num_hidden_layers", 32},  Default{"num_attention_heads", 32},
                                  Default{"num_key_value_heads", 8}, Default{"vocab_size", 32000},
                                  Default{"num_local_experts", 8},   Default{"num_experts_per_tok", 2}};
constexpr std::array qwen2_text{Default{"hidden_size", 4096},       Default{"intermediate_size", 22016},
                                Default{"num_hidden_layers", 32},   Default{"num_attention_heads", 32},
                                Default{"num_key_value_heads", 32}, Default{"vocab_size", 151936}};
constexpr std::array qwen2_5_vl_text{Default{"hidden_size", 8192},      Default{"intermediate_size", 29568},
                                     Default{"num_hidden_layers", 80},  Default{"num_attention_heads", 64},
                                     Default{"num_key_value_heads", 8}, Default{"vocab_size", 152064}};
constexpr std::array qwen2_5_omni_text{Default{"hidden_size", 3584},      Default{"intermediate_size", 18944},
                                       Default{"num_hidden_layers", 28},  Default{"num_attention_heads", 28},
                                       Default{"num_key_value_heads", 4}, Default{"vocab_size", 152064}};
constexpr std::array qwen3_text{Default{"hidden_size", 4096},       Default{"intermediate_size", 22016},
                                Default{"num_hidden_layers", 32},   Default{"num_attention_heads", 32},
                                Default{"num_key_value_heads", 32}, Default{"vocab_size", 151936}};
constexpr std::array qwen3_5_text{Default{"hidden_size", 4096},         Default{"intermediate_size", 12288},
                                  Default{"num_hidden_layers", 32},     Default{"num_attention_heads", 16},
                                  Default{"num_key_value_heads", 4},    Default{"vocab_size", 248320},
                                  Default{"linear_num_key_heads", 16},  Default{"linear_num_value_heads", 32},
                                  Default{"linear_key_head_dim", 128},  Default{"linear_value_head_dim", 128},
                                  Default{"linear_conv_kernel_dim", 4}, Default{"full_attention_interval", 4}};
constexpr std::array qwen3_5_moe_text{Default{"hidden_size", 2048},
                                      Default{"num_hidden_layers", 40},
                                      Default{"num_attention_heads", 16},
                                      Default{"num_key_value_heads", 2},
                                      Default{"vocab_size", 248320},
                                      Default{"linear_num_key_heads", 16},
                                      Default{"linear_num_value_heads", 32},
                                      Default{"linear_key_head_dim", 128},
                                      Default{"linear_value_head_dim", 128},
                                      Default{"linear_conv_kernel_dim", 4},
                                      Default{"full_attention_interval", 4},
                                      Default{"num_experts", 256},
                                      Default{"num_experts_per_tok", 8},
                                      Default{"moe_intermediate_size", 512},
                                      Default{"shared_expert_intermediate_size", 512}};
constexpr std::array gemma3_text{Default{"hidden_size", 2304},      Default{"intermediate_size", 9216},
                                 Default{"num_hidden_layers", 26},  Default{"num_attention_heads", 8},
                                 Default{"num_key_value_heads", 4}, Default{"vocab_size", 262208},
                                 Default{"sliding_window", 4096}};
constexpr std::array gemma4_text{
    Default{"hidden_size", 2304},      Default{"intermediate_size", 9216}, Default{"num_hidden_layers", 30},
    Default{"num_attention_heads", 8}, Default{"num_key_value_heads", 4},  Default{"vocab_size", 262144},
    Default{"sliding_window", 512},    Default{"global_head_dim", 512},    Default{"hidden_size_per_layer_input", 256}};
constexpr std::array mllama_text{Default{"hidden_size", 4096},      Default{"intermediate_size", 14336},
                                 Default{"num_hidden_layers", 40},  Default{"num_attention_heads", 32},
                                 Default{"num_key_value_heads", 8}, Default{"vocab_size", 128256}};
constexpr std::array llama4_text{
    Default{"hidden_size", 5120},       Default{"intermediate_size", 8192}, Default{"num_hidden_layers", 48},
    Default{"num_attention_heads", 40}, Default{"num_key_value_heads", 8},  Default{"vocab_size", 202048},
    Default{"num_local_experts", 16},   Default{"num_experts_per_tok", 1},  Default{"intermediate_size_mlp", 16384}};
constexpr std::array glm4v_text{Default{"hidden_size", 4096},      Default{"intermediate_size", 13696},
                                Default{"num_hidden_layers", 40},  Default{"num_attention_heads", 32},
                                Default{"num_key_value_heads", 2}, Default{"vocab_size", 151552}};

// In the order of families; names in errors are in this order.
constexpr std::array decoder_rows{
    DecoderRow{.type = "llama", .start_from = "llama3-8b", .defaults = llama_text},
    DecoderRow{
        .type = "mllama_text_model", .start_from = "llama-3.2-90b-vision", .defaults = mllama_text, .cross = true},
    DecoderRow{.type = "llama4_text",
               .start_from = "llama4-scout-109b",
               .defaults = llama4_text,
               .head_dim = 128,
               .mixture = Mixture::needed,
               .shared = Shared::one,
               .experts_by_ffn = true},
    DecoderRow{.type = "mistral", .start_from = "llama3-8b", .defaults = mistral_text, .windows = Windows::all},
    DecoderRow{.type = "ministral3",
               .start_from = "llama3-8b",
               .defaults = mistral_text,
               .head_dim = 128,
               .windows = Windows::all},
    DecoderRow{.type = "mixtral",
               .start_from = "mixtral-8x7b",
               .defaults = mixtral_text,
               .mixture = Mixture::needed,
               .experts_by_ffn = true,
               .windows = Windows::all},
    DecoderRow{.type = "qwen2",
               .start_from = "qwen2.5-7b",
               .defaults = qwen2_text,
               .bias = Bias::always,
               .windows = Windows::where_used},
    DecoderRow{.type = "qwen2_moe",
               .start_from = "qwen3-30b-a3b",
               .bias = Bias::always,
               .mixture = Mixture::needed,
               .shared = Shared::own_width,
               .windows = Windows::where_used},
    DecoderRow{.type = "qwen2_vl_text",
               .start_from = "qwen2.5-vl-7b",
               .defaults = qwen2_5_vl_text,
               .bias = Bias::always,
               .windows = Windows::where_used},
    DecoderRow{.type = "qwen2_5_vl_text",
               .start_from = "qwen2.5-vl-7b",
               .defaults = qwen2_5_vl_text,
               .bias = Bias::always,
               .windows = Windows::where_used},
    DecoderRow{.type = "qwen2_5_omni_text",
               .start_from = "qwen2.5-vl-7b",
               .defaults = qwen2_5_omni_text,
               .bias = Bias::always,
               .windows = Windows::where_used},
    DecoderRow{.type = "qwen3",
               .start_from = "qwen3-8b",
               .defaults = qwen3_text,
               .head_dim = 128,
               .qk_norm = true,
               .windows = Windows::where_used},
    DecoderRow{.type = "LLaVAOneVision1_5_text", .start_from = "qwen3-8b", .head_dim = 128, .qk_norm = true},
    DecoderRow{.type = "qwen3_moe",
               .start_from = "qwen3-30b-a3b",
               .qk_norm = true,
               .mixture = Mixture::needed,
               .windows = Windows::where_used},
    DecoderRow{
        .type = "qwen3_vl_text", .start_from = "qwen3-8b", .defaults = qwen3_text, .head_dim = 128, .qk_norm = true},
    DecoderRow{.type = "qwen3_vl_moe_text", .start_from = "qwen3-30b-a3b", .qk_norm = true, .mixture = Mixture::needed},
    DecoderRow{
        .type = "qwen3_omni_moe_text", .start_from = "qwen3-30b-a3b", .qk_norm = true, .mixture = Mixture::needed},
    DecoderRow{.type = "qwen3_next",
               .start_from = "qwen3-next-80b-a3b",
               .defaults = qwen3_5_moe_text,
               .head_dim = 256,
               .qk_norm = true,
               .mixture = Mixture::needed,
               .shared = Shared::own_width,
               .linear = true},
    DecoderRow{.type = "qwen3_5_text",
               .start_from = "qwen3.5-27b",
               .defaults = qwen3_5_text,
               .head_dim = 256,
               .qk_norm = true,
               .linear = true},
    DecoderRow{.type = "qwen3_5_moe_text",
               .start_from = "qwen3.6-35b-a3b",
               .defaults = qwen3_5_moe_text,
               .head_dim = 256,
               .qk_norm = true,
               .mixture = Mixture::needed,
               .shared = Shared::own_width,
               .linear = true},
    DecoderRow{.type = "deepseek_v2",
               .start_from = "deepseek-v2-lite",
               .mixture = Mixture::as_said,
               .shared = Shared::counted,
               .latent = true},
    DecoderRow{.type = "deepseek_v3",
               .start_from = "deepseek-v3",
               .mixture = Mixture::as_said,
               .shared = Shared::counted,
               .latent = true},
    DecoderRow{.type = "kimi_k2",
               .start_from = "kimi-k2",
               .mixture = Mixture::as_said,
               .shared = Shared::counted,
               .latent = true},
    DecoderRow{.type = "gemma2",
               .start_from = "llama3-8b",
               .head_dim = 256,
               .tied = true,
               .windows = Windows::alternating,
               .period = 2},
    DecoderRow{.type = "gemma3_text",
               .start_from = "qwen3-8b",
               .defaults = gemma3_text,
               .head_dim = 256,
               .qk_norm = true,
               .tied = true,
               .windows = Windows::alternating,
               .period = 6},
    DecoderRow{.type = "gemma4_text",
               .start_from = "qwen3-30b-a3b",
               .defaults = gemma4_text,
               .head_dim = 256,
               .qk_norm = true,
               .tied = true,
               .mixture = Mixture::as_said,
               .shared = Shared::feed_forward,
               .windows = Windows::alternating,
               .period = 6,
               .global_heads = true},
    DecoderRow{.type = "glm4", .start_from = "llama3-8b", .defaults = glm4v_text, .head_dim = 128},
    DecoderRow{.type = "glm4v_text", .start_from = "llama3-8b", .defaults = glm4v_text, .bias = Bias::always},
    DecoderRow{.type = "chatglm", .start_from = "llama3-8b"},
    DecoderRow{.type = "glm4_moe",
               .start_from = "glm-4.5-air",
               .head_dim = 128,
               .mixture = Mixture::as_said,
               .shared = Shared::counted},
    DecoderRow{.type = "glm4v_moe_text",
               .start_from = "glm-4.5-air",
               .head_dim = 128,
               .mixture = Mixture::as_said,
               .shared = Shared::counted},
    DecoderRow{.type = "internlm2", .start_from = "llama3-8b"},
    DecoderRow{.type = "internlm3", .start_from = "llama3-8b"},
    DecoderRow{.type = "phi3", .start_from = "llama3-8b", .windows = Windows::all},
    DecoderRow{.type = "gpt_oss",
               .start_from = "gpt-oss-20b",
               .head_dim = 64,
               .mixture = Mixture::needed,
               .experts_by_ffn = true,
               .windows = Windows::alternating,
               .period = 2},
    DecoderRow{.type = "smollm3", .start_from = "llama3-8b"},
};

}  // namespace

const DecoderRow* find_decoder(std::string_view type) {
    const auto found =
        std::find_if(decoder_rows.begin(), decoder_rows.end(), [&](const auto& row) { return row.type == type; });
    return found == decoder_rows.end() ? nullptr : found;
}

std::vector<std::string> decoder_types() {
    std::vector<std::string> types;
    types.reserve(decoder_rows.size());
    for (const DecoderRow& row : decoder_rows) types.emplace_back(row.type);
    return types;
}

}  // namespace pipeweaver::workloads::hf
