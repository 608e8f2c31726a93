// From which length on it pays to leave pairs of a diffusion transformer's attention out, and to lay its context
// parallelism out in one way or another.
#pragma once

#include "pipeweaver/emulator/setup.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A module with so much of its pairs left out, against all of them.
struct SparseFrom {
    std::string module;
    double sparsity = 0;
    std::optional<std::int64_t> from{};  ///< positions of a clip; none: up to LongContext::lengths.back() it does not
    double ratio = 1;                    ///< of times at LongContext::length, sparse over dense
};

/// How a module's context parallel GPUs lie from a length on, up to the next: `ulysses` exchange heads, keys go round
/// among `ring` such groups.
struct ContextFrom {
    std::string module;
    std::int64_t from = 0, ulysses = 1, ring = 1;
};

/// Of a module's layers with all pairs, at LongContext::length.
struct AttentionShare {
    std::string module;
    double share = 0;
};

struct LongContext {
    static constexpr std::int64_t length = 524'288;
    std::vector<std::int64_t> lengths{};  ///< that were tried, a clip of each
    std::vector<SparseFrom> sparse{};
    std::vector<ContextFrom> contexts{};  ///< none without context parallelism
    std::vector<AttentionShare> shares{};
};

/// Whether the module may leave pairs out: a diffusion transformer's dense attention.
[[nodiscard]] bool may_leave_pairs_out(const workloads::Module& module);

/// Forward and backward of all layers of each diffusion transformer, priced alone over one clip of each length, in the
/// setup's layout: with shares of pairs left out (the model's own and usual ones), and in every way to share out cp
/// whose exchange divides the heads. From a length on means there and at all longer ones that were tried.
[[nodiscard]] LongContext long_context(const emulator::Setup& setup);

}  // namespace pipeweaver::planner
