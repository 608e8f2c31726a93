// A set of places in a sequence, passed once from either end while places ahead are still added.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pipeweaver::search {

class PlaceSet {
public:
    explicit PlaceSet(std::size_t places) : words_(places / 64 + 1) {}

    static constexpr std::uint32_t none = UINT32_MAX;

    void insert(std::uint32_t place) {
        const std::size_t word = place / 64;
        words_[word] |= std::uint64_t{1} << (place % 64);
        if (word < low_) low_ = word;
        if (word > high_) high_ = word;
    }

    /// The smallest place not below `from`, or none. Those below are taken out.
    std::uint32_t first(std::uint32_t from) {
        for (; low_ <= high_; ++low_) {
            std::uint64_t& word = words_[low_];
            if (low_ == from / 64)
                word &= ~std::uint64_t{0} << (from % 64);
            else if (low_ < from / 64)
                word = 0;
            if (word != 0)
                return static_cast<std::uint32_t>(64 * low_) + static_cast<std::uint32_t>(std::countr_zero(word));
        }
        clear();
        return none;
    }

    /// The largest place below `end`, or none. Those not below are taken out.
    std::uint32_t last(std::uint32_t end) {
        for (; low_ <= high_; --high_) {
            std::uint64_t& word = words_[high_];
            if (high_ == end / 64)
                word &= (std::uint64_t{1} << (end % 64)) - 1;
            else if (high_ > end / 64)
                word = 0;
            if (word != 0)
                return static_cast<std::uint32_t>(64 * high_ + 63) - static_cast<std::uint32_t>(std::countl_zero(word));
            if (high_ == 0) break;
        }
        clear();
        return none;
    }

    void clear() {
        for (; low_ <= high_; ++low_) words_[low_] = 0;
        low_ = SIZE_MAX;
        high_ = 0;
    }

private:
    std::vector<std::uint64_t> words_;
    std::size_t low_ = SIZE_MAX, high_ = 0;  // all places are in these words
};

}  // namespace pipeweaver::search
