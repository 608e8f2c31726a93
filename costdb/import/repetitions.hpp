// Times of one thing, measured again and again, in bounded memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pipeweaver::costdb {

/// Keeps up to 1023 times; of more, evenly spaced ones.
class Repetitions {
public:
    void add(std::int64_t ns) {
        if (seen_++ % every_ != 0) return;
        times_.push_back(ns);
        if (times_.size() < most) return;
        for (std::size_t i = 0; 2 * i < times_.size(); ++i) times_[i] = times_[2 * i];
        times_.resize(most / 2);
        every_ *= 2;
    }

    bool empty() const { return times_.empty(); }

    /// Sorted. Pre: !empty() for the others
    void sort() { std::sort(times_.begin(), times_.end()); }
    std::int64_t median() const { return times_[(times_.size() - 1) / 2]; }
    std::int64_t shortest() const { return times_.front(); }

    /// Half the range that nine of ten lie in, in thousandths of `of`; 0 of one time.
    std::int64_t spread_permille(std::int64_t of) const {
        const auto cut = times_.size() / 20;
        const auto range = times_[times_.size() - 1 - cut] - times_[cut];
        return std::min<std::int64_t>(range * 500 / std::max<std::int64_t>(of, 1), 10'000);
    }

private:
    static constexpr std::size_t most = 1024;
    std::vector<std::int64_t> times_;
    std::int64_t seen_ = 0, every_ = 1;
};

}  // namespace pipeweaver::costdb
