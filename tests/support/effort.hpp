// How much of a test is run, and where. A usual run has each case once: on sanitized libraries, where all takes about
// five times as long, in its short form. What runs elsewhere: TEST_CASE("..." * testing::on_release_libraries()).
//
// Full form    what a test proves. Run where PIPEWEAVER_FULL is set and not empty, and on libraries without sanitizers.
// Short form   enough of the same for a sanitizer to see every line: fewer cases, rounds and threads. It must be able
//              to fail, too. PIPEWEAVER_SHORT asks for it on any libraries.
//
// scripts/cases.py knows the names of the suites below.
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

inline bool asked(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

inline bool short_form() { return asked("PIPEWEAVER_SHORT") || (sanitized() && !asked("PIPEWEAVER_FULL")); }

/// Where a case runs: a suite of doctest's, and whether this program skips it.
struct Place {
    const char* suite = nullptr;
    bool skipped = false;

    template <class Case>
    void fill(Case& test) const {
        test.m_test_suite = suite;
        test.m_skip = skipped;
    }
};

/// On the release libraries instead: quality or time, by code that other cases run on sanitized ones.
inline Place on_release_libraries() { return {"release libraries", short_form()}; }

/// On the release libraries alone, whatever is asked for: what sanitizers cannot do.
inline Place never_sanitized() { return {"release libraries", sanitized()}; }

/// On both, whose results are compared.
inline Place on_both_libraries() { return {"both libraries", false}; }

/// In --all=full alone: minutes, for what shorter cases look at, too.
inline Place in_long_runs() { return {"long runs", !asked("PIPEWEAVER_FULL")}; }

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
