// A row for each rule and hazard of frameworks: how a launch that keeps all rules breaks it, and what it says then.
#include "pipeweaver/launch/hazards.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/launch/said.hpp"
#include "tests/support/small_model.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::launch;

namespace {

using M = MegatronLaunch;
using T = TitanLaunch;

template <class... Changed>
struct Row {
    std::string_view id, why;
    void (*change)(Changed&... changed);
    std::string_view version{};  ///< of those that say so, with '|' between; empty: all do
    std::int64_t gpus = 64;
    std::string_view beside{};  ///< " + ID" of each that cannot but break with it
};

constexpr std::string_view to_017 = "0.16.1|0.17.1", to_018 = "0.16.1|0.17.1|0.18.2",
                           to_019 = "0.16.1|0.17.1|0.18.2|0.19.0", since_017 = "0.17.1|0.18.2|0.19.0|0.20.0",
                           since_018 = "0.18.2|0.19.0|0.20.0";

bool is_in(std::string_view versions, std::string_view version) {
    return fmt::format("|{}|", versions).find(fmt::format("|{}|", version)) != std::string::npos;
}

// --- The launch that rows change, which breaks nothing, and what several of them set

M usual(Dialect dialect) {
    M l = read_megatron(read_words(dialect, "", "table"));
    l.tp = l.pp = 4;
    l.sequence_parallel = l.bf16 = l.rotary = true;
    l.layers = 32;
    l.hidden = 4096;
    l.heads = 32;
    l.seq_length = l.max_positions = 4096;
    l.micro_batch = 1;
    l.global_batch = 64;
    l.linear_bias = false;
    l.max_connections = "1";
    l.before_blackwell = true;
    return l;
}

template <class L, class Value>
L& with(L& l, Value L::*setting, const std::type_identity_t<Value>& value = Value{true}) {
    l.*setting = value;
    return l;
}

M& one_rank(M& l) { return with(l, &M::pp, 1); }
M& built(M& l) { return with(l, &M::built_source, "a source"); }
M& laid_out(M& l) { return with(l, &M::layout, "Et*7|t*8|t*8|t*9L"); }
M& hybrid(M& l) { return with(l, &M::hybrid_pattern, "M*|M*|M*|M-"); }
M& chunks(M& l) { return with(l, &M::virtual_stages_per_rank, 2); }
M& ramped(M& l, const std::vector<std::int64_t>& ramp) {
    l.said_ramp.assign(ramp.size(), "said");
    return with(l, &M::ramp, ramp);
}
M& chunks_of_4(M& l) { return with(l, &M::layers_per_virtual_stage, 4); }
M& custom(M& l) { return with(l, &M::custom_layers, "5,9,9,9"); }
M& custom_chunks(M& l) { return with(l, &M::custom_virtual_layers, "2,4,4,4,3,5,5,5"); }
M& two_stages(M& l, const char* layout) { return with(with(with(l, &M::pp, 2), &M::layers, 2), &M::layout, layout); }
M& mtp(M& l, std::int64_t layers) { return with(l, &M::mtp_layers, layers); }
M& full(M& l) {
    return with(with(with(l, &M::recompute, "full"), &M::recompute_method, "uniform"), &M::recompute_layers, 1);
}
M& selective(M& l, const char* module) {
    return with(with(l, &M::recompute, "selective"), &M::recompute_modules, {module});
}
M& experts(M& l) { return with(with(with(l, &M::experts, 8), &M::expert_ffn, 1024), &M::dispatcher, "alltoall"); }
M& shared_experts(M& l) { return with(with(experts(l), &M::shared_ffn, 1024), &M::shared_overlap); }
M& overlapped(M& l) { return with(with(experts(chunks(l)), &M::ep, 2), &M::overlap_experts); }
M& router(M& l, M::Number groups, std::int64_t chosen) {
    return with(with(l, &M::router_groups, groups), &M::router_group_topk, chosen);
}

M& torch_fsdp2(M& l) {
    l.fused_accumulation = false;
    l.max_connections.clear();
    return with(with(one_rank(l), &M::torch_fsdp2), &M::untied);
}

M& linear_attention(M& l, const char* variant) {
    l.attention_variant = variant;
    l.linear_freq = "4";
    l.linear_kernel = 4;
    l.linear_key_dim = l.linear_value_dim = 128;
    l.linear_key_heads = 16;
    l.linear_value_heads = 32;
    return l;
}

M& delta_nets(M& l) { return linear_attention(l, "gated_delta_net"); }

// --- Megatron Core, by Megatron-LM's arguments

const std::vector<Row<M>> of_arguments{
    // arguments.cpp
    {"hybrid-pattern", "it is said", [](M& l) { hybrid(l); }, "0.16.1"},
    {"hybrid-pattern", "--pipeline-model-parallel-layout is said", [](M& l) { laid_out(hybrid(l)); }, since_017},
    {"hybrid-pattern", "chunks of a rank are said", [](M& l) { chunks(hybrid(l)); }, since_017},
    {"hybrid-pattern", "the embedding or the loss is accounted for", [](M& l) { hybrid(l).account_for_loss = true; },
     since_017},
    {"hybrid-pattern", "layers of the first or last rank are said", [](M& l) { hybrid(l).last = 2; }, since_017},
    {"max-connections", "tp 4, cp 1, and it is set to 8", [](M& l) { l.max_connections = "8"; }},
    {"attention-variables", "NVTE_FLASH_ATTN is 0, and auto takes 1",
     [](M& l) {
         l.attention_variables = {"0", "0", ""};
     }},
    {"attention-variables", "NVTE_FUSED_ATTN is 1, and flash takes 0",
     [](M& l) {
         l.attention = "AttnBackend.flash";
         l.attention_variables = {"1", "1", "0"};
     }},
    {"attention-variables", "NVTE_UNFUSED_ATTN is 0, and unfused takes 1",
     [](M& l) {
         l.attention = "unfused";
         l.attention_variables = {"0", "0", "0"};
     }},
    {"teacher-chunks", "2 chunks of a rank, and --teacher-model T", [](M& l) { chunks(l).teacher = "T"; }},
    {"teacher-server", "--teacher-model-server u, and no --gkd-logits-topk",
     [](M& l) {
         l.learns = "gkd";
         l.teacher_server = "u";
     }},
    {"fsdp-connections", "--use-megatron-fsdp is said", [](M& l) { l.megatron_fsdp = true; }},
    {"fsdp-connections", "--use-torch-fsdp2 is said", [](M& l) { torch_fsdp2(l).max_connections = "1"; }},
    {"world-size", "60 GPUs are no multiple of tp 4 x pp 4 x cp 1 = 16", [](M&) {}, "", 60},
    {"chunks-said-once", "2 of the three are said", [](M& l) { laid_out(chunks(l)); }},
    {"layout-stages", "it has 3 stages, 4 ranks", [](M& l) { l.layout = "Et*15|t*8|t*9L"; }},
    {"layout-stages",
     "--pipeline-model-parallel-layout: stage 1 of 'Et|xL' has 'x' behind '', allowed are E (embedding), t (decoder "
     "layer), m (multi-token prediction), L (loss), '|', ',', x*n and (...)*n, which does not nest",
     [](M& l) { l.layout = "Et|xL"; }},
    {"chunk-layers", "--decoder-first-pipeline-num-layers or --decoder-last-pipeline-num-layers is said beside it",
     [](M& l) { chunks_of_4(l).first = 8; }},
    {"chunk-layers", "34 layers on 4 ranks", [](M& l) { chunks_of_4(l).layers = 34; }},
    {"chunk-layers", "9 layers of a rank in chunks of 4", [](M& l) { chunks_of_4(l).layers = 36; }},
    {"rank-layers", "34 layers on 4 ranks", [](M& l) { l.layers = 34; }},
    {"rank-layers", "34 layers on 4 ranks", [](M& l) { l.account_for_embedding = l.account_for_loss = true; }},
    {"interleaved-ranks", "2 chunks on 1 ranks", [](M& l) { one_rank(chunks(l)); }},
    {"interleaved-ranks", "2 chunks on 2 ranks with --no-overlap-p2p-communication",
     [](M& l) { with(chunks(l), &M::pp, 2).overlap_p2p = false; }},
    {"overlap-param-gather", "neither --use-distributed-optimizer nor --use-megatron-fsdp is said",
     [](M& l) { l.overlap_params = true; }},
    {"overlap-param-gather", "--overlap-grad-reduce is not said",
     [](M& l) { l.overlap_params = l.distributed_optimizer = true; }},
    {"torch-fsdp2", "--pipeline-model-parallel-size is 4", [](M& l) { torch_fsdp2(l).pp = 4; }},
    {"torch-fsdp2", "--expert-model-parallel-size is 2", [](M& l) { torch_fsdp2(experts(l)).ep = 2; }},
    {"torch-fsdp2", "--use-distributed-optimizer is said", [](M& l) { torch_fsdp2(l).distributed_optimizer = true; }},
    {"torch-fsdp2", "--no-gradient-accumulation-fusion is not said",
     [](M& l) { torch_fsdp2(l).fused_accumulation = true; }},
    {"torch-fsdp2", "--untie-embeddings-and-output-weights is not said", [](M& l) { torch_fsdp2(l).untied = false; }},
    {"torch-fsdp2", "--fp16 is said", [](M& l) { std::swap(torch_fsdp2(l).bf16, l.fp16); }},
    {"one-precision", "both are said", [](M& l) { l.fp16 = true; }},
    {"head-width", "4100 columns, 32 heads, and --kv-channels is not said", [](M& l) { l.hidden = 4100; }},
    {"sequence-by-context", "4096 tokens, 2 x 3", [](M& l) { l.cp = 3; }, "", 48},
    {"positions", "it is not said", [](M& l) { l.max_positions.reset(); }},
    {"positions", "--max-position-embeddings 2048, --seq-length 4096", [](M& l) { l.max_positions = 2048; }},
    {"selective-method", "--recompute-method uniform is said",
     [](M& l) { with(l, &M::recompute_activations).recompute_method = "uniform"; }},
    {"saved-activations", "--tensor-model-parallel-size is 1",
     [](M& l) { with(full(l), &M::distribute_saved).tp = 1; }},
    {"saved-activations", "--recompute-granularity is not full", [](M& l) { l.distribute_saved = true; }},
    {"saved-activations", "--recompute-method is not said",
     [](M& l) { with(full(l), &M::distribute_saved).recompute_method.clear(); }},
    {"tp-comm-overlap", "--tensor-model-parallel-size is 1, which turns it off",
     [](M& l) { with(l, &M::tp_comm_overlap).tp = 1; }},
    {"tp-comm-overlap", "--sequence-parallel is not said",
     [](M& l) { with(l, &M::tp_comm_overlap).sequence_parallel = false; }},
    {"experts-by-ep", "--num-experts is not said", [](M& l) { l.ep = 2; }},
    {"experts-by-ep", "8 experts, 3 groups", [](M& l) { experts(l).ep = 3; }},
    {"ramp-samples", "1000 iterations are said",
     [](M& l) {
         ramped(l, {16, 16, 100}).train_iters = 1000;
     }},
    {"mtp-positions", "--position-embedding-type is learned_absolute", [](M& l) { mtp(l, 1).rotary = false; }},
    {"latent-groups", "both are said", [](M& l) { l.latent_attention = l.grouped_query = true; }},
    {"one-activation", "--swiglu and --squared-relu", [](M& l) { l.swiglu = l.squared_relu = true; }},
    {"one-activation", "--swiglu and --quick-geglu", [](M& l) { l.swiglu = l.quick_geglu = true; }},
    // custom.cpp
    {"custom-layers", "--pipeline-model-parallel-layout is said", [](M& l) { laid_out(custom(l)); }},
    {"custom-layers", "--decoder-first-pipeline-num-layers is said", [](M& l) { custom(l).first = 5; }},
    {"custom-layers", "--decoder-last-pipeline-num-layers is said", [](M& l) { custom(l).last = 9; }},
    {"custom-layers", "--custom-virtual-pipeline-layers is said", [](M& l) { custom(custom_chunks(chunks(l))); }},
    {"custom-virtual-layers", "--pipeline-model-parallel-size is 1", [](M& l) { one_rank(custom_chunks(l)); }},
    {"custom-virtual-layers", "--num-virtual-stages-per-pipeline-rank is not said", [](M& l) { custom_chunks(l); }},
    {"custom-virtual-layers", "8 numbers, 4 ranks x 3 chunks",
     [](M& l) { custom_chunks(l).virtual_stages_per_rank = 3; }},
    {"custom-recompute-layers", "--recompute-granularity is not full",
     [](M& l) { l.custom_recompute_layers = "1,2,2,2"; }},
    {"custom-recompute-layers", "3 numbers, 4 ranks", [](M& l) { full(l).custom_recompute_layers = "1,2,2"; }},
    // configuration.cpp
    {"groups-experts", "64 GPUs are no multiple of etp 4 x ep 8 x pp 4 = 128", [](M& l) { experts(l).ep = 8; }},
    {"groups-instances", "dp 4 x cp 1 in 3 instances", [](M& l) { l.optimizer_instances = 3; }},
    {"deferred-embedding", "the pipeline parallel size is 1", [](M& l) { one_rank(l).defer_embedding_wgrad = true; }},
    {"deferred-embedding", "gradient accumulation is not fused",
     [](M& l) { with(l, &M::defer_embedding_wgrad).fused_accumulation = false; }},
    {"p2p-warmup-flush", "P2P traffic is not overlapped, which takes chunks",
     [](M& l) { l.overlap_p2p_warmup_flush = true; }},
    {"heads-by-tp", "2 heads, tp 4", [](M& l) { l.heads = 2; }},
    {"groups-by-tp", "3 groups, tp 4", [](M& l) { with(l, &M::grouped_query).groups = 3; }},
    {"delta-nets", "the frequency of linear attention is not said", [](M& l) { delta_nets(l).linear_freq.clear(); }},
    {"delta-nets", "a size of linear attention is not said", [](M& l) { delta_nets(l).linear_kernel.reset(); }},
    {"delta-nets", "24 value heads, 16 key heads", [](M& l) { delta_nets(l).linear_value_heads = 24; }},
    {"delta-nets", "2 key heads, tp 4", [](M& l) { delta_nets(l).linear_key_heads = 2; }, to_017},
    {"delta-nets", "cp is 2, allowed is 1", [](M& l) { delta_nets(l).cp = 2; }, to_017},
    {"delta-nets", "2 key heads, 32 value heads, tp 4 x cp 1", [](M& l) { delta_nets(l).linear_key_heads = 2; },
     since_018},
    {"mamba-by-tp", "2 groups, 32 heads, tp 4",
     [](M& l) {
         l.state_groups = 2;
         l.state_heads = 32;
     }},
    {"mamba-by-tp", "8 groups, 30 heads, tp 4",
     [](M& l) {
         l.state_groups = 8;
         l.state_heads = 30;
     }},
    {"attention-variant", "it is gdn", [](M& l) { linear_attention(l, "gdn"); }, to_019},
    {"attention-variant", "it is gdn2", [](M& l) { linear_attention(l, "gdn2"); }, to_019},
    {"sparse-attention", "cp is 2", [](M& l) { linear_attention(l, "dsa").cp = 2; }},
    {"cpu-offloading", "32 layers of 32", [](M& l) { l.offload_layers = 32; }},
    {"cpu-offloading", "the pipeline parallel size is 4", [](M& l) { l.offload_layers = 8; }},
    {"cpu-offloading", "activations are recomputed", [](M& l) { full(one_rank(l)).offload_layers = 8; }},
    {"fused-activation", "--squared-relu is said without --no-bias-gelu-fusion",
     [](M& l) { l.linear_bias = l.squared_relu = true; }},
    // pipeline.cpp
    {"ends-or-accounts", "both are said", [](M& l) { with(l, &M::account_for_embedding).first = 8; }},
    {"layout-alone", "layers of the first or last rank are said beside it", [](M& l) { laid_out(l).first = 7; }},
    {"layout-alone", "the embedding or the loss is accounted for beside it",
     [](M& l) { laid_out(l).account_for_loss = true; }},
    {"layout-valid", "has 32 decoder layers (t), but --num-layers is 36", [](M& l) { laid_out(l).layers = 36; }},
    {"end-layers", "a rank has 0 layers", [](M& l) { l.last = 0; }},
    {"end-layers", "7 layers in 2 chunks", [](M& l) { chunks(l).first = 7; }},
    {"end-layers", "26 layers are left for 3 ranks", [](M& l) { l.first = 6; }},
    {"end-layers", "1 layers are left for 0 ranks", [](M& l) { with(with(l, &M::pp, 2), &M::first, 16).last = 15; }},
    {"end-layers", "ranks between have 9 layers in 2 chunks", [](M& l) { with(chunks(l), &M::first, 8).last = 6; }},
    {"accounted-layers", "33 layers with them on 4 ranks", [](M& l) { chunks(l).account_for_loss = true; }},
    {"accounted-layers", "9 layers of a rank with them in 2 chunks",
     [](M& l) { with(chunks(l), &M::account_for_loss).layers = 35; }},
    {"layers-built", "rank 0 has 9 layers for 2 chunks", [](M& l) { chunks(l).layers = 36; }},
    {"layers-built", "3 ranks are said, there are 4", [](M& l) { l.custom_layers = "10,11,11"; }},
    {"layers-built", "32 layers are said, there are 33", [](M& l) { custom(l).layers = 33; }},
    {"layers-built", "the pattern has 3 stages, 4 ranks", [](M& l) { l.hybrid_pattern = "M*|M*|M-"; }, since_017},
    {"layers-built", "6 letters on 4 ranks", [](M& l) { l.hybrid_pattern = "M*M*M-"; }, since_017},
    {"layers-not-negative", "stage 1 has -1", [](M& l) { with(l, &M::first, 17).last = 17; }},
    {"encoder-layers", "the first stage has 8 layers, the encoder's outputs go into 9 (a source)",
     [](M& l) { built(l).first_stage_layers = 9; }},
    {"encoder-context", "cp is 2, and nothing parts the sequences of this model: allowed is 1 (a source)",
     [](M& l) { with(built(l), &M::cp, 2).most_cp = 1; }},
    // experts.cpp
    {"expert-width", "no experts are said", [](M& l) { l.expert_ffn = 1024; }},
    {"shared-overlap", "the dispatcher is flex", [](M& l) { shared_experts(l).dispatcher = "flex"; }},
    {"experts-bias", "linear layers have a bias, and experts are split over 4 GPUs",
     [](M& l) { experts(l).linear_bias = true; }},
    {"router-score", "it is sqrtsoftplus", [](M& l) { l.router_score = "sqrtsoftplus"; }, to_017},
    {"router-bias", "the score is softmax", [](M& l) { l.expert_bias = true; }},
    {"router-bias", "the score is sqrtsoftplus", [](M& l) { with(l, &M::expert_bias).router_score = "sqrtsoftplus"; },
     to_017, 64, " + router-score"},
    {"router-pre-softmax", "each token takes one expert", [](M& l) { l.top_k = 1; }},
    {"router-groups", "the number of groups is not said", [](M& l) { router(l, {}, 2); }},
    {"router-groups", "no experts are said", [](M& l) { router(l, 4, 2); }},
    {"router-groups", "8 experts in 3 groups", [](M& l) { router(experts(l), 3, 2); }},
    {"router-groups", "5 groups of 4", [](M& l) { router(experts(l), 4, 5); }},
    {"expert-overlap", "pp is 4, and a rank has one chunk",
     [](M& l) { overlapped(l).virtual_stages_per_rank.reset(); }},
    {"expert-overlap", "ep is 1", [](M& l) { overlapped(l).ep = 1; }},
    {"expert-overlap", "the dispatcher is allgather", [](M& l) { overlapped(l).dispatcher = "allgather"; }},
    {"expert-overlap", "full recomputation is said", [](M& l) { full(overlapped(l)); }},
    {"expert-overlap", "a recomputation method is said", [](M& l) { overlapped(l).recompute_method = "uniform"; }},
    {"expert-overlap", "a number of recomputed layers is said", [](M& l) { overlapped(l).recompute_layers = 1; }},
    {"expert-overlap", "neither bf16 nor fp16 is said", [](M& l) { overlapped(l).bf16 = false; }},
    {"expert-overlap", "shared experts are overlapped, too", [](M& l) { shared_experts(overlapped(l)); }},
    {"expert-overlap", "2 layers of multi-token prediction", [](M& l) { mtp(overlapped(l), 2); }},
    {"expert-overlap", "multi-token prediction without a pipeline",
     [](M& l) { mtp(one_rank(overlapped(l)), 1).virtual_stages_per_rank.reset(); }},
    {"delayed-weight-gradients", "the experts' exchange is not overlapped", [](M& l) { l.delay_wgrad = true; }},
    {"delayed-weight-gradients", "the legacy grouped GEMM is said",
     [](M& l) { with(overlapped(l), &M::delay_wgrad).legacy_grouped_gemm = true; }},
    {"early-attention-release", "the experts' exchange is not overlapped",
     [](M& l) { l.early_attention_release = true; }},
    // recompute.cpp
    {"full-method", "no method is said", [](M& l) { full(l).recompute_method.clear(); }},
    {"full-layers", "no number of layers is said", [](M& l) { full(l).recompute_layers.reset(); }},
    {"selective-layers", "2 layers are said", [](M& l) { selective(l, "core_attn").recompute_layers = 2; }},
    {"saved-or-sequence", "both are said", [](M& l) { full(l).distribute_saved = true; }},
    {"recompute-modules", "'attention' is none", [](M& l) { selective(l, "attention"); }},
    {"recompute-modules", "'mhc' is none", [](M& l) { selective(l, "mhc"); }, to_019},
    {"recompute-modules", "'gdn_norm_out' is none", [](M& l) { selective(l, "gdn_norm_out"); }, to_018},
    {"recompute-moe-act", "the grouped GEMM is not said", [](M& l) { selective(l, "moe_act"); }},
    {"recompute-latent", "attention is not latent", [](M& l) { selective(l, "mla_up_proj"); }},
    {"recompute-shared", "they are overlapped", [](M& l) { selective(shared_experts(l), "shared_experts"); }},
    {"recompute-moe-layer", "full recomputation is said, too", [](M& l) { full(l).recompute_moe_layer = true; }},
    {"fine-offload", "whole layers are offloaded, too",
     [](M& l) { with(one_rank(l), &M::fine_offload).offload_layers = 8; }},
    {"fine-offload", "no modules are said", [](M& l) { l.fine_offload = true; }},
    {"fine-offload", "'mlp' is none", [](M& l) { with(l, &M::fine_offload).offload_modules = {"mlp"}; }},
    {"fine-offload", "attn_proj is said without core_attn",
     [](M& l) { with(l, &M::fine_offload).offload_modules = {"attn_proj"}; }},
    // step.cpp
    {"widths-by-tp", "11006 columns of the feed-forward, tp 4", [](M& l) { l.ffn = 11006; }},
    {"widths-by-tp", "1022 columns of an expert, etp 4", [](M& l) { experts(l).expert_ffn = 1022; }},
    {"widths-by-tp", "1022 columns of the shared experts, tp 4", [](M& l) { experts(l).shared_ffn = 1022; }},
    {"vocabulary-by-tp", "32001 entries, tp 4", [](M& l) { l.padded_vocab = 32001; }},
    {"global-batch", "63 samples, 1 in a microbatch x 4 replicas", [](M& l) { l.global_batch = 63; }},
    {"ramp", "2 sizes are said",
     [](M& l) {
         ramped(l, {16, 16});
     }},
    {"ramp", "64 grows by 16 to 64",
     [](M& l) {
         ramped(l, {64, 16, 1000});
     }},
    {"ramp", "16 grows by 20 to 64",
     [](M& l) {
         ramped(l, {16, 20, 1000});
     }},
    {"ramp", "16 and 6 samples, 1 in a microbatch x 4 replicas",
     [](M& l) {
         ramped(l, {16, 6, 1000});
     }},
    {"ramp", "the first batch has 2 microbatches, 4 of a chunk are in a row",
     [](M& l) {
         ramped(chunks(l), {8, 8, 1000});
     }},
    {"group-size", "it is 2, between pp 4 and 16 microbatches", [](M& l) { chunks(l).group_size = 2; }},
    {"group-size", "it is 17, between pp 4 and 16 microbatches", [](M& l) { chunks(l).group_size = 17; }},
    {"last-group", "18 microbatches in groups of 4 leave 2, pp is 4", [](M& l) { chunks(l).global_batch = 72; }},
    {"sequence-by-tp", "4094 tokens of a rank, tp 4", [](M& l) { l.seq_length = 4094; }},
    {"exchanged-heads", "8 heads and 2 query groups of a tensor parallel rank, cp 4",
     [](M& l) { with(with(with(l, &M::grouped_query), &M::groups, 8), &M::cp, 4).cp_comm = {"a2a"}; }},
    {"experts-sequence", "tp is 4", [](M& l) { experts(l).sequence_parallel = false; }},
};

// --- Megatron Core, by overrides: what the arguments correct, or refuse first under another name

const std::vector<Row<M>> of_overrides{
    {"loss-per-token", "ddp.average_in_collective is true",
     [](M& l) { with(built(l), &M::cp, 2).averages_gradients = true; }},
    {"loss-per-token", "model.calculate_per_token_loss is not true",
     [](M& l) { with(built(l), &M::cp, 2).asks_loss_per_token = true; }},
    {"groups-world", "60 GPUs are no multiple of tp 4 x pp 4 x cp 1 = 16", [](M& l) { l.etp = 1; }, "", 60},
    {"groups-chunks", "2 chunks on one rank", [](M& l) { one_rank(l).vpp = 2; }},
    {"sequence-parallel", "the tensor parallel size is 1", [](M& l) { l.tp = 1; }},
    {"config-precision", "both are said", [](M& l) { l.fp16 = true; }},
    {"layout-parses", "it has 3 stages, 4 ranks", [](M& l) { l.layout = "Et*15|t*8|t*9L"; }},
    {"layout-parses", "'image' is no kind of layer",
     [](M& l) { two_stages(l, "[[embedding,image,decoder],[decoder,loss]]"); }},
    {"layout-chunks", "it has 1 chunks of a rank, 2 are said", [](M& l) { laid_out(l).vpp = 2; }},
    {"layout-encoder", "stage 0 has one: NotImplementedError",
     [](M& l) { two_stages(l, "[[embedding,encoder,decoder],[decoder,loss]]"); }},
    {"layers-built", "34 layers on 4 ranks", [](M& l) { l.layers = 34; }},
    {"ep-experts", "ep is 2", [](M& l) { l.ep = 2; }},
    {"some-experts", "0 are said", [](M& l) { l.experts = 0; }},
    {"moe-experts-by-ep", "8 experts, ep 3", [](M& l) { experts(l).ep = 3; }, "", 48},
    {"allgather-lengths", "variable lengths are said", [](M& l) { l.variable_lengths = true; }},
    {"context-parts", "4096 tokens, 2 x 3", [](M& l) { with(l, &M::cp, 3).sequence_parallel = false; }, "", 48},
    {"one-p2p", "both are said", [](M& l) { with(with(l, &M::overlap_p2p), &M::batch_p2p).vpp = 2; }},
};

// --- torchtitan

T usual_titan() { return {.pp = 2, .cuda_graphs = false, .layers = 32, .heads = 32, .kv_heads = 8}; }

T& scheduled(T& l, const char* schedule) { return with(l, &T::schedule, schedule); }

const std::vector<Row<T>> of_torchtitan{
    {"known-settings", "training.x is none", [](T& l) { l.not_known = {"training.x"}; }},
    {"known-settings", "training.x, training.x are none", [](T& l) { l.not_known.resize(2, "training.x"); }},
    {"microbatch", "8 samples in microbatches of 3", [](T& l) { l.microbatch = 3; }},
    {"cuda-graphs", "training.disable_cuda_graphs is not said", [](T& l) { l.cuda_graphs = true; }},
    {"typechecking", "debug.spmd_typechecking is said", [](T& l) { l.typechecking = true; }},
    {"shards", "parallelism.data_parallel_shard_degree is 0", [](T& l) { l.shard = 0; }},
    {"shards", "no GPU of 64 is left for them", [](T& l) { l.tp = 64; }},
    {"world", "1 x 10 x 1 x 3 x 2 = 60, there are 64 GPUs", [](T& l) { l.tp = 3; }},
    {"expert-mesh", "32 GPUs, ep 3", [](T& l) { l.ep = 3; }},
    {"sequence", "2049 tokens, 2", [](T& l) { with(l, &T::tp, 2).seq_len = 2049; }},
    {"sequence", "2050 tokens, 4", [](T& l) { with(l, &T::cp, 2).seq_len = 2050; }},
    {"global-batch", "255 samples, 8 x 32", [](T& l) { l.global_batch = 255; }},
    {"tied-embeddings", "the model ties them: NotImplementedError", [](T& l) { l.tied_embeddings = true; }},
    {"heads", "8 key and value heads, tp 16", [](T& l) { l.tp = 16; }},
    {"heads", "33 heads, tp 2", [](T& l) { with(l, &T::tp, 2).heads = 33; }},
    {"experts", "6 experts, ep 4", [](T& l) { with(l, &T::ep, 4).experts = 6; }},
    {"schedule", "'2F2B' is none", [](T& l) { l.schedule = "2F2B"; }},
    {"stages", "34 layers with the ends' in stages of 5 make 7 stages, no multiple of pp 2",
     [](T& l) { l.layers_per_stage = 5; }},
    {"stages", "1F1B has 1 stage a rank, 2 are made", [](T& l) { l.layers_per_stage = 9; }},
    {"stages", "LoopedBFS has 2 stages a rank and more, 1 is made",
     [](T& l) { scheduled(l, "LoopedBFS").layers_per_stage = 17; }},
    {"stages", "an end has 40 layers less, stages have 36", [](T& l) { l.last_less = 40; }},
    {"stages", "8 stages of 4 layers with the ends'", [](T& l) { with(l, &T::layers, 2).pp = 8; }},
    {"stages-by-pp", "3 stages, pp 2", [](T& l) { l.modules.resize(3); }},
    {"v-stages", "ZBVZeroBubble has 3 of a rank", [](T& l) { scheduled(l, "ZBVZeroBubble").layers_per_stage = 6; }},
    {"csv", "there is no file 'no/such.csv'", [](T& l) { l.csv = "no/such.csv"; }},
    {"abstract-schedule", "PipelineScheduleSingle has no order", [](T& l) { l.schedule = "PipelineScheduleSingle"; }},
    {"empty-schedule", "PipelineScheduleMulti has an order of a CSV file alone",
     [](T& l) { l.schedule = "PipelineScheduleMulti"; }},
    {"enough-microbatches", "1 microbatches, 2 stages", [](T& l) { l.local_batch = 1; }},
    {"enough-microbatches", "3 microbatches, 4 stages", [](T& l) { scheduled(l, "DualPipeV").local_batch = 3; }},
    {"rounds", "5 microbatches in 2 rounds", [](T& l) { scheduled(l, "Interleaved1F1B").local_batch = 5; }},
    {"rounds", "5 microbatches in 2 rounds", [](T& l) { scheduled(l, "InterleavedZeroBubble").local_batch = 5; }},
};

// --- Hazards, of what breaks no rule

using Asked = HazardAsked;

const workloads::Model* vit_and_llm() {
    static const workloads::Model model = testing::small_model();
    return &model;
}

const std::vector<Row<M, Asked>> hazards_of_megatron{
    {"uneven-expert-overlap", "stages have 3|4|4|4|4|4|4|5 layers",
     [](M& l, Asked&) {
         with(overlapped(l), &M::virtual_stages_per_rank, {}).global_batch = 32;
         l.layout = "Et*3|t*4|t*4|t*4|t*4|t*4|t*4|t*5L";
     }},
    {"varied-chunks",
     "2 chunks of a rank, and samples of varied sizes; no argument says variable_seq_lengths: set it in the model's "
     "configuration",
     [](M& l, Asked& asked) {
         chunks(l).global_batch = 32;
         asked.varied = true;
     }},
    {"varied-chunks", "2 chunks of a rank, and samples of varied sizes; say model.variable_seq_lengths=true",
     [](M& l, Asked& asked) {
         with(with(l, &M::dialect, Dialect::bridge_overrides), &M::vpp, 2).global_batch = 32;
         asked.varied = true;
     }},
    {"many-transfers",
     "16 microbatches on 4 ranks with 2 chunks: 32 transfers of a rank in each direction, 16 without chunks",
     [](M& l, Asked&) { chunks(l); }},
    {"groups-ignored", "--num-query-groups 8 without --group-query-attention: every head has keys of its own",
     [](M& l, Asked&) { l.groups = 8; }},
    {"sequence-parallel-off", "--sequence-parallel with --tensor-model-parallel-size 1",
     [](M& l, Asked&) { l.tp = 1; }},
    {"encoder-in-front", "vit lies on stage 0 beside as many layers as the others have",
     [](M&, Asked& asked) { asked.model = vit_and_llm(); }},
    {"max-connections", "tp 4, cp 1 on h100; the launch must set it", [](M& l, Asked&) { l.max_connections.clear(); }},
};

const std::vector<Row<T, Asked>> hazards_of_torchtitan{
    {"receive-buffers", "2 x 8 microbatches x 64.00 MiB = 1.00 GiB of a stage between others",
     [](T& l, Asked& asked) {
         with(l, &T::pp, 4).seq_len = 16384;
         asked.model = vit_and_llm();
     }},
    {"module-names", "norm is 0 times, layers.0 is 2 times, layers.1 is 0 times, and 1 more",
     [](T& l, Asked&) {
         with(l, &T::layers, 2).modules = {{"tok_embeddings", "layers.0"}, {"layers.0", "lm_head", "rope"}};
     }},
    {"stages-left-out", "1F1B with 4 stages on 2 ranks",
     [](T& l, Asked&) {
         with(l, &T::layers, 2).modules = {{"tok_embeddings"}, {"layers.0"}, {"layers.1"}, {"norm", "lm_head"}};
     }},
    {"early-receives", "2 ranks", [](T& l, Asked&) { l.schedule = "Interleaved1F1B"; }},
    {"varied-shapes", "samples of varied sizes", [](T&, Asked& asked) { asked.varied = true; }},
};

// "ID: WHY" of what has that identifier, then " + ID" of each other.
template <class Found>
std::string text_of(const std::vector<Found>& found, std::string_view id) {
    std::string own, others;
    for (const Found& one : found)
        if (one.id == id)
            own += fmt::format("{}: {}", id, one.why);
        else
            others += fmt::format(" + {}", one.id);
    return own + others;
}

template <class Launch>
void check_rules(const std::vector<Row<Launch>>& rows, const Launch& base, std::string_view name) {
    for (const Framework& framework : launch::frameworks()) {
        if (framework.name != name) continue;
        CHECK(text_of(broken_rules(base, 64, framework), "") == "");
        for (const auto& row : rows) {
            CAPTURE(framework.text());
            Launch launch = base;
            row.change(launch);
            const std::string own = fmt::format("{}: {}", row.id, row.why);
            const std::string found = text_of(broken_rules(launch, row.gpus, framework), row.id);
            if (row.version.empty() || is_in(row.version, framework.version))
                CHECK(found == fmt::format("{}{}", own, row.beside));
            else
                CHECK(found.substr(0, own.size()) != own);
        }
    }
}

template <class Launch>
void check_hazards(const std::vector<Row<Launch, Asked>>& rows, const Launch& base, const Framework& framework) {
    const Asked usual_asked{.gpus = 64, .device = "h100"};
    CHECK(text_of(hazards_of(base, usual_asked), "") == "");
    for (const auto& row : rows) {
        Launch launch = base;
        Asked asked = usual_asked;
        row.change(launch, asked);
        CAPTURE(row.id);
        CHECK(text_of(broken_rules(launch, asked.gpus, framework), "") == "");
        CHECK(text_of(hazards_of(launch, asked), row.id) == fmt::format("{}: {}{}", row.id, row.why, row.beside));
    }
}

template <class Rows>
bool has(const Rows& rows, std::string_view id, std::string_view version) {
    const std::string_view first = version.substr(0, version.find('|'));
    return std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
        return row.id == id && (version.empty() || row.version.empty() || is_in(row.version, first));
    });
}

}  // namespace

