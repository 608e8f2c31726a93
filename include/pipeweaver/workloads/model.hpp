// What is trained: networks (architectures), and models: modules joined to a DAG.
//
// Sizes are per module, before any parallelism. Names follow the Hugging Face configurations.
#pragma once

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/built.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::workloads {

enum class ModuleKind {
    language_model,         ///< causal decoder with token embedding and output head
    vision_encoder,         ///< ViT
    audio_encoder,          ///< Whisper-like
    text_encoder,           ///< T5-, CLIP-like; no output head
    diffusion_transformer,  ///< DiT with self and cross attention, or MMDiT
    head                    ///< a small network after a backbone
};

/// "llm", "vit", "audio_encoder", "text_encoder", "dit" or "head": the spelling of the files.
[[nodiscard]] std::string_view name_of(ModuleKind kind);

enum class AttentionKind {
    dense,     ///< multi-head and grouped-query: kv_heads says which
    windowed,  ///< dense inside windows, full in some layers
    latent,    ///< MLA (DeepSeek)
    factored   ///< MFA (Step-3)
};

struct Attention {
    AttentionKind kind = AttentionKind::dense;
    bool causal = true;
    bool qk_norm = false;
    bool output_gate = false;  ///< its output is multiplied with a gate, as wide as the queries (Qwen3-Next); of dense
                               ///< attention alone
    // windowed
    std::int64_t window = 0;                ///< tokens (patches) a window holds; 0: no window
    std::vector<std::int64_t> full_layers;  ///< layers with full attention
    // latent
    std::optional<std::int64_t> q_lora_rank;  ///< none: the query is one matrix
    std::int64_t kv_lora_rank = 0;
    std::int64_t qk_nope_head_dim = 0;
    std::int64_t qk_rope_head_dim = 0;
    std::int64_t v_head_dim = 0;
    // factored
    std::int64_t share_q_dim = 0;
    /// Of a diffusion transformer's dense attention, the share of pairs that is left out, found anew in each forward
    /// (DSV, arXiv 2502.07590): one of all layers, or one a layer; none: all pairs.
    std::vector<double> sparsity{};
    std::int64_t sparsity_rank = 16;  ///< of the queries and keys of a head that pairs are found by; assumed

    friend bool operator==(const Attention&, const Attention&) = default;
};

struct MixtureOfExperts {
    std::int64_t moe_layers = 0;   ///< the others are dense
    std::int64_t first_layer = 0;  ///< index of the first MoE layer
    std::int64_t every = 1;        ///< distance from one MoE layer to the next
    std::int64_t experts = 0;
    std::int64_t top_k = 0;
    std::int64_t expert_ffn = 0;
    std::int64_t shared_ffn = 0;  ///< of all shared experts together; 0: none
    std::int64_t latent = 0;      ///< width that routed experts read and write, between two projections (LatentMoE of
                                  ///< Nemotron 3); 0: hidden

    friend bool operator==(const MixtureOfExperts&, const MixtureOfExperts&) = default;
};

enum class LinearKind {
    gated_delta,  ///< gated delta nets (arXiv 2412.06464): Qwen3-Next, Qwen3.5, Qwen3.6
    mamba2        ///< state-space duality (arXiv 2405.21060): Nemotron-H, Nemotron Nano
};

/// Attention in time linear in the sequence: every position updates a state of key_dim x value_dim a head, and reads
/// it. It is worked out in chunks.
struct LinearAttention {
    LinearKind kind = LinearKind::gated_delta;
    std::int64_t key_heads = 0;    ///< of queries and keys; Mamba-2: groups of C and B
    std::int64_t value_heads = 0;  ///< Mamba-2: heads
    std::int64_t key_dim = 0;      ///< Mamba-2: d_state
    std::int64_t value_dim = 0;
    std::int64_t convolution = 4;  ///< positions that the causal convolution in front of it takes
    std::int64_t chunk = 64;

    std::int64_t keys() const { return key_heads * key_dim; }
    std::int64_t values() const { return value_heads * value_dim; }
    /// Columns that pass the convolution: queries, keys, values.
    std::int64_t convolved() const { return 2 * keys() + values(); }
    /// Columns of the input projection: those, the output gate, and what a head decays by and (delta nets) learns by.
    std::int64_t columns() const {
        return convolved() + values() + (kind == LinearKind::gated_delta ? 2 : 1) * value_heads;
    }

    friend bool operator==(const LinearAttention&, const LinearAttention&) = default;
};

/// One network.
struct Architecture {
    std::string name;
    ModuleKind kind = ModuleKind::language_model;
    std::int64_t layers = 0;  ///< repeated blocks; for MMDiT double + single blocks; added cross attention included
    std::int64_t single_layers = 0;  ///< of these, MMDiT single-stream blocks (the last ones)
    bool mmdit = false;              ///< blocks with separate text and image weights (double stream)
    std::int64_t hidden = 0;
    std::int64_t ffn = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t vocab = 0;            ///< 0: no token embedding
    std::int64_t layer_embedding = 0;  ///< width of a further embedding that each layer has of its own (Gemma 3n, small
                                       ///< Gemma 4); 0: none
    bool gated = false;                ///< feed-forward with a gate (SwiGLU): 3 matrices, else 2
    bool qkv_bias = false;
    bool tied_embeddings = false;  ///< output head shares the embedding's matrix
    Attention attention;
    std::optional<MixtureOfExperts> moe;
    std::optional<LinearAttention> linear;
    /// What the layers are, a letter each, from the first on; repeated to all layers; empty: all F. L and F: linear or
    /// full attention, P both side by side behind one norm (Falcon-H1), then a feed-forward (a mixture where `moe` has
    /// one). Alone, in Megatron-LM's letters: M linear attention, * full attention, - feed-forward, E mixture of
    /// experts.
    std::string layer_pattern;
    /// Of `layers`, the last ones that predict a token further ahead each (multi-token prediction, arXiv 2412.19437
    /// section 2.2): behind a projection of the last block's output beside an embedding, and with logits of their own.
    std::int64_t predicted_layers = 0;
    std::int64_t cross_attention_dim = 0;     ///< width of the keys' source; 0: no cross attention
    std::int64_t cross_attention_layers = 0;  ///< of `layers`, those with cross instead of self attention (Llama 3.2
                                              ///< vision: see is_cross_layer); 0: every layer, if it has any
    std::int64_t patch_size = 0;              ///< pixels, vision encoders
    std::int64_t temporal_patch = 1;          ///< frames that share a patch, vision encoders
    std::int64_t image_size = 0;              ///< pixels; 0: native resolution
    std::int64_t text_tokens = 0;             ///< conditioning tokens of a generator or text encoder; image positions
                                              ///< that a sample's added cross attention reads
    std::int64_t in_channels = 0;             ///< values a generator's or head's input position has
    std::int64_t condition_dim = 0;           ///< width of what a generator or head is conditioned on; 0: not said
    std::int64_t modulation = 0;              ///< parameters of a generator block's modulation; 0: as counts.hpp says
    std::int64_t embedders = 0;               ///< parameters of a generator before its first and after its last block
    std::int64_t repeats = 1;                 ///< times a head passes each position (NextStep-1's batch_mul)
    std::optional<std::int64_t> params_published;
    std::optional<std::int64_t> params_computed;  ///< matrix parameters as the catalogue's source computed them
    std::optional<std::int64_t> active_params_published;
    std::optional<std::int64_t> active_params_computed;  ///< what a token passes, output head included
    std::string published_differs;  ///< why all parameters differ from params_published by more than 1 %; empty: they
                                    ///< do not
    std::string confidence;
    std::string source;
    std::string note;

    friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// What one pass of a module takes.
enum class PassUnit {
    microbatch,  ///< all tokens of a microbatch: the language model
    items        ///< a sub-microbatch: some of a microbatch's images, clips or audio pieces
};

enum class Modality { text, image, video, audio };
[[nodiscard]] std::string_view name_of(Modality modality);

/// What routed experts have of adapters.
enum class ExpertAdapters : std::uint8_t {
    none,
    each,     ///< a pair beside each matrix of each expert
    together  ///< a pair for all experts of a GPU
};
[[nodiscard]] std::string_view name_of(ExpertAdapters experts);

/// Low-rank adapters (LoRA, arXiv 2106.09685) beside frozen matrices: to a matrix of k rows and n columns two thin,
/// k x rank and rank x n, which alone are trained. What is projected together (queries, keys and values; gate and up)
/// has one pair, as in Megatron-Bridge. Embedding and output head have none.
struct Adapters {
    std::int64_t rank = 0;
    bool qkv = true;     ///< into the attention, linear or not
    bool output = true;  ///< out of it
    bool up = true, down = true;
    ExpertAdapters experts = ExpertAdapters::none;  ///< of their up and down, where these have any
    bool apart = false;  ///< what is projected together has a pair for each part, as in PEFT on Hugging Face's modules

    bool on_all() const { return qkv && output && up && down; }
    friend bool operator==(const Adapters&, const Adapters&) = default;
};

/// A matrix that may have adapters, by its name in files and options.
struct AdaptedMatrix {
    std::string_view name;
    bool Adapters::*has;
};
inline constexpr std::array<AdaptedMatrix, 4> adapted_matrix_names{
    {{"qkv", &Adapters::qkv}, {"output", &Adapters::output}, {"up", &Adapters::up}, {"down", &Adapters::down}}};

/// As in model files: {"rank", "on"?, "experts"?, "apart"?}. parse_adapters(to_json(x)) equals x. Throws Error{input}.
[[nodiscard]] Adapters parse_adapters(const Json& json);
[[nodiscard]] std::string to_json(const Adapters& adapters);

/// Whether adapters beside its matrices are known: of plain projections and latent attention, not of factored
/// attention, streams and heads.
[[nodiscard]] bool may_have_adapters(const Architecture& network);

struct Module {
    std::string name;  ///< unique in the model
    Architecture architecture;
    PassUnit unit = PassUnit::microbatch;
    std::vector<Modality> modalities;       ///< which items an item module takes
    bool trainable = true;                  ///< its own weights
    std::optional<Adapters> adapters = {};  ///< of a module that is not trainable
    Lies lies = {};                         ///< of a job, in no model file: as its framework builds the module
    std::int64_t unpadded_heads = 0;        ///< of a job: its heads before its framework padded them; 0: it did not
    std::int64_t ulysses = 0;  ///< of a job: GPUs of a context parallel group that exchange its heads, while keys go
                               ///< round among such groups; 0: as the job's

    /// Whether anything of it is trained.
    bool trains() const { return trainable || adapters.has_value(); }

    friend bool operator==(const Module&, const Module&) = default;
};

/// Activations that go from one module to the next. Modules in front of the backbone read items, modules after it
/// make them.
struct ModelEdge {
    std::size_t from = 0;  ///< index into Model::modules
    std::size_t to = 0;
    std::int64_t token_reduction = 1;  ///< tokens (patches) of `from` that make one token of `to`
    std::int64_t projector_in = 0;     ///< a linear projector in_width x out_width after `from`; 0: none
    std::int64_t projector_out = 0;
    std::int64_t projector_hidden = 0;  ///< width between two linear layers (in x hidden, hidden x out); 0: one layer
    std::optional<bool> projector_trainable{};  ///< none: as `from`. LLaVA trains it between frozen modules

    friend bool operator==(const ModelEdge&, const ModelEdge&) = default;
};

/// How an image of native resolution comes to whole tokens.
enum class ImageResize : std::uint8_t {
    round,  ///< its sides are rounded, then both scaled into the limits (Qwen-VL, GLM-V)
    side,   ///< it is scaled down until no side is longer than `longest_side`, then filled up (Pixtral, Mistral 3)
    pad,    ///< it is scaled down to the patches of max_tokens, then filled up (Kimi-VL)
    fill    ///< it is scaled, up as well, to the most tokens up to max_tokens (Gemma 4)
};

/// "round", "side", "pad", "fill".
[[nodiscard]] std::string_view name_of(ImageResize resize);

/// How items become tokens. Fixed sizes where given, else by the item's own size.
struct ImageRule {
    std::int64_t patch = 14;        ///< pixels of a patch's side
    std::int64_t merge = 1;         ///< patches of a side that make one token
    std::int64_t fixed_pixels = 0;  ///< every image is scaled to this square; 0: native resolution, rounded to
                                    ///< patch * merge and scaled between min_tokens and max_tokens
    std::int64_t min_tokens = 1;    ///< of native resolution
    std::int64_t max_tokens = 0;    ///< of native resolution; 0: no limit
    ImageResize resize = ImageResize::round;
    std::int64_t longest_side = 0;  ///< in pixels, of `side`, whose max_tokens is the square of it

    friend bool operator==(const ImageRule&, const ImageRule&) = default;
};

/// How processors of vision-language models read clips: some of their frames, each clip at a size of its own.
struct SampledClips {
    std::int64_t patch = 14;  ///< pixels of a patch's side
    std::int64_t merge = 2;   ///< patches of a side that make one token
    std::int64_t frames = 2;  ///< that share a patch
    double fps = 2;           ///< frames read of a second
    std::int64_t min_frames = 4, max_frames = 768;
    std::int64_t min_pixels = 1, max_pixels = 1;  ///< clips are scaled between these
    bool whole_clip = false;                      ///< they are of all its frames together, else of each

    friend bool operator==(const SampledClips&, const SampledClips&) = default;
};

struct VideoRule {
    std::int64_t width = 256;   ///< clips are scaled to width x height (design: 256 x 448, assumed); both 0: each clip
    std::int64_t height = 448;  ///< keeps its own, rounded to whole latent patches
    std::int64_t spatial = 16;  ///< pixels of a latent patch's side
    std::int64_t frames_in = 17;  ///< frames that make `frames_out` latent frames
    std::int64_t frames_out = 3;
    bool first_frame_alone = false;  ///< causal VAEs: the first frame makes a latent frame of its own
    double fps = 16;
    double max_seconds = 16;                ///< longer clips are cut
    std::optional<SampledClips> sampled{};  ///< then all else here says only what clips of unknown size have

    bool keeps_sizes() const { return width == 0; }  ///< each clip its own

    friend bool operator==(const VideoRule&, const VideoRule&) = default;
};

struct AudioRule {
    double frames_per_second = 50;    ///< positions in the encoder
    double tokens_per_second = 12.5;  ///< tokens in the language model

    friend bool operator==(const AudioRule&, const AudioRule&) = default;
};

/// What becomes of a sample that no microbatch can hold.
enum class TooLong : std::uint8_t {
    usual,  ///< refused in a batch file, cut where it is drawn from a data set
    error,  ///< refused
    drop,   ///< left out
    own     ///< has a microbatch of its own, larger than others may be
};

/// "error", "drop" and "own", in order: what --too-long may be told.
[[nodiscard]] const std::vector<std::string>& too_long_names();

/// Pre: `name` is one of these.
[[nodiscard]] TooLong too_long_named(std::string_view name);

/// "" for `usual`.
[[nodiscard]] std::string_view name_of(TooLong too_long);

struct Model {
    std::string name;
    std::string family{};         ///< model_type of its Hugging Face configuration, "qwen3_vl"; empty: none, or of one
                                  ///< module alone
    std::vector<Module> modules;  ///< in topological order
    std::vector<ModelEdge> edges;
    ImageRule image;
    VideoRule video;
    AudioRule audio;
    std::int64_t microbatch_tokens = 8192;
    std::int64_t most_items = 0;          ///< items of a microbatch; 0: no limit
    double most_video_seconds = 0;        ///< clips of a microbatch together; 0: no limit
    std::int64_t most_positions = 0;      ///< of a sample in the backbone, as it was made for; 0: not known
    bool reference = false;               ///< a copy of it, as it was, lies beside what is trained of it and runs every
                                          ///< sample forward, too (DPO, KTO, GRPO)
    std::vector<Model> teacher{};         ///< one that does so, frozen, with layers of its own (distillation), or none;
                                          ///< without `reference`, and why_no_teacher() has nothing against it
    std::int64_t tp = 0, pp = 0, dp = 0;  ///< the published layout; 0: none
    std::string confidence;
    std::string source;
    std::vector<std::string> assumed;  ///< what of this entry is our assumption

    // Of a job, in no model file.
    std::optional<std::int64_t> microbatch_tokens_of_file;  ///< where a job has another `microbatch_tokens`; 0: a
                                                            ///< generator alone, whose file does not say it
    TooLong too_long = TooLong::usual;
    std::optional<Built> built{};  ///< the row by which its encoders lie; none: as the job's degrees say

    /// Index of the module whose pass takes the whole microbatch.
    std::size_t backbone() const;

    friend bool operator==(const Model&, const Model&) = default;
};

/// What lies frozen beside the model and runs every sample forward, too: the reference's copy, without adapters, or the
/// teacher; none: nothing does.
[[nodiscard]] std::optional<Model> model_beside(const Model& model);

/// Why the model cannot have it for a teacher: both read the same tokens in as many modules of the same kinds. None: it
/// can.
[[nodiscard]] std::optional<std::string> why_no_teacher(const Model& model, const Model& teacher);

/// Reads a model file ("pipeweaver-model/1", workloads/README.md). Where a module's architecture is a text, it names an
/// entry of the catalogue. Throws Error{input}, Error{io}.
[[nodiscard]] Model read_model(const std::filesystem::path& path);
[[nodiscard]] Model parse_model(const JsonDocument& document);

/// The model as a file to edit, keys in fixed order. parse_model(to_json(m)) equals m, but for what is of a job.
[[nodiscard]] std::string to_json(const Model& model);

/// The model as a file of it is read: without what is of a job. Throws Error{input} of `name` for what no file may say.
[[nodiscard]] Model as_read(const Model& model, std::string name);

}  // namespace pipeweaver::workloads
