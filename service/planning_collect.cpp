// What is asked of Planning's steps: cancelled, looked at, waited for, collected.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "service/planning_state.hpp"

#include <utility>

namespace pipeweaver::service {

std::optional<Refusal> Planning::cancel(const std::string& name, std::int64_t number) {
    std::unique_lock lock(mutex_);
    const SessionPtr session = find(name);
    if (!session) return unknown_session(name);
    const auto found = session->steps.find(number);
    if (found == session->steps.end() || found->second->state != StepState::waiting) {
        lock.unlock();
        if (step(name, number).state != StepState::unknown) return std::nullopt;
        return Refusal{404, fmt::format("step {}: was not submitted", number)};
    }
    const StepPtr waiting = found->second;
    lock.unlock();
    {
        const std::lock_guard storing(session->storing);
        if (waiting->settled) return std::nullopt;
        waiting->unwanted = true;
    }
    done(session, waiting, StepState::cancelled);
    return std::nullopt;
}

StepView Planning::step(const std::string& name, std::int64_t number) const {
    {
        const std::lock_guard lock(mutex_);
        const SessionPtr session = find(name);
        if (!session) return {};
        if (const auto found = session->steps.find(number); found != session->steps.end()) {
            const Step& one = *found->second;
            return {one.state, one.plan, one.error, one.status};
        }
    }
    auto plan = store_.plan(name, number);
    return {plan ? StepState::planned : StepState::unknown, std::move(plan), {}, 0};
}

Duration Planning::left(const std::string& name, std::int64_t number) const {
    const std::lock_guard lock(mutex_);
    const SessionPtr session = find(name);
    if (!session) return {};
    const auto found = session->steps.find(number);
    if (found == session->steps.end() || found->second->state != StepState::waiting) return {};
    return std::max(Duration{}, Duration(found->second->deadline.load() - SteadyClock::now()));
}

std::uint64_t Planning::when_done(const std::string& name, std::int64_t number, std::function<void()> done) {
    {
        const std::lock_guard lock(mutex_);
        const SessionPtr session = find(name);
        if (session) {
            const auto found = session->steps.find(number);
            if (found != session->steps.end() && found->second->state == StepState::waiting) {
                found->second->waiters[next_waiter_] = std::move(done);
                return next_waiter_++;
            }
        }
    }
    done();
    return 0;
}

void Planning::forget(const std::string& name, std::int64_t number, std::uint64_t waiter) {
    const std::lock_guard lock(mutex_);
    const SessionPtr session = find(name);
    if (!session) return;
    if (const auto found = session->steps.find(number); found != session->steps.end())
        found->second->waiters.erase(waiter);
}

std::optional<std::string> Planning::zipped_part(const std::string& name, std::int64_t number,
                                                 const std::string& part) const {
    {
        const std::lock_guard lock(mutex_);
        const SessionPtr session = find(name);
        if (!session) return std::nullopt;
        if (const auto found = session->steps.find(number); found != session->steps.end())
            for (const Part& one : found->second->parts)
                if (one.name == part) return gzip(one.content, Zip::soon);
    }
    return store_.zipped_part(name, number, part);
}

std::vector<std::string> Planning::part_names(const std::string& name, std::int64_t number) const {
    std::vector<std::string> names;
    {
        const std::lock_guard lock(mutex_);
        const SessionPtr session = find(name);
        if (!session) return names;
        if (const auto found = session->steps.find(number); found != session->steps.end())
            for (const Part& one : found->second->parts) names.push_back(one.name);
    }
    return names.empty() ? store_.part_names(name, number) : names;
}

std::vector<std::int64_t> Planning::planned_steps(const std::string& session, std::size_t most) const {
    try {
        return store_.steps(session, most);
    } catch (const Error&) {  // a list to look at: what is asked of a step itself says what is wrong
        return {};
    }
}

std::optional<StoredPlan> Planning::served(const std::string& name, std::int64_t number) const {
    try {
        return store_.plan(name, number);
    } catch (const Error& error) {
        log_("state not read", log_fields({{"session", name}, {"step", number}, {"why", error.what()}}));
        return std::nullopt;
    }
}

std::optional<std::string> Planning::kept(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const SessionPtr session = find(name);
    return session ? std::optional(session->kept) : std::nullopt;
}

std::optional<std::string> Planning::record(const std::string& name, std::int64_t number) const {
    std::string kept;
    std::optional<StoredPlan> plan;
    {
        const std::lock_guard lock(mutex_);
        const SessionPtr session = find(name);
        if (!session) return std::nullopt;
        kept = session->kept;
        if (const auto found = session->steps.find(number); found != session->steps.end()) plan = found->second->plan;
    }
    if (!plan) plan = store_.plan_with_samples(name, number);
    if (!plan || kept.empty()) return std::nullopt;
    return planner::record(kept, number, plan->samples, planner::parse_how("record", plan->how));
}

bool Planning::ready() const {
    const std::lock_guard lock(mutex_);
    return opening_ == 0 && !draining_;
}

bool Planning::drain() {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    return unfinished_ == 0;
}

std::size_t Planning::unfinished() const {
    const std::lock_guard lock(mutex_);
    return unfinished_;
}

}  // namespace pipeweaver::service
