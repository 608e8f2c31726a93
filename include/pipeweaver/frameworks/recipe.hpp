// Recipes of frameworks by name: what each sets that a launch does not say. Tables beside the frameworks' settings,
// read from released packages by tools/read_recipes.py, which has their format.
//
// Determinism  Tables alone.
#pragma once

#include "pipeweaver/frameworks/entry.hpp"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::frameworks {

struct Recipe {
    std::string_view package;  ///< with its version: "Megatron-Bridge 0.6.0"
    std::string_view model;    ///< as its repository is called; empty: none is named
    /// In the words of the dialect, with their values; "NAME@16x2" holds for 16 pipeline ranks of 2 chunks, a global
    /// batch "NAME@64" for 64 GPUs: with more replicas it is larger.
    std::vector<std::pair<std::string_view, std::string_view>> settings;
};

/// The recipe that launches of a dialect call so: "qwen3_8b_sft_config", of torchtitan "llama3/llama3_8b", or before
/// 0.3 "llama3_8b.toml". None: no table has it.
[[nodiscard]] std::optional<Recipe> recipe_called(Dialect dialect, std::string_view name);

/// All names that recipe_called() knows, as the tables have them.
[[nodiscard]] std::vector<std::string_view> recipe_names(Dialect dialect);

}  // namespace pipeweaver::frameworks
