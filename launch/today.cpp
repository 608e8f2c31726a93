#include "pipeweaver/launch/today.hpp"

#include "launch/fit/tuning.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/frameworks/built_encoders.hpp"
#include "pipeweaver/launch/fit.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

namespace pipeweaver::launch {

namespace {

using planner::Degree;
using planner::WorkloadOptions;

// Options of a plan, each taken from the script unless it is given; then it must be the same.
class FromScript {
public:
    FromScript(WorkloadOptions& workload, std::string file) : workload_(workload), file_(std::move(file)) {}

    void take(const char* option, Degree& given, std::int64_t said) const {
        if (given.automatic)
            fail(ErrorKind::input, "--{}: is auto, but {} says {}; --layout auto chooses a layout beside it", option,
                 file_, said);
        take(option, given.number, said);
    }

    template <class Number>
    void take(const char* option, std::optional<Number>& given, std::int64_t said) const {
        if (given && static_cast<std::int64_t>(*given) != said)
            fail(ErrorKind::input, "--{}: is {}, but {} says {}; leave out the option", option, *given, file_, said);
        given = static_cast<Number>(said);
    }

    void take(const char* option, std::string& given, const std::string& said) const {
        if (!given.empty() && given != said)
            fail(ErrorKind::input, "--{}: is {}, but {} says {}; leave out the option", option, given, file_, said);
        given = said;
    }

    void take_layout(const MegatronLaunch& l, std::int64_t gpus, const WorkloadOptions& run) const {
        take("tp", workload_.tp, l.tp);
        take("pp", workload_.pp, l.pp);
        take("dp", workload_.dp, l.dp(gpus));
        if (l.cp > 1 || workload_.cp.number) take("cp", workload_.cp, l.cp);
        if (l.cp > 1) take("context", workload_.context, run.context.empty() ? "all-to-all" : run.context);
        if (l.experts) take("ep", workload_.ep, l.ep);
    }

    // By its name where the launch differs in the ZeRO stage alone.
    void take_recipe(emulator::Recipe recipe) const {
        const std::string name = workload_.recipe.empty() ? "megatron-core" : workload_.recipe, said = to_json(recipe);
        const emulator::Recipe usual = emulator::find_recipe(name);
        if (workload_.overrides.zero || recipe.zero != usual.zero) take("zero", workload_.overrides.zero, recipe.zero);
        recipe.zero = usual.zero;
        if (to_json(recipe) != to_json(usual)) workload_.recipe = said;
    }

