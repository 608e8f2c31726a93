// The feed-forward of a layer with a mixture of experts.
#pragma once

#include "emulator/operators/operator_builder.hpp"

#include <string_view>

namespace pipeweaver::emulator {

/// The exchanges' names.
inline constexpr std::string_view dispatch = "dispatch", combine = "combine";
/// Of the GPUs that an expert is split over.
inline constexpr std::string_view gather_tokens = "gather tokens", scatter_tokens = "scatter tokens";

/// Whether it is an exchange of tokens on their way to experts or back.
[[nodiscard]] inline bool moves_tokens(std::string_view name) {
    return name == dispatch || name == combine || name == gather_tokens || name == scatter_tokens;
}

/// How many of `groups` equal groups of experts a token is expected to have chosen one of, where every choice of
/// `moe.top_k` experts is as likely. Pre: groups divides moe.experts.
[[nodiscard]] double groups_reached(const workloads::MixtureOfExperts& moe, std::int64_t groups);

/// Adds router, exchanges, experts and shared experts for m positions of a tensor parallel group, each of whose GPUs
/// routes those it holds. Shapes and assumptions: operators.hpp. Pre: network.moe.
void expert_feed_forward(OperatorBuilder& layer, const workloads::Architecture& network, const Layout& layout,
                         std::int64_t m);

}  // namespace pipeweaver::emulator
