// Numbers and names as people read and write them.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pipeweaver {

/// "1.234 s", "12.5 ms", "830 us", "17 ns": four significant digits at most.
[[nodiscard]] std::string human(Duration time);

/// "61.25 GiB", "3.5 MiB", "12 B".
[[nodiscard]] std::string human(Bytes size);

/// Reads "2s", "300ms", "1.5us", "20ns", "3min", "1h". Throws Error{input} for anything else (also without a unit),
/// for negative values and for values above 100 years.
[[nodiscard]] Duration parse_duration(std::string_view text);

/// Reads "80GiB", "1.5GB", "512MiB", "100KB", "17B" (decimal and binary units). Throws Error{input} as parse_duration
/// does; the largest value is 8 EiB - 1.
[[nodiscard]] Bytes parse_bytes(std::string_view text);

/// Reads "50GB/s", "400Gb/s", "3.35TB/s". Throws Error{input}, also for 0.
[[nodiscard]] Bandwidth parse_bandwidth(std::string_view text);

[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// `text` with its ASCII letters in lower case.
[[nodiscard]] inline std::string in_lower_case(std::string_view text) {
    std::string small(text);
    for (char& c : small)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return small;
}

/// The candidate most like `name` (Levenshtein distance, ties by order); above two letters one that `name` goes on from
/// behind a dash comes before it. Nothing if all differ in more than half of their letters.
[[nodiscard]] std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

/// "unknown model 'dip-vlm-x'; did you mean 'dip-vlm-s'?", or a list of all candidates where none is near.
[[nodiscard]] std::string unknown(std::string_view what, std::string_view name,
                                  std::span<const std::string> candidates);

// What errors say of a value, behind the place where it stands (file, key, option).

/// "is 'x', must be ALLOWED"; a number stands without quotes.
[[nodiscard]] std::string must_be(std::string_view is, std::string_view allowed);
[[nodiscard]] std::string must_be(std::int64_t is, std::string_view allowed);
/// The same of what is shown as it stands, like a value of JSON.
[[nodiscard]] std::string shown_must_be(std::string_view shown, std::string_view allowed);

/// "one of a, b, c"; of one name it alone.
[[nodiscard]] std::string one_of(std::span<const std::string> names);
/// "a whole number from 1 to 16".
[[nodiscard]] std::string a_whole_number(std::int64_t low, std::int64_t high);
/// "a number from 0.5 to 2".
[[nodiscard]] std::string a_number(double low, double high);

/// `text` with control characters, marks that hide or turn what follows, and bytes that are no UTF-8, written like
/// `\x1b`.
[[nodiscard]] std::string printable(std::string_view text);

/// One printable line: line ends become blanks; words, and what stands in quotes, are cut after 80 characters unless a
/// '/' is in them, as in the way of a file; of a line of more than 400 the middle is left out.
[[nodiscard]] std::string as_line(std::string text);

}  // namespace pipeweaver
