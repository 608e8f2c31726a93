#include "pipeweaver/emulator/layout.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace pipeweaver::emulator {

using workloads::Model;
using workloads::Module;

namespace {

bool is_whole(const Module& module) { return module.lies.tensor == workloads::OnTensorRanks::whole; }

bool divides_all(std::int64_t tp, const Model& model) {
    return std::all_of(model.modules.begin(), model.modules.end(), [&](const Module& module) {
        if (is_whole(module)) return true;
        const auto& linear = module.architecture.linear;
        return heads_on(model, module, tp) % tp == 0 && module.architecture.ffn % tp == 0 &&
               (!linear || linear->key_heads % tp == 0);
    });
}

std::optional<LayoutConflict> undivided(const Module& module, Indivisible what, std::int64_t size, std::int64_t tp,
                                        const Model& model) {
    if (size % tp == 0 || is_whole(module)) return std::nullopt;
    std::int64_t fits = std::min(tp, size);
    while (!divides_all(fits, model)) --fits;
    return LayoutConflict{
        what, fmt::format("--tp: {} does not divide the {} {} of module '{}'; the next smaller that divides those of "
                          "every module is {}",
                          tp, size, what == Indivisible::heads ? "attention heads" : "feed-forward columns",
                          module.name, fits)};
}

// Tensor parallelism shares out key heads (Mamba-2: groups) with their value heads, as Megatron-LM does.
std::optional<LayoutConflict> undivided_keys(const Module& module, std::int64_t tp, const Model& model) {
    const auto& linear = module.architecture.linear;
    if (!linear || linear->key_heads % tp == 0) return std::nullopt;
    std::int64_t fits = std::min(tp, linear->key_heads);
    while (!divides_all(fits, model)) --fits;
    return LayoutConflict{
        Indivisible::heads,
        fmt::format("--tp: {} does not divide the {} key heads (Mamba-2: groups) of the linear attention of module "
                    "'{}'; the next smaller that divides the heads of every module is {}",
                    tp, linear->key_heads, module.name, fits)};
}

// Whole sequences of part of the heads: every GPU of a rank needs value heads of its own, and its keys either a whole
// number of heads or one copied head (Megatron-LM, MambaContextParallel).
bool exchanges_linear(const Module& module, std::int64_t tp, std::int64_t cp) {
    const auto& linear = module.architecture.linear;
    if (!linear || cp == 1) return true;
    const std::int64_t keys = linear->key_heads / tp;
    return linear->value_heads % (tp * cp) == 0 && (keys % cp == 0 || cp % keys == 0);
}

std::optional<LayoutConflict> unexchanged_linear(const Module& module, const Layout& layout, const Model& model) {
    if (exchanges_linear(module, layout.tp, layout.cp)) return std::nullopt;
    const auto fit = [&](std::int64_t cp) {
        return std::all_of(model.modules.begin(), model.modules.end(),
                           [&](const Module& other) { return exchanges_linear(other, layout.tp, cp); });
    };
    std::int64_t fits = layout.cp - 1;
    while (fits > 1 && !fit(fits)) --fits;
    return LayoutConflict{
        Indivisible::context,
        fmt::format("--cp: linear attention is exchanged by heads whatever --context is: tp {} * cp {} does not share "
                    "out the {} value heads and {} key heads of module '{}'; the next smaller that does is --cp {}",
                    layout.tp, layout.cp, module.architecture.linear->value_heads,
                    module.architecture.linear->key_heads, module.name, fits)};
}

// Its sequences lie whole on a context parallel group, which exchanges nothing.
bool keeps_sequences(const Module& module) { return module.lies.context != workloads::OnContextRanks::split; }

// Of a module with a number of its own: it divides cp, and the heads are shared out evenly.
std::optional<LayoutConflict> unshared_heads(const Module& module, std::int64_t heads, const Layout& layout) {
    std::vector<std::string> fit;
    for (std::int64_t exchanging = 1; exchanging <= layout.cp; ++exchanging)
        if (layout.cp % exchanging == 0 && heads % (layout.tp * exchanging) == 0)
            fit.push_back(fmt::format("{}x{}", exchanging, layout.cp / exchanging));
    if (layout.cp % module.ulysses == 0 && heads % (layout.tp * module.ulysses) == 0) return std::nullopt;
    return LayoutConflict{
        Indivisible::context,
        fmt::format(
            "--module-context: {} GPUs that exchange heads of module '{}' must divide --cp {}, and with tp {} its "
            "{} heads; allowed are {}",
            module.ulysses, module.name, layout.cp, layout.tp, heads, fmt::join(fit, ", "))};
}

// All-to-alls give every GPU of a rank its own heads.
std::optional<LayoutConflict> unexchanged(const Module& module, const Layout& layout, const Model& model) {
    if (keeps_sequences(module)) return std::nullopt;
    const std::int64_t heads = heads_on(model, module, layout.tp);
    if (module.ulysses > 0) return unshared_heads(module, heads, layout);
    if (layout.context == ContextParallel::ring) return std::nullopt;
    if (heads % layout.gpus_of_rank() == 0) return std::nullopt;
    const auto divides = [&](std::int64_t cp) {
        return std::all_of(model.modules.begin(), model.modules.end(), [&](const Module& other) {
            return keeps_sequences(other) || heads_on(model, other, layout.tp) % (layout.tp * cp) == 0;
        });
    };
    std::int64_t fits = layout.cp - 1;  // 1 does: tp divides all heads
    while (fits > 1 && !divides(fits)) --fits;
    return LayoutConflict{
        Indivisible::context,
        fmt::format("--cp: tp {} * cp {} = {} does not divide the {} attention heads of module '{}'; the next smaller "
                    "that does those of every module is --cp {}, and --context ring takes any",
                    layout.tp, layout.cp, layout.gpus_of_rank(), heads, module.name, fits)};
}

// Experts that every module with experts has in common; 0: there are none.
std::int64_t common_experts(const Model& model) {
    std::int64_t common = 0;
    for (const Module& module : model.modules)
        if (module.architecture.moe) common = std::gcd(common, module.architecture.moe->experts);
    return common;
}

// The GPUs that an expert is split over.
std::optional<LayoutConflict> unsplit(const Layout& layout, const Model& model, std::int64_t gpus_of_expert) {
    const auto no = [&](const std::string& what) {
        return LayoutConflict{Indivisible::experts, fmt::format("the recipe's experts.tensor_parallel: {} does not "
                                                                "divide {}",
                                                                gpus_of_expert, what)};
    };
    const std::int64_t gpus = layout.gpus_of_rank() * layout.dp;
    if (gpus % gpus_of_expert != 0)
        return no(fmt::format("the tp {} * cp {} * dp {} = {} GPUs of a pipeline rank", layout.tp, layout.cp, layout.dp,
                              gpus));
    for (const Module& module : model.modules)
        if (const auto& moe = module.architecture.moe; moe && moe->expert_ffn % gpus_of_expert != 0)
            return no(fmt::format("the {} columns of an expert of module '{}'", moe->expert_ffn, module.name));
    return std::nullopt;
}

std::optional<LayoutConflict> unshared(const Layout& layout, const Model& model, std::int64_t gpus_of_expert) {
    const std::int64_t common = common_experts(model);
    if (common > 0)
        if (auto found = unsplit(layout, model, gpus_of_expert)) return found;
    if (layout.ep == 1) return std::nullopt;
    const auto no = [](std::string message) { return LayoutConflict{Indivisible::experts, std::move(message)}; };
    if (common == 0)
        return no(fmt::format("--ep: {} GPUs have nothing to share out: the model '{}' has no experts; allowed is 1",
                              layout.ep, model.name));
    // Of so many GPUs each, where an expert is split.
    const std::int64_t gpus = layout.gpus_of_rank() * layout.dp, groups = gpus / gpus_of_expert;
    std::int64_t fits = std::min(layout.ep, common);
    while (common % fits != 0 || groups % fits != 0) --fits;
    const auto next = fmt::format("the next smaller that divides them and the experts of every module is {}", fits);
    const auto split = gpus_of_expert > 1 ? fmt::format(" times the {} GPUs of an expert", gpus_of_expert) : "";
    if (groups % layout.ep != 0)
        return no(fmt::format("--ep: {}{} does not divide the tp {} * cp {} * dp {} = {} GPUs of a pipeline rank; {}",
                              layout.ep, split, layout.tp, layout.cp, layout.dp, gpus, next));
    for (const Module& module : model.modules)
        if (const auto& moe = module.architecture.moe; moe && moe->experts % layout.ep != 0)
            return no(
                fmt::format("--ep: {} does not divide the {} experts of module '{}'; the next smaller that "
                            "divides those of every module and the {} GPUs of a pipeline rank is {}",
                            layout.ep, moe->experts, module.name, gpus, fits));
    return std::nullopt;
}

}  // namespace

