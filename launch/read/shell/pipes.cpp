#include "launch/read/shell/pipes.hpp"

#include "launch/read/shell/arithmetic.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <regex>
#include <sstream>
#include <utility>

namespace pipeweaver::launch {

namespace {

using Texts = std::vector<std::string>;
using Text = std::optional<std::string>;

std::string joined(const Texts& texts, std::size_t from) {
    std::string all;
    for (std::size_t i = from; i < texts.size(); ++i) all += (i > from ? " " : "") + texts[i];
    return all;
}

std::optional<std::int64_t> number_in(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

Text echo(const Texts& words) {
    const bool option = words.size() > 1 && (words[1] == "-n" || words[1] == "-E");
    if (words.size() > 1 && words[1].starts_with("-e")) return std::nullopt;
    return joined(words, option ? 2 : 1) + (option && words[1] == "-n" ? "" : "\n");
}

Text printf_text(const Texts& words) {
    if (words.size() != 3 || (words[1] != "%s" && words[1] != "%s\\n")) return std::nullopt;
    return words[2] + (words[1] == "%s" ? "" : "\n");
}

Text seq(const Texts& words) {
    constexpr std::int64_t most = 100'000, largest = 1'000'000'000'000;
    const auto is_large = [](std::int64_t number) { return number < -largest || number > largest; };
    const auto last = words.size() > 1 ? number_in(words.back()) : std::nullopt;
    const auto first = words.size() > 2 ? number_in(words[1]) : std::optional<std::int64_t>(1);
    const auto step = words.size() > 3 ? number_in(words[2]) : std::optional<std::int64_t>(1);
    if (words.size() > 4 || !first || !last || !step || *step < 1) return std::nullopt;
    if (is_large(*first) || is_large(*last) || is_large(*step) || *last - *first > most) return std::nullopt;
    std::string all;
    for (std::int64_t i = *first; i <= *last; i += *step) all += std::to_string(i) + "\n";
    return all;
}

// A set of tr: letters, \n and \t, and ranges.
std::string set_of(const std::string& text) {
    std::string set;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) {
            const char c = text[++i];
            set += c == 'n' ? '\n' : c == 't' ? '\t' : c;
        } else if (i + 2 < text.size() && text[i + 1] == '-' && text[i] < text[i + 2]) {
            for (char c = text[i]; c <= text[i + 2]; ++c) set += c;
            i += 2;
        } else {
            set += text[i];
        }
    }
    return set;
}

std::string squeezed(const std::string& in, const std::string& set) {
    std::string out;
    for (const char c : in)
        if (out.empty() || out.back() != c || set.find(c) == std::string::npos) out += c;
    return out;
}

Text translated(const Texts& words, const std::string& in) {
    if (words.size() != 3) return std::nullopt;
    if (words[1] == "-s") return squeezed(in, set_of(words[2]));
    if (words[2].starts_with("[:") || words[1].starts_with("[:")) return std::nullopt;
    const bool deletes = words[1] == "-d";
    if (words[1].starts_with('-') && words[1].size() > 1 && !deletes) return std::nullopt;
    const std::string from = set_of(words[deletes ? 2 : 1]), to = deletes ? std::string() : set_of(words[2]);
    if (!deletes && to.empty()) return std::nullopt;
    std::string out;
    for (const char c : in) {
        const std::size_t at = from.find(c);
        if (at == std::string::npos)
            out += c;
        else if (!deletes)
            out += to[std::min(at, to.size() - 1)];
    }
    return out;
}

// GNU's \+ and \? of basic expressions, which POSIX has not.
std::string as_posix(std::string pattern) {
    for (const auto& [ours, posix] : {std::pair<std::string, std::string>{"\\+", "\\{1,\\}"}, {"\\?", "\\{0,1\\}"}})
        for (std::size_t at = 0; (at = pattern.find(ours, at)) != std::string::npos; at += posix.size())
            pattern.replace(at, ours.size(), posix);
    return pattern;
}

struct Substitution {
    std::regex pattern;
    std::string by;
    bool all = false;
};

// "s/RE/REPLACEMENT/g"; nothing for other commands of sed.
std::optional<Substitution> substitution_of(const std::string& text, bool extended) {
    if (text.size() < 4 || text[0] != 's') return std::nullopt;
    const char mark = text[1];
    const std::size_t middle = text.find(mark, 2);
    const std::size_t end = middle == std::string::npos ? middle : text.find(mark, middle + 1);
    if (end == std::string::npos || text.find('\\' + std::string(1, mark)) != std::string::npos) return std::nullopt;
    const std::string flags = text.substr(end + 1), by = text.substr(middle + 1, end - middle - 1);
    if ((!flags.empty() && flags != "g") || by.find_first_of("\\&$") != std::string::npos) return std::nullopt;
    const std::string pattern = text.substr(2, middle - 2);
    try {
        return Substitution{
            extended ? std::regex(pattern, std::regex::extended) : std::regex(as_posix(pattern), std::regex::basic), by,
            flags == "g"};
    } catch (const std::regex_error&) {
        return std::nullopt;
    }
}

Text substituted(const Texts& words, const std::string& in) {
    bool extended = false;
    std::vector<Substitution> all;
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "-E" || words[i] == "-r") extended = true;
        if (words[i].starts_with('-')) continue;
        auto one = substitution_of(words[i], extended);
        if (!one) return std::nullopt;
        all.push_back(std::move(*one));
    }
    std::string out, line;
    std::istringstream lines(in);
    while (std::getline(lines, line)) {
        for (const Substitution& one : all)
            line = std::regex_replace(
                line, one.pattern, one.by,
                one.all ? std::regex_constants::format_default : std::regex_constants::format_first_only);
        out += line + "\n";
    }
    return out;
}

