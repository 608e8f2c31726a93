// Megatron-LM's --hybrid-layer-pattern: a letter for each layer, stages between '|'.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/launch/spellings.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace pipeweaver::launch {

using namespace workloads;

namespace {

constexpr std::string_view hybrid_flag = "--hybrid-layer-pattern", hybrid_known = "MG*D+-E";

std::string letters_of(const Architecture& architecture, std::int64_t layer) {
    const BlockParts parts = block_parts(architecture, layer);
    std::string letters;
    if (parts.linear) letters += architecture.linear && architecture.linear->kind == LinearKind::mamba2 ? 'M' : 'G';
    if (parts.attention) letters += architecture.attention.kind == AttentionKind::latent ? '+' : '*';
    if (parts.dense) letters += '-';
    if (parts.experts) letters += 'E';
    return letters;
}

}  // namespace

std::optional<std::vector<std::string>> hybrid_letters(const Architecture& architecture) {
    std::vector<std::string> all;
    all.reserve(static_cast<std::size_t>(architecture.layers));
    for (std::int64_t layer = 0; layer < architecture.layers; ++layer) {
        const bool is_factored = architecture.attention.kind == AttentionKind::factored;
        const BlockParts parts = block_parts(architecture, layer);
        if ((parts.linear && parts.attention) || is_factored || is_cross_layer(architecture, layer) ||
            has_cross_beside_self(architecture) || architecture.mmdit)
            return std::nullopt;
        all.push_back(letters_of(architecture, layer));
    }
    return all;
}

Spelled spell_hybrid_pattern(const Split& split, const std::vector<std::string>& letters) {
    if (auto why = why_not_usual(split)) return {{}, std::move(*why)};
    std::string text;
    std::size_t layer = 0;
    for (std::size_t s = 0; s < split.layers.size(); ++s) {
        if (s > 0) text += '|';
        for (std::int64_t i = 0; i < split.layers[s]; ++i) text += letters[layer++];
    }
    return {{{std::string(hybrid_flag), std::move(text)}}, {}};
}

ReadStages parse_hybrid_pattern(const std::string& text) {
    std::vector<std::string> stages(1);
    for (std::size_t at = 0; at < text.size() && text[at] != '/'; ++at) {
        if (text[at] == '|')
            stages.emplace_back();
        else if (hybrid_known.find(text[at]) != std::string_view::npos)
            stages.back() += text[at];
        else
            return {{},
                    fmt::format("{}: has '{}' at {}, allowed are M (Mamba), G (gated delta net), * (attention), D and "
                                "+ (latent attention), - (feed-forward), E (experts), '|' and '/'",
                                hybrid_flag, text[at], at)};
    }
    return {std::move(stages), {}};
}

Split split_of(const std::vector<std::string>& stages, const std::vector<std::string>& letters, std::int64_t ranks) {
    Split split{.ranks = ranks};
    split.layers.reserve(stages.size());
    std::size_t layer = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        split.layers.push_back(0);
        for (std::size_t at = 0; at < stages[s].size(); at += letters[layer++].size(), ++split.layers[s])
            if (layer == letters.size() || stages[s].compare(at, letters[layer].size(), letters[layer]) != 0)
                fail(ErrorKind::input, "{}: stage {} has '{}' for layer {}, which is {}", hybrid_flag, s,
                     stages[s].substr(at), layer,
                     layer == letters.size() ? "one too many" : "'" + letters[layer] + "'");
    }
    if (layer != letters.size())
        fail(ErrorKind::input, "{}: has {} layers, but the model has {}", hybrid_flag, layer, letters.size());
    return split;
}

}  // namespace pipeweaver::launch