std::int64_t default_ep(const Layout& layout, const Model& model, std::int64_t gpus_of_expert) {
    const std::int64_t common = common_experts(model);
    if (common == 0 || layout.gpus_of_rank() % gpus_of_expert != 0) return 1;
    return std::gcd(common, layout.gpus_of_rank() / gpus_of_expert);
}

std::string name_of(const Layout& layout) {
    const auto above_one = [](std::string_view before, std::int64_t degree) {
        return degree > 1 ? fmt::format("{}{}", before, degree) : std::string();
    };
    return fmt::format("tp {}{} x pp {} x dp {}{}", layout.tp, above_one(" x cp ", layout.cp), layout.pp, layout.dp,
                       above_one(", ep ", layout.ep));
}

std::string product_of(const Layout& layout) {
    const auto cp = layout.cp > 1 ? fmt::format(" * --cp {}", layout.cp) : std::string();
    return fmt::format("--tp {}{} * --pp {} * --dp {} = {}", layout.tp, cp, layout.pp, layout.dp, layout.gpus());
}

namespace {

// More context parallel groups than the framework builds the model for.
std::optional<LayoutConflict> unbuilt(const Layout& layout, const Model& model) {
    if (!model.built || model.built->most_cp == 0 || layout.cp <= model.built->most_cp) return std::nullopt;
    return LayoutConflict{Indivisible::sequences,
                          fmt::format("--cp: {} builds '{}' for {} context parallel group{} at most ({}); allowed with "
                                      "--encoders split is any",
                                      model.built->framework, model.name, model.built->most_cp,
                                      model.built->most_cp == 1 ? "" : "s", model.built->source)};
}

}  // namespace

