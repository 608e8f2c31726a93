#include "pipeweaver/capacity/cell.hpp"

#include "capacity/study/host_ends.hpp"
#include "capacity/study/own_gpus.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/plan_options.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::capacity {

using planner::LayoutChoice;
using planner::LayoutConsidered;
using planner::LayoutTried;

emulator::Headroom headroom_of(const Cell& cell) {
    const planner::WorkloadOptions& of = cell.job->plan.workload;
    if (!of.automatic_headroom) return of.headroom;
    const auto model = of.found_model();
    return of.headroom_for(model, of.some_microbatches(model, static_cast<std::uint64_t>(cell.job->limits.seed)));
}

namespace {

using Microbatches = std::vector<workloads::Microbatch>;

// Of all microbatches, wherever they run.
double model_flops(const emulator::Setup& setup, const Microbatches& microbatches) {
    const auto alone = with_layout(setup, {});
    const auto whole = partition::partitioner(partition::megatron_partition).make(alone, {}, 1);
    return emulator::model_flops(
        partition::step_input(alone, whole, partition::units(whole, alone.model, microbatches)));
}

std::int64_t samples_of(const Microbatches& microbatches) {
    std::vector<std::size_t> all;
    for (const auto& one : microbatches) all.insert(all.end(), one.samples.begin(), one.samples.end());
    std::sort(all.begin(), all.end());
    return std::unique(all.begin(), all.end()) - all.begin();
}

CellFacts facts_of(const emulator::Setup& setup, const Microbatches& microbatches) {
    CellFacts facts;
    facts.samples = samples_of(microbatches);
    facts.microbatches = static_cast<std::int64_t>(microbatches.size());
    for (const auto& one : microbatches) facts.tokens += one.tokens;
    facts.model_flops = model_flops(setup, microbatches);
    facts.usable = capacity_of(setup);
    const auto in_situ = emulator::in_situ_factors(*setup.costs, setup.cluster.device,
                                                   emulator::precision_of(setup.recipe.execution.products));
    const auto rests_on = emulator::footing(in_situ, setup.recipe, setup.cluster.device);
    const bool is_anchored = setup.recipe.anchored && setup.recipe.anchored->has_step();
    facts.error_percent = is_anchored && rests_on == emulator::Footing::modelled
                              ? 100 * (emulator::once_anchored.most - 1)
                              : emulator::error_percent(in_situ, rests_on);
    facts.footing = name_of(rests_on);
    return facts;
}

// The longest step that the constraints allow on the cell's GPUs; none: they allow any.
std::optional<Duration> slowest_of(const Study& study, const Cell& cell, std::int64_t tokens_of_step) {
    const Constraints& limits = study.constraints;
    std::optional<double> allowed;
    if (limits.days) allowed = *limits.days * 24;
    if (limits.usd) {
        const double affordable = *limits.usd / price_of(cell) / static_cast<double>(cell.gpus);
        allowed = allowed ? std::min(*allowed, affordable) : affordable;
    }
    if (!allowed) return std::nullopt;
    const std::int64_t steps = (study.training_tokens + tokens_of_step - 1) / tokens_of_step;
    constexpr double ns_of_hour = 3.6e12;
    return Duration{static_cast<std::int64_t>(std::min(9e18, *allowed * ns_of_hour / static_cast<double>(steps)))};
}

Point point_of(const LayoutConsidered& one, const LayoutChoice& choice) {
    Point point{.as = one.as, .bound = one.bound};
    const auto found = std::find_if(choice.tried.begin(), choice.tried.end(), [&](const LayoutTried& tried) {
        return planner::are_equal(one.as, {tried.layout, tried.zero});
    });
    if (found != choice.tried.end()) {
        point.status = PointStatus::judged;
        point.step = found->step;
        point.partition = found->partition;
        point.policy = found->policy;
        point.recompute = recompute_of(*found);
        point.chunks = found->chunks_per_rank;
        point.memory = found->memory;
    } else if (one.passed_over) {
        point.status = PointStatus::bounded;
    } else {
        point.why = one.refused;
    }
    return point;
}

// The first of the fastest that were judged; null: none was.
Point* fastest_of(std::vector<Point>& points) {
    Point* best = nullptr;
    for (Point& point : points)
        if (point.status == PointStatus::judged && (best == nullptr || point.step < best->step)) best = &point;
    return best;
}

// The points on shared GPUs; false: `time` ended it.
bool judge_layouts_of(planner::LayoutRequest request, CellResult& result, const Executor& execute,
                      const planner::Time& time) {
    const LayoutChoice choice = planner::judge_layouts(request, execute, time);
    if (choice.cut_short) return false;
    result.points.reserve(choice.considered.size());
    for (const LayoutConsidered& one : choice.considered) result.points.push_back(point_of(one, choice));
    if (Point* const fastest = fastest_of(result.points))
        fastest->far = far_by_flags(std::move(request), fastest->as, fastest->step, execute);
    return true;
}

std::optional<CellResult> judge(const Study& study, const Cell& cell, Shared& shared, const Executor& execute,
                                const planner::Time& time) {
    planner::WorkloadOptions workload = cell.job->plan.workload;
    workload.known_costs = shared.costs_of(workload);
    emulator::Setup setup = workload.setup();
    const auto seed = static_cast<std::uint64_t>(cell.job->limits.seed);
    Microbatches given;
    if (!workload.batch.empty())
        given = workloads::pack(workload.read(setup.model, seed).samples, setup.model, workload.how_packed());
    auto request = workload.layout_request(setup, given, seed);
    setup.headroom = headroom_of(cell);
    CellResult result{.cell = cell.number, .key = cell.key, .why_not = {}, .facts = {}, .points = {}};
    result.facts = facts_of(setup, request.microbatches);
    request.only_launched = request.closely = true;
    request.bounds = study.bounds;
    request.shown = study.shown;
    request.stores = shared.stores_of(cell);
    request.allows = [&](const planner::LayoutAndZero& as) { return study.layouts.allow(as); };
    request.slowest = slowest_of(study, cell, result.facts.tokens);
    if (cell.groups != GroupsAsked::own && !judge_layouts_of(request, result, execute, time)) return std::nullopt;
    if (cell.groups == GroupsAsked::shared) return result;
    if (time.is_over()) return std::nullopt;
    result.points.push_back(point_on_own_gpus(cell, setup, request.microbatches));
    return result;
}

}  // namespace