    void take_microbatches(const MegatronLaunch& l, std::int64_t gpus, std::int64_t usual_tokens) const {
        const std::int64_t tokens = *l.seq_length * l.micro_batch.value_or(1);
        if (workload_.microbatch_tokens || tokens != usual_tokens)
            take("microbatch-tokens", workload_.microbatch_tokens, tokens);
        const std::int64_t count = microbatches_of(l, gpus);
        const auto& global = workload_.global_batch;
        if (global && global->of_microbatches && global->number != count * l.dp(gpus))
            fail(ErrorKind::input, "--global-batch: is {}, but {} says {} microbatches of each of {} replicas",
                 global->text(), file_, count, l.dp(gpus));
        if (!workload_.dataset.empty() && !global) take("microbatches", workload_.microbatches, count);
    }

private:
    WorkloadOptions& workload_;
    std::string file_;
};

MegatronLaunch launch_in(const SaidLaunch& said, const std::string& file) {
    if (said.dialect != Dialect::megatron_arguments && said.dialect != Dialect::bridge_overrides)
        fail(ErrorKind::input, "--now: {} has {}; allowed are launches of Megatron-LM and Megatron-Bridge, and words",
             file, name_of(said.dialect));
    return read_megatron(said);
}

void require_set(const SaidLaunch& said) {
    if (said.unset.empty()) return;
    const Unset& first = said.unset.front();
    fail(ErrorKind::input, "{}: {}: '{}' is set to no plain text in the script; say it with --set NAME=VALUE",
         first.where, first.setting, first.variable);
}

void require_constructed(const MegatronLaunch& launch, std::int64_t gpus, const std::string& file) {
    const Framework& framework = framework_called("megatron-core");
    const auto broken = broken_rules(launch, gpus, framework);
    if (!broken.empty())
        fail(ErrorKind::limit, "--now: {}: {} does not construct it: {}: {}", file, framework.text(),
             broken.front().says, broken.front().why);
}

// The model that is asked for, or the launch's own.
workloads::Model model_beside(const WorkloadOptions& workload, const MegatronLaunch& settled_launch,
                              std::vector<std::string>& assumed) {
    if (!workload.model.empty()) return workload.found_model();
    SaidModel own = model_of(settled_launch);
    assumed.insert(assumed.end(), own.assumed.begin(), own.assumed.end());
    return std::move(own.model);
}

// Whether it is a word of a name that says so: "offline_packing_specs", "use-packed-sequence", "sft" of Megatron-LM.
bool says_packing(const Setting& setting) {
    constexpr std::array<std::string_view, 5> off{"false", "False", "0", "null", "None"};
    const auto& values = setting.values;
    if (setting.name.starts_with("no-") ||
        (!values.empty() && std::find(off.begin(), off.end(), values.front()) != off.end()))
        return false;
    if (setting.name == "sft") return true;
    std::string words = "-" + setting.name + "-";
    std::replace_if(
        words.begin(), words.end(), [](char c) { return c == '_' || c == '.'; }, '-');
    return contains(words, "-packing-") || contains(words, "-packed-");
}

TakenScript taken(const SaidLaunch& said, const MegatronLaunch& launch, std::int64_t gpus) {
    TakenScript script{said.from};
    script.microbatch = launch.micro_batch.value_or(1);
    script.samples = launch.global_batch.value_or(script.microbatch * launch.dp(gpus));
    if (launch.global_batch)
        script.global_batch = fmt::format("{} {}", written(launch.dialect, "global-batch-size"), script.samples);
    script.packs = std::any_of(said.settings.begin(), said.settings.end(), says_packing);
    script.notes = said.notes;
    return script;
}

// Encoders as the script's program builds them, where the target's frameworks build any and nothing else is said.
void take_encoders(const SaidLaunch& said, planner::PlanOptions& plan) {
    WorkloadOptions& workload = plan.workload;
    if (workload.model.empty() || !workload.encoders.empty()) return;
    if (planner::target(planner::target_called(plan.target)).builders.empty()) return;
    const workloads::Model model = named_model(workload.model, said);
    if (!model.built || model.built->source.empty()) return;
    workload.encoders = model.built->framework;
    const std::array by{model.built->framework};
    const auto* row = frameworks::built_encoder(by, model.family);
    if (row == nullptr || row->recompute != model.built->recompute)
        workload.encoder_recompute = workloads::name_of(model.built->recompute);
    if (model.built->lies.context == workloads::OnContextRanks::dealt) workload.deal_images = true;
}

}  // namespace

std::string not_taken_by(const planner::Batch& batch, const TakenScript& script) {
    if (script.global_batch.empty() || batch.drawn) return {};
    const auto has = static_cast<std::int64_t>(batch.samples.size());
    const std::string against = has == script.samples  ? "as many"
                                : has > script.samples ? fmt::format("{} more", has - script.samples)
                                                       : fmt::format("{} fewer", script.samples - has);
    return fmt::format(
        "{} is not taken: the batch is the {} samples of {}, {}, in {} microbatches; the script's has {}",
        script.global_batch, has, batch.name, against, batch.microbatches.size(), script.samples / script.microbatch);
}

std::string packing_remark(const planner::Batch& batch, const TakenScript& script) {
    const auto alone = batch.microbatches.size() * static_cast<std::size_t>(script.microbatch);
    if (script.file.empty() || script.packs || batch.samples.size() <= alone) return {};
    return fmt::format("{} samples are packed into {} microbatches; {} says no packing: with {} in each it is slower",
                       batch.samples.size(), batch.microbatches.size(), script.file, script.microbatch);
}

bool is_script(std::string_view now) {
    std::error_code none;
    return names_a_document(now) || now.ends_with(".sh") ||
           (!now.empty() && std::filesystem::is_regular_file(now, none));
}

TakenScript take_script(planner::PlanOptions& plan) {
    const std::string file = std::exchange(plan.now, {});
    WorkloadOptions& workload = plan.workload;
    if (!plan.layers.empty()) fail(ErrorKind::input, "--layers: goes without --now {}, which says them", file);
    require_given({planner::needed_cluster(workload.cluster)});
    const std::int64_t gpus = workloads::find_cluster(workload.cluster).gpus;
    const SaidLaunch said = read_launch(file, std::nullopt, parse_variables(plan.set));
    require_set(said);
    MegatronLaunch launch = launch_in(said, file);
    take_encoders(said, plan);
    if (!workload.model.empty()) launch = with_model(std::move(launch), workload.found_model());
    require_constructed(launch, gpus, file);
    const MegatronLaunch all = settled(launch);
    TakenScript taken_script = taken(said, all, gpus);
    std::vector<std::string>& assumed = taken_script.notes;
    const workloads::Model model = model_beside(workload, all, assumed);
    if (const auto not_emulated = why_not_emulated(all, model))
        fail(ErrorKind::limit, "--now: {}: {}: {}", file, not_emulated->setting, not_emulated->why);
    const Run run = run_without_batch(all, {workload.cluster, gpus, model, {}, workload.recipe});
    assumed.insert(assumed.end(), run.assumed.begin(), run.assumed.end());

    const FromScript script(workload, file);
    script.take_layout(all, gpus, run.options.workload);
    script.take_recipe(*run.options.workload.recipe_read);
    // Multi-token prediction counts as layers of the model, and what is frozen or has adapters is of the model, too.
    const bool tuned = is_tuned(tuning_of(all), model);
    if (tuned) assumed.push_back(fmt::format("of the model is trained what {} trains", file));
    if (workload.model.empty() || all.mtp_layers.value_or(0) > 0 || tuned)
        workload.model = to_json(*run.options.workload.model_read);
    if (workload.batch.empty() && workload.dataset.empty() && !is_multimodal(model))
        workload.dataset = fmt::format("constant-{}", *all.seq_length);
    script.take_microbatches(all, gpus, workload.found_model().microbatch_tokens);
    if (all.pp > 1) plan.layers = run.options.layers;
    plan.now = fmt::format("{},{}", run.options.policy, name_of(*run.options.recompute));
    return taken_script;
}

}  // namespace pipeweaver::launch
