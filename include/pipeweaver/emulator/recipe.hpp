// How a framework trains, as data: what runs in which precision, what hides what, what replicas share out, what the
// host costs.
//
// Source       Megatron-LM (core/tensor_parallel/layers.py, core/distributed) and Transformer Engine for what is
//              hidden; each recipe says where its numbers are from.
// Format       "pipeweaver-recipe/1": docs/formats.md.
#pragma once

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/units.hpp"
#include "pipeweaver/costdb/operators.hpp"
#include "pipeweaver/emulator/product_format.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emulator {

/// What hides the traffic of tensor parallelism.
enum class TensorOverlap : std::uint8_t {
    none,          ///< nothing
    launch_order,  ///< the order of launches, in backwards of column-parallel products: the input is gathered beside
                   ///< the input gradient's product, that gradient scattered beside the weight gradient's. Where a
                   ///< backward is split, I has only the scatter and W only the gather, and nothing beside them.
    inside_gemms   ///< products run in pieces beside the traffic (Transformer Engine's user buffers): for sequences of
                   ///< constant length alone; a fitted fraction stays exposed
};

/// Which copies of a token travel to its experts.
enum class Dispatcher : std::uint8_t {
    all_to_all,  ///< one for each expert that it chose
    once_a_node  ///< one to each node with experts that it chose, handed on to its GPUs there while others still cross
                 ///< the network; inside a node one to each GPU with such experts (DeepEP, HybridEP)
};

/// How a layer's kernels come to the GPU.
enum class Launched : std::uint8_t {
    unknown,   ///< the recipe does not say: a step has a range
    compiled,  ///< fused by a compiler into fewer kernels, each launched: a step has a range, too
    graphs,    ///< as CUDA graphs, one launch for many: the host is never waited for
    eager      ///< one by one, by a host that takes Recipe::layer and the like for it
};

/// How the GPUs that share out a layer's experts work together.
struct ExpertParallel {
    Dispatcher dispatcher = Dispatcher::all_to_all;
    double exposed = 1;    ///< of the exchanges' time, what work on another microbatch does not hide
    double imbalance = 1;  ///< tokens of the fullest GPU, for which the others wait and whose experts keep as many
                           ///< more activations, over their mean
    /// Nodes that a token's experts are on at most (node-limited routing: DeepSeek-V3, 4); 0: any. Counts with
    /// Dispatcher::once_a_node.
    std::int64_t most_nodes = 0;
    /// GPUs that share out each expert by its columns (Megatron-LM's expert_tensor_parallel_size). They lie side by
    /// side, gather the tokens that reached them in front of the experts and scatter what the experts gave.
    std::int64_t tensor_parallel = 1;

    friend bool operator==(const ExpertParallel&, const ExpertParallel&) = default;
};

/// How the layers of a module are run.
struct Execution {
    costdb::Dtype products = costdb::Dtype::bf16;  ///< < 16 bits: of blocks; embeddings and output heads stay bf16.
                                                   ///< fp32: activations too, twice the bytes; products are in
                                                   ///< TF32. StateBytes do not follow.
    bool fused_attention = true;                   ///< false: scores and their softmax go through memory
    bool sequence_parallel = true;                 ///< false: tensor-parallel GPUs all hold every position
    TensorOverlap tensor_overlap = TensorOverlap::launch_order;
    /// Where a backward is split, W reads what norms read in I once more, for the gradients of their own weights: as
    /// PyTorch's torch.distributed.pipelining does, whose W runs the backward of every operator that has weights.
    /// False: I makes them, and W has products alone (Transformer Engine's delayed weight gradients).
    bool norms_again = true;
    /// Of the module whose layers they are: its own weights are frozen.
    std::optional<workloads::Adapters> adapters{};
    ExpertParallel experts{};
    /// Products in nvfp4: the scale of a whole tensor is found by a kernel of its own, which reads all values again;
    /// the next one writes them twice, as they are and transposed (torchao's nvfp4_training).
    bool separate_amax = false;

    /// The size of an activation, in bytes.
    std::int64_t value_bytes() const { return products == costdb::Dtype::fp32 ? 4 : 2; }

    friend bool operator==(const Execution&, const Execution&) = default;
};

