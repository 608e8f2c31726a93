#include "pipeweaver/planner/session_queue.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::planner {

namespace {

// A search ends within a round (10 ms at most) of being told to; then the plan is put together.
constexpr Duration to_finish = std::chrono::milliseconds(30);

constexpr Duration between_questions = std::chrono::milliseconds(50);

}  // namespace

// Returns whether it is there; false: nothing is left.
bool Planned::wait(std::unique_lock<std::mutex>& lock, const Time::Left& left, const std::function<void()>& meanwhile,
                   const std::function<bool()>& is_there) {
    while (!is_there()) {
        const Duration slice = left ? std::min(left(), between_questions) : between_questions;
        if (slice <= Duration{}) return false;
        if (changed_.wait_for(lock, slice) == std::cv_status::no_timeout || !meanwhile) continue;
        lock.unlock();
        meanwhile();
        lock.lock();
    }
    return true;
}

std::shared_ptr<const BatchPlan> Planned::result(std::optional<Duration> deadline,
                                                 const std::function<void()>& meanwhile) {
    const auto until = [&](Duration reserve) -> Time::Left {
        if (!deadline) return nullptr;
        return [this, end = clock_() + *deadline - reserve] { return end - clock_(); };
    };
    const Time::Left searching = until(to_finish), all = until({});
    const auto is_done = [this] { return done(); };
    std::unique_lock lock(mutex_);
    if (!wait(lock, searching, meanwhile, is_done)) {
        search_ends_ = true;
        if (!wait(lock, all, meanwhile, is_done)) wait(lock, {}, meanwhile, [this] { return done() || draft_; });
    }
    if (error_) std::rethrow_exception(error_);
    if (cancelled()) return nullptr;
    return plan_ ? plan_ : draft_;
}

bool Planned::cancel() { return end(State::cancelled, nullptr, nullptr) || cancelled(); }

std::shared_ptr<const BatchPlan> Planned::draft() const {
    const std::lock_guard lock(mutex_);
    return draft_;
}

bool Planned::end(State state, std::shared_ptr<const BatchPlan> plan, std::exception_ptr error) {
    {
        const std::lock_guard lock(mutex_);
        if (done()) return false;
        plan_ = std::move(plan);
        error_ = std::move(error);
        state_ = state;
    }
    changed_.notify_all();
    return true;
}

void Planned::drafted(std::shared_ptr<const BatchPlan> plan) {
    {
        const std::lock_guard lock(mutex_);
        draft_ = std::move(plan);
    }
    changed_.notify_all();
}

SessionQueue::SessionQueue(std::shared_ptr<const Session> session, std::function<Executor()> threads, Clock clock)
    : session_(std::move(session)), threads_(std::move(threads)), clock_(std::move(clock)) {}

SessionQueue::~SessionQueue() {
    close();
    if (thread_.joinable()) thread_.join();
}

std::shared_ptr<Planned> SessionQueue::submit(MakeBatch batch, std::optional<Duration> budget, int priority) {
    auto planned = std::make_shared<Planned>(clock_);
    const std::lock_guard lock(mutex_);
    const auto after =
        std::find_if(waiting_.begin(), waiting_.end(), [&](const Item& one) { return one.priority < priority; });
    const auto place = waiting_.insert(after, {planned, std::move(batch), budget, priority});
    if (working_) return planned;
    if (thread_.joinable()) thread_.join();  // it has nothing to do any more but to return
    try {
        thread_ = std::thread([this] { work(); });
    } catch (...) {
        waiting_.erase(place);
        throw;
    }
    working_ = true;
    return planned;
}

void SessionQueue::close() {
    const std::lock_guard lock(mutex_);
    for (const Item& item : waiting_) item.planned->cancel();
    if (running_) running_->cancel();
}

void SessionQueue::work() {
    for (std::unique_lock lock(mutex_);; lock.lock()) {
        running_ = nullptr;
        if (waiting_.empty()) {
            working_ = false;
            return;
        }
        const Item item = std::move(waiting_.front());
        waiting_.pop_front();
        running_ = item.planned;
        lock.unlock();
        plan(item);
    }
}

// Its budget begins now.
Time SessionQueue::time_for(const Item& item) const {
    Time::Left left;
    if (item.budget) left = [clock = clock_, end = clock_() + *item.budget] { return end - clock(); };
    return Time::until(std::move(left), [planned = item.planned](const search::Progress&) {
        const bool ends = planned->search_ends_ || planned->done();
        return ends ? std::optional(schedule::StopReason::stopped) : std::nullopt;
    });
}

void SessionQueue::plan(const Item& item) const {
    Planned& planned = *item.planned;
    if (planned.done()) return;
    try {
        const Duration begun = clock_();
        const auto batch = item.batch();
        const auto made = [&](Plan plan) {
            return std::make_shared<const BatchPlan>(BatchPlan{batch, std::move(plan), clock_() - begun});
        };
        const auto draft = [&](Plan plan) { planned.drafted(made(std::move(plan))); };
        planned.end(Planned::State::made, made(session_->plan(batch, threads_(), time_for(item), draft)), nullptr);
    } catch (...) {
        planned.end(Planned::State::failed, nullptr, std::current_exception());
    }
}

}  // namespace pipeweaver::planner
