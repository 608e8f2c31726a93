// Two derivations of a layer's FLOPs, held equal: what its operators' sizes say, and what
// pipeweaver/workloads/counts.hpp says.
#include "tests/support/operator_flops.hpp"

#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace pipeweaver;
using namespace pipeweaver::emulator;

namespace {

bool reads_context(const workloads::Architecture& network) { return network.mmdit || network.cross_attention_dim > 0; }

// Whole tiles and whole windows on every GPU: nothing is padded.
PassShape unpadded(const workloads::Architecture& network) {
    const std::int64_t unit = 1024 * std::max<std::int64_t>(1, network.attention.window);
    PassShape shape{{unit, 2 * unit}};
    if (reads_context(network)) shape.context = {512, 1024};
    return shape;
}

bool fits(const workloads::Architecture& network, const Layout& layout) {
    workloads::Model model;
    model.modules = {{"module", network, workloads::PassUnit::microbatch, {}, true}};
    // Grouped keys that are fewer than the tensor parallel GPUs are copied.
    return !conflict(layout, model) && network.kv_heads % layout.tp == 0;
}

}  // namespace

TEST_CASE("the operators of every block of the catalogue have the FLOPs that the counts say") {
    const std::vector<Layout> layouts{{},
                                      {.tp = 2},
                                      {.cp = 2},
                                      {.tp = 2, .cp = 2},
                                      {.cp = 2, .context = ContextParallel::ring},
                                      {.tp = 2, .cp = 4, .context = ContextParallel::ring}};
    std::size_t blocks = 0;
    for (const auto& network : workloads::architectures()) {
        std::set<workloads::BlockKind> seen;
        const PassShape shape = unpadded(network);
        for (std::int64_t layer = 0; layer < network.layers; ++layer) {
            if (!seen.insert(workloads::block_kind(network, layer)).second) continue;
            for (const Layout& layout : layouts) {
                if (!fits(network, layout)) continue;
                CAPTURE(network.name);
                CAPTURE(layer);
                CAPTURE(layout.cp);
                const auto operators = layer_operators(network, shape, layout, PassKind::forward, layer);
                // Context parallel GPUs all make the vectors of every sample.
                const std::int64_t again = network.mmdit ? layout.cp - 1 : 0;
                const double copies = 2. * static_cast<double>(again) * static_cast<double>(shape.lengths.size()) *
                                      static_cast<double>(workloads::modulation_parameters(network, layer));
                // The rule of a linear attention is counted as a recurrence and works in chunks.
                const double rule = workloads::block_parts(network, layer).linear
                                        ? linear_rule_flops(*network.linear, static_cast<double>(shape.positions()))
                                        : 0;
                CHECK(static_cast<double>(layout.gpus_of_rank()) * testing::flops_of(operators) ==
                      doctest::Approx(copies + layer_flops(network, layer, shape) - rule).epsilon(1e-12));
                ++blocks;
            }
        }
    }
    CHECK(blocks > 300);
}
