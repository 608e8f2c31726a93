// Planning's sessions: opened, opened again after a restart, closed, listed.
#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "service/planning_state.hpp"

#include <utility>

namespace pipeweaver::service {

Refusal refusal_of(const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    const bool input = ours != nullptr && ours->kind() == ErrorKind::input;
    const bool limit = ours != nullptr && ours->kind() == ErrorKind::limit;
    return {input ? 400 : limit ? 422 : 500, error.what()};
}

Refusal unknown_session(const std::string& session) {
    return {404, fmt::format("session '{}': there is none of that name", session)};
}

Refusal not_ready(const std::string& session, const std::string& error) {
    if (!error.empty()) return {500, error};
    return {503, fmt::format("session '{}': is being opened", session), 1};
}

Planning::Planning(Store& store, Metrics& metrics, std::size_t threads, Limits limits, Log log)
    : store_(store), metrics_(metrics), limits_(std::move(limits)), log_(std::move(log)), workers_(threads) {
    for (StoredSession& stored : store_.sessions()) {
        const auto session = std::make_shared<Session>();
        session->name = stored.name;
        session->asked_sha256 = stored.asked_sha256;
        const std::lock_guard lock(mutex_);
        sessions_[stored.name] = session;
        ++opening_;
        workers_.by(TimePoint::max(), [this, session, kept = std::move(stored.kept)] { open_again(session, kept); });
    }
    metrics_.sessions(sessions_.size());
}

Planning::~Planning() { ending_ = true; }

Planning::SessionPtr Planning::find(const std::string& name) const {
    const auto found = sessions_.find(name);
    return found == sessions_.end() ? nullptr : found->second;
}

void Planning::open(const std::string& name, const std::string& asked, Opened done) {
    const std::string sha = sha256(asked);
    std::unique_lock lock(mutex_);
    const auto refuse = [&](Refusal refusal) {
        lock.unlock();
        done(std::move(refusal));
    };
    if (draining_) return refuse({503, "the server is ending", 1});
    if (const SessionPtr known = find(name)) {
        if (known->closing) return known->after_close.push_back({asked, std::move(done)});
        if (known->asked_sha256 != sha)
            return refuse({409, fmt::format("session '{}': is open with other contents", name)});
        if (!known->error.empty()) return refuse({500, known->error});
        if (!known->job) return known->openers.push_back(std::move(done));
        lock.unlock();
        return done(std::nullopt);
    }
    if (sessions_.size() >= limits_.sessions) {
        metrics_.refused("sessions");
        return refuse({429, fmt::format("{} sessions are open, as many as this server takes", sessions_.size()), 10});
    }
    const auto session = std::make_shared<Session>();
    session->name = name;
    session->asked_sha256 = sha;
    session->openers.push_back(std::move(done));
    sessions_[name] = session;
    metrics_.sessions(sessions_.size());
    lock.unlock();
    workers_.by(TimePoint::max(), [this, session, asked] { open_now(session, asked); });
}

namespace {

// What it takes to put the plan together and to zip it with its samples, as the store does.
Duration time_to_finish(const planner::KeptSession& job, const planner::Batch& batch, const planner::Plan& plan) {
    const ThreadStopwatch watch;
    for (const Part& part : parts_of(job.session.job(), batch, plan)) static_cast<void>(gzip(part.content, Zip::soon));
    static_cast<void>(gzip(job.sample, Zip::soon));
    return watch.elapsed();
}

// By how much a search of the batch that has as long as the quick policies take ends too late.
Duration time_to_stop(const planner::KeptSession& job, const planner::Batch& batch) {
    const ThreadStopwatch watch;
    auto begun = job.session.begin(batch, in_order);
    const Duration whole = watch.elapsed() * 2;
    const auto time = planner::Time::until([&] { return whole - watch.elapsed(); });
    static_cast<void>(job.session.plan(std::move(begun), in_order, time));
    return std::max(Duration{}, watch.elapsed() - whole);
}

// What a session's first steps reserve. Tried on its sample.
Reserve reserve_of(const planner::KeptSession& job) {
    try {
        const auto batch = job.batch(0, job.sample);
        const Duration finish =
            first_reserve + time_to_finish(job, batch, job.session.by_policy(batch, in_order)) * 5 / 4;
        return Reserve(finish, finish + time_to_stop(job, batch) * 5 / 4);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::limit) throw;
        return Reserve(first_reserve);  // no policy applies to the sample: steps teach how long it takes
    }
}

}  // namespace

