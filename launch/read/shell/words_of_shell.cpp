// Words of a shell's command: text in quotes or without, and what is put in.
#include "launch/read/shell/reader.hpp"
#include "pipeweaver/base/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace pipeweaver::launch {

namespace {

// "[key]=value" of an array's item.
std::string without_key(const std::string& text) {
    const std::size_t end = text.starts_with('[') ? text.find("]=") : std::string::npos;
    return end == std::string::npos ? text : text.substr(end + 2);
}

}  // namespace

std::vector<Word> Reader::word() {
    fields_ = {Word{{}, line_, {}, false}};
    while (at_ < text_.size() && !is_blank_of_shell(peek()) && !ends_command(peek())) {
        const char c = peek();
        if (c == '\\') {
            next();
            if (at_ < text_.size() && peek() != '\n')
                fields_.back().text += next();
            else if (at_ < text_.size())
                next();
        } else if (c == '\'') {
            next();
            fields_.back().quoted = true;
            while (peek() != '\'') fields_.back().text += inside(c);
            next();
        } else if (c == '"') {
            double_quoted();
        } else if (c == '$') {
            expansion(whole_);
        } else if (c == '`') {
            command_output('`', whole_);
        } else {
            Word& field = fields_.back();
            const bool is_first = !field.quoted && field.text.find_first_not_of("0123456789") == std::string::npos;
            field.redirects = field.redirects || (is_first && (c == '>' || c == '<'));
            field.text += next();
        }
    }
    std::vector<Word> words;
    for (Word& one : fields_)
        if (!one.text.empty() || one.quoted || !one.unknown.empty()) words.push_back(std::move(one));
    return words;
}

char Reader::inside(char quote) {
    if (at_ >= text_.size()) fail(ErrorKind::input, "{}:{}: a quote {} is not closed", name_, line_, quote);
    return next();
}

void Reader::double_quoted() {
    next();
    const bool is_alone = !fields_.back().quoted && fields_.back().text.empty() && fields_.back().unknown.empty();
    const std::size_t fields = fields_.size();
    empty_list_ = false;
    fields_.back().quoted = true;
    while (peek() != '"') {
        if (peek() == '$') {
            expansion(true);
        } else if (peek() == '`') {
            command_output('`', true);
        } else if (peek() == '\\' && (peek(1) == '"' || peek(1) == '\\' || peek(1) == '$' || peek(1) == '\n')) {
            next();
            const char c = next();
            if (c != '\n') fields_.back().text += c;
        } else {
            fields_.back().text += inside('"');
        }
    }
    next();
    // "${ARRAY[@]}" of an array without items is no word.
    const bool added = fields_.size() > fields || !fields_.back().text.empty() || !fields_.back().unknown.empty();
    if (is_alone && empty_list_ && !added) fields_.back().quoted = false;
}

// After '$'. Quoted: nothing is parted but "${ARRAY[@]}".
void Reader::expansion(bool quoted) {
    next();
    if (peek() == '(') {
        if (peek(1) == '(') return arithmetic();
        return command_output(')', quoted);
    }
    if (peek() == '{') return braces(quoted);
    std::string name;
    while (at_ < text_.size() && is_in_name(peek())) name += next();
    if (name.empty() && (peek() == '@' || peek() == '*' || peek() == '#' || peek() == '?')) name += next();
    if (name.empty()) {
        fields_.back().text += '$';
        return;
    }
    if (name == "*" && quoted)
        put_joined(name, "$*");
    else if (name == "#")
        put_text(std::to_string(arguments()), true, false);
    else
        put(name, "$" + name, quoted, false);
}

// "$@" where arguments are known: all of them, as an array.
void Reader::put_arguments() {
    Variable all{{}, true};
    for (std::size_t i = 1; i <= arguments(); ++i) {
        const auto& items = variables_[std::to_string(i)].items;
        all.items.insert(all.items.end(), items.begin(), items.end());
    }
    variables_["@"] = variables_["*"] = std::move(all);
}

void Reader::put(const std::string& name, const std::string& whole, bool quoted, bool each) {
    const bool is_all = (name == "@" || name == "*") && arguments() > 0;
    if (is_all) put_arguments();
    const auto found = variables_.find(name);
    if (found == variables_.end()) return put_unknown(whole);
    if (const auto branch = script_.in_branches.find(name); branch != script_.in_branches.end()) {
        if (!is_skipped()) script_.used_branches[name] = branch->second;
        fields_.back().uncertain = true;
    }
    const auto& items = found->second.items;
    empty_list_ = empty_list_ || (each && items.empty());
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i > 0) {
            if (!found->second.array) break;
            fields_.push_back(Word{{}, line_, {}, false});
        }
        const std::string text = found->second.array ? without_key(items[i].text) : items[i].text;
        put_text(text, quoted, !items[i].unknown.empty());
        if (quoted && found->second.array && items[i].quoted) fields_.back().quoted = true;
    }
}

// "${ARRAY[*]}": its items in one word, apart by the first letter of IFS.
void Reader::put_joined(const std::string& name, const std::string& whole) {
    const auto set = variables_.find("IFS");
    const bool is_set = set != variables_.end() && !set->second.items.empty();
    const std::string separators = is_set ? set->second.items.front().text : std::string();
    const bool is_seen =
        !separators.empty() && std::string_view(",:;|/-").find(separators.front()) != std::string::npos;
    const std::string by(1, is_seen ? separators.front() : ' ');
    const std::size_t first = fields_.size();
    put(name, whole, true, false);
    Word& all = fields_[first - 1];
    for (std::size_t i = first; i < fields_.size(); ++i) {
        all.text += by + fields_[i].text;
        if (all.unknown.empty()) all.unknown = fields_[i].unknown;
        all.uncertain = all.uncertain || fields_[i].uncertain;
    }
    fields_.erase(fields_.begin() + static_cast<std::ptrdiff_t>(first), fields_.end());
}

// Of a text with unknown variables, the words that have them are unknown.
void Reader::put_text(const std::string& text, bool quoted, bool has_unknown) {
    const auto append = [&](const std::string& part) {
        fields_.back().text += part;
        const bool unknown = has_unknown && part.find_first_of("$`") != std::string::npos;
        if (unknown && fields_.back().unknown.empty()) fields_.back().unknown = part;
    };
    if (quoted) return append(text);
    const auto parts = parted_at_blanks(text);
    const bool begins_blank = !text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0 || (begins_blank && !fields_.back().text.empty())) fields_.push_back(Word{{}, line_, {}, false});
        append(parts[i]);
    }
}

void Reader::put_unknown(const std::string& what) {
    if (fields_.back().unknown.empty()) fields_.back().unknown = what;
    fields_.back().text += what;
}

// The whole text as between quotes, of which those in it are letters.
Word Reader::expanded() {
    fields_ = {Word{{}, line_, {}, true}};
    while (at_ < text_.size()) {
        if (peek() == '$') {
            expansion(true);
        } else if (peek() == '`') {
            command_output('`', true);
        } else if (peek() == '\\' && peek(1) == '\n') {
            next();
            next();
        } else {
            if (peek() == '\\' && (peek(1) == '$' || peek(1) == '`' || peek(1) == '\\')) next();
            fields_.back().text += next();
        }
    }
    Word all = fields_.front();
    for (std::size_t i = 1; i < fields_.size(); ++i) all.text += " " + fields_[i].text;
    return all;
}

}  // namespace pipeweaver::launch
