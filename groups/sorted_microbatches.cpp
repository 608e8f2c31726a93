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
    const std::size_t count = std::min(different.size(), most), last = std::max<std::size_t>(1, different.size() - 1);
    const auto nearest = [&](std::size_t d) { return (d * (count - 1) + last / 2) / last; };  // priced one by its place
    std::vector<std::size_t> picked;
    for (std::size_t p = 0; p < count; ++p) picked.push_back(count == 1 ? 0 : p * last / (count - 1));
    // What the backbone holds is that of the longest, which is not left out.
    const auto longest = static_cast<std::size_t>(
        std::max_element(different.begin(), different.end(),
                         [&](std::size_t a, std::size_t b) { return all[a].tokens < all[b].tokens; }) -
        different.begin());
    if (count < different.size() && longest < last) picked[std::min(nearest(longest), count - 2)] = longest;
    SortedMicrobatches sorted;
    for (const std::size_t p : picked) sorted.priced.push_back(all[different[p]]);
    for (const std::size_t d : run) sorted.as.push_back(nearest(d));
    return sorted;
}

}  // namespace pipeweaver::groups
