#include "pipeweaver/planner/targets.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/search/policy_names.hpp"

#include <algorithm>

namespace pipeweaver::planner {

// Each target's rules in a file of its own.
std::optional<std::string> inexpressible_in_torch_csv(const schedule::Problem& problem);
search::Rules rules_of_torch_csv(const schedule::Problem& problem);
std::optional<std::string> breaks_torch_csv(const schedule::Problem& problem, const schedule::Schedule& schedule);

namespace {

// What users of PyTorch's pipelines configure: stages by module names, a schedule by its name.
Launch torch_launch() {
    return {
        .partitions = {partition::first_stage_partition, partition::balanced_partition, partition::megatron_partition},
        .policies = {search::one_f_one_b_policy, search::interleaved_policy, search::gpipe_policy},
        .cut = "the modules of each stage",
        .order = "Schedule1F1B or ScheduleGPipe; with chunks ScheduleInterleaved1F1B or ScheduleLoopedBFS",
        .recompute = "checkpoint_wrapper on the blocks of a stage"};
}

// The executor has segments expand.
Launch actions_launch() {
    Launch launch = torch_launch();
    launch.segments_expand_as = "pipeweaver.torch does";
    launch.known_schedules_by = "PyTorch's own schedules (torch.distributed.pipelining)";
    return launch;
}

// torchtitan: wrappers of every block, whole or by operators.
Launch torchtitan_launch() {
    Launch launch = torch_launch();
    launch.blocks = launch.by_rank = launch.spreads_encoders = launch.splits_groups = false;
    launch.selective = emulator::Recompute::second_products;
    launch.segments_expand_as = "torchtitan.sh and torchtitan's run_train.sh do";
    launch.least_zero = 2;  // FSDP shares out gradients, too
    launch.replicates = true;
    launch.sends_keys = true;
    launch.cut = "module_fqns_per_model_part";
    launch.order = "pipeline_parallel_schedule";
    launch.recompute = "activation_checkpoint mode";
    return launch;
}

Launch megatron_launch() {
    return {.partitions = {partition::first_stage_partition, partition::balanced_partition,
                           partition::megatron_partition, partition::uniform_partition},
            .policies = {search::one_f_one_b_policy, search::interleaved_policy},
            .selective = emulator::Recompute::core_attention,
            .by_rank = false,
            .most_zero = 1,
            .spreads_encoders = false,
            .splits_groups = false,
            .segments_expand_as = "the files do",
            .cut = "--pipeline-model-parallel-layout",
            .order = "the layout string says them",
            .recompute = "--recompute-granularity"};
}

// Trainers made of Hugging Face's: checkpoints of every block or of none; a gradient that is shared out is the least
// that FSDP2 does. All cuts are one stage.
Launch fsdp2_launch() {
    return {.partitions = {partition::megatron_partition},
            .policies = {search::one_f_one_b_policy},
            .blocks = false,
            .selective = emulator::Recompute::core_attention,
            .by_rank = false,
            .least_zero = 2,
            .replicas_alone = true,
            .spreads_encoders = false,
            .splits_groups = false,
            .recompute = "fsdp_activation_checkpointing"};
}

Launch deepspeed_launch() {
    Launch launch = fsdp2_launch();
    launch.least_zero = 1;
    launch.exchanges_heads = true;
    launch.recompute = "gradient_checkpointing";
    return launch;
}

Target megatron_target() {
    return {.name = "megatron",
            .option = "megatron",
            .about = "Megatron-LM's launch flags: one chain, 1F1B or interleaved",
            .folder = "",
            .launch = megatron_launch(),
            .builders = {"megatron-bridge", "megatron-lm"},
            .searches = false,
            .one_chain = true,
            .equal_microbatches = true,
            .recompute = RecomputeBy::step};
}

Target megatron_mimo_target() {
    Target target = megatron_target();
    target.name = target.option = "megatron-mimo";
    target.about = "Megatron's launch flags, and MegatronMIMO's grids: an encoder of images on GPUs of its own";
    target.groups = target.launches_grids = true;
    return target;
}

}  // namespace

// Table: a target a row.
const std::vector<Target>& targets() {
    static const std::vector<Target> all{{.name = "free",
                                          .option = "torch-actions",
                                          .about = "pipeweaver.torch, which runs whatever action lists can carry",
                                          .folder = "",
                                          .selective_passes = true,
                                          .offloaded_passes = true,
                                          .launch = actions_launch()},
                                         {.name = "torch-csv",
                                          .option = "torch-csv",
                                          .about = "PyTorch's pipeline runtime: one chain, fixed shapes",
                                          .folder = "torch",
                                          .title = "PyTorch",
                                          .file = "schedule.csv",
                                          .compared = {search::one_f_one_b_policy, search::interleaved_policy},
                                          .launch = torch_launch(),
                                          .one_chain = true,
                                          .fixed_shapes = true,
                                          .recompute = RecomputeBy::rank,
                                          .input_gradient_frees = false,
                                          .buffers_for_all = true,
                                          .first_input_gradient = false,
                                          .inexpressible = inexpressible_in_torch_csv,
                                          .rules = rules_of_torch_csv,
                                          .breaks = breaks_torch_csv},
                                         {.name = "torchtitan",
                                          .option = "torchtitan",
                                          .about = "torchtitan's configuration: one chain, fixed shapes, its orders",
                                          .folder = "",
                                          .launch = torchtitan_launch(),
                                          .builders = {"torchtitan"},
                                          .recipe = "torchtitan",
                                          .searches = false,
                                          .one_chain = true,
                                          .fixed_shapes = true,
                                          .recompute = RecomputeBy::step,
                                          .buffers_for_all = true},
                                         megatron_target(),
                                         megatron_mimo_target(),
                                         {.name = "fsdp2",
                                          .option = "fsdp2",
                                          .about = "FSDP2 by accelerate, ms-swift and LLaMA-Factory: no pipeline, "
                                                   "nothing on the host",
                                          .folder = "",
                                          .launch = fsdp2_launch(),
                                          .recipe = "accelerate-fsdp2",
                                          .searches = false,
                                          .one_chain = true,
                                          .equal_microbatches = true,
                                          .recompute = RecomputeBy::step},
                                         {.name = "deepspeed",
                                          .option = "deepspeed",
                                          .about = "DeepSpeed's ZeRO by ms-swift and LLaMA-Factory: no pipeline, "
                                                   "nothing on the host",
                                          .folder = "",
                                          .launch = deepspeed_launch(),
                                          .recipe = "deepspeed-zero",
                                          .searches = false,
                                          .one_chain = true,
                                          .equal_microbatches = true,
                                          .recompute = RecomputeBy::step},
                                         {.name = "any",
                                          .option = "any",
                                          .about = "what torch-actions runs, known schedules that nothing launches, "
                                                   "and modules on GPUs of their own",
                                          .folder = "",
                                          .groups = true,
                                          .action_lists = false,
                                          .selective_passes = true,
                                          .offloaded_passes = true,
                                          .launch = torch_launch()}};
    return all;
}

// Of scores that go through memory `selective` itself is core attention.
emulator::Recompute selective_of(const Launch& launch, bool fused_attention) {
    const bool is_itself = launch.selective == emulator::Recompute::core_attention && !fused_attention;
    return is_itself ? emulator::Recompute::selective : launch.selective;
}

bool launches_zero(const Launch& launch, int zero, const emulator::Layout& layout) {
    if (launch.least_zero <= zero && zero <= launch.most_zero) return true;
    return launch.replicates && zero == 0 && layout.cp == 1 && layout.tp % layout.ep == 0;
}

bool launches_in(const Target& target, const emulator::Layout& layout) {
    const bool exchanges = layout.cp > 1 && layout.context == emulator::ContextParallel::all_to_all;
    if (target.launch.sends_keys && exchanges) return false;
    if (!target.launch.replicas_alone) return true;
    const bool may_share = target.launch.exchanges_heads && layout.context == emulator::ContextParallel::all_to_all;
    return layout.tp == 1 && layout.pp == 1 && layout.ep == 1 && (layout.cp == 1 || may_share);
}

// Of GPUs that share samples each has whole keys, and an encoder would be run by all of them.
bool launches_in(const Target& target, const emulator::Layout& layout, const workloads::Model& model) {
    if (!launches_in(target, layout)) return false;
    if (!target.launch.replicas_alone || layout.cp == 1) return true;
    const workloads::Architecture& network = model.modules[model.backbone()].architecture;
    return model.modules.size() == 1 && !network.linear && network.kv_heads % layout.cp == 0;
}

bool runs_policy(const Target& target, std::string_view policy) {
    const auto& all = target.policies;
    return all.empty() || std::find(all.begin(), all.end(), policy) != all.end();
}

const Target& target(std::string_view name) {
    std::vector<std::string> names;
    for (const Target& one : targets()) {
        if (one.name == name) return one;
        names.push_back(one.name);
    }
    fail(ErrorKind::input, "{}", unknown("target", name, names));
}

std::vector<std::string> target_options(bool (*which)(const Target&)) {
    std::vector<std::string> options;
    for (const Target& one : targets())
        if (which == nullptr || which(one)) options.push_back(one.option);
    return options;
}

std::string target_called(std::string_view option) {
    for (const Target& one : targets())
        if (one.option == option) return one.name;
    return targets().front().name;
}

schedule::StageOptions stage_options(schedule::StageOptions asked, const Target& target) {
    if (has_own_plan(target)) asked.suffix = "-" + target.folder;
    asked.buffers_for_all = target.buffers_for_all;
    asked.first_input_gradient = target.first_input_gradient;
    return asked;
}

search::Rules rules_of(const Target& target, const schedule::Problem& problem) {
    if (target.inexpressible != nullptr)
        if (const auto why = target.inexpressible(problem)) fail(ErrorKind::limit, "{}: {}", target.name, *why);
    return target.rules == nullptr ? search::Rules{} : target.rules(problem);
}

}  // namespace pipeweaver::planner
