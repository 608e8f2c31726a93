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

constexpr int rank_height = 24, bar_height = 20;
constexpr int memory_height = 52;
constexpr std::size_t module_colors = 6;  // of modules, in the template
constexpr std::size_t dense_row = 400;    // bars of a rank above which lines between them would hide them

std::int64_t on_axis(Duration time, Duration horizon) {
    return std::llround(static_cast<double>(time.count()) * static_cast<double>(axis_units) /
                        static_cast<double>(horizon.count()));
}

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
        html += fmt::format("<i style=\"left:{:.3f}%\">{}</i>", place,
                            labels && place <= last_label ? mark_label(time, horizon, marks.digits) : "");
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

    std::string html() const {
        std::string html = "<ul class=\"legend\">";
        for (std::size_t i = 0; i < entries_.size(); ++i)
            for (const TaskKind kind : {TaskKind::forward, TaskKind::backward, TaskKind::input_gradient,
                                        TaskKind::weight_gradient, TaskKind::other}) {
                const auto& kinds = entries_[i].kinds;
                if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
                html += fmt::format(
                    "<li><svg class=\"swatch\" viewBox=\"0 0 14 14\"><rect class=\"m{} {}\" width=\"14\" "
                    "height=\"14\"/></svg>{} {}</li>",
                    i % module_colors, letter(kind), escape(entries_[i].modules), name(kind));
            }
        return html + "</ul>\n";
    }

private:
    static std::string_view name(TaskKind kind) {
        switch (kind) {
            case TaskKind::forward:
                return "forward";
            case TaskKind::backward:
                return "backward";
            case TaskKind::input_gradient:
                return "input gradient";
            case TaskKind::weight_gradient:
                return "weight gradient";
            case TaskKind::other:
                break;
        }
        return "other";
    }

    struct Entry {
        std::string modules;
        std::vector<TaskKind> kinds;
    };
    std::vector<Entry> entries_;
};

// Recomputation is the mode's name in plans of this program; other problems have numbered modes.
std::string mode_text(const Problem& problem, const Replayer& replayer, const Schedule& schedule, std::size_t task) {
    const std::uint32_t pair = replayer.pair_of(task);
    if (pair == Replayer::unpaired) return "no memory mode";
    const std::uint32_t mode = schedule.mode[pair];
    const Mode& chosen = problem.pairs[pair].modes[mode];
    constexpr std::array<std::string_view, 3> names{"nothing recomputed", "half of the blocks recomputed",
                                                    "all blocks recomputed"};
    return fmt::format("memory mode {}{}, holds {}", mode,
                       problem.pairs[pair].modes.size() == names.size() ? fmt::format(" ({})", names[mode]) : "",
                       human(chosen.held));
}

std::string hover(const Problem& problem, const Replayer& replayer, const Drawn& drawn, std::size_t task,
                  Duration duration) {
    const Task& t = problem.tasks[task];
    return escape(fmt::format("{}\nstart {}, duration {}\nrank {}, {}", t.label.empty() ? "task" : t.label,
                              human(drawn.replay->start[task]), human(duration), index(t.rank),
                              mode_text(problem, replayer, *drawn.schedule, task)));
}

std::string bars(const Drawn& drawn, Duration horizon, Legend& legend) {
    const Problem& problem = *drawn.problem;
    const Replayer replayer(problem);
    const auto costs = replayer.costs(drawn.schedule->mode);
    const auto& order = drawn.schedule->order;
    std::size_t most = 0;
    for (const auto& tasks : order) most = std::max(most, tasks.size());
    const std::size_t height = order.size() * rank_height;
    std::string svg = fmt::format(
        "<svg class=\"time bars{}\" viewBox=\"0 0 {} {}\" style=\"height:{}px\" preserveAspectRatio=\"none\" "
        "role=\"img\" "
        "aria-label=\"schedule of {} ranks\">\n",
        most > dense_row ? " dense" : "", axis_units, height, height, order.size());
    for (std::size_t r = 0; r < order.size(); ++r) {
        const std::size_t y = r * rank_height + 2;
        svg += fmt::format(
            "<g class=\"rank\" data-rank=\"{}\"><rect class=\"lane\" x=\"0\" y=\"{}\" width=\"{}\" "
            "height=\"{}\"/>\n",
            r, y, on_axis(drawn.replay->makespan, horizon), bar_height);
        for (const TaskId id : order[r]) {
            const Task& task = problem.tasks[index(id)];
            const Duration start = drawn.replay->start[index(id)], length = costs[index(id)].duration;
            const std::int64_t from = on_axis(start, horizon), to = on_axis(start + length, horizon);
            svg += fmt::format(
                "<rect class=\"bar m{} {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}"
                "</title></rect>\n",
                legend.color(group_of(drawn, index(id)), task.kind), letter(task.kind), from, y,
                std::max<std::int64_t>(1, to - from), bar_height, hover(problem, replayer, drawn, index(id), length));
        }
        svg += "</g>\n";
    }
    return svg + "</svg>";
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
        "role=\"img\" "
        "aria-label=\"{}\"><title>{}</title><path class=\"used\" d=\"{}V{}H0Z\"/><rect class=\"base\" x=\"0\" "
        "y=\"{:.2f}\" width=\"{}\" height=\"{:.2f}\"/><path class=\"edge\" d=\"{}\"/>",
        axis_units, memory_height, memory_height, escape(about), escape(about), line, memory_height, y(rank.base), end,
        memory_height - y(rank.base), line);
    if (rank.capacity) svg += fmt::format("<path class=\"limit\" d=\"M0 {:.2f}H{}\"/>", y(*rank.capacity), axis_units);
    return svg + "</svg>";
}

}  // namespace

std::string axis_labels(Duration horizon) { return marks_html(horizon, true); }

std::string axis_lines(Duration horizon) { return marks_html(horizon, false); }

std::string schedule_pictures(const std::vector<Drawn>& all, Duration horizon) {
    Legend legend;
    std::string html;
    for (const Drawn& one : all)
        html += fmt::format(
            "<figure class=\"schedule\" id=\"{}\"><figcaption>{}</figcaption>\n{}</figure>\n", one.id, one.heading,
            row("ranks", rank_labels(one.schedule->order.size()), axis_lines(horizon) + bars(one, horizon, legend)));
    return html + legend.html();
}

std::string memory_pictures(const Drawn& drawn, Duration horizon) {
    const Problem& problem = *drawn.problem;
    const auto costs = Replayer(problem).costs(drawn.schedule->mode);
    std::string html;
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) {
        const auto& limit = problem.ranks[r].capacity;
        html += row("memory",
                    fmt::format("rank {}<small>peak {}</small>{}", r, human(drawn.replay->peak[r]),
                                limit ? fmt::format("<small>limit {}</small>", human(*limit)) : ""),
                    axis_lines(horizon) + memory_of_rank(drawn, costs, r, horizon));
    }
    return html;
}

}  // namespace pipeweaver::emit::report_parts
