// Planning's steps: submitted, planned by policy, searched in time, stored.
#include "pipeweaver/base/files.hpp"
#include "service/planning_state.hpp"

#include <algorithm>
#include <fstream>
#include <unistd.h>
#include <utility>

namespace pipeweaver::service {

namespace {

constexpr std::size_t most_remembered = 64;  // steps of a session that failed, were cancelled or could not be stored

StoredPlan summary(const planner::Plan& plan, const planner::How& how) {
    StoredPlan stored;
    const auto& slowest = plan.replicas[std::min(plan.slowest, plan.replicas.size() - 1)].found;
    stored.how = planner::to_json(how);
    stored.strategy = slowest.strategy;
    stored.makespan_ns = plan.makespan.count();
    stored.lower_bound_ns = plan.lower_bound.count();
    stored.step_ns = plan.step.count();
    stored.rounds = slowest.rounds;
    return stored;
}

Refusal other_contents(std::int64_t step) {
    return {409, fmt::format("step {}: was submitted with other samples", step)};
}

// Of this process; 0: the system does not say.
std::size_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0, resident = 0;
    if (!(statm >> pages >> resident)) return 0;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// What a submission of a step that was served is told.
std::optional<Refusal> known_as(const StoredPlan& served, const std::string& sha256) {
    if (served.samples_sha256 != sha256) return other_contents(served.step);
    return std::nullopt;
}

}  // namespace

std::optional<Refusal> Planning::refused_for_load(Session& session, const Step& step) {
    const auto& together = limits_.together;
    const auto refuse = [&](const char* why, std::string message) {
        metrics_.refused(why);
        return Refusal{429, std::move(message), 1};
    };
    if (unfinished_ >= together.steps || samples_ + step.batch.samples.size() > together.samples ||
        bytes_ + step.samples.size() > together.bytes)
        return refuse("server",
                      fmt::format("all sessions together have {} unfinished steps of {} samples ({} bytes), "
                                  "allowed are {} of {} ({})",
                                  unfinished_, samples_, bytes_, together.steps, together.samples, together.bytes));
    if (const std::size_t memory = together.memory; memory > 0 && unfinished_ > 0 && resident_bytes() > memory)
        return refuse("memory", fmt::format("the server has {} unfinished steps and takes more memory than {} bytes",
                                            unfinished_, memory));
    const bool is_full = session.unfinished >= limits_.queue;
    if (!is_full && session.bucket.take(limits_.rate)) return std::nullopt;
    return refuse(is_full ? "queue" : "rate",
                  fmt::format("session '{}': has {} unfinished steps, or more submissions a second than {}",
                              session.name, session.unfinished, limits_.rate));
}

Planning::StepPtr Planning::step_of(std::int64_t number, const std::string& sha, const planner::KeptSession& job,
                                    Submission submission, TimePoint submitted) {
    auto step = std::make_shared<Step>();
    step->number = number;
    step->sha256 = sha;
    step->submitted = step->moved = submitted;
    step->deadline = submitted + submission.within;
    step->priority = submission.priority;
    step->request = std::move(submission.request);
    step->batch = job.batch(number, submission.samples);
    step->samples = std::move(submission.samples);
    return step;
}

std::optional<Refusal> Planning::submit(const std::string& name, std::int64_t number, Submission submission,
                                        bool& fresh) {
    fresh = false;
    const auto submitted = SteadyClock::now();
    const std::string sha = sha256(submission.samples);
    std::unique_lock lock(mutex_);
    const SessionPtr session = find(name);
    if (!session) return unknown_session(name);
    if (const auto known = session->steps.find(number); known != session->steps.end()) {
        if (known->second->sha256 != sha) return other_contents(number);
        const StepState state = known->second->state;
        if (state == StepState::waiting || state == StepState::planned) return std::nullopt;
    }
    if (draining_) return Refusal{503, "the server is ending", 1};
    const auto job = session->job;
    if (!job) return not_ready(name, session->error);
    std::size_t planned = session->planned;
    lock.unlock();
    if (const auto known = served(name, number)) return known_as(*known, sha);
    const auto step = step_of(number, sha, *job, std::move(submission), submitted);
    if (step->batch.samples.size() > limits_.samples)
        return Refusal{413, fmt::format("step {}: has {} samples, allowed are {}", number, step->batch.samples.size(),
                                        limits_.samples)};
    lock.lock();
    // Meanwhile a plan of the step may have been stored, submitted by another call.
    while (std::exchange(planned, session->planned) != session->planned) {
        lock.unlock();
        if (const auto known = served(name, number)) return known_as(*known, sha);
        lock.lock();
    }
    if (find(name) != session) return unknown_session(name);
    if (draining_) return Refusal{503, "the server is ending", 1};
    if (auto refusal = refused_for_load(*session, *step)) return refusal;
    if (const auto [place, is_new] = session->steps.try_emplace(number, step); !is_new) {
        if (place->second->state == StepState::waiting)
            return place->second->sha256 == sha ? std::nullopt : std::optional(other_contents(number));
        place->second = step;
    }
    ++session->unfinished;
    samples_ += step->batch.samples.size();
    bytes_ += step->samples.size();
    metrics_.unfinished(++unfinished_);
    lock.unlock();
    fresh = true;
    metrics_.submitted();
    workers_.soon([this, session, step] { by_policy(session, step); });
    return std::nullopt;
}

void Planning::by_policy(const SessionPtr& session, const StepPtr& step) {
    if (step->unwanted) return;
    step->course.policy = SteadyClock::now();
    try {
        step->begun = job_of(session)->session.begin(step->batch, workers_.quick_executor());
    } catch (const std::exception& error) {
        return failed(session, step, error);
    }
    step->course.drafted = SteadyClock::now();
    step->course.before = turns_;  // until its turn: those of all
    // Where no policy applies a search may find a plan.
    step->course.has_draft = step->begun->has_policy();
    if (step->course.has_draft)
        metrics_.drafted(std::chrono::duration<double>(step->course.drafted - step->submitted).count());
    const std::lock_guard lock(mutex_);
    if (step->state != StepState::waiting) return step->begun.reset();
    step->waits_for = WaitsFor::turn;
    step->queued = workers_.by(
        due(*session, *step), [this, session, step] { search(session, step); }, step->priority);
}

std::shared_ptr<const planner::KeptSession> Planning::job_of(const SessionPtr& session) const {
    const std::lock_guard lock(mutex_);
    return session->job;
}

TimePoint Planning::due(const Session& session, const Step& step) {
    const TimePoint deadline = step.deadline.load();
    return deadline - session.reserve.of(deadline - step.submitted);
}

void Planning::hurry(const std::string& name, std::int64_t number, Duration within) {
    const TimePoint wanted = SteadyClock::now() + within;
    std::unique_lock lock(mutex_);
    const SessionPtr session = find(name);
    if (!session) return;
    const auto found = session->steps.find(number);
    if (found == session->steps.end() || found->second->state != StepState::waiting) return;
    const StepPtr step = found->second;
    if (step->deadline.load() <= wanted) return;
    step->deadline = wanted;
    step->moved = SteadyClock::now();
    if (step->queued) workers_.move(*step->queued, due(*session, *step));
}

planner::Time Planning::until(const StepPtr& step, Duration reserve) const {
    const auto begun = SteadyClock::now();
    const auto left = [step, reserve] { return step->deadline.load() - reserve - SteadyClock::now(); };
    return planner::Time::until(left, [this, step, begun](const search::Progress&) {
        const bool ends = ending_ || step->unwanted || workers_.must_yield(begun);
        return ends ? std::optional(schedule::StopReason::budget) : std::nullopt;
    });
}

void Planning::search(const SessionPtr& session, const StepPtr& step) {
    std::unique_lock lock(mutex_);
    const Duration reserve = session->reserve.of(step->deadline.load() - step->submitted);
    const auto job = session->job;
    step->queued.reset();
    step->waits_for = WaitsFor::search;
    lock.unlock();
    planner::Begun begun = std::move(*step->begun);
    step->begun.reset();
    step->course.turn = SteadyClock::now();
    step->course.before = turns_++ - step->course.before;
    step->course.reserve = reserve;
    if (step->unwanted) return;
    const bool drafted = begun.has_policy();
    try {
        if (drafted && SteadyClock::now() >= step->deadline.load() - reserve)
            return finish(session, step, job->session.by_policy(begun), std::nullopt, reserve);
        try {
            return search_until(session, step, std::move(begun), reserve);
        } catch (const std::exception& error) {
            if (!drafted) throw;
            log_("not searched",
                 log_fields({{"session", session->name}, {"step", step->number}, {"why", error.what()}}));
        }
        finish(session, step, job->session.by_policy(step->batch, in_order), std::nullopt, reserve);
    } catch (const std::exception& error) {
        failed(session, step, error);
    }
}

void Planning::search_until(const SessionPtr& session, const StepPtr& step, planner::Begun begun, Duration reserve) {
    const bool drafted = begun.has_policy();
    planner::Endings endings;
    const auto plan =
        job_of(session)->session.plan(std::move(begun), workers_.executor(), until(step, reserve), &endings);
    // Where there is no plan by policy nothing but the endings says how this one was found.
    const bool searched =
        !drafted || std::any_of(endings.begin(), endings.end(), [](const auto& one) { return one.has_value(); });
    finish(session, step, plan, searched ? planner::How(endings) : planner::How(), reserve);
}

bool Planning::settle(const SessionPtr& session, const StepPtr& step, StoredPlan stored, std::vector<Part> parts) {
    const std::lock_guard storing(session->storing);
    if (session->closed || step->unwanted) return false;
    try {
        store_.add(session->name, stored, parts);
    } catch (const Error& error) {
        metrics_.not_stored();
        log_("plan not stored",
             log_fields({{"session", session->name}, {"step", step->number}, {"why", error.what()}}));
        const std::lock_guard lock(mutex_);
        step->plan = std::move(stored);
        step->parts = std::move(parts);
        step->course.stored = false;
    }
    step->settled = true;
    return true;
}

void Planning::finish(const SessionPtr& session, const StepPtr& step, const planner::Plan& plan,
                      const planner::How& how, Duration reserve) {
    if (step->unwanted) return;
    Course& course = step->course;
    course.searched = how.has_value();
    course.found = SteadyClock::now();
    StoredPlan stored = summary(plan, how);
    stored.step = step->number;
    stored.samples_sha256 = step->sha256;
    stored.samples = step->samples;
    stored.planning_ns = Duration(course.found - step->submitted).count();
    auto parts = parts_of(job_of(session)->session.job(), step->batch, plan);
    course.made = SteadyClock::now();
    if (!settle(session, step, std::move(stored), std::move(parts))) return;
    course.settled = SteadyClock::now();
    tell_planned(*session, *step, plan);
    {
        const std::lock_guard lock(mutex_);
        // The search was told to end when its reserve began, or when its deadline came nearer.
        const Duration used = course.settled - std::max(step->deadline.load() - reserve, step->moved.load());
        session->reserve.learn(how && used > Duration{} ? std::optional(used) : std::nullopt);
    }
    done(session, step, StepState::planned);
}

void Planning::failed(const SessionPtr& session, const StepPtr& step, const std::exception& error) {
    tell_failed(*session, *step, error.what());
    {
        const std::lock_guard lock(mutex_);
        step->error = error.what();
        step->status = refusal_of(error).status;
    }
    done(session, step, StepState::failed);
}

void Planning::done(const SessionPtr& session, const StepPtr& step, StepState state) {
    std::map<std::uint64_t, std::function<void()>> waiters;
    {
        const std::lock_guard lock(mutex_);
        if (step->state != StepState::waiting) return;
        step->state = state;
        if (state == StepState::cancelled) step->unwanted = true;
        if (step->queued && workers_.drop(*step->queued)) step->begun.reset();
        step->queued.reset();
        waiters.swap(step->waiters);
        --session->unfinished;
        samples_ -= step->batch.samples.size();
        bytes_ -= step->samples.size();
        metrics_.unfinished(--unfinished_);
        if (state == StepState::planned) {
            ++session->planned;
            if (!step->plan) session->steps.erase(step->number);  // the store has it
        }
        // Of those that no store has the oldest are forgotten.
        std::size_t remembered = session->steps.size() - session->unfinished;
        for (auto one = session->steps.begin(); remembered > most_remembered && one != session->steps.end();) {
            const bool forget = one->second->state != StepState::waiting;
            remembered -= forget ? 1 : 0;
            one = forget ? session->steps.erase(one) : std::next(one);
        }
    }
    for (const auto& [number, done] : waiters) done();
}

}  // namespace pipeweaver::service