/// How the weights of products in fewer than 16 bits are held.
enum class NarrowWeights : std::uint8_t {
    cast_again,  ///< in StateBytes::weight alone: every pass casts them (torchao)
    copies,      ///< beside it in their format, as they are and, where gradients pass, transposed (Transformer Engine)
    alone        ///< in their format alone, likewise (Megatron-LM's fp8_param_gather)
};

/// Bytes of a parameter in a GPU's memory. What of it the copies of a weight share out: Recipe::zero.
struct StateBytes {
    std::int64_t weight = 2, gradient = 4, optimizer = 12;
    /// Of gradients on each GPU, whatever is shared out: besides `gradient`, the buckets of PyTorch's
    /// DistributedDataParallel; where gradients are shared out (zero 2 and 3), in place of their shares, sums of all
    /// microbatches that are reduced after the last.
    std::int64_t whole = 0;
    /// In place of `whole` where gradients are shared out and a GPU has several microbatches: of one alone there is
    /// nothing to add up (Hugging Face's trainers).
    std::int64_t summed = 0;
    /// In place of `whole` where a pipeline shares out gradients: it reduces them after the last microbatch alone.
    std::int64_t pipelined = 0;
    /// Of those that a GPU updates, while the optimizer does: gradients in another precision.
    std::int64_t update = 0;
    /// Where weights are whole and gradients are shared out (zero 2): of a weight's share that lies beside the whole
    /// weights that are gathered from it, frozen ones' too (FSDP2).
    std::int64_t apart = 0;
    /// Weights that one GPU alone has are as they are without shards: `apart` and `whole`, `summed` and `pipelined`
    /// are not of them (experts that as many GPUs share out as there are, in NeMo AutoModel). False: FSDP2 wraps them.
    bool bare = false;
    /// Of the optimizer's state besides `optimizer`, on the host, which updates what belongs to it.
    std::int64_t offloaded = 0;

    /// Of blocks whose products have fewer than 16 bits.
    NarrowWeights narrow = NarrowWeights::copies;

    friend bool operator==(const StateBytes&, const StateBytes&) = default;
};

/// The states with `part` of the optimizer's, 0 to 1, on the host; bytes that stay are rounded up, as Megatron Core's
/// optimizer_offload_fraction leaves them.
[[nodiscard]] StateBytes with_offloaded(StateBytes state, double part);

/// What a framework keeps where it is not as workloads/activations.hpp says: fused gates, inputs gathered again, a loss
/// that is computed from logits in 16 bits.
struct KeptBytes {
    bool fused_gate = true;  ///< false: a gate's activation and its product are two kernels, and what is between them
                             ///< is kept: 2 m F/t
    bool gathers_again = true;  ///< false: under sequence parallelism the gathered inputs of column-parallel products
                                ///< are kept: 2 m h each
    bool fused_linear_norm = false;  ///< false: norm and gate of a delta net's output are two kernels, and the normed
                                     ///< output is kept between them: 2 m V/t
    bool split_logits = true;        ///< false: all tensor-parallel GPUs hold all logits
    std::int64_t logit = 2;          ///< of a logit at the loss: bf16, and its copies in fp32
    bool narrow_inputs = true;       ///< inputs of products in fewer than 16 bits are kept in their format; where an
                                     ///< attention or a router needs them, too, once more. False: as values
    std::int64_t masks = 0;          ///< of dropout, of a value after attention and after feed-forward: m h each
    std::int64_t norms = 0;          ///< of norms that a language model's block has besides, or in fp32: m h/t each

    friend bool operator==(const KeptBytes&, const KeptBytes&) = default;
};

/// Bytes of a parameter that the update reads and writes: of those that a GPU updates, and of all that it holds.
struct UpdateTraffic {
    std::int64_t updated = 34, held = 8;

    friend bool operator==(const UpdateTraffic&, const UpdateTraffic&) = default;
};

/// Times of a framework's kernels over those of the device's row in the table of in_situ.hpp: what is fused less, or by
/// older kernels, takes longer; traffic that other traffic or a slower fabric delays, too.
struct KernelFactors {
    double products = 1, attention = 1, memory_bound = 1;
    /// On Hopper and Blackwell besides: kernels written for Ampere (FlashAttention 2) take longer there.
    double attention_after_ampere = 1;
    /// In place of that for attention without a causal mask, of encoders and diffusion transformers, which older
    /// kernels fall behind less in; none: the same.
    std::optional<double> unmasked_after_ampere{};

