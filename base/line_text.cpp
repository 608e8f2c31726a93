// Text of unknown origin as one printable line.
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver {

namespace {

constexpr std::size_t longest_word = 80, longest_line = 400;
constexpr std::string_view cut_off = "…";

// How many bytes the UTF-8 character at the front has; 0: it is none.
std::size_t character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool no_character = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
    return overlong || no_character ? 0 : size;
}

// C1 control characters, separators of lines, marks that turn the direction of writing.
bool is_hidden(std::string_view one) {
    if (one.size() == 2) return one[0] == '\xc2' && static_cast<unsigned char>(one[1]) < 0xa0;
    if (one.size() != 3 || one[0] != '\xe2') return false;
    const auto second = static_cast<unsigned char>(one[1]), third = static_cast<unsigned char>(one[2]);
    return (second == 0x80 && third >= 0xa8 && third <= 0xae) || (second == 0x81 && third >= 0xa6 && third <= 0xa9);
}

// At most `most` characters of it.
std::string_view front(std::string_view text, std::size_t most) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < most && at < text.size(); ++i)
        at += std::max<std::size_t>(1, character(text.substr(at)));
    return text.substr(0, at);
}

// A word, but the ways of files, and what stands in quotes.
std::size_t end_of_piece(std::string_view text, std::size_t begin) {
    if (text[begin] == ' ') return begin + 1;
    if (text[begin] == '\'')
        if (const auto end = text.find('\'', begin + 1); end != std::string_view::npos) return end + 1;
    return std::min(text.find(' ', begin), text.size());
}

std::string with_short_pieces(std::string_view text) {
    std::string all;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = end_of_piece(text, begin);
        const auto piece = text.substr(begin, end - begin);
        const auto kept = front(piece, longest_word);
        const bool is_path = piece.find('/') != std::string_view::npos;
        if (is_path || kept.size() == piece.size())
            all += piece;
        else
            all.append(kept).append(cut_off).append(piece.front() == '\'' ? "'" : "");
        begin = end;
    }
    return all;
}

std::size_t length(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Its end often says the way out: what is left out is the middle.
std::string shortened(std::string_view line) {
    const std::size_t size = length(line);
    if (size <= longest_line) return std::string(line);
    const auto end = line.substr(front(line, size - longest_line / 2 + 1).size());
    return fmt::format("{}{}{}", front(line, longest_line / 2), cut_off, end);
}

}  // namespace

bool is_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = character(text.substr(at));
        if (size == 0) return false;
        at += size;
    }
    return true;
}

std::string printable(std::string_view text) {
    std::string all;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = character(text.substr(at));
        const auto one = text.substr(at, std::max<std::size_t>(1, size));
        const bool is_control = size == 1 && (one[0] < ' ' || one[0] == '\x7f');
        if (size != 0 && !is_control && !is_hidden(one))
            all += one;
        else
            for (const char c : one) all += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        at += one.size();
    }
    return all;
}

std::string as_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    const std::string line = with_short_pieces(printable(text));
    return shortened(line);
}

}  // namespace pipeweaver
