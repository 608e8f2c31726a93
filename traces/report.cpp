#include "pipeweaver/traces/report.hpp"

#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace pipeweaver::traces {

namespace {

using Writer = nlohmann::ordered_json;

constexpr std::size_t most_fusions = 5, most_listed = 10, longest_name = 58;
constexpr double slow_share = 0.01;  // of the step, by which a rank that comes last keeps others waiting

double change_of(std::int64_t ns, std::int64_t from_ns) {
    return static_cast<double>(ns - from_ns) / static_cast<double>(std::max<std::int64_t>(1, from_ns));
}

double share_of(std::int64_t ns, std::int64_t of_ns) {
    return static_cast<double>(ns) / static_cast<double>(std::max<std::int64_t>(1, of_ns));
}

std::string time_text(std::int64_t ns) { return human(Duration{ns}); }
std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string change_text(double change) { return fmt::format("{:+.1f} %", 100 * change); }

StepPath path_of(const Graph& graph, const Replayed& replayed) {
    return {replayed.span_ns, critical_path(graph, replayed)};
}

std::vector<KernelShare> unknown_kernels(const Graph& graph) {
    std::map<std::uint32_t, KernelShare> by_name;
    for (const Node& node : graph.nodes) {
        if (node.kind != Kind::unknown) continue;
        KernelShare& one = by_name[node.name];
        one.name = node.name;
        ++one.count;
        one.total_ns += node.duration_ns;
    }
    std::vector<KernelShare> all;
    all.reserve(by_name.size());
    for (const auto& [name, one] : by_name) all.push_back(one);
    std::sort(all.begin(), all.end(), [](const KernelShare& a, const KernelShare& b) {
        return std::tuple(-a.total_ns, a.name) < std::tuple(-b.total_ns, b.name);
    });
    return all;
}

// Which has more work than any other by a twentieth, and more of the path's than all others.
std::optional<std::size_t> longest_rank(const Findings& all) {
    const auto& ranks = all.graph.ranks;
    std::size_t longest = 0;
    std::int64_t next = 0, on_path = 0;
    for (std::size_t r = 1; r < ranks.size(); ++r)
        if (ranks[r].work_ns > ranks[longest].work_ns) longest = r;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (r != longest) next = std::max(next, ranks[r].work_ns);
        on_path += all.replayed.path.of_rank[r];
    }
    const bool is_clear = ranks.size() > 1 && 20 * (ranks[longest].work_ns - next) >= next;
    return is_clear && 2 * all.replayed.path.of_rank[longest] > on_path ? std::optional(longest) : std::nullopt;
}

// It comes last to at least half of its collectives, and that costs.
bool is_slow(const Findings& all, const GraphRank& rank) {
    return all.graph.ranks.size() > 1 && 2 * rank.last >= rank.meetings && rank.last > 0 &&
           share_of(rank.kept_waiting_ns, all.replayed.span_ns) >= slow_share;
}

std::string name_text(const Graph& graph, std::uint32_t name) {
    std::string text = graph.names[name];
    if (text.starts_with("void ")) text.erase(0, 5);
    if (text.size() > longest_name) text = text.substr(0, longest_name - 3) + "...";
    return printable(text);
}

std::string heading_text(const Findings& all) {
    const Graph& graph = all.graph;
    std::string text =
        fmt::format("{} rank{}: recorded {}, replayed {} ({})\n", graph.ranks.size(),
                    graph.ranks.size() == 1 ? "" : "s", time_text(graph.span_ns), time_text(all.replayed.span_ns),
                    change_text(change_of(all.replayed.span_ns, graph.span_ns)));
    if (all.what_if)
        text += fmt::format("what if {}: {} ({})\n", all.factors, time_text(all.what_if->span_ns),
                            change_text(change_of(all.what_if->span_ns, all.replayed.span_ns)));
    if (all.beside)
        text += fmt::format("emulated: {} ({})\n", time_text(all.beside->span_ns),
                            change_text(change_of(all.beside->span_ns, all.replayed.span_ns)));
    return text;
}

