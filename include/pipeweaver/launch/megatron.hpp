// A launch of Megatron Core: by Megatron-LM's arguments or Megatron-Bridge's overrides, as one struct.
//
// Defaults     those of Megatron-LM's arguments (core_v0.16.1, megatron/training/arguments.py); read_megatron() sets
//              the configuration's own where it reads overrides. What has no default there is nothing here.
// Units        layers, heads, tokens, GPUs: numbers.
#pragma once

#include "pipeweaver/launch/said.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

/// Variables by which Transformer Engine leaves out a kind of attention: flash, fused by cuDNN, and not fused.
inline constexpr std::array<std::string_view, 3> attention_variables{"NVTE_FLASH_ATTN", "NVTE_FUSED_ATTN",
                                                                     "NVTE_UNFUSED_ATTN"};

struct MegatronLaunch {
    using Number = std::optional<std::int64_t>;

    Dialect dialect = Dialect::megatron_arguments;

    // The spread.
    std::int64_t tp = 1, pp = 1, cp = 1, ep = 1;
    Number etp{};                       ///< none: tp
    Number vpp{};                       ///< chunks of a rank; said by overrides, else found by settle()
    Number layers_per_virtual_stage{};  ///< --num-layers-per-virtual-pipeline-stage
    Number virtual_stages_per_rank{};   ///< --num-virtual-stages-per-pipeline-rank
    std::string layout{};               ///< --pipeline-model-parallel-layout
    Number first{}, last{};             ///< layers of the first and the last pipeline rank
    bool account_for_embedding = false, account_for_loss = false;
    std::string hybrid_pattern{};  ///< --hybrid-layer-pattern
    std::string custom_layers{};   ///< LoongForge: --custom-pipeline-layers
    std::string custom_virtual_layers{};
    Number group_size{};  ///< microbatches in a row of one chunk; none: pp
    bool overlap_p2p = true, batch_p2p = false, overlap_p2p_warmup_flush = false;
    bool sequence_parallel = false;
    std::int64_t optimizer_instances = 1;
    bool variable_lengths = false;  ///< variable_seq_lengths, of overrides alone
    bool defer_embedding_wgrad = false, fused_accumulation = true;
    std::vector<std::string> cp_comm{};  ///< --cp-comm-type; none: p2p

    // The language model.
    Number layers{}, hidden{}, ffn{}, heads{}, groups{}, kv_channels{};
    bool grouped_query = false;
    Number seq_length{}, max_positions{};
    Number vocab{}, padded_vocab{};
    std::string tokenizer_type{}, tokenizer_model{}, vocab_file{};
    Number least_vocab{}, most_vocab{};  ///< of the tokenizer; none: it is not said, or what it takes is not
    std::int64_t vocab_divisor = 128;
    bool pads_vocab = true;  ///< Megatron-LM always; of overrides model.should_pad_vocab
    bool swiglu = false, squared_relu = false, quick_geglu = false, gated_linear_unit = false;
    bool untied = false;
    bool linear_bias = true, qkv_bias = false, qk_norm = false;
    bool gelu_fusion = true;  ///< --no-bias-gelu-fusion turns it off
    std::string positions{};  ///< --position-embedding-type; empty: learned_absolute, or the named model's
    bool is_named = false;    ///< a model beside the launch has its sizes
    // What its framework asks for beside the encoders of that model (workloads::Built).
    std::int64_t first_stage_layers = 0;  ///< of the first stage; 0: any
    std::int64_t most_cp = 0;             ///< 0: any
    bool asks_loss_per_token = false;     ///< with context parallelism
    std::string_view built_source{};      ///< where it was read
    bool rotary = false;
    bool latent_attention = false;
    Number q_lora_rank{};
    std::int64_t kv_lora_rank = 32, qk_head_dim = 128, qk_position_dim = 64, v_head_dim = 128;
    std::string attention_variant{};  ///< --experimental-attention-variant
    std::string linear_freq{};        ///< --linear-attention-freq
    Number linear_kernel{}, linear_key_dim{}, linear_value_dim{}, linear_key_heads{}, linear_value_heads{};
    Number state_groups{}, state_heads{};  ///< Mamba-2's, of a model beside the launch
    Number mtp_layers{};

