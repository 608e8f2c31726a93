// A bash script as far as a launch needs it: words with quotes, comments and continued lines; variables and arrays that
// are set to plain text; whole numbers worked out. What a shell would run is not run.
#include "launch/read/arithmetic.hpp"
#include "launch/read/conditions.hpp"
#include "launch/read/pipes.hpp"
#include "launch/read/script.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

namespace pipeweaver::launch {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool ends_command(char c) { return c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')'; }

// "a b" apart at blanks.
std::vector<std::string> parted(const std::string& text) {
    std::vector<std::string> parts;
    std::string part;
    for (const char c : text + " ") {
        if (std::isspace(static_cast<unsigned char>(c)) == 0) {
            part += c;
        } else if (!part.empty()) {
            parts.push_back(std::exchange(part, {}));
        }
    }
    return parts;
}

class Reader {
public:
    Reader(std::string_view text, std::string name, const Variables& given) : text_(text), name_(std::move(name)) {
        for (const auto& [variable, value] : given) {
            variables_[variable] = {{{value, 0, {}, true}}, false};
            fixed_.insert(variable);
        }
        variables_.try_emplace("0", Variable{{{name_, 0, {}, true}}, false});
        put_own_name();
    }

    Script read() {
        while (at_ < text_.size()) command();
        find_names();
        require_names();
        for (const auto& [variable, value] : variables_)
            if (value.items.size() == 1 && value.items.front().unknown.empty())
                script_.variables[variable] = value.items.front().text;
        return std::move(script_);
    }

private:
    struct Variable {
        std::vector<Word> items;
        bool array = false;
    };

    char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    char next() {
        const char c = text_[at_++];
        if (c == '\n') ++line_;
        return c;
    }

    // Blanks, continued lines and comments.
    void skip() {
        for (;;) {
            if (is_blank(peek())) {
                next();
            } else if (peek() == '\\' && peek(1) == '\n') {
                next(), next();
            } else if (peek() == '#') {
                while (at_ < text_.size() && peek() != '\n') next();
            } else {
                return;
            }
        }
    }

