// What faulty nodes leave of a cluster for tensor parallel groups, by the network that joins its GPUs.
//
// Source       InfinitePOD / InfiniteHBD, arXiv 2502.03885: a group lies inside a high-bandwidth domain; GPUs that are
//              healthy but make up no group are wasted. The rules for cubes and rings are derived here.
// Faults       each node is faulty with the same probability, independently; all of its GPUs are down then.
// Switch       any GPUs of a domain make a group: usable are floor(free / tp) groups of each domain. GPUs that fill no
//              domain are one smaller domain.
// Cube         links are fixed, so a cube is cut into blocks of tp GPUs once, and a faulty node takes its block with
//              it. Groups larger than a cube are not modelled.
// Ring         nodes in a closed ring, each linked to the next `hops` on both sides: fewer faulty nodes in a row are
//              bridged, `hops` or more cut the ring. Groups are made of neighbours: floor(free / tp) of each segment.
// Closed form  the probability of every number of groups: powers of a domain's distribution (binomial over its nodes);
//              of a ring a walk around it. Both sum what all patterns of faults give, to rounding.
// Determinism  equal arguments give equal results on any number of threads.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/workloads/network.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::capacity {

/// What is asked of a network.
struct FaultCase {
    static constexpr std::int64_t most_gpus = 1'000'000;

    workloads::Network network;
    std::int64_t gpus = 0;  ///< a multiple of the network's node
    double faulty = 0;      ///< probability of a node, 0 to 1
    std::int64_t tp = 1;    ///< GPUs of a group
};

/// Why no group of tp GPUs lies inside a domain of the network; nothing where one does.
[[nodiscard]] std::optional<std::string> why_no_group(const workloads::Network& network, std::int64_t tp);

/// Throws Error{input} unless the case can be asked: sizes, probability, and why_no_group().
void require_answerable(const FaultCase& asked);

/// Probability of each number of groups.
struct GroupCounts {
    std::int64_t first = 0;           ///< the number that probability[0] is of
    std::vector<double> probability;  ///< of first, first + 1, ...; what is left out is below 1e-18 each

    double mean() const;
    /// The largest number that is reached or exceeded with this probability. Pre: 0 < confidence < 1.
    std::int64_t at(double confidence) const;
};

/// How many groups are there, in closed form; nothing of a ring with too many states for it (docs/limits.md).
/// Throws as require_answerable().
[[nodiscard]] std::optional<GroupCounts> usable_groups(const FaultCase& asked);

/// Groups that are there if just these nodes are faulty. Pre: one entry for each node.
[[nodiscard]] std::int64_t groups_with(const FaultCase& asked, const std::vector<char>& faulty_nodes);

/// GPUs of a domain that has so many, on average; not of a ring. What the closed form multiplies and adds.
[[nodiscard]] double usable_of_domain(const FaultCase& asked, std::int64_t domain_gpus);

/// A mean over trials, in GPUs.
struct TriedMean {
    double mean = 0;
    double half_width = 0;  ///< of the 95 % interval, by the normal distribution; 0 where all trials agree
};

struct FaultTrials {
    TriedMean usable, wasted;
    std::vector<std::int64_t> usable_gpus;  ///< of each trial, ascending

    /// As GroupCounts::at(), in GPUs.
    std::int64_t at(double confidence) const;
};

/// The same by drawing faults: trial i by stream i of the seed. Throws as require_answerable(). Pre: trials > 0.
[[nodiscard]] FaultTrials try_faults(const FaultCase& asked, std::int64_t trials, std::uint64_t seed,
                                     const Executor& execute = in_order);

/// The fewest GPUs, in whole domains (of a ring: nodes), that hold a job of `job_gpus` with this probability; nothing
/// where none up to a million do or no closed form is there. Of a ring, where one node more may cut it: one unit less
/// does not. `asked.gpus` is not read. Throws as require_answerable().
[[nodiscard]] std::optional<std::int64_t> gpus_for_job(FaultCase asked, std::int64_t job_gpus, double confidence);

/// What a table of capacity says of a network.
struct FaultColumns {
    double usable_gpus = 0;                 ///< on average
    double wasted_share = 0;                ///< of all GPUs, on average: healthy, but in no group
    std::int64_t job_gpus = 0;              ///< that are usable with 99 %
    std::optional<std::int64_t> spares;     ///< to buy beside `gpus`, so that a job of `gpus` is there with 99 %
    std::optional<double> usd_per_gpu;      ///< of the interconnect
    std::optional<double> usd_of_a_usable;  ///< the same for a usable GPU; none where none is usable
};

/// By the closed form, else by 10,000 trials. Throws as require_answerable().
[[nodiscard]] FaultColumns fault_columns(const FaultCase& asked);

}  // namespace pipeweaver::capacity
