#include "apps/manual.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace pipeweaver::apps {

namespace {

constexpr std::size_t width = 96;
constexpr std::size_t about_column = 24;

// The words of `text` in lines of at most `width`, each behind `indent` blanks.
std::string wrapped(std::string_view text, std::size_t indent) {
    std::string all, line;
    const auto end_line = [&] {
        if (!line.empty()) all += std::string(indent, ' ') + line + "\n";
        line.clear();
    };
    while (!text.empty()) {
        const std::size_t length = std::min(text.find_first_of(" \n"), text.size());
        if (!line.empty() && indent + line.size() + 1 + length > width) end_line();
        if (length > 0) line += (line.empty() ? "" : " ") + std::string(text.substr(0, length));
        if (length < text.size() && text[length] == '\n') end_line();
        text.remove_prefix(std::min(text.size(), length + 1));
    }
    end_line();
    return all;
}

// "  label      about ...", the text in a column of its own.
std::string entry(const std::string& label, std::string_view about, std::size_t indent = 2) {
    const std::string start = std::string(indent, ' ') + label;
    std::string text = wrapped(about, about_column + indent);
    if (start.size() + 2 > about_column + indent) return start + "\n" + text;
    return start + text.substr(std::min(start.size(), text.size()));
}

std::string upper(std::string text) {
    for (char& c : text)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return text;
}

std::string label_of(const CLI::Option& option) {
    if (option.get_positional()) return upper(option.get_name(true));
    std::vector<std::string> names;
    for (const auto& name : option.get_snames()) names.push_back("-" + name);
    for (const auto& name : option.get_lnames()) names.push_back("--" + name);
    const std::string kind = option.get_expected_max() > 0 ? option.get_type_name() : std::string();
    return fmt::format("{}{}{}", fmt::join(names, ", "), kind.empty() ? "" : " ", kind);
}

// The groups: operands first, then in the order in which the command names them; what all commands have last.
std::vector<std::string> groups_of(const CLI::App& command) {
    std::vector<std::string> groups;
    for (const CLI::Option* option : command.get_options())
        if (std::find(groups.begin(), groups.end(), option->get_group()) == groups.end() &&
            !option->get_group().empty())
            groups.push_back(option->get_group());
    const auto place = [](const std::string& name) {
        return name == "Operands" ? 0 : name == "Output" ? 2 : name == "Options" ? 3 : 1;
    };
    std::stable_sort(groups.begin(), groups.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
    return groups;
}

std::string options_of(const CLI::App& command) {
    std::string text;
    for (const auto& group : groups_of(command)) {
        text += fmt::format("{}  {}:\n", text.empty() ? "" : "\n", group == "Options" ? "Other" : group);
        for (const CLI::Option* option : command.get_options())
            if (option->get_group() == group) text += entry(label_of(*option), option->get_description(), 4);
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
        if (column > 4 && column + length + 2 > width) {
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

// --help of a command: CLI11 asks its formatter.
class Page : public CLI::FormatterBase {
public:
    explicit Page(Manual manual) : manual_(std::move(manual)) {}

    std::string make_help(const CLI::App* command, std::string /*name*/, CLI::AppFormatMode /*mode*/) const override {
        std::string commands;
        for (const CLI::App* one : commands_of(*command)) commands += entry(one->get_name(), one->get_description());
        const std::string name = full_name(*command);
        return fmt::format("NAME\n{}\nSYNOPSIS\n{}", wrapped(name + " - " + command->get_description(), 2),
                           wrapped(name + " " + manual_.synopsis, 2)) +
               section("DESCRIPTION", wrapped(manual_.description, 2)) + section("COMMANDS", commands) +
               section("OPTIONS", options_of(*command)) + section("EXAMPLES", examples_of(manual_)) +
               section("FILES", entries(manual_.files)) +
               section("EXIT STATUS",
                       "  0  done\n"
                       "  2  the input is malformed or contradictory\n"
                       "  3  a file cannot be read or written\n"
                       "  4  well-formed, but impossible: does not fit, or cannot be expressed\n"
                       "  One line on stderr says what is wrong and what is allowed.\n") +
               section("SEE ALSO", wrapped(fmt::format("{}", fmt::join(manual_.see_also, ", ")), 2));
    }

private:
    Manual manual_;
};

// A line as roff takes it literally.
std::string roff_line(std::string_view line) {
    std::string text = line.starts_with('.') || line.starts_with('\'') ? "\\&" : "";
    for (const char c : line) text += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '`' ? "\\(ga" : std::string(1, c);
    return text;
}

void add_pages(const CLI::App& command, std::string& page) {
    page += fmt::format(".SH {}\n.nf\n", roff_line(full_name(command)));
    // Not help(): once a command has been parsed, that speaks of it whatever it is asked of.
    const std::string text = command.get_formatter()->make_help(&command, "", CLI::AppFormatMode::Normal);
    for (std::string_view help = text; !help.empty();) {
        const std::size_t length = std::min(help.find('\n'), help.size());
        page += roff_line(help.substr(0, length)) + "\n";
        help.remove_prefix(std::min(help.size(), length + 1));
    }
    page += ".fi\n";
    for (const CLI::App* one : commands_of(command)) add_pages(*one, page);
}

}  // namespace

void describe(CLI::App& command, Manual manual) { command.formatter(std::make_shared<Page>(std::move(manual))); }

std::string man_page(const CLI::App& program) {
    std::string page = fmt::format(".TH PIPEWEAVER 1\n.SH NAME\npipeweaver \\- {}\n", program.get_description());
    add_pages(program, page);
    return page;
}

std::vector<const CLI::App*> commands_of(const CLI::App& command) {
    return command.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

std::string full_name(const CLI::App& command) {
    if (command.get_parent() == nullptr) return "pipeweaver";
    return full_name(*command.get_parent()) + " " + command.get_name();
}

}  // namespace pipeweaver::apps
