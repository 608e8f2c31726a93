#include "costdb/import/decimal_time.hpp"

#include <charconv>
#include <cstddef>

namespace pipeweaver::costdb {

namespace {

constexpr int most_exponent = 1000;

/// value * 10 + digit; false if that is too large.
bool push(std::int64_t& value, int digit) {
    return !__builtin_mul_overflow(value, std::int64_t{10}, &value) &&
           !__builtin_add_overflow(value, std::int64_t{digit}, &value);
}

std::optional<int> exponent_of(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    int exponent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    if (exponent < -most_exponent || exponent > most_exponent) return std::nullopt;
    return exponent;
}

/// The digits of `mantissa`, with the point `places` further to the right, as a whole number.
std::optional<std::int64_t> moved(std::string_view mantissa, int places) {
    const auto dot = mantissa.find('.');
    const auto whole_digits = static_cast<int>(dot == std::string_view::npos ? mantissa.size() : dot);
    const int kept = whole_digits + places;  // digits before the new point
    std::int64_t value = 0;
    int seen = 0;
    bool up = false;
    for (std::size_t i = 0; i < mantissa.size(); ++i) {
        if (i == dot) continue;
        if (mantissa[i] < '0' || mantissa[i] > '9') return std::nullopt;
        if (seen < kept && !push(value, mantissa[i] - '0')) return std::nullopt;
        up = up || (seen == kept && mantissa[i] >= '5');
        ++seen;
    }
    if (seen == 0) return std::nullopt;
    for (; seen < kept && value != 0; ++seen)
        if (!push(value, 0)) return std::nullopt;
    if (__builtin_add_overflow(value, std::int64_t{up ? 1 : 0}, &value)) return std::nullopt;
    return value;
}

}  // namespace

std::optional<std::int64_t> nanoseconds(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    const auto mantissa = text.substr(0, text.find_first_of("eE"));
    const auto exponent = mantissa.size() == text.size() ? 0 : exponent_of(text.substr(mantissa.size() + 1));
    if (!exponent) return std::nullopt;
    constexpr int from_microseconds = 3;
    const auto value = moved(mantissa, *exponent + from_microseconds);
    return value && negative ? std::optional(-*value) : value;
}

}  // namespace pipeweaver::costdb
