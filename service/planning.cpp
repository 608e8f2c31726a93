// Planning's steps: submitted, planned by policy, searched in time, stored.
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "service/planning_state.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::service {

namespace {

constexpr Duration least_margin = std::chrono::milliseconds(5);
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

Refusal not_ready(const std::string& session, const std::string& error) {
    if (!error.empty()) return {500, error};
    return {503, fmt::format("session '{}': is being opened", session), 1};
}

Refusal other_contents(std::int64_t step) {
    return {409, fmt::format("step {}: was submitted with other samples", step)};
}

}  // namespace

std::optional<Refusal> Planning::submit(const std::string& name, std::int64_t number, std::string samples,
                                        Duration within, bool& fresh) {
    fresh = false;
    const auto submitted = SteadyClock::now();
    const std::string sha = sha256(samples);
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
    lock.unlock();
    if (const auto served = store_.plan(name, number)) {
        if (served->samples_sha256 != sha) return other_contents(number);
        return std::nullopt;
    }
    auto step = std::make_shared<Step>();
    step->number = number;
    step->sha256 = sha;
    step->submitted = submitted;
    step->deadline = submitted + within;
    step->batch = job->batch(number, samples);
    step->samples = std::move(samples);
    if (step->batch.samples.size() > limits_.samples)
        return Refusal{413, fmt::format("step {}: has {} samples, allowed are {}", number, step->batch.samples.size(),
                                        limits_.samples)};
    lock.lock();
    if (session->unfinished >= limits_.queue || !session->bucket.take(limits_.rate)) {
        metrics_.refused(session->unfinished >= limits_.queue ? "queue" : "rate");
        return Refusal{429,
                       fmt::format("session '{}': has {} unfinished steps, or more submissions a second than {}", name,
                                   session->unfinished, limits_.rate),
                       1};
    }
    if (const auto [place, is_new] = session->steps.try_emplace(number, step); !is_new) {
        if (place->second->state == StepState::waiting)
            return place->second->sha256 == sha ? std::nullopt : std::optional(other_contents(number));
        place->second = step;
    }
    ++session->unfinished;
    metrics_.unfinished(++unfinished_);
    lock.unlock();
    fresh = true;
    metrics_.submitted();
    workers_.soon([this, session, step] { by_policy(session, step); });
    return std::nullopt;
}

void Planning::by_policy(const SessionPtr& session, const StepPtr& step) {
    if (step->unwanted) return;
    std::unique_lock lock(mutex_);
    const auto job = session->job;
    lock.unlock();
    try {
        step->draft = job->session.by_policy(step->batch, in_order);
    } catch (const std::exception& error) {
        return failed(session, step, error);
    }
    metrics_.drafted(std::chrono::duration<double>(SteadyClock::now() - step->submitted).count());
    step->drafted = true;
    enqueue(session, step);
}

void Planning::enqueue(const SessionPtr& session, const StepPtr& step) {
    std::unique_lock lock(mutex_);
    const TimePoint due = step->deadline.load() - session->reserve;
    lock.unlock();
    workers_.by(due, [this, session, step] { search(session, step); });
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
    lock.unlock();
    if (step->drafted && !step->searched) enqueue(session, step);
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
    if (step->searched.exchange(true) || step->unwanted) return;
    std::unique_lock lock(mutex_);
    const auto job = session->job;
    const Duration reserve = session->reserve;
    const TimePoint due = step->deadline.load() - reserve;
    lock.unlock();
    const TimePoint begun = SteadyClock::now();
    try {
        if (begun >= due) return finish(session, step, *step->draft, std::nullopt);
        planner::Endings endings;
        const auto plan = job->session.plan(step->batch, workers_.executor(), until(step, reserve), {}, &endings);
        const bool searched =
            std::any_of(endings.begin(), endings.end(), [](const auto& one) { return one.has_value(); });
        finish(session, step, plan, searched ? planner::How(std::move(endings)) : planner::How());
    } catch (const std::exception& error) {
        failed(session, step, error);
    }
}

void Planning::finish(const SessionPtr& session, const StepPtr& step, const planner::Plan& plan,
                      const planner::How& how) {
    if (step->unwanted) return;
    std::unique_lock asking(mutex_);
    const auto job = session->job;
    asking.unlock();
    auto parts = parts_of(job->session.job(), step->batch, plan);
    StoredPlan stored = summary(plan, how);
    stored.step = step->number;
    stored.samples_sha256 = step->sha256;
    stored.samples = step->samples;
    std::string why_not;
    try {
        const std::lock_guard storing(session->storing);
        if (session->closed || step->unwanted) return;
        store_.add(session->name, stored, parts);
    } catch (const Error& error) {
        why_not = error.what();
        metrics_.not_stored();
        log_("plan not stored", log_fields({{"session", session->name}, {"step", step->number}, {"why", why_not}}));
    }
    const TimePoint now = SteadyClock::now();
    const double gap = schedule::relative_gap(plan.makespan, plan.lower_bound);
    const double seconds = std::chrono::duration<double>(now - step->submitted).count();
    metrics_.planned(how ? "search" : "policy", seconds, gap, now > step->deadline.load());
    log_("planned", log_fields({{"session", session->name},
                                {"step", step->number},
                                {"seconds", seconds},
                                {"gap", gap},
                                {"how", how ? "search" : "policy"},
                                {"rounds", stored.rounds}}));
    {
        const std::lock_guard lock(mutex_);
        // So long before its deadline the next search ends: what this one took from there on, and half as much again.
        // What seldom takes so long is remembered for some hundred steps.
        const Duration used = now - (step->deadline.load() - session->reserve);
        if (how && used > Duration{})
            session->reserve = std::max(used * 3 / 2 + least_margin, session->reserve * 499 / 500);
        if (!why_not.empty()) {
            step->plan = std::move(stored);
            step->parts = std::move(parts);
        }
    }
    done(session, step, StepState::planned);
}

void Planning::failed(const SessionPtr& session, const StepPtr& step, const std::exception& error) {
    metrics_.failed();
    log_("not planned", log_fields({{"session", session->name}, {"step", step->number}, {"why", error.what()}}));
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
        waiters.swap(step->waiters);
        --session->unfinished;
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
