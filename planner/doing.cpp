#include "pipeweaver/planner/doing.hpp"

#include <atomic>
#include <memory>
#include <utility>

namespace pipeweaver::planner {

namespace {

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