    // Its experts.
    Number experts{};
    std::int64_t top_k = 2;
    Number expert_ffn{}, shared_ffn{};
    std::string moe_freq = "1";
    std::string dispatcher = "allgather";
    bool grouped_gemm = false, legacy_grouped_gemm = false;
    bool shared_overlap = false;
    std::string router_score = "softmax", load_balancing = "aux_loss";
    bool pre_softmax = false, expert_bias = false;
    Number router_groups{}, router_group_topk{};
    bool overlap_experts = false;  ///< --overlap-moe-expert-parallel-comm
    bool delay_wgrad = false, early_attention_release = false;

    // What is computed again, or lies on the host.
    std::string recompute{};  ///< granularity: "full" or "selective"; empty: none
    bool recompute_activations = false;
    std::string recompute_method{};
    Number recompute_layers{};
    std::vector<std::string> recompute_modules{};
    bool recompute_moe_layer = false, distribute_saved = false;
    std::string custom_recompute_layers{};  ///< LoongForge: of each rank, so many layers are computed again
    std::int64_t offload_layers = 0;        ///< --cpu-offloading-num-layers
    bool fine_offload = false;
    std::vector<std::string> offload_modules{};

    // The step.
    Number micro_batch{}, global_batch{};
    bool rounds_batch = false;  ///< --decrease-batch-size-if-needed: down to whole microbatches
    Number train_iters{};
    std::vector<std::string> said_ramp{};  ///< --rampup-batch-size
    std::vector<std::int64_t> ramp{};      ///< the same: first global batch, what is added, samples till the last
    bool bf16 = false, fp16 = false;
    std::string fp8{};
    bool distributed_optimizer = false, overlap_grads = false, overlap_params = false;
    bool grads_in_bf16 = false;  ///< --grad-reduce-in-bf16
    bool precision_aware = false;
    bool fused_loss = false;               ///< --cross-entropy-loss-fusion
    bool loss_per_token = false;           ///< --calculate-per-token-loss
    bool averages_gradients = false;       ///< ddp.average_in_collective
    std::string fused_loss_by = "native";  ///< native, te, linear
    std::string fused_loss_elsewhere{};    ///< what other versions take where nobody says it; empty: the same
    std::string hidden_dropout = "0.1";
    std::string main_grads = "fp32", main_params = "fp32", first_moment = "fp32", second_moment = "fp32";
    bool megatron_fsdp = false, torch_fsdp2 = false;
    std::string sharding = "no_shard";
    bool tp_comm_overlap = false;
    std::string attention{};             ///< --attention-backend; "unfused" and "local" keep scores
    bool offload_optimizer = false;      ///< --optimizer-cpu-offload
    std::string offload_fraction = "1";  ///< of the optimizer's state, that lies on the host

    // What of the model is trained.
    bool freeze_llm = false, freeze_vit = false, freeze_aligner = false;
    std::string tuner{};  ///< "lora", "full"; empty: all is trained
    Number lora_rank{};
    std::vector<std::string> lora_targets{};   ///< none: all linear layers
    std::vector<std::string> whole_modules{};  ///< trained whole beside adapters
    std::string learns{};                      ///< from answers: ms-swift's --rlhf-type; empty: from tokens
    bool packs = false;                        ///< samples are joined up to the length

