// TOML as far as torchtitan's configurations need it: tables, strings, numbers, booleans, arrays, comments.
#include "launch/read/script.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/launch/said.hpp"

#include <cctype>

namespace pipeweaver::launch {

namespace {

class Toml {
public:
    Toml(std::string_view text, const std::string& name) : text_(text), name_(name) {}

    SaidLaunch read() {
        SaidLaunch said{Dialect::titan_settings, name_, {}, {}, {}, true};
        for (skip(true); at_ < text_.size(); skip(true)) {
            if (peek() == '[') {
                table();
                continue;
            }
            const std::size_t line = line_;
            const std::string key = name();
            skip(false);
            if (peek() != '=') bad("a '=' is missing");
            next();
            skip(false);
            Setting one{table_.empty() ? key : table_ + "." + key, {value()}, fmt::format("{}:{}", name_, line)};
            said.settings.push_back(std::move(one));
            skip(false);
            if (at_ < text_.size() && peek() != '\n') bad("something follows the value");
        }
        return said;
    }

private:
    [[noreturn]] void bad(const char* why) const { fail(ErrorKind::input, "{}:{}: {}", name_, line_, why); }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    char next() {
        if (text_[at_] == '\n') ++line_;
        return text_[at_++];
    }

    void skip(bool lines) {
        while (at_ < text_.size()) {
            if (peek() == '#')
                while (at_ < text_.size() && peek() != '\n') next();
            else if (peek() == ' ' || peek() == '\t' || peek() == '\r' || (lines && peek() == '\n'))
                next();
            else
                return;
        }
    }

    void table() {
        next();
        if (peek() == '[') bad("lists of tables are not read");
        skip(false);
        table_ = name();
        skip(false);
        if (peek() != ']') bad("a table's name is not closed");
        next();
    }

    std::string name() {
        if (peek() == '"' || peek() == '\'') return string();
        std::string name;
        while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_' || peek() == '-' || peek() == '.')
            name += next();
        if (name.empty()) bad("a name is missing");
        return name;
    }

    std::string string() {
        const char quote = next();
        std::string text;
        while (peek() != quote) {
            if (at_ >= text_.size() || peek() == '\n') bad("a string is not closed");
            if (quote == '"' && peek() == '\\') next();
            text += next();
        }
        next();
        return text;
    }

    // A string without its quotes; arrays as they stand, on one line, their strings in double quotes.
    std::string value() {
        if (peek() == '"' || peek() == '\'') return string();
        if (peek() == '[') return array();
        std::string text;
        while (at_ < text_.size() && peek() != '\n' && peek() != '#' && peek() != ',' && peek() != ']' && peek() != ' ')
            text += next();
        while (!text.empty() && text.back() == '\r') text.pop_back();
        if (text.empty()) bad("a value is missing");
        return text;
    }

    std::string array() {
        next();
        std::string text = "[";
        for (skip(true); peek() != ']'; skip(true)) {
            if (at_ >= text_.size()) bad("an array is not closed");
            const bool quoted = peek() == '"' || peek() == '\'';
            const std::string item = value();
            text += (text.size() > 1 ? ", " : "") + (quoted ? "\"" + item + "\"" : item);
            skip(true);
            if (at_ >= text_.size()) bad("an array is not closed");
            if (peek() == ',')
                next();
            else if (peek() != ']')
                bad("a ',' is missing in an array");
        }
        next();
        return text + "]";
    }

    std::string_view text_;
    const std::string& name_;
    std::size_t at_ = 0, line_ = 1;
    std::string table_;
};

}  // namespace

SaidLaunch read_toml(std::string_view text, const std::string& name) { return Toml(text, name).read(); }

SaidLaunch read_launch(const std::filesystem::path& path, std::optional<Dialect> dialect, const Variables& given) {
    const auto end = path.extension();
    if (end == ".yaml" || end == ".yml" || end == ".json") return read_configuration(path);
    const std::string text = read_file(path, longest_file);
    if (end == ".toml") return read_toml(text, path.string());
    return read_script(text, path.string(), dialect, given);
}

}  // namespace pipeweaver::launch
