#include "validation/run_network.hpp"

#include "pipeweaver/workloads/catalogue.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace pipeweaver::validation {

using workloads::Architecture;
using workloads::ModuleKind;

namespace {

std::string letters_and_digits(std::string_view text) {
    std::string plain;
    for (const char c : text)
        if (std::isalnum(static_cast<unsigned char>(c)))
            plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return plain;
}

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
        network.moe->first_layer = 1;
        network.moe->every = 1;
        network.moe->moe_layers = layers - 1;
        assumed.push_back(fmt::format("one dense layer and {} with experts", layers - 1));
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

std::string missing(const Architecture& network) {
    std::vector<std::string_view> names;
    for (const Column& column : network_columns)
        if (network.*column.field == 0) names.emplace_back(column.name);
    return names.empty() ? "" : fmt::format("unknown: {}", fmt::join(names, ", "));
}

}  // namespace

std::optional<Architecture> network_named(std::string_view model) {
    const auto wanted = letters_and_digits(model.substr(0, std::min(model.find(" ("), model.find(" truncated"))));
    if (wanted.empty()) return std::nullopt;
    for (const Architecture& network : workloads::architectures()) {
        const auto name = letters_and_digits(network.name);
        if (network.kind == ModuleKind::language_model && (name == wanted || name == "megatron" + wanted))
            return network;
    }
    return std::nullopt;
}

RunNetwork network_of(const PublishedRun& row) {
    RunNetwork found;
    const auto named = network_named(row.model);
    Architecture network = named ? *named : plain_gpt();
    network.name = row.model;
    apply_columns(row, network, found.assumed);
    if (!named && is_gpt(row.model) && network.kv_heads == 0) network.kv_heads = network.heads;
    found.refusal = missing(network);
    if (!found.refusal.empty()) return found;
    if (!named && row.ep.value_or(1) > 1)
        found.refusal = fmt::format("ep is {}, but nothing is known of the experts of '{}'", *row.ep, row.model);
    if (!named && !is_gpt(row.model)) {
        network.gated = network.ffn != 4 * network.hidden;
        found.assumed.push_back(network.gated ? "a gated feed-forward" : "a feed-forward without a gate");
    }
    // GPTs share the table of their embedding with the head.
    if (!named) network.tied_embeddings = !network.gated;
    if (found.refusal.empty()) found.network = std::move(network);
    return found;
}

}  // namespace pipeweaver::validation
