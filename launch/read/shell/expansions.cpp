// What stands for text in a shell's words: parts and defaults of variables, sums, and what plain commands print.
#include "launch/read/shell/arithmetic.hpp"
#include "launch/read/shell/patterns.hpp"
#include "launch/read/shell/pipes.hpp"
#include "launch/read/shell/reader.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace pipeweaver::launch {

// ${NAME}, ${NAME:-default}, ${NAME[@]}; others are unknown.
void Reader::braces(bool quoted) {
    const std::size_t begin = at_++;
    std::size_t open = 1;
    while (at_ < text_.size() && open > 0) {
        const char c = next();
        open += c == '{' ? 1U : 0U;
        open -= c == '}' ? 1U : 0U;
    }
    const std::string whole(text_.substr(begin, at_ - begin));
    const std::string body = whole.substr(1, whole.size() < 2 ? 0 : whole.size() - 2);
    const std::size_t end =
        static_cast<std::size_t>(std::find_if_not(body.begin(), body.end(), is_in_name) - body.begin());
    const std::string name = body.substr(0, end), rest = body.substr(end);
    if (rest == "[*]" && quoted) return put_joined(name, "$" + whole);
    if (rest.empty() || rest == "[@]" || rest == "[*]") return put(name, "$" + whole, quoted, rest == "[@]");
    if (put_part(name, rest, quoted)) return;
    const bool otherwise =
        rest.starts_with(":-") || rest.starts_with(":=") || rest.starts_with("-") || rest.starts_with("=");
    if (!otherwise) return put_unknown("$" + whole);
    const bool is_said = variables_.contains(name) && !(rest.front() == ':' && is_empty(name));
    if (is_said) return put(name, "$" + whole, quoted, false);
    put_default(name, rest, quoted);
}

// ":-TEXT", or ":=TEXT", which the variable has from there on, whatever command it stands in.
void Reader::put_default(const std::string& name, const std::string& rest, bool quoted) {
    const bool is_kept = rest.starts_with(":=") || rest.starts_with('=');
    const std::string value = rest.substr(rest.front() == ':' ? 2 : 1);
    if (value == "1") script_.taken_as_one.insert(name);
    if (!is_kept || fixed_.contains(name)) return nested(value, quoted);
    std::vector<Word> fields = std::exchange(fields_, {Word{{}, line_, {}, true}});
    nested(value, true);
    Word all = std::move(std::exchange(fields_, std::move(fields)).front());
    if (!all.unknown.empty()) return put_unknown(all.unknown);
    put_text(all.text, quoted, false);
    const bool is_local = std::exchange(is_local_, false), is_in_front = std::exchange(is_in_front_, false);
    assign(name, {{std::move(all)}, false}, false, line_);
    is_local_ = is_local;
    is_in_front_ = is_in_front;
}

// Of an array by its number, or by the key of "[key]=value"; both may be a variable. None: there is none, or it is not
// known.
std::optional<std::string> Reader::item(const std::vector<Word>& items, const std::string& rest) const {
    std::string key = without_quotes(rest);
    if (key.starts_with('$')) {
        key.erase(0, key.starts_with("${") ? 2 : 1);
        if (key.ends_with('}')) key.pop_back();
        const auto found = variables_.find(key);
        if (found == variables_.end() || found->second.items.size() != 1 || !found->second.items[0].unknown.empty())
            return std::nullopt;
        key = found->second.items[0].text;
    }
    const std::string begin = "[" + key + "]=";
    const bool has_keys = items.front().text.starts_with('[');
    if (has_keys && std::any_of(items.begin(), items.end(), [](const Word& one) { return !one.unknown.empty(); }))
        return std::nullopt;
    for (auto one = items.rbegin(); one != items.rend(); ++one)
        if (one->text.starts_with(begin)) return one->text.substr(begin.size());
    const bool is_number = !key.empty() && key.size() < 4 && key.find_first_not_of("0123456789") == std::string::npos;
    const std::size_t index = is_number ? std::stoul(key) : items.size();
    if (index >= items.size() || has_keys || !items[index].unknown.empty()) return std::nullopt;
    return items[index].text;
}

