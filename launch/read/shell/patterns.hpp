// Patterns of a shell, as far as they are plain: '*' stands for any letters, '?' for one.
#pragma once

#include "launch/read/words.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace pipeweaver::launch {

/// Whether a text is like a pattern of '*' and '?'. Time grows with the power of the number of stars.
[[nodiscard]] bool is_like(std::string_view text, std::string_view pattern);

/// The same of words of `case`; none: not known, or a form of patterns that is not read.
[[nodiscard]] std::optional<bool> has_pattern(const Word& subject, const Word& pattern);

/// A text without the shortest end ("%*.sh") or beginning ("#a/") that is like a pattern, or the longest ("%%", "##").
/// None: `rest` is another form.
[[nodiscard]] std::optional<std::string> cut_off(const std::string& text, const std::string& rest);

}  // namespace pipeweaver::launch
