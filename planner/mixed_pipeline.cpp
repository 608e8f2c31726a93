#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/partition/kinds.hpp"
#include "pipeweaver/partition/tune.hpp"
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/planner/mixed.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "planner/evaluate/step.hpp"
#include "planner/replicas/assignment.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

constexpr std::size_t ways_emulated = 6, ways_improved = 2, few_cuts = 64, cuts_of_tuning = 200;

// The ranks of one kind: what a step of all ranks is on its GPUs.
struct KindOfRanks {
    const Setup* setup;
    std::size_t begin, end;  // of its ranks

    bool has(RankId rank) const { return begin <= index(rank) && index(rank) < end; }
};

// Steps of replicas, all ranks as if of one kind, and what its own recompute.
struct StepsOfKind {
    Recompute recompute{};
    std::vector<StepProblem> replicas;
};

// Bounds the kind's own ranks by its memory, whatever the others hold.
bool fits_own_ranks(const KindOfRanks& kind, StepProblem& step) {
    const Bytes capacity = capacity_of(*kind.setup);
    for (std::size_t r = kind.begin; r < kind.end; ++r) {
        step.problem.ranks[r].capacity = capacity;
        if (std::max(step.memory[r].total(), step.memory[r].at_update) > capacity) return false;
    }
    const schedule::Replayer replayer(step.problem);
    const auto order = search::fixed_order(search::one_f_one_b_policy, replayer);
    if (!order.why_not.empty()) return false;
    search::OrderMemory memory(replayer, order);
    for (std::size_t r = kind.begin; r < kind.end; ++r)
        if (!memory.fits(r, 0)) return false;
    return true;
}

std::optional<StepsOfKind> steps_that_fit(const KindOfRanks& kind, const partition::Partition& partition,
                                          const std::vector<Microbatches>& replicas) {
    constexpr Bytes whatever{std::int64_t{1} << 60};
    for (const Recompute mode : usual_modes()) {
        StepsOfKind steps{mode, {}};
        for (std::size_t r = 0; r < replicas.size(); ++r) {
            auto built = build(*kind.setup, partition, replicas[r],
                               {.name = problem_name(*kind.setup, partition, r),
                                .menu = {mode},
                                .replica = r,
                                .capacity = whatever,
                                .priced_split = false});
            if (built.shortage || !fits_own_ranks(kind, built.cut.step)) break;
            steps.replicas.push_back(std::move(built.cut.step));
        }
        if (steps.replicas.size() == replicas.size()) return steps;
    }
    return std::nullopt;
}

// Of each GPU of a rank, if all of them send.
Bandwidth between_kinds(const KindOfRanks& first, const KindOfRanks& last, Bandwidth bridge) {
    const Layout& layout = first.setup->layout;
    std::int64_t speed = bridge.bytes_per_second / (layout.gpus_of_rank() * layout.dp);
    for (const Setup* setup : {first.setup, last.setup})
        if (const std::int64_t node = setup->cluster.network.bytes_per_second; node > 0)
            speed = std::min(speed, node / setup->cluster.gpus_per_node);
    return {std::max<std::int64_t>(1, speed)};
}

Transfer across(const Transfer& a, const Transfer& b, Bandwidth speed) {
    Transfer crossing = a;
    crossing.wire = std::max({a.wire, b.wire, a.message / speed});
    crossing.lag = std::max(a.lag - a.wire, b.lag - b.wire) + crossing.wire;
    return crossing;
}

// Gives `step` what lies on the last kind's ranks.
void take_over_ranks(StepProblem& step, const StepProblem& other, const KindOfRanks& last, Bandwidth speed) {
    auto& problem = step.problem;
    PIPEWEAVER_ASSERT(problem.tasks.size() == other.problem.tasks.size());
    PIPEWEAVER_ASSERT(problem.pairs.size() == other.problem.pairs.size());
    PIPEWEAVER_ASSERT(step.transfers.size() == other.transfers.size());
    for (std::size_t i = 0; i < problem.pairs.size(); ++i)
        if (last.has(problem.tasks[index(problem.pairs[i].forward)].rank)) problem.pairs[i] = other.problem.pairs[i];
    for (std::size_t i = 0; i < problem.tasks.size(); ++i)
        if (last.has(problem.tasks[i].rank)) problem.tasks[i] = other.problem.tasks[i];
    for (std::size_t r = last.begin; r < last.end; ++r) {
        problem.ranks[r] = other.problem.ranks[r];
        step.memory[r] = other.memory[r];
    }
    for (std::size_t i = 0; i < step.transfers.size(); ++i) {
        const schedule::Edge& edge = problem.edges[step.transfers[i].edge];
        const bool from = last.has(problem.tasks[index(edge.from)].rank);
        const bool to = last.has(problem.tasks[index(edge.to)].rank);
        if (from && to) step.transfers[i] = other.transfers[i];
        if (from != to) step.transfers[i] = across(step.transfers[i], other.transfers[i], speed);
        problem.edges[step.transfers[i].edge].lag = step.transfers[i].lag;
    }
    step.optimizer = std::max(step.optimizer, other.optimizer);
}

