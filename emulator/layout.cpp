#include "pipeweaver/emulator/layout.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/operators.hpp"

#include <array>
#include <numeric>

namespace pipeweaver::emulator {

namespace {

void require_divided(const workloads::Module& module, std::string_view what, std::int64_t size, std::int64_t tp) {
    if (size % tp == 0) return;
    std::int64_t fits = tp;
    while (size % fits != 0) --fits;
    fail(ErrorKind::input, "--tp: {} does not divide the {} {} of module '{}'; the next smaller that does is {}", tp,
         size, what, module.name, fits);
}

}  // namespace

void check(const Layout& layout, const workloads::Cluster& cluster, const workloads::Model& model) {
    require_supported(model);
    if (layout.gpus() != cluster.gpus)
        fail(ErrorKind::input, "--tp {} * --pp {} * --dp {} = {} GPUs, the cluster '{}' has {}", layout.tp, layout.pp,
             layout.dp, layout.gpus(), cluster.name, cluster.gpus);
    for (const auto& module : model.modules) {
        const auto& network = module.architecture;
        require_divided(module, "attention heads", network.heads, layout.tp);
        require_divided(module, "feed-forward columns", network.ffn, layout.tp);
        if (network.layers < layout.pp)
            fail(ErrorKind::input, "--pp: {} ranks are more than the {} layers of module '{}'", layout.pp,
                 network.layers, module.name);
    }
}

}  // namespace pipeweaver::emulator
