// Columns of text under headings, as wide as what they hold.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pipeweaver {

class TextTable {
public:
    struct Column {
        std::string heading;
        bool is_left = false;   ///< texts to the left, numbers to the right
        std::size_t least = 0;  ///< letters that it takes, however short its texts are
    };

    /// `gap`: blanks between columns.
    explicit TextTable(std::vector<Column> columns, std::size_t gap = 2) : columns_(std::move(columns)), gap_(gap) {}

    /// Pre: a text for each column, in ASCII. A row may have fewer: then its last runs on to the end of the line.
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

    /// The table, with a line of headings if there are any; where it has rows, columns without any text are left out.
    [[nodiscard]] std::string text() const;

private:
    std::string line(const std::vector<std::string>& texts, const std::vector<std::size_t>& widths) const;

    std::vector<Column> columns_;
    std::size_t gap_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace pipeweaver
