#include "service/workers.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::service {

Workers::Workers(std::size_t threads) {
    PIPEWEAVER_ASSERT(threads >= 1);
    for (std::size_t i = 0; i < threads; ++i)
        threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

Workers::~Workers() {
    for (std::jthread& thread : threads_) thread.request_stop();
    for (std::jthread& thread : threads_) thread.join();
}

void Workers::soon(Task task) {
    {
        const std::lock_guard lock(mutex_);
        soon_.push_back(std::move(task));
    }
    wake_.notify_one();
}

void Workers::by(TimePoint due, Task task, int priority) {
    {
        const std::lock_guard lock(mutex_);
        due_.emplace(due, Waiting{std::move(task), priority});
    }
    wake_.notify_one();
}

std::size_t Workers::waiting() const {
    const std::lock_guard lock(mutex_);
    return soon_.size() + due_.size();
}

// Where k tasks wait until a time, they and those that run share what the threads have until then.
bool Workers::must_yield(TimePoint begun) const {
    const std::lock_guard lock(mutex_);
    const auto used = std::chrono::steady_clock::now() - begun;
    const auto threads = static_cast<std::int64_t>(threads_.size());
    std::int64_t before = 0;
    for (const auto& [due, waiting] : due_) {
        if (due == TimePoint::max()) break;
        ++before;
        if (used * (threads + before) > (due - begun) * threads) return true;
    }
    return false;
}

Executor Workers::executor() {
    return [this](std::size_t count, const std::function<void(std::size_t)>& job) { round(count, job); };
}

Workers::Task Workers::next_due(bool at_any_time) {
    if (!soon_.empty()) {
        Task task = std::move(soon_.front());
        soon_.pop_front();
        return task;
    }
    // What is late goes first, whatever its priority: it takes its plan by policy, which is soon done.
    const auto now = std::chrono::steady_clock::now();
    auto end = due_.upper_bound(now);
    if (end == due_.begin() && at_any_time) end = due_.end();
    // The first of equal ones: that which is due first.
    const auto next = std::max_element(
        due_.begin(), end, [](const auto& a, const auto& b) { return a.second.priority < b.second.priority; });
    if (next == end) return {};
    Task task = std::move(next->second.task);
    due_.erase(next);
    return task;
}

Workers::Round* Workers::open_round() {
    for (Round& round : rounds_)
        if (round.has_more()) return &round;
    return nullptr;
}

void Workers::work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (true) {
        ++idle_;
        wake_.wait(lock, stop, [this] { return !soon_.empty() || !due_.empty() || open_round() != nullptr; });
        --idle_;
        if (stop.stop_requested()) return;
        if (const Task task = next_due(true)) {
            lock.unlock();
            task();
            lock.lock();
        } else if (Round* const round = open_round()) {
            ++round->helpers;
            lock.unlock();
            round->take();
            lock.lock();
            if (--round->helpers == 0) helped_.notify_all();
        }
    }
}

void Workers::run_what_is_due() {
    std::unique_lock lock(mutex_);
    while (const Task task = next_due(false)) {
        lock.unlock();
        task();
        lock.lock();
    }
}

void Workers::round(std::size_t count, const std::function<void(std::size_t)>& job) {
    run_what_is_due();
    if (count <= 1 || idle_ == 0)
        in_order(count, job);
    else
        help_all(count, job);
}

void Workers::help_all(std::size_t count, const std::function<void(std::size_t)>& job) {
    std::unique_lock lock(mutex_);
    const auto round = rounds_.emplace(rounds_.end());
    round->job = &job;
    round->count = count;
    lock.unlock();
    wake_.notify_all();
    round->take();
    lock.lock();
    helped_.wait(lock, [&] { return round->helpers == 0; });
    rounds_.erase(round);
}

}  // namespace pipeweaver::service
