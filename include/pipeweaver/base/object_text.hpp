// JSON objects as text without being built first, for lists of many thousand entries: a tenth of the time.
//
//   ObjectText json;
//   json.integer("id", 3).text("kind", "F");
//   json.append_to(out);                         {"id":3,"kind":"F"}
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver {

/// The text of a JSON string, quotes included.
[[nodiscard]] std::string json_text(std::string_view text);

class ObjectText {
public:
    /// An empty object again.
    void clear();

    template <std::integral T>
    ObjectText& integer(std::string_view key, T value) {
        return raw(key, std::to_string(value));
    }
    ObjectText& number(std::string_view key, double value);
    ObjectText& flag(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
    ObjectText& text(std::string_view key, std::string_view value);
    ObjectText& raw(std::string_view key, std::string_view value);

    /// The text that nlohmann's dump() gives: keys as they were added, or sorted. Pre: keys differ and need no escapes.
    void append_to(std::string& out) const;
    void append_sorted_to(std::string& out) const;

private:
    struct Field {
        std::string_view key;
        std::size_t begin, end;  // of its value
    };

    void append(std::string& out, const Field& field, bool first) const;

    std::vector<Field> fields_;
    std::string values_;
};

}  // namespace pipeweaver
