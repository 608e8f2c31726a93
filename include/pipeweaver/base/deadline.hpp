// The project's one clock. Only service/, apps/ and the Python package read it; what lies below is handed a question
// ("how much time is left?"), so that no result depends on the time.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <optional>

namespace pipeweaver {

/// A clock that tells the wall time since it was made.
class Stopwatch {
public:
    double seconds() const { return std::chrono::duration<double>(elapsed()).count(); }
    std::chrono::nanoseconds elapsed() const { return Clock::now() - begun_; }

private:
    using Clock = std::chrono::steady_clock;

    Clock::time_point begun_ = Clock::now();
};

/// A clock that tells what its thread has computed since it was made: what others run at the same time does not count.
class ThreadStopwatch {
public:
    std::chrono::nanoseconds elapsed() const { return now() - begun_; }

private:
    static std::chrono::nanoseconds now() {
        timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    }

    std::chrono::nanoseconds begun_ = now();
};

/// What is left of a time that began with the watch; null for a time without an end.
inline std::function<std::chrono::nanoseconds()> time_left(std::optional<std::chrono::nanoseconds> whole,
                                                           const Stopwatch& watch = {}) {
    if (!whole) return nullptr;
    return [whole = *whole, watch] { return std::max(whole - watch.elapsed(), std::chrono::nanoseconds{0}); };
}

}  // namespace pipeweaver