// Per module, its first rank and its last.
std::vector<std::pair<RankId, RankId>> ends_of_modules(const workloads::Model& model, const Chain& chain) {
    std::vector<std::pair<RankId, RankId>> ends(model.modules.size());
    for (const StageLayers& stage : chain.stages)
        for (const LayerRange& part : stage.parts) {
            if (part.first == 0) ends[part.module].first = stage.rank;
            ends[part.module].second = stage.rank;
        }
    return ends;
}

// Gradients of an embedding that lies on both kinds.
void add_tied_embeddings(StepProblem& step, const KindOfRanks& first, const Chain& chain, Bandwidth speed) {
    const workloads::Model& model = first.setup->model;
    const auto ends = ends_of_modules(model, chain);
    for (std::size_t m = 0; m < ends.size(); ++m) {
        const workloads::Architecture& network = model.modules[m].architecture;
        const auto [one, other] = ends[m];
        if (!model.modules[m].trainable || first.has(one) == first.has(other)) continue;
        if (!network.tied_embeddings && network.predicted_layers == 0) continue;
        const std::int64_t parameters = workloads::token_embedding_parameters(network) / first.setup->layout.tp;
        const Duration time = first.setup->recipe.state.gradient * Bytes{parameters} / speed;
        for (const RankId rank : {one, other}) step.problem.ranks[index(rank)].tail += time;
    }
}

StagesOfKind stages_of_kind(const KindOfRanks& kind, const Chain& chain, Recompute recompute) {
    StagesOfKind stages{.layers = {}, .recompute = name_of(recompute), .products = formats_of(kind.setup->recipe)};
    for (std::size_t r = kind.begin; r < kind.end; ++r) {
        const auto& parts = chain.stages[r].parts;
        stages.layers.push_back(
            std::accumulate(parts.begin(), parts.end(), std::int64_t{0},
                            [](std::int64_t sum, const LayerRange& part) { return sum + part.count; }));
    }
    return stages;
}

void raise_peak(StagesOfKind& stages, const KindOfRanks& kind, const std::vector<Bytes>& peaks) {
    for (std::size_t r = kind.begin; r < kind.end; ++r) stages.peak = std::max(stages.peak, peaks[r]);
}

// A way to have both kinds in a pipeline.
struct WayOfKinds {
    KindInPipeline first, last;
    bool turned = false;
    std::vector<Microbatches> replicas;  // those that differ, the one with most to do first
    partition::CutForKinds cut{};
    std::optional<KindsStep> made{};

    // Of a step of 1F1B without transfers, gradients and recomputation, by the batch's times.
    double estimate() const {
        std::size_t most = 0;
        for (const Microbatches& one : replicas) most = std::max(most, one.size());
        return static_cast<double>(most - 1) * static_cast<double>(cut.longest) + static_cast<double>(cut.all);
    }
};

class WaysOfKinds {
public:
    WaysOfKinds(const Setup& one, const Setup& other, const Batch& batch, Bandwidth bridge, const Executor& execute)
        : setups_{&one, &other}, batch_(batch), bridge_(bridge), execute_(execute) {
        const std::int64_t common = std::gcd(one.cluster.gpus, other.cluster.gpus);
        for (std::int64_t tp = 1; tp <= common; ++tp)
            for (std::int64_t dp = 1; tp * dp <= common; ++dp)
                if (common % (tp * dp) == 0) add(tp, dp);
        cut_all();
    }

