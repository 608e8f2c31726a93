// Groups of GPUs that each train some modules of a model, and how many GPUs each gets.
//
//   group vit   16 GPUs  tp 1 x pp 1 x dp 16   | F0 F1 .. |F5 B0| ..                     B6 B7 |
//   group llm  112 GPUs  tp 8 x pp 2 x dp 7    |    F0 F1 B0 ..              B6 B7 |
//
// Round        What the replicas of all groups run together: a microbatch on each replica of the group that sets the
//              pace. The others share its samples out to their own replicas.
// Order        1F1B over the stages of all groups: a stage runs as many forwards ahead as there are stages behind it,
//              fewer where its memory holds fewer, and never more than a stage before it. A group's activations cross a
//              bridge to the groups behind it, gradients come back over it.
// Bound        No step is below the rounds of one stage with the first forward and last backward of the stages before.
// Units        Duration is integer nanoseconds; GPUs are counted.
// Determinism  A function of the arguments.
// Source       DistTrain / MMScale (arXiv 2408.04275) asks for the same split; it solves a relaxation and rounds, and
//              takes a closed formula where this replays.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::groups {

/// One stage of a group, on the slowest of its replicas.
struct Stage {
    std::vector<Duration> forward, backward;  ///< per round
    std::int64_t most_in_flight = 1;          ///< rounds between forward and backward that its memory holds
};

/// A number of GPUs and a layout that a group may have.
struct Choice {
    std::int64_t gpus = 1;
    std::vector<Stage> stages;
    Duration hop{};     ///< from one of its stages to the next
    Duration bridge{};  ///< of a round's activations or gradients, through the links of its GPUs
    Duration tail{};    ///< behind the last backward: gradients of replicas, optimizer
};

struct Group {
    std::string name;
    std::vector<Choice> choices;
};

/// Activations go from one group to another.
struct Bridge {
    std::size_t from = 0, to = 0;  ///< indices into Split::groups; from < to
};

struct Split {
    std::int64_t gpus = 0;      ///< of all groups together, at most
    std::int64_t rounds = 1;    ///< of a step
    std::vector<Group> groups;  ///< in topological order
    std::vector<Bridge> bridges;
    bool as_far = false;  ///< stages run as far ahead as 1F1B does: what has no memory for that does not run
};

/// Where the time of a group's GPUs goes; sums to the step times its stages.
struct Spent {
    Duration busy{};     ///< forwards, backwards
    Duration fill{};     ///< before the first forward
    Duration waiting{};  ///< for other stages, in between
    Duration ending{};   ///< its tail
    Duration drain{};    ///< behind it, until the step ends
};

struct Replayed {
    Duration step{};
    std::vector<Spent> spent;                      ///< per group, of all its stages
    std::vector<std::vector<std::int64_t>> ahead;  ///< per group and stage: forwards in front of the first backward
};

/// Replays a step in which each group has the choice of that index. Pre: `taken` has one for each group, with `rounds`
/// times in every stage. Time O(stages x rounds).
[[nodiscard]] Replayed replay(const Split& split, std::span<const std::size_t> taken);

struct Allocation {
    std::vector<std::size_t> taken;  ///< per group: index into its choices
    std::int64_t gpus = 0;
    Duration step{};
};

/// The shortest step of all combinations whose GPUs are there; of equal ones that with the fewest GPUs, then that with
/// the first choices. `below`: a step that is known already; none that is longer is sought. None: there is no such
/// combination that runs. Pre: as replay() for all choices.
[[nodiscard]] std::optional<Allocation> allocate(const Split& split, std::optional<Duration> below = {});

}  // namespace pipeweaver::groups
