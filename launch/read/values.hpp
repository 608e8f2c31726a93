// Values of settings as text.
#pragma once

#include "pipeweaver/launch/said.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

// Those of a setting throw Error{input} "WHERE: NAME: is 'x', must be ...".

[[nodiscard]] std::int64_t integer_of(const Setting& setting, std::int64_t least);

/// None: true. "true", "True", "1" and their opposites.
[[nodiscard]] bool boolean_of(const Setting& setting);

/// One of "a|b|c"; any where there are no choices.
[[nodiscard]] std::string text_of(const Setting& setting, std::string_view choices);

/// Several values, or one like "[a, b]" or "a,b".
[[nodiscard]] std::vector<std::string> texts_of(const Setting& setting);

/// Every value a list, its names parted by commas: "a,b" "c".
[[nodiscard]] std::vector<std::vector<std::string>> parted_lists_of(const Setting& setting);

/// Whether the value is "null" or "None".
[[nodiscard]] bool is_null(const Setting& setting);

/// "[[a,b],[c]]", quotes or not, as lists of names; none: it is no list of lists.
[[nodiscard]] std::optional<std::vector<std::vector<std::string>>> lists_of(const std::string& text);

}  // namespace pipeweaver::launch
