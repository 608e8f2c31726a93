// What a step's groups send, by which its GPUs are placed.
#include "emulator/pricing/data_traffic.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <algorithm>
#include <vector>

namespace pipeweaver::emulator {

namespace {

constexpr double step_microbatches = 16;  // of a replica
constexpr double value_width = 2;         // bytes of an activation

struct TrainedParameters {
    double common = 0, experts = 0;
};

std::int64_t expert_parameters(const workloads::Architecture& network) {
    std::int64_t sum = 0;
    for (std::int64_t layer = 0; layer < network.layers; ++layer)
        sum += workloads::layer_parameter_parts(network, layer).experts;
    return sum;
}

TrainedParameters trained_parameters(const workloads::Model& model) {
    TrainedParameters sum;
    for (const workloads::Module& module : model.modules) {
        if (!module.trainable) continue;
        const std::int64_t experts = expert_parameters(module.architecture);
        sum.experts += static_cast<double>(experts);
        sum.common += static_cast<double>(workloads::all_parameters(module.architecture) - experts);
    }
    return sum;
}

const workloads::Architecture& largest_network(const workloads::Model& model) {
    return std::max_element(model.modules.begin(), model.modules.end(),
                            [](const auto& a, const auto& b) {
                                return workloads::matrix_parameters(a.architecture) <
                                       workloads::matrix_parameters(b.architecture);
                            })
        ->architecture;
}

// Bytes of a gradient and of a weight, by how often a step's microbatches pass them on.
double bytes_of_copies(const Recipe& recipe) {
    const auto gradient = static_cast<double>(reduced_bytes(recipe.state));
    const auto weight = static_cast<double>(recipe.state.weight);
    if (recipe.zero == 0) return 2 * gradient;
    return gradient * (recipe.zero >= 2 ? step_microbatches : 1) +
           weight * (recipe.zero >= 3 ? 2 * step_microbatches : 1);
}

// Between two side by side in a ring of so many.
double between_in_ring(std::int64_t gpus, double bytes) {
    return bytes * static_cast<double>(gpus - 1) / static_cast<double>(gpus);
}

void add_group(std::vector<Group>& groups, std::int64_t gpus, std::int64_t stride, Pattern pattern, double bytes) {
    if (gpus > 1 && bytes > 0) groups.push_back({gpus, stride, pattern, bytes});
}

// Of the blocks of a pipeline rank, in a step.
void add_inside(const Setup& setup, std::vector<Group>& groups) {
    const Layout& layout = setup.layout;
    const auto& network = largest_network(setup.model);
    const double blocks = step_microbatches * static_cast<double>(network.layers) / static_cast<double>(layout.pp);
    const double positions = static_cast<double>(setup.model.microbatch_tokens) / static_cast<double>(layout.cp);
    const double tensor = value_width * positions * static_cast<double>(network.hidden);  // of a context parallel group
    // Two gathers or scatters in a forward, three in a backward; queries, keys, values and outputs in both.
    constexpr double sums = 5, columns = 8, key_columns = 4, passes = 4;
    add_group(groups, layout.tp, 1, Pattern::ring, between_in_ring(layout.tp, blocks * sums * tensor));
    const double of_gpu = blocks * tensor / static_cast<double>(layout.tp);
    const std::int64_t exchanging = layout.exchanging(), rings = layout.cp / exchanging;
    add_group(groups, exchanging, layout.tp, Pattern::exchange, static_cast<double>(exchanging) * columns * of_gpu);
    const double keys =
        static_cast<double>(network.kv_heads) / static_cast<double>(std::max<std::int64_t>(1, network.heads));
    add_group(groups, rings, layout.tp * exchanging, Pattern::ring,
              static_cast<double>(rings - 1) * key_columns * keys * of_gpu);
    if (!network.moe) return;
    const double share = static_cast<double>(network.moe->moe_layers) / static_cast<double>(network.layers);
    add_group(groups, layout.ep, setup.recipe.execution.experts.tensor_parallel, Pattern::exchange,
              static_cast<double>(layout.ep) * passes * share * static_cast<double>(network.moe->top_k) * of_gpu);
}

void add_copies(const Setup& setup, std::vector<Group>& groups) {
    const Layout& layout = setup.layout;
    const TrainedParameters trained = trained_parameters(setup.model);
    const double bytes = bytes_of_copies(setup.recipe) / static_cast<double>(layout.pp);
    const std::int64_t copies = layout.cp * layout.dp;
    add_group(groups, copies, layout.tp, Pattern::ring,
              between_in_ring(copies, bytes * trained.common / static_cast<double>(layout.tp)));
    const std::int64_t of_expert = setup.recipe.execution.experts.tensor_parallel, sharing = layout.ep * of_expert;
    if (const std::int64_t alike = layout.expert_copies(of_expert); alike > 1)
        add_group(groups, alike, sharing, Pattern::ring,
                  between_in_ring(alike, bytes * trained.experts / static_cast<double>(sharing)));
}

}  // namespace

Placement best_placement(const Setup& setup) {
    const Fabric fabric = fabric_of(setup.cluster);
    if (!fabric.has_shape()) return {};
    const Layout& layout = setup.layout;
    std::vector<Group> groups;
    add_inside(setup, groups);
    add_copies(setup, groups);
    const double sent = value_width * static_cast<double>(largest_network(setup.model).hidden) *
                        static_cast<double>(setup.model.microbatch_tokens) / static_cast<double>(layout.gpus_of_rank());
    add_group(groups, layout.pp, layout.gpus_of_rank() * layout.dp, Pattern::neighbours, 2 * step_microbatches * sent);
    return place(layout, fabric, groups);
}

}  // namespace pipeweaver::emulator
