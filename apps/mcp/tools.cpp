#include "apps/mcp/tools.hpp"

#include "apps/commands.hpp"
#include "apps/completion/scripts.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace pipeweaver::apps {

namespace {

using ToolJson = nlohmann::ordered_json;

constexpr std::string_view further = "arguments";

// Table: the tools.
std::vector<Tool> all_tools() {
    return {
        {"plan",
         {"model", "cluster", "tp", "pp", "layout", "batch", "dataset", "microbatches", "global-batch", "target", "now",
          "recipe", "budget", "out"},
         {},
         "Without out nothing is kept. A search without budget may take minutes.",
         add_plan},
        {"check",
         {"file", "megatron-args", "bridge-overrides", "torchtitan-args", "set", "framework", "cluster", "model",
          "dataset", "batch", "recipe", "rules-only"},
         {},
         "Scripts are read, never run. A launch is in file or in one of the texts of arguments.",
         add_check},
        {"emulate",
         {"model", "cluster", "tp", "pp", "layout", "batch", "dataset", "microbatches", "partition", "policy",
          "schedule", "recompute", "what-if", "recipe", "out"},
         {},
         "Nothing is searched.",
         add_emulate},
        {"recommend",
         {"model", "dataset", "batch", "global-batch", "tokens", "days", "budget-usd", "clusters", "gpus", "prices",
          "recipe", "budget", "out"},
         {"tokens"},
         "Prices are the user's. A search without budget may take minutes.",
         add_recommend},
        {"explain",
         {"plan", "solution", "at", "task", "replica"},
         {"plan"},
         "The plan is a folder that the tool plan wrote with out.",
         add_explain},
    };
}

bool is_called(const OptionShape& option, std::string_view name) {
    return option.operand == name || std::find(option.names.begin(), option.names.end(), name) != option.names.end();
}

// Pre: the command has it, as all that a tool names.
const OptionShape& option_called(const CommandShape& command, std::string_view name) {
    const auto found = std::find_if(command.options.begin(), command.options.end(),
                                    [&](const OptionShape& one) { return is_called(one, name); });
    PIPEWEAVER_ASSERT(found != command.options.end());
    return *found;
}

bool has_part(const std::string& kind, std::string_view part) {
    return fmt::format("|{}|", kind).find(fmt::format("|{}|", part)) != std::string::npos;
}

// Whether nothing but the words of the kind is allowed: a file may stand where the text speaks of one.
bool is_closed(const OptionShape& option) {
    const bool is_plain = std::all_of(option.kind.begin(), option.kind.end(), [](unsigned char c) {
        return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '|';
    });
    return is_plain && !contains(option.about, "file");
}

ToolJson type_of(const OptionShape& option) {
    if (!option.takes_value) return "boolean";
    if (option.kind == "N") return "integer";
    if (has_part(option.kind, "N") || has_part(option.kind, "Nmb")) return {"integer", "string"};
    const bool is_number = option.kind == "DAYS" || option.kind == "USD";
    return is_number ? ToolJson{"number", "string"} : ToolJson("string");
}

ToolJson property_of(const OptionShape& option) {
    ToolJson property{
        {"type", type_of(option)},
        {"description", option.takes_value ? fmt::format("{}: {}", option.kind, option.about) : option.about}};
    const Words words = option.takes_value ? words_of(option.kind) : Words{};
    if (!words.empty()) property[is_closed(option) ? "enum" : "examples"] = words;
    return property;
}

std::string in_capitals(std::string_view name) {
    std::string text;
    for (const char c : name) text += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

// Whether the line has the word, with neither a letter nor a dash beside it.
bool names_word(std::string_view line, std::string_view word) {
    const auto is_of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; };
    for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !is_of_word(line[at - 1])) && (end == line.size() || !is_of_word(line[end]))) return true;
    }
    return false;
}

// "--model", "PLAN:" of an operand, "unknown model 'x'".
bool names_argument(std::string_view line, const OptionShape& option, const std::string& name) {
    if (!option.operand.empty()) return names_word(line, in_capitals(name) + ":");
    const std::string_view noun = name == "dataset" ? "data set" : std::string_view(name);
    return names_word(line, "--" + name) || contains(line, fmt::format("unknown {} '", noun));
}