std::string path_text(const Findings& all) {
    TextTable table({{"critical path", true, 16},
                     {"recorded", false, 14},
                     {"of the step", false, 14},
                     {"what if", false, 14},
                     {"emulated", false, 14}},
                    0);
    for (std::size_t k = 0; k < kinds; ++k) {
        const auto kind = static_cast<Kind>(k);
        const std::int64_t ns = all.replayed.path.of_kind[k];
        const std::int64_t then = all.what_if ? all.what_if->path.of_kind[k] : 0,
                           own = all.beside ? all.beside->path.of_kind[k] : 0;
        if (ns == 0 && then == 0 && own == 0) continue;
        table.add({std::string(name_of(kind)), time_text(ns), percent_text(share_of(ns, all.replayed.span_ns)),
                   all.what_if ? time_text(then) : "", all.beside ? time_text(own) : ""});
    }
    return "\n" + table.text() +
           fmt::format("{} of the step are gaps that no dependency explains, kept as they were recorded\n",
                       percent_text(share_of(all.replayed.path.kept_ns, all.replayed.span_ns))) +
           fmt::format("{} of the ranks' {} of work could take longer while the step does not\n",
                       percent_text(share_of(all.loose_ns, all.work_ns)), time_text(all.work_ns));
}

std::string ranks_text(const Findings& all) {
    const Graph& graph = all.graph;
    const bool has_clocks = graph.ranks.size() > 1 && !graph.is_emulated;
    TextTable table({{"rank", true, 6},
                     {"work", false, 12},
                     {"on the path", false, 13},
                     {"communication", false, 15},
                     {"waits", false, 11},
                     {"comes last", false, 12},
                     {"keeps waiting", false, 15},
                     {"clock", false, 15}},
                    0);
    for (std::size_t r = 0; r < graph.ranks.size(); ++r) {
        const GraphRank& one = graph.ranks[r];
        const bool meets = one.meetings > 0;
        table.add({std::to_string(one.rank), time_text(one.work_ns), time_text(all.replayed.path.of_rank[r]),
                   time_text(one.communication_ns), meets ? time_text(one.waits_ns) : "",
                   meets ? fmt::format("{} of {}", one.last, one.meetings) : "",
                   meets ? time_text(one.kept_waiting_ns) : "",
                   !has_clocks ? ""
                   : r == 0    ? "reference"
                               : "+- " + time_text(one.uncertainty_ns)});
    }
    std::string text = "\n" + table.text();
    for (const GraphRank& one : graph.ranks)
        if (is_slow(all, one))
            text +=
                fmt::format("slow: rank {} comes last to {} of {} collectives and keeps the others waiting for {}\n",
                            one.rank, one.last, one.meetings, time_text(one.kept_waiting_ns));
    if (const auto longest = longest_rank(all))
        text += fmt::format("rank {} has most of the work, {}, and most of the path's\n", graph.ranks[*longest].rank,
                            time_text(graph.ranks[*longest].work_ns));
    if (graph.unmatched > 0)
        text += fmt::format("{} kernels of communication are kept as recorded, with their waits for other ranks\n",
                            graph.unmatched);
    if (graph.world > static_cast<std::int64_t>(graph.ranks.size()))
        text += fmt::format("one rank of {}: nothing is known of the others\n", graph.world);
    return text;
}

std::int64_t total_of(const std::vector<KernelShare>& kernels) {
    std::int64_t total = 0;
    for (const KernelShare& one : kernels) total += one.total_ns;
    return total;
}

std::string unknown_text(const Findings& all) {
    std::string text =
        fmt::format("\nunknown kernels: {} of the work\n", percent_text(share_of(total_of(all.unknown), all.work_ns)));
    for (std::size_t i = 0; i < std::min(most_listed, all.unknown.size()); ++i)
        text += fmt::format("  {:<58}{:>8}{:>14}\n", name_text(all.graph, all.unknown[i].name), all.unknown[i].count,
                            time_text(all.unknown[i].total_ns));
    return text;
}

std::string fusions_text(const Findings& all) {
    if (all.fusions.empty()) return "no two neighbours are worth fusing for their launches\n";
    std::string text = "\nfused, launches and gaps alone saved, one after the other:\n";
    for (const Fusion& one : all.fusions)
        text += fmt::format("  {}\n    + {}\n    {} times: {} ({})\n", name_text(all.graph, one.first),
                            name_text(all.graph, one.second), one.count, time_text(one.span_ns),
                            change_text(change_of(one.span_ns, all.replayed.span_ns)));
    return text;
}

