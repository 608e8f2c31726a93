#include "pipeweaver/base/figures.hpp"

#include <fmt/format.h>

namespace pipeweaver {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string seconds(Duration time, int decimals) {
    return fmt::format("{:.{}f} s", static_cast<double>(time.count()) * 1e-9, decimals);
}

double gib(Bytes size) { return static_cast<double>(size.count) / static_cast<double>((1_GiB).count); }

std::string times(double ratio) { return fmt::format("{:.3f}x", ratio); }

std::string noun_of(bool is_one, std::string_view noun) {
    return fmt::format("{}{}", noun, is_one ? "" : noun.ends_with("ch") ? "es" : "s");
}

}  // namespace pipeweaver
