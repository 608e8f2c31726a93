// Figures as all answers spell them: text, pages and tables.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <concepts>
#include <string>
#include <string_view>

namespace pipeweaver {

/// "61.3 %" of a share of 1.
[[nodiscard]] std::string percent(double share);

/// "3.930 s".
[[nodiscard]] std::string seconds(Duration time, int decimals = 3);

/// A size in GiB.
[[nodiscard]] double gib(Bytes size);

/// How many times `b` is in `a`.
[[nodiscard]] inline double ratio(Duration a, Duration b) {
    return static_cast<double>(a.count()) / static_cast<double>(b.count());
}

/// "1.306x" of a ratio.
[[nodiscard]] std::string times(double ratio);

/// The noun alone, as so many have it: "rank", "ranks", "batches".
[[nodiscard]] std::string noun_of(bool is_one, std::string_view noun);

/// "1 item", "2 batches".
[[nodiscard]] std::string plural(std::integral auto count, std::string_view noun) {
    return std::to_string(count) + " " + noun_of(count == 1, noun);
}

}  // namespace pipeweaver
