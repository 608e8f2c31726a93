// What of a model is trained, and what runs forward beside it.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace pipeweaver::planner {

namespace {

constexpr std::string_view all_parts = "all", projectors = "projectors";

using workloads::Adapters;
using workloads::ExpertAdapters;

bool has_projector(const workloads::ModelEdge& edge) { return edge.projector_in > 0; }

// Those of a model that --train and --freeze may name.
std::vector<std::string> parts_of_model(const workloads::Model& model) {
    std::vector<std::string> parts{std::string(all_parts)};
    for (const workloads::Module& module : model.modules) parts.push_back(module.name);
    if (std::any_of(model.edges.begin(), model.edges.end(), has_projector)) parts.emplace_back(projectors);
    return parts;
}

bool are_named(const std::vector<std::string>& named, std::string_view part) {
    return std::any_of(named.begin(), named.end(), [&](const auto& one) { return one == part || one == all_parts; });
}

void require_parts(const char* option, const std::vector<std::string>& named, const std::vector<std::string>& known) {
    for (const std::string& part : named)
        if (std::find(known.begin(), known.end(), part) == known.end())
            fail(ErrorKind::input, "{}: {}", option, must_be(part, one_of(known)));
}

// The parts that are named are trained whole, the others are frozen, adapters and all.
void train(workloads::Model& model, const std::vector<std::string>& named) {
    require_parts("--train", named, parts_of_model(model));
    for (workloads::Module& module : model.modules) {
        module.trainable = are_named(named, module.name);
        module.adapters.reset();
    }
    for (workloads::ModelEdge& edge : model.edges)
        if (has_projector(edge)) edge.projector_trainable = are_named(named, projectors);
}

// A projector says itself whether it is trained, whatever becomes of the module in front of it.
void settle_projectors(workloads::Model& model) {
    for (workloads::ModelEdge& edge : model.edges)
        if (has_projector(edge) && !edge.projector_trainable)
            edge.projector_trainable = model.modules[edge.from].trainable;
}

// The parts that are named are frozen, adapters and all; of the others the model's file counts.
void freeze(workloads::Model& model, const std::vector<std::string>& named) {
    std::vector<std::string> known = parts_of_model(model);
    known.erase(known.begin());
    require_parts("--freeze", named, known);
    settle_projectors(model);
    for (workloads::Module& module : model.modules) {
        if (!are_named(named, module.name)) continue;
        module.trainable = false;
        module.adapters.reset();
    }
    for (workloads::ModelEdge& edge : model.edges)
        if (has_projector(edge) && are_named(named, projectors)) edge.projector_trainable = false;
    if (!trains_any(model)) fail(ErrorKind::input, "--freeze: of '{}' nothing is left to train", model.name);
}

std::vector<std::string> expert_adapters() {
    std::vector<std::string> names;
    for (const auto one : {ExpertAdapters::none, ExpertAdapters::each, ExpertAdapters::together})
        names.emplace_back(name_of(one));
    return names;
}

Adapters adapters_of(std::int64_t rank, const std::string& targets) {
    Adapters adapters{.rank = rank};
    if (targets.empty()) return adapters;
    const std::vector<std::string> named = parts_of(targets);
    std::vector<std::string> known;
    for (const workloads::AdaptedMatrix& one : workloads::adapted_matrix_names) known.emplace_back(one.name);
    require_parts("--lora-targets", named, known);
    for (const workloads::AdaptedMatrix& one : workloads::adapted_matrix_names)
        adapters.*(one.has) = std::find(named.begin(), named.end(), one.name) != named.end();
    return adapters;
}

ExpertAdapters expert_adapters_named(const std::string& name) {
    for (const auto one : {ExpertAdapters::each, ExpertAdapters::together})
        if (name == name_of(one)) return one;
    return ExpertAdapters::none;
}

// Modules that have adapters: those that are named, else all that are trained and may have any.
std::vector<std::string> adapted_modules(const workloads::Model& model, const std::string& named) {
    std::vector<std::string> able, trained, unable;
    for (const workloads::Module& module : model.modules) {
        const bool may = workloads::may_have_adapters(module.architecture);
        if (may) able.push_back(module.name);
        if (module.trains()) (may ? trained : unable).push_back(module.name);
    }
    if (able.empty())
        fail(ErrorKind::input,
             "--lora: no module of '{}' can have adapters: allowed are those with dense, windowed, latent or linear "
             "attention",
             model.name);
    if (named.empty() && trained.empty())
        fail(ErrorKind::input, "--lora: no module of '{}' that is trained can have adapters; --lora-modules names some",
             model.name);
    if (named.empty() && !unable.empty())
        fail(ErrorKind::input,
             "--lora: '{}' is trained and cannot have adapters: --freeze it, or name the others by "
             "--lora-modules, beside which it is trained whole",
             unable.front());
    if (named.empty()) return trained;
    std::vector<std::string> all = parts_of(named);
    require_parts("--lora-modules", all, able);
    return all;
}

// These train adapters in place of their weights; projectors are frozen unless `keeps_projectors`.
void put_adapters(workloads::Model& model, const Adapters& adapters, const std::vector<std::string>& modules,
                  bool keeps_projectors) {
    settle_projectors(model);
    bool any_experts = false;
    for (workloads::Module& module : model.modules) {
        if (std::find(modules.begin(), modules.end(), module.name) == modules.end()) continue;
        module.trainable = false;
        module.adapters = adapters;
        any_experts = any_experts || module.architecture.moe.has_value();
        if (!module.architecture.moe) module.adapters->experts = ExpertAdapters::none;
    }
    if (adapters.experts != ExpertAdapters::none && !any_experts)
        fail(ErrorKind::input, "--lora-experts: none of the modules with adapters has experts; allowed is none");
    for (workloads::ModelEdge& edge : model.edges)
        if (has_projector(edge) && !keeps_projectors) edge.projector_trainable = false;
}

void teach(workloads::Model& model, const std::string& teacher) {
    if (!model.teacher.empty())
        fail(ErrorKind::input, "--teacher: '{}' has the teacher '{}' already; allowed is one", model.name,
             model.teacher.front().name);
    workloads::Model found = workloads::find_model(teacher, "--teacher");
    if (const auto why = workloads::why_no_teacher(model, found)) fail(ErrorKind::input, "--teacher: {}", *why);
    model.teacher.push_back(std::move(found));
}

std::string what_is_assumed(const workloads::Model& model) {
    constexpr std::string_view where =
        "runs each sample forward right in front of the model's own forward, and sends its activations with the "
        "model's";
    if (model.reference) return fmt::format("a copy of the model as it was {}", where);
    return fmt::format(
        "the teacher '{}' lies frozen on the same GPUs, its layers shared out as the model's are, and {}; "
        "its logits are kept until the loss as the model's own are",
        model.teacher.front().name, where);
}

// Encoders that the framework's adapters do not reach where nobody says which modules have them.
void freeze_own_layers(workloads::Model& of) {
    if (!of.built || !of.built->has_own_layers) return;
    for (std::size_t m = 0; m < of.backbone(); ++m) {
        workloads::Module& module = of.modules[m];
        if (!module.trains()) continue;
        module.trainable = false;
        of.assumed.push_back(fmt::format("{}: no adapters, as {} places them by names of its own layers; frozen",
                                         module.name, of.built->framework));
    }
}

}  // namespace