    std::optional<PipelineOfKinds> best() {
        run_jobs(execute_, ways_.size(), [&](std::size_t i) { emulate(ways_[i], ways_[i].cut.partition); });
        std::erase_if(ways_, [](const WayOfKinds& way) { return !way.made; });
        if (ways_.empty()) return std::nullopt;
        fastest_first();
        for (std::size_t i = 0; i < std::min(ways_improved, ways_.size()); ++i) improve(ways_[i]);
        fastest_first();
        return told(ways_.front());
    }

private:
    void fastest_first() {
        std::stable_sort(ways_.begin(), ways_.end(),
                         [](const WayOfKinds& a, const WayOfKinds& b) { return a.made->step < b.made->step; });
    }

    void add(std::int64_t tp, std::int64_t dp) {
        if (setups_[0]->cluster.gpus_per_node % tp != 0 || setups_[1]->cluster.gpus_per_node % tp != 0) return;
        const std::size_t microbatches = batch_.microbatches.size();
        if (static_cast<std::size_t>(dp) > microbatches) return;
        const auto ranks = [&](std::size_t kind) { return setups_[kind]->cluster.gpus / (tp * dp); };
        Layout layout{.tp = tp, .pp = ranks(0) + ranks(1), .dp = dp};
        const std::int64_t split = setups_[0]->recipe.execution.experts.tensor_parallel;
        layout.ep = default_ep(layout, setups_[0]->model, split);
        const std::size_t each = (microbatches + static_cast<std::size_t>(dp) - 1) / static_cast<std::size_t>(dp);
        if (2 * each * static_cast<std::size_t>(layout.pp) > sizes.tasks_in_order) return;
        std::array<KindInPipeline, 2> kinds;
        for (std::size_t k = 0; k < 2; ++k) {
            auto setup = setup_of(k, layout);
            if (why_not(layout, setup->cluster, setup->model, split)) return;
            kinds[k] = {std::move(setup), ranks(k)};
        }
        Job job;
        job.setup = kinds[0].setup;
        const auto replicas = different_ones(assign(job, batch_, execute_));
        ways_.push_back({kinds[0], kinds[1], false, replicas});
        ways_.push_back({kinds[1], kinds[0], true, replicas});
    }

    // As if all GPUs were of the kind.
    std::shared_ptr<const Setup> setup_of(std::size_t kind, const Layout& layout) {
        Setup of_kind = *setups_[kind];
        of_kind.cluster.gpus = layout.gpus();
        of_kind.recipe.bucket = {};
        auto setup = std::make_shared<Setup>(in_layout(of_kind, {layout, std::min(of_kind.recipe.zero, 1)}));
        setup->store = stores_[kind].of(setup->layout);
        return setup;
    }

    // The one with most to do first.
    static std::vector<Microbatches> different_ones(const Assignment& assignment) {
        std::vector<Duration> loads;
        for (const auto& share : assignment.shares) {
            loads.emplace_back(0);
            for (const std::size_t m : share) loads.back() += assignment.costs[m];
        }
        const auto like = first_alike(assignment.microbatches);
        std::vector<Microbatches> different;
        for (const std::size_t r : largest_first(loads))
            if (like[r] == r) different.push_back(assignment.microbatches[r]);
        return different;
    }

    void cut_all() {
        std::vector<std::optional<partition::CutForKinds>> cuts(ways_.size());
        run_jobs(execute_, ways_.size(), [&](std::size_t i) {
            const auto& [first, last] = std::tie(ways_[i].first, ways_[i].last);
            cuts[i] = partition::cut_for_kinds({first.setup.get(), first.ranks}, {last.setup.get(), last.ranks},
                                               batch_.microbatches);
        });
        std::vector<WayOfKinds> fitting;
        for (std::size_t i = 0; i < ways_.size(); ++i) {
            if (!cuts[i]) continue;
            fitting.push_back(std::move(ways_[i]));
            fitting.back().cut = std::move(*cuts[i]);
        }
        std::stable_sort(fitting.begin(), fitting.end(),
                         [](const WayOfKinds& a, const WayOfKinds& b) { return a.estimate() < b.estimate(); });
        if (fitting.size() > ways_emulated) fitting.erase(fitting.begin() + ways_emulated, fitting.end());
        ways_ = std::move(fitting);
    }

