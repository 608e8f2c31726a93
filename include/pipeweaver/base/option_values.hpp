// What options were given, as texts that set them again: a command line for a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver {

/// The text as a shell reads it back: as it is where it holds letters, digits and _./:=,+%@- alone, else in single
/// quotes.
[[nodiscard]] std::string quoted_for_shell(std::string_view text);

class OptionValues {
public:
    struct Value {
        std::string name, text;
        bool flag = false;  ///< it has no text
    };

    /// The option goes to the end, with this text alone.
    void set(std::string_view name, std::string text);
    void set_flag(std::string_view name);
    void erase(std::string_view name);
    /// Sets all of `more`.
    void add(const OptionValues& more);

    /// Null where the option is not given.
    const Value* find(std::string_view name) const;
    const std::vector<Value>& all() const { return values_; }

    /// "PROGRAM --name text ...", in order; a text that begins with a dash stands behind "--name=".
    std::string command(std::string_view program) const;

private:
    std::vector<Value> values_;
};

}  // namespace pipeweaver
