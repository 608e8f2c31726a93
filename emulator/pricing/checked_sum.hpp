// Sums of nanoseconds and bytes that say so where they would not fit.
#pragma once

#include "pipeweaver/base/error.hpp"

#include <cstdint>

namespace pipeweaver::emulator {

/// a + b. Throws Error{input} above 63 bits.
inline std::int64_t checked_sum(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum))
        fail(ErrorKind::input, "operators: their times or bytes add up to more than 2^63");
    return sum;
}

}  // namespace pipeweaver::emulator
