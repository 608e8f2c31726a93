#include "emulator/step/step_parts.hpp"

#include "emulator/operators/group_links.hpp"
#include "emulator/pricing/data_traffic.hpp"
#include "emulator/pricing/price.hpp"
#include "emulator/pricing/stage_memory.hpp"
#include "emulator/pricing/stage_walk.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/what_if.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

namespace pipeweaver::emulator {

namespace {

using costdb::CollectiveKind;

bool has_module(const Chain& chain, std::size_t module) {
    for (const StageLayers& stage : chain.stages)
        for (const LayerRange& part : stage.parts)
            if (part.module == module) return true;
    return false;
}

double forward_flops(const workloads::Model& model, std::size_t module, const PassShape& shape) {
    const auto& network = model.modules[module].architecture;
    const auto positions = static_cast<double>(shape.positions());
    double sum = has_head(model, module) ? workloads::head_flops(network, positions) : 0;
    walk_layers(model, {module, 0, network.layers}, [&](std::int64_t first, std::int64_t alike) {
        sum += static_cast<double>(alike) * layer_flops(network, first, shape);
    });
    return sum;
}

double adapter_flops(const StepInput& input, std::size_t module, const PassShape& shape) {
    const auto& of = input.setup->model.modules[module];
    if (!of.adapters) return 0;
    std::int64_t parameters = 0;  // that a position passes
    for (std::int64_t i = 0; i < of.architecture.layers; ++i) {
        parameters += adapter_parameters(of.architecture, i, *of.adapters).common(1);
        if (const std::int64_t pairs = expert_adapter_parameters(of.architecture, i, *of.adapters); pairs > 0)
            parameters += of.architecture.moe->top_k * pairs;
    }
    return 2 * static_cast<double>(shape.positions()) * static_cast<double>(parameters);
}

Duration sum_of(const StepInput& input, const std::vector<Operator>& operators, std::size_t rank) {
    Duration sum{};
    for (const Operator& op : operators) sum += time_of(input, op, RankId{static_cast<std::uint32_t>(rank)});
    return sum;
}

// What follows a rank's last backward under every schedule. How much of the gradients that are reduced in buckets does
// is what a schedule tells (set_tails()).
std::vector<Operator> sure_tail(std::vector<Operator> tail, Bytes bucket) {
    if (bucket > Bytes{}) std::erase_if(tail, [](const Operator& op) { return op.name == reduction_in_buckets; });
    return tail;
}

// The part of the update that the GPU makes; what it works out of whole weights stays.
UpdateTraffic update_on_gpu(const Recipe& recipe) {
    UpdateTraffic update = recipe.update;
    const std::int64_t left = recipe.state.optimizer, all = left + recipe.state.offloaded;
    if (recipe.state.offloaded > 0) update.updated = (update.updated * left + all - 1) / all;
    return update;
}

// Of states on the host gradients go there and weights come back; the host's own update is not counted.
Operator update_on_host(const Recipe& recipe, std::int64_t own) {
    const StateBytes& each = recipe.state;
    const std::int64_t all = each.optimizer + each.offloaded;
    const std::int64_t bytes = (each.gradient + each.weight) * own / all * each.offloaded;
    Operator copy{"optimizer on the host", costdb::PointToPoint{2, std::max(Bytes{bytes}, Bytes{1})}};
    copy.stream = Stream::copy;
    return copy;
}

std::vector<Operator> optimizer_of(const StepInput& input, const RankParameters& rank) {
    const Recipe& recipe = input.setup->recipe;
    std::vector<Operator> updates;
    for (const WeightGroup& group : rank.groups) {
        if (group.trained == 0) continue;
        const std::int64_t copies = recipe.zero >= 1 ? group.copies : 1;
        updates.push_back(optimizer_update(group.trained, copies, update_on_gpu(recipe)));
        if (recipe.state.offloaded > 0)
            updates.push_back(update_on_host(recipe, (group.trained + copies - 1) / copies));
    }
    return updates;
}

// What the copies of a group's weights exchange behind the step's backwards. Those of modules in phases are never
// reduced in buckets.
void exchange(const StepInput& input, const WeightGroup& group, std::vector<Operator>& tail) {
    if (group.copies == 1 || group.trained == 0) return;
    const Layout layout = input.setup->layout.on(input.setup->cluster);
    const OwnParameters own{group.trained, group.copies, group.stride, group.experts};
    const auto add = [&](std::string_view name, CollectiveKind kind, std::int64_t bytes) {
        tail.push_back(among_copies(name, kind, own.copies, own.stride, bytes, layout));
    };
    const Recipe& recipe = input.setup->recipe;
    const std::int64_t gradients = reduced_bytes(recipe.state) * own.parameters;
    const std::string_view reduction = group.in_phases ? "reduce dealt gradients" : own.reduction();
    if (recipe.zero == 0) add(reduction, CollectiveKind::all_reduce, gradients);
    if (recipe.zero == 1) add(reduction, CollectiveKind::reduce_scatter, gradients);
    if ((recipe.zero == 1 || recipe.zero == 2) && !recipe.gathers_ahead)
        add(group.in_phases ? "gather dealt weights" : own.gathering(), CollectiveKind::all_gather,
            recipe.state.weight * own.parameters);
}

}  // namespace

// Gradients of a rank are reduced over the copies of its weights once its last backward ends (ZeRO from stage 2 on: in
// every backward); those of encoders that lie whole may be averaged over tensor parallel GPUs, and the halves of a tied
// embedding are summed over their two ranks. All of it is exposed: nothing of this rank is left to hide it.
std::vector<Operator> tail_of(const StepInput& input, const RankParameters& rank) {
    const Layout layout = input.setup->layout.on(input.setup->cluster);
    std::vector<Operator> tail;
    for (const WeightGroup& group : rank.groups)
        if (!group.in_phases) exchange(input, group, tail);
    if (rank.averaged > 0)
        tail.push_back(among_copies("average whole encoders", CollectiveKind::all_reduce, layout.tp, 1,
                                    reduced_bytes(input.setup->recipe.state) * rank.averaged, layout));
    // The first rank of the pipeline and the last: in one node where all ranks are.
    const std::int64_t node = input.setup->cluster.gpus_per_node;
    const std::int64_t apart = layout.gpus() <= node ? 1 : node;
    if (rank.shares_embedding) {
        tail.push_back(among_copies("tied embedding", CollectiveKind::all_reduce, 2, apart,
                                    reduced_bytes(input.setup->recipe.state) * rank.tied, layout));
        set_links_between(layout, 0, layout.pp - 1, std::get<costdb::Collective>(tail.back().query));
    }
    for (const WeightGroup& group : rank.groups)
        if (group.in_phases) exchange(input, group, tail);
    return tail;
}

costdb::PointToPoint between_ranks(const Setup& setup, RankId from, RankId to, Bytes message) {
    // GPUs are numbered tensor parallel first, then replicas, then pipeline ranks (Megatron-LM's order).
    const auto node_of = [&](RankId rank) {
        return static_cast<std::int64_t>(index(rank)) * setup.layout.gpus_of_rank() * setup.layout.dp /
               setup.cluster.gpus_per_node;
    };
    const workloads::Cluster& cluster = setup.cluster;
    costdb::PointToPoint sent{node_of(from) == node_of(to) ? 2 : 1,
                              std::max(message, Bytes{1}),
                              {cluster.network.bytes_per_second / cluster.gpus_per_node},
                              cluster.node_link};
    if (fabric_of(cluster).has_shape())
        set_links_between(setup.layout.on(cluster), static_cast<std::int64_t>(index(from)),
                          static_cast<std::int64_t>(index(to)), sent);
    return sent;
}

TransferLag transfer_lag(const Setup& setup, const costdb::PointToPoint& sent, std::int64_t tp) {
    const costdb::Cost alone = setup.costs->cost(sent);
    Duration whole = alone.duration;
    if (tp > 1 && !setup.recipe.execution.sequence_parallel) {
        costdb::Collective gather{.kind = costdb::CollectiveKind::all_gather,
                                  .gpus = tp,
                                  .gpus_per_node = setup.cluster.gpus_per_node,
                                  .message = tp * sent.message,
                                  .network = setup.cluster.network,
                                  .node_link = setup.cluster.node_link};
        set_links(setup.layout.on(setup.cluster), 1, gather);
        whole += setup.costs->cost(gather).duration;
    }
    costdb::PointToPoint startup = sent;
    startup.message = Bytes{1};
    const Duration wire = std::max(Duration{0}, alone.duration - setup.costs->cost(startup).duration);
    double factor = 1;
    if (const auto found = setup.what_if.links.find("pipeline"); found != setup.what_if.links.end())
        factor = found->second;
    const auto by_factor = [&](Duration time) {
        return Duration{std::llround(static_cast<double>(time.count()) * factor)};
    };
    return {by_factor(whole), alone.error_percent / 100, by_factor(wire)};
}

Duration time_of(const StepInput& input, const Operator& op, RankId rank) {
    const Setup& setup = *input.setup;
    double factor = 1;
    // The update streams through memory whatever the clock: no fitted factor was needed for it.
    if (op.stream != Stream::compute)
        factor = in_situ_factor(
            op, in_situ_factors(*setup.costs, setup.cluster.device, precision_of(setup.recipe.execution.products)),
            setup.recipe);
    if (!setup.what_if.empty())
        factor *= factor_of(setup.what_if, op, {}) * device_factor(setup.what_if, input.replica, rank);
    const Duration alone = op.stream == Stream::copy
                               ? std::get<costdb::PointToPoint>(op.query).message / setup.recipe.host_link
                               : ask(*setup.costs, op).duration;
    return factor == 1 ? alone : Duration{std::llround(static_cast<double>(alone.count()) * factor)};
}

std::vector<Bytes> peaks_of(const StepProblem& step, std::vector<Bytes> replayed) {
    for (std::size_t r = 0; r < replayed.size(); ++r) replayed[r] = std::max(replayed[r], step.memory[r].at_update);
    return replayed;
}

double model_flops(const StepInput& input) {
    const workloads::Model& model = input.setup->model;
    const auto gradient = gradient_reaches(model);
    const auto beside = workloads::model_beside(model);
    const auto flops_of = [&](std::size_t m, const PassShape& shape) {
        const int passes = model.modules[m].trainable ? 3 : gradient[m] ? 2 : 1;
        const double others = beside ? forward_flops(*beside, m, shape) : 0;
        return passes * forward_flops(model, m, shape) + others + 3 * adapter_flops(input, m, shape);
    };
    double sum = 0;
    for (const auto& microbatch : input.units)
        for (std::size_t c = 0; c < input.chains.size(); ++c)
            for (const Unit& unit : microbatch[c])
                for (std::size_t m = 0; m < model.modules.size(); ++m) {
                    if (unit.shapes[m].lengths.empty() || !has_module(input.chains[c], m)) continue;
                    sum += flops_of(m, unit.shapes[m]);
                }
    const auto phases = phase_modules(input.layouts);
    for (const auto& microbatch : input.units)
        for (std::size_t d = 0; d < phases.size(); ++d)
            for (const Unit& unit : microbatch[input.chains.size() + d])
                sum += flops_of(phases[d], unit.shapes[phases[d]]);
    return sum;
}

std::vector<Operator> ends_of_ranks(const StepInput& input) {
    std::vector<Operator> all;
    for (const RankParameters& rank : rank_parameters(input))
        for (const auto& part : {tail_of(input, rank), optimizer_of(input, rank)})
            all.insert(all.end(), part.begin(), part.end());
    return all;
}

std::optional<MemoryShortage> add_ranks(const StepInput& input, const std::vector<std::vector<Bytes>>& largest_message,
                                        StepProblem& step) {
    const Bytes capacity = input.capacity.value_or(capacity_of(*input.setup));
    const auto parameters = rank_parameters(input);
    for (std::size_t r = 0; r < step.memory.size(); ++r) {
        StaticMemory& memory = step.memory[r];
        for (const Bytes message : largest_message[r]) memory.buffers += input.receive_buffers * message;
        const Bytes held = std::max(memory.total(), memory.at_update);
        if (held > capacity)
            return MemoryShortage{.rank = RankId{static_cast<std::uint32_t>(r)},
                                  .held = memory,
                                  .passes = held - memory.total(),
                                  .usable = capacity,
                                  .device = input.setup->cluster.device,
                                  .task = {},
                                  .headroom = input.capacity ? Headroom{} : input.setup->headroom};
        const auto tail = sure_tail(tail_of(input, parameters[r]), input.setup->recipe.bucket);
        step.problem.ranks.push_back({capacity, memory.total(), sum_of(input, tail, r)});
        step.optimizer = std::max(step.optimizer, sum_of(input, optimizer_of(input, parameters[r]), r));
    }
    return std::nullopt;
}

}  // namespace pipeweaver::emulator