void WorkloadOptions::add_trained(OptionTable& options) {
    options.text("train", trained, "PART,...",
                 "modules of the model that are trained, `projectors`, or `all`; the others are frozen: a stage of a "
                 "recipe (default: as the model's file says)");
    options.text("freeze", frozen, "PART,...",
                 "modules of the model that are frozen, or `projectors`; the others are as the model's file says");
    options.integer("lora", lora_rank, 1, 100'000,
                    "rank of adapters, which modules that are trained have in place of their weights; projectors are "
                    "frozen unless --train names them");
    options.text("lora-modules", lora_modules, "MODULE,...",
                 "that have them; others are trained as they are without (default: all that are trained)");
    options.text("lora-targets", lora_targets, "qkv,output,up,down",
                 "matrices of a layer beside which adapters lie (default: all)");
    options.choice("lora-experts", lora_experts, expert_adapters(),
                   "routed experts have none (default), each its own, or all of a GPU together");
    options.flag("lora-apart", lora_apart,
                 "queries, keys and values, gate and up, have a pair each, as in PEFT (default: with --target fsdp2 "
                 "and deepspeed)");
    options.flag(
        "reference", reference,
        "beside the model a copy as it was, which adapters and frozen modules share, runs every sample forward (DPO, "
        "KTO, GRPO); both answers of a pair are samples of their own");
    options.text(
        "teacher", teacher, "MODEL",
        "beside the model this one, frozen, runs every sample forward (distillation); it has the same kinds of "
        "modules and reads the same tokens");
}

bool WorkloadOptions::has_lora_apart() const {
    return lora_rank && (lora_apart || planner::target(target).launch.replicas_alone);
}

void WorkloadOptions::settle_adapters(workloads::Model& of) const {
    if (!lora_rank) {
        const std::array given{
            std::pair{"--lora-modules", !lora_modules.empty()}, std::pair{"--lora-targets", !lora_targets.empty()},
            std::pair{"--lora-experts", !lora_experts.empty()}, std::pair{"--lora-apart", lora_apart}};
        for (const auto& [option, is_given] : given)
            if (is_given) fail(ErrorKind::input, "{}: goes with --lora RANK", option);
        return;
    }
    Adapters adapters = adapters_of(*lora_rank, lora_targets);
    adapters.experts = expert_adapters_named(lora_experts);
    adapters.apart = has_lora_apart();
    if (trained.empty() && lora_modules.empty()) freeze_own_layers(of);
    const bool keeps_projectors = !trained.empty() && are_named(parts_of(trained), projectors);
    put_adapters(of, adapters, adapted_modules(of, lora_modules), keeps_projectors);
}

void WorkloadOptions::settle_trained(workloads::Model& of) const {
    if (!trained.empty() && !frozen.empty()) fail(ErrorKind::input, "--train, --freeze: allowed is one of the two");
    if (!trained.empty()) train(of, parts_of(trained));
    if (!frozen.empty()) freeze(of, parts_of(frozen));
    settle_adapters(of);
    of.reference = of.reference || reference;
    if (!teacher.empty()) teach(of, teacher);
    if (!workloads::model_beside(of)) return;
    const std::string line = what_is_assumed(of);
    if (std::find(of.assumed.begin(), of.assumed.end(), line) == of.assumed.end()) of.assumed.push_back(line);
}

}  // namespace pipeweaver::planner
