// The parts of a study's page. Every function returns HTML in which texts are escaped already.
#pragma once

#include "capacity/show/scale.hpp"
#include "capacity/show/words.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::capacity::show {

/// A plot of two directions: its marks are at the same places where it is wide and where it is narrow.
struct Plot {
    std::string id, caption, description, x_name;
    Scale x, y;
    std::vector<double> x_marks{}, y_marks{};
    std::string svg{};     ///< on Plot::across() and Plot::down()
    std::string labels{};  ///< HTML above the SVG

    static constexpr double height = 300;  ///< pixels

    /// In units of the SVG.
    double across(double value) const;
    double down(double value) const;
    /// A point on a path: "123 45.6".
    std::string at(double x_value, double y_value) const;
    /// A text beside a spot.
    void label(double x_value, double y_value, std::string_view text);
    /// A line at a limit, if it is on the plot.
    void limit_x(const std::optional<double>& value);
    void limit_y(const std::optional<double>& value);

    std::string html() const;
};

/// Cost over time, a spot for each row with what its step may be off.
[[nodiscard]] std::string pareto_plot(const FoundStudy& found);

/// Step, and tokens a second for each GPU, over the number of GPUs: a line for each cluster and choice of options.
[[nodiscard]] std::string scaling_plots(const FoundStudy& found);

/// All rows, the answers and the first ones open.
[[nodiscard]] std::string row_table(const FoundStudy& found);

/// The commands that plan rows: of the answers open, of the first others behind a fold.
[[nodiscard]] std::string row_commands(const FoundStudy& found);

/// Each cell behind a fold: its points, and why others are none.
[[nodiscard]] std::string cell_list(const FoundStudy& found);

/// What was asked and what the figures rest on.
[[nodiscard]] std::string study_facts(const FoundStudy& found);

/// Of planned rows, the parts of their busy time by what the costs rest on; empty: no row is planned.
[[nodiscard]] std::string basis_table(const FoundStudy& found);

}  // namespace pipeweaver::capacity::show
