#include "pipeweaver/emulator/least_memory.hpp"
#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/partition/replicas.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "planner/layout/layout_trial.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace pipeweaver::planner {

using namespace emulator;
using workloads::Architecture;

namespace {

// "tp must divide 8: vit has 16, llm 40".
std::string divisible(const LayoutRequest& request, std::int64_t Architecture::*size) {
    std::int64_t common = 0;
    std::vector<std::string> modules;
    for (const auto& module : request.setup->model.modules) {
        if (module.architecture.*size == 0) continue;
        common = std::gcd(common, module.architecture.*size);
        modules.push_back(
            fmt::format("{}{} {}", module.name, modules.empty() ? " has" : "", module.architecture.*size));
    }
    return fmt::format("tp must divide {}: {}", common, fmt::join(modules, ", "));
}

std::string shallowest(const LayoutRequest& request) {
    const auto& modules = request.setup->model.modules;
    const auto& least = *std::min_element(modules.begin(), modules.end(), [](const auto& a, const auto& b) {
        return a.architecture.layers < b.architecture.layers;
    });
    return fmt::format("{} has {}", least.name, least.architecture.layers);
}

std::vector<std::int64_t> divisors(std::int64_t number) {
    std::vector<std::int64_t> all;
    for (std::int64_t d = 1; d * d <= number; ++d)
        if (number % d == 0) {
            all.push_back(d);
            if (d * d != number) all.push_back(number / d);
        }
    std::sort(all.begin(), all.end());
    return all;
}

bool allows(const std::optional<std::int64_t>& fixed, std::int64_t degree) { return fixed.value_or(degree) == degree; }

// The GPUs that an expert is split over.
std::string split_experts(const LayoutRequest& request) {
    const std::int64_t gpus = request.setup->recipe.execution.experts.tensor_parallel;
    return gpus > 1 ? fmt::format(" (times the {} GPUs of an expert)", gpus) : "";
}

// Nothing is to be shared out, and the target would among GPUs that share samples or experts.
bool shares_anyway(const LayoutRequest& request, const Layout& layout) {
    const Launch& launch = target(request.target).launch;
    const bool none = request.setup->recipe.zero == 0 && !request.any_zero;
    return none && launch.replicates && !launches_zero(launch, 0, layout);
}

}  // namespace

bool are_equal(const LayoutAndZero& a, const LayoutAndZero& b) {
    const auto degrees = [](const LayoutAndZero& of) {
        const Layout& in = of.layout;
        return std::tuple(in.tp, in.cp, in.pp, in.dp, in.ep, in.context, of.zero);
    };
    return degrees(a) == degrees(b);
}

std::string reason_text(LayoutReason reason, const LayoutRequest& request) {
    switch (reason) {
        case LayoutReason::other_nodes:
            return fmt::format("tp does not divide the {} GPUs of a node", request.setup->cluster.gpus_per_node);
        case LayoutReason::heads:
            return "tp does not divide a module's attention heads; " + divisible(request, &Architecture::heads);
        case LayoutReason::columns:
            return "tp does not divide a module's feed-forward columns; " + divisible(request, &Architecture::ffn);
        case LayoutReason::layers:
            return "pp is more than a module's layers; " + shallowest(request);
        case LayoutReason::context:
            return fmt::format(
                "tp * cp{} does not divide a module's attention heads, which --context ring does not need",
                request.cp ? fmt::format(" {}", *request.cp) : "");
        case LayoutReason::experts:
            return fmt::format("ep {}{} does not divide tp * cp * dp or a module's experts", request.ep.value_or(1),
                               split_experts(request));
        case LayoutReason::sequences:
            return fmt::format("{} builds the model for cp {} at most", request.setup->model.built->framework,
                               request.setup->model.built->most_cp);
        case LayoutReason::few_microbatches:
            return "more replicas than microbatches";
        case LayoutReason::too_many_tasks:
            return fmt::format("a replica has more than the {} tasks that can be planned", sizes.tasks);
        default:
            return "does not fit the memory";
    }
}

Setup in_layout(const Setup& setup, const LayoutAndZero& layout) {
    Recipe recipe = setup.recipe;
    recipe.zero = layout.zero;
    if (recipe.zero >= 2) recipe.bucket = {};
    Setup made = with_recipe(with_layout(setup, layout.layout), recipe, setup.what_if);
    if (!layout.layout.placement.places(layout.layout)) made.layout.placement = best_placement(made);
    return made;
}

std::shared_ptr<LayerStore> LayoutStores::of(const Layout& layout, bool judging) {
    const std::lock_guard lock(mutex_);
    auto& store = stores_[{layout.tp, layout.cp, layout.ep, layout.placement, judging}];
    if (!store) store = std::make_shared<LayerStore>();
    return store;
}

