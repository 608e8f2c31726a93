// A loader's queues against the steps that they feed: by hand, and against a clock that ticks nanosecond by nanosecond.
#include "pipeweaver/loader/replay.hpp"

#include "pipeweaver/base/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::loader;

namespace {

using namespace std::chrono_literals;

// `steps` steps of `each` packs, of which one takes `load` to make and `gpu` to train on.
Replica even(std::size_t steps, std::size_t each, Duration load, Duration gpu) {
    Replica replica;
    replica.steps.assign(steps, StepTimes(each, gpu));
    replica.packs.assign(steps * each, Pack{{{load, true}}, {}, 1});
    return replica;
}

std::vector<Duration> lengths(const std::vector<Step>& steps) {
    std::vector<Duration> all;
    for (const Step& step : steps) all.push_back(step.end - step.begin);
    return all;
}

// What the module says, told by a clock that goes on by a nanosecond at a time. Everybody looks at it in turn, as often
// as anybody finds something to do; cores and the copy engine are given out last.
class Ticking {
public:
    Ticking(const Queue& queue, const Taking& taking, const std::vector<Replica>& replicas)
        : queue_(queue), taking_(taking) {
        for (const Replica& one : replicas) all_.push_back(beginning(one));
        ends_.resize(replicas.front().steps.size());
        waited_.assign(ends_.size(), std::vector<std::int64_t>(all_.size(), 0));
    }

    std::vector<Step> run() {
        for (;; ++now_) {
            for (One& one : all_) count_down(one);
            while (look()) {
            }
            for (One& one : all_) give_out(one);
            if (step_ == ends_.size()) break;
            for (std::size_t r = 0; r < all_.size(); ++r)
                if (all_[r].mode == 't' || all_[r].mode == 'l') ++waited_[step_][r];
        }
        std::vector<Step> steps(ends_.size());
        for (std::size_t n = 0; n < steps.size(); ++n) {
            steps[n].begin = Duration{n == 0 ? 0 : ends_[n - 1]};
            steps[n].end = Duration{ends_[n]};
            for (const std::int64_t each : waited_[n]) steps[n].waited.emplace_back(each);
        }
        return steps;
    }

private:
    struct Hand {  // of a worker
        std::size_t pack = 0, piece = 0;
        std::int64_t left = 0, asked = -1;
        bool holds = false;
    };
    struct One {
        std::vector<std::vector<Piece>> pieces;
        std::vector<std::int64_t> copy, came;  // -1: not there yet, -2: copied
        std::vector<std::vector<std::int64_t>> gpu;
        std::vector<Hand> hands;
        std::int64_t cores = 0, copy_left = 0, left = 0;
        std::size_t copied = 0, taken = 0, want = 0, microbatch = 0;
        char mode = 'w';  // wants, takes, loads, together, computes, ended
    };

    One beginning(const Replica& from) const {
        One one;
        for (const Pack& pack : from.packs) {
            one.pieces.push_back(pack.pieces);
            one.copy.push_back(pack.copy.count());
        }
        for (const StepTimes& step : from.steps) {
            one.gpu.emplace_back();
            for (const Duration time : step) one.gpu.back().push_back(time.count());
        }
        one.came.assign(from.packs.size(), -1);
        one.cores = queue_.cores.value_or(1'000'000);
        one.hands.resize(static_cast<std::size_t>(queue_.workers));
        for (std::size_t w = 0; w < one.hands.size(); ++w) one.hands[w].pack = w;
        if (queue_.window) gather(from, one);
        return one;
    }

    // From the last pack of each worker back to the first of its window.
    void gather(const Replica& from, One& one) const {
        const std::size_t hands = std::max<std::size_t>(one.hands.size(), 1);
        for (std::size_t w = 0; w < hands; ++w) {
            std::vector<std::size_t> window;
            std::int64_t samples = 0;
            for (std::size_t i = w; i < from.packs.size(); i += hands) {
                window.push_back(i);
                samples += from.packs[i].samples;
                if (samples < *queue_.window && i + hands < from.packs.size()) continue;
                for (std::size_t k = 1; k < window.size(); ++k) {
                    for (const Piece& piece : one.pieces[window[k]]) one.pieces[window[0]].push_back(piece);
                    one.pieces[window[k]] = {};
                }
                window.clear();
                samples = 0;
            }
        }
    }

    void count_down(One& one) {
        for (Hand& hand : one.hands)
            if (hand.left > 0 && --hand.left == 0) {
                if (hand.holds) ++one.cores;
                hand.holds = false;
                ++hand.piece;
            }
        if (one.copy_left > 0 && --one.copy_left == 0) one.came[one.copied] = -2;
        if (one.left > 0) --one.left;
    }

