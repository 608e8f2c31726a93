// What Emscripten's libc++ lacks of C++20 and pipeweaver uses, ahead of each of its sources.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

// NOLINTBEGIN(cert-dcl58-cpp): that is what it is for
namespace std {

template <class To, class From>
To bit_cast(const From& from) noexcept {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}

/// Of a number in decimal, as the standard's: no white space, no '+', the longest that is one.
inline from_chars_result from_chars(const char* first, const char* last, double& value,
                                    chars_format format = chars_format::general) {
    const char* at = first;
    const auto digits = [&] {
        const char* begin = at;
        while (at != last && *at >= '0' && *at <= '9') ++at;
        return at - begin;
    };
    if (at != last && *at == '-') ++at;
    auto count = digits();
    if (at != last && *at == '.') {
        ++at;
        count += digits();
    }
    if (count == 0) return {first, errc::invalid_argument};
    if (format != chars_format::fixed && at != last && (*at == 'e' || *at == 'E')) {
        const char* mantissa = at++;
        if (at != last && (*at == '-' || *at == '+')) ++at;
        if (digits() == 0) at = mantissa;
    }
    const double read = strtod(string(first, at).c_str(), nullptr);
    if (read > 1.7976931348623157e308 || read < -1.7976931348623157e308) return {at, errc::result_out_of_range};
    value = read;
    return {at, errc{}};
}

/// The shortest decimal without exponent that reads back as `value`.
inline to_chars_result to_chars(char* first, char* last, double value, chars_format) {
    char text[2048];
    int size = 0;
    for (int places = 0; places < 1100; ++places) {
        size = snprintf(text, sizeof text, "%.*f", places, value);
        if (strtod(text, nullptr) == value) break;
    }
    if (size > last - first) return {last, errc::value_too_large};
    memcpy(first, text, static_cast<size_t>(size));
    return {first + size, errc{}};
}

namespace pipeweaver_older {

template <class T>
constexpr auto compared(const T& a, const T& b) {
    if constexpr (requires { a <=> b; })
        return a <=> b;
    else
        return a < b ? weak_ordering::less : b < a ? weak_ordering::greater : weak_ordering::equivalent;
}

template <class Tuple, size_t... I>
constexpr auto compared_members(const Tuple& a, const Tuple& b, index_sequence<I...>) {
    using Order = common_comparison_category_t<decltype(compared(get<I>(a), get<I>(b)))...>;
    Order order = Order::equivalent;
    static_cast<void>(((order = compared(get<I>(a), get<I>(b)), order != 0) || ...));
    return order;
}

template <class Range>
constexpr auto compared_elements(const Range& a, const Range& b) {
    using Order = decltype(compared(*a.begin(), *b.begin()));
    for (size_t i = 0; i < a.size() && i < b.size(); ++i)
        if (const Order order = compared(a.begin()[i], b.begin()[i]); order != 0) return order;
    return Order(a.size() <=> b.size());
}

}  // namespace pipeweaver_older

template <class T, size_t n>
constexpr auto operator<=>(const array<T, n>& a, const array<T, n>& b) {
    return pipeweaver_older::compared_elements(a, b);
}
template <class T, class A>
constexpr auto operator<=>(const vector<T, A>& a, const vector<T, A>& b) {
    return pipeweaver_older::compared_elements(a, b);
}
inline strong_ordering operator<=>(const string& a, const string& b) { return a.compare(b) <=> 0; }
inline strong_ordering operator<=>(string_view a, string_view b) { return a.compare(b) <=> 0; }
template <class... T>
constexpr auto operator<=>(const tuple<T...>& a, const tuple<T...>& b) {
    return pipeweaver_older::compared_members(a, b, index_sequence_for<T...>{});
}
template <class A, class B>
constexpr auto operator<=>(const pair<A, B>& a, const pair<A, B>& b) {
    return pipeweaver_older::compared_members(a, b, index_sequence_for<A, B>{});
}

namespace chrono {
template <class Rep, class Period>
constexpr strong_ordering operator<=>(const duration<Rep, Period>& a, const duration<Rep, Period>& b) {
    return a.count() <=> b.count();
}
}  // namespace chrono

}  // namespace std
// NOLINTEND(cert-dcl58-cpp)
