// How rows, layouts and constraints are called wherever a study is shown.
#pragma once

#include "pipeweaver/capacity/ranking.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::capacity::show {

/// The layout's point among the results.
[[nodiscard]] const Point& point_of(const std::vector<CellResult>& results, const Row& row);

/// Degrees as columns, in the order of degree_names.
inline constexpr std::array<std::string_view, 6> degree_names{"tp", "cp", "pp", "dp", "ep", "zero"};
[[nodiscard]] std::array<std::int64_t, 6> degrees_of(const planner::LayoutAndZero& as);

/// "tp 8 pp 4 dp 8 zero 1": cp and ep where they are above 1.
[[nodiscard]] std::string layout_text(const planner::LayoutAndZero& as);

/// The options of `plan` that differ between cells, in the order in which cells have them; clusters and what follows
/// from them (GPUs, prices) aside.
[[nodiscard]] std::vector<std::string> varying_options(const Study& study);

/// The value that the cell has of it; empty: it has none.
[[nodiscard]] std::string value_of(const Cell& cell, std::string_view option);

/// "model dip-vlm-m, global-batch 1024": of varying options.
[[nodiscard]] std::string options_text(const Cell& cell, const std::vector<std::string>& options);

/// "256 x h100-sxm".
[[nodiscard]] std::string gpus_text(const Cell& cell);

/// What a row is the best of: "fewest GPUs", "cheapest" (without prices: what it has the least of), "fastest"; and
/// as keys: "fewest", "cheapest", "fastest".
[[nodiscard]] std::vector<std::string> answers_of(const Study& study, const Ranking& ranking, std::size_t row);
[[nodiscard]] std::vector<std::string_view> answer_keys_of(const Ranking& ranking, std::size_t row);

/// "days", "USD": the constraints that the row does not meet.
[[nodiscard]] std::vector<std::string_view> missed_by(const Study& study, const Row& row);

/// What is to be known of a row beside its figures: "tied", "at risk", "days missed".
[[nodiscard]] std::string notes_of(const Study& study, const Row& row);

/// Whether the row's fullest GPU has less left than an allocator may take where shapes vary (emulator/reserve.hpp).
[[nodiscard]] bool has_little_room(const Study& study, const std::vector<CellResult>& results, const Row& row);

/// "300 B tokens, in at most 30 days, for at most 200,000 USD"; empty: nothing of it is asked.
[[nodiscard]] std::string asked_text(const Study& study);

/// How the run's cost follows from the row's step, as one line of products; for a study without tokens, its rates.
[[nodiscard]] std::string arithmetic_text(const Study& study, const std::vector<CellResult>& results, const Row& row);

/// Which rows are as good as the cheapest as far as the costs can tell, and by how much they differ; empty: none.
[[nodiscard]] std::string ties_text(const Study& study, const Ranking& ranking);

/// What the errors of rows rest on, by cluster: "h100-sxm 3.9 % (fitted), b200 12.0 % (assumed)".
[[nodiscard]] std::string errors_text(const Study& study, const std::vector<CellResult>& results);

/// "212 judged, 4,100 passed over by bounds, 1,120 refused".
[[nodiscard]] std::string points_text(const Ranking& ranking);

/// A reason, and of how many points it is.
struct Reason {
    std::string why;
    std::size_t points = 0;
};

/// Why points are refused, the most frequent first.
[[nodiscard]] std::vector<Reason> reasons_of(const std::vector<Point>& points);

/// "a + b".
[[nodiscard]] std::string joined(const std::vector<std::string>& texts, std::string_view between);

/// The study's name, or "study".
[[nodiscard]] std::string title_of(const Study& study);

}  // namespace pipeweaver::capacity::show
