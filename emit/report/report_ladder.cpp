// The report's first section: what each step of the ladder gains, and how the best is run.
#include "emit/plan/ladder_text.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/ranges.h>

namespace pipeweaver::emit::report_parts {

using namespace planner;

namespace {

std::string cell(std::string_view text) { return fmt::format("<td>{}</td>", escape(text)); }
std::string number(std::string_view text) { return fmt::format("<td class=\"n\">{}</td>", escape(text)); }

std::string ladder_row(const Ladder& ladder, const Rung& rung, std::string_view name, std::int64_t gpus, bool best) {
    const std::string open = best ? "<tr class=\"best\">" : "<tr>";
    if (!rung.why_nothing.empty())
        return fmt::format("{}{}<td colspan=\"6\">nothing: {}</td></tr>\n", open, cell(name), escape(rung.why_nothing));
    return open + cell(name) + number(human(rung.step)) + number(times(ratio(ladder.now().step, rung.step))) +
           cell(rung.way) + number(fmt::format("{:.0f}", tokens_per_second(rung) / static_cast<double>(gpus))) +
           number(fmt::format("{} of {}", human(rung.peak), human(rung.usable))) + cell(what_to_do(rung)) + "</tr>\n";
}

// The commands that print the steps, under one another.
std::string commands(const Ladder& ladder) {
    std::string text;
    for (const auto* rungs : {&ladder.rungs, &ladder.beyond})
        for (const Rung& rung : *rungs)
            if (!rung.command.empty() && rung.why_nothing.empty())
                text += fmt::format("# {}: {}\n{}\n", rung.name, human(rung.step), rung.command);
    if (text.empty()) return {};
    return folded("Commands that print these steps", fmt::format("<pre>{}</pre>", escape(text)), false);
}

}  // namespace

std::string ladder(const Job& job, const Plan& plan) {
    const Ladder& of = plan.ladder;
    const std::int64_t gpus = job.setup->cluster.gpus;
    std::string html =
        "<div class=\"wide\"><table><thead><tr><th>rung</th><th class=\"n\">step</th>"
        "<th class=\"n\">over now</th><th>way</th><th class=\"n\">tokens/s a GPU</th><th class=\"n\">fullest rank</th>"
        "<th>what to do</th></tr></thead><tbody>\n";
    for (std::size_t i = 0; i < of.rungs.size(); ++i)
        html += ladder_row(of, of.rungs[i], of.rungs[i].name, gpus, i == of.headline);
    for (const Rung& rung : of.beyond) html += ladder_row(of, rung, "beyond: no runtime carries it", gpus, false);
    html += "</tbody></table></div>\n" + commands(of);
    const auto missing = left_out(plan);
    html += fmt::format(
        "<p>Trust: {}. {}{}.</p>\n", escape(trust_text(plan)),
        missing.empty() ? std::string() : fmt::format("Left out for lack of time: {}. ", fmt::join(missing, ", ")),
        escape(search_text(plan)));
    return html;
}

}  // namespace pipeweaver::emit::report_parts
