#pragma once

#include <algorithm>
#include <numeric>

namespace pipeweaver::search {

template <class Less>
std::vector<std::uint32_t> keys_by(std::uint32_t tasks, Less less) {
    std::vector<std::uint32_t> sorted(tasks), key(tasks);
    std::iota(sorted.begin(), sorted.end(), 0U);
    std::stable_sort(sorted.begin(), sorted.end(), less);
    for (std::uint32_t i = 0; i < tasks; ++i) key[sorted[i]] = i;
    return key;
}

}  // namespace pipeweaver::search
