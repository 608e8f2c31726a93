// What goes from rank to rank: lines over the picture of a schedule.
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

namespace pipeweaver::emit::report_parts {

using namespace schedule;

namespace {

std::size_t middle(RankId rank) { return index(rank) * rank_height + bar_top + bar_height / 2; }

}  // namespace

Transfers transfers(const Drawn& drawn, const std::vector<TaskCost>& costs, Duration horizon) {
    const Problem& problem = *drawn.problem;
    Transfers all;
    std::size_t count = 0;
    all.sent.resize(problem.tasks.size());
    std::string lines, arrivals;
    for (const Edge& edge : problem.edges) {
        const RankId from = problem.tasks[index(edge.from)].rank, to = problem.tasks[index(edge.to)].rank;
        if (from == to || edge.lag == Duration{0}) continue;
        ++count;
        const Duration end = drawn.replay->start[index(edge.from)] + costs[index(edge.from)].duration;
        const std::int64_t x = on_axis(end + edge.lag, horizon);
        lines += fmt::format("M{} {}L{} {}", on_axis(end, horizon), middle(from), x, middle(to));
        arrivals += fmt::format("M{} {}h0", x, middle(to));
        std::string& sent = all.sent[index(edge.from)];
        sent += fmt::format("{} to rank {} in {}", sent.empty() ? "sends" : ",", index(to), human(edge.lag));
    }
    const std::size_t most = most_transfers * problem.ranks.size();
    all.too_many = count > most;
    if (count > 0)
        all.svg = fmt::format(
            "<g class=\"transfers{}\" data-most=\"{}\"><path class=\"line\" d=\"{}\"/><path class=\"arrival\" "
            "d=\"{}\"/></g>\n",
            all.too_many ? " crowded" : "", most, lines, arrivals);
    return all;
}

}  // namespace pipeweaver::emit::report_parts
