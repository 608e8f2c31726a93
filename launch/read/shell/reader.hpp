// Reads a bash script as far as a launch needs it: words with quotes, comments and continued lines; variables and
// arrays that are set to plain text; whole numbers worked out. What a shell would run is not run.
//
// Commands lie in commands.cpp, functions in functions.cpp, here-documents in documents.cpp, what sets variables in
// assignments.cpp, words in words_of_shell.cpp, and what is put in for variables and commands in expansions.cpp.
#pragma once

#include "launch/read/script.hpp"
#include "launch/read/shell/branches.hpp"
#include "launch/read/shell/conditions.hpp"
#include "launch/read/words.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

[[nodiscard]] bool is_blank_of_shell(char c);
[[nodiscard]] bool is_in_name(char c);  ///< of a variable
[[nodiscard]] bool ends_command(char c);

/// Without those at both ends.
[[nodiscard]] std::string without_quotes(const std::string& text);

/// "a b" apart at blanks.
[[nodiscard]] std::vector<std::string> parted_at_blanks(const std::string& text);

class Reader {
public:
    /// Pre: `text` outlives the reader. `given` are variables that the script need not set, and does not change.
    Reader(std::string_view text, std::string name, const Variables& given);

    /// Throws Error{input} with the line.
    [[nodiscard]] Script read();

    /// The same of a text that a script with these variables runs, whose names it need not have.
    [[nodiscard]] Script with(const Variables& variables);

private:
    struct Variable {
        std::vector<Word> items;
        bool array = false;
    };

    // "<<END": the text follows on the next lines.
    struct HereDocument {
        std::string end;
        bool is_plain = false;      // nothing is put in for variables
        bool cuts_tabs = false;     // "<<-": those in front of a line
        std::vector<Word> words{};  // of the command that it is given
    };

    struct Command {
        std::vector<Word> words{};
        bool assigned = false, here_string = false;
        bool own = false;          // variables in front are not the script's
        bool substitutes = false;  // it has "$( ... )"
    };

    // "a && b || c", as far as it is read, and whether the command at hand runs.
    struct Row {
        Holds holds = Holds::always;
        char behind = '\0';           // '&' or '|': "&&" or "||" in front of the command
        bool guarded = false;         // it never runs
        bool maybe = false;           // nor is it known that it runs
        bool within_guarded = false;  // the same of the "{" around the row
        bool within_maybe = false;
        std::string asked{};  // "$NAME" of a test in front that asks whether it is set
    };

    // "name() { ... }"
    struct Function {
        std::string body;
        std::size_t line = 1;
        bool called = false;
    };

    // Letters
    char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    char next();
    void skip();

    // Commands
    void command();
    void run_command();
    void follow_shell(char ended);
    [[nodiscard]] static Variables plain_texts(const std::map<std::string, Variable>& variables);
    std::optional<Command> read_command();
    bool is_of_condition(const std::vector<Word>& words) const;
    void read_of_condition(std::vector<Word>& words);
    void exchange_front();
    void keep_front(std::size_t begin);
    void run_with_front(std::string_view text, std::size_t line);
    void take(std::vector<Word> words);
    void source(const Word& file);
    void open_document();
    void read_documents(const std::vector<Word>& words);
    void take_document(const std::vector<Word>& words, const std::string& text, bool is_plain);
    void run_text(std::string_view text, const std::string& name, std::size_t line);
    void run_apart(std::string_view text, const std::string& name, std::size_t line);
    bool returns(const std::vector<Word>& words) const;
    bool run_document(const std::vector<Word>& words);
    void take_directives();
    bool function(const std::vector<Word>& words);
    bool call(const std::vector<Word>& words);
    void run_uncalled();
    void put_own_name();
    void find_names();
    void require_names() const;

    // Branches
    bool read_pattern();
    void end_arm();
    void choose_arm(const std::vector<Word>& words);
    void follow_group(const std::string& word);
    void guard(const Command& read);
    void decide();
    bool is_default_of(const std::string& name) const;
    bool is_uncertain() const { return rows_.back().maybe || branches_.is_uncertain(); }
    bool goes_on() const { return (peek() == '&' || peek() == '|') && peek(1) == peek(); }  // before "&&" or "||"
    bool is_skipped() const { return rows_.back().guarded || branches_.is_skipped(); }

    // Variables
    bool assignment();
    bool item_assignment(const std::string& name, std::size_t end);
    std::vector<Word> list();
    void assign(const std::string& name, Variable value, bool more, std::size_t line);
    void require_same(const std::string& name, const Variable& value, std::size_t line) const;
    void take_row(const std::vector<Word>& words, bool here_string);
    void read_fields(const std::vector<Word>& words);
    void unset(const std::vector<Word>& words);
    void keep_local(const std::string& name);
    void keep(const std::string& name, std::map<std::string, std::optional<Variable>>& held) const;
    bool is_empty(const std::string& name) const;
    void set_plain(const std::string& name, const std::string& value);
    void shift(const std::vector<Word>& words);
    std::size_t arguments() const;

    // A word: text and what is put in; several where variables have several
    std::vector<Word> word();
    char inside(char quote);
    void double_quoted();
    void expansion(bool quoted);
    void put(const std::string& name, const std::string& whole, bool quoted, bool each);
    void put_joined(const std::string& name, const std::string& whole);
    void put_default(const std::string& name, const std::string& rest, bool quoted);
    void put_text(const std::string& text, bool quoted, bool has_unknown);
    void put_unknown(const std::string& what);
    void put_arguments();
    Word expanded();
    void braces(bool quoted);
    bool put_part(const std::string& name, const std::string& rest, bool quoted);
    std::optional<std::string> item(const std::vector<Word>& items, const std::string& rest) const;
    void nested(const std::string& text, bool quoted);
    void command_output(char end, bool quoted);
    bool put_printed(const std::string& text, bool quoted);
    void arithmetic();

    static constexpr int most_nested = 8, most_calls = 1000, most_deep = 100;

    std::string_view text_;
    std::string name_;
    std::size_t at_ = 0, line_ = 1;
    Branches branches_;
    std::string separators_;         // what ended each command
    std::vector<Row> rows_{Row{}};   // of the open "{", the innermost last; never empty
    Holds group_ = Holds::probably;  // whether the "{" that was closed last holds
    std::string deciding_;           // "if", "elif" or "while" in front of a row
    std::size_t deciding_row_ = 0;   // how many rows there are with it
    int nested_ = 0;                 // files and functions that led here
    int calls_ = 0;                  // of functions, so far
    int depth_ = 0;                  // defaults of variables and commands that this one stands within
    bool is_local_ = false;          // the command at hand is "local"
    bool is_in_front_ = false;       // an assignment here may be of one command alone
    bool whole_ = false;
    bool empty_list_ = false;  // within these quotes an array without items was put in
    std::map<std::string, Variable> variables_;
    std::map<std::string, std::optional<Variable>> locals_;  // of this function, and what the caller has
    std::map<std::string, std::optional<Variable>> front_;   // in front of the command at hand, and what the script has
    std::vector<std::optional<std::map<std::string, Variable>>> shells_;  // open "(", and what was set before each
    Variables ended_;                                                     // that a shell which is over set
    std::set<std::string> fixed_, has_;  // given by the caller, and those of them that the script has
    std::vector<Word> fields_;
    std::vector<HereDocument> documents_;  // begun on this line
    std::optional<Word> printed_;          // by `cat` of one of these
    std::map<std::string, Function> functions_;
    Script script_;
};

}  // namespace pipeweaver::launch
