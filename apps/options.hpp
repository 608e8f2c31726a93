// Options of a command: one table makes the flags, the configuration file's keys and the checks.
#pragma once

#include "pipeweaver/base/json.hpp"

#include <CLI/App.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::apps {

/// Parses a whole number in [low, high]. Throws Error{input} "NAME: is 'x', allowed are whole numbers from ... to ...".
[[nodiscard]] std::int64_t parse_integer(std::string_view name, std::string_view text, std::int64_t low,
                                         std::int64_t high);

/// Registers an operand, an argument without a name; the kind is what --help shows.
CLI::Option* add_operand(CLI::App& app, const std::string& name, std::string& value, const std::string& kind,
                         const std::string& about);

/// Options that may also stand in a configuration file (`--config FILE`, YAML or JSON, an object with the flags' names
/// as keys). What is on the command line wins.
class Options {
public:
    explicit Options(CLI::App& app) : app_(&app) {}

    /// Title under which --help lists the options that are added from here on.
    void group(const std::string& title) { group_ = title; }

    // Each registers `--name KIND`; the kind is what --help shows and what completion goes by (FILE, DIR, MODEL, ...).
    // The variable keeps its value where the option is given nowhere. They must outlive parse().
    void text(const std::string& name, std::string& value, const std::string& kind, const std::string& about);
    /// One of `allowed`; else Error{input} "--name: is 'x', allowed are ...".
    void choice(const std::string& name, std::string& value, const std::vector<std::string>& allowed,
                const std::string& about);
    void integer(const std::string& name, std::int64_t& value, std::int64_t low, std::int64_t high,
                 const std::string& about);
    void integer(const std::string& name, std::optional<std::int64_t>& value, std::int64_t low, std::int64_t high,
                 const std::string& about);
    /// Registers `--name` without a value; in a configuration file true or false.
    void flag(const std::string& name, bool& value, const std::string& about);
    /// A text that `set` parses; its Error is completed with the option's name.
    void parsed(const std::string& name, const std::string& kind, const std::string& about,
                std::function<void(const std::string&)> set);

    /// Adds `--config`.
    void with_configuration();

    /// Reads the configuration file if one is named, then applies every option given. Call once, after parsing.
    void apply() const;

private:
    struct Entry {
        std::string name;
        CLI::Option* option;
        std::function<void(const std::string&)> set;
        bool* flag = nullptr;  ///< then it has no text to set
    };
    static void set_from_command_line(const Entry& entry);
    static void set_from_configuration(const Entry& entry, const Json& value);

    CLI::App* app_;
    std::vector<Entry> entries_;
    CLI::Option* configuration_ = nullptr;
    std::string group_ = "Options";
};

}  // namespace pipeweaver::apps
