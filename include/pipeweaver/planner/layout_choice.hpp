// The layouts (tp x cp x pp x dp, ep, ZeRO stage) that a model may run in on a cluster, as they are asked for and as
// they were judged.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/planner/step_recompute.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace pipeweaver::planner {

struct Job;
struct Batch;

/// A layout, and what the copies of a weight share out in it.
struct LayoutAndZero {
    emulator::Layout layout;
    int zero = 1;
};

/// Whether they are the same in all degrees and the stage.
[[nodiscard]] bool are_equal(const LayoutAndZero& a, const LayoutAndZero& b);

/// Costs of layers that requests share whose setups differ in GPUs alone: by tp, cp and ep, where no exchange of
/// replicas is part of them; those that partitions are judged by, where they are others, apart. Any number of requests
/// may use one at once.
class LayoutStores {
public:
    /// Makes it where it is not there yet.
    [[nodiscard]] std::shared_ptr<emulator::LayerStore> of(const emulator::Layout& layout, bool judging = false);

private:
    std::mutex mutex_;
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, emulator::Placement, bool>,
             std::shared_ptr<emulator::LayerStore>>
        stores_;
};

struct LayoutRequest {
    const emulator::Setup* setup = nullptr;  ///< its own layout does not count
    std::optional<std::int64_t> tp, pp, dp;  ///< what is fixed; none: to be chosen
    std::optional<std::int64_t> cp = 1;      ///< the same
    std::optional<std::int64_t> ep;          ///< what is fixed
    bool any_ep = false;                     ///< where it is not: to be chosen, or else emulator::default_ep
    bool any_zero = false;                   ///< the ZeRO stage is to be chosen, or else the recipe's
    emulator::ContextParallel context = emulator::ContextParallel::all_to_all;
    std::vector<workloads::Microbatch> microbatches;
    bool for_each_replica = false;  ///< every replica runs so many microbatches of these sizes; else they share them
    /// Then: those of so many replicas together, of which the layout that is chosen must hold the largest; empty: only
    /// `microbatches` must fit.
    std::function<std::vector<workloads::Microbatch>(std::int64_t replicas)> draw{};
    /// `microbatches` are so many of each replica of the setup's own layout: other replicas would draw others.
    bool drawn_for_own = false;
    std::optional<LayoutAndZero> own{};  ///< the user's: judged whatever else is, and marked
    std::string target = "free";         ///< of targets(): which partitions and ZeRO stages it runs
    bool only_launched = false;          ///< judged quickly by what launch flags can say: nothing is searched
    bool closely = false;                ///< then the fastest again, by its most loaded replicas and more schedules
    std::function<bool(const LayoutAndZero&)> allows{};  ///< others are not enumerated; empty: all are allowed
    bool bounds = true;                      ///< whether a bound may pass over a layout; else all are judged
    std::optional<Duration> slowest{};       ///< a step that is of use; those with a larger bound are passed over
    std::optional<std::size_t> shown{};      ///< so many of the fastest no bound may hide; none: ten
    std::shared_ptr<LayoutStores> stores{};  ///< of requests that differ in GPUs and microbatches; null: own ones
};

/// A layout that fits, by the fastest of what was tried in it.
struct LayoutTried {
    emulator::Layout layout;
    int zero = 1;
    std::size_t microbatches =
        0;                  ///< of all replicas, that `step` is for; of more than 32 that each replica has of its
                            ///< own, 32
    Duration step{};        ///< of the slowest replica (of the most loaded one, where a layout is slower than
                            ///< the fastest anyway), with gradient reduction and optimizer
    std::string partition;  ///< of partition::partitioners()
    std::int64_t chunks_per_rank = 1;
    std::string policy;                        ///< what makes the schedule that `step` is of, or "search"
    std::optional<StepRecompute> recompute{};  ///< of the policy; none: of a search, each pass its own
    Bytes memory;                              ///< peak of the fullest rank
    bool is_own = false;                       ///< the user's
    bool searched = false;                     ///< `step` is what a short search found, where that was less

    Duration per_microbatch() const { return step / static_cast<std::int64_t>(microbatches); }
};