    std::optional<KindsStep> step_of(const WayOfKinds& way, const partition::Partition& cut, bool all) const {
        if (all) return step_of_kinds(way.first, way.last, cut, way.replicas, bridge_);
        return step_of_kinds(way.first, way.last, cut, {way.replicas.front()}, bridge_);
    }

    void emulate(WayOfKinds& way, const partition::Partition& cut) const {
        auto made = step_of(way, cut, true);
        if (made && (!way.made || made->step < way.made->step)) way.made = std::move(made);
    }

    void improve(WayOfKinds& way) const {
        const auto cuts = partition::every_cut(*way.first.setup, few_cuts);
        if (!cuts.empty()) {
            std::vector<std::optional<KindsStep>> steps(cuts.size());
            run_jobs(execute_, cuts.size(), [&](std::size_t i) { steps[i] = step_of(way, cuts[i], true); });
            for (auto& made : steps)
                if (made && made->step < way.made->step) way.made = std::move(made);
            return;
        }
        const auto step = [&](const partition::Partition& cut) {
            const auto made = step_of(way, cut, false);
            return made ? std::optional(made->step) : std::nullopt;
        };
        if (const auto tuned = partition::tune(*way.first.setup, way.cut.partition, {step, cuts_of_tuning}, execute_))
            emulate(way, tuned->partition);
    }

    PipelineOfKinds told(const WayOfKinds& way) const {
        const Setup& setup = *way.first.setup;
        PipelineOfKinds plan{.layout = setup.layout,
                             .zero = setup.recipe.zero,
                             .microbatches = batch_.microbatches.size(),
                             .turned = way.turned,
                             .one = way.made->first,
                             .other = way.made->last,
                             .step = way.made->step};
        if (way.turned) std::swap(plan.one, plan.other);
        return plan;
    }

    const std::array<const Setup*, 2> setups_;
    const Batch& batch_;
    const Bandwidth bridge_;
    const Executor& execute_;
    std::array<LayoutStores, 2> stores_;
    std::vector<WayOfKinds> ways_;
};

}  // namespace

std::optional<KindsStep> step_of_kinds(const KindInPipeline& first, const KindInPipeline& last,
                                       const partition::Partition& partition, const std::vector<Microbatches>& replicas,
                                       Bandwidth bridge) {
    const auto front = static_cast<std::size_t>(first.ranks);
    const KindOfRanks one{first.setup.get(), 0, front};
    const KindOfRanks other{last.setup.get(), front, front + static_cast<std::size_t>(last.ranks)};
    PIPEWEAVER_ASSERT(static_cast<std::int64_t>(other.end) == first.setup->layout.pp);
    auto steps = steps_that_fit(one, partition, replicas);
    if (!steps) return std::nullopt;
    const auto others = steps_that_fit(other, partition, replicas);
    if (!others) return std::nullopt;
    const Chain& chain = partition.chains.front();
    const Bandwidth speed = between_kinds(one, other, bridge);
    KindsStep made{stages_of_kind(one, chain, steps->recompute), stages_of_kind(other, chain, others->recompute)};
    for (std::size_t r = 0; r < replicas.size(); ++r) {
        StepProblem& step = steps->replicas[r];
        take_over_ranks(step, others->replicas[r], other, speed);
        add_tied_embeddings(step, one, chain, speed);
        const schedule::Replayer replayer(step.problem);
        auto order = search::fixed_order(search::one_f_one_b_policy, replayer);
        if (!order.why_not.empty()) return std::nullopt;
        schedule::Schedule schedule;
        schedule.order = std::move(order.ranks);
        schedule.mode.assign(step.problem.pairs.size(), 0);
        // Stages that some microbatches pass and others don't may wait for each other in this order.
        if (replayer.replay(schedule).outcome != schedule::Outcome::completed) return std::nullopt;
        const PortReplay ran = replay_on_ports(step, schedule);
        made.step = std::max(made.step, ran.replay.makespan + step.optimizer);
        const auto peaks = peaks_of(step, ran.replay.peak);
        raise_peak(made.first, one, peaks);
        raise_peak(made.last, other, peaks);
    }
    return made;
}

std::optional<PipelineOfKinds> plan_pipeline_of_kinds(const Setup& one, const Setup& other, const Batch& batch,
                                                      Bandwidth bridge, const Executor& execute) {
    return WaysOfKinds(one, other, batch, bridge, execute).best();
}

}  // namespace pipeweaver::planner
