#include "emulator/pricing/data_traffic.hpp"

#include "emulator/operators/group_links.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

using costdb::CollectiveKind;

Operator among_copies(std::string_view name, CollectiveKind kind, std::int64_t copies, std::int64_t stride,
                      std::int64_t bytes, const Layout& layout) {
    const std::int64_t per_node = std::clamp<std::int64_t>(layout.gpus_per_node / stride, 1, copies);
    const Bandwidth share{layout.network.bytes_per_second * per_node / layout.gpus_per_node};
    Operator op{name, costdb::Collective{
                          .kind = kind,
                          .dtype = kind == CollectiveKind::all_reduce ? costdb::Dtype::fp32 : costdb::Dtype::bf16,
                          .gpus = copies,
                          .gpus_per_node = per_node,
                          .message = {bytes},
                          .network = share,
                          .node_link = layout.node_link}};
    set_links(layout, stride, std::get<costdb::Collective>(op.query));
    op.stream = Stream::data;
    return op;
}

OwnParameters layer_weights(const workloads::Architecture& network, std::int64_t layer, const Layout& layout) {
    return {workloads::layer_parameter_parts(network, layer).common(layout.tp), layout.weight_copies(),
            layout.stride()};
}

OwnParameters own_experts(std::int64_t parameters, const Layout& layout, const ExpertParallel& how) {
    return {parameters, layout.expert_copies(how.tensor_parallel), layout.ep * how.tensor_parallel, true};
}

OwnParameters layer_experts(const workloads::Architecture& network, std::int64_t layer, const Layout& layout,
                            const ExpertParallel& how) {
    const std::int64_t all = workloads::layer_parameter_parts(network, layer).experts;
    return own_experts(all / (layout.ep * how.tensor_parallel), layout, how);
}

OwnParameters adapters_of_experts(const workloads::Architecture& network, std::int64_t layer,
                                  const workloads::Adapters& adapters, const Layout& layout,
                                  const ExpertParallel& how) {
    const std::int64_t pairs = workloads::expert_adapter_parameters(network, layer, adapters);
    const bool each = adapters.experts == workloads::ExpertAdapters::each && pairs > 0;
    return own_experts(pairs * (each ? network.moe->experts / layout.ep : 1), layout, how);
}

void put_first(std::vector<Operator>& operators, Operator op) {
    for (Operator& other : operators)
        for (std::uint32_t& place : other.after) ++place;
    operators.insert(operators.begin(), std::move(op));
}

void add_accumulation(std::vector<Operator>& operators, std::int64_t parameters, PassKind pass, bool trained,
                      const Recipe& recipe) {
    const bool gradients = trained && (pass == PassKind::backward || pass == PassKind::weight_gradient);
    if (recipe.fused_accumulation || !gradients || parameters == 0 || operators.empty()) return;
    const Bytes traffic{(2 + 2 * reduced_bytes(recipe.state)) * parameters};
    operators.push_back(
        {"accumulate gradients", costdb::Elementwise{traffic, costdb::ElementwiseKind::other, costdb::Pass::backward}});
    operators.back().after = {static_cast<std::uint32_t>(operators.size() - 2)};
}

void add_data_traffic(std::vector<Operator>& operators, const OwnParameters& own, PassKind pass, bool trained,
                      const Recipe& recipe, const Layout& layout) {
    if (recipe.zero < 2 || own.copies == 1 || own.parameters == 0 || operators.empty()) return;
    const bool gradients = trained && (pass == PassKind::backward || pass == PassKind::weight_gradient);
    if (gradients) {
        const auto last = static_cast<std::uint32_t>(operators.size() - 1);
        operators.push_back(among_copies(own.reduction(), CollectiveKind::reduce_scatter, own.copies, own.stride,
                                         reduced_bytes(recipe.state) * own.parameters, layout));
        operators.back().after = {last};
    }
    if (recipe.zero >= 3 && pass != PassKind::weight_gradient)
        put_first(operators, among_copies(own.gathering(), CollectiveKind::all_gather, own.copies, own.stride,
                                          recipe.state.weight * own.parameters, layout));
}

}  // namespace pipeweaver::emulator
