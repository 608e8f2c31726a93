// GPUs on loan over the hours of a day, every day alike.
#pragma once

#include "pipeweaver/capacity/jobs.hpp"

#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::capacity {

class LoanTimes {
public:
    explicit LoanTimes(std::span<const LoanWindow> windows);

    std::int64_t gpus_at(Duration time) const;                 ///< Pre: time >= 0
    std::optional<Duration> next_change(Duration time) const;  ///< after it; none: it is always the same
    std::optional<Duration> next_rise(Duration time) const;    ///< to more GPUs
    std::optional<Duration> next_drop(Duration time) const;    ///< to fewer
    Wide gpu_time(Duration from, Duration until) const;        ///< GPUs times nanoseconds

private:
    struct Step {
        Duration at{};  // of the day
        std::int64_t gpus = 0;
    };

    std::vector<Step> steps_;  // none where it is always the same; else each differs from the one before
    std::int64_t always_ = 0;
};

}  // namespace pipeweaver::capacity
