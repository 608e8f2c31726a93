#include "capacity/jobs/loan_times.hpp"

#include <algorithm>

namespace pipeweaver::capacity {

namespace {

constexpr Duration day = std::chrono::hours(24);

std::int64_t loaned_at(std::span<const LoanWindow> windows, Duration of_day) {
    for (const LoanWindow& window : windows)
        for (const Duration time : {of_day, of_day + day})
            if (window.from <= time && time < window.until) return window.gpus;
    return 0;
}

}  // namespace

LoanTimes::LoanTimes(std::span<const LoanWindow> windows) : always_(loaned_at(windows, Duration{})) {
    std::vector<Duration> edges;
    edges.reserve(2 * windows.size());
    for (const LoanWindow& window : windows) {
        edges.push_back(window.from);
        edges.push_back(window.until % day);
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    std::vector<Step> steps;
    steps.reserve(edges.size());
    for (const Duration edge : edges) steps.push_back({edge, loaned_at(windows, edge)});
    for (std::size_t i = 0; i < steps.size(); ++i)
        if (steps[i].gpus != steps[(i + steps.size() - 1) % steps.size()].gpus) steps_.push_back(steps[i]);
}

std::int64_t LoanTimes::gpus_at(Duration time) const {
    if (steps_.empty()) return always_;
    const Duration of_day = time % day;
    std::int64_t gpus = steps_.back().gpus;  // since yesterday
    for (const Step& step : steps_)
        if (step.at <= of_day) gpus = step.gpus;
    return gpus;
}

std::optional<Duration> LoanTimes::next_change(Duration time) const {
    if (steps_.empty()) return std::nullopt;
    const Duration of_day = time % day;
    for (const Step& step : steps_)
        if (step.at > of_day) return time - of_day + step.at;
    return time - of_day + day + steps_.front().at;
}

std::optional<Duration> LoanTimes::next_rise(Duration time) const {
    for (auto next = next_change(time); next; next = next_change(*next))
        if (gpus_at(*next) > gpus_at(*next - Duration(1))) return next;
    return std::nullopt;
}

std::optional<Duration> LoanTimes::next_drop(Duration time) const {
    for (auto next = next_change(time); next; next = next_change(*next))
        if (gpus_at(*next) < gpus_at(*next - Duration(1))) return next;
    return std::nullopt;
}

Wide LoanTimes::gpu_time(Duration from, Duration until) const {
    Wide sum = 0;
    while (from < until) {
        const Duration next = std::min(next_change(from).value_or(until), until);
        sum += Wide{gpus_at(from)} * (next - from).count();
        from = next;
    }
    return sum;
}

}  // namespace pipeweaver::capacity
