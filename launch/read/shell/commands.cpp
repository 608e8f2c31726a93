// The commands of a script.
#include "launch/read/shell/conditions.hpp"
#include "launch/read/shell/patterns.hpp"
#include "launch/read/shell/reader.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

namespace pipeweaver::launch {

namespace {

// Words after which assignments may stand.
bool sets_variables(const std::string& word) {
    static constexpr std::array<std::string_view, 11> names{"export", "readonly", "local", "declare", "typeset", "then",
                                                            "else",   "do",       "{",     "if",      "-x"};
    return std::find(names.begin(), names.end(), word) != names.end();
}

// Whether a command sets variables and nothing else.
bool only_sets(const std::vector<Word>& words) {
    static constexpr std::array<std::string_view, 5> names{"export", "readonly", "local", "declare", "typeset"};
    return words.empty() || (words.size() == 1 && std::find(names.begin(), names.end(), words[0].text) != names.end());
}

// Whether a text has "$( ... )" or "` ... `".
bool runs_command(std::string_view text) {
    for (std::size_t at = text.find("$("); at != std::string_view::npos; at = text.find("$(", at + 2))
        if (!text.substr(at).starts_with("$((")) return true;
    return text.find('`') != std::string_view::npos;
}

// Words in front of a condition.
bool decides(const std::string& word) { return word == "if" || word == "elif" || word == "while"; }

// Words of the shell's own, behind which a command begins.
bool begins_command(const std::string& word) {
    static constexpr std::array<std::string_view, 6> names{"then", "else", "do", "{", "if", "!"};
    return std::find(names.begin(), names.end(), word) != names.end();
}

// A path of which at most the folder is not known: torchtitan's files are known by their own names.
bool names_file_of_configuration(const std::string& text) {
    const std::size_t slash = text.rfind('/');
    if (slash == std::string::npos || !text.ends_with(".toml")) return false;
    return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(slash) + 1, text.end(),
                       [](char c) { return is_in_name(c) || c == '.' || c == '-'; });
}

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// "bash -c TEXT", "bash -x -c TEXT" and "eval TEXT" run their text.
const Word* inner_text(const std::vector<Word>& words) {
    if (words.size() > 1 && words.front().text == "eval") return &words[1];
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i].text;
        if (word != "bash" && word != "sh" && !word.ends_with("/bash")) continue;
        for (std::size_t option = i + 1; option + 1 < words.size() && words[option].text.starts_with('-'); ++option)
            if (words[option].text.ends_with('c')) return &words[option + 1];
    }
    return nullptr;
}

}  // namespace

