// Layers of the first and the last rank in numbers, those between even: Megatron-LM, Megatron-Bridge, ms-swift.
#include "launch/read/megatron_table.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/launch/spellings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::launch {

namespace {

// Layers of a rank, all its chunks.
std::int64_t layers_of_rank(const Split& split, std::int64_t rank) {
    std::int64_t sum = 0;
    for (std::int64_t s = rank; s < split.stages(); s += split.ranks) sum += split.layers[static_cast<std::size_t>(s)];
    return sum;
}

// The rank and the rule where a rank's chunks differ.
std::optional<std::string> why_not_even(const Split& split) {
    for (std::int64_t s = split.ranks; s < split.stages(); ++s) {
        const std::int64_t rank = s % split.ranks, here = split.layers[static_cast<std::size_t>(s)];
        const std::int64_t first = split.layers[static_cast<std::size_t>(rank)];
        if (here != first)
            return fmt::format(
                "rank {} has chunks of {} and {} layers; the counts are of ranks, whose chunks are equal", rank, first,
                here);
    }
    return std::nullopt;
}

struct Names {
    std::string first, last, chunks;
};

Spelled spelled(const Split& split, const Names& names) {
    const auto said = first_last_of(split);
    if (!said.why_not.empty()) return {{}, said.why_not};
    Spelled all;
    if (said.counts.first) all.flags.push_back({names.first, std::to_string(*said.counts.first)});
    if (said.counts.last) all.flags.push_back({names.last, std::to_string(*said.counts.last)});
    if (said.counts.chunks > 1) all.flags.push_back({names.chunks, std::to_string(said.counts.chunks)});
    return all;
}

[[noreturn]] void refuse(const std::string& why) { fail(ErrorKind::input, "{}", why); }

void require_positive(const std::optional<std::int64_t>& layers, std::string_view which) {
    if (layers && *layers <= 0)
        refuse(fmt::format("the {} rank has {} layers, allowed are 1 and more", which, *layers));
}

// Layers of each rank.
std::vector<std::int64_t> layers_of_ranks(const FirstLast& counts, const LayoutFor& wanted) {
    const std::int64_t said = counts.first.value_or(0) + counts.last.value_or(0);
    const std::int64_t between = wanted.ranks - (counts.first ? 1 : 0) - (counts.last ? 1 : 0);
    const std::int64_t left = wanted.depth - said;
    if (between < 0) refuse("one rank is both the first and the last");
    if ((left != 0) != (between != 0) || left < 0)
        refuse(fmt::format("{} of {} layers are left for {} ranks between", left, wanted.depth, between));
    if (between > 0 && left % between != 0)
        refuse(fmt::format("{} layers are left for {} ranks between, which cannot share them evenly", left, between));
    std::vector<std::int64_t> layers(static_cast<std::size_t>(wanted.ranks), between > 0 ? left / between : 0);
    if (counts.first) layers.front() = *counts.first;
    if (counts.last) layers.back() = *counts.last;
    return layers;
}

}  // namespace

SpelledFirstLast first_last_of(const Split& split) {
    if (auto why = why_not_usual(split)) return {{}, std::move(*why)};
    if (auto why = why_not_even(split)) return {{}, std::move(*why)};
    const std::int64_t ranks = split.ranks, last = ranks - 1;
    // Of two ranks the first is said: Megatron Core 0.16.1 cannot number the layers of chunks where both are.
    const std::int64_t usual = layers_of_rank(split, ranks > 2 ? 1 : last);
    SpelledFirstLast said{{.chunks = split.chunks()}, {}};
    for (std::int64_t r = 0; r < ranks; ++r) {
        const std::int64_t here = layers_of_rank(split, r);
        if (here == 0) return {{}, fmt::format("rank {} has no layer; allowed are 1 and more", r)};
        if (here == usual) continue;
        if (r != 0 && r != last)
            return {
                {},
                fmt::format("rank {} has {} layers, rank 1 {}; ranks between the first and the last have equally many",
                            r, here, usual)};
        (r == 0 ? said.counts.first : said.counts.last) = here;
    }
    return said;
}

Spelled spell_first_last(const Split& split) {
    using L = MegatronLaunch;
    return spelled(split, {flag_of(&L::first), flag_of(&L::last), flag_of(&L::virtual_stages_per_rank)});
}

Spelled spell_first_last_swift(const Split& split) {
    return spelled(split, {"--decoder_first_pipeline_num_layers", "--decoder_last_pipeline_num_layers",
                           "--virtual_pipeline_model_parallel_size"});
}

Split split_of(const FirstLast& counts, const LayoutFor& wanted) {
    require_positive(counts.first, "first");
    require_positive(counts.last, "last");
    const auto layers = layers_of_ranks(counts, wanted);
    Split split{.ranks = wanted.ranks};
    split.layers.reserve(layers.size() * static_cast<std::size_t>(counts.chunks));
    for (std::int64_t chunk = 0; chunk < counts.chunks; ++chunk)
        for (std::size_t r = 0; r < layers.size(); ++r) {
            if (layers[r] % counts.chunks != 0)
                refuse(fmt::format("rank {} has {} layers, no multiple of its {} chunks", r, layers[r], counts.chunks));
            split.layers.push_back(layers[r] / counts.chunks);
        }
    return split;
}

}  // namespace pipeweaver::launch