    /// What attention takes besides, with a causal mask or without.
    double after_ampere(bool causal) const {
        return causal ? attention_after_ampere : unmasked_after_ampere.value_or(attention_after_ampere);
    }
    double experts = 1;  ///< grouped products
    double traffic = 1;  ///< collectives

    friend bool operator==(const KernelFactors&, const KernelFactors&) = default;
};

/// What a measured launch says of a recipe that was corrected by it (planner/anchor.hpp).
struct Anchored {
    std::string from{};      ///< its file
    std::string layer_of{};  ///< the module of whose layer the times are, forward and backward; empty: of a step
    Duration measured{}, emulated{};         ///< before it corrects anything; measured 0: not said
    double kernels = 1;                      ///< so many times what kernels take without it
    Bytes measured_peak{}, emulated_peak{};  ///< of its fullest GPU; measured 0: not said
    Bytes beside{};                          ///< Recipe::beside

    /// Whether a whole step was measured.
    bool has_step() const { return measured > Duration{} && layer_of.empty(); }

    friend bool operator==(const Anchored&, const Anchored&) = default;
};

/// The defaults are the recipe "megatron-core".
struct Recipe {
    std::string name = "megatron-core";
    std::string about{};  ///< one line
    std::string source{};

    Execution execution{};
    /// By module, in place of Execution::products.
    std::map<std::string, costdb::Dtype> precision{};
    /// Of some layers, in place of both. Their layers are each in one of these at most.
    std::vector<LayerPrecision> layer_precision{};

    /// What the copies of a weight share out among them (ZeRO, arXiv 1910.02054): 0 nothing, 1 the optimizer's state,
    /// 2 gradients too, 3 weights too. From 2 on gradients are reduced in every backward; with 3 a layer's weights are
    /// gathered before each of its passes, while the layer in front of it runs.
    int zero = 1;

    /// Gradients are reduced in buckets of at least this size as soon as the last backward of their layers is through,
    /// beside the backwards that are left. 0: in one piece after the rank's last backward. Pre: 0 if zero >= 2.
    Bytes bucket{};

    /// On each GPU with zero 3, weights that were gathered and are not yet given up (DeepSpeed).
    Bytes gathered{};

    /// Updated weights are gathered beside the first forwards of the next step, which wait for nothing.
    bool gathers_ahead = false;

    /// Time of compute kernels that run beside traffic of replicas, over their time alone.
    double overlap_slowdown = 1;

    StateBytes state{};
    KeptBytes kept{};
    UpdateTraffic update{};

    /// Whether a weight's gradient is added up where its product ends (Megatron-LM's gradient accumulation fusion).
    /// Else it is written in 16 bits and added by a kernel of its own: 2 + 2 x StateBytes::gradient bytes a parameter
    /// in every backward.
    bool fused_accumulation = true;

    KernelFactors kernels{};

    /// Time of a split backward, I and W, over that of the same kernels in a whole one: what is fused, launched or read
    /// once there. What is computed again takes no longer.
    double split_slowdown = 1;

    /// What every GPU holds all the time beside what follows from the model: as an anchor was measured.
    Bytes beside{};
    /// What `kernels` and `beside` were corrected by; none: by nothing. No part of the format.
    std::optional<Anchored> anchored{};

    /// Measured runs that its numbers were fitted on, by device.
    std::map<std::string, std::int64_t> runs{};

    /// The host's time for each kernel that it launches. 0: launches are never waited for.
    Duration launch{};

    /// The host's time for each task of the schedule, in which its rank does nothing else.
    Duration action{};

    /// The host's time for a layer's forward; for its backward it takes 1.3 times that. 0: no layer waits for it.
    Duration layer{};
    /// The same by module, in place of it: CUDA graphs may hold the language model's layers alone.
    std::map<std::string, Duration> layer_of{};

    /// The host's time for routing in a layer with experts, permutations that wait for it among it, forward and
    /// backward, a microbatch; beside what the device's row has. Host and GPU wait for each other there, so that such a
    /// layer takes the root of the sum of the squares of the host's time, Recipe::layer's included, and its operators'.
    Duration expert_layer{};

