// Layers as operators: which GEMMs, attentions, collectives and memory-bound kernels a pass of a layer launches.
//
// Notation     h hidden, F ffn, a heads, k kv_heads, d head_dim, V vocab, t tensor parallel GPUs, m positions of the
//              pass, M positions of its context, c the context's width.
// Source       Megatron-LM's dense transformer layer with tensor and sequence parallelism; the traffic of its
//              memory-bound kernels as fitted to published H100 runs: forward 20 m h/t + 4 m (a+k) d/t + 2 m (F1+F)/t
//              bytes, F1 = 2F if gated, else F; backward 1.6 times that. W alone: 4 m h/t a norm
//              (Execution::norms_again). Norms of queries and keys (qk_norm) read and write them once more: 4 m (a+k)
//              d/t more. With unfused attention 22 m h/t + 6 m (a+k) d/t + 2 m (F1+F)/t, and 1.5 times that backward.
//              In fp32 twice as many bytes.
// Gradients    A weight's product adds to its gradient. Where it does not (Recipe::fused_accumulation), every layer's
//              backward ends with a kernel that reads 2 bytes a parameter, and reads and writes the gradient; it is
//              added where passes are priced, as is what replicas exchange.
// Windows      A sequence of a windowed block is cut into windows of equal length and one that is left over.
// Cross        After the self attention: query m x (a d/t) x h, keys and values M x (2 k d/t) x c, output m x h x (a
//              d/t); the context is gathered like an input. Traffic: half of a block's two norms and residuals, 10 m
//              h/t + 4 (m a + M k) d/t. Without a known context the keys are left out.
// Modulation   Of a diffusion transformer's norms, by shift and scale, and of its residuals, by a gate: part of their
//              kernels (NeMo's AdaLN). The backward sums three gradients over the positions: 8 m h/t bytes read again
//              a norm. In MMDiT a product over the samples makes the vectors: s x 3n h/t x h, for s samples and the n
//              norms of a stream.
// MMDiT        Double stream: two plain blocks' GEMMs, over m and over M, around one attention over both, for which the
//              queries, keys and values of both are copied into one: 4 (m + M) (a + 2k) d/t bytes in each direction.
//              Single stream: (m + M) x ((a + 2k) d + F1)/t x h and (m + M) x h x (a d + F)/t (Flux, SD3), with half
//              the norm traffic and one pair of collectives.
// Added cross  (Llama 3.2 vision) the block's cross attention in place of its self attention, then the feed-forward
// attention    with 10 m h/t + 2 m (F1+F)/t of traffic.
// Head         (SimpleMLPAdaLN) modulation m x 3h/t x h from a condition that is gathered, exchanged for parts of the
//              positions; up m x F/t x h, down m x h x F/t. Traffic 20 m h/t + 4 m F/t: a norm and residual 10, shift,
//              scale and gate 6, activation of the condition 4. Around the blocks, over a GPU's own m/t positions,
//              their weights copied: input i x h, time features 256 x h, time h x h, condition c x h; last modulation
//              h x 2h, prediction h x i.
// Experts      router m/t x E x h over a GPU's own positions; routing moves 16 m/t k 2h bytes, half of them forward;
//              an exchange of 2 m/t k h bytes among the ep GPUs to the experts, and one back, in both passes; experts
//              as `Experts` says; shared ones as a feed-forward of their width with its gather and scatter. Every
//              expert is assumed to get as many tokens (balanced routing). One after the other, as Megatron-LM does by
//              default: nothing hides the exchanges. E experts, k of them chosen; whole experts on a GPU. Fewer copies,
//              exchanges beside other work and a fullest GPU: ExpertParallel in recipe.hpp.
// Latent       (MLA, DeepSeek-V2, arXiv 2405.04434) over a GPU's own positions: query r x h, keys and values (c + e)
//              x h; gathered: r + c + e columns (h + c + e where the query is one matrix); then query (a (n + e)/t) x
//              r, keys and values (a (n + v)/t) x c, attention of heads of n + e, output m x h x (a v/t). r, c ranks,
//              n, e, v sizes of a head's part without and with position and of its values. Traffic of its queries and
//              keys: 8 m a (n + e)/t.
// Factored     (MFA, Step-3, arXiv 2507.19427) likewise: query s x h and keys and values 2 k d x h over own positions,
//              s + 2 k d columns gathered; query (a d/t) x s. Traffic: 4 m (a/t + k) d.
//              Such down projections are copied to the tensor parallel GPUs, as Megatron-LM does; the sum of their
//              gradients over these is left out.
// Output gate  of an attention (Qwen3-Next): as many columns more as queries, 6 m a d/t bytes behind the attention, its
//              backward 5/3 of that.
// Linear       Delta nets and Mamba-2 with k key heads and g value heads of n and v values: in m x c/t x h, c = 2kn +
// attention    2gv + 2g (Mamba-2: one g); convolution, the rule (linear_rule.hpp), a gated norm of 6 m gv/t bytes; out
//              m x h x gv/t. Convolution, u = 2kn + gv: delta nets 8 m u/t of it between two transpositions + 8 m kn/t
//              norms + 4 m (kn + gn)/t copies of keys to value heads; Mamba-2 4 m u/t. Backward 1.6 times that. Context
//              parallel GPUs exchange the columns for whole sequences of a part of the heads, beside a ring, too
//              (Megatron-LM, MambaContextParallel).
// One part     blocks (Nemotron-H) have half of a block's norms and residuals: 10 m h/t, and what their part has.
// Context      With cp GPUs beside each tensor parallel one, m and M are a cp-th part, rounded up; lengths of attention
// parallelism  stay whole. All-to-all (DeepSpeed-Ulysses, arXiv 2309.14509): in front of the attention every GPU gives
//              queries, keys and values, 2 m (a + 2k) d/t bytes, and has a/(t cp) heads of whole sequences; after it
//              the output, 2 m a d/t, goes back; the backward exchanges the gradients likewise. Keys of fewer heads
//              than t cp GPUs are copied first. Ring (arXiv 2310.01889): cp steps; beside each the next keys and values
//              travel, 4 m k d/t bytes, in a backward also the gradients of those that were attended to, which go all
//              the way round. Causal halves are balanced by giving GPU i the parts i and 2 cp - 1 - i of 2 cp (zigzag):
//              of a sequence of s a step works out s^2 / (2 cp^2) scores on every GPU: the causal square of its own
//              s/cp, then squares of s/cp x s/(2 cp). Without causality (s/cp)^2. Left out: merging the steps' outputs.
//              Windows lie whole on one GPU in a ring, which then sends nothing.
// Left out     patch and time embeddings but those of a head; in a diffusion transformer, what makes the vectors that
//              all blocks share.
#pragma once

