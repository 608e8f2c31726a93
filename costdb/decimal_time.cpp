#include "costdb/decimal_time.hpp"

#include <charconv>
#include <cstddef>
#include <limits>
#include <string>

namespace pipeweaver::costdb {

namespace {

/// digits * 10^power, or nothing.
std::optional<std::int64_t> scaled(std::string digits, int power) {
    bool up = false;
    if (power < 0) {
        const auto dropped = static_cast<std::size_t>(-power);
        if (dropped > digits.size()) return 0;
        up = digits[digits.size() - dropped] >= '5';
        digits.resize(digits.size() - dropped);
    }
    digits.erase(0, digits.find_first_not_of('0'));
    constexpr std::size_t most_digits = 19;
    if (digits.empty()) return up ? 1 : 0;
    if (digits.size() + static_cast<std::size_t>(power > 0 ? power : 0) > most_digits) return std::nullopt;
    if (power > 0) digits.append(static_cast<std::size_t>(power), '0');
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || value == std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    return value + (up ? 1 : 0);
}

}  // namespace

std::optional<std::int64_t> nanoseconds(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    const auto mantissa = text.substr(0, text.find_first_of("eE"));
    int exponent = 0;
    if (mantissa.size() < text.size()) {
        auto digits = text.substr(mantissa.size() + 1);
        if (digits.starts_with('+')) digits.remove_prefix(1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
        if (error != std::errc{} || end != digits.data() + digits.size() || exponent < -1000 || exponent > 1000)
            return std::nullopt;
    }
    const auto dot = mantissa.find('.');
    std::string digits(mantissa.substr(0, dot));
    if (dot != std::string_view::npos) {
        digits += mantissa.substr(dot + 1);
        exponent -= static_cast<int>(mantissa.size() - dot - 1);
    }
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    constexpr int from_microseconds = 3;
    const auto value = scaled(std::move(digits), exponent + from_microseconds);
    return value && negative ? std::optional(-*value) : value;
}

}  // namespace pipeweaver::costdb