    // Of answers that ms-swift generates, behind prompts as long as it is told. `seq_length` is of both together.
    Number answer_length{};
    Number engine_length{};            ///< of a prompt with its answer, at most
    bool by_engine = true;             ///< by vLLM
    std::string engine{};              ///< where that is; "server": on other GPUs
    std::string engine_share = "0.9";  ///< of a GPU's memory that it takes on the same
    std::int64_t engine_tp = 1;        ///< GPUs that share its weights
    std::int64_t sleep = 0;            ///< above 0 it gives up weights and caches while the model trains
    bool frees_weights = false;        ///< the trainer's weights and gradients are off the GPU while it generates
    bool frees_states = false;         ///< likewise the optimizer's

    // Of the model that ms-swift distils from (--rlhf-type gkd).
    std::string teacher{};           ///< as the launch names it; empty: the model itself, as it is at every step
    std::string teacher_server{};    ///< on GPUs of its own, in place of it
    bool teacher_on_host = false;    ///< but while it works out logits
    Number teacher_logits{};         ///< of a token, that are kept of it; none: all
    std::string on_policy = "0.5";   ///< of the steps, that are trained on answers of its own
    std::int64_t answers_steps = 1;  ///< whose answers are generated together, and their teacher's logits kept
    Number answers_batch{};          ///< samples of all these steps, in place of their number

    Number accumulation{};  ///< microbatches of a step, where no global batch is said

    // Where it runs.
    /// NVTE_FLASH_ATTN, NVTE_FUSED_ATTN and NVTE_UNFUSED_ATTN as the script sets them; empty: it does not.
    std::array<std::string, 3> attention_variables{};
    std::string max_connections{};  ///< CUDA_DEVICE_MAX_CONNECTIONS as the script sets it; empty: it does not
    bool before_blackwell = false;  ///< the GPUs are

    std::vector<std::string> not_read{};  ///< settings that the table has not
    Number data_length{};                 ///< that the data's own section says; it counts, see read_megatron()
    std::vector<std::string> notes{};     ///< what was taken of several, sentences

    /// Replicas on so many GPUs; 0 where the degrees do not divide them.
    std::int64_t dp(std::int64_t gpus) const { return gpus % (tp * pp * cp) == 0 ? gpus / (tp * pp * cp) : 0; }
    /// Sequences of a microbatch: of a sample that is a pair of answers two.
    std::int64_t sequences() const;
    /// Whether answers are generated: a model that is distilled trains on its data's without an engine.
    bool generates() const;
    bool gated() const { return swiglu || quick_geglu || gated_linear_unit; }
};

/// What a version of a framework sets itself.
struct OfVersion {
    bool turns_off_sequence_parallel = false;  ///< without tensor parallelism, where others refuse it
    bool parts_no_experts = false;             ///< expert tensor parallelism is 1 where nobody says it
};

/// Reads what a launch says. Of a name that is said twice the last counts. Throws Error{input} "WHERE: NAME: ..." for
/// values that are none, not numbers, out of range, or not among the choices. `version`: none is named.
[[nodiscard]] MegatronLaunch read_megatron(const SaidLaunch& said, std::optional<OfVersion> version = std::nullopt);

/// Whether read_megatron() reads the name in that dialect.
[[nodiscard]] bool is_megatron_setting(Dialect dialect, const std::string& name);

/// A setting as a user writes it: "--num-layers" or "model.num_layers". Pre: `flag` is in the table.
[[nodiscard]] std::string written(Dialect dialect, const std::string& flag);

/// What the table reads, a row each: for pages, and for the tests.
struct MegatronName {
    std::string flag;   ///< without dashes; empty: overrides alone
    std::string field;  ///< with its section: "model.num_layers"; empty: arguments alone
};
[[nodiscard]] std::vector<MegatronName> megatron_names();

/// The launch as Megatron Core has it after its arguments are validated and its configuration is built: what follows
/// from other settings is set (ffn, channels, groups, chunks of a rank, ...). Pre: no rule of the arguments is broken.
[[nodiscard]] MegatronLaunch settled(MegatronLaunch launch);

}  // namespace pipeweaver::launch
