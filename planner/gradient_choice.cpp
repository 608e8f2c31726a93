#include "pipeweaver/planner/gradient_choice.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pipeweaver::planner {

namespace {

using emulator::RankGradients;
using BucketWays = std::vector<std::uint8_t>;

// So many beginnings are kept where buckets are few, and where they are many.
constexpr std::size_t few_buckets = 24, beginnings = 64, beginnings_of_many = 8;

// One rank's buckets in some of their ways, the first among them.
class CompressedRank {
public:
    CompressedRank(const RankGradients& rank, const BucketWays& allowed) : rank_(rank), allowed_(allowed) {}

    // No later than with any one of the ways alone beside the first.
    BucketWays best() const {
        BucketWays found = walked();
        if (allowed_.size() > 2)
            for (auto way = allowed_.begin() + 1; way != allowed_.end(); ++way) {
                const BucketWays alone{allowed_.front(), *way};
                BucketWays other = CompressedRank(rank_, alone).best();
                if (emulator::end_of(rank_, other) < emulator::end_of(rank_, found)) found = std::move(other);
            }
        return changed(std::move(found));
    }

    // What is no later with it goes as it is, or in more bytes, until no bucket can.
    void take_back(BucketWays& ways, Duration latest) const {
        for (bool again = true; again;) {
            again = false;
            for (std::uint8_t& mine : ways)
                for (const std::uint8_t way : allowed_) {
                    if (way == mine) break;
                    const std::uint8_t before = std::exchange(mine, way);
                    if (emulator::end_of(rank_, ways) <= latest) {
                        again = true;
                        break;
                    }
                    mine = before;
                }
        }
    }

private:
    BucketWays walked() const {
        const std::size_t kept = rank_.buckets.size() <= few_buckets ? beginnings : beginnings_of_many;
        std::vector<BucketWays> begun{BucketWays(rank_.buckets.size(), 0)};
        for (std::size_t b = 0; b < rank_.buckets.size(); ++b) {
            std::vector<std::pair<Duration, BucketWays>> next;
            for (BucketWays& one : begun)
                for (const std::uint8_t way : allowed_) {
                    one[b] = way;
                    next.emplace_back(end_at_best(one, b + 1), one);
                }
            std::sort(next.begin(), next.end());
            if (next.size() > kept) next.resize(kept);
            begun.clear();
            for (auto& one : next) begun.push_back(std::move(one.second));
        }
        return std::move(begun.front());
    }

    // All that follows in the one way that is best for it.
    Duration end_at_best(BucketWays ways, std::size_t from) const {
        Duration best = Duration::max();
        for (const std::uint8_t way : allowed_) {
            std::fill(ways.begin() + static_cast<std::ptrdiff_t>(from), ways.end(), way);
            best = std::min(best, emulator::end_of(rank_, ways));
            if (from == ways.size()) break;
        }
        return best;
    }

    BucketWays changed(BucketWays ways) const {
        Duration best = emulator::end_of(rank_, ways);
        for (bool again = true; again;) {
            again = false;
            for (std::uint8_t& mine : ways)
                for (const std::uint8_t way : allowed_) {
                    const std::uint8_t before = std::exchange(mine, way);
                    const Duration end = emulator::end_of(rank_, ways);
                    if (end < best) {
                        best = end;
                        again = true;
                    } else {
                        mine = before;
                    }
                }
        }
        return ways;
    }

    const RankGradients& rank_;
    const BucketWays& allowed_;
};

Duration last_of(const std::vector<Duration>& ends) {
    return ends.empty() ? Duration{} : *std::max_element(ends.begin(), ends.end());
}

// The rank that is through last says what the others need not be faster than.
GradientChoice choose_among(const std::vector<RankGradients>& ranks, const BucketWays& allowed) {
    GradientChoice choice;
    for (const RankGradients& rank : ranks) {
        choice.ways.emplace_back(rank.buckets.size(), std::uint8_t{0});
        choice.before.push_back(emulator::end_of(rank, choice.ways.back()));
    }
    choice.after = choice.before;
    std::vector<std::size_t> latest_first(ranks.size());
    std::iota(latest_first.begin(), latest_first.end(), std::size_t{0});
    std::stable_sort(latest_first.begin(), latest_first.end(),
                     [&](std::size_t a, std::size_t b) { return choice.before[a] > choice.before[b]; });
    Duration target{};
    for (const std::size_t r : latest_first) {
        if (choice.before[r] <= target) break;
        choice.ways[r] = CompressedRank(ranks[r], allowed).best();
        target = std::max(target, emulator::end_of(ranks[r], choice.ways[r]));
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        CompressedRank(ranks[r], allowed).take_back(choice.ways[r], target);
        choice.after[r] = emulator::end_of(ranks[r], choice.ways[r]);
    }
    return choice;
}

}  // namespace

Duration GradientChoice::makespan_before() const { return last_of(before); }
Duration GradientChoice::makespan_after() const { return last_of(after); }

GradientChoice choose_gradients(const std::vector<RankGradients>& ranks, std::uint8_t allowed) {
    BucketWays ways(allowed);
    std::iota(ways.begin(), ways.end(), std::uint8_t{0});
    return choose_among(ranks, ways);
}

GradientChoice choose_gradients_alone(const std::vector<RankGradients>& ranks, std::uint8_t alone) {
    return choose_among(ranks, {0, alone});
}

}  // namespace pipeweaver::planner