Writer path_json(const StepPath& step) {
    Writer path = Writer::array();
    for (std::size_t k = 0; k < kinds; ++k)
        if (step.path.of_kind[k] != 0)
            path.push_back({{"kind", name_of(static_cast<Kind>(k))},
                            {"ns", step.path.of_kind[k]},
                            {"share", share_of(step.path.of_kind[k], step.span_ns)}});
    return {{"step_ns", step.span_ns}, {"critical_path", std::move(path)}};
}

Writer ranks_json(const Findings& all) {
    Writer ranks = Writer::array();
    const auto longest = longest_rank(all);
    for (std::size_t r = 0; r < all.graph.ranks.size(); ++r) {
        const GraphRank& one = all.graph.ranks[r];
        ranks.push_back({{"rank", one.rank},
                         {"file", one.file},
                         {"clock_offset_ns", one.offset_ns},
                         {"clock_uncertainty_ns", one.uncertainty_ns},
                         {"work_ns", one.work_ns},
                         {"path_ns", all.replayed.path.of_rank[r]},
                         {"communication_ns", one.communication_ns},
                         {"waits_ns", one.waits_ns},
                         {"collectives", one.meetings},
                         {"last", one.last},
                         {"keeps_waiting_ns", one.kept_waiting_ns},
                         {"slow", is_slow(all, one)},
                         {"longest", longest == r}});
    }
    return ranks;
}

Writer unknown_json(const Findings& all) {
    Writer kernels = Writer::array();
    for (const KernelShare& one : all.unknown)
        kernels.push_back({{"name", all.graph.names[one.name]}, {"count", one.count}, {"ns", one.total_ns}});
    return {{"share", share_of(total_of(all.unknown), all.work_ns)}, {"kernels", std::move(kernels)}};
}

Writer fusions_json(const Findings& all) {
    Writer fusions = Writer::array();
    for (const Fusion& one : all.fusions)
        fusions.push_back({{"first", all.graph.names[one.first]},
                           {"second", all.graph.names[one.second]},
                           {"count", one.count},
                           {"step_ns", one.span_ns}});
    return fusions;
}

}  // namespace

Findings findings_of(Graph graph, const std::string& factors, const Graph* beside) {
    Findings all;
    const Replayed replayed = replay(graph);
    all.replayed = path_of(graph, replayed);
    const auto slack = slack_of(graph, replayed);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        if (!is_work(graph.nodes[n].kind)) continue;
        all.work_ns += graph.nodes[n].duration_ns;
        if (slack[n] > 0) all.loose_ns += graph.nodes[n].duration_ns;
    }
    all.unknown = unknown_kernels(graph);
    all.factors = factors;
    if (!factors.empty()) {
        Changes changes;
        changes.factors = factors_of(factors, graph.places());
        all.what_if = path_of(graph, replay(graph, changes));
    }
    if (beside != nullptr) all.beside = path_of(*beside, replay(*beside));
    all.fusions = fusions_of(graph, most_fusions);
    all.graph = std::move(graph);
    return all;
}

std::string findings_text(const Findings& all) {
    return heading_text(all) + path_text(all) + ranks_text(all) + unknown_text(all) + fusions_text(all);
}

Writer findings_json(const Findings& all) {
    Writer json{{"format", "pipeweaver-trace-replay/1"},
                {"recorded_ns", all.graph.span_ns},
                {"replayed", path_json(all.replayed)},
                {"kept_ns", all.replayed.path.kept_ns},
                {"work_ns", all.work_ns},
                {"loose_ns", all.loose_ns},
                {"collectives", all.graph.meetings},
                {"unmatched", all.graph.unmatched},
                {"ranks", ranks_json(all)},
                {"unknown", unknown_json(all)},
                {"fusions", fusions_json(all)}};
    json["what_if"] = all.what_if ? path_json(*all.what_if) : Writer(nullptr);
    json["emulated"] = all.beside ? path_json(*all.beside) : Writer(nullptr);
    return json;
}

}  // namespace pipeweaver::traces
