#include "pipeweaver/base/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver {

std::string TextTable::line(const std::vector<std::string>& texts, const std::vector<std::size_t>& widths) const {
    std::string text;
    bool is_first = true;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const bool runs_on = i + 1 == texts.size() && i + 1 < columns_.size();
        if (widths[i] == 0 && !runs_on) continue;
        if (!is_first) text.append(gap_, ' ');
        is_first = false;
        const std::size_t width = runs_on ? 0 : widths[i];
        text += columns_[i].is_left ? fmt::format("{:<{}}", texts[i], width) : fmt::format("{:>{}}", texts[i], width);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
}

std::string TextTable::text() const {
    std::vector<std::size_t> widths(columns_.size(), 0);
    std::vector<std::string> headings;
    headings.reserve(columns_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        headings.push_back(columns_[i].heading);
        for (const auto& row : rows_)
            if (row.size() == columns_.size() || i + 1 < row.size()) widths[i] = std::max(widths[i], row[i].size());
        if (rows_.empty() || widths[i] > 0) widths[i] = std::max({widths[i], headings[i].size(), columns_[i].least});
    }
    std::string text = line(headings, widths);
    if (text == "\n") text.clear();
    for (const auto& row : rows_) text += line(row, widths);
    return text;
}

}  // namespace pipeweaver