std::optional<LayoutConflict> conflict(const Layout& layout, const Model& model, std::int64_t gpus_of_expert) {
    if (auto found = unbuilt(layout, model)) return found;
    for (const auto& module : model.modules) {
        const auto& network = module.architecture;
        if (auto found = undivided(module, Indivisible::heads, heads_on(model, module, layout.tp), layout.tp, model))
            return found;
        if (auto found = undivided(module, Indivisible::columns, network.ffn, layout.tp, model)) return found;
        if (auto found = undivided_keys(module, layout.tp, model)) return found;
        if (auto found = unexchanged(module, layout, model)) return found;
        if (auto found = unexchanged_linear(module, layout, model)) return found;
        if (network.layers < layout.pp)
            return LayoutConflict{Indivisible::layers,
                                  fmt::format("--pp: {} ranks are more than the {} layers of module '{}'", layout.pp,
                                              network.layers, module.name)};
    }
    if (auto found = unshared(layout, model, gpus_of_expert); found || model.teacher.empty()) return found;
    auto of_teacher = conflict(layout, *workloads::model_beside(model), gpus_of_expert);
    // Behind "--tp: ".
    if (of_teacher)
        of_teacher->message.insert(of_teacher->message.find(": ") + 2,
                                   fmt::format("of the teacher '{}': ", model.teacher.front().name));
    return of_teacher;
}

std::optional<std::string> why_not(const Layout& layout, const workloads::Cluster& cluster, const Model& model,
                                   std::int64_t gpus_of_expert) {
    if (layout.gpus() != cluster.gpus)
        return fmt::format("{} GPUs, the cluster '{}' has {}", product_of(layout), cluster.name, cluster.gpus);
    if (auto found = conflict(layout, model, gpus_of_expert)) return std::move(found->message);
    return std::nullopt;
}

void check(const Layout& layout, const workloads::Cluster& cluster, const Model& model, std::int64_t gpus_of_expert) {
    if (const auto why = why_not(layout, cluster, model, gpus_of_expert)) fail(ErrorKind::input, "{}", *why);
}

}  // namespace pipeweaver::emulator
