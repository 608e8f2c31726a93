// Language models of Hugging Face configurations: a row for each `model_type`.
#pragma once

#include "pipeweaver/workloads/model.hpp"
#include "workloads/hf/part.hpp"

namespace pipeweaver::workloads::hf {

enum class Bias { as_said, always };  ///< of queries, keys and values
enum class Mixture { none, as_said, needed };

/// What every position passes beside its experts.
enum class Shared {
    none,
    counted,      ///< n_shared_experts, each as wide as an expert
    own_width,    ///< shared_expert_intermediate_size
    one,          ///< one as wide as an expert
    feed_forward  ///< the dense feed-forward, in every layer
};

/// Which layers attend inside a sliding window.
enum class Windows {
    none,
    where_used,  ///< use_sliding_window: from max_window_layers on
    all,         ///< all, where there is a sliding_window
    alternating  ///< all but each n-th: layer_types, sliding_window_pattern or the row's `period`
};

struct DecoderRow {
    std::string_view type;
    std::string_view start_from;          ///< the catalogue's most alike
    std::span<const Default> defaults{};  ///< of the configuration class
    std::int64_t head_dim = 0;            ///< of the class; 0: hidden / heads
    bool qk_norm = false;                 ///< unless use_qk_norm says otherwise
    Bias bias = Bias::as_said;
    bool tied = false;  ///< embedding and output head, where neither place says it
    Mixture mixture = Mixture::none;
    Shared shared = Shared::none;
    bool experts_by_ffn = false;  ///< intermediate_size is an expert's width
    bool per_token = false;       ///< the chosen experts are num_experts_per_token
    bool latent = false;
    bool plain_heads = false;  ///< of latent attention: in files that say nothing of it
    bool indexed = false;      ///< an indexer chooses the positions that are attended to
    bool gate = false;         ///< attention has an output gate
    bool linear = false;       ///< gated delta nets but in each n-th layer; those have an output gate
    bool cross = false;        ///< added cross-attention layers
    Windows windows = Windows::none;
    std::int64_t period = 0;
    bool global_heads = false;  ///< full layers have heads of their own size
    bool plain = false;         ///< feed-forwards without a gate
    /// Of hybrids: what the blocks are, behind their heads.
    void (*blocks)(const Part&, const DecoderRow&, Architecture&) = nullptr;
};

/// The row of a type, or nothing.
[[nodiscard]] const DecoderRow* find_decoder(std::string_view type);
[[nodiscard]] std::vector<std::string> decoder_types();

/// Feed-forwards and experts of a row that says where they lie by counts. Throws Error{input}.
void read_feed_forward(const Part& part, const DecoderRow& row, Architecture& a);

/// The shortest text that repeated gives this one.
[[nodiscard]] std::string period_of(const std::string& pattern);

/// The network of such a configuration, its name left empty. `whole` is the file, which may say what the part does not
/// (tie_word_embeddings). Throws Error{input}.
[[nodiscard]] Architecture language_model(const Part& part, const Part& whole, const DecoderRow& row);

}  // namespace pipeweaver::workloads::hf
