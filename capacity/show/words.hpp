// How rows, layouts and constraints are called wherever a study is shown, and the figures of rows.
#pragma once

#include "pipeweaver/capacity/ranking.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::capacity::show {

/// A study with all that was found of it.
struct FoundStudy {
    FoundStudy(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking);

    const Study& study;
    const std::vector<CellResult>& results;
    const Ranking& ranking;
    std::vector<std::string> options;   ///< varying_options()
    std::vector<std::string> clusters;  ///< each once, in the order of cells

    const Row& row(std::size_t place) const { return ranking.rows[place]; }
    const Cell& cell(const Row& row) const { return study.cells[row.cell]; }
    const Point& point(const Row& row) const { return results[row.cell].points[row.point]; }
};

/// "tp 8 pp 4 dp 8 zero 1": cp and ep where they are above 1; "groups vit=16,llm=112": of a split the GPUs of each.
[[nodiscard]] std::string layout_text(const Point& point);

/// The options of `plan` that differ between cells, in the order in which cells have them; clusters and what follows
/// from them (GPUs, prices) aside.
[[nodiscard]] std::vector<std::string> varying_options(const Study& study);

/// The value that the cell has of it; empty: it has none.
[[nodiscard]] std::string value_of(const Cell& cell, std::string_view option);

/// "model dip-vlm-m, global-batch 1024": of varying options.
[[nodiscard]] std::string options_text(const Cell& cell, const std::vector<std::string>& options);

/// What the GPUs of the first rows wait for samples, what that costs, and the cores that feed them; empty: no row has a
/// loader.
[[nodiscard]] std::string input_text(const FoundStudy& found);

/// USD of what a row's GPUs wait in a step; none: nothing waits for a loader, or no price is known.
[[nodiscard]] std::optional<double> usd_waited(const Cell& cell, const Row& row);

/// "256 x h100-sxm".
[[nodiscard]] std::string gpus_text(const Cell& cell);

/// What `of` says of the cells, each text once, in the order of cells; empty ones are left out.
template <class Of>
[[nodiscard]] std::vector<std::string> each_once(const Study& study, Of of) {
    std::vector<std::string> texts;
    for (const Cell& cell : study.cells)
        if (std::string text = of(cell); !text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end())
            texts.push_back(std::move(text));
    return texts;
}

/// What a row is the best of, as keys: "fewest", "cheapest", "fastest".
[[nodiscard]] std::vector<std::string_view> answer_keys_of(const Ranking& ranking, std::size_t row);

/// The same in words: "fewest GPUs, cheapest" (without prices: what it has the least of).
[[nodiscard]] std::string answers_text(const FoundStudy& found, std::size_t row);

/// What is to be known of a row beside its figures: "tied", "at risk", "days missed".
[[nodiscard]] std::string notes_of(const Study& study, const Row& row);

/// A row with what it is of.
struct FoundRow {
    FoundRow(const FoundStudy& of, std::size_t at) : found(of), place(at) {}

    const FoundStudy& found;
    std::size_t place;
    const Row& row = found.row(place);
    const Cell& cell = found.cell(row);
    const std::optional<planner::TrainingCost>& run = row.pace.run;
};

/// A fact of each row: a column of the tables of rows.
struct RowFact {
    std::string_view terminal, page;       ///< its heading there, or `nowhere`
    bool is_word;                          ///< stands to the left
    std::string (*text)(const FoundRow&);  ///< empty: the row has none

    static constexpr std::string_view nowhere = "-";
    static constexpr std::string_view by_option = "=";  ///< on the page: a column for each of FoundStudy::options
};
[[nodiscard]] std::span<const RowFact> row_facts();

/// Whether the row's fullest GPU has less left than an allocator may take where shapes vary (emulator/reserve.hpp).
[[nodiscard]] bool has_little_room(const FoundStudy& found, const Row& row);

/// "300 B tokens, in at most 30 days, for at most 200,000 USD"; empty: nothing of it is asked.
[[nodiscard]] std::string asked_text(const Study& study);

/// How the run's cost follows from the step of the cheapest answer, or else of the best row, as one line of products;
/// for a study without tokens, its rates. Pre: there are rows.
[[nodiscard]] std::string arithmetic_text(const FoundStudy& found);

/// Which rows are as good as the cheapest as far as the costs can tell, and by how much they differ; empty: none.
[[nodiscard]] std::string ties_text(const FoundStudy& found);

/// What the errors of rows rest on, by cluster: "h100-sxm 3.9 % (fitted), b200 12.0 % (assumed)".
[[nodiscard]] std::string errors_text(const FoundStudy& found);

/// "212 judged, 4,100 passed over by bounds, 1,120 refused".
[[nodiscard]] std::string points_text(const Ranking& ranking);

/// A reason, and of how many points it is.
struct Reason {
    std::string why;
    std::size_t points = 0;
};

/// Why points are refused, the most frequent first.
[[nodiscard]] std::vector<Reason> reasons_of(const std::vector<Point>& points);

/// The study's name, or "study".
[[nodiscard]] std::string title_of(const Study& study);

}  // namespace pipeweaver::capacity::show
