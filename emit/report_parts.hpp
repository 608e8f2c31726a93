// The parts of report.html. Every function returns HTML in which texts are escaped already.
#pragma once

#include "pipeweaver/planner/plan.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emit::report_parts {

/// For element content and double-quoted attributes.
[[nodiscard]] std::string escape(std::string_view text);
[[nodiscard]] std::string percent(double share);
[[nodiscard]] std::string times(double ratio);  ///< "1.234x"
[[nodiscard]] std::string plural(std::size_t count, std::string_view noun);

/// Two cells of a table of facts.
[[nodiscard]] std::string fact(std::string_view name, std::string_view value);

/// A row of a picture: its label to the left, `plot` on the time axis.
[[nodiscard]] std::string row(std::string_view classes, std::string_view label, std::string_view plot);

/// One row of a stacked bar: part i has the class c<i>, its width in millionths of the whole, and a hover text.
struct BarPart {
    std::size_t color = 0;
    double share = 0;
    std::string hover;
};
[[nodiscard]] std::string stacked_bar(const std::vector<BarPart>& parts, std::string_view description);

/// A schedule to be drawn.
struct Drawn {
    std::string id;       ///< of the element
    std::string heading;  ///< HTML
    const planner::Candidate* candidate = nullptr;
    const emulator::Schedule* schedule = nullptr;
    const emulator::Replay* replay = nullptr;
};

/// The time axis that all pictures share: labels, and the lines that go through the pictures.
[[nodiscard]] std::string axis_labels(Duration horizon);
[[nodiscard]] std::string axis_lines(Duration horizon);

/// The schedules under one another with their legend.
[[nodiscard]] std::string schedule_pictures(const std::vector<Drawn>& all, Duration horizon);

/// Memory of every rank with its limit.
[[nodiscard]] std::string memory_pictures(const Drawn& drawn, Duration horizon);

/// Every (partition, policy).
[[nodiscard]] std::string pair_table(const planner::Plan& plan);

/// What each rank of replica 0 does from the step's start to its end.
[[nodiscard]] std::string time_of_ranks(const planner::Plan& plan);

/// Busy time by operator class and by what its costs rest on.
[[nodiscard]] std::string time_by_basis(const planner::Plan& plan);

/// Whether the plan still wins over its best known opponent under wrong costs, and how that was tried.
[[nodiscard]] std::string robustness(const planner::Plan& plan);

[[nodiscard]] std::string batch(const planner::Request& request, const planner::Plan& plan);
[[nodiscard]] std::string torch(const planner::Plan& plan);
[[nodiscard]] std::string inputs(const planner::Request& request, const planner::Plan& plan);

/// emit/report_template.html as it was when the program was built.
[[nodiscard]] std::string_view page_template();

}  // namespace pipeweaver::emit::report_parts