/// The name of its recomputation, or "by-pass".
[[nodiscard]] std::string recompute_of(const LayoutTried& tried);

/// Why layouts were not taken, and how many.
struct LayoutRefused {
    std::string why;
    std::size_t count = 0;
};

/// A layout that was enumerated.
struct LayoutConsidered {
    LayoutAndZero as;
    std::string refused{};     ///< why; empty: it may run, as far as it was looked at
    bool passed_over = false;  ///< by its bound
    Duration bound{};          ///< of a step, unless a rule refused it
};

struct LayoutChoice {
    std::vector<LayoutTried> tried;            ///< fastest for each microbatch first, ties to the smaller tp, then pp
    std::vector<LayoutRefused> refused;        ///< in the order of the checks
    std::size_t taken = 0;                     ///< its place among `tried`
    std::size_t passed_over = 0;               ///< layouts that a bound shows to be slower than the best ten: not tried
    bool equal_batch = false;                  ///< all are for the same microbatches: their steps may be compared
    bool cut_short = false;                    ///< time ended it: others may be faster
    std::size_t not_reached = 0;               ///< layouts that were not tried when time ended it
    std::optional<std::string> own_refused{};  ///< why the user's own layout is not among them
    std::vector<LayoutConsidered> considered{};  ///< all: tp first, then cp, pp, ep and ZeRO stage

    const LayoutTried& best() const { return tried[taken]; }
    const emulator::Layout& layout() const { return best().layout; }
};

/// Judges the layouts of the request as a choice among them does; where none fits `tried` is empty. `time` is asked
/// between layouts. Pre: microbatches.
[[nodiscard]] LayoutChoice judge_layouts(const LayoutRequest& request, const Executor& execute, const Time& time = {});

/// How many layouts a request enumerates, those that rules refuse included.
[[nodiscard]] std::size_t count_layouts(const LayoutRequest& request);

/// `setup` in that layout and with that stage, with nothing priced yet. Gradients are not reduced in buckets where
/// every backward reduces them (from stage 2 on).
[[nodiscard]] emulator::Setup in_layout(const emulator::Setup& setup, const LayoutAndZero& layout);

// Which layout (tp x cp x pp x dp, ep, ZeRO stage) a model runs fastest in on a cluster: those that the GPUs, the model
// and the memory allow are judged by known schedules, the best of them by a short search.
//
//   bounds    what cannot hold its weights is refused before anything is priced; what a bound shows to be slower than
//             ten others is not tried
//   quick     the most loaded replica, the best bounds first
//   whole     the best few again, by their most loaded replicas and every setting of recomputation
//   search    these, and the user's own layout; of those within 0.5 % of the best the user's own, else the one with the
//             fewest chunks, then the smallest tp is taken
//
// Determinism  A function of the request, but for `time`: not of the executor.

/// Chooses among all tp x cp x pp x dp = GPUs with what is fixed: tp inside a node, dividing heads and feed-forward
/// widths; a layer of every module for each rank; a microbatch for each replica. `time` is asked between layouts.
/// Throws Error{limit} where nothing fits: which layout comes closest, its rank, what is short, and what would fit;
/// Error{input} where no layout agrees with the GPUs and the model. Pre: microbatches.
[[nodiscard]] LayoutChoice choose_layout(const LayoutRequest& request, const Executor& execute, const Time& time = {});

/// For a job whose layout was given: how long its batch takes in all layouts of the same GPUs as launch flags can run
/// it, its own among them and marked, judged quickly; `cp`: with so many context parallel GPUs, or any. in_layout()
/// makes the setup of each. Throws as choose_layout(). Pre: the batch has microbatches.
[[nodiscard]] LayoutChoice launched_layouts(const Job& job, const Batch& batch, const std::optional<std::int64_t>& cp,
                                            const Executor& execute, const Time& time = {});

/// What would fit where the request's layout does not: another layout on the same GPUs if there is one, else the fewest
/// GPUs (doubling up to 64 times as many) on which there is. A part of a sentence.
[[nodiscard]] std::string what_would_fit(const LayoutRequest& request, const Executor& execute);

}  // namespace pipeweaver::planner
