// A sharded trainer's launch as the planner emulates it.
//
// Sources  DeepSpeed 0.19.6 (edaa7221) runtime/zero/stage_1_and_2.py, stage3.py, engine.py get_data_types();
//          accelerate 16cb6eb8 accelerator.py, utils/fsdp_utils.py (trained weights are cast to 32 bits with mixed
//          precision); transformers trainer.py (no_sync between microbatches), models/llama/modeling_llama.py.
#include "launch/fit/run_parts.hpp"
#include "launch/fit/tuning.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/partition/said_layers.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace pipeweaver::launch {

namespace in_sharded_runs {

namespace {

using emulator::ContextParallel;
using emulator::Recipe;
using emulator::Recompute;
using emulator::StateBytes;
using frameworks::Effect;
using Said = frameworks::ShardedLaunch;

constexpr std::int64_t half_bytes = 2, whole_bytes = 4;

bool is_off_gpu(const std::string& device) { return !device.empty() && device != "none"; }

bool is_half(const std::string& dtype) {
    return dtype == "bfloat16" || dtype == "float16" || dtype == "bf16" || dtype == "fp16";
}

const std::string& optimizer_of(const ShardedLaunch& l) {
    return l.file_optimizer.empty() ? l.optimizer : l.file_optimizer;
}

// Of two moments, in the precision of the weight that they are of, and masters that the optimizer has itself.
std::int64_t moments_of(const ShardedLaunch& l, bool of_half, Run& run) {
    constexpr std::int64_t usual = 8;
    const auto known = frameworks::states_of(optimizer_of(l));
    if (!known)
        run.doubts.push_back({Effect::either, fmt::format("states of '{}' are counted as Adam's", optimizer_of(l)),
                              written(l, &Said::optimizer)});
    const auto [bytes, are_wide] = known.value_or(frameworks::OptimizerStates{usual});
    const std::int64_t moments = of_half && bytes >= whole_bytes && !are_wide ? bytes / 2 : bytes;
    const std::int64_t masters = l.keeps_remainders ? half_bytes : whole_bytes;
    return moments + (of_half && l.keeps_masters ? masters : 0);
}

// 16-bit weights and gradients with 32-bit masters and states, or all in 32 bits.
StateBytes deepspeed_states(const ShardedLaunch& l, Run& run) {
    const bool half = l.said_bf16.value_or(l.bf16) || l.said_fp16.value_or(l.fp16);
    const std::int64_t moments = moments_of(l, false, run);
    if (!half) return {whole_bytes, whole_bytes, moments};
    const bool wide_gradients = l.gradient_dtype == "fp32" || l.gradient_dtype == "float32";
    return {half_bytes, wide_gradients ? whole_bytes : half_bytes, whole_bytes + moments};
}

// Weights that are cast to 32 bits for training lie in 16 where they are at work, as frozen ones do.
StateBytes cast_states(const ShardedLaunch& l, Run& run) {
    return {half_bytes, whole_bytes, half_bytes + moments_of(l, false, run)};
}

// LLaMA-Factory ff6d4d12 v1/plugins/trainer_plugins/distributed/fsdp2.py: FSDP2 alone mixes precisions, and one GPU
// goes without it.
bool works_in_whole(const ShardedLaunch& l, std::int64_t gpus) {
    return l.casts_whole && l.dtype == "float32" && !(l.is_fsdp() && l.bf16 && gpus > 1);
}

StateBytes torch_states(const ShardedLaunch& l, std::int64_t gpus, Run& run) {
    if (works_in_whole(l, gpus)) return {whole_bytes, whole_bytes, moments_of(l, false, run)};
    const bool masters = l.masters && !l.all_16_bits;
    const bool half = l.all_16_bits || is_half(l.dtype);
    if (!masters && !half && l.dtype.empty())
        run.doubts.push_back({Effect::less, "weights of 32 bits, which a script may load in 16",
                              written(l, &Said::dtype).empty() ? "torch_dtype" : written(l, &Said::dtype)});
    if (masters || (l.is_fsdp() && l.dtype == "float32")) return cast_states(l, run);
    if (half) return {half_bytes, half_bytes, moments_of(l, true, run)};
    return {whole_bytes, whole_bytes, moments_of(l, false, run)};
}

// Gradients that are added up whole: DistributedDataParallel's buckets, and FSDP's between microbatches.
std::int64_t whole_gradients(const ShardedLaunch& l, std::int64_t gpus, const StateBytes& state) {
    if (l.is_deepspeed() || gpus == 1) return 0;
    if (!l.is_fsdp()) return state.gradient;
    return l.microbatches(gpus) > 1 || l.parts() > 1 ? l.deferred.value_or(0) : 0;
}

void put_offload(const ShardedLaunch& l, StateBytes& state, Run& run) {
    const bool weights = is_off_gpu(l.offload_weights);
    if (is_off_gpu(l.offload_optimizer) || (weights && l.is_fsdp())) {
        state.optimizer = 0;
        if (l.is_fsdp() || l.zero_stage() < 3) state.gradient = 0;
    }
    if (!weights) return;
    run.doubts.push_back({Effect::less, "weights on the host are counted on the GPU",
                          l.is_deepspeed() ? "deepspeed.zero_optimization.offload_param" : "--fsdp"});
}

// Of pairs, and of answers that are wanted or not, logits themselves are needed (LLaMA-Factory ff6d4d12
// model/loader.py, ms-swift 3602360a rlhf_trainers/dpo_trainer.py and kto_trainer.py; its grpo_trainer.py fuses).
bool fuses_loss(const ShardedLaunch& l) {
    const auto* const kind = frameworks::training_stage(l.stage);
    return l.fused_loss && (kind == nullptr || l.fuses_pairs || (kind->generates && !kind->distils));
}

// A head of a few classes in place of the vocabulary's (ms-swift 3602360a model/patcher.py).
bool has_classes(const ShardedLaunch& l) { return l.task == "seq_cls"; }

// What eager PyTorch keeps beside the emulation's kernels, in values of 2 bytes: of each of two norms a 32-bit input
// and a 32-bit result, and of rotated queries and keys 2 copies. Logits have 16 bits, a 32-bit copy, its log-softmax
// and the gradients of both; without the copy all of these have 16.
void put_kept(const ShardedLaunch& l, Recipe& recipe) {
    constexpr std::int64_t norms_and_rotations = 10, eager_logit = 16, narrow_logit = 8;
    recipe.kept.masks = norms_and_rotations;
    recipe.kept.logit = fuses_loss(l) || has_classes(l) ? 0 : l.upcasts_logits ? eager_logit : narrow_logit;
    recipe.kept.fused_gate = l.fused_loss;
    recipe.execution.fused_attention = l.attention != "eager";
}

Recipe sharded_recipe(const ShardedLaunch& l, const FitAsked& asked, Run& run) {
    Recipe recipe = emulator::find_recipe(asked.recipe.empty() ? "torch-fsdp2-eager" : asked.recipe);
    if (asked.recipe.empty() && !l.is_fsdp()) recipe.name = l.is_deepspeed() ? "deepspeed" : "torch-replicas";
    recipe.zero = l.leaves_alone && asked.gpus == 1 ? 0 : l.zero_stage();
    emulator::put_states(recipe, l.is_deepspeed() ? deepspeed_states(l, run) : torch_states(l, asked.gpus, run));
    recipe.state.whole = whole_gradients(l, asked.gpus, recipe.state);
    recipe.state.apart = l.is_fsdp() ? recipe.state.weight : 0;
    recipe.state.bare = l.leaves_alone && l.is_fsdp();
    if (recipe.state.weight == whole_bytes) recipe.execution.products = costdb::Dtype::fp32;
    put_offload(l, recipe.state, run);
    put_kept(l, recipe);
    recipe.execution.sequence_parallel = l.splits_norms || l.tp == 1;
    return recipe;
}

Recompute sharded_recompute(const ShardedLaunch& l, Run& run) {
    if (!l.recompute.value_or(false)) return Recompute::none;
    if (!l.recompute_selective) return Recompute::full;
    assume(run, {Effect::either, "selective checkpointing of norms and activation functions"},
           "selective activation checkpointing is counted as of norms and activation functions");
    return Recompute::selective;
}

// PyTorch's AdamW without fused kernels works out the root of a second moment for all parameters together.
bool makes_roots(const std::string& optimizer) {
    return optimizer == "adamw_torch" || optimizer.starts_with("torch.optim.Adam");
}

Besides besides_of(const ShardedLaunch& l, const FitAsked& asked, const StateBytes& state) {
    constexpr std::int64_t usual_bucket = 500'000'000, usual_group = 1'000'000'000, usual_live = 1'000'000'000;
    Besides besides;
    besides.copies = l.is_fsdp() ? l.replicate.value_or(1) : 1;
    besides.shards = asked.gpus / (l.tp * l.pp);
    besides.zero = l.zero_stage();
    besides.state = state.optimizer;
    const bool half_states = state.optimizer == whole_bytes;  // two moments of 16 bits
    if (makes_roots(optimizer_of(l)) && state.optimizer > 0) besides.update = half_states ? half_bytes : whole_bytes;
    if (!l.is_deepspeed() || besides.zero == 0) return besides;
    const std::int64_t bucket = l.reduce_bucket.value_or(besides.zero == 3 ? l.hidden * l.hidden : usual_bucket);
    besides.buckets += Bytes{(l.two_buckets ? 2 : 1) * std::max(state.gradient, half_bytes) * bucket};
    if (besides.zero == 3) besides.gathered = Bytes{half_bytes * l.live_weights.value_or(usual_live)};
    if (state.optimizer == 0 || state.weight == whole_bytes) return besides;
    besides.update += whole_bytes;  // gradients in 32 bits, of a group of parameters after the other with stage 3
    if (besides.zero == 3) besides.most_update = Bytes{besides.update * l.sub_group.value_or(usual_group)};
    return besides;
}

std::int64_t parameters_of(const workloads::Model& model) {
    std::int64_t sum = 0;
    for (const workloads::Module& module : model.modules) sum += all_parameters(module.architecture);
    for (const workloads::ModelEdge& edge : model.edges) sum += projector_parameters(edge);
    return sum;
}

bool has_reference(const ShardedLaunch& l) {
    static constexpr std::array<std::string_view, 2> without{"orpo", "simpo"};  // of LLaMA-Factory's losses
    const auto* const kind = frameworks::training_stage(l.stage);
    if (kind == nullptr || !kind->refers || (l.has_adapters() && !l.copies_always)) return false;
    const bool is_off = kind->generates && !l.reference.empty() && parse_number("--beta", l.reference, 0, 1e6) == 0;
    return !is_off && std::find(without.begin(), without.end(), l.preference) == without.end();
}

// The model as it was lies on every GPU whole, unless weights are in shards.
Bytes reference_of(const ShardedLaunch& l, const workloads::Model& model, std::int64_t gpus) {
    if (!has_reference(l)) return {};
    const std::int64_t bytes = l.dtype == "float32" ? whole_bytes : half_bytes;
    const std::int64_t shards = l.zero_stage() == 3 ? gpus / l.replicate.value_or(1) : l.tp;
    return {(bytes * parameters_of(model) + shards - 1) / shards};
}

// LLaMA-Factory ff6d4d12 v1/core/model_engine.py: every GPU loads the model whole, and has it in 32 bits where it is
// trained whole, before it is shared out; shards are loaded by DeepSpeed's stage 3 alone.
void doubt_loading(const ShardedLaunch& l, const FitAsked& asked, const workloads::Model& model, Run& run) {
    if (l.start != "init_on_default" || (l.is_deepspeed() && l.zero_stage() == 3)) return;
    const Bytes loaded{(l.tuner == "full" ? whole_bytes : half_bytes) * parameters_of(model)};
    const Bytes memory = workloads::device(workloads::find_cluster(asked.cluster).device).memory;
    if (loaded > memory)
        run.doubts.push_back({Effect::more, "every GPU loads the whole model first, which is more than it has",
                              written(l, &Said::start)});
}

// What lies on the host while answers are generated. DeepSpeed's flat buffers stay: of 16-bit weights without stage 3,
// of 32-bit masters, and of stage 3's gradients (ms-swift 3602360a rlhf_trainers/rollout_mixin.py offload_model,
// offload_optimizer; DeepSpeed stage_1_and_2.py bit16_groups_flat, stage3.py fp32_partitioned_groups_flat,
// grad_partitions_flat_buffer).
void put_freed(const ShardedLaunch& l, Besides& besides) {
    const bool lie_flat = l.is_deepspeed() && l.zero_stage() < 3 && !l.has_adapters();
    besides.frees_weights = l.frees_weights && !lie_flat;
    besides.frees_reference = l.frees_weights;
    besides.frees_states = l.frees_states;
    besides.masters = l.is_deepspeed() && besides.state > whole_bytes ? whole_bytes : 0;
    besides.keeps_gradients = l.is_deepspeed() && l.zero_stage() == 3;
}

// An engine on the same GPUs, and what it does not find there.
void put_engine(const ShardedLaunch& l, const FitAsked& asked, Run& run) {
    const auto* const kind = frameworks::training_stage(l.stage);
    if (kind == nullptr || !kind->generates) return;
    if (!l.by_engine) run.doubts.push_back({Effect::more, "answers that the trainer generates itself", "--use_vllm"});
    if (!l.by_engine || l.engine == "server") return;
    put_freed(l, run.besides);
    launch::put_engine({written(l, &Said::engine_share), l.engine_share, l.engine_tp, l.sleep}, asked, run);
}

// Stages with other models, or of whose samples it is not known how many are joined.
void put_stage_doubts(const ShardedLaunch& l, Run& run) {
    const auto* const kind = frameworks::training_stage(l.stage);
    if (l.stage.empty() || l.stage == "sft" || l.stage == "pt") return;
    const bool are_joined = kind != nullptr && kind->rows > 1 && l.packs.value_or(false);
    if (are_joined && l.joins_pairs)
        run.doubts.push_back(
            {Effect::less, "pairs that are joined are counted as the longest", written(l, &Said::packs), true});
    if (kind == nullptr || kind->distils || (are_joined && !l.joins_pairs))
        run.doubts.push_back(
            {Effect::more, fmt::format("what '{}' holds beside the model", l.stage), written(l, &Said::stage)});
    if (l.stage == "rm")
        run.doubts.push_back({Effect::less, "logits, in place of one value", written(l, &Said::stage)});
}

// What the emulation has no word for. Tasks but these have another head, and several sequences a sample (ms-swift
// 3602360a template/base.py _embedding_encode, _reranker_encode).
void put_other_doubts(const ShardedLaunch& l, Run& run) {
    put_stage_doubts(l, run);
    if (!l.task.empty() && l.task != "causal_lm" && !has_classes(l))
        run.doubts.push_back(
            {Effect::either, fmt::format("samples and head of the task '{}'", l.task), written(l, &Said::task)});
    if (l.is_deepspeed() && l.zero_stage() == 0)
        run.doubts.push_back({Effect::less, "32-bit states, which DeepSpeed may share out without ZeRO, too",
                              "deepspeed.zero_optimization.stage"});
    if (l.is_fsdp() && l.fsdp.find("hybrid") != std::string::npos)
        run.doubts.push_back({Effect::more, "shards among the GPUs of a node alone", "--fsdp"});
    if (l.strategy.find("megatron") != std::string::npos)
        run.doubts.push_back({Effect::either, "Megatron's FSDP is counted as FSDP2", written(l, &Said::strategy)});
}

// The stages that the trainer makes of the layers, in its order.
void put_pipeline(const ShardedLaunch& l, planner::EmulateOptions& options) {
    options.layers = partition::text_of({{"", built_layers(l).layers}});
    const auto schedule = l.pp == 1 ? std::nullopt : titan_schedule(l.schedule);
    options.policy = !schedule || schedule->policy.empty() ? "1f1b" : std::string(schedule->policy);
    if (l.pp > 1) options.target = "torch-csv";
}

// Ulysses shares heads out, a ring positions. The first stage keeps the scores of about as many layers as there are,
// others fewer.
void put_scores(const ShardedLaunch& l, const workloads::Model& model, Run& run) {
    if (l.attention != "eager") return;
    const auto& network = model.modules[model.backbone()].architecture;
    const bool again = l.recompute.value_or(false) && !l.recompute_selective;
    const std::string says = written(l, &Said::attention);
    run.besides.scores = scores_of(network, {.ranks = l.tp * l.sequence,
                                             .tokens = model.microbatch_tokens / l.ring,
                                             .length = model.microbatch_tokens / l.sequences(),
                                             .layers = again ? 1 : network.layers});
    if (l.pp > 1 && !again) run.doubts.push_back({Effect::either, "scores of several microbatches", says});
    if (model.modules.size() > 1) run.doubts.push_back({Effect::more, "scores of encoders", says});
}

// transformers 4.49 models/qwen2_vl and models/qwen2_5_vl (no more 4.52.4) hand PyTorch a mask, and queries without a
// batch, of which it works out all scores of a microbatch's patches at once: in 32 bits products, softmax and that
// without masked rows, and which are masked (native/transformers/attention.cpp _scaled_dot_product_attention_math).
// Trained layers hold them for their backward, which has gradients of the first three.
void doubt_tower_scores(const ShardedLaunch& l, const workloads::Model& model, std::int64_t of_items, Run& run) {
    constexpr std::array<std::string_view, 2> families{"qwen2_vl", "qwen2_5_vl"};
    constexpr std::int64_t of_score = 3 * 4 + 1, of_gradients = 3 * 4;
    const bool is_theirs = std::find(families.begin(), families.end(), model.family) != families.end();
    const bool is_newer = l.trainer->entry == "NeMo AutoModel";  // asks for transformers 5
    const std::string says = written(l, &Said::attention);
    if (!is_theirs || is_newer || says.empty() || l.attention == "flash" || l.attention == "eager") return;
    const std::int64_t patches = of_items * model.image.merge * model.image.merge;
    if (patches == 0) return;
    const bool recomputes = l.recompute.value_or(false) && !l.recompute_selective;
    for (const workloads::Module& module : model.modules) {
        if (module.architecture.kind != workloads::ModuleKind::vision_encoder) continue;
        const std::int64_t layers = module.trains() && !recomputes ? module.architecture.layers : 1;
        const std::int64_t held = of_score * layers + (module.trains() ? of_gradients : 0);
        run.doubts.push_back({Effect::more, "scores of an encoder, which transformers before 4.52 holds", says, true,
                              Bytes{module.architecture.heads * patches * patches * held}});
    }
}

// Without packing a microbatch is so many samples, padded to the longest. Returns how many positions of one are of
// items, at most.
std::int64_t hold_samples(const ShardedLaunch& l, const FitAsked& asked, workloads::Model& model, Run& run) {
    if (asked.dataset.empty() && asked.batch.empty()) return model.microbatch_tokens;
    const auto request = run.options.request(static_cast<std::uint64_t>(asked.seed), on_threads(1));
    std::int64_t longest = 0, of_items = 0;
    for (const workloads::Sample& sample : request.batch.samples) {
        longest = std::max(longest, sample.tokens());
        of_items = std::max(of_items, sample.tokens() - sample.text_tokens);
    }
    if (l.packs.value_or(false)) return of_items > 0 ? model.microbatch_tokens : 0;
    if (l.padded_length) longest = *l.padded_length;
    model.microbatch_tokens = std::min(longest, *l.length) * l.sequences();
    put_model(run.options.workload, model);
    return of_items * l.sequences();
}

}  // namespace

}  // namespace in_sharded_runs

