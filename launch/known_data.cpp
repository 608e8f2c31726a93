// What is known of the data that a launch names, without reading it.
#include "launch/check_parts.hpp"
#include "pipeweaver/frameworks/data_set.hpp"
#include "pipeweaver/frameworks/entry.hpp"
#include "pipeweaver/launch/said.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::launch {

namespace {

using frameworks::DataSet;

bool is_among_names(const std::vector<std::string_view>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// All that are named; none: one of them is not known, or samples are made of them in another way. A name without an
// owner is known in Megatron-Bridge alone: elsewhere it is a folder, or data that a user has registered.
std::vector<const DataSet*> data_sets_of(const SaidLaunch& said) {
    if (said.entry == nullptr || said.is_dump) return {};
    std::vector<const DataSet*> sets;
    for (const Setting& one : said.settings) {
        if (is_among_names(said.entry->remakes, one.name)) return {};
        if (!is_among_names(said.entry->data, one.name)) continue;
        for (const std::string& value : one.values) {
            const DataSet* const set = frameworks::data_set(value);
            const bool may_be_own = said.dialect != Dialect::bridge_overrides && value.find('/') == std::string::npos;
            if (set == nullptr || may_be_own) return {};
            sets.push_back(set);
        }
    }
    return sets;
}

// Another template than Qwen2.5's, and short words that a launch has put in, some of them more than once: no text has
// more tokens than bytes.
constexpr std::int64_t besides_a_sample = 512;

// A prompt may be the name of a file of text.
bool is_lengthened(const SaidLaunch& said) {
    constexpr std::size_t most_bytes = 128;
    std::size_t bytes = 0;
    for (const Setting& one : said.settings) {
        if (!is_among_names(said.entry->lengthens, one.name)) continue;
        for (const std::string& value : one.values) bytes += value.ends_with(".txt") ? most_bytes + 1 : value.size();
    }
    return bytes > most_bytes;
}

// Qwen2, Qwen2.5 and Qwen3 part text alike; their vocabularies differ by entries that stand for no text.
bool has_tokenizer_of_qwen(const workloads::Model& model) {
    constexpr std::int64_t least = 151'643, most = 152'064;
    const std::int64_t entries = model.modules[model.backbone()].architecture.vocab;
    return entries >= least && entries <= most;
}

std::optional<std::int64_t> most_of(const DataSet& set, const workloads::Model& model, bool of_questions) {
    const std::int64_t most = set.most == 0 && of_questions ? set.most_of_question : set.most;
    if (most == 0 || !has_tokenizer_of_qwen(model)) return std::nullopt;
    return most + besides_a_sample;
}

bool says_text(const SaidLaunch& said) {
    const auto is_said = [&](const std::pair<std::string_view, std::string_view>& text) {
        return std::any_of(said.settings.begin(), said.settings.end(), [&](const Setting& one) {
            return one.name == text.first && one.values.size() == 1 && one.values.front().starts_with(text.second);
        });
    };
    return said.entry != nullptr && std::any_of(said.entry->texts.begin(), said.entry->texts.end(), is_said);
}

}  // namespace

bool names_text_alone(const SaidLaunch& said) { return says_text(said) || most_images(said) == 0; }

std::optional<std::int64_t> most_images(const SaidLaunch& said) {
    const auto sets = data_sets_of(said);
    if (sets.empty()) return std::nullopt;
    return (*std::max_element(sets.begin(), sets.end(),
                              [](const DataSet* a, const DataSet* b) { return a->images < b->images; }))
        ->images;
}

std::optional<LongestNamed> longest_named(const SaidLaunch& said, const workloads::Model& model, bool of_questions) {
    const auto sets = data_sets_of(said);
    if (sets.empty() || is_lengthened(said)) return std::nullopt;
    LongestNamed longest;
    for (const DataSet* const set : sets) {
        const auto most = most_of(*set, model, of_questions);
        if (!most) return std::nullopt;
        if (*most > longest.tokens)
            longest = {*most, set->names.substr(0, set->names.find('|')), set->source, of_questions};
    }
    return longest;
}

std::string counted_as(const LongestNamed& longest) {
    return fmt::format("no {} of '{}' has more than {} tokens ({}): all are counted as long",
                       longest.of_questions ? "question" : "sample", longest.data_set, longest.tokens, longest.source);
}

}  // namespace pipeweaver::launch
