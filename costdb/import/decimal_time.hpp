// Microseconds in decimal digits as whole nanoseconds, exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pipeweaver::costdb {

/// "1712195495519689.123" -> 1712195495519689123; exponents allowed; digits below a nanosecond are rounded, a half
/// upwards. Nothing for what is no decimal number, and beyond 9.2e18 ns.
[[nodiscard]] std::optional<std::int64_t> nanoseconds(std::string_view microseconds);

}  // namespace pipeweaver::costdb