    /// `graphs`: no time of the host is above 0.
    Launched launched = Launched::unknown;
    /// The shipped recipe that was fitted on launches kernel by kernel of this stack: with the host's times of that one
    /// a step takes the longest. Empty: no such runs were at hand.
    std::string eager = "megatron-core-plain";
    /// Of runs of this recipe, as it launches kernel by kernel, how many times its emulated length nine of ten took at
    /// most: without experts, and with. 1: not known.
    double far = 1, far_with_experts = 1;

    /// The link between a GPU and its host's memory, for offloaded activations: PCIe 5.0 x16 at 80 %, assumed.
    Bandwidth host_link{50'000'000'000};

    /// How a module's layers are run, as it lies and with its adapters.
    Execution execution_of(const workloads::Module& module) const;

    /// The same of one of its layers: products in a format of their own.
    Execution execution_of(const workloads::Module& module, std::int64_t block) const;
    costdb::Dtype products_of(const workloads::Module& module, std::int64_t block) const;

    /// Whether some of the module's layers have a format of their own.
    bool tells_layers_apart(const workloads::Module& module) const;

    /// The host's time for a forward of one of the module's layers.
    Duration host_of(const workloads::Module& module) const;

    /// Whether the host takes time for any kernel or layer.
    bool has_host() const;

    /// Whether passes are their layers one after the other: nothing of one reaches into another.
    bool is_serial() const { return zero < 2 && launch == Duration{0}; }

    friend bool operator==(const Recipe&, const Recipe&) = default;
};

/// Puts other states into it, but for `narrow`: sources of states say nothing of that.
inline void put_states(Recipe& recipe, StateBytes state) {
    state.narrow = recipe.state.narrow;
    recipe.state = state;
}

/// The same without what reaches from pass to pass: what partitions and shares of replicas are judged by.
[[nodiscard]] Recipe judging(const Recipe& recipe);

/// The recipes that ship with the program.
[[nodiscard]] const std::vector<Recipe>& recipes();

/// A shipped recipe, a file (JSON or YAML), or JSON itself. Throws Error{input} naming the nearest, for what is not as
/// the format says or contradicts itself; Error{io}.
[[nodiscard]] Recipe find_recipe(const std::string& name_or_path);

/// Finds what a recipe extends.
using RecipeNamed = std::function<Recipe(const std::string& name)>;
[[nodiscard]] Recipe parse_recipe(const JsonDocument& document, const RecipeNamed& named = find_recipe);

/// The recipe as its layers take when they are launched so: for `graphs` without a host, for `eager` with its own
/// host's times, else those of Recipe::eager. Throws Error{input} where that is no recipe with such times.
/// Pre: graphs or eager.
[[nodiscard]] Recipe launched_as(const Recipe& recipe, Launched launched);

/// Whether a step's time depends on what the recipe does not say of launches: not `graphs`, no host's time, and a
/// Recipe::eager that has one.
[[nodiscard]] bool is_open(const Recipe& recipe);

/// Puts products of a module, of layers ("llm:0-3"), or by "default" of the job in a format; or says why not.
[[nodiscard]] std::optional<std::string> why_not_set(Recipe& recipe, std::string_view of, std::string_view format);

/// The recipe with what an option says: "fp8" for the whole job, or "vit=bf16,llm=fp8,llm:0-3=bf16". Throws
/// Error{input}, naming the option.
[[nodiscard]] Recipe with_precision(Recipe recipe, std::string_view option, std::string_view text);

/// What with_precision() takes: "fp8", "vit=bf16,llm:0-3=bf16" or "default=fp8,vit=bf16"; empty: all are in bf16.
[[nodiscard]] std::string formats_of(const Recipe& recipe);

/// Throws Error{input} for modules and layers that the model lacks, layers in two formats, and formats that the device
/// has no products of.
void check_precision(const Recipe& recipe, const workloads::Model& model, const workloads::Device& device);

/// Throws Error{input} for modules that the model lacks, for a precision that the device has not, and for a
/// Recipe::eager that is none.
void check(const Recipe& recipe, const workloads::Model& model, const workloads::Device& device);

/// The recipe as a file to edit.
[[nodiscard]] std::string to_json(const Recipe& recipe);

[[nodiscard]] std::string_view name_of(TensorOverlap overlap);
[[nodiscard]] std::string_view name_of(Dispatcher dispatcher);
[[nodiscard]] std::string_view name_of(Launched launched);

}  // namespace pipeweaver::emulator
