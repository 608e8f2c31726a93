// Tokenizers of Megatron-LM. Types: core_v0.16.1 (55ac7082) megatron/training/tokenizer/tokenizer.py and core_v0.19.0
// megatron/core/tokenizers/utils/build_tokenizer.py, which both build the model with the tokenizer's own size. What a
// launch says beside it is taken as that size.
#include "pipeweaver/frameworks/tokenizers.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace pipeweaver::frameworks {

namespace {

// Of byte-level models, and of Gemma 3, the largest of the models known here.
constexpr Vocabulary any_at_all{256, 262'208, {}, "none known here has fewer or more"};

constexpr Vocabulary llama2{32'000, 32'000, "Llama 2", "its config.json; the pieces of its tokenizer.model"};
constexpr Vocabulary gpt2{50'257, 50'257, "GPT-2", "its config.json; Megatron-LM's MEGATRON_CONFIG_MAP"};

struct OfType {
    std::string_view type;
    Vocabulary vocabulary;
};
constexpr std::array of_types{
    OfType{"Llama2Tokenizer", llama2}, OfType{"GPT2BPETokenizer", gpt2},
    OfType{"BertWordPieceLowerCase", {30'522, 30'522, "BERT", "bert-large-uncased's config.json"}},
    // A hundred marks for spans were added at some versions.
    OfType{"BertWordPieceCase", {28'996, 29'096, "BERT", "bert-large-cased's config.json"}}};

// Parts of names, in lower case with '-', the longer in front. The most is the vocabulary of the model's config.json,
// the least what its tokenizer has without marks of its own; Megatron-LM takes the length of the tokenizer.
struct OfName {
    std::string_view part;
    Vocabulary vocabulary;
};
constexpr std::array of_names{
    OfName{"llama-2", llama2},
    OfName{"llama2", llama2},
    OfName{"llama-3", {128'256, 128'256, "Llama 3", "128,000 and 256 marks: llama3 tokenizer.py"}},
    OfName{"llama3", {128'256, 128'256, "Llama 3", "128,000 and 256 marks: llama3 tokenizer.py"}},
    OfName{"llama-4", {200'000, 202'048, "Llama 4", "its config.json"}},
    OfName{"mixtral-8x7b", {32'000, 32'000, "Mixtral 8x7B", "its config.json"}},
    OfName{"mixtral-8x22b", {32'000, 32'768, "Mixtral 8x22B", "its config.json"}},
    OfName{"mistral-7b", {32'000, 32'768, "Mistral 7B", "config.json of v0.1 and of v0.3"}},
    OfName{"qwen3.5", {151'643, 248'320, "Qwen 3.5", "its config.json"}},
    OfName{"qwen3.6", {151'643, 248'320, "Qwen 3.6", "its config.json"}},
    OfName{"qwen", {151'643, 152'064, "Qwen 2 and 3", "151,643 without marks: tokenization_note.md; config.json"}},
    OfName{"deepseek-v3", {128'000, 129'280, "DeepSeek-V3", "its config.json; 128K: arXiv 2412.19437, 4.1"}},
    OfName{"deepseek-r1", {128'000, 129'280, "DeepSeek-V3", "its config.json; 128K: arXiv 2412.19437, 4.1"}},
    OfName{"deepseek-v2", {100'000, 102'400, "DeepSeek-V2", "its config.json; 100K: arXiv 2405.04434, 3.1"}},
    OfName{"gpt-oss", {199'998, 201'088, "gpt-oss", "o200k_base of tiktoken; its config.json"}},
    OfName{"gpt2", gpt2},
    OfName{"gemma-2", {256'000, 256'000, "Gemma 2", "its config.json"}},
    OfName{"gemma-3", {256'000, 262'208, "Gemma 3", "its config.json"}},
    OfName{"glm-4.5", {151'329, 151'552, "GLM-4.5", "its config.json"}},
    OfName{"kimi-k2", {163'584, 163'840, "Kimi K2", "its config.json, 256 marks: tokenization_kimi.py"}},
    OfName{"moonlight", {163'584, 163'840, "Moonlight", "its config.json, 256 marks: tokenization_moonshot.py"}},
    OfName{"nemotron-h", {131'072, 131'072, "Nemotron-H", "its config.json"}},
    OfName{"nemotron-nano", {131'072, 131'072, "Nemotron Nano", "its config.json"}}};

std::string lowered(std::string name) {
    for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return name;
}

std::optional<Vocabulary> by_name(const std::string& said) {
    const std::string name = lowered(said);
    const auto* const found = std::find_if(of_names.begin(), of_names.end(),
                                           [&](const OfName& one) { return name.find(one.part) != std::string::npos; });
    return found == of_names.end() ? std::nullopt : std::optional(found->vocabulary);
}

bool takes_names(std::string_view type) {
    constexpr std::array all{std::string_view("HuggingFaceTokenizer"),      std::string_view("SentencePieceTokenizer"),
                             std::string_view("GPTSentencePieceTokenizer"), std::string_view("SFTTokenizer"),
                             std::string_view("MultimodalTokenizer"),       std::string_view("Llama2Tokenizer")};
    return std::find(all.begin(), all.end(), type) != all.end();
}

}  // namespace

std::optional<Vocabulary> vocabulary_of(const SaidTokenizer& said) {
    constexpr std::int64_t of_tiktoken = 131'072;
    if (said.type.starts_with("Null")) {
        // To 0.17 an end of a document is added to what is said, from 0.18 on it is the last of it.
        if (!said.vocabulary) return std::nullopt;
        return Vocabulary{*said.vocabulary, *said.vocabulary + 1, "--vocab-size", "null_tokenizer.py"};
    }
    if (said.vocabulary) return Vocabulary{*said.vocabulary, *said.vocabulary, "--vocab-size", "what is said"};
    if (said.type == "TikTokenizer")
        return Vocabulary{of_tiktoken, of_tiktoken, "TikTokenizer", "tiktoken_tokenizer.py: 2^17 where none is said"};
    if (takes_names(said.type))
        if (auto found = by_name(said.model)) return found;
    const auto* const found =
        std::find_if(of_types.begin(), of_types.end(), [&](const OfType& one) { return one.type == said.type; });
    const bool own_file =
        !said.vocabulary_file.empty() && lowered(said.vocabulary_file).find("gpt2") == std::string::npos;
    if (found == of_types.end() || (own_file && said.type == "GPT2BPETokenizer")) return any_at_all;
    return found->vocabulary;
}

}  // namespace pipeweaver::frameworks
