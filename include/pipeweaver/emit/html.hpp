// What pages of HTML are made of: pieces of the reports of plans, searches and studies, which look alike.
//
// Every function returns HTML in which texts are escaped already; what it is given as "HTML" it takes as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::emit::html {

/// An SVG on an axis has this many units for the whole and stretches to the width there is.
inline constexpr std::int64_t axis_units = 1'000'000;
inline constexpr double last_label = 94;  ///< per cent: further right a mark's label would be cut off

/// Names in a page, and what stands in their place.
using Parts = std::map<std::string, std::string, std::less<>>;

/// Fills a page: each {{name}} of `text` is replaced, once, and what a part contains is not looked at again. What
/// stands between `{{#name}}` and `{{/name}}` is left out where `parts` has no such name.
[[nodiscard]] std::string filled(std::string_view text, const Parts& parts);

/// The style sheet of all pages, light and dark.
[[nodiscard]] std::string style();

/// Escapes a text for element content and double-quoted attributes.
[[nodiscard]] std::string escape(std::string_view text);

/// A figure of a page's head: texts.
[[nodiscard]] std::string figure(std::string_view name, std::string_view value, std::string_view about);

/// Two cells of a table of facts, and such a table.
[[nodiscard]] std::string fact(std::string_view name, std::string_view value);
[[nodiscard]] std::string fact_table(const std::vector<std::string>& facts);

[[nodiscard]] std::string heading(std::string_view text);

/// `content` that a click on `summary` opens or closes.
[[nodiscard]] std::string folded(std::string_view summary, std::string_view content, bool open);

inline constexpr std::size_t most_rows_open = 40;  ///< longer tables are folded
inline constexpr std::size_t first_rows = 10;      ///< of lists that matter less the further down

/// What a column of a table holds: texts, numbers, or what its rows are called.
enum class ColumnKind : std::uint8_t { text, number, head };

struct Column {
    Column(const char* text) : name(text) {}
    Column(std::string called, ColumnKind of) : name(std::move(called)), kind(of) {}

    std::string name;
    ColumnKind kind = ColumnKind::text;
};

/// A column of numbers, and one of what rows are called.
[[nodiscard]] inline Column number(std::string name) { return {std::move(name), ColumnKind::number}; }
[[nodiscard]] inline Column head(std::string name) { return {std::move(name), ColumnKind::head}; }

/// A table under its headings. Rows of one of class "stack" become blocks where the page is narrow: there each cell is
/// shown with its column's name.
class Table {
public:
    Table(std::string_view classes, std::vector<Column> columns);

    /// Pre: a text for each column, which is escaped here; classes are of the row.
    void add(const std::vector<std::string>& texts, std::string_view classes = "");

    /// A row whose cells are HTML, behind those of `texts`, which are the first columns'.
    void add(const std::vector<std::string>& texts, std::string_view cells, std::string_view classes);

    [[nodiscard]] bool empty() const { return rows_.empty(); }

    [[nodiscard]] std::string html() const;

    /// The table in a box of its own that scrolls where the page is too narrow for it.
    [[nodiscard]] std::string wide() const;

    /// The same of the first_rows; those beyond them, where there are any, likewise in a fold that says how many more
    /// there are and what they are ("12 slower"). Rows of `kept`, which is sorted, are among the first.
    [[nodiscard]] std::string first_of(std::string rest, std::vector<std::size_t> kept = {}) const;

private:
    std::vector<Column> columns_;
    std::string opening_;
    bool is_stack_;
    std::vector<std::string> rows_;
};

/// The first of `lines`, which are texts, as a list, and the rest in a fold; empty without lines.
[[nodiscard]] std::string first_items(const std::vector<std::string>& lines, std::string rest);

/// A row of a picture: its label to the left, `plot` to the right.
[[nodiscard]] std::string row(std::string_view classes, std::string_view label, std::string_view plot);

/// An entry of the legend of pictures: `swatch` is what the 14 x 14 SVG before the name holds.
[[nodiscard]] std::string legend_entry(std::string_view swatch, std::string_view name);

/// What is listed beside a colour.
struct Colored {
    std::string name;
    std::size_t color = 0;  ///< of the class c<color>
};
[[nodiscard]] std::string color_legend(const std::vector<Colored>& entries);

}  // namespace pipeweaver::emit::html
