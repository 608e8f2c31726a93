// What the copies of a weight exchange.
#pragma once

#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/emulator/recipe.hpp"

#include <vector>

namespace pipeweaver::emulator {

/// A collective among `copies` GPUs that lie `stride` GPUs apart; all GPUs of a node do so at once and share its
/// network. `bytes` is the whole tensor. Pre: the layout is on its cluster (Layout::on).
[[nodiscard]] Operator among_copies(std::string_view name, costdb::CollectiveKind kind, std::int64_t copies,
                                    std::int64_t stride, std::int64_t bytes, const Layout& layout);

/// Bytes of a gradient on its way between GPUs: one that its host keeps is as wide there as its weight.
[[nodiscard]] inline std::int64_t reduced_bytes(const StateBytes& state) {
    return state.gradient > 0 ? state.gradient : state.weight;
}

/// Parameters of some layers on one GPU, and whose they are.
struct OwnParameters {
    std::int64_t parameters = 0;
    std::int64_t copies = 1;  ///< GPUs that hold the same
    std::int64_t stride = 1;  ///< GPUs from one of them to the next
    bool experts = false;

    std::string_view reduction() const { return experts ? "reduce gradients of experts" : "reduce gradients"; }
    std::string_view gathering() const { return experts ? "gather experts" : "gather weights"; }
};

/// Weights of block `layer` outside experts, its experts on a GPU, and so many parameters of experts on a GPU.
[[nodiscard]] OwnParameters layer_weights(const workloads::Architecture& network, std::int64_t layer,
                                          const Layout& layout);
[[nodiscard]] OwnParameters layer_experts(const workloads::Architecture& network, std::int64_t layer,
                                          const Layout& layout, const ExpertParallel& how);
[[nodiscard]] OwnParameters own_experts(std::int64_t parameters, const Layout& layout, const ExpertParallel& how);

/// The same of the adapters beside its routed experts. Of an expert that GPUs share out each has the matrices whole.
[[nodiscard]] OwnParameters adapters_of_experts(const workloads::Architecture& network, std::int64_t layer,
                                                const workloads::Adapters& adapters, const Layout& layout,
                                                const ExpertParallel& how);

/// Puts an operator in front of a list, to be fetched ahead; what the list waited for in its own places moves on.
void put_first(std::vector<Operator>& operators, Operator op);

/// Where a weight's gradient is not added up by its product: 2 bytes of it are read, and the sum read and written.
void add_accumulation(std::vector<Operator>& operators, std::int64_t parameters, PassKind pass, bool trained,
                      const Recipe& recipe);

/// What ZeRO adds to a pass of these layers: weights are gathered in front of it (stage 3), gradients reduced after
/// it (from stage 2 on, where the pass makes them). Nothing for a single copy.
void add_data_traffic(std::vector<Operator>& operators, const OwnParameters& own, PassKind pass, bool trained,
                      const Recipe& recipe, const Layout& layout);

}  // namespace pipeweaver::emulator
