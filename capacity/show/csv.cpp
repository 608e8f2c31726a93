// The tables of a study: all points, and the rows of its ranking. Numbers have fixed digits.
#include "pipeweaver/base/csv.hpp"

#include "capacity/show/words.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/capacity/answer.hpp"

#include <fmt/ranges.h>

namespace pipeweaver::capacity {

namespace show {

namespace {

// Cells under their columns' names; what is not there is an empty cell.
class CsvLine {
public:
    void text(std::string_view name, std::string_view one) {
        names_.push_back(csv_cell(name));
        cells_.push_back(csv_cell(one));
    }
    void whole(std::string_view name, const std::optional<std::int64_t>& number) {
        text(name, number ? std::to_string(*number) : "");
    }
    void number(std::string_view name, const std::optional<double>& number, int digits) {
        text(name, number ? fmt::format("{:.{}f}", *number, digits) : "");
    }
    void seconds(std::string_view name, const std::optional<Duration>& time) {
        constexpr int nanoseconds = 9;
        number(name, time ? std::optional(static_cast<double>(time->count()) * 1e-9) : std::nullopt, nanoseconds);
    }
    void yes_or_no(std::string_view name, bool is_so) { text(name, is_so ? "yes" : "no"); }

    std::string names() const { return fmt::format("{}\n", fmt::join(names_, ",")); }
    std::string cells() const { return fmt::format("{}\n", fmt::join(cells_, ",")); }

private:
    std::vector<std::string> names_, cells_;
};

// A member of what may not be there.
template <class Of, class Member>
auto member_of(const std::optional<Of>& of, Member Of::*member) {
    return of ? std::optional<Member>((*of).*member) : std::nullopt;
}

void add_cell(CsvLine& line, const Cell& cell, const std::vector<std::string>& options) {
    line.whole("cell", static_cast<std::int64_t>(cell.number));
    line.text("model", value_of(cell, "model"));
    line.text("cluster", cell.cluster);
    line.whole("gpus", cell.gpus);
    const double price = price_of(cell);
    line.number("price_per_gpu_hour", price > 0 ? std::optional(price) : std::nullopt, 4);
    for (const std::string& name : options) line.text(name, value_of(cell, name));
}

void add_layout(CsvLine& line, const Point* point) {
    const bool has_degrees = point != nullptr && !point->split;
    const auto degrees = degrees_of(has_degrees ? point->as : planner::LayoutAndZero{});
    for (std::size_t i = 0; i < degrees.size(); ++i)
        line.whole(degree_names[i], has_degrees ? std::optional(degrees[i]) : std::nullopt);
    line.text("split", point == nullptr ? "" : point->split.value_or(""));
}

void add_pace(CsvLine& line, const std::optional<Pace>& pace) {
    line.number("tokens_per_s", member_of(pace, &Pace::tokens_per_second), 3);
    line.number("tokens_per_s_per_gpu", member_of(pace, &Pace::tokens_per_second_per_gpu), 3);
    line.number("samples_per_s", member_of(pace, &Pace::samples_per_second), 3);
    line.number("tflops_per_gpu", member_of(pace, &Pace::tflops_per_gpu), 3);
    line.number("mfu", member_of(pace, &Pace::mfu), 5);
    const auto run = pace ? pace->run : std::nullopt;
    line.number("days", member_of(run, &planner::TrainingCost::days), 4);
    line.number("gpu_hours", member_of(run, &planner::TrainingCost::gpu_hours), 2);
    line.number("usd", run ? run->usd : std::nullopt, 2);
    line.number("kwh", run ? run->kwh : std::nullopt, 1);
}

// The model has a column whether it varies or not.
std::vector<std::string> option_columns(const Study& study) {
    auto options = varying_options(study);
    std::erase(options, "model");
    return options;
}

void add_schedule(CsvLine& line, const std::optional<Point>& judged, Bytes usable) {
    line.text("partition", judged ? judged->partition : "");
    line.whole("chunks", member_of(judged, &Point::chunks));
    line.text("policy", judged ? judged->policy : "");
    line.text("recompute", judged ? judged->recompute : "");
    line.number("memory_gib", judged ? std::optional(gib(judged->memory)) : std::nullopt, 3);
    line.number("memory_left_gib", judged ? std::optional(gib(usable - judged->memory)) : std::nullopt, 3);
}

// Of a cell that cannot be asked, `point` is null.
CsvLine point_line(const Study& study, const Cell& cell, const CellResult& result, const Point* point,
                   const std::vector<std::string>& options) {
    CsvLine line;
    add_cell(line, cell, options);
    add_layout(line, point);
    Point as;
    if (point == nullptr)
        as.why = result.why_not;
    else
        as = *point;
    const auto judged = as.status == PointStatus::judged ? std::optional(as) : std::nullopt;
    line.text("status", name_of(as.status));
    line.seconds("bound_s", as.bound > Duration{} ? std::optional(as.bound) : std::nullopt);
    line.seconds("step_s", member_of(judged, &Point::step));
    add_schedule(line, judged, result.facts.usable);
    add_pace(line, judged ? std::optional(pace_of(study, cell, result.facts, judged->step)) : std::nullopt);
    line.number("error_percent", judged ? std::optional(result.facts.error_percent) : std::nullopt, 2);
    line.text("why", as.why);
    return line;
}

void add_planned(CsvLine& line, const std::optional<Planned>& planned) {
    line.seconds("planned_step_s", member_of(planned, &Planned::step));
    line.text("planned_partition", planned ? planned->partition : "");
    line.number("gap", member_of(planned, &Planned::gap), 5);
}

void add_input(CsvLine& line, const Row& row) {
    const auto input = row.fed() != nullptr && row.fed()->why_not.empty() ? std::optional(*row.fed()) : std::nullopt;
    line.seconds("waits_s", member_of(input, &RowInput::waits));
    line.whole("loader_cores", member_of(input, &RowInput::cores));
    line.whole("cores_bought", input ? std::optional(row.cores_bought) : std::nullopt);
    line.number("usd_of_cores", input ? std::optional(row.usd_of_cores) : std::nullopt, 2);
}

void add_faults(CsvLine& line, const std::optional<FaultColumns>& faults) {
    line.number("usable_gpus", member_of(faults, &FaultColumns::usable_gpus), 2);
    line.number("wasted_share", member_of(faults, &FaultColumns::wasted_share), 5);
    line.whole("job_gpus", member_of(faults, &FaultColumns::job_gpus));
    line.whole("spares", faults ? faults->spares : std::nullopt);
    line.number("network_usd_per_gpu", faults ? faults->usd_per_gpu : std::nullopt, 2);
}

void add_basis(CsvLine& line, const std::optional<Planned>& planned) {
    line.number("exact", member_of(planned, &Planned::exact), 5);
    line.number("interpolated", member_of(planned, &Planned::interpolated), 5);
    line.number("extrapolated", member_of(planned, &Planned::extrapolated), 5);
    line.number("modelled", member_of(planned, &Planned::modelled), 5);
}

CsvLine row_line(const Ranking& ranking, std::size_t place, const Row& row, const Cell& cell, Point point,
                 std::string_view footing, const std::vector<std::string>& options) {
    CsvLine line;
    line.whole("place", static_cast<std::int64_t>(place) + 1);
    line.text("answer", fmt::format("{}", fmt::join(answer_keys_of(ranking, place), "+")));
    line.yes_or_no("meets", row.meets);
    line.yes_or_no("at_risk", row.at_risk);
    line.yes_or_no("front", row.on_front);
    line.yes_or_no("tied", row.is_tied);
    add_cell(line, cell, options);
    add_layout(line, &point);
    line.seconds("flags_step_s", row.flags_step);
    line.seconds("far_step_s", row.far());
    add_planned(line, row.planned);
    if (row.planned) point.memory = row.planned->memory;
    add_schedule(line, point, point.memory + row.memory_left);
    add_pace(line, row.pace);
    add_input(line, row);
    add_faults(line, row.faults);
    line.number("error_percent", row.error_percent, 2);
    line.text("footing", footing);
    add_basis(line, row.planned);
    line.text("why_not_planned", row.why_not_planned);
    line.text("command", row.command);
    return line;
}

}  // namespace

}  // namespace show

std::string results_csv(const Study& study, const std::vector<CellResult>& results) {
    const auto options = show::option_columns(study);
    std::string text = show::point_line(study, {}, {}, nullptr, options).names();
    for (const CellResult& result : results) {
        const Cell& cell = study.cells[result.cell];
        if (!result.why_not.empty()) text += show::point_line(study, cell, result, nullptr, options).cells();
        for (const Point& point : result.points) text += show::point_line(study, cell, result, &point, options).cells();
    }
    return text;
}

std::string rows_csv(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking) {
    const auto options = show::option_columns(study);
    std::string text = show::row_line(ranking, 0, {}, {}, {}, "", options).names();
    for (std::size_t i = 0; i < ranking.rows.size(); ++i) {
        const Row& row = ranking.rows[i];
        const CellResult& result = results[row.cell];
        text += show::row_line(ranking, i, row, study.cells[row.cell], result.points[row.point], result.facts.footing,
                               options)
                    .cells();
    }
    return text;
}

}  // namespace pipeweaver::capacity
