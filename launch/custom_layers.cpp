// LoongForge's --custom-pipeline-layers and --custom-virtual-pipeline-layers.
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/launch/spellings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace pipeweaver::launch {

namespace {

constexpr std::string_view of_ranks = "--custom-pipeline-layers", of_stages = "--custom-virtual-pipeline-layers";
constexpr std::int64_t most_custom_layers = 100'000;

// A rank or a stage each; or why they are none.
struct Numbers {
    std::vector<std::int64_t> all{};
    std::string why_not{};
};
Numbers numbers(std::string_view name, const std::string& text) {
    std::vector<std::int64_t> all;
    for (const std::string& part : parts_of(text)) {
        const auto number = integer_in(part, 0, most_custom_layers);
        if (!number) return {{}, fmt::format("{}: {}", name, must_be(part, a_whole_number(0, most_custom_layers)))};
        all.push_back(*number);
    }
    if (all.size() < 2) return {{}, fmt::format("{}: '{}' is of one rank, allowed are two and more", name, text)};
    return {std::move(all), {}};
}

// As LoongForge shares out a rank's layers: the later chunks get the rest.
std::int64_t share(std::int64_t layers, std::int64_t chunks, std::int64_t chunk) {
    return layers / chunks + (chunk < chunks - layers % chunks ? 0 : 1);
}

std::vector<std::int64_t> layers_of_ranks(const Split& split) {
    std::vector<std::int64_t> layers(static_cast<std::size_t>(split.ranks));
    for (std::size_t s = 0; s < split.layers.size(); ++s) layers[s % layers.size()] += split.layers[s];
    return layers;
}

bool is_shared_so(const Split& split, const std::vector<std::int64_t>& of_rank) {
    const std::int64_t chunks = split.chunks();
    for (std::size_t s = 0; s < split.layers.size(); ++s) {
        const std::size_t rank = s % of_rank.size();
        if (of_rank[rank] < chunks && chunks > 1) return false;
        if (split.layers[s] != share(of_rank[rank], chunks, static_cast<std::int64_t>(s / of_rank.size())))
            return false;
    }
    return true;
}

}  // namespace

Spelled spell_custom_layers(const Split& split) {
    if (auto why = why_not_usual(split)) return {{}, std::move(*why)};
    if (split.ranks < 2) return {{}, "one rank has all layers; the lists are of two ranks and more"};
    const auto of_rank = layers_of_ranks(split);
    const Flag chunks{"--num-virtual-stages-per-pipeline-rank", std::to_string(split.chunks())};
    Spelled said;
    if (is_shared_so(split, of_rank))
        said.flags.push_back({std::string(of_ranks), fmt::format("{}", fmt::join(of_rank, ","))});
    else
        said.flags.push_back({std::string(of_stages), fmt::format("{}", fmt::join(split.layers, ","))});
    if (split.chunks() > 1) said.flags.push_back(chunks);
    return said;
}

ReadSplit parse_custom_layers(const std::string& text, std::int64_t chunks) {
    const auto [of_rank, why_not] = numbers(of_ranks, text);
    if (!why_not.empty()) return {{}, why_not};
    Split split{.ranks = static_cast<std::int64_t>(of_rank.size())};
    split.layers.reserve(of_rank.size() * static_cast<std::size_t>(chunks));
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
        for (std::size_t r = 0; r < of_rank.size(); ++r) {
            if (chunks > 1 && of_rank[r] < chunks)
                return {{},
                        fmt::format("{}: rank {} has {} layers, allowed are {} and more, one for each chunk", of_ranks,
                                    r, of_rank[r], chunks)};
            split.layers.push_back(share(of_rank[r], chunks, chunk));
        }
    return {std::move(split), {}};
}

ReadSplit parse_custom_virtual_layers(const std::string& text, std::int64_t ranks) {
    auto read = numbers(of_stages, text);
    if (!read.why_not.empty()) return {{}, std::move(read.why_not)};
    Split split{.ranks = ranks, .layers = std::move(read.all)};
    if (split.stages() % ranks != 0)
        return {{}, fmt::format("{}: has {} stages, no multiple of the {} ranks", of_stages, split.stages(), ranks)};
    return {std::move(split), {}};
}

}  // namespace pipeweaver::launch
