#include "pipeweaver/planner/time.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace pipeweaver::planner {

namespace {

using schedule::StopReason;

// The caller's, asked by one thread at a time.
struct Whole {
    Time::Left left;
    search::KeepGoing ask;
    std::mutex mutex;
};

// A part of the whole: over when no more is left of that than `end`.
class ByClock : public Time::Source {
public:
    ByClock(std::shared_ptr<Whole> whole, Duration end) : whole_(std::move(whole)), end_(end) {}

    std::optional<StopReason> stop(const search::Progress& progress) override {
        const std::scoped_lock lock(whole_->mutex);
        if (whole_->ask)
            if (const auto reason = whole_->ask(progress)) return reason;
        return whole_->left && whole_->left() <= end_ ? std::optional(StopReason::budget) : std::nullopt;
    }

    std::optional<Duration> left() override {
        const std::scoped_lock lock(whole_->mutex);
        return whole_->left ? std::optional(std::max(Duration{}, whole_->left() - end_)) : std::nullopt;
    }

    Time fraction(double part, Duration reserve) override {
        const std::scoped_lock lock(whole_->mutex);
        if (!whole_->left) return Time(std::make_shared<ByClock>(whole_, Duration{}));
        const Duration left = whole_->left();
        const double mine = part * static_cast<double>(std::max(Duration{}, left - end_).count());
        const Duration length = std::max(Duration{}, Duration{static_cast<std::int64_t>(mine)} - reserve);
        return Time(std::make_shared<ByClock>(whole_, std::max(end_, left - length)));
    }

private:
    std::shared_ptr<Whole> whole_;
    Duration end_;
};

}  // namespace

Time Time::until(Left left, search::KeepGoing ask) {
    auto whole = std::make_shared<Whole>();
    whole->left = std::move(left);
    whole->ask = std::move(ask);
    return Time(std::make_shared<ByClock>(std::move(whole), Duration{}));
}

Time Time::fraction(double part, Duration reserve) const { return source_ ? source_->fraction(part, reserve) : Time(); }

std::optional<StopReason> Time::stop(const search::Progress& progress) const {
    return source_ ? source_->stop(progress) : std::nullopt;
}

std::optional<Duration> Time::left() const { return source_ ? source_->left() : std::nullopt; }

search::KeepGoing Time::keep_going() const {
    if (!source_) return nullptr;
    return [time = *this](const search::Progress& progress) { return time.stop(progress); };
}

}  // namespace pipeweaver::planner
