#include "capacity/faults/group_counts.hpp"

#include <algorithm>

namespace pipeweaver::capacity {

namespace {

constexpr double least_probability = 1e-25;  // a million of them are still nothing beside a result's rounding

std::size_t place(std::int64_t number) { return static_cast<std::size_t>(number); }

}  // namespace

double GroupCounts::mean() const {
    double sum = 0, count = static_cast<double>(first);
    for (const double one : probability) {
        sum += one * count;
        ++count;
    }
    return sum;
}

std::int64_t GroupCounts::at(double confidence) const {
    constexpr double rounding = 1e-12;
    double reached = 0;
    for (std::size_t i = probability.size(); i-- > 0;) {
        reached += probability[i];
        if (reached >= confidence - rounding) return first + static_cast<std::int64_t>(i);
    }
    return 0;
}

GroupCounts of_one_node(double faulty) {
    GroupCounts one{0, {faulty, 1 - faulty}};
    trim(one);
    return one;
}

void trim(GroupCounts& counts) {
    auto& all = counts.probability;
    while (all.size() > 1 && all.back() < least_probability) all.pop_back();
    const auto kept = std::find_if(all.begin(), all.end(), [](double one) { return one >= least_probability; });
    if (kept == all.end()) return;
    counts.first += kept - all.begin();
    all.erase(all.begin(), kept);
}

void add_scaled(GroupCounts& into, const GroupCounts& from, double factor, std::int64_t more) {
    auto& all = into.probability;
    const std::int64_t first = from.first + more;
    if (all.empty()) into.first = first;
    if (first < into.first) {
        all.insert(all.begin(), place(into.first - first), 0);
        into.first = first;
    }
    const std::size_t offset = place(first - into.first);
    all.resize(std::max(all.size(), offset + from.probability.size()));
    for (std::size_t i = 0; i < from.probability.size(); ++i) all[offset + i] += factor * from.probability[i];
}

GroupCounts sum_of(const GroupCounts& a, const GroupCounts& b) {
    GroupCounts sum{a.first + b.first, std::vector<double>(a.probability.size() + b.probability.size() - 1)};
    for (std::size_t i = 0; i < a.probability.size(); ++i) {
        if (a.probability[i] == 0) continue;
        for (std::size_t j = 0; j < b.probability.size(); ++j)
            sum.probability[i + j] += a.probability[i] * b.probability[j];
    }
    trim(sum);
    return sum;
}

GroupCounts power(const GroupCounts& one, std::int64_t times) {
    GroupCounts result{0, {1}}, square = one;
    for (; times > 0; times /= 2) {
        if (times % 2 == 1) result = sum_of(result, square);
        if (times > 1) square = sum_of(square, square);
    }
    return result;
}

}  // namespace pipeweaver::capacity