std::string text_of_value(const std::string& name, const ToolJson& value) {
    if (value.is_number()) return value.dump();
    if (!value.is_string())
        fail(ErrorKind::input, "{}: {}", name, shown_must_be(value.type_name(), "a text or a number"));
    auto text = value.get<std::string>();
    if (text.find('\0') != std::string::npos) fail(ErrorKind::input, "{}: has a byte 0", name);
    return text;
}

// The words of one argument; of an operand its value.
void add_words(const OptionShape& option, const std::string& name, const ToolJson& value,
               std::vector<std::string>& words) {
    if (!option.operand.empty()) {
        words.push_back(text_of_value(name, value));
    } else if (option.takes_value) {
        words.push_back(fmt::format("--{}={}", name, text_of_value(name, value)));
    } else {
        if (!value.is_boolean())
            fail(ErrorKind::input, "{}: {}", name, shown_must_be(value.type_name(), "true or false"));
        if (value.get<bool>()) words.push_back("--" + name);
    }
}

void add_further(const ToolJson& value, std::vector<std::string>& words) {
    if (!value.is_array())
        fail(ErrorKind::input, "{}: {}", further, shown_must_be(value.type_name(), "an array of texts"));
    for (const ToolJson& one : value) words.push_back(text_of_value(std::string(further), one));
}

}  // namespace

const std::vector<Tool>& tools() {
    static const std::vector<Tool> all = all_tools();
    return all;
}

const Tool* tool_called(std::string_view name) {
    const auto found =
        std::find_if(tools().begin(), tools().end(), [&](const Tool& tool) { return tool.name == name; });
    return found == tools().end() ? nullptr : &*found;
}

ToolJson tool_json(const Tool& tool, const CommandShape& command) {
    ToolJson properties = ToolJson::object(), required = tool.needed;
    for (const std::string& name : tool.arguments) {
        const OptionShape& option = option_called(command, name);
        properties[name] = property_of(option);
        // Without a folder of its own a plan goes into one that is removed again.
        if (is_required(option) && name != "out") required.push_back(name);
    }
    properties[std::string(further)] = {
        {"type", "array"},
        {"items", {{"type", "string"}}},
        {"description", fmt::format("further options of `{} --help-all`, as on its command line", command.full_name)}};
    return {{"name", tool.name},
            {"description", fmt::format("{}. {} {}", command.about, command.manual.description, tool.more)},
            {"inputSchema",
             {{"type", "object"},
              {"properties", std::move(properties)},
              {"required", std::move(required)},
              {"additionalProperties", false}}}};
}

std::vector<std::string> words_of_call(const Tool& tool, const CommandShape& command, const ToolJson& arguments) {
    std::vector<std::string> words, operands;
    for (const auto& [name, value] : arguments.items()) {
        const bool is_further = name == further;
        if (!is_further && std::find(tool.arguments.begin(), tool.arguments.end(), name) == tool.arguments.end())
            fail(ErrorKind::input, "{}; further options go into '{}'", unknown("argument", name, tool.arguments),
                 further);
        if (value.is_null()) continue;
        if (is_further)
            add_further(value, words);
        else if (const OptionShape& option = option_called(command, name); !option.operand.empty())
            continue;  // they have an order
        else
            add_words(option, name, value, words);
    }
    for (const std::string& name : tool.arguments) {
        const OptionShape& option = option_called(command, name);
        const auto found = arguments.find(name);
        if (found != arguments.end() && !found->is_null() && !option.operand.empty())
            add_words(option, name, *found, operands);
    }
    if (!operands.empty()) words.emplace_back("--");
    words.insert(words.end(), std::make_move_iterator(operands.begin()), std::make_move_iterator(operands.end()));
    return words;
}

ToolJson asked_next(const Tool& tool, const CommandShape& command, std::string_view line) {
    ToolJson asked = ToolJson::array();
    for (const std::string& name : tool.arguments) {
        const OptionShape& option = option_called(command, name);
        if (!names_argument(line, option, name)) continue;
        ToolJson one{{"argument", name}, {"about", option.about}, {"kind", option.kind}};
        if (const Words words = words_of(option.kind); !words.empty()) one["allowed"] = words;
        asked.push_back(std::move(one));
    }
    return asked;
}

}  // namespace pipeweaver::apps
