// The pictures on the time axis. Horizontally an SVG has axis_units units for the horizon and stretches to whatever
// width the page has; vertically a unit is a pixel. Texts are HTML beside the pictures, so they are never stretched.
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/schedule/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipeweaver::emit::report_parts {

using namespace schedule;
using namespace emulator;

namespace {

// Rows of a picture, in pixels.
constexpr std::size_t rank_height = 24, bar_top = 2, bar_height = 20;
constexpr int memory_height = 52;
constexpr std::size_t module_colors = 6;  // of modules, in the template
constexpr std::size_t dense_row = 200;    // bars of a rank above which lines between them would hide them

// Marks at 1, 2 or 5 times a power of ten nanoseconds; five to ten of them.
struct Marks {
    std::int64_t step = 1;
    int digits = 0;  // the step is 1, 2 or 5 times 10^digits
};

Marks marks_for(Duration horizon) {
    Marks marks;
    for (std::int64_t power = 1;; power *= 10, ++marks.digits)
        for (const int factor : {1, 2, 5}) {
            marks.step = factor * power;
            if (horizon.count() / marks.step < 10) return marks;
        }
}

std::string mark_label(std::int64_t time, Duration horizon, int digits) {
    const auto [unit, unit_digits] = horizon >= Duration{1'000'000'000} ? std::pair("s", 9)
                                     : horizon >= Duration{1'000'000}   ? std::pair("ms", 6)
                                                                        : std::pair("us", 3);
    return fmt::format("{:.{}f} {}", static_cast<double>(time) / std::pow(10.0, unit_digits),
                       std::max(0, unit_digits - digits), unit);
}

std::string marks_html(Duration horizon, bool labels) {
    const Marks marks = marks_for(horizon);
    std::string html = labels ? "<div class=\"marks labels\">" : "<div class=\"marks\">";
    for (std::int64_t time = 0; time <= horizon.count(); time += marks.step) {
        const double place = 100.0 * static_cast<double>(time) / static_cast<double>(horizon.count());
        html += fmt::format("<i{} style=\"left:{:.3f}%\">{}</i>", place > last_narrow_label ? " class=\"late\"" : "",
                            place, labels && place <= last_label ? mark_label(time, horizon, marks.digits) : "");
    }
    return html + "</div>";
}

// What a task's colour stands for: the modules of its stage where they are known.
std::string group_of(const Drawn& drawn, std::size_t number) {
    const Problem& problem = *drawn.problem;
    const Task& task = problem.tasks[number];
    if (!drawn.groups.empty()) return drawn.groups[number];
    for (const Stage& stage : problem.stages) {
        if (!task.stage || stage.stage != *task.stage) continue;
        std::string names;
        std::string_view last;
        for (const StagePart& part : stage.parts) {
            if (part.module == last) continue;
            names += (names.empty() ? "" : " + ") + part.module;
            last = part.module;
        }
        if (!names.empty()) return names;
    }
    return task.module.empty() ? "tasks" : task.module;
}

// Modules in the order of their first task, and the passes that occur.
class Legend {
public:
    std::size_t color(const std::string& modules, TaskKind kind) {
        const auto place =
            std::find_if(entries_.begin(), entries_.end(), [&](auto& e) { return e.modules == modules; });
        const auto number = static_cast<std::size_t>(place - entries_.begin());
        if (place == entries_.end()) entries_.push_back({modules, {}});
        auto& kinds = entries_[number].kinds;
        if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
        return number % module_colors;
    }

    // What is no task.
    void add(std::string_view swatch, std::string_view name) { others_ += legend_entry(swatch, name); }

    std::string html() const {
        std::string html = "<ul class=\"legend\">";
        for (std::size_t i = 0; i < entries_.size(); ++i)
            for (std::size_t k = 0; k < kind_names.size(); ++k) {
                const auto kind = static_cast<TaskKind>(k);
                const auto& kinds = entries_[i].kinds;
                if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
                html += legend_entry(
                    fmt::format("<rect class=\"m{} {}\" width=\"14\" height=\"14\"/>", i % module_colors, letter(kind)),
                    fmt::format("{} {}", entries_[i].modules, kind_names[k]));
            }
        return html + others_ + "</ul>\n";
    }

private:
    struct Entry {
        std::string modules;
        std::vector<TaskKind> kinds;
    };
    std::vector<Entry> entries_;
    std::string others_;
};

// The modes' names are those of the partition; of a problem of this program that has three they are the usual ones.
std::string mode_text(const Drawn& drawn, const Replayer& replayer, std::size_t task) {
    const std::uint32_t pair = replayer.pair_of(task);
    if (pair == Replayer::unpaired) return "no memory mode";
    const std::uint32_t mode = drawn.schedule->mode[pair];
    const auto& modes = drawn.problem->pairs[pair].modes;
    constexpr std::array<std::string_view, 3> usual{"none", "half", "full"};
    std::string name;
    if (mode < drawn.modes.size())
        name = fmt::format(" (recompute {})", drawn.modes[mode]);
    else if (drawn.modes.empty() && modes.size() == usual.size())
        name = fmt::format(" (recompute {})", usual[mode]);
    return fmt::format("memory mode {}{}, holds {}", mode, name, human(modes[mode].held));
}

std::string hover(const Drawn& drawn, const Replayer& replayer, const std::string& sent, std::size_t task,
                  Duration duration) {
    const Task& t = drawn.problem->tasks[task];
    return escape(fmt::format("{}\nstart {}, duration {}\nrank {}, {}{}{}", t.label.empty() ? "task" : t.label,
                              human(drawn.replay->start[task]), human(duration), index(t.rank),
                              mode_text(drawn, replayer, task), sent.empty() ? "" : "\n", sent));
}

std::string bar(std::string_view classes, std::int64_t from, std::int64_t to, std::size_t y, std::size_t height,
                std::string_view title) {
    return fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>\n",
                       classes, from, y, std::max<std::int64_t>(1, to - from), height, title);
}

// What a rank does alone after its last task.
std::string tail_of(const Drawn& drawn, const std::vector<TaskCost>& costs, std::size_t r, Duration horizon) {
    const Duration tail = drawn.problem->ranks[r].tail;
    const auto& order = drawn.schedule->order[r];
    if (tail == Duration{0} || order.empty()) return {};
    const std::size_t last = index(order.back());
    const Duration start = drawn.replay->start[last] + costs[last].duration;
    return bar("tail c6", on_axis(start, horizon), on_axis(start + tail, horizon), r * rank_height + bar_top,
               bar_height,
               fmt::format("gradient reduction after the last task\nstart {}, duration {}\nrank {}", human(start),
                           human(tail), r));
}

// Of all ranks, as long as that of the slowest; nobody knows more of it.
std::string optimizer_of(const Drawn& drawn, Duration horizon) {
    if (!drawn.optimizer || drawn.optimizer->duration == Duration{0}) return {};
    const auto& [start, duration] = *drawn.optimizer;
    return bar("optimizer c7", on_axis(start, horizon), on_axis(start + duration, horizon), bar_top,
               drawn.schedule->order.size() * rank_height - 2 * bar_top,
               fmt::format("optimizer of the rank with the most parameters, after all ranks of all replicas\n"
                           "start {}, duration {}",
                           human(start), human(duration)));
}

std::string bars_of_rank(const Drawn& drawn, const Replayer& replayer, const std::vector<TaskCost>& costs,
                         const Transfers& sent, std::size_t r, Duration horizon, Legend& legend) {
    std::string svg;
    for (const TaskId id : drawn.schedule->order[r]) {
        const Task& task = drawn.problem->tasks[index(id)];
        const Duration start = drawn.replay->start[index(id)], length = costs[index(id)].duration;
        svg += bar(fmt::format("bar m{} {}", legend.color(group_of(drawn, index(id)), task.kind), letter(task.kind)),
                   on_axis(start, horizon), on_axis(start + length, horizon), r * rank_height + bar_top, bar_height,
                   hover(drawn, replayer, sent.sent[index(id)], index(id), length));
    }
    return svg;
}

std::size_t middle(RankId rank) { return index(rank) * rank_height + bar_top + bar_height / 2; }

// The bars, what follows them, and what goes between them.
struct Bars {
    std::string svg;
    std::string tails, optimizer;  // of it
    Transfers transfers;
};

Bars bars(const Drawn& drawn, Duration horizon, Legend& legend) {
    const Replayer replayer(*drawn.problem);
    const auto costs = replayer.costs(drawn.schedule->mode);
    const auto& order = drawn.schedule->order;
    Bars all{{}, {}, optimizer_of(drawn, horizon), transfers(drawn, costs, horizon)};
    std::size_t most = 0;
    for (const auto& tasks : order) most = std::max(most, tasks.size());
    const std::size_t height = order.size() * rank_height;
    all.svg = fmt::format(
        "<svg class=\"time bars{}\" viewBox=\"0 0 {} {}\" style=\"height:{}px\" preserveAspectRatio=\"none\" "
        "role=\"img\" aria-label=\"schedule of {} ranks\">\n",
        most > dense_row ? " dense" : "", axis_units, height, height, order.size());
    for (std::size_t r = 0; r < order.size(); ++r) {
        const std::string tail = tail_of(drawn, costs, r, horizon);
        all.tails += tail;
        all.svg += fmt::format(
                       "<g class=\"rank\" data-rank=\"{}\"><rect class=\"lane\" x=\"0\" y=\"{}\" width=\"{}\" "
                       "height=\"{}\"/>\n",
                       r, r * rank_height + bar_top, on_axis(drawn.replay->makespan, horizon), bar_height) +
                   bars_of_rank(drawn, replayer, costs, all.transfers, r, horizon, legend) + tail + "</g>\n";
    }
    all.svg += all.optimizer + all.transfers.svg + "</svg>";
    return all;
}

std::string rank_labels(std::size_t ranks) {
    std::string labels;
    for (std::size_t r = 0; r < ranks; ++r) labels += fmt::format("<div class=\"rank-label\">rank {}</div>", r);
    return labels;
}

// Memory of a rank as it changes: (time, bytes from then on).
std::vector<std::pair<Duration, Bytes>> memory_of(const Drawn& drawn, const std::vector<TaskCost>& costs,
                                                  std::size_t r) {
    const Rank& rank = drawn.problem->ranks[r];
    std::vector<std::pair<Duration, Bytes>> steps{{Duration{0}, rank.base}};
    walk_memory(rank, drawn.schedule->order[r], costs, [&](TaskId task, Bytes during, Bytes after) {
        const Duration start = drawn.replay->start[index(task)];
        steps.emplace_back(start, during);
        steps.emplace_back(start + costs[index(task)].duration, after);
    });
    return steps;
}

Bytes tallest(const Drawn& drawn) {
    Bytes most{1};
    const auto& ranks = drawn.problem->ranks;
    for (std::size_t r = 0; r < ranks.size(); ++r)
        most = std::max({most, drawn.replay->peak[r], ranks[r].capacity.value_or(Bytes{0})});
    return most;
}

std::string memory_of_rank(const Drawn& drawn, const std::vector<TaskCost>& costs, std::size_t r, Duration horizon) {
    const Rank& rank = drawn.problem->ranks[r];
    const double scale = static_cast<double>(memory_height - 4) / static_cast<double>(tallest(drawn).count);
    const auto y = [&](Bytes bytes) { return memory_height - scale * static_cast<double>(bytes.count); };
    std::string line;
    for (const auto& [time, used] : memory_of(drawn, costs, r))
        line += fmt::format("{}{} {}{:.2f}", line.empty() ? "M" : "H", on_axis(time, horizon), line.empty() ? "" : "V",
                            y(used));
    const std::int64_t end = on_axis(drawn.replay->makespan, horizon);
    line += fmt::format("H{}", end);
    const std::string about = fmt::format(
        "rank {}: peak {}{}; {} of it all the time (weights, optimizer, buffers)", r, human(drawn.replay->peak[r]),
        rank.capacity ? fmt::format(" of {}", human(*rank.capacity)) : "", human(rank.base));
    std::string svg = fmt::format(
        "<svg class=\"time memory\" viewBox=\"0 0 {} {}\" style=\"height:{}px\" preserveAspectRatio=\"none\" "
        "role=\"img\" aria-label=\"{}\"><title>{}</title><path class=\"used\" d=\"{}V{}H0Z\"/><rect class=\"base\" "
        "x=\"0\" y=\"{:.2f}\" width=\"{}\" height=\"{:.2f}\"/><path class=\"edge\" d=\"{}\"/>",
        axis_units, memory_height, memory_height, escape(about), escape(about), line, memory_height, y(rank.base), end,
        memory_height - y(rank.base), line);
    if (rank.capacity) svg += fmt::format("<path class=\"limit\" d=\"M0 {:.2f}H{}\"/>", y(*rank.capacity), axis_units);
    return svg + "</svg>";
}

// Memory of every rank with its limit.
std::string memory_pictures(const Drawn& drawn, Duration horizon) {
    const Problem& problem = *drawn.problem;
    const auto costs = Replayer(problem).costs(drawn.schedule->mode);
    std::string html;
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) {
        const auto& limit = problem.ranks[r].capacity;
        html += row("memory",
                    fmt::format("rank {}<small>peak {}</small>{}", r, human(drawn.replay->peak[r]),
                                limit ? fmt::format("<small>limit {}</small>", human(*limit)) : ""),
                    marks_html(horizon, false) + memory_of_rank(drawn, costs, r, horizon));
    }
    return html;
}

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

std::int64_t on_axis(Duration time, Duration horizon) {
    return std::llround(static_cast<double>(time.count()) * static_cast<double>(axis_units) /
                        static_cast<double>(horizon.count()));
}

std::string schedule_pictures(const std::vector<Drawn>& all, Duration horizon) {
    Legend legend;
    std::string html;
    bool tails = false, optimizer = false, transfers = false, too_many = false;
    for (const Drawn& one : all) {
        const Bars drawn = bars(one, horizon, legend);
        tails = tails || !drawn.tails.empty();
        optimizer = optimizer || !drawn.optimizer.empty();
        transfers = transfers || !drawn.transfers.svg.empty();
        too_many = too_many || drawn.transfers.too_many;
        html += fmt::format(
            "<figure class=\"schedule\" id=\"{}\"><figcaption>{}</figcaption>\n{}</figure>\n", one.id, one.heading,
            row("ranks", rank_labels(one.schedule->order.size()), marks_html(horizon, false) + drawn.svg));
    }
    if (tails)
        legend.add("<rect class=\"c6\" width=\"14\" height=\"14\"/>", "gradient reduction after a rank's last task");
    if (optimizer) legend.add("<rect class=\"c7\" width=\"14\" height=\"14\"/>", "optimizer");
    if (transfers)
        legend.add("<path class=\"line\" d=\"M1 2L10 11\"/><path class=\"arrival\" d=\"M10 11h0\"/>",
                   "transfer to another rank, until it is there");
    html += legend.html();
    if (too_many)
        html += fmt::format(
            "<p class=\"not\">A picture shows its transfers where at most {} a rank are in view: zoom in. A bar's "
            "hover text has what it sends.</p>\n",
            most_transfers);
    return html;
}

namespace {

// Its makespan or, where there is one, its optimizer's end.
Duration end_of(const Drawn& drawn) {
    const Duration makespan = drawn.replay->makespan;
    return drawn.optimizer ? std::max(makespan, drawn.optimizer->start + drawn.optimizer->duration) : makespan;
}

}  // namespace

Parts picture_parts(const std::vector<Drawn>& all, const Drawn& plan) {
    Duration horizon{1};
    for (const Drawn& one : all) horizon = std::max(horizon, end_of(one));
    return {{"horizon", fmt::format("{}", horizon.count())},
            {"axis", marks_html(horizon, true)},
            {"schedules", schedule_pictures(all, horizon)},
            {"memory", memory_pictures(plan, horizon)},
            {"which", ""},
            {"which_chain", ""}};
}

}  // namespace pipeweaver::emit::report_parts
