#include "rl/in_flight.hpp"

#include "pipeweaver/base/assert.hpp"
#include "rl/instance.hpp"

#include <algorithm>
#include <deque>
#include <queue>
#include <utility>

namespace pipeweaver::rl {

namespace {

class InFlight {
public:
    InFlight(const Decoding& decoding, std::span<const std::int64_t> answers, std::int64_t instances,
             const Flight& flight, const Training& training)
        : prompt_tokens_(decoding.prompt_tokens),
          answers_(answers),
          flight_(flight),
          training_(training),
          instances_(static_cast<std::size_t>(instances), Instance(decoding, Duration{})),
          ends_(flight.steps + flight.ahead, std::vector<Duration>(answers.size())),
          unfinished_(ends_.size(), answers.size()) {}

    Flown run() {
        while (given_ < flight_.ahead) give_step();
        share_out();
        plan_ends();
        while (found_.decoding.size() < flight_.steps) {
            const std::size_t handed = found_.decoding.size();
            const bool weights = handed < found_.trained.size();
            if (weights && (next_.empty() || found_.trained[handed] <= next_.top().first))
                hand_over(found_.trained[handed]);
            else
                end_one();
        }
        found_.trained.resize(flight_.steps);
        return std::move(found_);
    }

private:
    void give_step() {
        for (std::size_t i = 0; i < answers_.size(); ++i)
            waiting_.push_back({given_ * answers_.size() + i, answers_[i], prompt_tokens_, false});
        ++given_;
    }

    // Each to the instance that has the fewest, while there are slots.
    void share_out() {
        using Free = std::pair<std::size_t, std::size_t>;  // answers, instance
        std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
        for (std::size_t i = 0; i < instances_.size(); ++i)
            if (instances_[i].has_room()) free.emplace(instances_[i].running(), i);
        while (!waiting_.empty() && !free.empty()) {
            const std::size_t i = free.top().second;
            free.pop();
            take(i);
            if (instances_[i].has_room()) free.emplace(instances_[i].running(), i);
        }
    }

    void take(std::size_t i) {
        instances_[i].take(waiting_.front());
        waiting_.pop_front();
    }

    void plan_ends() {
        next_ = {};
        for (std::size_t i = 0; i < instances_.size(); ++i)
            if (instances_[i].running() > 0) next_.emplace(instances_[i].next_end(), i);
    }

    void end(std::size_t i, const std::vector<std::size_t>& answers) {
        for (const std::size_t one : answers) {
            ends_[one / answers_.size()][one % answers_.size()] = instances_[i].now();
            --unfinished_[one / answers_.size()];
        }
        for (std::size_t step = found_.trained.size(); step < ends_.size() && unfinished_[step] == 0; ++step)
            found_.trained.push_back(training_(ends_[step]));
    }

    void end_one() {
        const std::size_t i = next_.top().second;
        next_.pop();
        end(i, instances_[i].end_next());
        while (!waiting_.empty() && instances_[i].has_room()) take(i);
        if (instances_[i].running() > 0) next_.emplace(instances_[i].next_end(), i);
    }

    void hand_over(Duration time) {
        Duration decoding{};
        for (std::size_t i = 0; i < instances_.size(); ++i) {
            end(i, instances_[i].stop(time));
            instances_[i].wait(time, flight_.weights);
            decoding += instances_[i].busy();
        }
        found_.decoding.push_back(decoding);
        give_step();
        share_out();
        plan_ends();
    }

    std::int64_t prompt_tokens_;
    std::span<const std::int64_t> answers_;
    const Flight& flight_;
    const Training& training_;
    std::vector<Instance> instances_;
    std::vector<std::vector<Duration>> ends_;  // by step and answer
    std::vector<std::size_t> unfinished_;      // by step
    std::size_t given_ = 0;                    // steps
    std::deque<Left> waiting_;
    using End = std::pair<Duration, std::size_t>;  // when an instance ends an answer
    std::priority_queue<End, std::vector<End>, std::greater<>> next_;
    Flown found_;
};

}  // namespace

Flown fly(const Decoding& decoding, std::span<const std::int64_t> answers, std::int64_t instances, const Flight& flight,
          const Training& training) {
    PIPEWEAVER_ASSERT(instances >= 1 && !decoding.token.empty() && flight.ahead >= 1);
    return InFlight(decoding, answers, instances, flight, training).run();
}

}  // namespace pipeweaver::rl
