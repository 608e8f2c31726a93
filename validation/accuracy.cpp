#include "pipeweaver/validation/accuracy.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace pipeweaver::validation {

namespace {

// Errors of a group of rows, while they are collected.
struct Collected {
    std::size_t predicted = 0;
    std::vector<double> now{}, before{}, now_of_both{};
};

// Device, number format, stack; whether of experts, whether multimodal.
using Key = std::tuple<std::string, std::string, std::string, bool, bool>;

std::vector<StackErrors> done(const std::map<Key, Collected>& groups) {
    std::vector<StackErrors> all;
    all.reserve(groups.size());
    for (const auto& [key, group] : groups) {
        const auto& [device, products, stack, experts, multimodal] = key;
        all.push_back({device, products, stack, experts, multimodal, group.predicted, errors_of(group.now),
                       errors_of(group.before), errors_of(group.now_of_both)});
    }
    return all;
}

void add(Collected& group, const std::optional<RowError>& error) {
    ++group.predicted;
    if (!error) return;
    group.now.push_back(error->now);
    if (!error->before) return;
    group.before.push_back(*error->before);
    group.now_of_both.push_back(error->now);
}

}  // namespace

Accuracy accuracy_of(std::span<const PublishedRun> runs, std::span<const Prediction> now,
                     std::span<const std::optional<double>> before) {
    PIPEWEAVER_ASSERT(runs.size() == now.size() && (before.empty() || before.size() == runs.size()));
    Accuracy accuracy;
    std::map<Key, Collected> stacks, devices;
    for (std::size_t row = 0; row < runs.size(); ++row) {
        const Prediction& one = now[row];
        const auto old = before.empty() ? std::nullopt : before[row];
        if (one.refused()) {
            if (old) accuracy.before_alone.push_back(row);
            continue;
        }
        ++accuracy.predicted;
        if (!old && !before.empty()) accuracy.now_alone.push_back(row);
        std::optional<RowError> error;
        if (const auto measured = measured_step(runs[row], one)) {
            error = RowError{row, *one.step_time_s / *measured - 1, {}};
            if (old) error->before = *old / *measured - 1;
            accuracy.rows.push_back(*error);
        }
        add(stacks[{one.device, one.products, one.recipe, one.experts, one.multimodal}], error);
        add(devices[{one.device, one.products, "", one.experts, one.multimodal}], error);
    }
    accuracy.stacks = done(stacks);
    accuracy.devices = done(devices);
    std::stable_sort(accuracy.rows.begin(), accuracy.rows.end(),
                     [](const RowError& a, const RowError& b) { return std::abs(a.now) > std::abs(b.now); });
    return accuracy;
}

std::vector<std::optional<double>> predicted_before(const CsvTable& runs, const CsvTable& before) {
    if (before.rows() != runs.rows())
        fail(ErrorKind::input, "{}: has {} rows, {} has {}: allowed is a table of the same runs", before.name(),
             before.rows(), runs.name(), runs.rows());
    const std::size_t predicted = before.column("predicted_step_time_s");
    std::vector<std::optional<double>> all(runs.rows());
    for (std::size_t row = 0; row < runs.rows(); ++row) {
        for (std::size_t column = 0; column < runs.columns().size(); ++column) {
            const auto same = before.column(runs.columns()[column]);
            if (before.text(row, same) != runs.text(row, column))
                before.fail_at(row, same, fmt::format("is another run's, allowed is that of {}", runs.name()));
        }
        constexpr double longest = 3.6e6;  // seconds
        if (!before.text(row, predicted).empty()) all[row] = before.number(row, predicted, 0, longest);
    }
    return all;
}

}  // namespace pipeweaver::validation