#include "pipeweaver/costdb/operators.hpp"
#include "pipeweaver/emulator/experts.hpp"
#include "pipeweaver/emulator/host_wait.hpp"
#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/emulator/linear_rule.hpp"
#include "pipeweaver/emulator/packed_attention.hpp"
#include "pipeweaver/emulator/recipe.hpp"

#include <array>
#include <string>
#include <variant>
#include <vector>

namespace pipeweaver::emulator {

/// The kinds of operators. To add one: a row here, and a file that says what it is asked by, its name (`op`) and its
/// `cost(database)`, as experts.hpp does; the others are the cost database's own. All else goes by this list: shares
/// of the time by class, what-if factors, tables and files of them.
using OperatorQuery = std::variant<costdb::Gemm, PackedAttention, costdb::Collective, costdb::PointToPoint,
                                   costdb::Elementwise, Experts, HostWait, LinearRule>;
inline constexpr std::size_t operator_classes = std::variant_size_v<OperatorQuery>;

/// The places of the kinds in that list, by name.
enum class OperatorClass : std::uint8_t {
    gemm,
    attention,
    collective,
    point_to_point,
    elementwise,
    experts,
    host,
    linear
};
[[nodiscard]] std::string_view name_of(OperatorClass kind);

/// What memory-bound kernels work on, on one GPU, so that someone can run them: the database knows their traffic alone.
struct KernelShape {
    std::int64_t rows = 0, columns = 0;  ///< of what is normed and added, looked up, or compared with labels; of an
                                         ///< optimizer one row of all parameters
    std::int64_t norms = 0;              ///< each with the addition to the residual after it
    std::int64_t rotated = 0;            ///< values of queries and keys that get their positions
    std::int64_t up = 0, down = 0;       ///< values into and out of the activation function; gated: twice as many into
    std::int64_t vocab = 0;              ///< of an embedding
};

/// Streams of a GPU: each runs its operators one after the other, in launch order.
enum class Stream : std::uint8_t {
    compute,
    tensor,   ///< collectives of tensor and sequence parallelism
    context,  ///< exchanges of context parallelism and of experts
    data,     ///< what replicas exchange: weights and gradients
    copy,     ///< between GPU and host memory
    host      ///< the host itself, which launches kernels one after the other
};
constexpr std::size_t streams = 6;
[[nodiscard]] std::string_view name_of(Stream stream);

/// One of a list of operators in launch order.
struct Operator {
    std::string_view name;  ///< "qkv", "attention", ...; a literal
    OperatorQuery query;
    KernelShape shape{};  ///< of memory-bound kernels
    Stream stream = Stream::compute;
    /// What it waits for: places in the same list, in front of its own. Empty: the one in front of it, wherever that
    /// runs; the first of a list waits for the list to begin.
    std::vector<std::uint32_t> after{};

