#include "pipeweaver/planner/mixed.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace pipeweaver::planner {

namespace {

// A group that cannot run them takes for ever.
Duration or_for_ever(const std::optional<Duration>& time) { return time.value_or(Duration::max()); }

std::int64_t trained_parameters(const workloads::Module& module) {
    const auto& network = module.architecture;
    if (module.trainable) return workloads::all_parameters(network);
    if (!module.adapters) return 0;
    std::int64_t sum = 0;
    for (std::int64_t layer = 0; layer < network.layers; ++layer) {
        const auto parts = workloads::adapter_parameters(network, layer, *module.adapters);
        sum += parts.split + parts.copied + parts.experts;
    }
    return sum;
}

// Out of their racks, where they have some.
Bandwidth all_nodes(const workloads::Cluster& cluster) {
    const std::int64_t nodes = (cluster.gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
    const std::int64_t speed = nodes * cluster.network.bytes_per_second;
    if (cluster.oversubscription == 1 || speed == 0) return {speed};
    return {std::max<std::int64_t>(1, std::llround(static_cast<double>(speed) / cluster.oversubscription))};
}

// Some of the batch's microbatches, in their order, on a group's GPUs; asked for again it remembers.
class OnGroup {
public:
    OnGroup(const KindOfGpus& kind, const Batch& batch, const Executor& execute)
        : kind_(kind), batch_(batch), execute_(execute) {}

    std::optional<GroupStep> step(std::size_t from, std::size_t count) {
        const auto [known, is_new] = steps_.try_emplace({from, count});
        if (!is_new) return known->second;
        for (const Job& job : kind_.jobs) {
            auto one = emulated(job, from, count);
            if (one && (!known->second || one->step < known->second->step)) known->second = std::move(one);
        }
        return known->second;
    }

    std::size_t least() const {
        std::int64_t least = kind_.jobs.front().setup->layout.dp;
        for (const Job& job : kind_.jobs) least = std::min(least, job.setup->layout.dp);
        return static_cast<std::size_t>(least);
    }

private:
    std::optional<GroupStep> emulated(const Job& job, std::size_t from, std::size_t count) const {
        EmulationRequest request;
        request.job = job;
        request.cut_on = batch_;  // every share is cut alike
        request.batch = batch_;
        const auto begin = batch_.microbatches.begin() + static_cast<std::ptrdiff_t>(from);
        request.batch.microbatches.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
        const auto made = try_emulate(request, execute_);
        if (!made.emulation) return {};
        GroupStep step{.microbatches = count,
                       .layout = job.setup->layout,
                       .zero = job.setup->recipe.zero,
                       .recompute = made.emulation->recompute ? name_of(*made.emulation->recompute) : "",
                       .products = emulator::formats_of(job.setup->recipe),
                       .step = made.emulation->step};
        for (const auto& replica : made.emulation->replicas)
            for (const auto& rank : replica.memory) step.peak = std::max(step.peak, rank.peak);
        return step;
    }

    const KindOfGpus& kind_;
    const Batch& batch_;
    const Executor& execute_;
    std::map<std::pair<std::size_t, std::size_t>, std::optional<GroupStep>> steps_;
};

}  // namespace

std::optional<Shared> share_out(std::size_t microbatches, std::size_t least_of_first, std::size_t least_of_second,
                                const StepOf& first, const StepOf& second) {
    PIPEWEAVER_ASSERT(least_of_first >= 1 && least_of_second >= 1);
    if (least_of_first + least_of_second > microbatches) return {};
    const auto of_first = [&](std::size_t count) { return or_for_ever(first(count)); };
    const auto of_second = [&](std::size_t count) { return or_for_ever(second(microbatches - count)); };
    // The fewest with which the first group is no earlier than the second: that many are best, or one less.
    std::size_t low = least_of_first, high = microbatches - least_of_second;
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (of_first(middle) >= of_second(middle))
            high = middle;
        else
            low = middle + 1;
    }
    Shared best{low, std::max(of_first(low), of_second(low))};
    if (low > least_of_first) {
        const Shared fewer{low - 1, std::max(of_first(low - 1), of_second(low - 1))};
        if (fewer.slower < best.slower) best = fewer;
    }
    if (best.slower == Duration::max()) return {};
    return best;
}

Bytes gradients_of(const emulator::Setup& setup) {
    std::int64_t parameters = 0;
    for (const auto& module : setup.model.modules) parameters += trained_parameters(module);
    for (const auto& edge : setup.model.edges)
        if (workloads::trains_projector(setup.model, edge)) parameters += workloads::projector_parameters(edge);
    return setup.recipe.state.gradient * Bytes{parameters};
}

Bandwidth bridge_of(const workloads::Cluster& first, const workloads::Cluster& second) {
    return {std::min(all_nodes(first).bytes_per_second, all_nodes(second).bytes_per_second)};
}

MixedPlan::Best MixedPlan::best() const {
    Best best = Best::none;
    Duration least = Duration::max();
    const auto offer = [&](Best which, Duration step) {
        if (best != Best::none && step >= least) return;
        best = which;
        least = step;
    };
    if (first) offer(Best::first, first->step);
    if (second) offer(Best::second, second->step);
    if (both) offer(Best::both, both->step);
    if (pipeline) offer(Best::pipeline, pipeline->step);
    return best;
}

MixedPlan plan_mixed(const std::optional<KindOfGpus>& first, const std::optional<KindOfGpus>& second,
                     const Batch& batch, Bandwidth bridge, const Executor& execute) {
    PIPEWEAVER_ASSERT(bridge.bytes_per_second > 0);
    const std::size_t all = batch.microbatches.size();
    MixedPlan plan;
    std::optional<OnGroup> one, other;
    if (first) one.emplace(*first, batch, execute);
    if (second) other.emplace(*second, batch, execute);
    if (one) plan.first = one->step(0, all);
    if (other) plan.second = other->step(0, all);
    if (!one || !other) return plan;
    const auto time_of = [](const std::optional<GroupStep>& step) {
        return step ? std::optional(step->step) : std::nullopt;
    };
    const auto shared = share_out(
        all, one->least(), other->least(), [&](std::size_t count) { return time_of(one->step(0, count)); },
        [&](std::size_t count) { return time_of(other->step(all - count, count)); });
    if (!shared) return plan;
    MixedStep both{.first = *one->step(0, shared->first),
                   .second = *other->step(shared->first, all - shared->first),
                   .exchange = gradients_of(*first->jobs.front().setup) / bridge};
    both.step = shared->slower + both.exchange;
    plan.both = std::move(both);
    return plan;
}

}  // namespace pipeweaver::planner
