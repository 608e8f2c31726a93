#include "pipeweaver/traces/replay.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace pipeweaver::traces {

namespace {

constexpr std::size_t most_tried = 12;  // pairs that are replayed in each round

// Kernels of one name behind kernels of another, and what their calls and gaps take in all.
struct Neighbours {
    std::uint32_t first = 0, second = 0;
    std::vector<std::uint32_t> nodes;  // the second ones
    std::int64_t saved_ns = 0;
};

std::vector<Neighbours> neighbours_of(const Graph& graph) {
    std::vector<std::uint32_t> launches(graph.nodes.size(), 0);
    for (const Node& node : graph.nodes)
        if (node.call != no_node) ++launches[node.call];
    std::map<std::pair<std::uint32_t, std::uint32_t>, Neighbours> found;
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
        const Node& node = graph.nodes[n];
        if (node.kind != Kind::memory || node.before == no_node || node.call == no_node) continue;
        const Node& before = graph.nodes[node.before];
        if (before.kind != Kind::memory || before.call == no_node || launches[node.call] != 1) continue;
        const auto waits = graph.waits_of(n);
        const bool alone = std::all_of(waits.begin(), waits.end(), [&](const Wait& wait) {
            return wait.on == node.call || (wait.on == node.before && !wait.from_start);
        });
        const bool follows =
            std::any_of(waits.begin(), waits.end(), [&](const Wait& wait) { return wait.on == node.before; });
        if (!alone || !follows) continue;
        Neighbours& pair = found[{before.name, node.name}];
        pair.first = before.name;
        pair.second = node.name;
        pair.nodes.push_back(n);
        pair.saved_ns += graph.nodes[node.call].duration_ns + node.start_ns - before.start_ns - before.duration_ns;
    }
    std::vector<Neighbours> all;
    all.reserve(found.size());
    for (auto& [names, pair] : found) all.push_back(std::move(pair));
    std::sort(all.begin(), all.end(), [](const Neighbours& a, const Neighbours& b) {
        return std::tuple(-a.saved_ns, a.first, a.second) < std::tuple(-b.saved_ns, b.first, b.second);
    });
    if (all.size() > most_tried) all.resize(most_tried);
    return all;
}

}  // namespace

std::vector<Fusion> fusions_of(const Graph& graph, std::size_t most) {
    auto pairs = neighbours_of(graph);
    Changes changes;
    changes.fused.assign(graph.nodes.size(), false);
    std::vector<Fusion> chosen;
    std::int64_t span = replay(graph).span_ns;
    while (chosen.size() < most) {
        auto best = pairs.end();
        for (auto pair = pairs.begin(); pair != pairs.end(); ++pair) {
            for (const std::uint32_t n : pair->nodes) changes.fused[n] = true;
            const std::int64_t with = replay(graph, changes).span_ns;
            for (const std::uint32_t n : pair->nodes) changes.fused[n] = false;
            if (with >= span) continue;
            span = with;
            best = pair;
        }
        if (best == pairs.end()) break;
        for (const std::uint32_t n : best->nodes) changes.fused[n] = true;
        chosen.push_back({best->first, best->second, static_cast<std::int64_t>(best->nodes.size()), span});
        pairs.erase(best);
    }
    return chosen;
}

}  // namespace pipeweaver::traces
