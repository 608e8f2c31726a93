// What the program says of itself: `--help` as a manual page, and the same text for man(1). Both are made from the
// options as the commands register them, so neither can be out of date.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::apps {

/// What a command's page says beyond its options.
struct Manual {
    std::string synopsis;     ///< what stands after "pipeweaver COMMAND"
    std::string description;  ///< paragraphs, each a line
    /// A remark, and a command line that runs as it is in the top folder of the repository, after the ones before it.
    std::vector<std::pair<std::string, std::string>> examples{};
    std::vector<std::pair<std::string, std::string>> files{};  ///< name, what it is
    std::vector<std::string> see_also{};
    /// The options that --help lists, without dashes, where the command has so many that --help-all lists the rest;
    /// empty: --help lists all.
    std::vector<std::string> usual{};
};

/// An option or operand as pages and completion show it.
struct OptionShape {
    std::string operand;                   ///< name of an operand; empty: an option
    std::vector<std::string> short_names;  ///< without dashes
    std::vector<std::string> names;        ///< without dashes
    std::string kind;                      ///< of its value
    bool takes_value = false;
    std::string group;  ///< empty: not listed
    std::string about;
};

/// Whether a command asks for the option: then its text ends so.
[[nodiscard]] inline bool is_required(const OptionShape& option) { return option.about.ends_with("(required)"); }

/// A command as pages and completion show it.
struct CommandShape {
    std::string name, full_name, about;  ///< "query", "pipeweaver costdb query", ...
    bool has_page;                       ///< else another program prints it
    Manual manual;
    std::vector<OptionShape> options;
    std::vector<CommandShape> commands;  ///< below it
};

/// What a page lists: --help the usual options, --help-all the whole of them.
enum class PageLength { usual, whole };

/// A command's page.
[[nodiscard]] std::string page_of(const CommandShape& command, PageLength length);

/// All pages in one, as source for man(1).
[[nodiscard]] std::string man_page(const CommandShape& program);

}  // namespace pipeweaver::apps
