#include "pipeweaver/planner/time.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace pipeweaver::planner {

using schedule::StopReason;

namespace {

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

class Told : public Time::Source {
public:
    Told(Time time, const OnDoing& on, const Doing& doing) : time_(std::move(time)), on_(on), doing_(doing) {}

    std::optional<schedule::StopReason> stop(const search::Progress& progress) override {
        if (progress.best > Duration{}) {  // a search asks, not what only wants to know whether time is left
            Doing now = doing_;
            now.search = progress;
            on_(now);
        }
        return time_.stop(progress);
    }

    std::optional<Duration> left() override { return time_.left(); }

    Time fraction(double part, Duration reserve) override {
        return Time(std::make_shared<Told>(time_.fraction(part, reserve), on_, doing_));
    }

private:
    Time time_;
    const OnDoing& on_;
    Doing doing_;
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

Executor told(const Executor& execute, const OnDoing& on, std::string_view what) {
    if (!on) return execute;
    return [&execute, &on, what](std::size_t count, const std::function<void(std::size_t)>& job) {
        std::atomic<std::size_t> done = 0;
        execute(count, [&](std::size_t k) {
            job(k);
            on({what, ++done, count, {}});
        });
    };
}

Time told(Time time, const OnDoing& on, const Doing& search) {
    if (!on || !time.keep_going()) return time;  // one without an end stays so
    return Time(std::make_shared<Told>(std::move(time), on, search));
}

}  // namespace pipeweaver::planner
