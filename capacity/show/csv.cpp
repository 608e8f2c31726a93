// The tables of a study: all points, and the rows of its ranking. Numbers have fixed digits.
#include "pipeweaver/base/csv.hpp"

#include "capacity/show/words.hpp"
#include "pipeweaver/capacity/tables.hpp"

#include <fmt/format.h>

#include <initializer_list>

namespace pipeweaver::capacity {

namespace show {

namespace {

constexpr double bytes_of_gib = 1024.0 * 1024 * 1024;

class CsvLine {
public:
    void text(std::string_view one) {
        if (!text_.empty() || has_cells_) text_ += ',';
        has_cells_ = true;
        text_ += csv_cell(one);
    }
    void whole(std::int64_t number) { text(std::to_string(number)); }
    void number(double number, int digits) { text(fmt::format("{:.{}f}", number, digits)); }
    void number(const std::optional<double>& said, int digits) { said ? number(*said, digits) : text(""); }
    void seconds(Duration time) {
        constexpr int nanoseconds = 9;
        number(static_cast<double>(time.count()) * 1e-9, nanoseconds);
    }
    void gib(Bytes size) { number(static_cast<double>(size.count) / bytes_of_gib, 3); }
    void yes_or_no(bool is_so) { text(is_so ? "yes" : "no"); }
    void texts(std::initializer_list<std::string_view> all) {
        for (const std::string_view one : all) text(one);
    }
    void nothing(std::size_t cells) {
        for (std::size_t i = 0; i < cells; ++i) text("");
    }
    std::string ended() const { return text_ + "\n"; }

private:
    std::string text_;
    bool has_cells_ = false;
};

void add_cell_names(CsvLine& line, const std::vector<std::string>& options) {
    line.texts({"cell", "model", "cluster", "gpus", "price_per_gpu_hour"});
    for (const std::string& name : options) line.text(name);
}

void add_cell(CsvLine& line, const Cell& cell, const std::vector<std::string>& options) {
    line.whole(static_cast<std::int64_t>(cell.number));
    line.texts({value_of(cell, "model"), cell.cluster});
    line.whole(cell.gpus);
    const double price = price_of(cell);
    line.number(price > 0 ? std::optional(price) : std::nullopt, 4);
    for (const std::string& name : options) line.text(value_of(cell, name));
}

void add_layout_names(CsvLine& line) {
    for (const std::string_view name : degree_names) line.text(name);
}

void add_layout(CsvLine& line, const Point& point) {
    for (const std::int64_t degree : degrees_of(point.as)) line.whole(degree);
}

constexpr std::size_t pace_cells = 9;

void add_pace_names(CsvLine& line) {
    line.texts({"tokens_per_s", "tokens_per_s_per_gpu", "samples_per_s", "tflops_per_gpu", "mfu", "days", "gpu_hours",
                "usd", "kwh"});
}

void add_pace(CsvLine& line, const Pace& pace) {
    line.number(pace.tokens_per_second, 3);
    line.number(pace.tokens_per_second_per_gpu, 3);
    line.number(pace.samples_per_second, 3);
    line.number(pace.tflops_per_gpu, 3);
    line.number(pace.mfu, 5);
    if (!pace.run) return line.nothing(4);
    line.number(pace.run->days, 4);
    line.number(pace.run->gpu_hours, 2);
    line.number(pace.run->usd, 2);
    line.number(pace.run->kwh, 1);
}

// The model has a column whether it varies or not.
std::vector<std::string> option_columns(const Study& study) {
    auto options = varying_options(study);
    std::erase(options, "model");
    return options;
}

constexpr std::size_t schedule_cells = 6;

void add_schedule_names(CsvLine& line) {
    line.texts({"partition", "chunks", "policy", "recompute", "memory_gib", "memory_left_gib"});
}

void add_schedule(CsvLine& line, const Point& point, Bytes usable) {
    line.text(point.partition);
    line.whole(point.chunks);
    line.texts({point.policy, point.recompute});
    line.gib(point.memory);
    line.gib(usable - point.memory);
}

std::string point_line(const Study& study, const CellResult& result, const Point& point,
                       const std::vector<std::string>& options) {
    const Cell& cell = study.cells[result.cell];
    CsvLine line;
    add_cell(line, cell, options);
    add_layout(line, point);
    line.text(name_of(point.status));
    if (point.bound > Duration{}) {
        line.seconds(point.bound);
    } else {
        line.nothing(1);
    }
    if (point.status == PointStatus::judged) {
        line.seconds(point.step);
        add_schedule(line, point, result.facts.usable);
        add_pace(line, pace_of(study, cell, result.facts, point.step));
        line.number(result.facts.error_percent, 2);
    } else {
        line.nothing(1 + schedule_cells + pace_cells + 1);
    }
    line.text(point.why);
    return line.ended();
}

std::string refused_cell_line(const Study& study, const CellResult& result, const std::vector<std::string>& options) {
    CsvLine line;
    add_cell(line, study.cells[result.cell], options);
    line.nothing(degree_names.size());
    line.text(name_of(PointStatus::refused));
    line.nothing(2 + schedule_cells + pace_cells + 1);
    line.text(result.why_not);
    return line.ended();
}

std::string rows_head(const std::vector<std::string>& options) {
    CsvLine head;
    head.texts({"place", "answer", "meets", "at_risk", "front", "tied"});
    add_cell_names(head, options);
    add_layout_names(head);
    head.texts({"flags_step_s", "planned_step_s", "planned_partition", "gap"});
    add_schedule_names(head);
    add_pace_names(head);
    head.texts({"usable_gpus", "wasted_share", "job_gpus", "spares", "network_usd_per_gpu"});
    head.texts({"error_percent", "footing", "exact", "interpolated", "extrapolated", "modelled", "why_not_planned",
                "command"});
    return head.ended();
}

void add_planned(CsvLine& line, const Row& row) {
    if (!row.planned) return line.nothing(3);
    line.seconds(row.planned->step);
    line.text(row.planned->partition);
    line.number(row.planned->gap, 5);
}

void add_faults(CsvLine& line, const Row& row) {
    if (!row.faults) return line.nothing(5);
    line.number(row.faults->usable_gpus, 2);
    line.number(row.faults->wasted_share, 5);
    line.whole(row.faults->job_gpus);
    line.text(row.faults->spares ? std::to_string(*row.faults->spares) : "");
    line.number(row.faults->usd_per_gpu, 2);
}

void add_basis(CsvLine& line, const Row& row) {
    if (!row.planned) return line.nothing(4);
    for (const double share :
         {row.planned->exact, row.planned->interpolated, row.planned->extrapolated, row.planned->modelled})
        line.number(share, 5);
}

std::string row_line(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking,
                     std::size_t place, const std::vector<std::string>& options) {
    const Row& row = ranking.rows[place];
    std::string answers;
    for (const std::string_view key : answer_keys_of(ranking, place))
        answers += fmt::format("{}{}", answers.empty() ? "" : "+", key);
    CsvLine line;
    line.whole(static_cast<std::int64_t>(place) + 1);
    line.text(answers);
    for (const bool is_so : {row.meets, row.at_risk, row.on_front, row.is_tied}) line.yes_or_no(is_so);
    add_cell(line, study.cells[row.cell], options);
    Point point = point_of(results, row);
    add_layout(line, point);
    line.seconds(row.flags_step);
    add_planned(line, row);
    if (row.planned) point.memory = row.planned->memory;
    add_schedule(line, point, point.memory + row.memory_left);
    add_pace(line, row.pace);
    add_faults(line, row);
    line.number(row.error_percent, 2);
    line.text(results[row.cell].facts.footing);
    add_basis(line, row);
    line.texts({row.why_not_planned, row.command});
    return line.ended();
}

}  // namespace

}  // namespace show

std::string results_csv(const Study& study, const std::vector<CellResult>& results) {
    const auto options = show::option_columns(study);
    show::CsvLine head;
    show::add_cell_names(head, options);
    show::add_layout_names(head);
    head.texts({"status", "bound_s", "step_s"});
    show::add_schedule_names(head);
    show::add_pace_names(head);
    head.texts({"error_percent", "why"});
    std::string text = head.ended();
    for (const CellResult& result : results) {
        if (!result.why_not.empty()) text += show::refused_cell_line(study, result, options);
        for (const Point& point : result.points) text += show::point_line(study, result, point, options);
    }
    return text;
}

std::string rows_csv(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking) {
    const auto options = show::option_columns(study);
    std::string text = show::rows_head(options);
    for (std::size_t i = 0; i < ranking.rows.size(); ++i) text += show::row_line(study, results, ranking, i, options);
    return text;
}

}  // namespace pipeweaver::capacity
