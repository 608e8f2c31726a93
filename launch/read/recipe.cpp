#include "launch/read/recipe.hpp"

#include "launch/read/entry.hpp"
#include "pipeweaver/frameworks/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace pipeweaver::launch {

namespace {

// "compute_dtype|-c=bf16": the value of the first of these flags that is said, else what is behind '='.
std::optional<std::string> value_of_flags(std::string_view part, const std::vector<Word>& words) {
    const std::size_t equals = part.find('=');
    std::string_view flags = part.substr(0, equals);
    while (!flags.empty()) {
        const std::string_view one = flags.substr(0, flags.find('|'));
        if (auto value = flag_value(words, one)) return value;
        flags.remove_prefix(std::min(flags.size(), one.size() + 1));
    }
    if (equals == std::string_view::npos) return std::nullopt;
    return std::string(part.substr(equals + 1));
}

// What stands for "{model}" in a name: the value of --model, or of a variable where it is in capital letters.
std::optional<std::string> part_of_name(std::string_view part, const std::vector<Word>& words,
                                        const Variables& variables) {
    const bool is_variable = part.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string_view::npos;
    if (!is_variable) return value_of_flags(part, words);
    const auto found = variables.find(std::string(part));
    return found == variables.end() ? std::nullopt : std::optional(found->second);
}

// "{model}_{mode}_config" with what the launch says; none: it does not say all of it.
std::optional<std::string> name_by(const frameworks::Entry& entry, std::string_view pattern,
                                   const std::vector<Word>& words, const Variables& variables) {
    std::string name;
    while (!pattern.empty()) {
        const std::size_t open = std::min(pattern.find('{'), pattern.size());
        name += pattern.substr(0, open);
        pattern.remove_prefix(open);
        if (pattern.empty()) break;
        const std::size_t close = pattern.find('}');
        auto part = part_of_name(pattern.substr(1, close - 1), words, variables);
        if (!part) return std::nullopt;
        if (part->ends_with(".toml")) part = part->substr(part->rfind('/') + 1);
        for (const auto& [said, as] : entry.recipe_words)
            if (*part == said) part = as;
        name += *part;
        pattern.remove_prefix(close + 1);
    }
    return name;
}

struct NamedRecipe {
    std::string name;
    frameworks::Recipe recipe;
};

// None: none is named, or none that is known.
std::optional<NamedRecipe> recipe_named(const frameworks::Entry& entry, const std::vector<Word>& words,
                                        const Variables& variables) {
    for (const std::string_view pattern : entry.recipes) {
        auto name = name_by(entry, pattern, words, variables);
        if (!name) continue;
        if (auto recipe = frameworks::recipe_called(entry.dialect, *name))
            return NamedRecipe{std::move(*name), std::move(*recipe)};
    }
    return std::nullopt;
}

// The last value of a setting; empty: it is not said.
std::string last_value(const std::vector<Setting>& settings, std::string_view name) {
    const auto found =
        std::find_if(settings.rbegin(), settings.rend(), [&](const Setting& one) { return one.name == name; });
    return found == settings.rend() || found->values.empty() ? std::string() : found->values.front();
}

// The degree that was said last; 1: none was, or more than 10^6, so that products of three stay in bounds.
std::int64_t number_said(const std::vector<Setting>& settings, std::string_view name) {
    constexpr std::int64_t most = 1'000'000;
    const std::string value = last_value(settings, name);
    std::int64_t number = 1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    return error == std::errc() && end == value.data() + value.size() && number > 0 && number <= most ? number : 1;
}

constexpr std::string_view pipeline_ranks = "model.pipeline_model_parallel_size",
                           chunks_of_a_rank = "model.virtual_pipeline_model_parallel_size";

// Where the launch says other degrees, the layout is the recipe's for these, if it has one
// (scripts/training/recipe_runner.py, sync_model_pipeline_layout).
void put_layout(const frameworks::Recipe& recipe, const std::string& where, const std::vector<Setting>& said,
                std::vector<Setting>& all) {
    constexpr std::string_view layout = "model.pipeline_model_parallel_layout";
    if (last_value(said, pipeline_ranks).empty() && last_value(said, chunks_of_a_rank).empty()) return;
    std::vector<Setting> both = all;
    both.insert(both.end(), said.begin(), said.end());
    const std::string name =
        fmt::format("{}@{}x{}", layout, number_said(both, pipeline_ranks), number_said(both, chunks_of_a_rank));
    for (const auto& [setting, value] : recipe.settings)
        if (setting == name) all.push_back({std::string(layout), {std::string(value)}, where});
}

// GPUs of a replica.
std::int64_t replica_of(const std::vector<Setting>& settings) {
    return number_said(settings, "model.tensor_model_parallel_size") * number_said(settings, pipeline_ranks) *
           number_said(settings, "model.context_parallel_size");
}

// A benchmark's batch is of its own GPUs, and as much for each replica on others
// (scripts/common/benchmark_parallelism.py, weak_scaled_global_batch_size).
void put_batch(const frameworks::Recipe& recipe, const std::string& where, const SaidLaunch& said,
               std::vector<Setting>& all) {
    constexpr std::string_view batch = "train.global_batch_size";
    for (const auto& [setting, value] : recipe.settings) {
        if (!setting.starts_with(batch) || setting.size() == batch.size()) continue;
        std::int64_t gpus = 0, samples = 0;
        std::from_chars(setting.data() + batch.size() + 1, setting.data() + setting.size(), gpus);
        std::from_chars(value.data(), value.data() + value.size(), samples);
        std::vector<Setting> both = all;
        both.insert(both.end(), said.settings.begin(), said.settings.end());
        const std::int64_t replicas = gpus / replica_of(all);
        const std::int64_t now = (said.gpus > 0 ? said.gpus : gpus) / replica_of(both);
        const bool is_whole = replicas > 0 && now > 0 && samples * now % replicas == 0;
        all.push_back({std::string(batch), {std::to_string(is_whole ? samples * now / replicas : samples)}, where});
    }
}

}  // namespace

std::optional<Dialect> dialect_by_recipe(const std::vector<Word>& words) {
    const frameworks::Entry* const started = entry_started(words);
    if (started != nullptr) return started->recipes.empty() ? std::nullopt : std::optional(started->dialect);
    const frameworks::Entry* const any = frameworks::entry_of(Dialect::bridge_overrides);
    return recipe_named(*any, words, {}) ? std::optional(any->dialect) : std::nullopt;
}

void put_recipe(const std::vector<Word>& words, SaidLaunch& said) {
    if (said.entry == nullptr) return;
    const auto named = recipe_named(*said.entry, words, said.variables);
    if (!named) return;
    const frameworks::Recipe& recipe = named->recipe;
    said.named = fmt::format("{} '{}'", said.entry->names, named->name);
    said.knows_named = true;
    said.framework = said.entry->recipe_framework;
    said.notes.push_back(
        fmt::format("{} is as {} has it, where the launch says nothing else", said.named, recipe.package));
    if (last_value(said.settings, "model.num_layers").empty()) said.named_model = recipe.model;
    const std::string where = fmt::format("{} of {}", said.named, recipe.package);
    std::vector<Setting> all;
    for (const auto& [name, value] : recipe.settings)
        if (name.find('@') == std::string_view::npos) all.push_back({std::string(name), {std::string(value)}, where});
    put_layout(recipe, where, said.settings, all);
    put_batch(recipe, where, said, all);
    said.settings.insert(said.settings.begin(), std::make_move_iterator(all.begin()),
                         std::make_move_iterator(all.end()));
}

}  // namespace pipeweaver::launch
