// One layout judged: its partitions emulated, and what known schedules make of them; of few layouts also what a short
// search does.
//
//   ways     first-stage and balanced under 1f1b, balanced with 2 chunks under interleaved, these and dip under the
//            dual queue; of those that flags can launch without dip and the dual queue;
//            in the end also gpipe on chains, and by flags 4 and 8 chunks. Without a pipeline all modules as one chain
//   long     of a replica with many microbatches some are tried, twice as many as fill the pipeline; the others take as
//   steps    long as these do once it is full
//
// Determinism  A function of the arguments.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/planner/layout_choice.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace pipeweaver::planner {

/// How closely a layout is judged.
enum class LayoutEffort : std::uint8_t {
    quick,  ///< by the most loaded replica, few settings of recomputation
    whole   ///< by the most loaded replicas, with all they have; about a dozen settings, and by rank
};

struct LayoutTrial {
    std::optional<LayoutTried> tried;  ///< none: no partition fits the memory
    /// Then: of the rank that is furthest from fitting, in the partition that is short of the least.
    std::optional<emulator::MemoryShortage> shortage;
    std::vector<partition::Partition> partitions;  ///< the one that `tried` names, then dip, if it fits
    /// A step with endless memory and without exchanges of gradients, under the policies; none: it was not asked for.
    std::optional<Duration> at_best{};
    bool whole = false;  ///< judged by all that the layout is chosen for
};

/// Judges the layout of `setup`; `costs`: partition::microbatch_costs of the request's microbatches in it. Pre: it
/// divides model and cluster, and every replica has a microbatch. Throws what building its steps throws.
[[nodiscard]] LayoutTrial try_layout(const LayoutRequest& request, const emulator::Setup& setup,
                                     const std::vector<Duration>& costs, LayoutEffort effort);

/// Searches the partitions of a trial and the best by policies that a plan could take, on the most loaded replica: of a
/// whole trial the best of each kind, for a few rounds; else one, without. Where that is shorter than the known
/// schedules, `tried` says so. Nothing for steps too large for a quick search. Pre: trial.tried, of `setup`.
void search_layout(const LayoutRequest& request, const std::shared_ptr<const emulator::Setup>& setup,
                   const std::vector<Duration>& costs, LayoutTrial& trial);

// The layouts that a request leaves open: which of them GPUs, nodes, model and batch rule out, which hold too much
// whatever their partition, and a bound on the time of the others.
//
// Determinism  A function of the request: not of the executor.

/// In the order in which they are checked.
enum class LayoutReason : std::uint8_t {
    other_nodes,
    heads,
    columns,
    layers,
    context,
    experts,
    sequences,
    few_microbatches,
    too_many_tasks,
    memory
};
inline constexpr std::size_t layout_reasons = 10;

/// A reason in words, as reports say it.
[[nodiscard]] std::string reason_text(LayoutReason reason, const LayoutRequest& request);

struct LayoutCandidate {
    LayoutAndZero as;
    bool is_own = false;
    std::optional<LayoutReason> refused{};
    /// Then, where `refused` is memory: what its weights, gradients and optimizer state are short of on the mean rank.
    Bytes short_by{};
    Duration bound{};               ///< of a step, unless refused: no schedule that is tried is expected below it
    std::int64_t microbatches = 0;  ///< that the step has, of all replicas
};

/// All layouts of the request on the setup's GPUs, tp first, then cp, pp, ep and ZeRO stage; then the user's own, where
/// it is not among them.
///
/// ZeRO 0 is not tried unless it is asked for: it holds more than 1, and its exchange takes no less.
/// Bound: the work of all modules on a sample of the microbatches, shared out evenly over ranks and replicas (a replica
/// has no less than its number of the shortest), and the fill and drain of a chain of four chunks on each rank. What
/// recomputation, uneven stages and exchanges of gradients add is not in it.
class LayoutCandidates {
public:
    LayoutCandidates(const LayoutRequest& request, const Executor& execute);

    std::vector<LayoutCandidate> take() { return std::move(all_); }

    /// The setup of a candidate, with a store that it shares with those whose layers cost the same.
    [[nodiscard]] std::shared_ptr<const emulator::Setup> setup_of(const LayoutAndZero& as) const;

    /// partition::microbatch_costs of the request's microbatches in the layout of a setup_of(): worked out once for all
    /// candidates that differ in pipeline ranks, replicas and ZeRO stage alone. Any threads may ask.
    [[nodiscard]] const std::vector<Duration>& costs_of(const emulator::Setup& setup) const;

    /// How many there are.
    [[nodiscard]] static std::size_t count(const LayoutRequest& request);

private:
    // Layouts that price what judges them alike: tp, cp, ep, and where their GPUs lie.
    using Pricing = std::tuple<std::int64_t, std::int64_t, std::int64_t, emulator::Placement>;
    using Priced = std::tuple<Pricing, int, std::int64_t>;  // and from ZeRO 2 on the stage, and replicas

    static Pricing pricing_of(const emulator::Layout& layout) {
        return {layout.tp, layout.cp, layout.ep, layout.placement};
    }
    static Priced priced_of(const LayoutAndZero& as);

    struct MicrobatchCosts {
        std::once_flag once;
        std::vector<Duration> all;
    };

    explicit LayoutCandidates(const LayoutRequest& request)
        : request_(request), shared_(request.stores ? request.stores : std::make_shared<LayoutStores>()) {
        enumerate();
    }

    void enumerate();
    void add_stores(const LayoutAndZero& as);
    void add(const emulator::Layout& layout);
    LayoutCandidate placed(LayoutCandidate candidate) const;
    void add_own();
    std::vector<std::int64_t> experts_of(const emulator::Layout& layout) const;
    std::optional<LayoutReason> refusal(const emulator::Layout& layout) const;
    void refuse_by_memory(LayoutCandidate& candidate) const;
    void bound_all(const Executor& execute);
    Duration bound_of(const LayoutCandidate& candidate, const std::vector<Duration>& costs) const;

    const LayoutRequest& request_;
    std::map<Priced, std::shared_ptr<emulator::LayerStore>> stores_;
    std::shared_ptr<LayoutStores> shared_;  // with other requests, where there are such
    mutable std::mutex mutex_;
    mutable std::map<std::pair<Pricing, emulator::ContextParallel>, MicrobatchCosts> costs_;
    std::vector<LayoutCandidate> all_;
};

}  // namespace pipeweaver::planner
