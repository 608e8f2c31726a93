#include "launch/fit/run_parts.hpp"
#include "launch/fit/tuning.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/frameworks/own_blocks.hpp"
#include "pipeweaver/frameworks/sharded.hpp"
#include "pipeweaver/launch/fit.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/partition/said_layers.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

namespace pipeweaver::launch {

bool keeps_scores(const MegatronLaunch& l) {
    return l.attention.ends_with("unfused") || l.attention.ends_with("local");
}

void assume(Run& run, Doubt doubt, std::string sentence) {
    run.doubts.push_back(std::move(doubt));
    run.assumed.push_back(std::move(sentence));
}

void leave_reference_to(std::string_view stage, workloads::Model& model, Run& run) {
    if (!model.reference || frameworks::training_stage(stage) == nullptr) return;
    model.reference = false;
    run.assumed.push_back(
        fmt::format("'{}' says whether a copy lies beside the model: that of the model's file is not counted", stage));
}

void put_model(planner::WorkloadOptions& workload, const workloads::Model& model) {
    workload.model = model.name;
    workload.model_read = std::make_shared<const workloads::Model>(workloads::as_read(model, "--model"));
}

void put_degrees(planner::WorkloadOptions& workload, const emulator::Layout& layout) {
    workload.tp.number = layout.tp;
    workload.pp.number = layout.pp;
    workload.cp.number = layout.cp;
    workload.dp.number = layout.dp;
    workload.ep.number = layout.ep;
    if (layout.cp > 1 && layout.context == emulator::ContextParallel::ring) workload.context = "ring";
}

void put_run_recipe(planner::WorkloadOptions& workload, emulator::Recipe recipe) {
    if (recipe.zero >= 2 && recipe.bucket > Bytes{})
        fail(ErrorKind::input, "--recipe: {} reduces gradients in buckets, which goes with zero 0 and 1, not {}",
             recipe.name, recipe.zero);
    workload.recipe_read = std::make_shared<const emulator::Recipe>(std::move(recipe));
}

void put_asked(planner::WorkloadOptions& workload, const FitAsked& asked, const workloads::Model& model) {
    put_model(workload, model);
    workload.cluster = asked.cluster;
    workload.anchor_read = asked.anchor;
    if (!model.built || model.built->source.empty()) return;
    workload.encoders = model.built->framework;
    workload.encoder_recompute = workloads::name_of(model.built->recompute);
    workload.deal_images = model.built->lies.context == workloads::OnContextRanks::dealt;
}

namespace {

// Of text, or of the data set that is asked for.
std::string dataset_of(const FitAsked& asked, std::int64_t sequence) {
    if (!asked.dataset.empty()) return asked.dataset;
    if (is_multimodal(asked.model) && !asked.text_alone)
        fail(ErrorKind::input,
             "--dataset, --batch: one is needed: {} takes more than text; `pipeweaver list datasets` names the known "
             "data sets",
             asked.model.name);
    return fmt::format("constant-{}", sequence);
}

}  // namespace

void put_samples(const FitAsked& asked, std::int64_t sequence, std::int64_t microbatches, Run& run) {
    planner::WorkloadOptions& workload = run.options.workload;
    workload.batch = asked.batch;
    if (!asked.samples.empty()) workload.batch_text = asked.samples;
    run.options.assigned = asked.assigned;
    if (asked.assigned.empty()) {
        run.options.batch.assignment = "in-turn";
        workload.equal_microbatches = planner::target(run.target).equal_microbatches;
    }
    if (asked.batch.empty()) {
        workload.dataset = dataset_of(asked, sequence);
        workload.microbatches = microbatches;
    }
    // Of other data sets samples are cut to what a microbatch holds; require_held() refuses these.
    if (!asked.batch.empty() || workload.dataset.starts_with("constant-"))
        workload.too_long = workloads::name_of(workloads::TooLong::own);
}

std::string product_of(const std::string& sequence, std::int64_t samples, std::string_view count) {
    return samples > 1 ? fmt::format("{} times {}", sequence, count) : sequence;
}

namespace {

using emulator::ContextParallel;
using emulator::Recipe;
using emulator::Recompute;
using frameworks::Effect;
using planner::StepRecompute;

// Memory is the same with more of them: the first rank holds its most after its warm-up.
constexpr std::int64_t enough_rounds = 4;

// The sample that is longer than a microbatch, which holds what the launch says, not what a model file or option does.
std::optional<std::string> why_not_held(const Run& run, const planner::EmulationRequest& of) {
    workloads::Model model = of.job.setup->model;
    model.too_long = workloads::TooLong::usual;
    for (const workloads::Sample& sample : of.batch.samples) {
        if (sample.tokens() > model.microbatch_tokens)
            return fmt::format("{}: sample '{}' has {} tokens, a microbatch of the launch holds {} ({})", of.batch.name,
                               sample.id, sample.tokens(), model.microbatch_tokens, run.says_tokens);
        if (auto why = workloads::why_not_fit(sample, model)) return why;
    }
    return std::nullopt;
}

// How samples became microbatches; empty: each is one.
std::string packing_of(const Run& run, const planner::EmulationRequest& of) {
    const std::size_t samples = of.batch.samples.size(), microbatches = of.batch.microbatches.size();
    if (!run.options.assigned.empty())
        return fmt::format("{} samples are in {} microbatches and on the replicas as {} says", samples, microbatches,
                           run.options.assigned);
    const bool are_ours = run.options.workload.batch_text.has_value();
    if (samples == microbatches || are_ours || run.options.workload.dataset.starts_with("constant-")) return {};
    return fmt::format(
        "{} samples are packed into {} microbatches as they come and handed to the replicas in turn{}, "
        "as *now* of `plan --target {}` has them{}",
        samples, microbatches, of.job.equal_microbatches ? ", equally many to each" : "",
        planner::target(run.target).option,
        run.options.workload.batch.empty() ? "" : "; --assigned takes a plan's assignment of them");
}

// Encoders lie on the first stage, generators on the last.
std::optional<std::string> empty_stage(const BuiltLayers& built, const workloads::Model& model) {
    const std::size_t last = built.layers.size() - 1;
    for (std::size_t s = 0; s <= last; ++s) {
        const bool module_beside =
            (s == 0 && model.backbone() > 0) || (s == last && model.backbone() + 1 < model.modules.size());
        if (built.layers[s] + built.mtp[s] == 0 && !module_beside)
            return fmt::format("stage {} has no layer, and stages of the embedding or the loss alone are not emulated",
                               s);
    }
    return std::nullopt;
}

// Without a pipeline all are on one.
BuiltLayers built_of(const TitanLaunch& l, const workloads::Model& model) {
    return l.pp > 1 ? built_layers(l) : BuiltLayers{{model.modules[model.backbone()].architecture.layers}, {0}, {}};
}

// Whose multi-token prediction would be a pattern of its own.
bool has_blocks_of_one_part(const workloads::Architecture& a) {
    return a.layer_pattern.find_first_not_of("LFP") != std::string::npos;
}

// Of Nemotron 3 a block of multi-token prediction is attention and experts, a layer each (mtp_hybrid_override_pattern
// "*E"; NVIDIA-NeMo/Automodel 0.5.0 components/models/nemotron_v3/mtp.py). Others predict with blocks as the last one
// is (core_v0.16.1 gpt_layer_specs.py get_gpt_mtp_block_spec).
constexpr std::string_view block_of_nemotron = "*E";

bool predicts_as_nemotron(const workloads::Architecture& a) {
    return has_blocks_of_one_part(a) && a.layer_pattern.find('*') != std::string::npos &&
           a.layer_pattern.find('E') != std::string::npos;
}

// What a block of multi-token prediction counts as of layers.
std::int64_t layers_of_predicted(const workloads::Architecture& a) {
    return has_blocks_of_one_part(a) ? std::ssize(block_of_nemotron) : 1;
}

// Pre: with blocks of one part each it predicts as Nemotron does.
void add_predicted(std::int64_t mtp, workloads::Architecture& a) {
    const std::int64_t more = mtp * layers_of_predicted(a);
    const bool of_one_part = has_blocks_of_one_part(a), last_has_experts = a.moe && is_moe_layer(a, a.layers - 1);
    if (!a.layer_pattern.empty()) {
        const std::string once = a.layer_pattern;
        while (std::ssize(a.layer_pattern) < a.layers) a.layer_pattern += once;
        a.layer_pattern.resize(static_cast<std::size_t>(a.layers));
        const std::string block =
            of_one_part ? std::string(block_of_nemotron) : a.layer_pattern.substr(a.layer_pattern.size() - 1);
        for (std::int64_t i = 0; i < mtp; ++i) a.layer_pattern += block;
    }
    if (a.moe && (of_one_part || (last_has_experts && a.moe->every == 1))) a.moe->moe_layers += mtp;
    a.layers += more;
    if (of_one_part && a.moe) a.moe->first_layer = a.layers - a.moe->moe_layers;  // which they are the letters say
    a.predicted_layers = mtp;
}

// Layers of the backbone by stage as --layers takes them, multi-token prediction among them, which `predicts` says.
std::string layers_text(BuiltLayers built, const std::string& predicts, workloads::Model& model, Run& run) {
    const std::int64_t mtp = std::accumulate(built.mtp.begin(), built.mtp.end(), std::int64_t{0});
    workloads::Architecture& backbone = model.modules[model.backbone()].architecture;
    const std::int64_t each = layers_of_predicted(backbone);
    for (std::size_t s = 0; s < built.layers.size(); ++s) built.layers[s] += each * built.mtp[s];
    if (mtp > 0) {
        if (each > 1 && mtp > 1)
            run.doubts.push_back({Effect::less, "weights of several predictions, which may be the same", predicts});
        add_predicted(mtp, backbone);
        run.assumed.push_back(fmt::format(
            "{} {} of multi-token prediction on the last stage: projection, logits{} of its own are counted", mtp,
            mtp == 1 ? "layer" : "layers", built.layers.size() > 1 ? " and a copy of the embedding" : ""));
    }
    return partition::text_of({{"", built.layers}});
}

// Why the framework whose row counts does not build the launch; a program of one's own may. Empty: it does.
std::string beyond_row(const MegatronLaunch& l, const workloads::Built& row) {
    if (row.most_cp > 0 && l.cp > row.most_cp)
        return fmt::format("{} builds them for cp {} alone, and the launch has {}", row.framework, row.most_cp, l.cp);
    const std::int64_t first = built_layers(l).layers.front();
    if (first < row.first_layers)
        return fmt::format("{} has {} layers beside them, and the launch {}", row.framework, row.first_layers, first);
    return {};
}

// How encoders lie.
void say_encoders(const MegatronLaunch& l, const workloads::Model& model, Run& run) {
    const std::string why = model.built ? beyond_row(l, *model.built) : std::string();
    if (std::string built = how_built(model); why.empty() && !built.empty()) run.assumed.push_back(std::move(built));
    if (why.empty()) return;
    run.options.workload.encoders = planner::WorkloadOptions::split;
    run.options.workload.deal_images = false;
    assume(run, {Effect::either, "encoders are split as the language model"},
           fmt::format("encoders are priced as split: {}", why));
}

// Of a data type by the name of Megatron-LM's arguments, or PyTorch's.
std::int64_t bytes_of(const std::string& dtype) {
    struct Type {
        std::string_view name;
        std::int64_t bytes;
    };
    constexpr std::array types{Type{"fp32", 4},  Type{"float32", 4},       Type{"bf16", 2},       Type{"bfloat16", 2},
                               Type{"fp16", 2},  Type{"float16", 2},       Type{"half", 2},       Type{"fp8", 1},
                               Type{"uint8", 1}, Type{"float8_e4m3fn", 1}, Type{"float8_e5m2", 1}};
    const std::string_view name =
        dtype.starts_with("torch.") ? std::string_view(dtype).substr(6) : std::string_view(dtype);
    const auto found = std::find_if(types.begin(), types.end(), [&](const Type& one) { return one.name == name; });
    if (found == types.end())
        fail(ErrorKind::input, "a type of the optimizer's states is '{}', allowed are fp32, bf16, fp16, fp8", dtype);
    return found->bytes;
}

// The optimizer's state and gradients as the launch has them.
void put_states(const MegatronLaunch& l, Recipe& recipe) {
    const bool half = l.bf16 || l.fp16;
    recipe.state.weight = half ? 2 : 4;
    recipe.state.gradient = half && l.grads_in_bf16 ? 2 : 4;
    recipe.state.optimizer = half ? 12 : 8;
    if (l.precision_aware)
        recipe.state.optimizer =
            (half ? bytes_of(l.main_params) : 0) + bytes_of(l.first_moment) + bytes_of(l.second_moment);
    if (l.offload_optimizer)
        recipe.state = emulator::with_offloaded(recipe.state,
                                                parse_number("optimizer-offload-fraction", l.offload_fraction, 0, 1));
    if (!half) recipe.execution.products = costdb::Dtype::fp32;
}

// What the loss keeps of a logit: of 16 bits alone where Transformer Engine computes it, nothing where it is one with
// the head's product; Megatron Core's own keeps the softmax in 32 besides, and its fused one, as compiled, two copies
// more. Of answers that ms-swift generates it works out probabilities without any of these (3602360a
// swift/megatron/trainers/vocab_parallel_utils.py). Where all of a teacher's logits are compared (its
// rlhf_trainers/gkd_loss.py jsd_loss), autograd holds until the last chunk of positions: the model's in 16 bits, and in
// 32 as they are, with labels, over the temperature, exponentials, both logarithms that are mixed, their mixture,
// probabilities and differences; the teacher's three times in 16; and its backward two gradients in 32.
std::int64_t kept_of_logit(const MegatronLaunch& l, const std::string& fused_by) {
    constexpr std::int64_t by_engine = 2, own = 6, own_fused = 11, eager = 16, compared = 2 + 9 * 4 + 3 * 2 + 2 * 4;
    const auto* const stage = frameworks::training_stage(l.learns);
    if (stage != nullptr && stage->distils && !l.teacher_logits) return compared;
    if (stage != nullptr && stage->generates) return eager;
    if (!l.fused_loss) return own;
    if (fused_by == "linear") return 0;
    return fused_by == "te" ? by_engine : own_fused;
}

// On the last rank, whose loss runs backward before its next microbatch.
void doubt_loss(const MegatronLaunch& l, const workloads::Model& model, Run& run) {
    if (l.fused_loss_elsewhere.empty()) return;
    const std::int64_t less = kept_of_logit(l, l.fused_loss_by) - kept_of_logit(l, l.fused_loss_elsewhere);
    if (less <= 0) return;
    const std::int64_t heads = 1 + l.mtp_layers.value_or(0);
    const std::int64_t logits =
        heads * (model.microbatch_tokens / (l.tp * l.cp)) * model.modules[model.backbone()].architecture.vocab;
    run.doubts.push_back({Effect::less,
                          fmt::format("a loss that other versions compute by '{}'", l.fused_loss_elsewhere),
                          written(l.dialect, "cross-entropy-fusion-impl"), true,
                          l.vpp ? std::nullopt : std::optional(Bytes{2 * less * logits})});
}

void put_kept(const MegatronLaunch& l, Recipe& recipe) {
    recipe.kept.logit = kept_of_logit(l, l.fused_loss_by);
    if (parse_number("hidden-dropout", l.hidden_dropout, 0, 1) > 0) recipe.kept.masks = 1;
}

// Blocks that the framework has of its own for this family; null: it has none.
const frameworks::OwnBlocks* own_blocks_of(const MegatronLaunch& l, const workloads::Model& model) {
    return frameworks::own_blocks(l.dialect == Dialect::bridge_overrides ? "megatron-bridge" : "", model.family);
}

void put_own_blocks(const MegatronLaunch& l, const workloads::Model& model, Recipe& recipe, Run& run) {
    const auto* const row = own_blocks_of(l, model);
    if (row == nullptr) return;
    const workloads::Module& backbone = model.modules[model.backbone()];
    const bool experts = backbone.architecture.moe.has_value();
    recipe.kept.norms = experts ? row->norms_with_experts : row->norms;
    if (!backbone.trainable) recipe.kept.norms -= experts ? row->of_weights_with_experts : row->of_weights;
    recipe.kept.logit += row->logit;
    run.assumed.push_back(
        fmt::format("blocks are {}'s own, whose norms keep {} bytes of a position and column more than Megatron Core's",
                    row->framework, recipe.kept.norms));
}

// Those of layers that are worked out again together; else it is not followed how many a rank keeps. Blocks of the
// framework's own keep them whatever is said, and queries and keys that are normed in 32 bits.
void put_scores(const MegatronLaunch& l, const workloads::Model& model, Run& run) {
    const auto& network = model.modules[model.backbone()].architecture;
    const auto* const row = own_blocks_of(l, model);
    const bool is_own = row != nullptr && row->is_unfused && !network.moe;
    if (!is_own && !keeps_scores(l)) return;
    const Recompute again = run.options.recompute->everywhere;
    if (again == Recompute::full || again == Recompute::core_attention)
        run.besides.scores = scores_of(network, {.ranks = l.tp,
                                                 .tokens = model.microbatch_tokens,
                                                 .length = *l.seq_length,
                                                 .layers = run.besides.together});
    if (is_own && again != Recompute::full)
        run.doubts.push_back(
            {Effect::more,
             fmt::format("attention of {}'s own blocks keeps scores, queries and keys in 32 bits", row->framework),
             written(l.dialect, "recompute-granularity"), true});
    else if (!is_own && (run.besides.scores == Bytes{} || model.modules.size() > 1))
        run.doubts.push_back(
            {Effect::more, "attention that keeps its scores", written(l.dialect, "attention-backend")});
}

Recipe recipe_of(const MegatronLaunch& l, const std::string& asked, const workloads::Model& model, Run& run) {
    Recipe recipe = emulator::find_recipe(asked.empty() ? "megatron-core" : asked);
    recipe.zero = l.distributed_optimizer ? 1 : 0;
    if (l.torch_fsdp2) recipe.zero = 3;
    if (l.megatron_fsdp)
        recipe.zero = l.sharding == "optim_grads_params" ? 3
                      : l.sharding == "optim_grads"      ? 2
                      : l.sharding == "optim"            ? 1
                                                         : 0;
    if (recipe.zero >= 2) recipe.bucket = Bytes{};
    recipe.execution.sequence_parallel = l.sequence_parallel || l.tp == 1;
    if (l.experts) recipe.execution.experts.tensor_parallel = *l.etp;
    put_states(l, recipe);
    if (asked.empty()) put_kept(l, recipe);
    if (asked.empty()) put_own_blocks(l, model, recipe, run);
    if (l.precision_aware && l.bf16)
        run.doubts.push_back({Effect::less, "main weights of 32 bits, of which remainders of 16 may be kept"});
    if (!l.bf16 && !l.fp16)
        assume(run, {Effect::less, "32-bit values"},
               fmt::format("neither bf16 nor fp16 is said: values have 32 bits; {} says otherwise",
                           l.dialect == Dialect::bridge_overrides ? "model.bf16=true" : "--bf16"));
    run.fp8 = !l.fp8.empty();
    if (run.fp8)
        assume(run, {Effect::either, "16 bits in place of fp8"},
               "weights and activations are counted in 16 bits, not in fp8");
    if (l.offload_layers > 0 || l.fine_offload)
        assume(run,
               {Effect::less, "offloaded activations lie on the GPU",
                written(l.dialect, l.fine_offload ? "fine-grained-activation-offloading" : "cpu-offloading-num-layers"),
                true},
               "nothing is taken off for offloaded activations");
    return recipe;
}

// Of modules by name only attention's core is taken off, as Megatron Core does. What the others save depends on the
// kind of layer, and may be nothing.
Recompute selective_of(const MegatronLaunch& l, Run& run) {
    std::vector<std::string> others;
    bool core = false;
    if (l.recompute_moe_layer) others.emplace_back("moe");
    if (l.recompute == "selective")
        for (const std::string& module : l.recompute_modules) {
            if (module == "core_attn")
                core = true;
            else
                others.push_back(module);
        }
    if (!others.empty())
        assume(run,
               {Effect::less, fmt::format("recomputation of {} takes nothing off", fmt::join(others, ", ")),
                written(l.dialect, l.recompute_moe_layer ? "moe-layer-recompute" : "recompute-modules"), true},
               fmt::format("nothing is taken off for recomputation of {}", fmt::join(others, ", ")));
    return core ? Recompute::core_attention : Recompute::none;
}

// LoongForge's list: a rank's number stands for --recompute-num-layers in every configuration on it (0.1.1,
// patches/Megatron-LM/megatron/core/transformer/transformer_config.py.patch), and so is of each chunk.
std::vector<std::int64_t> layers_of_ranks(const MegatronLaunch& l) {
    return parse_integers(written(l.dialect, "custom-pipeline-recompute-layers"), l.custom_recompute_layers, 0, 100'000,
                          100'000);
}

StepRecompute recompute_of_ranks_in(const MegatronLaunch& l) {
    StepRecompute setting{.by_rank = true};
    for (const std::int64_t layers : layers_of_ranks(l))
        setting.of_ranks.push_back(layers > 0 ? Recompute::blocks(layers) : Recompute::none);
    const auto said = said_in(setting);
    return said.size() == 1 ? StepRecompute{.everywhere = said.front()} : setting;
}

// All layers run again, in groups of so many, of which each keeps what it keeps until the first runs backward.
void put_groups(const MegatronLaunch& l, Run& run) {
    std::int64_t group = l.recompute_layers.value_or(1);
    if (!l.custom_recompute_layers.empty())
        for (const std::int64_t of_rank : layers_of_ranks(l)) group = std::max(group, of_rank);
    if (group <= 1) return;
    const auto layers = built_layers(l).layers;
    run.besides.together = std::min(group, *std::max_element(layers.begin(), layers.end()));
    assume(run, {Effect::less, "inputs of all layers are kept"},
           fmt::format("inputs of all layers are counted, of which uniform recomputation by {} keeps each {}th, and "
                       "what so many layers keep while they run backward",
                       group, group));
}

// What the emulator has that is nearest, never less memory than the launch takes.
Recompute recompute_of(const MegatronLaunch& l, Run& run) {
    if (l.recompute == "full") {
        if (l.recompute_method == "block") return Recompute::blocks(*l.recompute_layers);
        put_groups(l, run);
        return Recompute::full;
    }
    return selective_of(l, run);
}

// Selective checkpointing by operators keeps what attention, collectives and every second product give.
Recompute titan_recompute_of(const TitanLaunch& l, Run& run) {
    if (l.checkpoint == name_of(Recompute::full)) return Recompute::full;
    if (l.checkpoint == name_of(Recompute::selective)) {
        assume(run, {Effect::either, "selective checkpointing by operators"},
               "selective activation checkpointing is counted as by operators: every second product runs again");
        return planner::target("torchtitan").launch.selective;
    }
    if (l.checkpoint != name_of(Recompute::none))
        assume(run, {Effect::less, "checkpointing takes nothing off", "activation-checkpoint:" + l.checkpoint, true},
               fmt::format("nothing is taken off for activation checkpointing by {}", l.checkpoint));
    return Recompute::none;
}

}  // namespace

std::optional<NotEmulated> why_not_emulated(const MegatronLaunch& l, const workloads::Model& model) {
    const auto setting = [&](const char* flag) { return written(l.dialect, flag); };
    if (!l.hybrid_pattern.empty())
        return NotEmulated{setting("hybrid-layer-pattern"), "models of a pattern are emulated by `pipeweaver emulate`"};
    const BuiltLayers built = built_layers(l);
    if (auto why = empty_stage(built, model)) return NotEmulated{setting("pipeline-model-parallel-size"), *why};
    const bool predicts = std::any_of(built.mtp.begin(), built.mtp.end(), [](std::int64_t mtp) { return mtp > 0; });
    const workloads::Architecture& backbone = model.modules[model.backbone()].architecture;
    if (predicts && has_blocks_of_one_part(backbone) && !predicts_as_nemotron(backbone))
        return NotEmulated{setting("mtp-num-layers"),
                           "multi-token prediction of a model whose blocks have one part each is not emulated"};
    return std::nullopt;
}

std::optional<NotEmulated> why_not_emulated(const TitanLaunch& l, const workloads::Model& model) {
    if (auto why = empty_stage(built_of(l, model), model))
        return NotEmulated{"parallelism.pipeline_parallel_degree", *why};
    return std::nullopt;
}

namespace {

// ms-swift 3602360a swift/megatron/trainers/rollout_mixin.py offload_context(), utils.py: buffers of weights go to the
// host, those of gradients are given up with them, and the optimizer's 32-bit weights go with its moments.
void put_engine(const MegatronLaunch& l, const FitAsked& asked, Run& run) {
    if (!l.by_engine)
        run.doubts.push_back(
            {Effect::more, "answers that the trainer generates itself", written(l.dialect, "use-vllm")});
    if (!l.by_engine || l.engine == "server") return;
    run.besides.frees_weights = run.besides.frees_reference = l.frees_weights;
    run.besides.frees_states = l.frees_states;
    run.besides.keeps_gradients = !l.frees_weights;
    put_engine({written(l.dialect, "vllm-gpu-memory-utilization"), l.engine_share, l.engine_tp, l.sleep}, asked, run);
}

// The weights of a teacher of the catalogue, of which all ranks are counted as having as much. Its name may say the
// model itself, of which a copy lies as the weights do.
void put_teacher_weights(const MegatronLaunch& l, const FitAsked& asked, Run& run) {
    const std::string says = written(l.dialect, "teacher-model");
    if (l.teacher_on_host)
        run.doubts.push_back(
            {Effect::more, "a teacher that lies on the host but while it works out logits", says, true});
    const std::string like = workloads::model_called(l.teacher);
    if (l.teacher_on_host || (like == asked.model.name && l.tuner == "lora")) return;
    if (like == asked.model.name) {
        run.besides.refers = true;
        return;
    }
    if (like.empty()) {
        run.doubts.push_back({Effect::more, fmt::format("the weights of the teacher '{}'", l.teacher), says});
        return;
    }
    constexpr std::int64_t half_bytes = 2;
    std::int64_t parameters = 0;
    for (const workloads::Module& module : workloads::model(like).modules)
        parameters += all_parameters(module.architecture);
    const std::int64_t ranks = l.tp * l.pp;
    run.besides.reference = Bytes{(half_bytes * parameters + ranks - 1) / ranks};
    assume(run, {Effect::either, "how a teacher's weights lie", says},
           fmt::format("the teacher's weights are those of {}, as many on every rank", like));
}

// ms-swift 3602360a swift/megatron/trainers/gkd_trainer.py, rollout_mixin.py: in front of a step a teacher's logits of
// its microbatches are worked out, in 16 bits, and kept on the last rank until each is trained.
void put_teacher(const MegatronLaunch& l, const FitAsked& asked, Run& run) {
    if (!l.teacher.empty()) put_teacher_weights(l, asked, run);
    constexpr std::int64_t half_bytes = 2, log_and_index = 12;
    const auto& network = asked.model.modules[asked.model.backbone()].architecture;
    const std::int64_t of_token = l.teacher_logits ? log_and_index * *l.teacher_logits
                                                   : half_bytes * l.padded_vocab.value_or(network.vocab) / l.tp;
    const std::int64_t tokens = *l.seq_length * l.sequences() / l.cp;
    const std::int64_t kept = tokens * microbatches_of(l, asked.gpus) * l.answers_steps;
    run.besides.last_rank = Bytes{of_token * kept};
    run.doubts.push_back({Effect::less, "logits of all positions are counted, of which those with labels are compared",
                          written(l.dialect, "rlhf-type"), true});
    run.assumed.push_back(fmt::format("the teacher's logits of {} microbatches are counted on the last rank: {}",
                                      microbatches_of(l, asked.gpus) * l.answers_steps, human(run.besides.last_rank)));
}

// ms-swift 3602360a swift/megatron/trainers/rlhf_mixin.py: a copy of the model as it was, where all of it is trained.
void put_stage(const MegatronLaunch& l, const FitAsked& asked, Run& run) {
    if (l.learns.empty()) return;
    const auto* const stage = frameworks::training_stage(l.learns);
    const std::string says = written(l.dialect, "rlhf-type");
    if (stage != nullptr && stage->rows > 1 && l.packs)
        run.doubts.push_back(
            {Effect::less, "pairs that are joined are counted as the longest", written(l.dialect, "packing"), true});
    if (stage == nullptr)
        run.doubts.push_back({Effect::more, fmt::format("what '{}' holds beside the model", l.learns), says});
    if (l.generates()) put_engine(l, asked, run);
    if (l.learns == "rm") run.doubts.push_back({Effect::less, "logits, in place of one value", says});
    run.besides.refers = stage != nullptr && stage->refers && l.tuner != "lora";
    if (stage != nullptr && stage->distils)
        put_teacher(l, asked, run);
    else if (!l.teacher.empty())
        run.doubts.push_back(
            {Effect::more, "another copy of a model holds weights, too", written(l.dialect, "teacher-model")});
}

}  // namespace

Run run_without_batch(const MegatronLaunch& l, const FitAsked& asked) {
    Run run;
    planner::EmulateOptions& options = run.options;
    workloads::Model model = asked.model;
    model.microbatch_tokens = *l.seq_length * l.sequences();
    options.layers = layers_text(built_layers(l), written(l.dialect, "mtp-num-layers"), model, run);
    put_tuning(tuning_of(l), model, run.doubts);
    put_stage(l, asked, run);
    leave_reference_to(l.learns, model, run);
    // As Megatron-LM and LoongForge do.
    for (std::string& padded : workloads::pad_heads(model, workloads::internvit_6b_heads, l.tp))
        run.assumed.push_back(std::move(padded));
    put_asked(options.workload, asked, model);
    const bool exchanges = !l.cp_comm.empty() && l.cp_comm.front() == "a2a";
    put_degrees(options.workload, {.tp = l.tp,
                                   .pp = l.pp,
                                   .dp = l.dp(asked.gpus),
                                   .cp = l.cp,
                                   .ep = l.ep,
                                   .context = exchanges ? ContextParallel::all_to_all : ContextParallel::ring});
    say_encoders(l, model, run);
    put_run_recipe(options.workload, recipe_of(l, asked.recipe, model, run));
    if (asked.recipe.empty()) doubt_loss(l, model, run);
    const bool says_ranks =
        l.recompute == "full" && l.recompute_method == "block" && !l.custom_recompute_layers.empty();
    options.recompute = says_ranks ? recompute_of_ranks_in(l) : StepRecompute{.everywhere = recompute_of(l, run)};
    put_scores(l, model, run);
    options.policy = l.vpp ? "interleaved" : "1f1b";
    if (l.vpp && *l.group_size != l.pp)
        run.assumed.push_back(
            fmt::format("the order has {} microbatches in a row of one chunk, not {}", l.pp, *l.group_size));
    return run;
}

std::int64_t emulated_microbatches(const MegatronLaunch& l, std::int64_t gpus) {
    return std::min(microbatches_of(l, gpus), enough_rounds * l.pp);
}

Run run_of(const MegatronLaunch& l, const FitAsked& asked) {
    Run run = run_without_batch(l, asked);
    put_samples(asked, *l.seq_length, emulated_microbatches(l, asked.gpus), run);
    run.options.any_memory = true;
    run.says_tokens =
        product_of(written(l.dialect, "seq-length"), l.sequences(), written(l.dialect, "micro-batch-size"));
    return run;
}

namespace {

bool keeps_gathered(const TitanLaunch& l) { return l.reshard == "never" || (l.reshard == "default" && l.pp > 1); }

// Replicas of whole states: FSDP without shards.
bool replicates(const TitanLaunch& l, std::int64_t gpus) { return l.replicate > 1 && l.shards(gpus) * l.cp == 1; }

// What a configuration by name compiles is not known: it is counted as compiled.
Recipe recipe_of(const TitanLaunch& l, const FitAsked& asked, bool is_named) {
    const bool is_eager = !l.compiled && !is_named;
    Recipe recipe = emulator::find_recipe(!asked.recipe.empty() ? asked.recipe
                                          : is_eager            ? "torch-fsdp2-eager"
                                                                : "torch-fsdp2");
    recipe.zero = replicates(l, asked.gpus) ? 0 : keeps_gathered(l) ? 2 : 3;
    // Between a pipeline's microbatches nothing is reduced: their sum is whole, in 32 bits.
    if (l.pp > 1 && recipe.zero > 0) recipe.state.whole = 4;
    recipe.execution.sequence_parallel = l.sequence_parallel || l.tp == 1;
    return recipe;
}

}  // namespace

Run run_of(const TitanLaunch& l, const FitAsked& asked) {
    Run run;
    run.target = "torchtitan";
    planner::EmulateOptions& options = run.options;
    const auto schedule = titan_schedule(l.schedule);
    workloads::Model model = asked.model;
    const std::int64_t samples = l.pp > 1 ? l.microbatch : l.local_batch;
    model.microbatch_tokens = l.seq_len * samples;
    options.layers = layers_text(built_of(l, model), {}, model, run);
    put_asked(options.workload, asked, model);
    put_degrees(
        options.workload,
        {.tp = l.tp, .pp = l.pp, .dp = l.dp(asked.gpus), .cp = l.cp, .ep = l.ep, .context = ContextParallel::ring});
    run.says_tokens =
        product_of("training.seq_len", samples,
                   l.pp > 1 ? "parallelism.pipeline_parallel_microbatch_size" : "training.local_batch_size");
    put_samples(asked, l.seq_len, l.pp > 1 ? l.local_batch / l.microbatch : 1, run);
    const Recipe recipe = recipe_of(l, asked, asked.is_named);
    put_run_recipe(options.workload, recipe);
    constexpr std::int64_t at_work = 8;  // a copy in 32 bits, and its gradient
    if (l.pp == 1)
        run.logits = Bytes{(recipe.kept.logit + at_work) * (model.microbatch_tokens / (l.tp * l.cp)) *
                           model.modules[model.backbone()].architecture.vocab};
    // Beside whole 32-bit weights the 16-bit ones that were gathered; of shards, copies in every group.
    run.besides.refers = replicates(l, asked.gpus) && keeps_gathered(l);
    if (!replicates(l, asked.gpus)) run.besides.copies = l.replicate;
    run.besides.zero = l.pp > 1 ? 1 : keeps_gathered(l) ? 2 : 3;  // a pipeline has whole gradients
    run.besides.shards = asked.gpus / (l.tp * l.pp);
    say_copies(l.ep, run);
    options.recompute = StepRecompute{.everywhere = titan_recompute_of(l, run)};
    options.policy = l.pp == 1 || !schedule || schedule->policy.empty() ? "1f1b" : std::string(schedule->policy);
    options.any_memory = true;
    if (l.pp > 1) options.target = "torch-csv";
    if (!l.csv.empty())
        run.assumed.push_back(fmt::format("the order is taken as of {}, not of {}", options.policy, l.csv));
    return run;
}

namespace {

Fit fit_from(const Run& run, const planner::EmulationRequest& request, const planner::Emulation& emulation) {
    const emulator::Setup& setup = *request.job.setup;
    Fit fit;
    fit.usable = emulator::capacity_of(setup);
    fit.device = setup.cluster.device;
    fit.device_memory = workloads::device(setup.cluster.device).memory;
    fit.holds = workloads::sizes_text(request.batch.samples, setup.model);
    fit.step = emulation.step;
    for (const auto& mine : emulation.assigned)
        fit.microbatches = std::max(fit.microbatches, static_cast<std::int64_t>(mine.size()));
    fit.assumed = run.assumed;
    fit.doubts = run.doubts;
    fit.logits = run.logits;
    fit.recipe = request.job.setup->recipe.name + (run.fp8 ? "-fp8" : "");
    if (std::string packing = packing_of(run, request); !packing.empty()) fit.assumed.push_back(std::move(packing));
    if (const std::string anchored = emulator::anchored_text(setup); !anchored.empty())
        fit.assumed.push_back("anchored: " + anchored);
    if (workloads::device(fit.device).modelled)
        fit.assumed.push_back(
            fmt::format("{} is modelled: its memory is the data sheet's, of which as much counts as "
                        "usable as on GPUs that were measured",
                        fit.device));
    for (std::size_t r = 0; r < emulation.replicas.front().memory.size(); ++r) {
        const auto& rank = emulation.replicas[planner::fullest_replica(emulation, r)].memory[r];
        fit.ranks.push_back({rank.peak, rank.fixed.weights, rank.fixed.gradients, rank.fixed.optimizer,
                             rank.fixed.buffers + rank.fixed.workspace, rank.activations, rank.transient, 0,
                             rank.fixed.apart});
    }
    for (RankUse& rank : fit.ranks) add_besides(run.besides, rank);
    fit.ranks.back().buffers += run.besides.last_rank;
    fit.ranks.back().peak += run.besides.last_rank;
    const std::size_t backbone = setup.model.backbone();
    for (const auto& stage : emulation.partition.chains.front().stages)
        for (const auto& part : stage.parts)
            if (part.module == backbone) fit.ranks[index(stage.rank)].layers += part.count;
    for (std::size_t r = 0; r < fit.ranks.size(); ++r)
        if (fit.ranks[r].peak > fit.ranks[fit.fullest].peak) fit.fullest = r;
    return fit;
}

}  // namespace

MadeFit try_fit(const Run& run, std::int64_t seed, const Executor& execute) {
    auto [request, why_not] = run.options.try_request(static_cast<std::uint64_t>(seed), execute);
    if (!request) return {{}, std::move(why_not)};
    if (const auto why = why_not_held(run, *request)) return {{}, Error(ErrorKind::input, *why)};
    auto made = planner::try_emulate(*request, execute);
    if (!made.emulation) return {{}, std::move(made.why_not)};
    return {fit_from(run, *request, *made.emulation), {}};
}

Fit fit_of(const Run& run, std::int64_t seed, const Executor& execute) {
    MadeFit made = try_fit(run, seed, execute);
    if (made.why_not) throw Error(*made.why_not);
    return std::move(*made.fit);
}

}  // namespace pipeweaver::launch
