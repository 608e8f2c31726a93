#include "pipeweaver/rl/generation.hpp"

#include "pipeweaver/base/assert.hpp"
#include "rl/instance.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <utility>

namespace pipeweaver::rl {

namespace {

class Play {
public:
    Play(const Decoding& decoding, std::span<const std::int64_t> answers, std::int64_t instances,
         const std::optional<Tail>& tail)
        : decoding_(decoding), tail_(tail), unfinished_(static_cast<std::int64_t>(answers.size())) {
        found_.ends.resize(answers.size());
        found_.busy.resize(static_cast<std::size_t>(instances));
        instances_.assign(static_cast<std::size_t>(instances), Instance(decoding, Duration{}));
        for (std::size_t i = 0; i < answers.size(); ++i)
            waiting_.push_back({i, answers[i], decoding.prompt_tokens, false});
    }

    Generation run() {
        share_out();
        while (!events_.empty()) {
            const auto [time, i] = events_.top();
            events_.pop();
            end(i, instances_[i].end_next());
            if (tail_ && unfinished_ <= tail_->answers && unfinished_ > 0)
                move_tail(time);
            else
                go_on(i);
        }
        return std::move(found_);
    }

private:
    void end(std::size_t i, const std::vector<std::size_t>& answers) {
        for (const std::size_t one : answers) found_.ends[one] = instances_[i].now();
        unfinished_ -= static_cast<std::int64_t>(answers.size());
        if (!answers.empty()) found_.busy[i] = instances_[i].now();
        if (!answers.empty()) found_.end = std::max(found_.end, instances_[i].now());
    }

    void go_on(std::size_t i) {
        Instance& instance = instances_[i];
        while (!waiting_.empty() && instance.has_room()) {
            instance.take(waiting_.front());
            waiting_.pop_front();
        }
        if (instance.running() > 0) events_.push({instance.next_end(), i});
    }

    // One for each instance in turn while there are slots: all have as many.
    void share_out() {
        for (bool room = true; room && !waiting_.empty();) {
            room = false;
            for (Instance& instance : instances_) {
                if (waiting_.empty() || !instance.has_room()) continue;
                instance.take(waiting_.front());
                waiting_.pop_front();
                room = true;
            }
        }
        for (std::size_t i = 0; i < instances_.size(); ++i)
            if (instances_[i].running() > 0) events_.push({instances_[i].next_end(), i});
    }

    void move_tail(Duration time) {
        std::vector<Left> left;
        Duration all_stopped = time;
        for (std::size_t i = 0; i < instances_.size(); ++i) {
            Instance& instance = instances_[i];
            end(i, instance.stop(time));
            if (instance.running() == 0) continue;
            found_.busy[i] = instance.now();
            all_stopped = std::max(all_stopped, instance.now());
            const auto own = instance.give_up();
            left.insert(left.end(), own.begin(), own.end());
        }
        left.insert(left.end(), waiting_.begin(), waiting_.end());
        std::sort(left.begin(), left.end(), [](const Left& a, const Left& b) { return a.answer < b.answer; });
        waiting_.assign(left.begin(), left.end());
        events_ = {};
        instances_.assign(static_cast<std::size_t>(tail_->instances), Instance(decoding_, all_stopped + tail_->move));
        found_.tail_moves = all_stopped;
        tail_.reset();
        share_out();
    }

    const Decoding& decoding_;
    std::optional<Tail> tail_;  // not yet moved
    std::int64_t unfinished_;
    std::deque<Left> waiting_;
    std::vector<Instance> instances_;
    using Event = std::pair<Duration, std::size_t>;  // when an instance ends an answer
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    Generation found_;
};

}  // namespace

Generation generate(const Decoding& decoding, std::span<const std::int64_t> answers, std::int64_t instances,
                    const std::optional<Tail>& tail) {
    PIPEWEAVER_ASSERT(instances >= 1 && !decoding.token.empty());
    PIPEWEAVER_ASSERT(!tail || (tail->instances >= 1 && tail->instances <= instances));
    return Play(decoding, answers, instances, tail).run();
}

Decoding fitted(const Decoding& decoding, std::span<const std::int64_t> answers, std::int64_t instances,
                Duration measured) {
    const Duration end = generate(decoding, answers, instances).end;
    const double ratio = static_cast<double>(measured.count()) / static_cast<double>(end.count());
    const auto times = [ratio](std::int64_t value) { return std::llround(ratio * static_cast<double>(value)); };
    Decoding as_measured = decoding;
    for (Duration& one : as_measured.token) one = std::max(Duration{1}, Duration{times(one.count())});
    as_measured.front_ps = times(decoding.front_ps);
    as_measured.prompt = Duration{times(decoding.prompt.count())};
    return as_measured;
}

}  // namespace pipeweaver::rl
