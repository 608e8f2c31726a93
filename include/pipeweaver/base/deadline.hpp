// The project's one clock. Only service/, apps/ and the Python package read it; what lies below is handed a question
// ("may I go on?") that they answer with a Deadline, so that no result depends on the time.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <chrono>
#include <optional>

namespace pipeweaver {

/// Wall time since it was made.
class Stopwatch {
public:
    double seconds() const { return std::chrono::duration<double>(elapsed()).count(); }
    std::chrono::nanoseconds elapsed() const { return Clock::now() - begun_; }

private:
    using Clock = std::chrono::steady_clock;

    Clock::time_point begun_ = Clock::now();
};

/// The end of work that begins when it is made.
class Deadline {
public:
    /// After `share` of `budget`; none: never.
    explicit Deadline(std::optional<Duration> budget, double share = 1) : budget_(budget), share_(share) {}

    bool passed() const {
        return budget_ && watch_.elapsed() >= share_ * std::chrono::duration<double, std::nano>(*budget_);
    }

private:
    Stopwatch watch_;
    std::optional<Duration> budget_;
    double share_;
};

}  // namespace pipeweaver