    // One command: assignments in front, then words.
    void command() {
        if (!branches_.empty() && branches_.back().awaits_pattern && read_pattern()) return;
        std::vector<Word> words;
        bool assigns = true, assigned = false, here_string = false;
        for (skip(); at_ < text_.size() && !ends_command(peek()); skip()) {
            if (peek() == '<' && peek(1) == '<' && peek(2) == '<') {
                at_ += 3;  // the text that follows is read as a word
                here_string = true;
                continue;
            }
            if (peek() == '<' && peek(1) == '<') return here_document();
            if (assigns && assignment()) {
                assigned = true;
                continue;
            }
            auto more = word();
            if (words.empty() && more.size() == 1) assigns = sets_variables(more.front().text);
            if (words.empty()) follow(more);
            if (words.size() == 2 && words.front().text == "case" && more.size() == 1 && more.front().text == "in")
                return open_case(words.back());
            if (words.empty() && more.size() == 1 && begins_arm(more.front())) continue;
            words.insert(words.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
        }
        const bool skipped = is_skipped();
        if (!words.empty()) choose_arm(words);
        if (!words.empty() || assigned) guard(words);
        if (at_ < text_.size()) separators_ += next();
        end_arm();
        if (words.empty() || skipped) return;
        take_row(words, here_string);
        const bool is_source = words.front().text == "source" || words.front().text == ".";
        if (is_source && words.size() > 1 && words[1].unknown.empty())
            source(words[1]);
        else
            script_.commands.push_back(std::move(words));
    }

    // "source FILE", as bash finds it or beside the script: what it sets is set here.
    void source(const Word& file) {
        constexpr int most_nested = 8;
        std::error_code ignored;
        std::filesystem::path path = file.text;
        if (!std::filesystem::is_regular_file(path, ignored)) path = std::filesystem::path(name_).parent_path() / path;
        if (nested_ == most_nested || !std::filesystem::is_regular_file(path, ignored)) {
            script_.not_sourced.emplace_back(file.text, file.line);
            return;
        }
        const std::string text = read_file(path, longest_file);
        Reader inner(text, path.string(), {});
        inner.variables_ = std::move(variables_);
        inner.fixed_ = fixed_;
        inner.nested_ = nested_ + 1;
        inner.put_own_name();
        while (inner.at_ < inner.text_.size()) inner.command();
        inner.find_names();
        has_.merge(inner.has_);
        variables_ = std::move(inner.variables_);
        put_own_name();
        auto& commands = inner.script_.commands;
        script_.commands.insert(script_.commands.end(), std::make_move_iterator(commands.begin()),
                                std::make_move_iterator(commands.end()));
    }

    // The file that bash reads.
    void put_own_name() { variables_["BASH_SOURCE"] = {{{name_, 0, {}, true}}, true}; }

    // Which of the names that are given the text has.
    void find_names() {
        for (const std::string& name : fixed_)
            for (std::size_t at = text_.find(name); at != std::string_view::npos; at = text_.find(name, at + 1)) {
                const std::size_t end = at + name.size();
                const bool is_whole =
                    (at == 0 || !is_name(text_[at - 1])) && (end == text_.size() || !is_name(text_[end]));
                if (is_whole) has_.insert(name);
            }
    }

    // What is not at hand may have them.
    void require_names() const {
        for (const std::string& name : fixed_)
            if (!has_.contains(name) && script_.not_sourced.empty())
                fail(ErrorKind::input, "--set: {} has no variable '{}'", name_, name);
    }

    // A script that is run has its own value, whoever says another.
    void require_same(const std::string& name, const Variable& value, std::size_t line) const {
        const bool is_plain = !value.array && value.items.size() == 1 && value.items.front().unknown.empty() &&
                              !value.items.front().uncertain;
        const std::string& given = variables_.at(name).items.front().text;
        if (is_plain && !is_uncertain() && value.items.front().text != given)
            fail(ErrorKind::input, "{}:{}: {} is set to '{}', so that --set {}={} does not reach it: change it there",
                 name_, line, name, value.items.front().text, name, given);
    }

    // Words after which assignments may stand.
    static bool sets_variables(const std::string& word) {
        static constexpr std::array<std::string_view, 11> names{
            "export", "readonly", "local", "declare", "typeset", "then", "else", "do", "{", "if", "-x"};
        return std::find(names.begin(), names.end(), word) != names.end();
    }

    // Of a loop over rows of plain text the first, and what `read` makes of it.
    void take_row(const std::vector<Word>& words, bool here_string) {
        const auto plain = [](const Word& word) { return word.unknown.empty() && !word.uncertain; };
        if (words.size() > 3 && words[0].text == "for" && words[2].text == "in" && plain(words[3])) {
            set_plain(words[1].text, words[3].text);
            if (words.size() > 4)
                script_.loops.push_back(fmt::format("{}:{}: of the {} rows of a loop the first is taken: {} is '{}'",
                                                    name_, words[0].line, words.size() - 3, words[1].text,
                                                    words[3].text));
        }
        if (words[0].text == "read" && here_string && words.size() > 2 && plain(words.back())) read_fields(words);
    }

    void set_plain(const std::string& name, const std::string& value) {
        if (fixed_.contains(name)) return;
        script_.in_branches.erase(name);
        variables_[name] = {{{value, line_, {}, true}}, false};
    }

    // "IFS=',' read -r A B <<< TEXT": the last name has what is left.
    void read_fields(const std::vector<Word>& words) {
        const auto separators = variables_.find("IFS");
        const std::string by = separators == variables_.end() ? " \t" : separators->second.items.front().text;
        std::string left = words.back().text;
        for (std::size_t i = 1; i + 1 < words.size(); ++i) {
            if (words[i].text.starts_with('-')) continue;
            const std::size_t end = i + 2 == words.size() ? std::string::npos : left.find_first_of(by);
            set_plain(words[i].text, left.substr(0, end));
            left = end == std::string::npos ? std::string() : left.substr(end + 1);
        }
    }

    // Words behind which another command begins, which may be a branch itself.
    static bool begins_arm(const Word& word) {
        return !word.quoted && (word.text == "then" || word.text == "else" || word.text == "do" || word.text == "{");
    }

    // An "if" with its arms, or a loop.
    struct Branch {
        bool skipped = false;      // the arm at hand is never taken
        bool uncertain = true;     // nor is it known that it is taken
        bool decided = false;      // an arm in front of it is always taken
        bool unknown_arm = false;  // of one in front of it that is not known

        bool is_case = false, awaits_pattern = false;
        Word subject{};
    };

    // "case WORD in": arms follow, of which the first counts whose pattern the word has.
    void open_case(const Word& subject) {
        if (branches_.empty()) return;
        Branch& branch = branches_.back();
        branch.is_case = branch.awaits_pattern = true;
        branch.subject = subject;
        branch.skipped = true;
    }

    // Behind ";;".
    void end_arm() {
        if (branches_.empty() || !branches_.back().is_case || separators_.empty() || separators_.back() != ';') return;
        if (peek() != ';' && peek() != '&') return;
        while (peek() == ';' || peek() == '&') next();
        branches_.back().awaits_pattern = true;
    }

    // "a | b*)"; false: the arms are over.
    bool read_pattern() {
        for (skip(); peek() == '\n' || peek() == '('; skip()) next();
        Branch& branch = branches_.back();
        branch.awaits_pattern = false;
        constexpr std::string_view end = "esac";
        if (at_ >= text_.size() || (text_.substr(at_).starts_with(end) && !is_name(peek(end.size())))) return false;
        std::optional<bool> matches = false;
        while (at_ < text_.size() && peek() != ')' && peek() != '\n') {
            const std::size_t begin = at_;
            for (const Word& pattern : word()) {
                const auto one = has_pattern(branch.subject, pattern);
                if (matches != true) matches = one == true ? one : !one || !matches ? std::nullopt : matches;
            }
            for (skip(); peek() == '|'; skip()) next();
            if (at_ == begin) next();
        }
        if (at_ < text_.size()) next();
        branch.skipped = branch.decided || matches == false;
        branch.unknown_arm = branch.unknown_arm || !matches;
        branch.uncertain = branch.unknown_arm;
        branch.decided = branch.decided || (matches == true && !branch.unknown_arm);
        return true;
    }

    // None: not known, or a form of patterns that is not read.
    static std::optional<bool> has_pattern(const Word& subject, const Word& pattern) {
        if (!subject.unknown.empty() || subject.uncertain || !pattern.unknown.empty() || pattern.uncertain)
            return std::nullopt;
        if (pattern.quoted) return subject.text == pattern.text;
        constexpr std::ptrdiff_t most_stars = 3;
        const bool is_plain = pattern.text.find_first_of("[]()+@!") == std::string::npos;
        if (!is_plain || std::count(pattern.text.begin(), pattern.text.end(), '*') > most_stars) return std::nullopt;
        return is_like(subject.text, pattern.text);
    }

    // '*' stands for any letters, '?' for one.
    static bool is_like(std::string_view text, std::string_view pattern) {
        if (pattern.empty()) return text.empty();
        if (pattern.front() == '*') {
            for (std::size_t at = 0; at <= text.size(); ++at)
                if (is_like(text.substr(at), pattern.substr(1))) return true;
            return false;
        }
        return !text.empty() && (pattern.front() == '?' || pattern.front() == text.front()) &&
               is_like(text.substr(1), pattern.substr(1));
    }

    // In which branches and loops the script is.
    void follow(const std::vector<Word>& words) {
        if (words.size() != 1 || words.front().quoted) return;
        const std::string& word = words.front().text;
        if (word == "if" || word == "for" || word == "while" || word == "until" || word == "case")
            branches_.push_back({});
        if (branches_.empty()) return;
        if (word == "else") {
            branches_.back().skipped = branches_.back().decided;
            branches_.back().uncertain = branches_.back().unknown_arm;
        }
        if (word == "fi" || word == "done" || word == "esac") branches_.pop_back();
    }

    // By the condition of an "if" or "elif", once its words are read.
    void choose_arm(const std::vector<Word>& words) {
        const std::string& word = words.front().text;
        if (branches_.empty() || words.front().quoted || (word != "if" && word != "elif")) return;
        Branch& branch = branches_.back();
        auto truth = condition_of(words);
        if (goes_on() && truth == (peek() == '&')) truth.reset();  // the next condition counts, too
        branch.skipped = branch.decided || truth == false;
        branch.unknown_arm = branch.unknown_arm || !truth;
        branch.uncertain = branch.unknown_arm;
        branch.decided = branch.decided || (truth == true && !branch.unknown_arm);
    }

    // Behind "[ ... ] &&" and "[ ... ] ||" a command may never run.
    void guard(const std::vector<Word>& words) {
        const auto truth = goes_on() ? condition_of(words) : std::nullopt;
        if (truth)
            guarded_ = *truth == (peek() == '|');
        else
            guarded_ = guarded_ && goes_on();
    }

    // Before "&&" or "||".
    bool goes_on() const { return (peek() == '&' || peek() == '|') && peek(1) == peek(); }

    bool is_skipped() const {
        return guarded_ ||
               std::any_of(branches_.begin(), branches_.end(), [](const Branch& one) { return one.skipped; });
    }

    bool is_uncertain() const {
        return std::any_of(branches_.begin(), branches_.end(), [](const Branch& one) { return one.uncertain; });
    }

    // NAME=VALUE, NAME+=VALUE, NAME=( ... ); nothing read where there is none.
    bool assignment() {
        std::size_t end = at_;
        while (end < text_.size() && is_name(text_[end])) ++end;
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
                is_blank(peek()) || ends_command(peek()) || at_ >= text_.size() ? std::vector<Word>{} : word();
            whole_ = false;
            if (value.items.empty()) value.items = {{std::string(), line, {}, true}};
            if (value.items.size() > 1) value.items = {joined(value.items)};
        }
        assign(name, std::move(value), more, line);
        return true;
    }

