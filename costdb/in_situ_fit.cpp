#include "pipeweaver/costdb/in_situ_fit.hpp"

#include "costdb/import/table_row.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::costdb {

namespace {

struct Bounds {
    double low, high;
};
constexpr Bounds compute_bounds{0.5, 3}, tp_bounds{0, 3};

double clamped(double value, Bounds bounds) { return std::clamp(value, bounds.low, bounds.high); }

double predicted(const MeasuredStep& step, const StepFactors& factors) {
    return factors.compute * step.compute_s + factors.tp_exposed * step.tp_s + step.other_s;
}

double loss(std::span<const MeasuredStep> steps, const StepFactors& factors) {
    double sum = 0;
    for (const auto& step : steps) sum += std::pow(predicted(step, factors) / step.measured_s - 1, 2);
    return sum;
}

/// Sums of the relative least squares a c + b x = r.
struct Normal {
    double aa = 0, ab = 0, bb = 0, ar = 0, br = 0;

    explicit Normal(std::span<const MeasuredStep> steps) {
        for (const auto& step : steps) {
            const double a = step.compute_s / step.measured_s, b = step.tp_s / step.measured_s;
            const double r = 1 - step.other_s / step.measured_s;
            aa += a * a, ab += a * b, bb += b * b, ar += a * r, br += b * r;
        }
    }
    double compute_for(double x) const { return clamped((ar - ab * x) / aa, compute_bounds); }
    double tp_for(double c) const { return bb > 0 ? clamped((br - ab * c) / bb, tp_bounds) : 1; }
};

double number_or_zero(const CsvTable& table, std::size_t row, std::string_view column, double high) {
    const auto cell = table.text(row, table.column(column));
    const bool zero = !cell.empty() && cell.find_first_not_of("0.") == std::string_view::npos;
    return zero ? 0 : TableRow(table, row).number(column, high);
}

}  // namespace

StepFactors fit_factors(std::span<const MeasuredStep> steps) {
    const Normal normal(steps);
    const double determinant = normal.aa * normal.bb - normal.ab * normal.ab;
    if (normal.bb <= 0) return {normal.compute_for(0), 1};
    // The inner minimum where it is within the bounds, else the best of the four edges: the function is convex.
    std::vector<StepFactors> candidates;
    if (determinant > 1e-9 * normal.aa * normal.bb) {
        const StepFactors inner{(normal.ar * normal.bb - normal.br * normal.ab) / determinant,
                                (normal.br * normal.aa - normal.ar * normal.ab) / determinant};
        const bool allowed = inner.compute == clamped(inner.compute, compute_bounds) &&
                             inner.tp_exposed == clamped(inner.tp_exposed, tp_bounds);
        if (allowed) return inner;
    } else {  // compute and communication cannot be told apart: communication as it is
        return {normal.compute_for(1), 1};
    }
    for (const double c : {compute_bounds.low, compute_bounds.high}) candidates.push_back({c, normal.tp_for(c)});
    for (const double x : {tp_bounds.low, tp_bounds.high}) candidates.push_back({normal.compute_for(x), x});
    return *std::min_element(candidates.begin(), candidates.end(),
                             [&](const auto& a, const auto& b) { return loss(steps, a) < loss(steps, b); });
}

double error_percent(const MeasuredStep& step, const StepFactors& factors) {
    return 100 * std::abs(predicted(step, factors) / step.measured_s - 1);
}

std::vector<double> left_out_errors(std::span<const MeasuredStep> steps) {
    std::vector<double> errors;
    for (std::size_t out = 0; out < steps.size(); ++out) {
        std::vector<MeasuredStep> others(steps.begin(), steps.end());
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
        errors.push_back(error_percent(steps[out], fit_factors(others)));
    }
    return errors;
}

std::vector<MeasuredStep> measured_steps(const CsvTable& table) {
    static const std::array<std::string, 4> known{"compute_s", "tp_exposed_s", "other_s", "measured_s"};
    for (const auto& column : table.columns())
        if (std::find(known.begin(), known.end(), column) == known.end())
            fail(ErrorKind::input, "{}:1: {}", table.name(), unknown("column", column, known));
    constexpr double longest_s = 86'400;
    std::vector<MeasuredStep> steps;
    for (std::size_t i = 0; i < table.rows(); ++i) {
        const TableRow row(table, i);
        steps.push_back({row.number("compute_s", longest_s), number_or_zero(table, i, "tp_exposed_s", longest_s),
                         number_or_zero(table, i, "other_s", longest_s), row.number("measured_s", longest_s)});
    }
    if (steps.size() < fewest_steps)
        fail(ErrorKind::input, "{}: has {} steps, at least {} are needed", table.name(), steps.size(), fewest_steps);
    return steps;
}

}  // namespace pipeweaver::costdb
