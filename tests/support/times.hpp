// Times without a clock.
#pragma once

#include "pipeweaver/planner/time.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace pipeweaver::testing {

/// Time that is over, for this reason.
inline planner::Time ended(schedule::StopReason reason = schedule::StopReason::budget) {
    return planner::Time::until({}, [reason](const search::Progress&) { return std::optional(reason); });
}

/// Time of which every part is over after it was asked so often.
inline planner::Time after_questions(std::uint64_t most) {
    class Source : public planner::Time::Source {
    public:
        explicit Source(std::uint64_t most) : most_(most) {}
        std::optional<schedule::StopReason> stop(const search::Progress&) override {
            return asked_++ < most_ ? std::nullopt : std::optional(schedule::StopReason::budget);
        }
        planner::Time fraction(double, Duration) override { return after_questions(most_); }

    private:
        std::uint64_t most_;
        std::atomic<std::uint64_t> asked_ = 0;
    };
    return planner::Time(std::make_shared<Source>(most));
}

}  // namespace pipeweaver::testing
