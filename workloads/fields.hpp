// Members of an object: optional ones with their defaults, and how large those may be that several files have.
#pragma once

#include "pipeweaver/base/json.hpp"

#include <string>
#include <string_view>

namespace pipeweaver::workloads {

constexpr std::int64_t most_tokens = 1'000'000'000;
constexpr std::int64_t most_pixels = 100'000;  ///< of a side

inline std::int64_t integer_or(const Json& object, std::string_view key, std::int64_t otherwise, std::int64_t low,
                               std::int64_t high) {
    const auto member = object.find(key);
    return member ? member->integer(low, high) : otherwise;
}

inline double number_or(const Json& object, std::string_view key, double otherwise, double low, double high) {
    const auto member = object.find(key);
    return member ? member->number(low, high) : otherwise;
}

inline bool boolean_or(const Json& object, std::string_view key, bool otherwise) {
    const auto member = object.find(key);
    return member ? member->boolean() : otherwise;
}

inline std::string text_or(const Json& object, std::string_view key, std::string_view otherwise = "") {
    const auto member = object.find(key);
    return member ? member->text() : std::string(otherwise);
}

}  // namespace pipeweaver::workloads
