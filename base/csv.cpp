#include "pipeweaver/base/csv.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace pipeweaver {

namespace {

std::string_view trimmed(std::string_view cell) {
    const auto first = cell.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return cell.substr(first, cell.find_last_not_of(" \t\r") - first + 1);
}

/// Walks over a text cell by cell.
class Scanner {
public:
    Scanner(const std::string& name, std::string_view text, std::deque<std::string>& unquoted)
        : name_(name), rest_(text), unquoted_(unquoted) {
        if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
    }

    bool at_end() const { return rest_.empty(); }
    std::int64_t line() const { return line_; }

    /// The cells of the next line.
    std::vector<std::string_view> next_line() {
        std::vector<std::string_view> cells;
        const std::int64_t starts = line_;
        do cells.push_back(trimmed(next_cell(starts)));
        while (more_);
        ++line_;
        return cells;
    }

private:
    std::string_view next_cell(std::int64_t starts) {
        if (rest_.starts_with('"')) return quoted_cell(starts);
        const auto end = rest_.find_first_of(",\n");
        return take(end == std::string_view::npos ? rest_.size() : end);
    }

    /// Cuts `size` characters and the separator behind them.
    std::string_view take(std::size_t size) {
        const auto cell = rest_.substr(0, size);
        more_ = size < rest_.size() && rest_[size] == ',';
        rest_.remove_prefix(std::min(rest_.size(), size + 1));
        return cell;
    }

    std::string_view quoted_cell(std::int64_t starts) {
        std::string content;
        std::size_t at = 1;
        while (true) {
            const auto quote = rest_.find('"', at);
            if (quote == std::string_view::npos) fail(ErrorKind::input, "{}:{}: a quote is not closed", name_, starts);
            content.append(rest_, at, quote - at);
            at = quote + 1;
            if (at >= rest_.size() || rest_[at] != '"') break;
            content += '"';
            ++at;
        }
        line_ += std::count(content.begin(), content.end(), '\n');
        const auto end = std::min(rest_.find_first_of(",\n", at), rest_.size());
        if (!trimmed(rest_.substr(at, end - at)).empty())
            fail(ErrorKind::input, "{}:{}: text follows a closing quote", name_, starts);
        take(end);
        return unquoted_.emplace_back(std::move(content));
    }

    const std::string& name_;
    std::string_view rest_;
    std::deque<std::string>& unquoted_;
    std::int64_t line_ = 1;
    bool more_ = false;
};

std::vector<std::string> checked_header(const std::string& name, const std::vector<std::string_view>& cells) {
    std::vector<std::string> columns(cells.begin(), cells.end());
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (columns[i].empty()) fail(ErrorKind::input, "{}:1: column {} has no name", name, i + 1);
        if (std::find(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(i), columns[i]) !=
            columns.begin() + static_cast<std::ptrdiff_t>(i))
            fail(ErrorKind::input, "{}:1: column '{}' occurs twice", name, columns[i]);
    }
    return columns;
}

}  // namespace

CsvTable::CsvTable(std::string name, std::string text)
    : name_(std::move(name)), text_(std::make_unique<const std::string>(std::move(text))) {
    if (text_->find('\0') != std::string::npos) fail(ErrorKind::input, "{}: is not text, CSV is needed", name_);
    const auto last = text_->find_last_not_of("\r\n \t");
    if (last == std::string::npos) fail(ErrorKind::input, "{}: is empty, a header line is needed", name_);
    Scanner scanner(name_, std::string_view(*text_).substr(0, last + 1), unquoted_);
    columns_ = checked_header(name_, scanner.next_line());
    while (!scanner.at_end()) {
        lines_.push_back(scanner.line());
        const auto cells = scanner.next_line();
        if (cells.size() != columns_.size())
            fail(ErrorKind::input, "{}:{}: has {} cells, the header has {}", name_, lines_.back(), cells.size(),
                 columns_.size());
        cells_.insert(cells_.end(), cells.begin(), cells.end());
    }
}

CsvTable CsvTable::read(const std::filesystem::path& path) { return {path.string(), read_file(path)}; }

std::optional<std::size_t> CsvTable::find(std::string_view column) const {
    const auto found = std::find(columns_.begin(), columns_.end(), column);
    if (found == columns_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - columns_.begin());
}

std::size_t CsvTable::column(std::string_view column) const {
    if (const auto found = find(column)) return *found;
    const auto near = nearest(column, columns_);
    fail(ErrorKind::input, "{}:1: column '{}' is missing{}", name_, column,
         near ? fmt::format("; is '{}' meant to be it?", *near) : std::string());
}

std::int64_t CsvTable::integer(std::size_t row, std::size_t column, std::int64_t low, std::int64_t high) const {
    const auto cell = text(row, column);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc{} || end != cell.data() + cell.size() || value < low || value > high)
        fail_at(row, column, must_be(cell, a_whole_number(low, high)));
    return value;
}

double CsvTable::number(std::size_t row, std::size_t column, double above, double high) const {
    const auto cell = text(row, column);
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value) || value <= above ||
        value > high)
        fail_at(row, column, must_be(cell, fmt::format("a number above {} and up to {}", above, high)));
    return value;
}

void CsvTable::fail_at(std::size_t row, std::size_t column, std::string_view message) const {
    fail(ErrorKind::input, "{}:{}: {}: {}", name_, lines_[row], columns_[column], message);
}

std::string csv_cell(std::string_view cell) {
    if (cell.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(cell);
    std::string quoted = "\"";
    for (const char c : cell) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

}  // namespace pipeweaver
