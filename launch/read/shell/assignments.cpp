// What sets variables: assignments, loops over rows and `read`.
#include "launch/read/shell/reader.hpp"
#include "pipeweaver/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace pipeweaver::launch {

namespace {

// "${ARRAY[@]}" of a plain variable: its items apart by blanks.
Word joined(const std::vector<Word>& items) {
    Word all = items.front();
    for (std::size_t i = 1; i < items.size(); ++i) {
        all.text += " " + items[i].text;
        if (all.unknown.empty()) all.unknown = items[i].unknown;
        all.uncertain = all.uncertain || items[i].uncertain;
    }
    return all;
}

// Items of an array with another one. Keys are numbers from 0 on where none are said.
std::vector<Word> with_item(std::vector<Word> items, const std::string& key, Word value) {
    const std::string begin = "[" + key + "]=";
    const auto said =
        std::find_if(items.begin(), items.end(), [&](const Word& one) { return one.text.starts_with(begin); });
    for (std::size_t i = 0; i < items.size() && said == items.end(); ++i)
        if (key == std::to_string(i) && !items[i].text.starts_with('[')) {
            items[i] = std::move(value);
            return items;
        }
    value.text = begin + value.text;
    if (said != items.end())
        *said = std::move(value);
    else
        items.push_back(std::move(value));
    return items;
}

}  // namespace

std::string without_quotes(const std::string& text) {
    const bool are_quotes =
        text.size() > 1 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
    return are_quotes ? text.substr(1, text.size() - 2) : text;
}

// NAME=VALUE, NAME+=VALUE, NAME=( ... ); nothing read where there is none.
bool Reader::assignment() {
    std::size_t end = at_;
    while (end < text_.size() && is_in_name(text_[end])) ++end;
    if (end > at_ && end < text_.size() && text_[end] == '[')
        return item_assignment(std::string(text_.substr(at_, end - at_)), end);
    const bool more = end + 1 < text_.size() && text_[end] == '+' && text_[end + 1] == '=';
    if (end == at_ || std::isdigit(static_cast<unsigned char>(peek())) != 0) return false;
    if (!more && (end >= text_.size() || text_[end] != '=')) return false;
    const std::string name(text_.substr(at_, end - at_));
    const std::size_t line = line_;
    at_ = end + (more ? 2 : 1);
    Variable value;
    if (peek() == '(') {
        next();
        value = {list(), true};
    } else {
        whole_ = true;  // no parting at blanks on the right of an assignment
        value.items =
            is_blank_of_shell(peek()) || ends_command(peek()) || at_ >= text_.size() ? std::vector<Word>{} : word();
        whole_ = false;
        if (value.items.empty()) value.items = {{std::string(), line, {}, true}};
        if (value.items.size() > 1) value.items = {joined(value.items)};
    }
    assign(name, std::move(value), more, line);
    return true;
}

// NAME[KEY]=VALUE, an item of an array in place of the one that has the key, or one more.
bool Reader::item_assignment(const std::string& name, std::size_t end) {
    const std::size_t close = text_.find_first_of("]\n", end);
    const bool is_one = close != std::string_view::npos && text_.substr(close).starts_with("]=");
    if (!is_one || std::isdigit(static_cast<unsigned char>(peek())) != 0) return false;
    const std::string key = without_quotes(std::string(text_.substr(end + 1, close - end - 1)));
    const std::size_t line = line_;
    at_ = close + 2;
    whole_ = true;
    auto words =
        is_blank_of_shell(peek()) || ends_command(peek()) || at_ >= text_.size() ? std::vector<Word>{} : word();
    whole_ = false;
    Word value = words.empty() ? Word{{}, line, {}, true} : joined(words);
    const bool is_known = key.find('$') == std::string::npos;
    if (!is_known && value.unknown.empty()) value.unknown = fmt::format("{}[{}]", name, key);
    const auto found = variables_.find(name);
    if (is_known && found != variables_.end() && !script_.in_branches.contains(name)) {
        assign(name, {with_item(found->second.items, key, std::move(value)), true}, false, line);
        return true;
    }
    value.text = fmt::format("[{}]={}", key, value.text);
    assign(name, {{std::move(value)}, true}, true, line);
    return true;
}

std::vector<Word> Reader::list() {
    std::vector<Word> items;
    for (;;) {
        skip();
        if (at_ >= text_.size()) fail(ErrorKind::input, "{}:{}: an array is not closed", name_, line_);
        if (peek() == ')') break;
        if (ends_command(peek())) {
            next();
            continue;
        }
        for (Word& one : word()) items.push_back(std::move(one));
    }
    next();
    return items;
}

void Reader::assign(const std::string& name, Variable value, bool more, std::size_t line) {
    if (is_skipped()) return;
    if (fixed_.contains(name)) return require_same(name, value, line);
    if (is_local_) keep_local(name);
    if (is_in_front_) keep(name, front_);
    if (is_uncertain() && !is_default_of(name))
        script_.in_branches[name] = line;
    else if (!more)
        script_.in_branches.erase(name);
    Variable& variable = variables_[name];
    if (!more || (!variable.array && variable.items.empty() && !value.array)) {
        variable = std::move(value);
    } else if (variable.array || value.array) {
        variable.array = true;
        variable.items.insert(variable.items.end(), value.items.begin(), value.items.end());
    } else {
        variable.items.front().text += value.items.front().text;
        if (variable.items.front().unknown.empty()) variable.items.front().unknown = value.items.front().unknown;
    }
}

