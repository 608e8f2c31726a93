#include "emit/emulation/what_if_parts.hpp"

#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::emit {

using emulator::GradientBucket;
using emulator::GradientFormat;
using emulator::GradientWay;
using emulator::RankGradients;
using planner::GradientChoice;
using planner::GradientReport;
using Writer = nlohmann::ordered_json;

namespace {

// Of a rank: what follows its last task, or its last task and the kernels that made it later.
Duration exposed_of(const RankGradients& rank, Duration end) { return end - rank.end_of_tasks; }

// Of the rank that is through last: what is exposed on others the step does not wait for.
Duration exposed_at_end(const GradientReport& report, const std::vector<Duration>& through) {
    const auto last = std::max_element(through.begin(), through.end());
    return last == through.end() ? Duration{}
                                 : exposed_of(report.ranks[static_cast<std::size_t>(last - through.begin())], *last);
}

// Whether any bucket travels at all.
bool has_buckets(const GradientReport& report) {
    return std::any_of(report.ranks.begin(), report.ranks.end(),
                       [](const RankGradients& rank) { return !rank.buckets.empty(); });
}

std::size_t compressed_buckets(const GradientChoice& choice) {
    std::size_t count = 0;
    for (const auto& ways : choice.ways)
        count += ways.size() - static_cast<std::size_t>(std::count(ways.begin(), ways.end(), 0));
    return count;
}

// All messages of all ranks, on one GPU of each.
Bytes sent_bytes(const GradientReport& report, const GradientChoice& choice) {
    Bytes sum{};
    for (std::size_t r = 0; r < choice.ways.size(); ++r)
        for (std::size_t b = 0; b < choice.ways[r].size(); ++b)
            sum += report.ranks[r].buckets[b].ways[choice.ways[r][b]].sent;
    return sum;
}

Writer gradient_choice_json(const GradientReport& report, const GradientChoice& choice) {
    return {{"makespan_ns", choice.makespan_after().count()},
            {"exposed_ns", exposed_at_end(report, choice.after).count()},
            {"sent_bytes", sent_bytes(report, choice).count},
            {"compressed", compressed_buckets(choice)}};
}

Writer bucket_json(const GradientReport& report, std::size_t rank, std::size_t bucket) {
    const GradientBucket& of = report.ranks[rank].buckets[bucket];
    const std::uint8_t chosen = report.chosen.ways[rank][bucket];
    const GradientWay& way = of.ways[chosen];
    const Duration kernels = way.compress + way.decompress;
    return {{"ready_ns", of.ready.count()},
            {"parameters", of.parameters},
            {"as_is_ns", of.ways.front().exchange.count()},
            {"format", name_of(report.formats[chosen])},
            {"exchange_ns", way.exchange.count()},
            {"kernels_ns", kernels.count()},
            {"sent_bytes", way.sent.count}};
}

Writer gradient_rank_json(const GradientReport& report, std::size_t rank) {
    const RankGradients& of = report.ranks[rank];
    Writer buckets = Writer::array();
    for (std::size_t b = 0; b < of.buckets.size(); ++b) buckets.push_back(bucket_json(report, rank, b));
    return {{"rank", rank},
            {"end_of_tasks_ns", of.end_of_tasks.count()},
            {"exposed_before_ns", exposed_of(of, report.chosen.before[rank]).count()},
            {"exposed_after_ns", exposed_of(of, report.chosen.after[rank]).count()},
            {"buckets", std::move(buckets)}};
}

std::vector<std::string> format_row(const GradientReport& report, const std::string& name,
                                    const GradientChoice& choice) {
    const Duration before = choice.makespan_before(), after = choice.makespan_after();
    return {name,
            seconds(after, 6),
            fmt::format("{:+.2f} %", 100 * (ratio(after, before) - 1)),
            human(exposed_at_end(report, choice.after)),
            human(sent_bytes(report, choice)),
            std::to_string(compressed_buckets(choice))};
}

GradientChoice nothing_compressed(const GradientReport& report) {
    GradientChoice none{.ways = {}, .before = report.chosen.before, .after = report.chosen.before};
    for (const RankGradients& rank : report.ranks) none.ways.emplace_back(rank.buckets.size(), std::uint8_t{0});
    return none;
}

std::string format_table(const GradientReport& report) {
    TextTable table({{"", true, 10},
                     {"makespan", false, 14},
                     {"change", false, 9},
                     {"exposed", false, 11},
                     {"sent", false, 11},
                     {"compressed", false, 10}},
                    1);
    table.add(format_row(report, std::string(name_of(GradientFormat::as_is)), nothing_compressed(report)));
    for (std::size_t f = 1; f < report.formats.size(); ++f)
        table.add(format_row(report, std::string(name_of(report.formats[f])), report.alone[f - 1]));
    table.add(format_row(report, "any", report.chosen));
    return table.text();
}

// The buckets that `any` compresses.
std::string bucket_table(const GradientReport& report) {
    constexpr std::size_t most_bucket_rows = 16;
    TextTable table({{"rank", true, 6},
                     {"ready", false, 11},
                     {"gradients", false, 11},
                     {"as it is", false, 11},
                     {"format", false, 10},
                     {"exchange", false, 11},
                     {"kernels", false, 11}},
                    1);
    std::size_t rows = 0;
    for (std::size_t r = 0; r < report.ranks.size(); ++r)
        for (std::size_t b = 0; b < report.ranks[r].buckets.size(); ++b) {
            const std::uint8_t chosen = report.chosen.ways[r][b];
            if (chosen == 0 || ++rows > most_bucket_rows) continue;
            const GradientBucket& of = report.ranks[r].buckets[b];
            const GradientWay& way = of.ways[chosen];
            table.add({std::to_string(r), human(of.ready), human(of.ways.front().sent), human(of.ways.front().exchange),
                       std::string(name_of(report.formats[chosen])), human(way.exchange),
                       human(way.compress + way.decompress)});
        }
    if (rows == 0) return "nothing is compressed: traffic is hidden, or kernels take longer than what they save\n";
    return table.text() + (rows > most_bucket_rows ? fmt::format("and {} more\n", rows - most_bucket_rows) : "");
}

}  // namespace

nlohmann::ordered_json gradients_json(const GradientReport& report) {
    Writer formats = Writer::array(), ranks = Writer::array();
    for (std::size_t f = 1; f < report.formats.size(); ++f) {
        Writer one{{"format", name_of(report.formats[f])}};
        one.update(gradient_choice_json(report, report.alone[f - 1]));
        formats.push_back(std::move(one));
    }
    for (std::size_t r = 0; r < report.ranks.size(); ++r) ranks.push_back(gradient_rank_json(report, r));
    return {{"replica", report.replica},
            {"before", gradient_choice_json(report, nothing_compressed(report))},
            {"alone", std::move(formats)},
            {"any", gradient_choice_json(report, report.chosen)},
            {"ranks", std::move(ranks)}};
}

std::string gradients_text(const GradientReport& report) {
    const std::string heading = fmt::format("\nwhat if gradients travel in fewer bytes, in replica {}", report.replica);
    if (!has_buckets(report)) return heading + ": none do, no weight has copies that exchange gradients\n";
    return heading + "; exposed behind the last task of the rank that is through last, with weights that it gathers\n" +
           format_table(report) + "buckets that are worth it where any format is allowed, by rank\n" +
           bucket_table(report);
}

}  // namespace pipeweaver::emit
