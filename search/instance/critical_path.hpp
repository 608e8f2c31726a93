// One longest path of a schedule, found again after a step only where the step may have led it elsewhere.
#pragma once

#include "search/instance/timing.hpp"

namespace pipeweaver::search {

class CriticalPath {
public:
    explicit CriticalPath(const Flat& flat);

    /// Nothing is known of the path any more.
    void forget() { known_ = false; }

    /// A step was kept that changed times, or what tasks wait for, or places, between these at most.
    void change(std::uint32_t first, std::uint32_t last);

    /// Tasks on the path that start the moment the task before them on their rank ends, the last one first.
    const std::vector<std::uint32_t>& tasks(const TaskOrder& order, const Timing& timing);

private:
    std::uint32_t last_task(const TaskOrder& order, const Timing& timing) const;
    std::uint32_t step_back(const TaskOrder& order, const Timing& timing, std::uint32_t task);

    const Flat* flat_;
    bool known_ = false;
    std::uint32_t first_ = UINT32_MAX, last_ = 0;  // places of changes since it was found
    struct Stop {
        std::uint32_t task;
        std::uint32_t critical;  // how many of the stops before it are critical
    };
    std::vector<Stop> path_, old_path_;  // from the end
    std::vector<std::uint32_t> critical_, old_critical_;
};

}  // namespace pipeweaver::search