// Images are scaled down to so many pixels, and then resized by the model's rule: filled up again, or within the square
// of its longest side.
workloads::Model with_image_sizes(const ShardedLaunch& l, workloads::Model model) {
    workloads::ImageRule& image = model.image;
    if (!l.image_pixels || *l.image_pixels == 0 || image.fixed_pixels > 0) return model;
    if (image.resize == workloads::ImageResize::fill) return model;
    if (image.resize == workloads::ImageResize::side) image.resize = workloads::ImageResize::round;
    image.longest_side = 0;
    const std::int64_t side = image.patch * image.merge;
    const std::int64_t tokens = std::max<std::int64_t>(image.min_tokens, *l.image_pixels / (side * side));
    image.max_tokens = image.max_tokens == 0 ? tokens : std::min(image.max_tokens, tokens);
    return model;
}

std::optional<NotEmulated> why_not_emulated(const ShardedLaunch&, const workloads::Model&) { return std::nullopt; }

Run run_of(const ShardedLaunch& l, const FitAsked& asked) {
    using namespace in_sharded_runs;
    Run run;
    run.target = "torchtitan";
    planner::EmulateOptions& options = run.options;
    workloads::Model model = with_image_sizes(l, asked.model);
    model.microbatch_tokens = *l.tokens();
    if (has_classes(l)) model.modules[model.backbone()].architecture.tied_embeddings = true;
    put_tuning(tuning_of(l), model, run.doubts);
    put_other_doubts(l, run);
    doubt_loading(l, asked, model, run);
    leave_reference_to(l.stage, model, run);
    put_asked(options.workload, asked, model);
    put_degrees(options.workload, {.tp = l.tp,
                                   .pp = l.pp,
                                   .dp = l.dp(asked.gpus),
                                   .cp = l.sequence * l.ring,
                                   .ep = l.ep,
                                   .context = l.ring > 1 ? ContextParallel::ring : ContextParallel::all_to_all});
    put_pipeline(l, options);
    const Recipe recipe = sharded_recipe(l, asked, run);
    run.besides = besides_of(l, asked, recipe.state);
    run.besides.reference = reference_of(l, model, asked.gpus);
    say_copies(l.ep, run);
    put_engine(l, asked, run);
    put_run_recipe(options.workload, recipe);
    options.recompute = planner::StepRecompute{.everywhere = sharded_recompute(l, run)};
    options.any_memory = true;
    put_samples(asked, *l.length, l.parts(), run);
    const std::int64_t of_items = hold_samples(l, asked, model, run);
    put_scores(l, model, run);
    doubt_tower_scores(l, model, of_items, run);
    run.says_tokens = product_of(written(l, &Said::length), l.sequences(),
                                 l.pp > 1 ? written(l, &Said::pipeline_batch) : written(l, &Said::micro_batch));
    return run;
}

}  // namespace pipeweaver::launch
