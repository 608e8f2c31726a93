// Figures that may not be there, in a table.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

namespace pipeweaver::apps {

/// "2.50", or "-".
[[nodiscard]] inline std::string or_dash(const std::optional<double>& value, int digits) {
    return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

}  // namespace pipeweaver::apps
