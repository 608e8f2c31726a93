#include "measured/factors.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/measured/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace pipeweaver::measured {

using planner::EmulationRequest;
using planner::ScheduledTimes;

Duration Share::total() const { return std::accumulate(of_task.begin(), of_task.end(), Duration{0}); }

namespace {

ScheduledTimes times_with(const EmulationRequest& request, std::vector<emulator::WhatIf::Passes> passes,
                          const Planned& planned, const Executor& execute) {
    EmulationRequest changed = request;
    emulator::WhatIf what_if;
    what_if.passes = std::move(passes);
    const emulator::Setup& setup = *request.job.setup;
    changed.job.setup = std::make_shared<const emulator::Setup>(with_recipe(setup, setup.recipe, std::move(what_if)));
    auto times = planner::scheduled_times(changed, static_cast<std::size_t>(planned.replica), execute);
    const auto same = [](const schedule::Task& a, const schedule::Task& b) { return a.label == b.label; };
    const auto& tasks = planned.problem.tasks;
    if (!std::equal(tasks.begin(), tasks.end(), times.problem.tasks.begin(), times.problem.tasks.end(), same))
        fail(ErrorKind::input, "{}: its tasks are not those of the model, layout and batch", planned.name);
    return times;
}

}  // namespace

std::vector<Share> shares_of(const EmulationRequest& request, const Planned& planned, const Executor& execute) {
    const auto usual = times_with(request, {}, planned, execute).duration;
    std::vector<Share> shares;
    for (const auto& module : request.job.setup->model.modules)
        for (const bool backward : {false, true}) {
            auto twice = times_with(request, {{module.name, backward, 2}}, planned, execute).duration;
            for (std::size_t t = 0; t < twice.size(); ++t) twice[t] -= usual[t];
            Share share{module.name, backward, std::move(twice)};
            if (share.total() > Duration{0}) shares.push_back(std::move(share));
        }
    return shares;
}

namespace {

// Of every task over the steps, without what slow ranks add.
std::vector<double> measured_times(const Planned& planned, const Run& run) {
    const auto factors = rank_factors(planned, run);
    std::vector<double> times;
    times.reserve(planned.problem.tasks.size());
    for (std::size_t t = 0; t < planned.problem.tasks.size(); ++t) {
        std::vector<std::int64_t> lengths;
        lengths.reserve(run.steps.size());
        for (const Step& step : run.steps) lengths.push_back(step.task[t].length().count());
        const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>((lengths.size() - 1) / 2);
        std::nth_element(lengths.begin(), middle, lengths.end());
        const double factor = factors[index(planned.problem.tasks[t].rank)].value_or(1);
        times.push_back(static_cast<double>(*middle) / (factor >= slow_factor ? factor : 1));
    }
    return times;
}

// Gaussian elimination with pivots. Pre: the matrix is regular.
std::vector<double> solved(std::vector<std::vector<double>> matrix, std::vector<double> right) {
    const std::size_t size = right.size();
    for (std::size_t i = 0; i < size; ++i) {
        std::size_t pivot = i;
        for (std::size_t row = i + 1; row < size; ++row)
            if (std::abs(matrix[row][i]) > std::abs(matrix[pivot][i])) pivot = row;
        std::swap(matrix[i], matrix[pivot]);
        std::swap(right[i], right[pivot]);
        for (std::size_t row = i + 1; row < size; ++row) {
            const double by = matrix[row][i] / matrix[i][i];
            for (std::size_t column = i; column < size; ++column) matrix[row][column] -= by * matrix[i][column];
            right[row] -= by * right[i];
        }
    }
    for (std::size_t i = size; i-- > 0;) {
        for (std::size_t column = i + 1; column < size; ++column) right[i] -= matrix[i][column] * right[column];
        right[i] /= matrix[i][i];
    }
    return right;
}

}  // namespace

std::vector<double> fit_factors(const Planned& planned, const Run& run, std::span<const Share> shares) {
    constexpr double hold = 1e-6;
    const auto measured = measured_times(planned, run);
    const std::size_t size = shares.size();
    std::vector<std::vector<double>> matrix(size, std::vector<double>(size));
    std::vector<double> right(size);
    for (std::size_t t = 0; t < measured.size(); ++t) {
        // Relative, of what is beyond the plan: factors less 1 are looked for.
        const auto of = static_cast<double>(planned.duration[t].count());
        const double beyond = measured[t] / of - 1;
        for (std::size_t i = 0; i < size; ++i) {
            const double own = static_cast<double>(shares[i].of_task[t].count()) / of;
            if (own == 0) continue;
            right[i] += own * beyond;
            for (std::size_t j = 0; j < size; ++j)
                matrix[i][j] += own * static_cast<double>(shares[j].of_task[t].count()) / of;
        }
    }
    for (std::size_t i = 0; i < size; ++i) matrix[i][i] += hold * static_cast<double>(measured.size());
    auto factors = solved(std::move(matrix), std::move(right));
    for (double& factor : factors) factor += 1;
    return factors;
}

}  // namespace pipeweaver::measured
