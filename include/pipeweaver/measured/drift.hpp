// Steps of a run beside its plan while it goes on: a rank that is slow beside its peers, modules whose times have
// drifted.
//
// Beside peers  Passes of one group on several ranks are compared beside the plan: measured over planned on a rank,
//               over the lower middle of that on all ranks that have the group. A rank's factor is the time-weighted
//               mean over its groups; one that shares no group with another has none.
// Against plan  All passes through stages with the same modules, measured over planned, the ranks' factors taken out.
// Told          The mean of the last n factors where it is off by more than strictness * noise / sqrt(n), and than
//               `least`; what was told is told again only when it was gone, or has changed by more than `least`.
// Determinism   equal steps, equal findings.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::measured {

/// Passes of one kind through stages with the same modules.
struct PassGroup {
    std::string modules;  ///< "vit+llm"
    std::string kind;     ///< "F", "B", "I" or "W"

    friend auto operator<=>(const PassGroup&, const PassGroup&) = default;
};

/// Times of all passes of a group on a rank, in nanoseconds.
struct GroupTimes {
    double planned = 0, measured = 0;
};

/// What the ranks of a replica ran, in a step or in several.
using RankGroups = std::map<std::int64_t, std::map<PassGroup, GroupTimes>>;

/// The factor of each rank that shares a group with another. Groups that no time is planned for do not count.
[[nodiscard]] std::map<std::int64_t, double> beside_peers(const RankGroups& ran);

/// When a factor is told.
struct DriftLimits {
    double noise = 0.03;      ///< deviation of one factor, where the steps' own is not larger
    std::int64_t window = 5;  ///< steps that are looked at, the last ones
    double least = 0.05;      ///< what is off by less is not told
    double strictness = 4.5;  ///< deviations of a mean
};

/// What the last steps say.
struct DriftFinding {
    std::optional<std::int64_t> rank;  ///< that is slow beside its peers by `factor`; none: it is about `modules`
    std::string modules;               ///< passes through stages with them take `factor` times what the plan says
    double factor = 1;
    std::size_t steps = 0;  ///< over which it is the mean
};

class Drift {
public:
    /// Throws Error{input} unless noise, least and strictness are above 0 and the window is 2 or more.
    explicit Drift(const DriftLimits& limits = {});

    /// Takes a step of all ranks, and gives what is to be told after it: ranks by number, then modules by name.
    /// Pre: times are finite and not negative.
    [[nodiscard]] std::vector<DriftFinding> add(RankGroups step);

    /// Begins anew: another plan has been loaded.
    void forget();

private:
    using Told = std::pair<std::optional<std::int64_t>, std::string>;

    double limit(const std::vector<double>& factors) const;
    std::vector<DriftFinding> not_told(const std::vector<DriftFinding>& findings);

    DriftLimits limits_;
    std::deque<RankGroups> steps_;
    std::map<Told, double> told_;  // the factor with which each was
};

}  // namespace pipeweaver::measured