void Planning::open_now(const SessionPtr& session, const std::string& asked) {
    const Stopwatch watch;
    try {
        const auto execute = workers_.patient_executor();
        const auto while_wanted = [this, &session](const search::Progress&) {
            const bool ends = ending_ || SteadyClock::now() >= session->wanted.load();
            return ends ? std::optional(schedule::StopReason::stopped) : std::nullopt;
        };
        std::string kept = open_session(asked, limits_.open, execute, while_wanted);
        if (ending_) return;  // it was cut short, and nobody was told of it
        auto job = std::make_shared<const planner::KeptSession>(planner::read_session(session->name, kept, execute));
        const Reserve reserve = reserve_of(*job);  // before it is stored: what is refused does not come back
        {
            const std::lock_guard storing(session->storing);
            if (session->closed) return opened(session, Refusal{409, "the session was closed while it was opened"});
            store_.add({session->name, session->asked_sha256, kept});
        }
        ready(session, std::move(job), std::move(kept), reserve);
    } catch (const std::exception& error) {
        {
            const std::lock_guard lock(mutex_);
            session->refused = true;  // who closes it takes it out
            if (!session->closing && find(session->name) == session) sessions_.erase(session->name);
            metrics_.sessions(sessions_.size());
        }
        log_("session refused", log_fields({{"session", session->name}, {"why", error.what()}}));
        return opened(session, refusal_of(error));
    }
    log_("session opened", log_fields({{"session", session->name}, {"seconds", watch.seconds()}}));
    opened(session, std::nullopt);
}

void Planning::open_again(const SessionPtr& session, const std::string& kept) {
    std::optional<Refusal> refusal;
    try {
        if (kept.empty()) fail(ErrorKind::io, "what is stored of it is damaged");
        auto job = std::make_shared<const planner::KeptSession>(
            planner::read_session(session->name, kept, workers_.patient_executor()));
        const Reserve reserve = reserve_of(*job);
        ready(session, std::move(job), kept, reserve);
    } catch (const std::exception& error) {
        refusal = refusal_of(error);
        const std::lock_guard lock(mutex_);
        session->error = fmt::format("session '{}': cannot be opened again: {}", session->name, error.what());
    }
    log_(refusal ? "session not opened again" : "session opened again", log_fields({{"session", session->name}}));
    {
        const std::lock_guard lock(mutex_);
        --opening_;
    }
    opened(session, refusal);
}

void Planning::ready(const SessionPtr& session, std::shared_ptr<const planner::KeptSession> job, std::string kept,
                     const Reserve& reserve) {
    const std::lock_guard lock(mutex_);
    session->reserve = reserve;
    session->kept = std::move(kept);
    session->job = std::move(job);
}

void Planning::opened(const SessionPtr& session, const std::optional<Refusal>& refusal) {
    std::vector<Opened> openers;
    {
        const std::lock_guard lock(mutex_);
        openers.swap(session->openers);
    }
    for (const Opened& done : openers) done(refusal);
}

void Planning::hurry(const std::string& name, Duration within) {
    const TimePoint wanted = SteadyClock::now() + within;
    const std::lock_guard lock(mutex_);
    const SessionPtr session = find(name);
    if (session) session->wanted = std::min(session->wanted.load(), wanted);
}

// First out of the store, then out of the map: what is opened under the name afterwards is stored after that.
std::optional<Refusal> Planning::close(const std::string& name) {
    SessionPtr session;
    {
        const std::lock_guard lock(mutex_);
        session = find(name);
        if (!session || session->closing) return unknown_session(name);
        session->closing = true;
        session->wanted = TimePoint::min();
    }
    try {
        const std::lock_guard storing(session->storing);
        store_.remove_session(name);
        session->closed = true;
    } catch (const Error&) {
        closed(session);
        throw;
    }
    closed(session);
    log_("session closed", log_fields({{"session", name}}));
    return std::nullopt;
}

// Or it could not be closed, and is open as before.
void Planning::closed(const SessionPtr& session) {
    std::vector<StepPtr> unfinished;
    std::vector<Session::Again> again;
    {
        const std::lock_guard lock(mutex_);
        session->closing = false;
        again.swap(session->after_close);
        if (session->closed || session->refused) {
            sessions_.erase(session->name);
            metrics_.sessions(sessions_.size());
            for (const auto& [number, step] : session->steps)
                if (step->state == StepState::waiting) unfinished.push_back(step);
        }
    }
    for (const StepPtr& step : unfinished) done(session, step, StepState::cancelled);
    for (Session::Again& one : again) open(session->name, one.asked, std::move(one.done));
}

namespace {

void describe(SessionView& view, const planner::KeptSession& job) {
    view.ready = true;
    view.model = job.session.job().setup->model.name;
    view.cluster = fmt::format("{}:{}", job.session.job().setup->cluster.name, job.session.job().setup->cluster.gpus);
    view.replicas = job.session.replicas();
    view.ranks = static_cast<std::size_t>(job.session.job().setup->layout.pp);
    view.all_replicas = static_cast<std::size_t>(job.session.job().setup->layout.dp);
    view.partition = job.partition;
}

}  // namespace

std::vector<SessionView> Planning::sessions() const {
    std::vector<std::string> names;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, one] : sessions_) names.push_back(name);
    }
    std::vector<SessionView> all;
    for (const std::string& name : names)
        if (auto view = session(name)) all.push_back(std::move(*view));
    return all;
}

std::optional<SessionView> Planning::session(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const SessionPtr found = find(name);
    if (!found) return std::nullopt;
    SessionView view;
    view.name = name;
    view.unfinished = found->unfinished;
    view.planned = found->planned;
    view.late = found->late;
    view.failed = found->failed;
    view.error = found->error;
    if (found->job) describe(view, *found->job);
    return view;
}

}  // namespace pipeweaver::service