TEST_CASE("each change of a launch breaks its rule alone, says so, and breaks it in no version that has it not") {
    check_rules(of_arguments, usual(Dialect::megatron_arguments), "megatron-core");
    check_rules(of_overrides, usual(Dialect::bridge_overrides), "megatron-core");
    check_rules(of_torchtitan, usual_titan(), "torchtitan");
}

TEST_CASE("what several rows set before they break a rule breaks none by itself") {
    for (const char* megatron : {"megatron-core:0.16.1", "megatron-core:0.18.2", "megatron-core:0.20.0"})
        for (M& (*const part)(M&) : {one_rank, laid_out, chunks, chunks_of_4, custom, delta_nets, experts,
                                     shared_experts, overlapped, full, torch_fsdp2}) {
            M l = usual(Dialect::megatron_arguments);
            CHECK(text_of(broken_rules(part(l), 64, framework_called(megatron)), "") == "");
        }
}

TEST_CASE("each hazard comes with what causes it alone, of a launch that breaks no rule") {
    check_hazards(hazards_of_megatron, usual(Dialect::megatron_arguments), framework_called("megatron-core"));
    check_hazards(hazards_of_torchtitan, usual_titan(), framework_called("torchtitan"));
}

TEST_CASE("every rule and every hazard has a row") {
    for (const RuleText& rule : rule_texts()) {
        if (framework_called(rule.framework).dialect == Dialect::sharded_settings) continue;  // sharded_test.cpp
        if (framework_called(rule.framework).dialect == Dialect::grid_variables) continue;    // mimo_grids_test.cpp
        CAPTURE(rule.id);
        CAPTURE(rule.versions);
        CHECK((rule.framework == "torchtitan"
                   ? has(of_torchtitan, rule.id, rule.versions)
                   : has(of_arguments, rule.id, rule.versions) || has(of_overrides, rule.id, rule.versions)));
    }
    for (const HazardText& hazard : hazard_texts()) {
        CAPTURE(hazard.id);
        CHECK((hazard.framework == "torchtitan" ? has(hazards_of_torchtitan, hazard.id, "")
                                                : has(hazards_of_megatron, hazard.id, "")));
    }
}
