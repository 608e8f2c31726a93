// One instance that decodes answers, from event to event.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/rl/generation.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace pipeweaver::rl {

/// Of an answer what is still to be decoded, behind so many tokens.
struct Left {
    std::size_t answer = 0;
    std::int64_t tokens = 0, front = 0;
    bool read = false;  // its prompt
};

/// What it does until when; include/pipeweaver/rl/generation.hpp says how it decodes.
class Instance {
public:
    Instance(const Decoding& decoding, Duration now) : decoding_(&decoding), now_(now) {}

    std::size_t running() const { return running_.size(); }
    bool has_room() const { return running_.size() < decoding_->token.size(); }
    Duration now() const { return now_; }
    /// Time in which it read prompts or decoded.
    Duration busy() const { return busy_; }

    /// Stands still from `time`, or from the end of the token step that is under way then, for so long.
    void wait(Duration time, Duration pause) { now_ = std::max(now_, time) + pause; }

    void take(const Left& one) {
        if (!one.read) now_ += decoding_->prompt;
        if (!one.read) busy_ += decoding_->prompt;
        running_.push_back({steps_ + one.tokens, one.answer, one.front - steps_});
        std::push_heap(running_.begin(), running_.end(), later);
        front_ += one.front;
    }

    /// Pre: running() > 0.
    Duration next_end() const { return now_ + span(to_next_end()); }

    /// Decodes until an answer ends; those that end.
    std::vector<std::size_t> end_next() {
        advance(to_next_end());
        return ended();
    }

    /// Decodes until the token step that is under way at `time` is over; those that end with it.
    std::vector<std::size_t> stop(Duration time) {
        if (running_.empty()) return {};
        std::int64_t low = 0, high = to_next_end();
        while (low < high) {
            const std::int64_t middle = low + (high - low) / 2;
            if (now_ + span(middle) >= time)
                high = middle;
            else
                low = middle + 1;
        }
        advance(low);
        return ended();
    }

    /// What it has, which it loses.
    std::vector<Left> give_up() {
        std::vector<Left> left;
        for (const Running& one : running_) left.push_back({one.answer, one.last - steps_, one.front + steps_, true});
        running_.clear();
        front_ = 0;
        return left;
    }

private:
    struct Running {
        std::int64_t last = 0;  // of its steps
        std::size_t answer = 0;
        std::int64_t front = 0;  // tokens in front, less the steps done
    };
    static bool later(const Running& a, const Running& b) {
        return std::tie(a.last, a.answer) > std::tie(b.last, b.answer);
    }

    std::int64_t to_next_end() const { return running_.front().last - steps_; }

    // Of so many token steps with the answers that it has now.
    Duration span(std::int64_t steps) const {
        __extension__ using Wide = __int128;
        const Wide answers = static_cast<Wide>(running_.size());
        const Wide in_front = static_cast<Wide>(steps) * front_ + answers * steps * (steps - 1) / 2;
        const Wide front_ns = (in_front * decoding_->front_ps + 999) / 1000;
        return steps * decoding_->token[running_.size() - 1] + Duration{static_cast<std::int64_t>(front_ns)};
    }

    void advance(std::int64_t steps) {
        const Duration takes = span(steps);
        now_ += takes;
        busy_ += takes;
        steps_ += steps;
        front_ += static_cast<std::int64_t>(running_.size()) * steps;
    }

    std::vector<std::size_t> ended() {
        std::vector<std::size_t> answers;
        while (!running_.empty() && running_.front().last == steps_) {
            answers.push_back(running_.front().answer);
            front_ -= running_.front().front + steps_;
            std::pop_heap(running_.begin(), running_.end(), later);
            running_.pop_back();
        }
        return answers;
    }

    const Decoding* decoding_;
    Duration now_, busy_{};
    std::int64_t steps_ = 0, front_ = 0;
    std::vector<Running> running_;  // a heap: what ends next is in front
};

}  // namespace pipeweaver::rl