std::size_t LayoutCandidates::count(const LayoutRequest& request) { return LayoutCandidates(request).all_.size(); }

LayoutCandidates::LayoutCandidates(const LayoutRequest& request, const Executor& execute) : LayoutCandidates(request) {
    add_own();
    for (const LayoutCandidate& one : all_) {
        if (one.refused) continue;
        add_stores(one.as);
        add_stores({one.as.layout, 1});
    }
    run_jobs(execute, all_.size(), [&](std::size_t i) {
        if (!all_[i].refused) refuse_by_memory(all_[i]);
    });
    bound_all(execute);
}

void LayoutCandidates::add_stores(const LayoutAndZero& as) {
    auto& store = stores_[priced_of(as)];
    if (store) return;
    const bool in_passes = as.zero >= 2;
    store = in_passes ? std::make_shared<LayerStore>() : shared_->of(as.layout);
    // Without an exchange in passes most setups are judged as they are.
    const bool is_usual = in_layout(*request_.setup, {as.layout, std::min(as.zero, 1)}).is_usual();
    if (in_passes || !is_usual) store->share_judging(shared_->of(as.layout, !is_usual));
}

LayoutCandidates::Priced LayoutCandidates::priced_of(const LayoutAndZero& as) {
    const bool in_passes = as.zero >= 2;
    return {pricing_of(as.layout), in_passes ? as.zero : 0, in_passes ? as.layout.dp : 0};
}

std::shared_ptr<const Setup> LayoutCandidates::setup_of(const LayoutAndZero& as) const {
    auto setup = std::make_shared<Setup>(in_layout(*request_.setup, as));
    if (const auto found = stores_.find(priced_of(as)); found != stores_.end()) setup->store = found->second;
    return setup;
}

const std::vector<Duration>& LayoutCandidates::costs_of(const Setup& setup) const {
    const Layout& layout = setup.layout;
    MicrobatchCosts* costs = nullptr;
    {
        const std::lock_guard lock(mutex_);
        costs = &costs_[{pricing_of(layout), layout.context}];
    }
    std::call_once(costs->once, [&] { costs->all = partition::microbatch_costs(setup, request_.microbatches); });
    return costs->all;
}

void LayoutCandidates::enumerate() {
    const std::int64_t gpus = request_.setup->cluster.gpus;
    for (const std::int64_t tp : divisors(gpus))
        for (const std::int64_t cp : divisors(gpus / tp))
            for (const std::int64_t pp : divisors(gpus / tp / cp)) {
                const Layout layout{
                    .tp = tp, .pp = pp, .dp = gpus / tp / cp / pp, .cp = cp, .context = request_.context};
                if (launches_in(target(request_.target), layout, request_.setup->model) && allows(request_.tp, tp) &&
                    allows(request_.cp, cp) && allows(request_.pp, pp) && allows(request_.dp, layout.dp))
                    add(layout);
            }
}

// With any ep, those that go.
std::vector<std::int64_t> LayoutCandidates::experts_of(const Layout& layout) const {
    if (request_.ep) return {*request_.ep};
    const auto& model = request_.setup->model;
    const std::int64_t of_expert = request_.setup->recipe.execution.experts.tensor_parallel;
    if (!request_.any_ep) return {default_ep(layout, model, of_expert)};
    std::vector<std::int64_t> all;
    for (const std::int64_t ep : divisors(layout.tp * layout.cp * layout.dp)) {
        Layout with = layout;
        with.ep = ep;
        const auto found = conflict(with, model, of_expert);
        if (!found || found->what != Indivisible::experts) all.push_back(ep);
    }
    return all;
}

void LayoutCandidates::add(const Layout& layout) {
    for (const std::int64_t ep : experts_of(layout)) {
        LayoutCandidate candidate{.as = {layout, request_.setup->recipe.zero}};
        candidate.as.layout.ep = ep;
        if (shares_anyway(request_, candidate.as.layout)) continue;
        candidate.refused = refusal(candidate.as.layout);
        const bool shares = layout.weight_copies() > 1;
        int first = candidate.as.zero, last = first;
        if (request_.any_zero && !candidate.refused) {
            const Launch& launch = target(request_.target).launch;
            first = std::max(1, launch.least_zero);
            last = shares ? std::max(first, launch.most_zero) : first;
        }
        for (candidate.as.zero = first; candidate.as.zero <= last; ++candidate.as.zero)
            if (!request_.allows || request_.allows(candidate.as)) all_.push_back(placed(candidate));
        // What any ep is refused for, every one is.
        if (candidate.refused && request_.any_ep) return;
    }
}

