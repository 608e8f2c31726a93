// Memory of stages: what passes hold, what they take while they run, and what a rank holds all the time.
#pragma once

#include "pipeweaver/emulator/step_problem.hpp"

namespace pipeweaver::emulator {

/// What one pass of a stage holds from its forward to its backward, and takes while it runs.
///
/// Split        I works from the last block to the first. While it is at one, the blocks before hold what the forward
///              left, those after it what their weight gradients need, so it may take more than B: B turns the needs of
///              one block into weight gradients before it goes on to the next.
struct PassMemory {
    Bytes held;                        ///< forward start to backward end
    Bytes forward_transient;           ///< during the forward on top of held
    Bytes transient;                   ///< during the backward on top of held
    Bytes input_transient;             ///< during I on top of held; at least `transient`
    std::vector<Bytes> held_by_block;  ///< of `held`, in the stage's order; the rest is around the blocks
    Bytes kept;                        ///< end of I to end of W: what the weight gradients of trained modules need
};

/// What one block keeps of a pass between forward and backward if nothing is left out.
[[nodiscard]] Bytes block_activations(const workloads::Architecture& network, std::int64_t layer,
                                      const PassShape& shape, const Layout& layout, const Recipe& recipe);

/// Memory of a pass over `shapes` with some blocks recomputed. `gradient` false: nothing is kept for a backward.
[[nodiscard]] PassMemory pass_memory(const StepInput& input, const StageLayers& stage,
                                     const std::vector<PassShape>& shapes, Recompute recompute, bool gradient);

/// Weights of a rank that as many GPUs hold, per GPU.
struct WeightGroup {
    std::int64_t copies = 1;  ///< GPUs that hold the same
    std::int64_t stride = 1;  ///< GPUs from one of them to the next
    bool experts = false;
    bool in_phases = false;
    std::int64_t trained = 0, frozen = 0;
    /// Of both, those of products in fewer than 16 bits, and the bytes of these products' copies of them.
    std::int64_t narrow = 0;
    double narrow_bytes = 0;
};

/// Parameters of a rank, per GPU.
struct RankParameters {
    std::vector<WeightGroup> groups;  ///< of modules with the layout of the job, of their experts, then by layouts
    std::int64_t largest_layers = 0;  ///< sum over its modules of one block's, for the workspace; of a module with
                                      ///< experts one of each shape of weight
    std::int64_t whole_layers = 0;    ///< the same, with all of a block's experts on this GPU
    std::int64_t teacher_layers = 0;  ///< the same, of the teacher: its forward runs in front of the model's
    std::int64_t frozen_layers = 0;   ///< of the frozen module with the most: two blocks, and what stands around them
    bool shares_embedding = false;    ///< holds the embedding or the head of a tied pair whose other half is elsewhere
    std::int64_t tied = 0;            ///< parameters of that half
    std::int64_t averaged = 0;        ///< of trained ones: gradients are averaged over tensor parallel GPUs

    std::int64_t trained() const { return groups[0].trained; }  ///< with the layout of the job, experts excepted
    std::int64_t experts() const { return groups[1].trained; }  ///< of the experts on this GPU
};
[[nodiscard]] std::vector<RankParameters> rank_parameters(const StepInput& input);

/// What each rank holds all the time, receive buffers excepted: bf16 weights, fp32 gradients, and 12 bytes of optimizer
/// state a parameter divided over the copies of the weight (distributed optimizer): Layout::weight_copies of the
/// module's layout, of experts Layout::expert_copies.
[[nodiscard]] std::vector<StaticMemory> static_memory(const StepInput& input);

}  // namespace pipeweaver::emulator