// Behind "[ -z $NAME ] &&" of a variable that is not set: as "${NAME:-VALUE}".
bool Reader::is_default_of(const std::string& name) const {
    const Row& row = rows_.back();
    const bool is_asked = row.asked == "$" + name || row.asked == "${" + name + "}";
    return is_asked && !row.within_maybe && !branches_.is_uncertain();
}

// A script that is run has its own value, whoever says another.
void Reader::require_same(const std::string& name, const Variable& value, std::size_t line) const {
    const bool is_plain = !value.array && value.items.size() == 1 && value.items.front().unknown.empty() &&
                          !value.items.front().uncertain;
    const std::string& given = variables_.at(name).items.front().text;
    if (is_plain && !is_uncertain() && value.items.front().text != given)
        fail(ErrorKind::input, "{}:{}: {} is set to '{}', so that --set {}={} does not reach it: change it there",
             name_, line, name, value.items.front().text, name, given);
}

// Of a loop over rows of plain text the first, or the one that the caller gives, and what `read` makes of it.
void Reader::take_row(const std::vector<Word>& words, bool here_string) {
    const auto plain = [](const Word& word) { return word.unknown.empty() && !word.uncertain; };
    if (words.size() > 3 && words[0].text == "for" && words[2].text == "in" && plain(words[3])) {
        const bool is_given = fixed_.contains(words[1].text);
        set_plain(words[1].text, words[3].text);
        const std::string& value = variables_.at(words[1].text).items.front().text;
        if (words.size() > 4)
            script_.loops.push_back(fmt::format("{}:{}: of the {} rows of a loop the {} is taken: {} is '{}'", name_,
                                                words[0].line, words.size() - 3, is_given ? "given one" : "first",
                                                words[1].text, value));
    }
    if (words[0].text == "read" && here_string && words.size() > 2 && plain(words.back())) read_fields(words);
}

// "unset NAME"; in a branch that may not be taken it stays, and is uncertain.
void Reader::unset(const std::vector<Word>& words) {
    if (words.size() > 1 && words[1].text == "-f") return;
    for (const Word& word : words) {
        if (fixed_.contains(word.text) || !variables_.contains(word.text)) continue;
        if (is_uncertain()) {
            script_.in_branches[word.text] = word.line;
        } else {
            variables_.erase(word.text);
            script_.in_branches.erase(word.text);
        }
    }
}

// "local NAME": what the caller has by that name counts again behind the function.
void Reader::keep_local(const std::string& name) { keep(name, locals_); }

void Reader::keep(const std::string& name, std::map<std::string, std::optional<Variable>>& held) const {
    const auto found = variables_.find(name);
    held.try_emplace(name, found == variables_.end() ? std::nullopt : std::optional(found->second));
}

// Whether a variable is set to nothing, for certain.
bool Reader::is_empty(const std::string& name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end() || script_.in_branches.contains(name)) return false;
    const auto& items = found->second.items;
    return items.empty() || (items.size() == 1 && items.front().text.empty() && items.front().unknown.empty());
}

void Reader::set_plain(const std::string& name, const std::string& value) {
    if (fixed_.contains(name)) return;
    script_.in_branches.erase(name);
    variables_[name] = {{{value, line_, {}, true}}, false};
}

// "IFS=',' read -r A B <<< TEXT": the last name has what is left.
void Reader::read_fields(const std::vector<Word>& words) {
    const auto separators = variables_.find("IFS");
    const bool is_set = separators != variables_.end() && !separators->second.items.empty();
    const std::string by = is_set ? separators->second.items.front().text : " \t";
    std::string left = words.back().text;
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
        if (words[i].text.starts_with('-')) continue;
        const std::size_t end = i + 2 == words.size() ? std::string::npos : left.find_first_of(by);
        set_plain(words[i].text, left.substr(0, end));
        left = end == std::string::npos ? std::string() : left.substr(end + 1);
    }
}

// Arguments of the script that are known: "$1", "$2", ...
std::size_t Reader::arguments() const {
    std::size_t count = 0;
    while (variables_.contains(std::to_string(count + 1))) ++count;
    return count;
}

// "shift 2": $3 is $1 then.
void Reader::shift(const std::vector<Word>& words) {
    const std::size_t count = arguments();
    variables_.erase("@");
    variables_.erase("*");
    const std::size_t by = words.size() > 1 && words[1].text.size() == 1 ? std::size_t(words[1].text[0] - '0') : 1;
    for (std::size_t i = 1; i <= count; ++i) {
        const auto next = variables_.find(std::to_string(i + by));
        if (next == variables_.end())
            variables_.erase(std::to_string(i));
        else
            variables_[std::to_string(i)] = Variable(next->second);
    }
}

}  // namespace pipeweaver::launch
