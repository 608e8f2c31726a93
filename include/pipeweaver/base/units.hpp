// Time, memory and speed as integers with types, so that a byte is never taken for a nanosecond.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace pipeweaver {

/// Length of simulated time, in whole nanoseconds. Covers 292 years.
using Duration = std::chrono::nanoseconds;

/// Time a person waits. Limits and logs use it; no result may depend on it.
using WallTime = std::chrono::duration<double>;

/// Amount of memory or traffic, in bytes. Signed, so that a difference is a Bytes too.
struct Bytes {
    std::int64_t count = 0;

    friend constexpr auto operator<=>(Bytes, Bytes) = default;
    friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
    friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
    friend constexpr Bytes operator*(std::int64_t n, Bytes a) { return {n * a.count}; }
    constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
    constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }
};

/// Link or memory speed, in bytes per second.
struct Bandwidth {
    std::int64_t bytes_per_second = 0;

    friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;
};

/// Time to move `size` at `speed`, rounded up to the next nanosecond.
/// Pre: size >= 0, speed > 0.
constexpr Duration operator/(Bytes size, Bandwidth speed) {
    __extension__ using Wide = __int128;
    const Wide numerator = Wide{size.count} * 1'000'000'000 + speed.bytes_per_second - 1;
    return Duration{static_cast<std::int64_t>(numerator / speed.bytes_per_second)};
}

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 30}; }
}  // namespace literals

}  // namespace pipeweaver
