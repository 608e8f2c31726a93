#include "pipeweaver/emulator/layout.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/operators.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

namespace {

bool divides_all(std::int64_t tp, const workloads::Model& model) {
    return std::all_of(model.modules.begin(), model.modules.end(), [&](const workloads::Module& module) {
        return module.architecture.heads % tp == 0 && module.architecture.ffn % tp == 0;
    });
}

std::optional<LayoutConflict> undivided(const workloads::Module& module, Indivisible what, std::int64_t size,
                                        std::int64_t tp, const workloads::Model& model) {
    if (size % tp == 0) return std::nullopt;
    std::int64_t fits = std::min(tp, size);
    while (!divides_all(fits, model)) --fits;
    return LayoutConflict{
        what, fmt::format("--tp: {} does not divide the {} {} of module '{}'; the next smaller that divides those of "
                          "every module is {}",
                          tp, size, what == Indivisible::heads ? "attention heads" : "feed-forward columns",
                          module.name, fits)};
}

}  // namespace

std::optional<LayoutConflict> conflict(const Layout& layout, const workloads::Model& model) {
    for (const auto& module : model.modules) {
        const auto& network = module.architecture;
        if (auto found = undivided(module, Indivisible::heads, network.heads, layout.tp, model)) return found;
        if (auto found = undivided(module, Indivisible::columns, network.ffn, layout.tp, model)) return found;
        if (network.layers < layout.pp)
            return LayoutConflict{Indivisible::layers,
                                  fmt::format("--pp: {} ranks are more than the {} layers of module '{}'", layout.pp,
                                              network.layers, module.name)};
    }
    return std::nullopt;
}

void check(const Layout& layout, const workloads::Cluster& cluster, const workloads::Model& model) {
    require_supported(model);
    if (layout.gpus() != cluster.gpus)
        fail(ErrorKind::input, "--tp {} * --pp {} * --dp {} = {} GPUs, the cluster '{}' has {}", layout.tp, layout.pp,
             layout.dp, layout.gpus(), cluster.name, cluster.gpus);
    if (const auto found = conflict(layout, model)) throw Error(ErrorKind::input, found->message);
}

}  // namespace pipeweaver::emulator
