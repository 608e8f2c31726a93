// Action lists: what each rank does in one step, in order: compute, send, receive, wait, reduce. Complete enough for an
// executor of another framework; as a file they are actions.json ("pipeweaver-actions/1", docs/formats.md).
//
//   rank 0   F(stage 0)  send 0        receive 1  wait 1  B(stage 0)  reduce {0}
//                          |               ^
//                          v               |
//   rank 1   receive 0  wait 0  F(stage 1)  B(stage 1)  send 1  reduce {1}
//
// Order        One global order, by the replay's start times. When a task is appended to its rank's list, the sends of
//              its results follow it there, and the receives are appended to the receivers' lists at that same moment;
//              a wait stands before the task that needs the tensor. Sends and receives between two ranks then come in
//              the same order on both sides, which cannot deadlock and needs no tags (they are given all the same).
#pragma once

#include "pipeweaver/emulator/shares.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pipeweaver::emit {

/// A stage as those who build its chunk see it.
struct StageRole {
    std::string chain;
    bool trained = true;              ///< some part of it is
    bool gradient = true;             ///< a backward reaches it
    bool reads_batch = false;         ///< a module begins here: it takes raw data, its items or tokens
    std::vector<std::string> inputs;  ///< chains whose outputs it takes, in the model's order
    std::vector<bool> parts_trained;  ///< per part; none: all are

    friend bool operator==(const StageRole&, const StageRole&) = default;
};

/// Rows of a task's output, from the first to before the second.
using Rows = std::pair<std::int64_t, std::int64_t>;

/// One unit's pass through one stage.
struct Pass {
    std::int64_t stage = 0, microbatch = 0, item = 0;

    friend auto operator<=>(const Pass&, const Pass&) = default;
};

/// A chunk of the model: where it is, what is in it, what it is given.
struct ActionStage {
    std::int64_t stage = 0;
    std::size_t rank = 0;
    std::vector<schedule::StagePart> parts;
    StageRole role;  ///< parts_trained has an entry for each part
    /// How GPUs share it; none: all of a rank run it together, as one copy. Of a module in phases `copies` are all GPUs
    /// of the replica.
    std::optional<emulator::ModuleLayout> layout{};
};

/// The place of an item in its step: its microbatch of the replica, and where it stands in that.
struct ItemPlace {
    std::int64_t microbatch = 0, place = 0;

    friend auto operator<=>(const ItemPlace&, const ItemPlace&) = default;
};

/// Which positions of a unit each copy of its chain takes; of a stage in phases, each GPU of its rank.
struct ActionShare {
    std::string chain;
    std::int64_t microbatch = 0, item = 0;
    std::optional<std::int64_t> stage{};  ///< of a module in phases alone
    std::vector<std::int64_t> lengths{};  ///< positions of each sequence of the unit
    std::int64_t reduction = 1;           ///< positions of a row of the output behind the chain's last stage
    std::vector<std::vector<emulator::Piece>> copies{};  ///< of each copy, in the order in which it has them
    std::vector<ItemPlace> of{};                         ///< in phases: which item each sequence is
};

/// What one pass hands to another; its number is its index in ActionLists::tensors.
struct ActionTensor {
    bool gradient = false;  ///< else an activation
    Pass from, to;
    std::vector<std::int64_t> shape;     ///< rows, columns; empty: the plan does not know it
    std::optional<std::size_t> reverse;  ///< of an activation its gradient, of a gradient its activation
    bool by_item = false;                ///< an activation goes into a list of items; else it is the stage before's
    std::vector<Rows> slices;            ///< of an activation: the rows it takes of the output; none: all
    std::string dtype = "bf16";
    std::optional<Bytes> per_gpu{};  ///< none: not known
};

/// F, B, I or W of a pass.
struct Compute {
    schedule::TaskKind kind = schedule::TaskKind::forward;
    std::size_t task = 0;  ///< of the schedule problem
    Pass pass;
    std::string module;                                         ///< its chain
    emulator::Recompute recompute = emulator::Recompute::none;  ///< meaningless of W
    std::optional<double> loss_weight;                          ///< a loss follows this forward, with that weight
};

