#include "service/watch/history.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::service {

void History::add(DoneStep step) {
    const std::lock_guard lock(mutex_);
    step.number = ++last_;
    steps_.push_back(std::move(step));
    if (steps_.size() > most_) steps_.pop_front();
}

std::vector<DoneStep> History::after(std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto first = std::upper_bound(steps_.begin(), steps_.end(), number,
                                        [](std::uint64_t seen, const DoneStep& one) { return seen < one.number; });
    return {first, steps_.end()};
}

}  // namespace pipeweaver::service
