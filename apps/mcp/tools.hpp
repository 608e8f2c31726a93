// Commands as tools of an agent: what each takes, as JSON Schema made of the command's own options, and what is said of
// a refusal.
#pragma once

#include "apps/manual.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace pipeweaver::apps {

struct Tool {
    std::string name;                    ///< of the command
    std::vector<std::string> arguments;  ///< options and operands that have a property of their own
    std::vector<std::string> needed;     ///< beside those that the options call required
    std::string more;                    ///< what is said of it beside the command's own words
    void (*add)(CLI::App&);
};

[[nodiscard]] const std::vector<Tool>& tools();

/// Null: there is none of this name.
[[nodiscard]] const Tool* tool_called(std::string_view name);

/// What tools/list says of it. Pre: `command` is the tool's.
[[nodiscard]] nlohmann::ordered_json tool_json(const Tool& tool, const CommandShape& command);

/// The words of a command line behind the command's name; values stand in the words of their options, and operands
/// behind `--`, so that no value can be taken for an option. Throws Error{input} for arguments that the tool has not,
/// and values that are no text, number or truth.
[[nodiscard]] std::vector<std::string> words_of_call(const Tool& tool, const CommandShape& command,
                                                     const nlohmann::ordered_json& arguments);

/// The arguments that a line of the command names, with what they are and the words that are allowed: what to ask next.
[[nodiscard]] nlohmann::ordered_json asked_next(const Tool& tool, const CommandShape& command, std::string_view line);

}  // namespace pipeweaver::apps