    // "${ARRAY[@]}" of a plain variable: its items apart by blanks.
    static Word joined(const std::vector<Word>& items) {
        Word all = items.front();
        for (std::size_t i = 1; i < items.size(); ++i) {
            all.text += " " + items[i].text;
            if (all.unknown.empty()) all.unknown = items[i].unknown;
            all.uncertain = all.uncertain || items[i].uncertain;
        }
        return all;
    }

    std::vector<Word> list() {
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

    void assign(const std::string& name, Variable value, bool more, std::size_t line) {
        if (is_skipped()) return;
        if (fixed_.contains(name)) return require_same(name, value, line);
        if (is_uncertain())
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

    // <<END ... END
    void here_document() {
        next(), next();
        if (peek() == '-') next();
        skip();
        const auto tag = word();
        const std::string end = tag.empty() ? std::string() : tag.front().text;
        while (at_ < text_.size() && next() != '\n') {
        }
        while (at_ < text_.size()) {
            std::string line;
            while (at_ < text_.size() && peek() != '\n') line += next();
            if (at_ < text_.size()) next();
            if (parted(line) == std::vector<std::string>{end}) return;
        }
    }

    // --- a word: text and what is put in; several where variables have several

    std::vector<Word> word() {
        fields_ = {Word{{}, line_, {}, false}};
        while (at_ < text_.size() && !is_blank(peek()) && !ends_command(peek())) {
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
                fields_.back().text += next();
            }
        }
        std::vector<Word> words;
        for (Word& one : fields_)
            if (!one.text.empty() || one.quoted || !one.unknown.empty()) words.push_back(std::move(one));
        return words;
    }

    char inside(char quote) {
        if (at_ >= text_.size()) fail(ErrorKind::input, "{}:{}: a quote {} is not closed", name_, line_, quote);
        return next();
    }

    void double_quoted() {
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
    void expansion(bool quoted) {
        next();
        if (peek() == '(') {
            if (peek(1) == '(') return arithmetic();
            return command_output(')', quoted);
        }
        if (peek() == '{') return braces(quoted);
        std::string name;
        while (at_ < text_.size() && is_name(peek())) name += next();
        if (name.empty() && (peek() == '@' || peek() == '*' || peek() == '#' || peek() == '?')) name += next();
        if (name.empty()) {
            fields_.back().text += '$';
            return;
        }
        put(name, "$" + name, quoted, false);
    }

    // ${NAME}, ${NAME:-default}, ${NAME[@]}; others are unknown.
    void braces(bool quoted) {
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
            static_cast<std::size_t>(std::find_if_not(body.begin(), body.end(), is_name) - body.begin());
        const std::string name = body.substr(0, end), rest = body.substr(end);
        if (rest.empty() || rest == "[@]" || rest == "[*]") return put(name, "$" + whole, quoted, rest == "[@]");
        if (put_part(name, rest, quoted)) return;
        const bool otherwise = rest.starts_with(":-") || rest.starts_with(":=") || rest.starts_with("-");
        if (!otherwise) return put_unknown("$" + whole);
        if (variables_.contains(name)) return put(name, "$" + whole, quoted, false);
        nested(rest.substr(rest.front() == ':' ? 2 : 1), quoted);
    }

    // ${NAME[0]}, ${NAME%END}, ${NAME#BEGIN}, ${NAME:+TEXT}; false: another form, or a text that is not known.
    bool put_part(const std::string& name, const std::string& rest, bool quoted) {
        const auto found = variables_.find(name);
        const bool if_set = rest.starts_with(":+") || rest.starts_with('+');
        if (found == variables_.end()) {
            if (if_set) put_text({}, quoted, false);
            return if_set;
        }
        const auto& items = found->second.items;
        if (items.empty() || !items.front().unknown.empty() || script_.in_branches.contains(name)) return false;
        const std::string& text = items.front().text;
        if (if_set) {
            if (!text.empty() || rest.front() == '+') nested(rest.substr(rest.front() == ':' ? 2 : 1), quoted);
            return true;
        }
        const auto part = rest == "[0]" ? std::optional(text) : cut(text, rest);
        if (part) put_text(*part, quoted, false);
        return part.has_value();
    }

    // Without the shortest end ("%*.sh") or beginning ("#a/") that is like a pattern, or the longest ("%%", "##").
    static std::optional<std::string> cut(const std::string& text, const std::string& rest) {
        const char mark = rest.front();
        const bool longest = rest.size() > 1 && rest[1] == mark;
        const std::string pattern = rest.substr(longest ? 2 : 1);
        constexpr std::ptrdiff_t most_stars = 3;
        const bool is_plain = pattern.find_first_of("[]()+@!$`'\"\\") == std::string::npos &&
                              std::count(pattern.begin(), pattern.end(), '*') <= most_stars;
        if ((mark != '%' && mark != '#') || !is_plain) return std::nullopt;
        for (std::size_t i = 0; i <= text.size(); ++i) {
            const std::size_t size = longest ? text.size() - i : i;  // that is cut off
            const std::size_t from = mark == '%' ? text.size() - size : 0;
            if (is_like(std::string_view(text).substr(from, size), pattern))
                return mark == '%' ? text.substr(0, from) : text.substr(size);
        }
        return text;
    }

    // The default of a variable, which may have variables itself.
    void nested(const std::string& text, bool quoted) {
        Reader inner(text, name_, {});
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

    void put(const std::string& name, const std::string& whole, bool quoted, bool each) {
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
            put_text(items[i].text, quoted, !items[i].unknown.empty());
            if (quoted && found->second.array && items[i].quoted) fields_.back().quoted = true;
        }
    }

    // Of a text with unknown variables, the words that have them are unknown.
    void put_text(const std::string& text, bool quoted, bool has_unknown) {
        const auto append = [&](const std::string& part) {
            fields_.back().text += part;
            const bool unknown = has_unknown && part.find_first_of("$`") != std::string::npos;
            if (unknown && fields_.back().unknown.empty()) fields_.back().unknown = part;
        };
        if (quoted) return append(text);
        const auto parts = parted(text);
        const bool begins_blank = !text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (i > 0 || (begins_blank && !fields_.back().text.empty())) fields_.push_back(Word{{}, line_, {}, false});
            append(parts[i]);
        }
    }

    void put_unknown(const std::string& what) {
        if (fields_.back().unknown.empty()) fields_.back().unknown = what;
        fields_.back().text += what;
    }

    // What echo, tr and sed make of plain text is put in; what else a command prints is not known.
    void command_output(char end, bool quoted) {
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

    bool put_printed(const std::string& text, bool quoted) {
        Reader inner(text, name_, {});
        inner.variables_ = variables_;
        while (inner.at_ < inner.text_.size()) inner.command();
        const bool is_pipe = inner.separators_.find_first_not_of('|') == std::string::npos;
        const auto& commands = inner.script_.commands;
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
    void arithmetic() {
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
            const bool is_one = found != variables_.end() && found->second.items.size() == 1;
            return is_one ? found->second.items.front().text : variable;
        });
        if (value)
            fields_.back().text += std::to_string(*value);
        else
            put_unknown("$((" + body + "))");
    }

    std::string_view text_;
    std::string name_;
    std::size_t at_ = 0, line_ = 1;
    std::vector<Branch> branches_;
    std::string separators_;  // what ended each command
    bool guarded_ = false;    // the command at hand never runs: what it stands behind with && or || says so
    int nested_ = 0;          // files that led here
    bool whole_ = false;
    bool empty_list_ = false;  // within these quotes an array without items was put in
    std::map<std::string, Variable> variables_;
    std::set<std::string> fixed_, has_;  // given by the caller, and those of them that the script has
    std::vector<Word> fields_;
    Script script_;
};

// "bash -c TEXT" and "eval TEXT" run their text.
const Word* inner_text(const std::vector<Word>& words) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        const std::string& word = words[i].text;
        if (i == 0 && word == "eval") return &words[1];
        const bool shell = word == "bash" || word == "sh" || word.ends_with("/bash");
        if (shell && i + 2 < words.size() && words[i + 1].text.starts_with('-') && words[i + 1].text.ends_with('c'))
            return &words[i + 2];
    }
    return nullptr;
}

}  // namespace

Script read_commands(std::string_view text, const std::string& name, const Variables& given) {
    Script script = Reader(text, name, given).read();
    std::vector<std::vector<Word>> inner;
    for (const auto& words : script.commands) {
        const Word* const one = inner_text(words);
        if (one == nullptr) continue;
        for (auto& command : Reader(one->text, name, {}).read().commands) {
            for (Word& word : command) word.line = one->line;
            inner.push_back(std::move(command));
        }
    }
    script.commands.insert(script.commands.end(), std::make_move_iterator(inner.begin()),
                           std::make_move_iterator(inner.end()));
    return script;
}

}  // namespace pipeweaver::launch
