// Names of settings. Of Megatron-LM core_v0.16.1 (55ac7082): training/arguments.py, core/model_parallel_config.py
// and core/transformer/transformer_config.py; of Megatron-Bridge 067f987d: training/config.py; of LoongForge 0.1.1:
// train/arguments; of ms-swift: megatron/arguments/megatron_args.py.
#include "launch/read/megatron_table.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <vector>

namespace pipeweaver::launch {

namespace {

using L = MegatronLaunch;
using Rows = std::vector<MegatronRow>;

Rows spread_rows() {
    return {
        {"tensor-model-parallel-size", "model.tensor_model_parallel_size", &L::tp},
        {"pipeline-model-parallel-size", "model.pipeline_model_parallel_size", &L::pp},
        {"context-parallel-size", "model.context_parallel_size", &L::cp},
        {"expert-model-parallel-size", "model.expert_model_parallel_size", &L::ep},
        {"expert-tensor-parallel-size", "model.expert_tensor_parallel_size", &L::etp},
        {"", "model.virtual_pipeline_model_parallel_size", &L::vpp},
        {"num-layers-per-virtual-pipeline-stage", "", &L::layers_per_virtual_stage},
        {"num-virtual-stages-per-pipeline-rank", "", &L::virtual_stages_per_rank},
        {"virtual-pipeline-model-parallel-size", "", &L::virtual_stages_per_rank},
        {"pipeline-model-parallel-layout", "model.pipeline_model_parallel_layout", &L::layout},
        {"decoder-first-pipeline-num-layers", "model.num_layers_in_first_pipeline_stage", &L::first, {}, true, 0},
        {"decoder-last-pipeline-num-layers", "model.num_layers_in_last_pipeline_stage", &L::last, {}, true, 0},
        {"account-for-embedding-in-pipeline-split", "model.account_for_embedding_in_pipeline_split",
         &L::account_for_embedding},
        {"account-for-loss-in-pipeline-split", "model.account_for_loss_in_pipeline_split", &L::account_for_loss},
        {"hybrid-layer-pattern", "model.hybrid_layer_pattern", &L::hybrid_pattern},
        {"custom-pipeline-layers", "", &L::custom_layers},
        {"custom-virtual-pipeline-layers", "", &L::custom_virtual_layers},
        {"custom-pipeline-recompute-layers", "", &L::custom_recompute_layers},
        {"microbatch-group-size-per-virtual-pipeline-stage", "model.microbatch_group_size_per_vp_stage",
         &L::group_size},
        {"microbatch-group-size-per-vp-stage", "", &L::group_size},
        {"no-overlap-p2p-communication", "model.overlap_p2p_comm", &L::overlap_p2p, {}, false},
        {"", "comm_overlap.overlap_p2p_comm", &L::overlap_p2p},
        {"", "model.batch_p2p_comm", &L::batch_p2p},
        {"overlap-p2p-communication-warmup-flush", "model.overlap_p2p_comm_warmup_flush", &L::overlap_p2p_warmup_flush},
        {"sequence-parallel", "model.sequence_parallel", &L::sequence_parallel},
        {"num-distributed-optimizer-instances", "ddp.num_distributed_optimizer_instances", &L::optimizer_instances},
        {"", "model.variable_seq_lengths", &L::variable_lengths},
        {"variable-seq-lengths", "", &L::variable_lengths},
        {"overlap-p2p-comm", "", &L::overlap_p2p},
        {"defer-embedding-wgrad-compute", "model.defer_embedding_wgrad_compute", &L::defer_embedding_wgrad},
        {"no-gradient-accumulation-fusion", "model.gradient_accumulation_fusion", &L::fused_accumulation, {}, false},
        {"cp-comm-type", "model.cp_comm_type", &L::cp_comm}};
}

Rows language_model_rows() {
    return {{"num-layers", "model.num_layers", &L::layers},
            {"hidden-size", "model.hidden_size", &L::hidden},
            {"ffn-hidden-size", "model.ffn_hidden_size", &L::ffn},
            {"num-attention-heads", "model.num_attention_heads", &L::heads},
            {"group-query-attention", "", &L::grouped_query},
            {"num-query-groups", "model.num_query_groups", &L::groups},
            {"kv-channels", "model.kv_channels", &L::kv_channels},
            {"seq-length", "model.seq_length", &L::seq_length},
            {"encoder-seq-length", "", &L::seq_length},
            {"max-length", "", &L::seq_length},
            {"", "dataset.seq_length", &L::data_length},
            {"", "dataset.sequence_length", &L::data_length},
            {"max-position-embeddings", "", &L::max_positions},
            {"vocab-size", "model.vocab_size", &L::vocab},
            {"padded-vocab-size", "", &L::padded_vocab},
            {"tokenizer-type", "tokenizer.tokenizer_type", &L::tokenizer_type},
            {"tokenizer-model", "tokenizer.tokenizer_model", &L::tokenizer_model},
            {"vocab-file", "tokenizer.vocab_file", &L::vocab_file},
            {"make-vocab-size-divisible-by", "model.make_vocab_size_divisible_by", &L::vocab_divisor},
            {"", "model.should_pad_vocab", &L::pads_vocab},
            {"swiglu", "", &L::swiglu},
            {"squared-relu", "", &L::squared_relu},
            {"quick-geglu", "", &L::quick_geglu},
            {"", "model.gated_linear_unit", &L::gated_linear_unit},
            {"untie-embeddings-and-output-weights", "", &L::untied},
            {"", "model.share_embeddings_and_output_weights", &L::untied, {}, false},
            {"disable-bias-linear", "model.add_bias_linear", &L::linear_bias, {}, false},
            {"add-qkv-bias", "model.add_qkv_bias", &L::qkv_bias},
            {"qk-layernorm", "model.qk_layernorm", &L::qk_norm},
            {"no-bias-gelu-fusion", "model.bias_activation_fusion", &L::gelu_fusion, {}, false},
            {"position-embedding-type", "", &L::positions, "learned_absolute|rope|mrope|yarn|relative|none"},
            {"use-rotary-position-embeddings", "", &L::rotary}};
}

Rows attention_rows() {
    return {{"multi-latent-attention", "model.multi_latent_attention", &L::latent_attention},
            {"q-lora-rank", "model.q_lora_rank", &L::q_lora_rank},
            {"kv-lora-rank", "model.kv_lora_rank", &L::kv_lora_rank},
            {"qk-head-dim", "model.qk_head_dim", &L::qk_head_dim},
            {"qk-pos-emb-head-dim", "model.qk_pos_emb_head_dim", &L::qk_position_dim},
            {"v-head-dim", "model.v_head_dim", &L::v_head_dim},
            {"experimental-attention-variant", "model.experimental_attention_variant", &L::attention_variant,
             "gated_delta_net|gdn|gdn2|dsa"},
            {"linear-attention-freq", "model.linear_attention_freq", &L::linear_freq},
            {"linear-conv-kernel-dim", "model.linear_conv_kernel_dim", &L::linear_kernel},
            {"linear-key-head-dim", "model.linear_key_head_dim", &L::linear_key_dim},
            {"linear-value-head-dim", "model.linear_value_head_dim", &L::linear_value_dim},
            {"linear-num-key-heads", "model.linear_num_key_heads", &L::linear_key_heads},
            {"linear-num-value-heads", "model.linear_num_value_heads", &L::linear_value_heads},
            {"mtp-num-layers", "model.mtp_num_layers", &L::mtp_layers, {}, true, 0}};
}

Rows experts_rows() {
    return {{"num-experts", "model.num_moe_experts", &L::experts, {}, true, 0, true},
            {"moe-router-topk", "model.moe_router_topk", &L::top_k, {}, true, 1, true},
            {"moe-ffn-hidden-size", "model.moe_ffn_hidden_size", &L::expert_ffn, {}, true, 1, true},
            {"moe-shared-expert-intermediate-size",
             "model.moe_shared_expert_intermediate_size",
             &L::shared_ffn,
             {},
             true,
             1,
             true},
            {"moe-layer-freq", "model.moe_layer_freq", &L::moe_freq, {}, true, 1, true},
            {"moe-token-dispatcher-type", "model.moe_token_dispatcher_type", &L::dispatcher, "allgather|alltoall|flex"},
            {"moe-grouped-gemm", "model.moe_grouped_gemm", &L::grouped_gemm},
            {"moe-use-legacy-grouped-gemm", "model.moe_use_legacy_grouped_gemm", &L::legacy_grouped_gemm},
            {"moe-shared-expert-overlap", "model.moe_shared_expert_overlap", &L::shared_overlap},
            {"moe-router-score-function", "model.moe_router_score_function", &L::router_score,
             "softmax|sigmoid|sqrtsoftplus"},
            {"moe-router-load-balancing-type", "model.moe_router_load_balancing_type", &L::load_balancing},
            {"moe-router-pre-softmax", "model.moe_router_pre_softmax", &L::pre_softmax},
            {"moe-router-enable-expert-bias", "model.moe_router_enable_expert_bias", &L::expert_bias},
            {"moe-router-num-groups", "model.moe_router_num_groups", &L::router_groups},
            {"moe-router-group-topk", "model.moe_router_group_topk", &L::router_group_topk},
            {"overlap-moe-expert-parallel-comm", "model.overlap_moe_expert_parallel_comm", &L::overlap_experts},
            {"", "comm_overlap.overlap_moe_expert_parallel_comm", &L::overlap_experts},
            {"delay-wgrad-compute", "model.delay_wgrad_compute", &L::delay_wgrad},
            {"", "comm_overlap.delay_wgrad_compute", &L::delay_wgrad},
            {"ep-overlap-early-attn-memory-release", "model.ep_overlap_early_attn_memory_release",
             &L::early_attention_release}};
}

Rows recompute_rows() {
    return {{"recompute-granularity", "model.recompute_granularity", &L::recompute, "full|selective|none"},
            {"recompute-activations", "", &L::recompute_activations},
            {"recompute-method", "model.recompute_method", &L::recompute_method, "uniform|block"},
            {"recompute-num-layers", "model.recompute_num_layers", &L::recompute_layers},
            {"recompute-modules", "model.recompute_modules", &L::recompute_modules},
            {"moe-layer-recompute", "model.moe_layer_recompute", &L::recompute_moe_layer},
            {"distribute-saved-activations", "model.distribute_saved_activations", &L::distribute_saved},
            {"cpu-offloading-num-layers", "model.cpu_offloading_num_layers", &L::offload_layers, {}, true, 0},
            {"fine-grained-activation-offloading", "model.fine_grained_activation_offloading", &L::fine_offload},
            {"offload-modules", "model.offload_modules", &L::offload_modules}};
}

Rows batch_rows() {
    return {{"micro-batch-size", "train.micro_batch_size", &L::micro_batch},
            {"global-batch-size", "train.global_batch_size", &L::global_batch},
            {"decrease-batch-size-if-needed", "train.decrease_batch_size_if_needed", &L::rounds_batch},
            {"train-iters", "train.train_iters", &L::train_iters, {}, true, 0},
            {"rampup-batch-size", "train.rampup_batch_size", &L::said_ramp},
            {"bf16", "model.bf16", &L::bf16},
            {"fp16", "model.fp16", &L::fp16},
            {"fp8-format", "model.fp8", &L::fp8, "e4m3|hybrid"},
            {"use-distributed-optimizer", "ddp.use_distributed_optimizer", &L::distributed_optimizer},
            {"", "optimizer.use_distributed_optimizer", &L::distributed_optimizer},
            {"overlap-grad-reduce", "ddp.overlap_grad_reduce", &L::overlap_grads},
            {"overlap-param-gather", "ddp.overlap_param_gather", &L::overlap_params},
            {"grad-reduce-in-bf16", "", &L::grads_in_bf16},
            {"", "ddp.grad_reduce_in_fp32", &L::grads_in_bf16, {}, false},
            {"use-precision-aware-optimizer", "optimizer.use_precision_aware_optimizer", &L::precision_aware},
            {"cross-entropy-loss-fusion", "model.cross_entropy_loss_fusion", &L::fused_loss},
            {"cross-entropy-fusion-impl", "model.cross_entropy_fusion_impl", &L::fused_loss_by, "native|te|linear"},
            {"hidden-dropout", "model.hidden_dropout", &L::hidden_dropout},
            {"calculate-per-token-loss", "model.calculate_per_token_loss", &L::loss_per_token},
            {"", "ddp.average_in_collective", &L::averages_gradients},
            {"main-grads-dtype", "optimizer.main_grads_dtype", &L::main_grads},
            {"main-params-dtype", "optimizer.main_params_dtype", &L::main_params},
            {"exp-avg-dtype", "optimizer.exp_avg_dtype", &L::first_moment},
            {"exp-avg-sq-dtype", "optimizer.exp_avg_sq_dtype", &L::second_moment},
            {"use-megatron-fsdp", "dist.use_megatron_fsdp", &L::megatron_fsdp},
            {"use-torch-fsdp2", "dist.use_torch_fsdp2", &L::torch_fsdp2},
            {"data-parallel-sharding-strategy", "ddp.data_parallel_sharding_strategy", &L::sharding,
             "no_shard|optim|optim_grads|optim_grads_params"},
            {"tp-comm-overlap", "model.tp_comm_overlap", &L::tp_comm_overlap},
            {"attention-backend", "model.attention_backend", &L::attention},
            {"optimizer-cpu-offload", "optimizer.optimizer_cpu_offload", &L::offload_optimizer},
            {"optimizer-offload-fraction", "optimizer.optimizer_offload_fraction", &L::offload_fraction}};
}

// Of ms-swift, of Megatron-LM's examples/multimodal, of models of Megatron-Bridge, and of mcore_adapter.
Rows tuning_rows() {
    return {{"freeze-llm", "model.freeze_language_model", &L::freeze_llm},
            {"freeze-LM", "", &L::freeze_llm},
            {"freeze-vit", "model.freeze_vision_model", &L::freeze_vit},
            {"freeze-ViT", "", &L::freeze_vit},
            {"freeze-aligner", "model.freeze_vision_projection", &L::freeze_aligner},
            {"tuner-type", "", &L::tuner},
            {"rlhf-type", "", &L::learns},
            {"packing", "", &L::packs},
            {"max-completion-length", "", &L::answer_length},
            {"use-vllm", "", &L::by_engine},
            {"vllm-mode", "", &L::engine},
            {"vllm-max-model-len", "", &L::engine_length},
            {"vllm-gpu-memory-utilization", "", &L::engine_share},
            {"vllm-tensor-parallel-size", "", &L::engine_tp},
            {"sleep-level", "", &L::sleep, {}, true, 0},
            {"gradient-accumulation-steps", "", &L::accumulation},
            {"teacher-model", "", &L::teacher},
            {"teacher-model-server", "", &L::teacher_server},
            {"offload-teacher-model", "", &L::teacher_on_host},
            {"gkd-logits-topk", "", &L::teacher_logits},
            {"lmbda", "", &L::on_policy},
            {"steps-per-generation", "", &L::answers_steps},
            {"generation-batch-size", "", &L::answers_batch},
            {"offload-model", "", &L::frees_weights},
            {"offload-optimizer", "", &L::frees_states},
            {"lora-rank", "peft.dim", &L::lora_rank},
            {"target-modules", "peft.target_modules", &L::lora_targets},
            {"modules-to-save", "", &L::whole_modules}};
}

Rows as_sizes(Rows rows) {
    for (MegatronRow& row : rows) row.of_model = true;
    return rows;
}

}  // namespace

std::span<const MegatronRow> megatron_rows() {
    static const Rows rows = [] {
        Rows all;
        for (const auto& some : {spread_rows(), as_sizes(language_model_rows()), as_sizes(attention_rows()),
                                 experts_rows(), recompute_rows(), batch_rows(), tuning_rows()})
            all.insert(all.end(), some.begin(), some.end());
        return all;
    }();
    return rows;
}

const MegatronRow& row_that_sets(const MegatronRow::Member& member) {
    const auto rows = megatron_rows();
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const MegatronRow& row) { return row.member == member; });
    PIPEWEAVER_ASSERT(found != rows.end());
    return *found;
}

std::string flag_of(const MegatronRow::Member& member) { return "--" + std::string(row_that_sets(member).flag); }

}  // namespace pipeweaver::launch
