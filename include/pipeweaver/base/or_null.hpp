// Values that may not be there, in JSON.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace pipeweaver {

/// The value, or null where there is none.
template <class Value>
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<Value>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

/// The text, or null where it is empty.
[[nodiscard]] inline nlohmann::ordered_json or_null(const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

}  // namespace pipeweaver
