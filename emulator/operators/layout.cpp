#include "pipeweaver/emulator/layout.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::emulator {

using workloads::Model;
using workloads::Module;

namespace {

bool divides_all(std::int64_t tp, const Model& model) {
    return std::all_of(model.modules.begin(), model.modules.end(), [&](const Module& module) {
        return module.architecture.heads % tp == 0 && module.architecture.ffn % tp == 0;
    });
}

std::optional<LayoutConflict> undivided(const Module& module, Indivisible what, std::int64_t size, std::int64_t tp,
                                        const Model& model) {
    if (size % tp == 0) return std::nullopt;
    std::int64_t fits = std::min(tp, size);
    while (!divides_all(fits, model)) --fits;
    return LayoutConflict{
        what, fmt::format("--tp: {} does not divide the {} {} of module '{}'; the next smaller that divides those of "
                          "every module is {}",
                          tp, size, what == Indivisible::heads ? "attention heads" : "feed-forward columns",
                          module.name, fits)};
}

// All-to-alls give every GPU of a rank its own heads.
std::optional<LayoutConflict> unexchanged(const Module& module, const Layout& layout, const Model& model) {
    const auto& network = module.architecture;
    if (layout.context == ContextParallel::ring || network.heads % layout.gpus_of_rank() == 0) return std::nullopt;
    const auto divides = [&](std::int64_t cp) {
        return std::all_of(model.modules.begin(), model.modules.end(),
                           [&](const Module& other) { return other.architecture.heads % (layout.tp * cp) == 0; });
    };
    std::int64_t fits = layout.cp - 1;  // 1 does: tp divides all heads
    while (fits > 1 && !divides(fits)) --fits;
    return LayoutConflict{
        Indivisible::context,
        fmt::format("--cp: tp {} * cp {} = {} does not divide the {} attention heads of module '{}'; the next smaller "
                    "that does those of every module is --cp {}, and --context ring takes any",
                    layout.tp, layout.cp, layout.gpus_of_rank(), network.heads, module.name, fits)};
}

// Experts that every module with experts has in common; 0: there are none.
std::int64_t common_experts(const Model& model) {
    std::int64_t common = 0;
    for (const Module& module : model.modules)
        if (module.architecture.moe) common = std::gcd(common, module.architecture.moe->experts);
    return common;
}

std::optional<LayoutConflict> unshared(const Layout& layout, const Model& model) {
    if (layout.ep == 1) return std::nullopt;
    const auto no = [](std::string message) { return LayoutConflict{Indivisible::experts, std::move(message)}; };
    const std::int64_t common = common_experts(model), gpus = layout.gpus_of_rank() * layout.dp;
    if (common == 0)
        return no(fmt::format("--ep: {} GPUs have nothing to share out: the model '{}' has no experts; allowed is 1",
                              layout.ep, model.name));
    std::int64_t fits = std::min(layout.ep, common);
    while (common % fits != 0 || gpus % fits != 0) --fits;
    const auto next = fmt::format("the next smaller that divides them and the experts of every module is {}", fits);
    if (gpus % layout.ep != 0)
        return no(fmt::format("--ep: {} does not divide the tp {} * cp {} * dp {} = {} GPUs of a pipeline rank; {}",
                              layout.ep, layout.tp, layout.cp, layout.dp, gpus, next));
    for (const Module& module : model.modules)
        if (const auto& moe = module.architecture.moe; moe && moe->experts % layout.ep != 0)
            return no(
                fmt::format("--ep: {} does not divide the {} experts of module '{}'; the next smaller that "
                            "divides those of every module and the {} GPUs of a pipeline rank is {}",
                            layout.ep, moe->experts, module.name, gpus, fits));
    return std::nullopt;
}

}  // namespace

std::int64_t default_ep(const Layout& layout, const Model& model) {
    const std::int64_t common = common_experts(model);
    return common == 0 ? 1 : std::gcd(common, layout.gpus_of_rank());
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

std::optional<LayoutConflict> conflict(const Layout& layout, const Model& model) {
    for (const auto& module : model.modules) {
        const auto& network = module.architecture;
        if (auto found = undivided(module, Indivisible::heads, network.heads, layout.tp, model)) return found;
        if (auto found = undivided(module, Indivisible::columns, network.ffn, layout.tp, model)) return found;
        if (auto found = unexchanged(module, layout, model)) return found;
        if (network.layers < layout.pp)
            return LayoutConflict{Indivisible::layers,
                                  fmt::format("--pp: {} ranks are more than the {} layers of module '{}'", layout.pp,
                                              network.layers, module.name)};
    }
    return unshared(layout, model);
}

void check(const Layout& layout, const workloads::Cluster& cluster, const Model& model) {
    if (layout.gpus() != cluster.gpus)
        fail(ErrorKind::input, "{} GPUs, the cluster '{}' has {}", product_of(layout), cluster.name, cluster.gpus);
    if (const auto found = conflict(layout, model)) throw Error(ErrorKind::input, found->message);
}

}  // namespace pipeweaver::emulator