    bool look() {
        bool any = false;
        for (std::size_t r = 0; r < all_.size(); ++r) any = drive(all_[r]) || any;
        for (One& one : all_)
            for (Hand& hand : one.hands) any = work(one, hand) || any;
        const auto everybody = [&](char mode) {
            return std::all_of(all_.begin(), all_.end(), [&](const One& one) { return one.mode == mode; });
        };
        if (everybody('g')) {
            for (One& one : all_) compute(one);
            any = true;
        }
        if (step_ < ends_.size() && everybody('e')) {
            ends_[step_++] = now_;
            for (One& one : all_) {
                one.microbatch = 0;
                one.mode = step_ < ends_.size() ? 'w' : 'z';
            }
            any = true;
        }
        return any;
    }

    void compute(One& one) const {
        one.left = one.gpu[step_][one.microbatch];
        one.mode = 'c';
    }

    bool drive(One& one) {
        if (one.mode == 'w') {
            one.want = taking_.whole_step ? (one.microbatch == 0 ? one.gpu[step_].size() : 0) : 1;
            one.mode = 't';
            return true;
        }
        if (one.mode == 'l' && one.left == 0) {
            ++one.taken;
            --one.want;
            one.mode = 't';
            return true;
        }
        if (one.mode == 't' && one.want > 0 && queue_.workers == 0) {
            one.left = one.copy[one.taken];
            for (const Piece& piece : one.pieces[one.taken]) one.left += piece.time.count();
            one.mode = 'l';
            return true;
        }
        if (one.mode == 't' && one.want > 0 && one.came[one.taken] == -2) {
            ++one.taken;
            --one.want;
            return true;
        }
        if (one.mode == 't' && one.want == 0) {
            one.mode = 'g';
            if (!taking_.microbatches_together) compute(one);
            return true;
        }
        if (one.mode == 'c' && one.left == 0) {
            one.mode = ++one.microbatch == one.gpu[step_].size() ? 'e' : 'w';
            return true;
        }
        return false;
    }

    bool work(One& one, Hand& hand) {
        const auto ahead = static_cast<std::size_t>(queue_.workers * queue_.prefetch);
        if (hand.left > 0 || hand.asked >= 0 || hand.pack >= one.pieces.size() || hand.pack >= one.taken + ahead)
            return false;
        if (hand.piece == one.pieces[hand.pack].size()) {
            one.came[hand.pack] = one.copy[hand.pack] == 0 ? -2 : now_;
            hand.pack += one.hands.size();
            hand.piece = 0;
            return true;
        }
        const Piece piece = one.pieces[hand.pack][hand.piece];
        if (piece.time.count() == 0)
            ++hand.piece;
        else if (piece.core)
            hand.asked = now_;
        else
            hand.left = piece.time.count();
        return true;
    }

    void give_out(One& one) {
        for (;;) {
            Hand* first = nullptr;
            for (Hand& hand : one.hands)
                if (hand.asked >= 0 && (first == nullptr || hand.asked < first->asked)) first = &hand;
            if (first == nullptr || one.cores == 0) break;
            --one.cores;
            first->asked = -1;
            first->holds = true;
            first->left = one.pieces[first->pack][first->piece].time.count();
        }
        if (one.copy_left > 0) return;
        bool any = false;
        for (std::size_t i = 0; i < one.came.size(); ++i)
            if (one.came[i] >= 0 && (!any || one.came[i] < one.came[one.copied])) {
                one.copied = i;
                any = true;
            }
        if (any) one.copy_left = one.copy[one.copied];
    }

    Queue queue_;
    Taking taking_;
    std::vector<One> all_;
    std::vector<std::int64_t> ends_;
    std::vector<std::vector<std::int64_t>> waited_;
    std::size_t step_ = 0;
    std::int64_t now_ = 0;
};

struct Case {
    Queue queue;
    Taking taking;
    std::vector<Replica> replicas;
};

Case drawn(std::uint64_t number) {
    Random random(1, number);
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
    Case one;
    one.queue = {.workers = below(5), .prefetch = 1 + below(3)};
    if (below(2) == 0) one.queue.cores = 1 + below(4);
    if (below(3) == 0) one.queue.window = 1 + below(9);
    one.taking = {.whole_step = below(2) == 0, .microbatches_together = below(2) == 0};
    const std::int64_t steps = 1 + below(5), longest = 1 + below(20);
    std::vector<std::int64_t> each;
    for (std::int64_t n = 0; n < steps; ++n) each.push_back(1 + below(5));
    one.replicas.resize(static_cast<std::size_t>(1 + below(4)));
    for (Replica& replica : one.replicas) {
        for (std::int64_t n = 0; n < steps; ++n) {
            if (!one.taking.microbatches_together) each[static_cast<std::size_t>(n)] = 1 + below(5);
            auto& times = replica.steps.emplace_back();
            for (std::int64_t m = 0; m < each[static_cast<std::size_t>(n)]; ++m) {
                times.emplace_back(below(12));
                Pack& pack = replica.packs.emplace_back();
                pack.samples = 1 + below(4);
                pack.copy = Duration{std::max<std::int64_t>(0, below(8) - 4)};
                for (std::int64_t k = below(5); k > 0; --k)
                    pack.pieces.push_back({Duration{below(static_cast<std::uint64_t>(longest))}, below(3) > 0});
            }
        }
    }
    return one;
}

}  // namespace

