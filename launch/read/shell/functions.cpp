// Functions of a script: where one is called its body runs, with what it is given as its arguments.
#include "launch/read/shell/reader.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace pipeweaver::launch {

namespace {

std::string_view trimmed(std::string_view line) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())) != 0) line.remove_prefix(1);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.remove_suffix(1);
    return line;
}

// Where the body ends whose '{' is at `begin`: at a '}' that begins a line, or ends the first. None: it is written in
// another way.
std::size_t end_of_body(std::string_view text, std::size_t begin) {
    std::size_t line_end = std::min(text.find('\n', begin), text.size());
    const std::string_view first = trimmed(text.substr(begin, line_end - begin));
    // "{ local TP=${1}" goes on.
    const bool is_closed =
        first.size() > 1 && first.back() == '}' && (first[first.size() - 2] == ';' || first[first.size() - 2] == ' ');
    if (is_closed) return begin + text.substr(begin, line_end - begin).rfind('}');
    std::size_t depth = 1;
    for (std::size_t at = line_end; at < text.size(); at = line_end) {
        line_end = std::min(text.find('\n', at + 1), text.size());
        const std::string_view line = trimmed(text.substr(at, line_end - at));
        if (line.starts_with('}') && --depth == 0) return text.find('}', at);
        if (line.ends_with('{')) ++depth;
    }
    return std::string_view::npos;
}

// "if ! name".
bool stands_before(const std::string& word) {
    return word == "if" || word == "elif" || word == "while" || word == "until" || word == "!" || word == "time";
}

bool is_argument(const std::string& name) {
    return name == "@" || name == "*" || (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) != 0);
}

}  // namespace

// Behind "name", or "function" and a name; false: no function begins here.
bool Reader::function(const std::vector<Word>& words) {
    if (words.size() != 1 || words.front().quoted) return false;
    const bool has_word = words.front().text == "function";
    std::size_t at = at_;
    const auto skip_blanks = [&](std::string_view blanks) {
        at = std::min(text_.find_first_not_of(blanks, at), text_.size());
    };
    std::string name = words.front().text;
    skip_blanks(" \t");
    if (has_word) {
        const std::size_t end = std::min(text_.find_first_of(" \t\n({", at), text_.size());
        name = text_.substr(at, end - at);
        at = end;
        skip_blanks(" \t");
    }
    const bool has_brackets = text_.substr(at).starts_with("()");
    if (name.empty() || (!has_word && !has_brackets)) return false;
    at += has_brackets ? 2 : 0;
    skip_blanks(" \t\r\n");
    if (at >= text_.size() || text_[at] != '{') return false;
    const std::size_t end = end_of_body(text_, at);
    if (end == std::string_view::npos) return false;
    while (at_ <= at) next();
    if (!is_skipped()) functions_[name] = {std::string(text_.substr(at_, end - at_)), line_};
    while (at_ <= end) next();
    return true;
}

// False: the words call no function.
bool Reader::call(const std::vector<Word>& words) {
    std::size_t first = 0;
    while (first + 1 < words.size() && stands_before(words[first].text)) ++first;
    const auto found = functions_.find(words[first].text);
    if (found == functions_.end() || nested_ == most_nested || calls_ == most_calls) return false;
    ++calls_;
    found->second.called = true;
    const Function function = found->second;
    std::map<std::string, Variable> before;
    for (const auto& [name, value] : variables_)
        if (is_argument(name) && name != "0") before[name] = value;
    for (const auto& [name, value] : before) variables_.erase(name);
    const std::vector<Word> plain = without_redirections(words);
    for (std::size_t i = first + 1; i < plain.size(); ++i) variables_[std::to_string(i - first)] = Variable{{plain[i]}};
    run_text(function.body, name_, function.line);
    std::erase_if(variables_, [](const auto& one) { return is_argument(one.first) && one.first != "0"; });
    variables_.merge(before);
    return true;
}

// What no command that is read calls, another may: by a trap, or in a shell that it is handed to.
void Reader::run_uncalled() {
    std::vector<Function> left;
    for (auto& [name, function] : functions_)
        if (!std::exchange(function.called, true)) left.push_back(function);
    std::sort(left.begin(), left.end(), [](const Function& a, const Function& b) { return a.line < b.line; });
    std::vector<ScriptCommand> called = std::exchange(script_.commands, {});
    for (const Function& one : left) run_text(one.body, name_, one.line);
    script_.uncalled = script_.commands.size();
    script_.commands.insert(script_.commands.end(), std::make_move_iterator(called.begin()),
                            std::make_move_iterator(called.end()));
}

}  // namespace pipeweaver::launch
