// What Planning knows of a session and of a step, for its sources alone.
#pragma once

#include "pipeweaver/planner/record.hpp"
#include "service/log.hpp"
#include "service/planning.hpp"
#include "service/reserve.hpp"
#include "service/watch/lateness.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>

namespace pipeweaver::service {

using SteadyClock = std::chrono::steady_clock;

inline constexpr Duration first_reserve = std::chrono::milliseconds(30);

// So many a second on average, and as many at once.
class Bucket {
public:
    bool take(double rate) {
        const auto now = SteadyClock::now();
        level_ = std::max(0.0, level_ - rate * std::chrono::duration<double>(now - last_).count());
        last_ = now;
        if (level_ + 1 > std::max(1.0, rate)) return false;
        ++level_;
        return true;
    }

private:
    double level_ = 0;
    TimePoint last_ = SteadyClock::now();
};

struct Planning::Step {
    std::int64_t number = 0;
    std::string samples, sha256;
    std::string request;  // that submitted it
    int priority = 0;
    TimePoint submitted;
    std::atomic<TimePoint> deadline, moved;  // moved: when the deadline became what it is
    planner::Batch batch;
    std::optional<planner::Begun> begun;  // its steps with quick policies, while it is queued for its search
    std::atomic<bool> unwanted = false;   // cancelled, or its session was closed
    bool settled = false;                 // its plan is stored, or kept here: it stays. Under the session's `storing`
    Course course;                        // its marks, each by the thread that has the step then

    // Under Planning's lock.
    StepState state = StepState::waiting;
    WaitsFor waits_for = WaitsFor::policy;
    std::string error;
    int status = 0;
    std::optional<Workers::Ticket> queued;  // for its search
    std::map<std::uint64_t, std::function<void()>> waiters;
    std::optional<StoredPlan> plan;  // of one that could not be stored, with its parts
    std::vector<Part> parts;
};

struct Planning::Session {
    std::string name, asked_sha256;

    // Under Planning's lock.
    std::shared_ptr<const planner::KeptSession>
        job;  // none: it is being opened. Shared: with the tasks that plan with it
    std::string kept, error;
    std::vector<Opened> openers;
    struct Again {
        std::string asked;
        Opened done;
    };
    bool closing = false, refused = false;  // refused: it could not be opened
    std::vector<Again> after_close;         // asked for while it is closed
    std::map<std::int64_t, StepPtr> steps;  // that wait, and the last of those that no store has
    std::size_t unfinished = 0, planned = 0, late = 0, failed = 0;
    Reserve reserve{first_reserve};
    Bucket bucket;

    std::atomic<TimePoint> wanted = TimePoint::max();  // the search of its first plan ends by then

    std::mutex storing;  // while something of it is stored or removed
    bool closed = false;
};

}  // namespace pipeweaver::service
