#include "pipeweaver/traces/replay.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pipeweaver::traces {

namespace {

std::int64_t scaled(std::int64_t ns, double factor) {
    return factor == 1 ? ns : std::llround(static_cast<double>(ns) * factor);
}

class Replaying {
public:
    Replaying(const Graph& graph, const Changes& changes)
        : graph_(graph), changes_(changes), of_rank_(graph.ranks.size(), 1), saved_(graph.nodes.size(), false) {
        for (std::size_t r = 0; r < graph.ranks.size(); ++r) {
            const auto found = changes.factors.of_rank.find(graph.ranks[r].rank);
            if (found != changes.factors.of_rank.end()) of_rank_[r] = found->second;
        }
        for (std::size_t n = 0; n < changes.fused.size(); ++n)
            if (changes.fused[n] && graph.nodes[n].call != no_node) saved_[graph.nodes[n].call] = true;
    }

    Replayed run() {
        Replayed all;
        all.start_ns.reserve(graph_.nodes.size());
        all.end_ns.reserve(graph_.nodes.size());
        all.after.reserve(graph_.nodes.size());
        for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
            const auto [start, after] = start_of(n, all);
            all.start_ns.push_back(start);
            all.after.push_back(after);
            all.end_ns.push_back(start + duration_of(n));
            all.span_ns = std::max(all.span_ns, all.end_ns.back());
        }
        return all;
    }

private:
    double factor_of(Kind kind) const { return changes_.factors.of_kind[static_cast<std::size_t>(kind)]; }

    std::int64_t duration_of(std::size_t n) const {
        const Node& node = graph_.nodes[n];
        if (saved_[n]) return 0;
        const double factor = factor_of(node.kind) * (is_work(node.kind) ? of_rank_[node.rank] : 1);
        return scaled(node.duration_ns, factor) + (changes_.longer_ns.empty() ? 0 : changes_.longer_ns[n]);
    }

    std::pair<std::int64_t, std::uint32_t> start_of(std::size_t n, const Replayed& before) const {
        const Node& node = graph_.nodes[n];
        const bool fused = !changes_.fused.empty() && changes_.fused[n];
        std::int64_t start = 0;
        std::uint32_t after = no_node;
        for (std::uint32_t w = graph_.first_wait[n]; w < graph_.first_wait[n + 1]; ++w) {
            const Wait& wait = graph_.waits[w];
            if (fused && wait.on == node.call) continue;
            const std::int64_t lag = fused && wait.on == node.before ? 0 : scaled(wait.lag_ns, factor_of(wait.kind));
            const std::int64_t ready = (wait.from_start ? before.start_ns : before.end_ns)[wait.on] + lag;
            if (after == no_node || ready > start) {
                start = ready;
                after = w;
            }
        }
        return after == no_node ? std::pair(node.start_ns, no_node) : std::pair(start, after);
    }

    const Graph& graph_;
    const Changes& changes_;
    std::vector<double> of_rank_;
    std::vector<bool> saved_;  // calls of fused kernels
};

}  // namespace

Replayed replay(const Graph& graph, const Changes& changes) { return Replaying(graph, changes).run(); }

std::vector<std::int64_t> slack_of(const Graph& graph, const Replayed& replayed) {
    // By node how late it may begin and end. Lags are those of the graph: `replayed` is unchanged.
    std::vector<std::int64_t> begin(graph.nodes.size(), replayed.span_ns), end(begin);
    for (std::size_t n = graph.nodes.size(); n-- > 0;) {
        begin[n] = std::min(begin[n], end[n] - (replayed.end_ns[n] - replayed.start_ns[n]));
        for (const Wait& wait : graph.waits_of(n)) {
            auto& latest = (wait.from_start ? begin : end)[wait.on];
            latest = std::min(latest, begin[n] - wait.lag_ns);
        }
    }
    std::vector<std::int64_t> slack(graph.nodes.size());
    for (std::size_t n = 0; n < slack.size(); ++n) slack[n] = end[n] - replayed.end_ns[n];
    return slack;
}

CriticalPath critical_path(const Graph& graph, const Replayed& replayed) {
    CriticalPath path{{}, std::vector<std::int64_t>(graph.ranks.size(), 0), 0};
    const auto add = [&](Kind kind, std::int64_t ns) { path.of_kind[static_cast<std::size_t>(kind)] += ns; };
    auto n = static_cast<std::size_t>(std::max_element(replayed.end_ns.begin(), replayed.end_ns.end()) -
                                      replayed.end_ns.begin());
    for (bool whole = true;;) {
        const Node& node = graph.nodes[n];
        const std::int64_t took = whole ? replayed.end_ns[n] - replayed.start_ns[n] : 0;
        add(node.kind, took);
        if (is_work(node.kind)) path.of_rank[node.rank] += took;
        if (replayed.after[n] == no_node) break;
        const Wait& wait = graph.waits[replayed.after[n]];
        add(wait.kind, replayed.start_ns[n] - (wait.from_start ? replayed.start_ns : replayed.end_ns)[wait.on]);
        path.kept_ns += wait.kept_ns;
        whole = !wait.from_start;
        n = wait.on;
    }
    add(Kind::idle, replayed.start_ns[n]);
    path.kept_ns += path.of_kind[static_cast<std::size_t>(Kind::idle)];
    return path;
}

}  // namespace pipeweaver::traces
