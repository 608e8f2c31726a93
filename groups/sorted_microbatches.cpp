#include "groups/sorted_microbatches.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::groups {

namespace {

using workloads::Microbatch;

bool are_alike(const Microbatch& a, const Microbatch& b) {
    return a.lengths == b.lengths &&
           std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), [](const auto& x, const auto& y) {
               return x.size == y.size && x.sample_tokens == y.sample_tokens;
           });
}

}  // namespace

SortedMicrobatches sorted_microbatches(std::vector<Microbatch> all, std::size_t most) {
    std::stable_sort(all.begin(), all.end(), [](const Microbatch& a, const Microbatch& b) {
        return std::pair(workloads::positions_of(a), a.tokens) < std::pair(workloads::positions_of(b), b.tokens);
    });
    std::vector<std::size_t> different;  // the first of each run of equal ones
    std::vector<std::size_t> run;
    for (std::size_t m = 0; m < all.size(); ++m) {
        if (m == 0 || !are_alike(all[m - 1], all[m])) different.push_back(m);
        run.push_back(different.size() - 1);
    }
    const std::size_t count = std::min(different.size(), most);
    SortedMicrobatches sorted;
    for (std::size_t p = 0; p < count; ++p)
        sorted.priced.push_back(all[different[count == 1 ? 0 : p * (different.size() - 1) / (count - 1)]]);
    // The nearest priced one by its place.
    const std::size_t last = std::max<std::size_t>(1, different.size() - 1);
    for (const std::size_t d : run) sorted.as.push_back((d * (count - 1) + last / 2) / last);
    return sorted;
}

}  // namespace pipeweaver::groups