// Words of the text on one line, as xargs prints them with echo.
Text on_one_line(const Texts& words, const std::string& in) {
    if (words.size() > 1 && !(words.size() == 2 && words[1] == "echo")) return std::nullopt;
    std::istringstream text(in);
    std::string out, word;
    while (text >> word) out += (out.empty() ? "" : " ") + word;
    return out + "\n";
}

// The last of the words that is no option.
Text operand(const Texts& words) {
    for (std::size_t i = words.size(); i > 1; --i)
        if (!words[i - 1].starts_with('-')) return words[i - 1];
    return std::nullopt;
}

// "dirname FILE".
Text folder_of(const Texts& words) {
    const Text file = operand(words);
    if (!file) return std::nullopt;
    const std::string folder = std::filesystem::path(*file).parent_path().string();
    return (folder.empty() ? "." : folder) + "\n";
}

// "basename FILE [END]".
Text name_of_file(const Texts& words) {
    if (words.size() != 2 && words.size() != 3) return std::nullopt;
    std::string name = std::filesystem::path(words[1]).filename().string();
    if (words.size() == 3 && name.size() > words[2].size() && name.ends_with(words[2]))
        name.resize(name.size() - words[2].size());
    return name + "\n";
}

// "realpath FILE" and "readlink -f FILE": links are not followed.
Text same_path(const Texts& words) {
    const Text file = operand(words);
    return file ? Text(std::filesystem::path(*file).lexically_normal().string() + "\n") : std::nullopt;
}

// "expr 16 / 2".
Text expr(const Texts& words) {
    std::string text;
    for (std::size_t i = 1; i < words.size(); ++i) text += (i > 1 ? " " : "") + words[i];
    const auto value = worked_out(text, [](const std::string& word) { return word; });
    return value ? Text(std::to_string(*value) + "\n") : std::nullopt;
}

Text run(const Texts& words, const std::string& in, bool first) {
    if (words.empty()) return std::nullopt;
    const std::string& name = words.front();
    if (first)
        return name == "echo"                             ? echo(words)
               : name == "printf"                         ? printf_text(words)
               : name == "seq"                            ? seq(words)
               : name == "expr"                           ? expr(words)
               : name == "dirname"                        ? folder_of(words)
               : name == "basename"                       ? name_of_file(words)
               : name == "realpath" || name == "readlink" ? same_path(words)
                                                          : std::nullopt;
    if (name == "tr") return translated(words, in);
    if (name == "sed") return substituted(words, in);
    if (name == "xargs") return on_one_line(words, in);
    return std::nullopt;
}

}  // namespace

std::optional<std::string> folder_entered(const std::vector<std::vector<Word>>& commands) {
    std::vector<Texts> all;
    for (const auto& words : commands) {
        if (words.empty() || words.front().text.starts_with('>')) continue;
        Texts& texts = all.emplace_back();
        for (const Word& word : words)
            if (word.text.find('>') == std::string::npos) texts.push_back(word.text);
    }
    if (all.size() != 2 || all[0].size() < 2 || all[0].front() != "cd" || all[1].front() != "pwd") return std::nullopt;
    return std::filesystem::path(all[0].back()).lexically_normal().string();
}

std::optional<std::string> piped(const std::vector<std::vector<Word>>& commands) {
    if (commands.empty()) return std::nullopt;
    std::string text;
    for (std::size_t i = 0; i < commands.size(); ++i) {
        Texts words;
        words.reserve(commands[i].size());
        for (const Word& word : commands[i]) words.push_back(word.text);
        auto printed = run(words, text, i == 0);
        if (!printed) return std::nullopt;
        text = std::move(*printed);
    }
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

}  // namespace pipeweaver::launch
