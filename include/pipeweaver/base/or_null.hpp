// Values that may not be there, in JSON.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>

namespace pipeweaver {

/// The value, or null where there is none.
template <class Value>
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<Value>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace pipeweaver
