// What Planning tells of its steps: those that wait, and those that are done, with why they were late.
#include "pipeweaver/schedule/gap.hpp"
#include "service/planning_state.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::service {

namespace {

constexpr std::size_t longest_why = 300;

double seconds_between(TimePoint from, TimePoint to) { return std::chrono::duration<double>(to - from).count(); }

std::int64_t milliseconds_now() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

}  // namespace

void Planning::tell_planned(Session& session, const Step& step, const planner::Plan& plan) {
    Course course = step.course;
    course.submitted = step.submitted;
    course.deadline = step.deadline.load();
    if (const TimePoint moved = step.moved.load(); moved != step.submitted) course.moved = moved;
    DoneStep done;
    done.at_ms = milliseconds_now();
    done.session = session.name;
    done.step = step.number;
    done.seconds = seconds_between(course.submitted, course.settled);
    done.late_seconds = seconds_between(course.deadline, course.settled);
    done.gap = schedule::relative_gap(plan.makespan, plan.lower_bound);
    done.how = course.searched ? "search" : "policy";
    done.why = why_late(course);
    done.makespan_ns = plan.makespan.count();
    const bool late = done.late_seconds > 0;
    metrics_.planned(done.how, done.seconds, *done.gap, late);
    nlohmann::json fields{{"session", done.session},
                          {"step", done.step},
                          {"request", step.request},
                          {"seconds", done.seconds},
                          {"late_seconds", done.late_seconds},
                          {"gap", *done.gap},
                          {"how", done.how},
                          {"rounds", plan.replicas[std::min(plan.slowest, plan.replicas.size() - 1)].found.rounds}};
    if (late) fields["why_late"] = done.why;
    log_("planned", log_fields(fields));
    history_.add(std::move(done));
    const std::lock_guard lock(mutex_);
    if (late) ++session.late;
}

void Planning::tell_failed(Session& session, const Step& step, const std::string& why) {
    const TimePoint now = SteadyClock::now();
    DoneStep done;
    done.at_ms = milliseconds_now();
    done.session = session.name;
    done.step = step.number;
    done.seconds = seconds_between(step.submitted, now);
    done.late_seconds = seconds_between(step.deadline.load(), now);
    done.how = "none";
    done.why = why.substr(0, longest_why);
    metrics_.failed();
    log_("not planned", log_fields({{"session", done.session},
                                    {"step", done.step},
                                    {"request", step.request},
                                    {"late_seconds", done.late_seconds},
                                    {"why", why}}));
    history_.add(std::move(done));
    const std::lock_guard lock(mutex_);
    ++session.failed;
}

std::vector<QueuedStep> Planning::queue(std::size_t most) const {
    std::vector<QueuedStep> all;
    {
        const std::lock_guard lock(mutex_);
        all.reserve(unfinished_);
        for (const auto& [name, session] : sessions_)
            for (const auto& [number, step] : session->steps)
                if (step->state == StepState::waiting)
                    all.push_back({name, number, step->priority, step->batch.samples.size(), step->deadline.load(),
                                   step->waits_for});
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.deadline < b.deadline; });
    if (all.size() > most) all.resize(most);
    return all;
}

bool Planning::draining() const {
    const std::lock_guard lock(mutex_);
    return draining_;
}

}  // namespace pipeweaver::service
