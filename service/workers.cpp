#include "service/workers.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::service {

Workers::Workers(std::size_t threads, std::chrono::nanoseconds most_waiting)
    : most_waiting_(most_waiting), count_(threads) {
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

Workers::Ticket Workers::by(TimePoint due, Task task, int priority) {
    Ticket ticket = 0;
    {
        const std::lock_guard lock(mutex_);
        ticket = next_ticket_++;
        due_.emplace(due, Waiting{std::move(task), priority, ticket, std::chrono::steady_clock::now()});
        due_of_.emplace(ticket, due);
    }
    wake_.notify_one();
    return ticket;
}

Workers::Due::iterator Workers::waiting_for(Ticket ticket) {
    const auto known = due_of_.find(ticket);
    if (known == due_of_.end()) return due_.end();
    const auto [begin, end] = due_.equal_range(known->second);
    return std::find_if(begin, end, [&](const auto& one) { return one.second.ticket == ticket; });
}

void Workers::move(Ticket ticket, TimePoint due) {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_for(ticket);
    if (found == due_.end()) return;
    auto node = due_.extract(found);
    node.key() = due;
    due_.insert(std::move(node));
    due_of_[ticket] = due;
}

bool Workers::drop(Ticket ticket) {
    Waiting dropped;  // what its task holds goes without the lock
    const std::lock_guard lock(mutex_);
    const auto found = waiting_for(ticket);
    if (found == due_.end()) return false;
    dropped = std::move(found->second);
    due_.erase(found);
    due_of_.erase(ticket);
    return true;
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
    return [this](std::size_t count, const std::function<void(std::size_t)>& job) {
        run_what_is_late();
        round(count, job);
    };
}

Executor Workers::quick_executor() {
    return [this](std::size_t count, const std::function<void(std::size_t)>& job) { round(count, job); };
}

Executor Workers::patient_executor() {
    return [this](std::size_t count, const std::function<void(std::size_t)>& job) {
        run_what_is_late();
        run_one_due();
        round(count, job);
    };
}

Workers::Task Workers::next_soon() {
    if (soon_.empty()) return {};
    Task task = std::move(soon_.front());
    soon_.pop_front();
    return task;
}

Workers::Due::iterator Workers::next_in_turn(Which which) {
    const auto never = due_.lower_bound(TimePoint::max());
    const auto now = std::chrono::steady_clock::now();
    const bool has_waited = never != due_.end() && now - never->second.since >= most_waiting_;
    if (which == Which::any && has_waited && never_due_ < std::max<std::size_t>(2, count_) - 1) return never;
    // What is late goes first, whatever its priority: it takes its plan by policy, which is soon done.
    auto end = due_.upper_bound(now);
    if (end == due_.begin() && which != Which::late) end = never;
    if (end == due_.begin() && which == Which::any) end = due_.end();
    // The first of equal ones: that which is due first.
    const auto next = std::max_element(
        due_.begin(), end, [](const auto& a, const auto& b) { return a.second.priority < b.second.priority; });
    return next == end ? due_.end() : next;
}

Workers::Next Workers::next_due(Which which) {
    const auto found = next_in_turn(which);
    if (found == due_.end()) return {};
    Next next{std::move(found->second.task), found->first == TimePoint::max()};
    due_of_.erase(found->second.ticket);
    due_.erase(found);
    return next;
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
        Task task = next_soon();
        const Next next = task ? Next{std::move(task)} : next_due(Which::any);
        if (next.task) {
            never_due_ += next.is_never_due ? 1 : 0;
            lock.unlock();
            next.task();
            lock.lock();
            never_due_ -= next.is_never_due ? 1 : 0;
        } else if (Round* const round = open_round()) {
            ++round->helpers;
            lock.unlock();
            round->take();
            lock.lock();
            if (--round->helpers == 0) helped_.notify_all();
        }
    }
}

void Workers::run_what_is_late() {
    std::unique_lock lock(mutex_);
    while (true) {
        Task task = next_soon();
        if (!task) task = next_due(Which::late).task;
        if (!task) return;
        lock.unlock();
        task();
        lock.lock();
    }
}

void Workers::run_one_due() {
    std::unique_lock lock(mutex_);
    if (never_due_ < count_) return;
    const Task task = next_due(Which::due).task;
    lock.unlock();
    if (task) task();
}

void Workers::round(std::size_t count, const std::function<void(std::size_t)>& job) {
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