struct Message {
    enum class Op : std::uint8_t { send, receive, wait };

    Op op = Op::send;
    std::size_t tensor = 0;
    std::size_t peer = 0;  ///< the other rank; this and the tag are meaningless of a wait
    std::int64_t tag = 0;
};

/// The gradients of these stages are complete on this rank.
struct Reduce {
    std::vector<std::int64_t> stages;
};

using Action = std::variant<Compute, Message, Reduce>;

/// One replica's step.
struct ActionLists {
    std::string problem;  ///< its name
    std::size_t replica = 0, replicas = 1;
    std::vector<std::int64_t> most_alive;  ///< per rank: see most_alive() below
    std::vector<ActionStage> stages;
    std::vector<ActionTensor> tensors;
    std::vector<std::vector<Action>> ranks;  ///< per rank: its list
    std::int64_t gpus = 1;                   ///< of a rank; each has the same list
    bool sequence_parallel = false;          ///< GPUs that run a stage together each keep a part of the positions
    std::vector<ActionShare> shares{};       ///< one for each unit of a chain with copies, and for each pass in phases
};

/// Of a module in phases: what a microbatch takes of a rank's output.
struct PhaseOutput {
    std::int64_t microbatch = 0;
    Rows rows;  ///< of the output
    std::int64_t columns = 0;
    bool is_all = false;  ///< the microbatch has all items of the rank
};

/// A module in phases on one rank: a stage behind those of all chains.
struct PhaseStage {
    ActionStage stage;
    std::optional<std::size_t> forward, backward;  ///< tasks; none: no item is on the rank, or no backward reaches it
    std::vector<PhaseOutput> outputs;              ///< of the microbatches that have items on the rank
};

/// What a replica's action lists say beside the schedule.
struct ReplicaData {
    std::size_t replica = 0, replicas = 1;
    std::vector<StageRole> stages;          ///< per stage; none: all are trained, chains are those of the tasks
    std::vector<double> loss_weight;        ///< per task; none: 1 for each whose output nobody takes
    std::vector<std::vector<Rows>> slices;  ///< per transfer: the rows of the output that it takes; none: all
    std::int64_t gpus = 1;                  ///< of a rank
    bool sequence_parallel = false;
    std::vector<std::optional<emulator::ModuleLayout>> layouts{};  ///< per stage of a chain; none: all are of one copy
    std::vector<ActionShare> shares{};
    std::vector<PhaseStage> phases{};  ///< numbered on from the chains' stages
};

/// What the losses of a step, all its replicas', are weighted by.
struct LossTotals {
    double tokens = 0;     ///< that count
    double positions = 0;  ///< in the module that the last chain ends with; 0 where tokens count
};
[[nodiscard]] LossTotals loss_totals(const workloads::Model& model, const planner::Batch& batch,
                                     const partition::Partition& partition);
[[nodiscard]] inline LossTotals loss_totals(const planner::Job& job, const planner::Batch& batch,
                                            const partition::Partition& partition) {
    return loss_totals(job.setup->model, batch, partition);
}

/// What the mean over a microbatch's loss tokens counts in the step's loss: its share of the step's loss tokens; in a
/// step without any its share of the positions. Over a step these weights sum to 1. `units`: of each chain.
[[nodiscard]] double microbatch_weight(const workloads::Microbatch& microbatch, const partition::Partition& partition,
                                       const std::vector<std::vector<emulator::Unit>>& units, const LossTotals& losses);

/// Gives the data of one replica of a plan. A loss task's weight is its share of the step's loss tokens; several units
/// of a microbatch share its weight by their positions; in a step without loss tokens (generators) the weight is the
/// task's share of the positions of all.
[[nodiscard]] ReplicaData replica_data(const planner::Job& job, const planner::Batch& batch,
                                       const planner::ReplicaPlan& replica, const LossTotals& losses);

/// Derives the lists of a replica of a plan.
[[nodiscard]] ActionLists actions_of(const planner::Job& job, const planner::Batch& batch,
                                     const planner::ReplicaPlan& replica, const LossTotals& losses);

