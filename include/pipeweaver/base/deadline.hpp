// The project's one clock. Only service/, apps/ and the Python package read it; what lies below is handed a question
// ("may I go on?") that they answer with a Deadline, so that no result depends on the time.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
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

/// The moment at which work must end.
class Deadline {
public:
    /// The end comes `within` this time from now; none: never.
    explicit Deadline(std::optional<Duration> within) : within_(within) {}

    bool passed() const { return within_ && watch_.elapsed() >= *within_; }

private:
    Stopwatch watch_;
    std::optional<Duration> within_;
};

/// A budget that the parts of a piece of work share; it runs from when it is made.
class Budget {
public:
    /// A budget of `whole`, from now; none: one without an end.
    explicit Budget(std::optional<Duration> whole) : whole_(whole) {}

    /// The end of a part of the work that begins now and may use `part` of what is left, less `reserve`. Time that
    /// earlier parts took too much is missing to all later ones, and time that they did not need is theirs.
    Deadline next(double part, Duration reserve = {}) const {
        if (!whole_) return Deadline(std::nullopt);
        const double left = static_cast<double>((*whole_ - watch_.elapsed()).count());
        const Duration mine{static_cast<std::int64_t>(part * std::max(0.0, left))};
        return Deadline(std::max(Duration{0}, mine - reserve));
    }

private:
    Stopwatch watch_;
    std::optional<Duration> whole_;
};

}  // namespace pipeweaver