TEST_CASE("without workers the GPU waits for each pack, and with enough of them for the first alone") {
    // 3 steps of 2 packs; a pack takes 5 ns to make, 4 ns to train on.
    const std::vector<Replica> one{even(3, 2, 5ns, 4ns)};
    CHECK(lengths(replay({.workers = 0}, {}, one)) == std::vector<Duration>{18ns, 18ns, 18ns});
    CHECK(lengths(replay({.workers = 1}, {}, one)) == std::vector<Duration>{14ns, 10ns, 10ns});
    CHECK(lengths(replay({.workers = 2}, {}, one)) == std::vector<Duration>{13ns, 8ns, 8ns});
    CHECK(replay({.workers = 1}, {}, one)[1].waited == std::vector<Duration>{2ns});
}

TEST_CASE("a step that takes all its packs first waits for those that could not be made ahead") {
    // 8 packs a step, 4 of which are made while the GPUs compute: 2 workers make the other 4 in 2 rounds of 5 ns.
    const std::vector<Replica> one{even(3, 8, 5ns, 10ns)};
    const Taking first{.whole_step = true};
    CHECK(lengths(replay({.workers = 2, .prefetch = 2}, first, one))[2] == 90ns);
    CHECK(lengths(replay({.workers = 2, .prefetch = 4}, first, one))[2] == 80ns);
    CHECK(lengths(replay({.workers = 0}, first, one))[2] == 120ns);
}

TEST_CASE("workers share cores, and storage makes nobody else wait") {
    Replica two = even(1, 2, 6ns, 1ns);
    CHECK(lengths(replay({.workers = 2, .cores = 2}, {}, {two}))[0] == 8ns);
    CHECK(lengths(replay({.workers = 2, .cores = 1}, {}, {two}))[0] == 13ns);
    for (Pack& pack : two.packs) pack.pieces[0].core = false;
    CHECK(lengths(replay({.workers = 2, .cores = 1}, {}, {two}))[0] == 8ns);
}

TEST_CASE("a window stalls the steps that begin one") {
    // A worker gathers 3 packs of a sample each before it hands out the first: every third step waits.
    const std::vector<Replica> one{even(9, 1, 4ns, 10ns)};
    const auto without = replay({.workers = 1, .prefetch = 1}, {}, one);
    CHECK(lengths(without)[6] == 10ns);
    const auto with = replay({.workers = 1, .prefetch = 1, .window = 3}, {}, one);
    CHECK(lengths(with) == std::vector<Duration>{22ns, 10ns, 10ns, 12ns, 10ns, 10ns, 12ns, 10ns, 10ns});
}

TEST_CASE("replicas wait for the slowest of them at each step, or at each microbatch") {
    Replica a = even(1, 2, 1ns, 10ns), b = a;
    a.packs[0].pieces[0].time = 11ns;
    b.packs[1].pieces[0].time = 21ns;
    // By themselves: 11 + 20 and 1 + 10 + 11 (b has its second pack at 22) + 10.
    const auto apart = replay({.workers = 1}, {}, {a, b});
    CHECK(apart[0].end == 32ns);
    CHECK(apart[0].waited == std::vector<Duration>{11ns, 12ns});
    const auto together = replay({.workers = 1}, {.microbatches_together = true}, {a, b});
    CHECK(together[0].end == 32ns);
    CHECK(together[0].waited == std::vector<Duration>{11ns, 2ns});
}

TEST_CASE("a replay is that of a clock which ticks by nanoseconds") {
    std::size_t waits = 0, cores = 0;
    for (std::uint64_t number = 0; number < 600; ++number) {
        CAPTURE(number);
        const Case one = drawn(number);
        const auto expected = Ticking(one.queue, one.taking, one.replicas).run();
        const auto found = replay(one.queue, one.taking, one.replicas);
        REQUIRE(found == expected);
        Queue without = one.queue;
        without.cores.reset();
        cores += replay(without, one.taking, one.replicas) != found;
        for (const Step& step : found) waits += step.waited[0] > Duration{};
    }
    // The cases have to have waited, also for cores, or this would prove little.
    CHECK(waits > 300);
    CHECK(cores > 50);
}