// Where its GPUs lie, of one that is tried on a network with a shape.
LayoutCandidate LayoutCandidates::placed(LayoutCandidate candidate) const {
    if (!candidate.refused && fabric_of(request_.setup->cluster).has_shape())
        candidate.as.layout = in_layout(*request_.setup, candidate.as).layout;
    return candidate;
}

void LayoutCandidates::add_own() {
    if (!request_.own) return;
    const auto found = std::find_if(all_.begin(), all_.end(),
                                    [&](const LayoutCandidate& one) { return are_equal(one.as, *request_.own); });
    if (found != all_.end()) {
        found->is_own = true;
        return;
    }
    all_.push_back(placed({.as = *request_.own, .is_own = true, .refused = refusal(request_.own->layout)}));
}

std::optional<LayoutReason> LayoutCandidates::refusal(const Layout& layout) const {
    if (request_.setup->cluster.gpus_per_node % layout.tp != 0) return LayoutReason::other_nodes;
    if (const auto found =
            conflict(layout, request_.setup->model, request_.setup->recipe.execution.experts.tensor_parallel)) {
        constexpr std::array by_kind{LayoutReason::heads,   LayoutReason::columns, LayoutReason::layers,
                                     LayoutReason::context, LayoutReason::experts, LayoutReason::sequences};
        return by_kind[static_cast<std::size_t>(found->what)];
    }
    const auto microbatches = static_cast<std::int64_t>(request_.microbatches.size());
    if (!request_.for_each_replica && microbatches < layout.dp) return LayoutReason::few_microbatches;
    const std::int64_t most = request_.for_each_replica ? microbatches : (microbatches + layout.dp - 1) / layout.dp;
    // With some stages of each module on every rank, as partitions have that a plan chooses from.
    constexpr std::int64_t stages = 4;
    const auto modules = static_cast<std::int64_t>(request_.setup->model.modules.size());
    if (2 * most * layout.pp * modules * stages > static_cast<std::int64_t>(sizes.tasks))
        return LayoutReason::too_many_tasks;
    return std::nullopt;
}

// Whatever the partition: no rank holds less than the mean of all.
void LayoutCandidates::refuse_by_memory(LayoutCandidate& candidate) const {
    const Setup setup = in_layout(*request_.setup, candidate.as);
    const auto by_parameters = partition::partitioner(partition::megatron_partition).make(setup, {}, 1);
    Bytes sum;
    for (const StaticMemory& rank : held_always(setup, by_parameters.chains))
        sum += rank.weights + rank.gradients + rank.optimizer;
    candidate.short_by = Bytes{sum.count / setup.layout.pp} - capacity_of(setup);
    if (candidate.short_by > Bytes{}) candidate.refused = LayoutReason::memory;
}

void LayoutCandidates::bound_all(const Executor& execute) {
    std::map<Pricing, std::vector<Duration>> costs;
    std::vector<const Layout*> layouts;
    for (const LayoutCandidate& one : all_)
        if (!one.refused && costs.try_emplace(pricing_of(one.as.layout)).second) layouts.push_back(&one.as.layout);
    const auto& given = request_.microbatches;
    const std::size_t count = std::min(given.size(), sizes.layout_bound);
    std::vector<workloads::Microbatch> sample;
    for (std::size_t i = 0; i < count; ++i) sample.push_back(given[i * given.size() / count]);
    run_jobs(execute, layouts.size(), [&](std::size_t i) {
        const auto setup = setup_of({*layouts[i], std::min(request_.setup->recipe.zero, 1)});
        costs.find(pricing_of(*layouts[i]))->second = partition::microbatch_costs(*setup, sample);
    });
    for (LayoutCandidate& one : all_)
        if (!one.refused) {
            const auto replicas = request_.for_each_replica ? one.as.layout.dp : 1;
            one.microbatches = replicas * static_cast<std::int64_t>(given.size());
            one.bound = bound_of(one, costs.find(pricing_of(one.as.layout))->second);
        }
}

Duration LayoutCandidates::bound_of(const LayoutCandidate& candidate, const std::vector<Duration>& costs) const {
    constexpr std::int64_t chunks = 4;
    const Layout& layout = candidate.as.layout;
    const auto [shortest, longest] = std::minmax_element(costs.begin(), costs.end());
    const Duration mean =
        std::accumulate(costs.begin(), costs.end(), Duration{}) / static_cast<std::int64_t>(costs.size());
    const std::int64_t most = (candidate.microbatches + layout.dp - 1) / layout.dp;
    const Duration load = std::max({mean * candidate.microbatches / layout.dp, most * *shortest, *longest});
    return load / layout.pp + *shortest * (layout.pp - 1) / layout.pp / chunks;
}

}  // namespace pipeweaver::planner
