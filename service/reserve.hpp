// How long before a step's deadline its search ends: what it takes to put its plan together and to store it.
//
// Threads      one at a time.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <algorithm>
#include <optional>

namespace pipeweaver::service {

class Reserve {
public:
    /// `measured`: what a plan of the session's size takes once its search has ended.
    explicit Reserve(Duration measured) : Reserve(measured, measured) {}

    /// `first`: the same from when its search is told to end.
    Reserve(Duration measured, Duration first) : measured_(measured), now_(first) {}

    /// Gives that of a step which has so long from its submission to its deadline. What was learned takes no more than
    /// half of that time: else a session that was late once would not search any more, and never learn better.
    [[nodiscard]] Duration of(Duration whole) const { return std::min(now_, std::max(measured_, whole / 2)); }

    /// A plan was there so long after its search was told to end; none: nothing was searched. The next step's search
    /// has half as much again. What seldom takes so long is remembered for some hundred steps.
    void learn(std::optional<Duration> used) {
        const Duration sunk = now_ * 499 / 500;
        now_ = used ? std::max(*used * 3 / 2 + least_margin, sunk) : std::max(sunk, std::min(now_, measured_));
    }

private:
    static constexpr Duration least_margin = std::chrono::milliseconds(5);

    Duration measured_, now_;
};

}  // namespace pipeweaver::service
