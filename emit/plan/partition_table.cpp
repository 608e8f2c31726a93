#include "pipeweaver/emit/partition_table.hpp"

#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace pipeweaver::emit {

using namespace planner;
using emulator::StageLayers;
using partition::Partition;
using Writer = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_shown = 12;

// " (tp 1 x 8 copies, hybrid)" of a module whose copies share the GPUs of a rank.
std::string copies_text(const Partition& partition, std::size_t chain) {
    if (partition.layouts.empty()) return {};
    const auto& layout = partition.layouts[partition.chains[chain].stages.front().parts.front().module];
    return layout.copies > 1 ? fmt::format(" ({})", name_of(layout)) : std::string();
}

// "vit 8 (tp 1 x 8 copies, hybrid), llm whole": what a unit of each chain is.
std::string units_text(const workloads::Model& model, const Partition& partition) {
    std::string text;
    for (const std::size_t m : phase_modules(partition)) text += fmt::format("{} dealt, ", model.modules[m].name);
    for (std::size_t c = 0; c < partition.chains.size(); ++c)
        text += fmt::format("{}{} {}{}", c == 0 ? "" : ", ", partition.chains[c].name,
                            partition.unit_items[c] == 0 ? "whole" : std::to_string(partition.unit_items[c]),
                            copies_text(partition, c));
    return text;
}

Duration longest(const std::vector<Duration>& times) { return *std::max_element(times.begin(), times.end()); }

Duration mean_of(const std::vector<Duration>& times) {
    return std::accumulate(times.begin(), times.end(), Duration{}) / static_cast<std::int64_t>(times.size());
}

// "38.1 GiB", or that it is too much.
std::string fixed_text(const PartitionLoads& loads) {
    if (loads.fixed.empty()) return "too much";
    return human(*std::max_element(loads.fixed.begin(), loads.fixed.end()));
}

std::string candidates_text(const Job& job, const Batch& batch, const PartitionChoice& choice) {
    if (choice.tried.empty()) return {};
    TextTable table({{"partition", true, 12},
                     {"chunks", false, 6},
                     {"units", true, 25},
                     {"step", false, 10},
                     {"judged by", true, 23},
                     {"longest/mean", false, 14},
                     {"fixed", false, 10}},
                    1);
    for (std::size_t i = 0; i < std::min(choice.tried.size(), most_shown); ++i) {
        const PartitionTried& one = choice.tried[i];
        const PartitionLoads loads = loads_of(job, batch, one.partition);
        const auto times = loads.rank_times();
        const auto by = !one.why_not.empty() ? one.why_not
                                             : fmt::format("{} of {}", one.searched ? "searches" : "policies",
                                                           plural(one.batches, "batch"));
        table.add({one.partition.name, std::to_string(one.partition.chunks_per_rank),
                   units_text(job.setup->model, one.partition), one.why_not.empty() ? human(one.step) : "-", by,
                   fmt::format("{:.3f}", ratio(longest(times), mean_of(times))), fixed_text(loads)});
    }
    std::string text = table.text();
    if (choice.tried.size() > most_shown) text += fmt::format("and {} more\n", choice.tried.size() - most_shown);
    return text + "\n";
}

std::string stage_text(const workloads::Model& model, const StageLayers& stage) {
    return joined(stage.parts, " + ", [&](const emulator::LayerRange& part) {
        return fmt::format("{} {}-{}", model.modules[part.module].name, part.first, part.first + part.count - 1);
    });
}

// A rank's chunks as a bar: a letter of its module for each part of the longest rank's time.
std::string bar(const Job& job, const PartitionLoads& loads, std::size_t rank, Duration whole) {
    constexpr double width = 60;
    std::string text;
    double end = 0;
    for (const StageLoad* one : loads.all()) {
        if (index(one->stage.rank) != rank) continue;
        end += width * static_cast<double>(one->time.count()) / static_cast<double>(whole.count());
        const auto to = std::max<std::size_t>(static_cast<std::size_t>(std::lround(end)), text.size() + 1);
        const auto& name = job.setup->model.modules[one->stage.parts.front().module].name;
        std::string cell(to - text.size(), name.front());
        cell.back() = '|';
        text += cell;
    }
    return text;
}

std::string chunks_text(const Job& job, const Batch& batch, const PartitionChoice& choice) {
    const PartitionLoads loads = loads_of(job, batch, choice.partition);
    const auto times = loads.rank_times();
    std::string text =
        "chunks of each rank, as long as a microbatch keeps it busy (forward and backward, the sample's mean)\n";
    for (std::size_t r = 0; r < times.size(); ++r)
        text += fmt::format("{:>4} {:<62} {:>9}{}\n", r, bar(job, loads, r, longest(times)), human(times[r]),
                            loads.fixed.empty()
                                ? std::string()
                                : fmt::format("  {} of {} fixed", human(loads.fixed[r]), human(loads.usable)));
    text += "\n";
    for (const StageLoad& one : loads.in_phases)
        text += fmt::format("dealt      rank {:<3} {:<32} {:>10}\n", index(one.stage.rank),
                            stage_text(job.setup->model, one.stage), human(one.time));
    for (std::size_t s = 0; s < loads.stages.size(); ++s)
        text += fmt::format("stage {:<4} rank {:<3} {:<32} {:>10}\n", s, index(loads.stages[s].stage.rank),
                            stage_text(job.setup->model, loads.stages[s].stage), human(loads.stages[s].time));
    return text;
}

}  // namespace

