// How much of a test is run: its full form, or, on sanitized libraries, where all takes about five times as long, its
// short form.
//
// Full form    what a test proves. Under sanitizers it is run where PIPEWEAVER_FULL is set and not empty.
// Short form   enough of the same for a sanitizer to see every line: fewer cases, rounds and threads. It must be able
//              to fail, too. What has no memory of its own to look at is skipped whole:
//              TEST_CASE("..." * doctest::skip(testing::short_form())).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

// Sanitizers' runtimes define these, and tests are not compiled with sanitizers: only the program can tell.
extern "C" {
void __asan_init() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)
void __tsan_init() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)
}

namespace pipeweaver::testing {

/// Whether this program runs on libraries that were compiled with the address or the thread sanitizer.
inline bool sanitized() { return &__asan_init != nullptr || &__tsan_init != nullptr; }

inline bool short_form() {
    const char* full = std::getenv("PIPEWEAVER_FULL");
    return sanitized() && (full == nullptr || *full == '\0');
}

/// The first in the full form, the second in the short one.
template <class T>
T full_or_short(const T& full, const T& in_short) {
    return short_form() ? in_short : full;
}

/// For "on any number of threads".
inline int many_threads() { return full_or_short(16, 4); }

/// How many cases of a kind are tried.
struct Cases {
    std::uint64_t full = 0;   ///< in the full form
    std::uint64_t count = 0;  ///< in this one

    /// What a counter must pass if it must pass `of_full` in the full form: in the short one half the same share, since
    /// of few cases shares scatter.
    [[nodiscard]] std::uint64_t share(std::uint64_t of_full) const {
        return count == full ? of_full : of_full * count / (2 * full);
    }
};

inline Cases cases(std::uint64_t full, std::uint64_t in_short) { return {full, full_or_short(full, in_short)}; }

/// An eighth in the short form.
inline Cases cases(std::uint64_t full) { return cases(full, std::max<std::uint64_t>(full / 8, 1)); }

}  // namespace pipeweaver::testing