    OperatorClass kind() const { return static_cast<OperatorClass>(query.index()); }
};

/// Which part of a training step a pass is. `backward` is input and weight gradient together.
enum class PassKind : std::uint8_t { forward, backward, input_gradient, weight_gradient };

/// What a pass of a module works on.
struct PassShape {
    std::vector<std::int64_t> lengths;    ///< packed sequences; attention does not cross them
    std::vector<std::int64_t> context{};  ///< positions of another module that each sequence attends to as well; empty:
                                          ///< none

    std::size_t whole = 0;  ///< of the sequences, so many from the front lie whole on one context parallel
                            ///< group; the others are divided over all of them

    std::int64_t positions() const;          ///< sum of lengths
    std::int64_t context_positions() const;  ///< sum of context
};

/// Of a shape the sequences that lie whole on a context parallel group, or those that are divided.
[[nodiscard]] PassShape whole_of(const PassShape& shape);
[[nodiscard]] PassShape divided_of(const PassShape& shape);

/// How many positions, and positions of the context, a context parallel GPU has.
[[nodiscard]] std::int64_t positions_of_group(const PassShape& shape, const Layout& layout);
[[nodiscard]] std::int64_t context_of_group(const PassShape& shape, const Layout& layout);

/// Rows of an output with one for `reduction` positions, of those a context parallel group has.
[[nodiscard]] std::int64_t rows_of_group(const PassShape& shape, const Layout& layout, std::int64_t reduction);

/// Positions that pass the network's blocks: MMDiT carries the context along, others only read it.
[[nodiscard]] std::int64_t block_positions(const workloads::Architecture& network, const PassShape& shape);
/// Of them, how many a context parallel group has.
[[nodiscard]] std::int64_t block_positions_of_group(const workloads::Architecture& network, const PassShape& shape,
                                                    const Layout& layout);

/// Forward FLOPs of block `layer`, as workloads::layer_flops counts them.
[[nodiscard]] double layer_flops(const workloads::Architecture& network, std::int64_t layer, const PassShape& shape);

/// The operators of repeated block `layer`, on one GPU of a rank.
[[nodiscard]] std::vector<Operator> layer_operators(const workloads::Architecture& network, const PassShape& shape,
                                                    const Layout& layout, PassKind pass, std::int64_t layer = 0,
                                                    const Execution& execution = {});

/// The operators of the token embedding: a gather, and the scatter of its sums over tensor parallel ranks.
[[nodiscard]] std::vector<Operator> embedding_operators(const workloads::Architecture& network, const PassShape& shape,
                                                        const Layout& layout, PassKind pass,
                                                        const Execution& execution = {});

/// The operators of the output head with vocabulary-parallel cross entropy, in bf16.
[[nodiscard]] std::vector<Operator> head_operators(const workloads::Architecture& network, const PassShape& shape,
                                                   const Layout& layout, PassKind pass,
                                                   const Execution& execution = {});

/// The operators of the edge's projector of one or two linear layers, over `rows` of a context parallel group.
[[nodiscard]] std::vector<Operator> projector_operators(const workloads::ModelEdge& edge, std::int64_t rows,
                                                        const Layout& layout, PassKind pass,
                                                        const Execution& execution = {});

/// Where values of the modules of an edge differ in width, fp32 against 16 bits: what goes over it is read in one and
/// written in the other, the gradients likewise. Nothing between equal widths.
[[nodiscard]] std::vector<Operator> cast_edge(std::int64_t columns, std::int64_t rows, const Layout& layout,
                                              PassKind pass, std::int64_t from_bytes, std::int64_t to_bytes);

/// Where a module has copies, what goes over an edge is gathered on all GPUs of the rank, of which each context
/// parallel group of the module's layout gives as many `rows` as the fullest; gradients are summed and scattered.
/// Nothing for a weight gradient, or without rows.
[[nodiscard]] std::vector<Operator> gathered_edge(std::int64_t columns, std::int64_t rows, const Layout& layout,
                                                  PassKind pass, const Execution& execution = {});

/// Adam's update of a rank's trained parameters, of which `copies` GPUs each update their part: of that, gradient 4,
/// fp32 weight, mean and variance read and written 24, the weight as bf16 2, and what splits of buffers cost; of all
/// parameters that a GPU holds, the gradient cleared 4 and its norm 4.
[[nodiscard]] Operator optimizer_update(std::int64_t parameters, std::int64_t copies, const UpdateTraffic& update = {});

}  // namespace pipeweaver::emulator