std::string partition_table(const Job& job, const Batch& batch, const PartitionChoice& choice) {
    std::string text =
        fmt::format("{}; chosen on {}\ntaken: {} with {} a rank{}\n\n", setup_text(*job.setup), choice.chosen_on.text(),
                    choice.partition.name, plural(choice.partition.chunks_per_rank, "chunk"),
                    choice.cut_short ? "; it was ended before all searches were through" : "");
    text += candidates_text(job, batch, choice) + chunks_text(job, batch, choice);
    for (const std::string& line : layout_lines(choice.partition, job.setup->model)) text += line + "\n";
    for (const std::string& note : choice.partition.notes) text += note + "\n";
    return text;
}

Writer partition_answer(const Job& job, const Batch& batch, const PartitionChoice& choice) {
    const PartitionLoads loads = loads_of(job, batch, choice.partition);
    Writer json{{"partition", partition_json(choice.partition, job.setup->model)},
                {"chosen_on", choice.chosen_on.text()},
                {"cut_short", choice.cut_short},
                {"usable_bytes", loads.usable.count},
                {"stage_ns", Writer::array()},
                {"fixed_bytes", Writer::array()},
                {"tried", alternatives_json(choice)}};
    for (const StageLoad& one : loads.stages) json["stage_ns"].push_back(one.time.count());
    for (const Bytes& one : loads.fixed) json["fixed_bytes"].push_back(one.count);
    return json;
}

namespace {

constexpr int left = 60, row_height = 22, bar_height = 18, width = 900;

// One partition, from `y` on; returns where the next begins.
int draw(const Job& job, const Batch& batch, const Partition& partition, const std::string& title,
         Duration longest_rank, int y, std::string& svg) {
    constexpr std::array colours{"#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2"};
    const PartitionLoads loads = loads_of(job, batch, partition);
    svg += fmt::format("<text x=\"4\" y=\"{}\" font-weight=\"bold\">{}</text>\n", y + 14, title);
    y += row_height;
    const auto times = loads.rank_times();
    for (std::size_t r = 0; r < times.size(); ++r, y += row_height) {
        svg += fmt::format("<text x=\"4\" y=\"{}\">rank {}</text>\n", y + 14, r);
        double x = left;
        for (const StageLoad* one : loads.all()) {
            if (index(one->stage.rank) != r) continue;
            const double wide = (width - left - 160) * static_cast<double>(one->time.count()) /
                                static_cast<double>(longest_rank.count());
            svg += fmt::format(
                "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\" stroke=\"white\"><title>{}: "
                "{}</title></rect>\n",
                x, y, wide, bar_height, colours[one->stage.parts.front().module % colours.size()],
                stage_text(job.setup->model, one->stage), human(one->time));
            x += wide;
        }
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}{}</text>\n", x + 6, y + 14, human(times[r]),
                           loads.fixed.empty() ? std::string() : ", " + human(loads.fixed[r]));
    }
    return y + row_height / 2;
}

}  // namespace

std::string partition_picture(const Job& job, const Batch& batch, const PartitionChoice& choice) {
    std::vector<std::pair<std::string, const Partition*>> shown{
        {choice.partition.name + " (taken)", &choice.partition}};
    std::vector<std::string> kinds{choice.partition.name};
    for (const PartitionTried& one : choice.tried) {
        if (!one.why_not.empty() || std::find(kinds.begin(), kinds.end(), one.partition.name) != kinds.end()) continue;
        kinds.push_back(one.partition.name);
        shown.emplace_back(one.partition.name, &one.partition);
    }
    Duration longest_rank{1};
    for (const auto& [title, partition] : shown)
        longest_rank = std::max(longest_rank, longest(loads_of(job, batch, *partition).rank_times()));
    std::string body;
    int y = 8;
    for (const auto& [title, partition] : shown)
        y = draw(
            job, batch, *partition,
            fmt::format("{}, {} chunks a rank: time of a microbatch, fixed memory", title, partition->chunks_per_rank),
            longest_rank, y, body);
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" font-family=\"sans-serif\" "
        "font-size=\"12\"><title>Partitions of {}</title>\n{}</svg>\n",
        width, y, job.setup->model.name, body);
}

}  // namespace pipeweaver::emit
