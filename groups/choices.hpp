// Everything that a group may have, as the allocation takes it.
#pragma once

#include "groups/prices.hpp"
#include "groups/sorted_microbatches.hpp"
#include "pipeweaver/groups/placing.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace pipeweaver::groups {

/// What a choice stands for.
struct Candidate {
    Degrees degrees;
    std::size_t mode = 0;                    // index into Prices::modes()
    std::vector<Bytes> held, base;           // per stage: of a round ahead, and beside these
    const emulator::Chain* chain = nullptr;  // which outlives it
    Portion portion{};
    const Fixed* fixed = nullptr;  // likewise
    Bytes received{};              // of `base`: rounds that wait at a bridge

    Bytes peak(const std::vector<std::int64_t>& ahead) const;
};

/// Of one group: `choices[i]` is `candidates[i]`.
struct Candidates {
    std::vector<Choice> choices;
    std::vector<Candidate> candidates;
};

/// The allocation as it runs; `of`: per group of the split.
[[nodiscard]] Placing placing(const Split& split, const std::vector<std::vector<Candidate>>& of,
                              const Allocation& found);

/// The setup's layers in one row, as engineers cut it for 1F1B, in each of their ways; named as these.
[[nodiscard]] std::vector<emulator::Chain> usual_chains(const emulator::Setup& setup,
                                                        const std::vector<workloads::Microbatch>& sample);

/// What is asked for, if a node has as many GPUs; else all powers of two in a node.
[[nodiscard]] std::vector<std::int64_t> tensor_parallel(const std::optional<std::int64_t>& asked,
                                                        const workloads::Cluster& cluster);

/// Of items of so many microbatches a replica passes those of at most `most_joined` at once.
inline constexpr std::int64_t most_joined = 8;

/// The divisors of a number up to `most`, the smallest first. Pre: number >= 1.
[[nodiscard]] std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most);

/// How the replicas of a group take a round.
struct Pace {
    std::int64_t replicas = 1;  ///< of the group that sets it: microbatches of a round
    std::int64_t rounds = 1;
    std::int64_t deepest = 1;         ///< stages of all groups, at most
    std::optional<Duration> below{};  ///< a step that is known: what must take longer is left out
    bool alternating = false;         ///< the lightest round, the heaviest, the next lightest, ...; else they rise
};

class Choices {
public:
    /// All must outlive it. `crossing`: of the largest microbatch, to or from other groups. `recompute`: one of
    /// Prices::modes(), the only one that is tried; none: all are.
    Choices(const SortedMicrobatches& microbatches, Prices& prices, Bytes crossing,
            std::optional<emulator::Recompute> recompute = {});

    /// Adds the group's layout with each recomputation that fits, up to the first with which nothing waits for memory.
    /// False: none fits.
    bool add(const emulator::Chain& chain, const Degrees& degrees, const Pace& pace, Candidates& to);

private:
    using Passes = std::vector<std::array<StagePasses, mode_count>>;

    // A replica's part of a round.
    struct Taken {
        Degrees degrees;
        Portion portion;
        Pace pace;

        std::int64_t microbatches() const { return std::max(std::int64_t{1}, pace.replicas / degrees.dp); }
        std::int64_t passes() const { return microbatches() / portion.joined; }
    };

    bool add(const emulator::Chain& chain, const Taken& taken, Candidates& to);
    const Fixed& fixed(const emulator::Chain& chain, const Taken& taken);
    std::vector<Duration> rounds_of(const std::vector<Duration>& passes, const Taken& taken) const;
    Duration slowest_in(const std::vector<Duration>& passes, std::size_t first, const Taken& taken) const;
    Duration work_of(const Passes& passes);
    bool takes_longer(const Passes& passes, const Taken& taken);
    Duration least_step(const Passes& passes, const Taken& taken) const;
    Bytes message(const Taken& taken) const;

    const SortedMicrobatches& microbatches_;
    Prices& prices_;
    Bytes crossing_;
    std::optional<emulator::Recompute> recompute_;
    std::vector<std::int64_t> times_;  // per priced microbatch: so many of the step are like it
    std::map<std::tuple<std::string, Degrees, std::int64_t>, Fixed> fixed_;  // and what is joined
    std::map<const Passes*, Duration> work_;                                 // work_of()
};

}  // namespace pipeweaver::groups
