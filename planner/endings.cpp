#include "planner/endings.hpp"

#include "pipeweaver/base/error.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace pipeweaver::planner {

namespace {

using schedule::StopReason;

class Counted : public Time::Source {
public:
    Counted(Time time, Stops& stops, std::optional<std::size_t> part)
        : time_(std::move(time)), stops_(stops), part_(part) {}

    // What was over once stays so, as it will when it is played back.
    std::optional<StopReason> stop(const search::Progress& progress) override {
        const std::scoped_lock lock(mutex_);
        if (over_) return over_;
        over_ = time_.stop(progress);
        if (!over_)
            ++asked_;
        else if (part_)
            stops_[*part_] = asked_;
        return over_;
    }

    Time fraction(double part, Duration reserve) override {
        stops_.emplace_back();
        return Time(std::make_shared<Counted>(time_.fraction(part, reserve), stops_, stops_.size() - 1));
    }

private:
    Time time_;
    Stops& stops_;
    std::optional<std::size_t> part_;  // its place in `stops_`; none: it is the whole, whose end no search asks for
    std::uint64_t asked_ = 0;
    std::optional<StopReason> over_;
    std::mutex mutex_;
};

class Again : public Time::Source {
public:
    Again(const Ending& ending, std::shared_ptr<std::size_t> opened, std::uint64_t times)
        : ending_(ending), opened_(std::move(opened)), left_(times) {}

    std::optional<StopReason> stop(const search::Progress&) override {
        const std::scoped_lock lock(mutex_);
        if (left_ == 0) return StopReason::budget;
        --left_;
        return std::nullopt;
    }

    Time fraction(double, Duration) override {
        if (!ending_) return Time(std::make_shared<Again>(ending_, opened_, 0));
        if (*opened_ == ending_->size())
            fail(ErrorKind::input, "endings: has {} entries for a replica, its search asks for more", ending_->size());
        const std::uint64_t times = (*ending_)[(*opened_)++].value_or(UINT64_MAX);
        return Time(std::make_shared<Again>(ending_, opened_, times));
    }

private:
    const Ending& ending_;
    std::shared_ptr<std::size_t> opened_;  // parts so far, of all that come from one whole
    std::uint64_t left_;
    std::mutex mutex_;
};

}  // namespace

Time counted(const Time& time, Stops& stops) { return Time(std::make_shared<Counted>(time, stops, std::nullopt)); }

Time again(const Ending& ending) {
    return Time(std::make_shared<Again>(ending, std::make_shared<std::size_t>(0), UINT64_MAX));
}

}  // namespace pipeweaver::planner