bool is_blank_of_shell(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool ends_command(char c) { return c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')'; }

std::vector<std::string> parted_at_blanks(const std::string& text) {
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

Reader::Reader(std::string_view text, std::string name, const Variables& given) : text_(text), name_(std::move(name)) {
    for (const auto& [variable, value] : given) {
        variables_[variable] = {{{value, 0, {}, true}}, false};
        fixed_.insert(variable);
    }
    variables_.try_emplace("0", Variable{{{name_, 0, {}, true}}, false});
    put_own_name();
}

Script Reader::read() {
    take_directives();
    while (at_ < text_.size()) command();
    run_uncalled();
    find_names();
    require_names();
    script_.variables = plain_texts(variables_);
    script_.variables.merge(ended_);  // a launch there may have had them
    return std::move(script_);
}

Variables Reader::plain_texts(const std::map<std::string, Variable>& variables) {
    Variables texts;
    for (const auto& [variable, value] : variables) {
        if (value.items.size() != 1) continue;
        const Word& item = value.items.front();
        if (item.unknown.empty() || names_file_of_configuration(item.text)) texts[variable] = item.text;
    }
    return texts;
}

// The commands, and what variables are in the end, by those of the script that runs the text: what is set to no plain
// text is not among them.
Script Reader::with(const Variables& variables) {
    for (const auto& [variable, value] : variables) variables_.try_emplace(variable, Variable{{{value, 0, {}, true}}});
    while (at_ < text_.size()) command();
    run_uncalled();
    script_.variables = plain_texts(variables_);
    return std::move(script_);
}

char Reader::next() {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    return c;
}

// Blanks, continued lines and comments.
void Reader::skip() {
    for (;;) {
        if (is_blank_of_shell(peek())) {
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

// One command: assignments in front, then words. None: it is over, as a function or the head of a `case` is.
std::optional<Reader::Command> Reader::read_command() {
    Command read;
    std::vector<Word>& words = read.words;
    bool assigns = true;
    for (skip(); at_ < text_.size() && (!ends_command(peek()) || is_of_condition(words)); skip()) {
        if (ends_command(peek())) {
            read_of_condition(words);
            continue;
        }
        if (peek() == '<' && peek(1) == '<' && peek(2) == '<') {
            at_ += 3;  // the text that follows is read as a word
            read.here_string = true;
            continue;
        }
        if (peek() == '<' && peek(1) == '<') {
            open_document();
            continue;
        }
        is_in_front_ = words.empty() || begins_command(words.back().text);
        if (assigns && assignment()) {
            read.assigned = true;
            continue;
        }
        if (!std::exchange(read.own, !front_.empty())) exchange_front();
        auto more = word();
        if (words.empty() && function(more)) return std::nullopt;
        if (words.empty() && more.size() == 1) {
            assigns = sets_variables(more.front().text);
            is_local_ = more.front().text == "local";
            follow_group(more.front().text);
        }
        const bool is_condition = words.size() == 1 && !words[0].quoted && decides(words[0].text);
        if (is_condition && more.size() == 1 && more.front().text == "{") follow_group("{");
        if (words.empty()) branches_.follow(more);
        if (words.size() == 2 && words.front().text == "case" && more.size() == 1 && more.front().text == "in") {
            branches_.open_case(words.back());
            return std::nullopt;
        }
        if (words.empty() && more.size() == 1 && begins_arm(more.front())) continue;
        words.insert(words.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
    return read;
}

// Whether a letter that ends commands elsewhere is a condition's: "((" of a sum that sets nothing, and between "[[" and
// "]]" all but the end of a line, which counts no more behind "&&" and "||".
bool Reader::is_of_condition(const std::vector<Word>& words) const {
    const auto is = [](const char* text) {
        return [text](const Word& word) { return !word.quoted && word.text == text; };
    };
    constexpr std::size_t most_words = 256;
    if (words.size() < most_words && std::any_of(words.begin(), words.end(), is("[[")) &&
        std::none_of(words.begin(), words.end(), is("]]")))
        return peek() != ';' && (peek() != '\n' || is("&&")(words.back()) || is("||")(words.back()));
    if (peek() != '(' || peek(1) != '(') return false;
    if (!words.empty() && !begins_command(words.back().text) && words.back().text != "elif" &&
        words.back().text != "while")
        return false;
    constexpr std::size_t longest_sum = 256;
    const std::string_view ahead = text_.substr(at_, longest_sum), line = ahead.substr(0, ahead.find('\n'));
    const std::string_view sum = line.substr(0, line.find("))"));
    if (sum.size() == line.size()) return false;
    for (std::size_t i = 1; i < sum.size(); ++i) {
        const bool is_doubled = (sum[i] == '+' || sum[i] == '-') && sum[i - 1] == sum[i];
        const bool is_compared = std::string_view("=!<>").find(sum[i - 1]) != std::string_view::npos ||
                                 (i + 1 < sum.size() && sum[i + 1] == '=');
        if (is_doubled || (sum[i] == '=' && !is_compared)) return false;
    }
    return true;
}

// "(( SUM ))" as "[[ SUM -ne 0 ]]"; within "[[" one operator.
void Reader::read_of_condition(std::vector<Word>& words) {
    const auto put_word = [&](std::string text) { words.push_back({std::move(text), line_}); };
    const bool is_within = std::any_of(words.begin(), words.end(), [](const Word& word) { return word.text == "[["; });
    if (is_within) {
        std::string text(1, next());
        if (text == "\n") return;
        if ((text == "&" || text == "|") && peek() == text.front()) text += next();
        return put_word(std::move(text));
    }
    fields_ = {Word{{}, line_, {}, true}};
    arithmetic();
    put_word("[[");
    words.push_back(std::move(fields_.front()));
    for (const char* const text : {"-ne", "0", "]]"}) put_word(text);
}

void Reader::command() {
    const std::size_t before = separators_.size();
    run_command();
    if (separators_.size() > before) follow_shell(separators_.back());
}

// "( ... )" is a shell of its own, whose variables end with it; "((" works out numbers.
void Reader::follow_shell(char ended) {
    if (ended == '(') {
        const bool is_sum = peek() == '(' || (at_ > 1 && text_[at_ - 2] == '(');
        const bool keeps = !is_sum && shells_.size() < static_cast<std::size_t>(most_nested);
        shells_.push_back(keeps ? std::optional(variables_) : std::nullopt);
    } else if (ended == ')' && !shells_.empty()) {
        if (shells_.back()) std::swap(variables_, *shells_.back());
        if (shells_.back()) ended_.merge(plain_texts(*shells_.back()));
        shells_.pop_back();
    }
}

void Reader::run_command() {
    if (branches_.awaits_pattern() && read_pattern()) return;
    is_local_ = false;
    front_.clear();
    const std::size_t begin = at_;
    auto read = read_command();
    if (!read) return;
    std::vector<Word>& words = read->words;
    const bool skipped = is_skipped(), ends = returns(words);
    if (!words.empty()) choose_arm(words);
    if (!words.empty() || read->assigned) {
        read->substitutes = runs_command(text_.substr(begin, at_ - begin));
        guard(*read);
    }
    if (at_ < text_.size()) separators_ += next();
    end_arm();
    for (HereDocument& one : documents_)
        if (one.words.empty() && !skipped) one.words = words;
    if (!documents_.empty() && !separators_.empty() && separators_.back() == '\n')
        read_documents(skipped ? std::vector<Word>{} : words);
    if (words.empty() || skipped) return;
    if (read->own) exchange_front();
    take_row(words, read->here_string);
    const std::size_t before = script_.commands.size();
    take(std::move(words));
    if (read->own) keep_front(before);
    if (ends) at_ = text_.size();
}

// What the variables in front of a command have goes to `front_`, and what the script has comes back; or again.
void Reader::exchange_front() {
    for (auto& [name, held] : front_) {
        const auto found = variables_.find(name);
        std::optional<Variable> now;
        if (found != variables_.end()) now = std::move(found->second);
        if (held)
            variables_[name] = std::move(*held);
        else
            variables_.erase(name);
        held = std::move(now);
    }
}

// For the commands from `begin` on, of which the command at hand may be one, or a function's which it calls; these have
// their own before. Pre: the variables in front of it count.
void Reader::keep_front(std::size_t begin) {
    for (const auto& [name, held] : front_) {
        const auto found = variables_.find(name);
        if (found == variables_.end()) continue;
        for (const auto& [variable, text] : plain_texts({*found}))
            for (std::size_t i = begin; i < script_.commands.size(); ++i)
                script_.commands[i].in_front.try_emplace(variable, text);
    }
    exchange_front();
}

// Whether a function or a file that is sourced ends here, for certain.
bool Reader::returns(const std::vector<Word>& words) const {
    const bool is_return = nested_ > 0 && !words.empty() && words.front().text == "return" && !is_skipped();
    const bool is_chained = !separators_.empty() && (separators_.back() == '&' || separators_.back() == '|');
    const bool is_grouped = rows_.size() > 1 || separators_.find('(') != std::string::npos;
    return is_return && !is_chained && !is_grouped && !goes_on() && !branches_.is_uncertain();
}

// What a command does that is followed.
void Reader::take(std::vector<Word> words) {
    const std::string& first = words.front().text;
    if (first == "shift") return shift(words);
    if (first == "unset") return unset(words);
    if (first == "local")
        for (std::size_t i = 1; i < words.size(); ++i) {
            keep_local(words[i].text);
            if (!fixed_.contains(words[i].text)) variables_.erase(words[i].text);
        }
    if (run_document(words) || call(words)) return;
    if ((first == "source" || first == ".") && words.size() > 1 && words[1].unknown.empty()) return source(words[1]);
    script_.commands.push_back({std::move(words)});
}

// "source FILE", as bash finds it or beside the script: what it sets is set here.
void Reader::source(const Word& file) {
    std::filesystem::path path = file.text;
    if (!is_readable_file(path)) path = std::filesystem::path(name_).parent_path() / path;
    if (nested_ == most_nested || !is_readable_file(path)) {
        script_.not_sourced.emplace_back(file.text, file.line);
        return;
    }
    run_text(read_file(path, longest_file), path.string(), 1);
}

// Another script's commands with this one's variables, which it may set; `line` is its first.
void Reader::run_text(std::string_view text, const std::string& name, std::size_t line) {
    Reader inner(text, name, {});
    inner.line_ = line;
    inner.variables_ = std::move(variables_);
    inner.fixed_ = fixed_;
    inner.nested_ = nested_ + 1;
    inner.depth_ = depth_;
    inner.calls_ = calls_;
    inner.script_.documents = std::move(script_.documents);
    inner.functions_ = std::move(functions_);
    inner.put_own_name();
    inner.take_directives();
    while (inner.at_ < inner.text_.size()) inner.command();
    inner.find_names();
    has_.merge(inner.has_);
    variables_ = std::move(inner.variables_);
    script_.documents = std::move(inner.script_.documents);
    functions_ = std::move(inner.functions_);
    calls_ = inner.calls_;
    for (auto& [variable, value] : inner.locals_)
        if (value)
            variables_[variable] = std::move(*value);
        else
            variables_.erase(variable);
    put_own_name();
    ended_.merge(inner.ended_);
    auto& commands = inner.script_.commands;
    script_.commands.insert(script_.commands.end(), std::make_move_iterator(commands.begin()),
                            std::make_move_iterator(commands.end()));
}

// The same in a shell of its own, whose variables end with it.
void Reader::run_apart(std::string_view text, const std::string& name, std::size_t line) {
    auto shell = variables_;
    run_text(text, name, line);
    std::swap(variables_, shell);
    ended_.merge(plain_texts(shell));
}

// The file that bash reads.
void Reader::put_own_name() { variables_["BASH_SOURCE"] = {{{name_, 0, {}, true}}, true}; }

// Which of the names that are given the text has.
void Reader::find_names() {
    for (const std::string& name : fixed_)
        for (std::size_t at = text_.find(name); at != std::string_view::npos; at = text_.find(name, at + 1)) {
            const std::size_t end = at + name.size();
            const bool is_whole =
                (at == 0 || !is_in_name(text_[at - 1])) && (end == text_.size() || !is_in_name(text_[end]));
            if (is_whole) has_.insert(name);
        }
}

// What is not at hand may have them, and the caller's third argument may be "$1" behind "shift 2".
void Reader::require_names() const {
    const bool shifts = text_.find("shift") != std::string_view::npos;
    for (const std::string& name : fixed_)
        if (!(shifts && is_number(name)) && !has_.contains(name) && script_.not_sourced.empty())
            fail(ErrorKind::input, "--set: {} has no variable '{}'", name_, name);
}

// Behind ";;".
void Reader::end_arm() {
    if (branches_.subject() == nullptr || separators_.empty() || separators_.back() != ';') return;
    if (peek() != ';' && peek() != '&') return;
    while (peek() == ';' || peek() == '&') next();
    branches_.await_pattern(true);
}

// "a | b*)"; false: the arms are over.
bool Reader::read_pattern() {
    for (skip(); peek() == '\n' || peek() == '('; skip()) next();
    branches_.await_pattern(false);
    constexpr std::string_view end = "esac";
    if (at_ >= text_.size() || (text_.substr(at_).starts_with(end) && !is_in_name(peek(end.size())))) return false;
    std::optional<bool> matches = false;
    while (at_ < text_.size() && peek() != ')' && peek() != '\n') {
        const std::size_t begin = at_;
        for (const Word& pattern : word()) {
            const auto one = has_pattern(*branches_.subject(), pattern);
            if (matches != true) matches = one == true ? one : !one || !matches ? std::nullopt : matches;
        }
        for (skip(); peek() == '|'; skip()) next();
        if (at_ == begin) next();
    }
    if (at_ < text_.size()) next();
    branches_.take(matches);
    return true;
}

// An "if", "elif" or "while" goes by its condition, which may go on behind "&&" and "||".
void Reader::choose_arm(const std::vector<Word>& words) {
    const std::string& word = words.front().text;
    if (branches_.empty() || words.front().quoted) return;
    if (!decides(word)) return;
    deciding_ = word;
    deciding_row_ = rows_.size() - (words.size() > 1 && words[1].text == "{" ? 1 : 0);
}

void Reader::decide() {
    const std::string word = std::exchange(deciding_, {});
    const Holds row = rows_.back().holds;
    if (word.empty() || branches_.empty() || (word == "while" && row != Holds::never)) return;
    const bool is_known = row == Holds::never || row == Holds::always;
    branches_.take(is_known ? std::optional(row == Holds::always) : std::nullopt);
}

// Behind "{" a row of its own begins, which holds where its last command does.
void Reader::follow_group(const std::string& word) {
    if (word == "{") {
        const bool never = rows_.back().guarded, perhaps = rows_.back().maybe;
        rows_.push_back({Holds::always, '\0', never, perhaps, never, perhaps, {}});
    } else if (word == "}" && rows_.size() > 1) {
        group_ = rows_.back().holds;
        rows_.pop_back();
    }
}

// Behind "[ ... ] &&" and "[ ... ] ||" a command may never run.
void Reader::guard(const Command& read) {
    const std::vector<Word>& words = read.words;
    Row& row = rows_.back();
    const bool ends_group = !words.empty() && !words.front().quoted && words.front().text == "}";
    const bool sets = only_sets(words) && !read.substitutes;
    const Holds one = ends_group ? group_ : sets ? Holds::always : holds(words);
    row.holds = row.behind == '&' ? std::min(row.holds, one) : row.behind == '|' ? std::max(row.holds, one) : one;
    if (!goes_on() && rows_.size() <= deciding_row_) decide();
    const bool is_first = row.behind == '\0';
    row.behind = goes_on() ? peek() : '\0';
    const bool if_true = row.behind == '&';
    const bool is_open = row.holds == Holds::perhaps || (row.holds == Holds::probably && !if_true);
    row.guarded = row.within_guarded || (goes_on() && row.holds == (if_true ? Holds::never : Holds::always));
    row.maybe = row.within_maybe || (goes_on() && is_open);
    row.asked = is_first ? asked_of(words, if_true ? "-z" : "-n") : std::string();
}

Script read_commands(std::string_view text, const std::string& name, const Variables& given) {
    Script script = Reader(text, name, given).read();
    std::vector<ScriptCommand> called, uncalled;
    for (std::size_t i = 0; i < script.commands.size(); ++i) {
        const Word* const one = inner_text(script.commands[i].words);
        if (one == nullptr) continue;
        const Variables outer = script.commands[i].in_front;
        Variables variables = outer;
        variables.insert(script.variables.begin(), script.variables.end());
        Script inner = Reader(one->text, name, {}).with(variables);
        for (ScriptCommand& command : inner.commands) {
            for (Word& word : command.words) word.line = one->line;
            for (const auto& [variable, value] : outer)  // unless the text itself sets it
                if (const auto held = inner.variables.find(variable); held != inner.variables.end())
                    command.in_front.insert(*held);
            (i < script.uncalled ? uncalled : called).push_back(std::move(command));
        }
    }
    script.uncalled += uncalled.size();
    for (auto* const some : {&script.commands, &called})
        uncalled.insert(uncalled.end(), std::make_move_iterator(some->begin()), std::make_move_iterator(some->end()));
    script.commands = std::move(uncalled);
    return script;
}

}  // namespace pipeweaver::launch