// ${NAME[0]}, ${NAME%END}, ${NAME#BEGIN}, ${NAME:+TEXT}; false: another form, or a text that is not known.
bool Reader::put_part(const std::string& name, const std::string& rest, bool quoted) {
    const auto found = variables_.find(name);
    const bool if_set = rest.starts_with(":+") || rest.starts_with('+');
    if (found == variables_.end()) {
        if (if_set) put_text({}, quoted, false);
        return if_set;
    }
    const auto& items = found->second.items;
    if (items.empty() || !items.front().unknown.empty() || script_.in_branches.contains(name)) return false;
    if (rest.starts_with('[') && rest.ends_with(']')) {
        const auto one = item(items, rest.substr(1, rest.size() - 2));
        if (one) put_text(*one, quoted, false);
        return one.has_value();
    }
    const std::string& text = items.front().text;
    if (if_set) {
        if (!text.empty() || rest.front() == '+') nested(rest.substr(rest.front() == ':' ? 2 : 1), quoted);
        return true;
    }
    const auto part = cut_off(text, rest);
    if (part) put_text(*part, quoted, false);
    return part.has_value();
}

// The default of a variable, which may have variables itself.
void Reader::nested(const std::string& text, bool quoted) {
    if (depth_ == most_deep) return put_unknown(text);
    Reader inner(text, name_, {});
    inner.depth_ = depth_ + 1;
    inner.variables_ = variables_;
    inner.whole_ = true;
    std::string all;
    while (inner.at_ < inner.text_.size()) {
        const auto words = inner.word();
        for (const Word& one : words) {
            all += (all.empty() ? "" : " ") + one.text;
            if (!one.unknown.empty()) return put_unknown(one.unknown);
        }
        if (inner.at_ < inner.text_.size()) inner.next();
    }
    put_text(all, quoted, false);
}

// What echo, tr and sed make of plain text is put in; what else a command prints is not known.
void Reader::command_output(char end, bool quoted) {
    std::string what(1, end == '`' ? '`' : '$');
    std::size_t open = 0;
    next();
    while (at_ < text_.size() && (peek() != end || open > 0)) {
        open += peek() == '(' ? 1U : 0U;
        open -= peek() == ')' && open > 0 ? 1U : 0U;
        what += next();
    }
    if (at_ < text_.size()) next();
    if (put_printed(what.substr(1), quoted)) return;
    put_unknown(end == '`' ? what + "`" : "$(" + what.substr(1) + ")");
}

bool Reader::put_printed(const std::string& text, bool quoted) {
    if (depth_ == most_deep) return false;
    Reader inner(text, name_, {});
    inner.depth_ = depth_ + 1;
    inner.nested_ = nested_;
    inner.variables_ = variables_;
    while (inner.at_ < inner.text_.size()) inner.command();
    std::vector<std::vector<Word>> commands;
    for (ScriptCommand& one : inner.script_.commands) commands.push_back(std::move(one.words));
    if (inner.printed_ && commands.size() == 1) {
        std::string& printed = inner.printed_->text;
        while (printed.ends_with('\n')) printed.pop_back();
        put_text(printed, quoted, !inner.printed_->unknown.empty());
        return true;
    }
    const bool is_pipe = inner.separators_.find_first_not_of('|') == std::string::npos;
    const bool is_row = inner.separators_.find_first_not_of('&') == std::string::npos;
    auto printed = is_pipe && inner.separators_.size() + 1 == commands.size() ? piped(commands) : std::nullopt;
    if (!printed && is_row) printed = folder_entered(commands);
    if (!printed) return false;
    bool has_unknown = false;
    for (const auto& words : commands)
        for (const Word& word : words) has_unknown = has_unknown || !word.unknown.empty();
    put_text(*printed, quoted, has_unknown);
    return true;
}

// $(( ... )) of whole numbers and variables.
void Reader::arithmetic() {
    next(), next();
    const std::size_t begin = at_;
    std::size_t open = 0;
    while (at_ < text_.size() && !(open == 0 && peek() == ')' && peek(1) == ')')) {
        open += peek() == '(' ? 1U : 0U;
        open -= peek() == ')' ? 1U : 0U;
        next();
    }
    const std::string body(text_.substr(begin, at_ - begin));
    if (at_ < text_.size()) next();
    if (at_ < text_.size()) next();
    const auto value = worked_out(body, [&](const std::string& variable) {
        const auto found = variables_.find(variable);
        if (const auto branch = script_.in_branches.find(variable); branch != script_.in_branches.end()) {
            if (!is_skipped()) script_.used_branches[variable] = branch->second;
            fields_.back().uncertain = true;
        }
        const bool is_one = found != variables_.end() && found->second.items.size() == 1;
        return is_one ? found->second.items.front().text : variable;
    });
    if (value)
        fields_.back().text += std::to_string(*value);
    else
        put_unknown("$((" + body + "))");
}

}  // namespace pipeweaver::launch
