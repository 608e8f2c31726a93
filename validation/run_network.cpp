#include "validation/run_network.hpp"

#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

namespace pipeweaver::validation {

using workloads::Architecture;
using workloads::ModuleKind;

namespace {

// GPT-2, GPT-3 and the Megatron models: multi-head attention, a plain feed-forward of four times the width.
bool is_gpt(std::string_view model) {
    const auto plain = letters_and_digits(model);
    return (plain.starts_with("gpt") && !plain.starts_with("gptoss")) || plain.starts_with("megatron");
}

Architecture plain_gpt() {
    Architecture network;
    network.gated = false;
    return network;
}

// A network cut to fewer layers keeps one dense layer in front of those with experts (SimuMax's cut models).
void cut(Architecture& network, std::int64_t layers, std::vector<std::string>& assumed) {
    if (network.moe && layers != network.layers) {
        const std::int64_t dense = std::min<std::int64_t>(1, network.moe->first_layer);
        network.moe->first_layer = dense;
        network.moe->every = 1;
        network.moe->moe_layers = layers - dense;
        if (dense == 1) assumed.push_back(fmt::format("one dense layer and {} with experts", layers - 1));
    }
    network.layers = layers;
}

struct Column {
    const char* name;
    PublishedRun::Count PublishedRun::*cell;
    std::int64_t Architecture::*field;
};
constexpr std::array<Column, 6> network_columns{{{"layers", &PublishedRun::layers, &Architecture::layers},
                                                 {"hidden", &PublishedRun::hidden, &Architecture::hidden},
                                                 {"ffn", &PublishedRun::ffn, &Architecture::ffn},
                                                 {"heads", &PublishedRun::heads, &Architecture::heads},
                                                 {"kv_heads", &PublishedRun::kv_heads, &Architecture::kv_heads},
                                                 {"vocab", &PublishedRun::vocab, &Architecture::vocab}}};

// Puts the columns over what the name gave.
void apply_columns(const PublishedRun& row, Architecture& network, std::vector<std::string>& assumed) {
    const bool other_heads =
        (row.hidden && *row.hidden != network.hidden) || (row.heads && *row.heads != network.heads);
    for (const Column& column : network_columns)
        if (row.*column.cell && column.field != &Architecture::layers) network.*column.field = *(row.*column.cell);
    if (row.layers) cut(network, *row.layers, assumed);
    const bool latent = network.attention.kind == workloads::AttentionKind::latent;
    if ((other_heads || network.head_dim == 0) && !latent && network.heads > 0)
        network.head_dim = network.hidden / network.heads;
}

// Families whose feed-forwards all have a gate, also where they are four times as wide as the model.
bool is_gated_by_name(std::string_view model) {
    const auto plain = letters_and_digits(model);
    constexpr std::array<std::string_view, 6> families{"llama", "qwen", "mistral", "internlm", "grok", "moonlight"};
    return std::any_of(families.begin(), families.end(), [&](auto family) { return plain.starts_with(family); });
}

// Heads that are not hidden / heads wide, by the model's family.
struct HeadSize {
    std::string_view family;
    std::int64_t size;
};
// INTELLECT-3 is GLM-4.5-Air.
constexpr std::array<HeadSize, 3> head_sizes{{{"qwen3", 128}, {"gptoss", 64}, {"intellect3", 128}}};

std::int64_t head_size_by_name(std::string_view model) {
    const auto plain = letters_and_digits(model);
    for (const auto& [family, size] : head_sizes)
        if (plain.starts_with(family)) return size;
    return 0;
}

// The number right behind `words` in the note, from `from` on.
std::optional<std::int64_t> number_behind(std::string_view note, std::string_view words, std::size_t from = 0) {
    const auto place = note.find(words, from);
    if (place == std::string_view::npos) return std::nullopt;
    std::int64_t value = 0;
    const auto rest = note.substr(place + words.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    return error == std::errc{} && value > 0 ? std::optional(value) : std::nullopt;
}

// "... 64 experts top-6": the number in front of the word, and where the word begins.
std::optional<std::pair<std::int64_t, std::size_t>> experts_in(std::string_view note) {
    for (auto place = note.find(" experts top-"); place != std::string_view::npos;
         place = note.find(" experts top-", place + 1)) {
        const auto front = note.substr(0, place);
        const auto begin = front.find_last_not_of("0123456789") + 1;  // npos + 1 = 0
        if (begin == front.size()) continue;
        std::int64_t value = 0;
        std::from_chars(front.data() + begin, front.data() + front.size(), value);
        return std::pair{value, place};
    }
    return std::nullopt;
}

// Of a note such as "27 layers (first dense), 64 experts top-6 moe ffn 1408 + 2 shared": what no column holds.
void apply_note(const PublishedRun& row, Architecture& network, std::vector<std::string>& assumed) {
    const auto note = in_lower_case(row.note);
    const auto experts = experts_in(note);
    if (!experts || network.moe) return;
    const auto [number, place] = *experts;
    workloads::MixtureOfExperts moe;
    moe.experts = number;
    moe.top_k = number_behind(note, " experts top-", place).value_or(1);
    const auto width = number_behind(note, "moe ffn ", place);
    const auto in_brackets = number_behind(note, fmt::format("top-{} (", moe.top_k), place);
    moe.expert_ffn = width ? *width : in_brackets.value_or(network.ffn);
    if (const auto shared = number_behind(note, "+ shared ", place))
        moe.shared_ffn = *shared;
    else if (const auto copies = number_behind(note, "+ ", place);
             copies && note.find(fmt::format("+ {} shared", *copies), place) != std::string::npos)
        moe.shared_ffn = *copies * moe.expert_ffn;
    else if (note.find(" + shared", place) != std::string::npos)
        moe.shared_ffn = moe.expert_ffn;
    const bool one = contains(note, "first dense") || contains(note, "first layer dense");
    moe.first_layer = one ? 1 : number_behind(note, "first ").value_or(0);
    moe.every = contains(note, "moe on every second layer") ? 2 : 1;
    if (moe.every == 2) moe.first_layer = 1;
    moe.moe_layers = (network.layers - moe.first_layer + moe.every - 1) / moe.every;
    network.moe = moe;
    assumed.push_back(
        fmt::format("{} experts of width {}, {} chosen, as the note says", number, moe.expert_ffn, moe.top_k));
}

// "MLA kv_lora 512 without q_lora, qk 128+64, v 128".
void apply_latent_note(const PublishedRun& row, Architecture& network) {
    const auto note = in_lower_case(row.note);
    const auto rank = number_behind(note, "kv_lora ");
    if (!rank || network.attention.kind == workloads::AttentionKind::latent) return;
    auto& attention = network.attention;
    attention.kind = workloads::AttentionKind::latent;
    attention.kv_lora_rank = *rank;
    attention.q_lora_rank = number_behind(note, "q_lora ");
    if (contains(note, "without q_lora")) attention.q_lora_rank.reset();
    attention.qk_nope_head_dim = number_behind(note, "qk ").value_or(128);
    attention.qk_rope_head_dim = number_behind(note, fmt::format("qk {}+", attention.qk_nope_head_dim)).value_or(64);
    attention.v_head_dim = number_behind(note, ", v ").value_or(128);
    network.head_dim = attention.qk_nope_head_dim;
}

std::string missing(const Architecture& network) {
    std::vector<std::string_view> names;
    for (const Column& column : network_columns)
        if (network.*column.field == 0) names.emplace_back(column.name);
    return names.empty() ? "" : fmt::format("unknown: {}", fmt::join(names, ", "));
}

// "400b" of "llama4-maverick-400b", whose name others leave it out of, as the "671b" of "deepseek-v3-671b".
bool is_a_size(std::string_view text) {
    return text.size() > 1 && text.back() == 'b' && text.find_first_not_of("0123456789") == text.size() - 1;
}

bool differ_by_a_size(std::string_view longer, std::string_view shorter) {
    return longer.starts_with(shorter) && is_a_size(longer.substr(shorter.size()));
}

// The language model of a multimodal model by name, for rows whose columns say nothing of its sizes.
std::optional<Architecture> backbone_named(const PublishedRun& row) {
    if (row.layers || row.hidden) return std::nullopt;
    const std::string name = workloads::model_called(row.model.substr(0, row.model.find(" (")));
    if (name.empty()) return std::nullopt;
    const workloads::Model model = workloads::model(name);
    const Architecture& backbone = model.modules[model.backbone()].architecture;
    return backbone.kind == ModuleKind::language_model ? std::optional(backbone) : std::nullopt;
}

}  // namespace

std::string letters_and_digits(std::string_view text) {
    std::string plain;
    for (const char c : text)
        if (std::isalnum(static_cast<unsigned char>(c)))
            plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return plain;
}

std::optional<Architecture> network_named(std::string_view model) {
    std::size_t end = model.size();
    for (const std::string_view suffix : {" (", " truncated", " SFT", " LoRA", " text", "-proxy"})
        end = std::min(end, model.find(suffix));
    const auto wanted = letters_and_digits(model.substr(0, end));
    if (wanted.empty()) return std::nullopt;
    for (const Architecture& network : workloads::architectures()) {
        const auto name = letters_and_digits(network.name);
        const bool same = name == wanted || name == "megatron" + wanted || name == wanted + "llm";
        if (network.kind == ModuleKind::language_model && same) return network;
    }
    for (const Architecture& network : workloads::architectures()) {
        const auto name = letters_and_digits(network.name);
        if (network.kind == ModuleKind::language_model &&
            (differ_by_a_size(name, wanted) || differ_by_a_size(wanted, name)))
            return network;
    }
    return std::nullopt;
}

RunNetwork network_of(const PublishedRun& row) {
    RunNetwork found;
    auto named = network_named(row.model);
    if (!named) named = backbone_named(row);
    Architecture network = named ? *named : plain_gpt();
    network.name = row.model;
    apply_columns(row, network, found.assumed);
    if (!named && is_gpt(row.model) && network.kv_heads == 0) network.kv_heads = network.heads;
    if (const auto size = head_size_by_name(row.model); size > 0 && !named) network.head_dim = size;
    found.refusal = missing(network);
    if (!found.refusal.empty()) return found;
    apply_note(row, network, found.assumed);
    apply_latent_note(row, network);
    if (!network.moe && row.ep.value_or(1) > 1)
        found.refusal = fmt::format("ep is {}, but nothing is known of the experts of '{}'", *row.ep, row.model);
    if (!named && contains(in_lower_case(row.note), "mamba"))
        found.refusal = fmt::format("'{}' has layers of Mamba that no column holds", row.model);
    if (!named && !is_gpt(row.model)) {
        network.gated = is_gated_by_name(row.model) || network.ffn != 4 * network.hidden;
        if (contains(in_lower_case(row.note), "non-gated moe")) network.gated = false;
        found.assumed.push_back(network.gated ? "a gated feed-forward" : "a feed-forward without a gate");
    }
    // GPTs share the table of their embedding with the head.
    if (!named) network.tied_embeddings = !network.gated;
    if (contains(row.note, "untied embeddings"))
        network.tied_embeddings = false;
    else if (contains(row.note, "tied embeddings"))
        network.tied_embeddings = true;
    if (found.refusal.empty()) found.network = std::move(network);
    return found;
}

}  // namespace pipeweaver::validation
