// Options by name: one table makes a command's flags, a configuration file's keys and the checks of both.
//
// Ownership    the variables that options set must outlive the table's use.
#pragma once

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/option_values.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver {

/// The number that the text is; none: it is none, or lies outside `low` to `high`.
[[nodiscard]] std::optional<std::int64_t> integer_in(std::string_view text, std::int64_t low, std::int64_t high);
[[nodiscard]] std::optional<double> number_in(std::string_view text, double low, double high);

/// Parses a whole number in [low, high]. Throws Error{input} "NAME: is 'x', must be a whole number from ... to ...".
[[nodiscard]] std::int64_t parse_integer(std::string_view name, std::string_view text, std::int64_t low,
                                         std::int64_t high);

/// Reads "3", "0-15", "101-105,108": at most `most` of them, as they stand. Throws Error{input}.
[[nodiscard]] std::vector<std::int64_t> parse_integers(std::string_view name, std::string_view text, std::int64_t low,
                                                       std::int64_t high, std::size_t most);

/// "a,b" apart at its commas.
[[nodiscard]] std::vector<std::string> parts_of(std::string_view text);

/// The same for a number in [low, high].
[[nodiscard]] double parse_number(std::string_view name, std::string_view text, double low, double high);

/// An option or operand without which a command cannot run, as a command line has it, and what it is.
struct Needed {
    bool given = false;
    std::string option;  ///< "--out DIR"
    std::string what;    ///< "a folder for the plan"
};

/// Throws Error{input} that names in one line all that are not given: "missing --out DIR: a folder for the plan;
/// --model MODEL: ...".
void require_given(const std::vector<Needed>& all);

/// The same of one.
[[noreturn]] void fail_missing(std::string_view option, std::string_view what);

class OptionTable {
public:
    struct Entry {
        std::string group, name, kind, about;
        std::function<void(const std::string&)> set;
        /// What sets the present value again; nothing where it is the one that the variable had when it was added.
        std::function<std::optional<std::string>()> say;
        bool* flag = nullptr;  ///< then it has no text to set or say
        /// Another key of configurations that says the same as an object, and its value as the option's text.
        std::string key{};
        std::function<std::string(const Json&)> text_of_key{};
        bool writes = false;  ///< it names a file or folder that the command writes
    };

    OptionTable() = default;
    OptionTable(const OptionTable&) = delete;
    OptionTable& operator=(const OptionTable&) = delete;
    virtual ~OptionTable() = default;

    /// Title under which --help lists the options that are added from here on.
    void group(const std::string& title) { group_ = title; }
    const std::string& group() const { return group_; }

    // Each registers `--name KIND`; the kind is what --help shows and what completion goes by (FILE, DIR, MODEL, ...).
    // The variable keeps its value where the option is given nowhere.
    void text(const std::string& name, std::string& value, const std::string& kind, const std::string& about);
    /// One of `allowed`; else Error{input} "--name: is 'x', must be one of ...".
    void choice(const std::string& name, std::string& value, const std::vector<std::string>& allowed,
                const std::string& about);
    void integer(const std::string& name, std::int64_t& value, std::int64_t low, std::int64_t high,
                 const std::string& about);
    void integer(const std::string& name, std::optional<std::int64_t>& value, std::int64_t low, std::int64_t high,
                 const std::string& about);
    void number(const std::string& name, double& value, double low, double high, const std::string& about);
    /// Registers `--name` without a value; in a configuration file true or false.
    void flag(const std::string& name, bool& value, const std::string& about);
    /// A text that `set` parses; its Error is completed with the option's name. Without `say` values() leaves it out.
    void parsed(const std::string& name, const std::string& kind, const std::string& about,
                std::function<void(const std::string&)> set, std::function<std::optional<std::string>()> say = {});

    /// In configurations the last option may also be said by an object under another key; `text_of` gives the option's
    /// text. Pre: it has a text.
    void also_as(const std::string& key, std::function<std::string(const Json&)> text_of);

    /// The last option names a file or folder that the command writes.
    void writes() { entries_.back().writes = true; }

    const std::vector<Entry>& entries() const { return entries_; }

    /// The options whose variables differ from what they were when they were added, in that order.
    OptionValues values() const;

    /// Sets the options that are keys of `configuration`, an object, but for those that `skip` says.
    /// Throws Error{input} with file and key for unknown keys and values that are not allowed.
    void configure(const Json& configuration, const std::function<bool(std::size_t entry)>& skip = {}) const;

private:
    virtual void added(const Entry&) {}
    void add(Entry entry);

    std::vector<Entry> entries_;
    std::string group_ = "Options";
};

/// The number as parse_number() reads it back, without an exponent.
[[nodiscard]] std::string text_of(double value);

}  // namespace pipeweaver
