#include "pipeweaver/measured/drift.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace pipeweaver::measured {

namespace {

double lower_middle(std::vector<double> values) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

double mean_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of a sample; pre: two values or more.
double deviation_of(const std::vector<double>& values) {
    const double mean = mean_of(values);
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// Per group the ranks that have it planned.
std::map<PassGroup, std::map<std::int64_t, GroupTimes>> by_group(const RankGroups& ran) {
    std::map<PassGroup, std::map<std::int64_t, GroupTimes>> groups;
    for (const auto& [rank, of_rank] : ran)
        for (const auto& [group, times] : of_rank)
            if (times.planned > 0) groups[group][rank] = times;
    return groups;
}

// Per stage's modules: all its passes, measured over planned, in each rank's own time.
std::map<std::string, double> against_plan(const RankGroups& ran, const std::map<std::int64_t, double>& of_rank) {
    std::map<std::string, GroupTimes> sums;
    for (const auto& [group, ranks] : by_group(ran))
        for (const auto& [rank, times] : ranks) {
            const auto own = of_rank.find(rank);
            GroupTimes& sum = sums[group.modules];
            sum.planned += times.planned;
            sum.measured += times.measured / (own == of_rank.end() ? 1.0 : own->second);
        }
    std::map<std::string, double> factors;
    for (const auto& [modules, sum] : sums) factors[modules] = sum.measured / sum.planned;
    return factors;
}

// Of what the last step has, over all steps that have it.
template <class Key>
std::map<Key, std::vector<double>> over_steps(const std::vector<std::map<Key, double>>& factors) {
    std::map<Key, std::vector<double>> rows;
    for (const auto& [key, last] : factors.back())
        for (const auto& step : factors)
            if (const auto found = step.find(key); found != step.end()) rows[key].push_back(found->second);
    return rows;
}

}  // namespace

std::map<std::int64_t, double> beside_peers(const RankGroups& ran) {
    std::map<std::int64_t, GroupTimes> sums;  // planned: as the peers take it
    for (const auto& [group, ranks] : by_group(ran)) {
        if (ranks.size() < 2) continue;
        std::vector<double> ratios;
        for (const auto& [rank, times] : ranks) ratios.push_back(times.measured / times.planned);
        const double usual = lower_middle(std::move(ratios));
        for (const auto& [rank, times] : ranks) {
            sums[rank].planned += times.planned * usual;
            sums[rank].measured += times.measured;
        }
    }
    std::map<std::int64_t, double> factors;
    for (const auto& [rank, sum] : sums)
        if (sum.planned > 0) factors[rank] = sum.measured / sum.planned;
    return factors;
}

Drift::Drift(const DriftLimits& limits) : limits_(limits) {
    if (!(limits.noise > 0 && limits.window >= 2 && limits.least > 0 && limits.strictness > 0))
        fail(ErrorKind::input, "noise, least and strictness are above 0, window is 2 or more");
}

std::vector<DriftFinding> Drift::add(RankGroups step) {
    steps_.push_back(std::move(step));
    if (steps_.size() > static_cast<std::size_t>(limits_.window)) steps_.pop_front();
    std::vector<std::map<std::int64_t, double>> of_ranks;
    for (const RankGroups& one : steps_) of_ranks.push_back(beside_peers(one));
    std::vector<DriftFinding> findings;
    std::map<std::int64_t, double> means;
    for (const auto& [rank, factors] : over_steps(of_ranks)) {
        const double mean = means[rank] = mean_of(factors);
        if (mean - 1 > limit(factors)) findings.push_back({rank, {}, mean, steps_.size()});
    }
    std::vector<std::map<std::string, double>> of_modules;
    for (const RankGroups& one : steps_) of_modules.push_back(against_plan(one, means));
    for (const auto& [modules, factors] : over_steps(of_modules))
        if (const double mean = mean_of(factors); std::abs(mean - 1) > limit(factors))
            findings.push_back({std::nullopt, modules, mean, steps_.size()});
    return steps_.size() > 1 ? not_told(findings) : std::vector<DriftFinding>{};
}

void Drift::forget() {
    steps_.clear();
    told_.clear();
}

// How far a mean may be off before it is told; of one factor, however far.
double Drift::limit(const std::vector<double>& factors) const {
    if (factors.size() < 2) return std::numeric_limits<double>::infinity();
    const double noise = std::max(limits_.noise, deviation_of(factors));
    return std::max(limits_.least, limits_.strictness * noise / std::sqrt(static_cast<double>(factors.size())));
}

std::vector<DriftFinding> Drift::not_told(const std::vector<DriftFinding>& findings) {
    std::vector<DriftFinding> fresh;
    std::map<Told, double> told;
    for (const DriftFinding& one : findings) {
        const Told key{one.rank, one.modules};
        const auto before = told_.find(key);
        const bool is_known = before != told_.end() && std::abs(one.factor - before->second) <= limits_.least;
        told[key] = is_known ? before->second : one.factor;
        if (!is_known) fresh.push_back(one);
    }
    told_ = std::move(told);
    return fresh;
}

}  // namespace pipeweaver::measured