std::string_view name_of(PointStatus status) {
    switch (status) {
        case PointStatus::judged:
            return "judged";
        case PointStatus::bounded:
            return "bounded";
        default:
            return "refused";
    }
}

std::shared_ptr<const costdb::CostDatabase> Shared::costs_of(const planner::WorkloadOptions& of) {
    const auto cluster = workloads::find_cluster(of.cluster);
    const std::lock_guard lock(mutex_);
    auto& costs = costs_[fmt::format("{} {}", cluster.device, of.costs)];
    if (!costs)
        costs = std::make_shared<const costdb::CostDatabase>(planner::costs_of(planner::find_costs(of.costs), cluster));
    return costs;
}

std::shared_ptr<planner::LayoutStores> Shared::stores_of(const Cell& cell) {
    // Whatever an option may be of, but for the batch, the rest prices layers.
    std::string key = cell.cluster;
    for (const auto& value : cell.asked.all())
        if (value.name != "cluster" && value.name != "global-batch" && value.name != "seed" && value.name != "price" &&
            value.name != "tokens" && value.name != "loader")
            key += fmt::format("\n{} {}", value.name, value.text);
    const std::lock_guard lock(mutex_);
    auto& stores = stores_[key];
    if (!stores) stores = std::make_shared<planner::LayoutStores>();
    return stores;
}

std::optional<CellResult> judge_cell(const Study& study, const Cell& cell, Shared& shared, const Executor& execute,
                                     const planner::Time& time) {
    try {
        return judge(study, cell, shared, execute, time);
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::io) throw;
        return CellResult{.cell = cell.number, .key = cell.key, .why_not = error.what(), .facts = {}, .points = {}};
    }
}

}  // namespace pipeweaver::capacity
