#include "apps/manual.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace pipeweaver::apps {

namespace {

constexpr std::size_t page_width = 96;
constexpr std::size_t about_column = 24;

// The words of `text` in lines of at most `page_width`, each after `indent` blanks.
std::string wrapped(std::string_view text, std::size_t indent) {
    std::string all, line;
    const auto end_line = [&] {
        if (!line.empty()) all += std::string(indent, ' ') + line + "\n";
        line.clear();
    };
    while (!text.empty()) {
        const std::size_t length = std::min(text.find_first_of(" \n"), text.size());
        if (!line.empty() && indent + line.size() + 1 + length > page_width) end_line();
        if (length > 0) line += (line.empty() ? "" : " ") + std::string(text.substr(0, length));
        if (length < text.size() && text[length] == '\n') end_line();
        text.remove_prefix(std::min(text.size(), length + 1));
    }
    end_line();
    return all;
}

// "  label      about ...", the text in a column of its own.
// A label of many choices in lines that a terminal has room for.
std::string in_lines(std::string label, std::size_t indent) {
    std::string text;
    while (indent + label.size() > page_width) {
        const std::size_t bar = label.rfind('|', page_width - indent - 1);
        if (bar == std::string::npos) break;
        text += std::string(indent, ' ') + label.substr(0, bar + 1) + "\n";
        label.erase(0, bar + 1);
        indent = about_column;
    }
    return text + std::string(indent, ' ') + label;
}

std::string entry(const std::string& label, std::string_view about, std::size_t indent = 2) {
    const std::string start = in_lines(label, indent);
    std::string text = wrapped(about, about_column + indent);
    if (start.size() + 2 > about_column + indent) return start + "\n" + text;
    return start + text.substr(std::min(start.size(), text.size()));
}

std::string upper(std::string text) {
    for (char& c : text)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return text;
}

std::string label_of(const OptionShape& option) {
    if (!option.operand.empty()) return upper(option.operand);
    std::vector<std::string> names;
    for (const auto& name : option.short_names) names.push_back("-" + name);
    for (const auto& name : option.names) names.push_back("--" + name);
    const std::string kind = option.takes_value ? option.kind : std::string();
    return fmt::format("{}{}{}", fmt::join(names, ", "), kind.empty() ? "" : " ", kind);
}

// The groups: operands first, then in the order in which the command names them; what all commands have last.
std::vector<std::string> groups_of(const CommandShape& command) {
    std::vector<std::string> groups;
    for (const OptionShape& option : command.options)
        if (std::find(groups.begin(), groups.end(), option.group) == groups.end() && !option.group.empty())
            groups.push_back(option.group);
    const auto place = [](const std::string& name) {
        return name == "Operands" ? 0 : name == "Output" ? 2 : name == "Options" ? 3 : 1;
    };
    std::stable_sort(groups.begin(), groups.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
    return groups;
}

bool is_usual(const OptionShape& option, const std::vector<std::string>& usual) {
    return option.names.empty() || option.group == "Options" ||
           std::find(usual.begin(), usual.end(), option.names.front()) != usual.end();
}

// Leaves the options that --help lists.
CommandShape usual_of(CommandShape command) {
    std::erase_if(command.options, [&](const OptionShape& one) { return !is_usual(one, command.manual.usual); });
    return command;
}

std::size_t listed(const CommandShape& command) {
    return static_cast<std::size_t>(std::count_if(command.options.begin(), command.options.end(),
                                                  [](const OptionShape& one) { return !one.group.empty(); }));
}

std::string options_of(const CommandShape& command) {
    std::string text;
    for (const auto& group : groups_of(command)) {
        text += fmt::format("{}  {}:\n", text.empty() ? "" : "\n", group == "Options" ? "Other" : group);
        for (const OptionShape& option : command.options)
            if (option.group == group) text += entry(label_of(option), option.about, 4);
    }
    return text;
}

std::string section(std::string_view title, const std::string& text) {
    return text.empty() ? text : fmt::format("\n{}\n{}", title, text);
}

std::string entries(const std::vector<std::pair<std::string, std::string>>& all) {
    std::string text;
    for (const auto& [label, about] : all) text += entry(label, about);
    return text;
}

// A command line, continued in front of an option where it gets too long.
std::string command_line(std::string_view line) {
    std::string all = "    ";
    std::size_t column = all.size();
    while (!line.empty()) {
        const std::size_t length = std::min(line.find(" --", 1), line.size());
        if (column > 4 && column + length + 2 > page_width) {
            all += " \\\n       ";
            column = 7;
        }
        all += line.substr(0, length);
        column += length;
        line.remove_prefix(length);
    }
    return all + "\n";
}

std::string examples_of(const Manual& manual) {
    std::string text;
    for (const auto& [about, line] : manual.examples)
        text += fmt::format("{}{}{}", text.empty() ? "" : "\n", wrapped(about + ":", 2), command_line(line));
    return text;
}

// A line as roff takes it literally.
std::string roff_line(std::string_view line) {
    std::string text = line.starts_with('.') || line.starts_with('\'') ? "\\&" : "";
    for (const char c : line) text += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '`' ? "\\(ga" : std::string(1, c);
    return text;
}

void add_pages(const CommandShape& command, std::string& page) {
    page += fmt::format(".SH {}\n.nf\n", roff_line(command.full_name));
    const std::string text = page_of(command, PageLength::whole);
    for (std::string_view help = text; !help.empty();) {
        const std::size_t length = std::min(help.find('\n'), help.size());
        page += roff_line(help.substr(0, length)) + "\n";
        help.remove_prefix(std::min(help.size(), length + 1));
    }
    page += ".fi\n";
    for (const CommandShape& one : command.commands)
        if (one.has_page) add_pages(one, page);
}

}  // namespace

std::string page_of(const CommandShape& command, PageLength length) {
    const Manual& manual = command.manual;
    const bool shorter = length == PageLength::usual && !manual.usual.empty();
    const std::string options = !shorter
                                    ? options_of(command)
                                    : options_of(usual_of(command)) +
                                          fmt::format("\n  `{} --help-all` lists {} options more.\n", command.full_name,
                                                      listed(command) - listed(usual_of(command)));
    std::string commands;
    for (const CommandShape& one : command.commands) commands += entry(one.name, one.about);
    const std::string& name = command.full_name;
    return fmt::format("NAME\n{}\nSYNOPSIS\n{}", wrapped(name + " - " + command.about, 2),
                       wrapped(name + " " + manual.synopsis, 2)) +
           section("DESCRIPTION", wrapped(manual.description, 2)) + section("COMMANDS", commands) +
           section("OPTIONS", options) + section("EXAMPLES", examples_of(manual)) +
           section("FILES", entries(manual.files)) +
           section("EXIT STATUS",
                   "  0  done\n"
                   "  2  the input is malformed or contradictory\n"
                   "  3  a file cannot be read or written\n"
                   "  4  well-formed, but impossible: does not fit, or cannot be expressed\n"
                   "  5  undecided: it rests on what was not said (`pipeweaver check`)\n"
                   "  One line on stderr says what is wrong and what is allowed.\n") +
           section("SEE ALSO", wrapped(fmt::format("{}", fmt::join(manual.see_also, ", ")), 2));
}

std::string man_page(const CommandShape& program) {
    std::string page = fmt::format(".TH PIPEWEAVER 1\n.SH NAME\npipeweaver \\- {}\n", program.about);
    add_pages(program, page);
    return page;
}

}  // namespace pipeweaver::apps
