// Generation the slow way: token step by token step. Shares no code with rl/generation.cpp. Pre: tokens in front take
// whole nanoseconds.
#pragma once

#include "pipeweaver/rl/generation.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace pipeweaver {

class SlowGeneration {
public:
    SlowGeneration(const rl::Decoding& decoding, const std::vector<std::int64_t>& answers, std::int64_t instances,
                   std::optional<rl::Tail> tail)
        : decoding_(decoding), tail_(tail), lanes_(static_cast<std::size_t>(instances)), left_(answers.size()) {
        found_.ends.resize(answers.size());
        found_.busy.resize(lanes_.size());
        for (std::size_t i = 0; i < answers.size(); ++i)
            queue_.push_back({i, answers[i], decoding.prompt_tokens, decoding.prompt});
    }

    rl::Generation run() {
        deal();
        while (left_ > 0) {
            std::size_t next = lanes_.size();
            for (std::size_t i = 0; i < lanes_.size(); ++i)
                if (!lanes_[i].answers.empty() &&
                    (next == lanes_.size() || lanes_[i].now + step(lanes_[i]) < lanes_[next].now + step(lanes_[next])))
                    next = i;
            const std::size_t before = left_;
            advance(next);
            if (left_ == before) continue;
            if (tail_ && left_ > 0 && static_cast<std::int64_t>(left_) <= tail_->answers)
                move(lanes_[next].now);
            else
                while (!queue_.empty() && has_room(lanes_[next])) give(lanes_[next]);
        }
        return found_;
    }

private:
    struct Answer {
        std::size_t number = 0;
        std::int64_t tokens = 0, front = 0;
        Duration prompt{};
    };
    struct Lane {
        Duration now{};
        std::vector<Answer> answers;
    };

    bool has_room(const Lane& lane) const { return lane.answers.size() < decoding_.token.size(); }

    Duration step(const Lane& lane) const {
        Duration time = decoding_.token[lane.answers.size() - 1];
        for (const Answer& one : lane.answers) time += Duration{one.front * decoding_.front_ps / 1000};
        return time;
    }

    void give(Lane& lane) {
        lane.now += queue_.front().prompt;
        lane.answers.push_back(queue_.front());
        queue_.pop_front();
    }

    void deal() {
        for (bool any = true; any && !queue_.empty();) {
            any = false;
            for (Lane& lane : lanes_)
                if (!queue_.empty() && has_room(lane)) {
                    give(lane);
                    any = true;
                }
        }
    }

    void advance(std::size_t i) {
        Lane& lane = lanes_[i];
        lane.now += step(lane);
        std::vector<Answer> going;
        for (Answer one : lane.answers) {
            --one.tokens;
            ++one.front;
            if (one.tokens > 0) {
                going.push_back(one);
                continue;
            }
            found_.ends[one.number] = found_.busy[i] = lane.now;
            found_.end = std::max(found_.end, lane.now);
            --left_;
        }
        lane.answers = going;
    }

    void move(Duration time) {
        std::vector<Answer> moved;
        Duration stopped = time;
        for (std::size_t i = 0; i < lanes_.size(); ++i) {
            while (!lanes_[i].answers.empty() && lanes_[i].now < time) advance(i);
            if (lanes_[i].answers.empty()) continue;
            found_.busy[i] = lanes_[i].now;
            stopped = std::max(stopped, lanes_[i].now);
            for (Answer one : lanes_[i].answers) {
                one.prompt = Duration{};
                moved.push_back(one);
            }
        }
        moved.insert(moved.end(), queue_.begin(), queue_.end());
        std::sort(moved.begin(), moved.end(), [](const Answer& a, const Answer& b) { return a.number < b.number; });
        queue_.assign(moved.begin(), moved.end());
        lanes_.assign(static_cast<std::size_t>(tail_->instances), Lane{stopped + tail_->move, {}});
        found_.tail_moves = stopped;
        tail_.reset();
        deal();
    }

    const rl::Decoding& decoding_;
    std::optional<rl::Tail> tail_;
    std::vector<Lane> lanes_;
    std::deque<Answer> queue_;
    std::size_t left_;
    rl::Generation found_;
};

}  // namespace pipeweaver