/// Derives the lists of a schedule. `modes` names the pairs' modes. Pre: `replay` is of `schedule` on `step.problem`
/// and completed.
[[nodiscard]] ActionLists derive_actions(const emulator::StepProblem& step, const schedule::Schedule& schedule,
                                         const schedule::Replay& replay, const std::vector<emulator::Recompute>& modes,
                                         const ReplicaData& data);

/// Derives the lists of any solved problem whose tasks say stage and microbatch: an edge from forward to forward is a
/// tensor of unknown shape, one from backward to backward its gradient. Throws Error{limit} why_no_actions().
[[nodiscard]] ActionLists derive_actions(const schedule::Problem& problem, const schedule::Schedule& schedule);

/// Says why the lists of such a problem cannot be derived: it does not say enough (its stages, a task's stage or
/// microbatch) or has tasks X, or the schedule does not run; none: they can.
[[nodiscard]] std::optional<std::string> why_no_actions(const schedule::Problem& problem,
                                                        const schedule::Schedule& schedule);

/// Says why an executor could not run the lists; none: each runs to its end. Then references exist; every tensor
/// between two ranks is sent once and received once, in one order on both sides; it is there when it is used; passes
/// run once, F before its backward; each trained stage is reduced once, after its last backward; no ranks wait for each
/// other in a cycle; where stages have copies these are as many as the GPUs of a rank have place for, all stages of a
/// chain have the same, and every position of a unit is on one of them. This checks what the PyTorch executor checks
/// when it loads a plan (python/pipeweaver/torch/check.py), and also the order of posting, which that executor can do
/// without since it has tags. Takes time O(actions).
[[nodiscard]] std::optional<std::string> why_not_runnable(const ActionLists& actions);

/// Writes the lists as a file's content ("pipeweaver-actions/1"): keys in fixed order, an action a line, a newline at
/// the end.
[[nodiscard]] std::string to_json(const ActionLists& actions);

/// The lists split by rank: each rank's own, with the tensors that its passes take or give, under the numbers that they
/// have in the whole ("pipeweaver-rank-actions/1"). All name the same SHA-256 of the whole, so that ranks can tell
/// whether their lists belong together. A wait says which tensors were *freed* by then: those that the sender had
/// waited for before it sent this one, so that the buffers they were sent from can be used again.
class RankLists {
public:
    /// Pre: `all` outlives it, and is runnable.
    explicit RankLists(const ActionLists& all);

    /// Writes the lists of `rank` as a file's content.
    [[nodiscard]] std::string to_json(std::size_t rank) const;

private:
    std::size_t rank_of(const Pass& pass) const;
    void add_freed(const std::vector<Action>& list);
    void add_shares();

    const ActionLists& all_;
    std::vector<std::vector<std::size_t>> tensors_;  // of each rank
    std::vector<std::vector<std::size_t>> shares_;   // of each rank: of its passes and of what comes to it
    std::vector<std::vector<std::size_t>> freed_;    // per tensor
    std::string sha256_;
};

/// Reads a file, gzip allowed. Throws Error{io}, Error{input} with file and place; whether the lists can run is
/// why_not_runnable()'s answer.
[[nodiscard]] ActionLists read_actions(const std::filesystem::path& path);

/// Reads the lists as read_actions() does, from text already read; `name` stands for the file in errors.
[[nodiscard]] ActionLists parse_actions(std::string name, std::string_view text);

/// Counts per rank the most forward passes whose activations are alive at once. Recomputed whole, a pass has none
/// between its forward and its backward.
[[nodiscard]] std::vector<std::int64_t> most_alive(const schedule::Problem& problem, const schedule::Schedule& schedule,
                                                   const std::vector<emulator::Recompute>& modes);

/// Gives per rank the most bytes that wait in receive buffers at once under the order above.
[[nodiscard]] std::vector<Bytes> receive_buffers_needed(const emulator::StepProblem& step,
                                                        const schedule::Replay& replay);

}  // namespace pipeweaver::emit
