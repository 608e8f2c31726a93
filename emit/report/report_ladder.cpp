// The report's first section: what each step of the ladder gains.
#include "emit/plan/ladder_text.hpp"
#include "emit/plan/room.hpp"
#include "emit/plan/rung_steps.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/ranges.h>

namespace pipeweaver::emit::report_parts {

using namespace planner;

namespace {

std::string memory_text(const Rung& rung) {
    return fmt::format("{:.1f} of {:.1f} GiB", gib(rung.peak), gib(rung.usable));
}

std::string way_text(const Ladder& ladder, const Rung& rung) {
    const std::string way = named_way(ladder, rung);
    return rung.padding ? fmt::format("{}; {}", way, rung_padding_text(rung)) : way;
}

std::string ladder_row(const Job& job, const Ladder& ladder, const Rung& rung, std::string_view name, bool best) {
    const std::int64_t gpus = job.setup->cluster.gpus;
    const std::string html = (best ? "<tr class=\"best\">" : "<tr>") + cell("rung", name);
    if (!rung.why_nothing.empty())
        return fmt::format("{}<td class=\"nothing\" colspan=\"6\">nothing: {}</td></tr>\n", html,
                           escape(rung.why_nothing));
    return html + number_cell("step", human(rung.step)) + number_cell("over now", over_now_text(ladder, rung)) +
           number_cell("fullest rank", memory_text(rung)) +
           number_cell("tokens/s a GPU", fmt::format("{:.0f}", tokens_per_second(rung) / static_cast<double>(gpus))) +
           cell("way", way_text(ladder, rung)) + cell("what to do", what_to_do(job, ladder, rung)) + "</tr>\n";
}

}  // namespace

std::string ladder(const Job& job, const Batch& batch, const Plan& plan) {
    const Ladder& of = plan.ladder;
    std::string rows;
    if (!of.has_now())
        rows += fmt::format("<tr>{}<td class=\"nothing\" colspan=\"6\">{}</td></tr>\n", cell("rung", "now"),
                            escape(of.why_none));
    for (std::size_t i = 0; i < of.rungs.size(); ++i)
        rows += ladder_row(job, of, of.rungs[i], of.rungs[i].name, i == of.headline);
    for (const Rung& rung : of.beyond)
        rows += ladder_row(job, of, rung, "beyond: the target does not launch it", false);
    const std::string table = wide_table(
        "<table class=\"ladder stack\"><thead><tr><th>rung</th><th class=\"n\">step</th>"
        "<th class=\"n\">over now</th><th class=\"n\">fullest rank</th><th class=\"n\">tokens/s a GPU</th>"
        "<th>way</th><th>what to do</th></tr></thead><tbody>\n",
        rows);
    const auto missing = left_out_text(plan);
    std::string more;
    for (const std::string& line : not_worth_lines(of)) more += fmt::format("<p>{}.</p>\n", escape(line));
    if (const auto room = room_text(room_of(job, batch, of.best())); !room.empty())
        more += fmt::format("<p>Memory: {}.</p>\n", escape(room));
    for (const std::string& line : training_lines(job, of)) more += fmt::format("<p>{}.</p>\n", escape(line));
    return table + more +
           fmt::format("<p>Trust: {}. {}{}.</p>\n", escape(trust_text(job, plan)),
                       missing.empty() ? std::string() : fmt::format("Left out {}. ", escape(missing)),
                       escape(search_text(plan)));
}

}  // namespace pipeweaver::emit::report_parts
