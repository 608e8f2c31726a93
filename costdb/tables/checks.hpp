// What sizes and times may be, in questions and in tables.
#pragma once

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <cstdint>
#include <string_view>

namespace pipeweaver::costdb {

inline constexpr std::int64_t largest_size = std::int64_t{1} << 32;
inline constexpr std::int64_t largest_message = std::int64_t{1} << 50;

/// The longest that a measured operator may last: an hour.
inline constexpr std::int64_t longest_measured_ns = 3'600'000'000'000;
inline constexpr double longest_measured_us = 3'600'000'000;

inline void require(std::string_view name, std::int64_t value, std::int64_t largest = largest_size) {
    if (value < 1 || value > largest)
        fail(ErrorKind::input, "{}: {}", name, must_be(value, a_whole_number(1, largest)));
}

}  // namespace pipeweaver::costdb
