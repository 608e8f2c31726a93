// Reading a part of a Hugging Face configuration: keys with several spellings, defaults of classes, misspelled keys.
//
// Silent       nothing is: a size that a file lacks is an error that names it, or the default that transformers'
//              configuration class documents for it, which is then noted in Reading::assumed. Such defaults hold in
//              nested configurations alone: transformers leaves out of those what equals them.
// Misspelled   a key that is missing while one of almost its letters is there is an error that names both.
#pragma once

#include "pipeweaver/base/json.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::workloads::hf {

/// A quantity by its spellings, the usual one first.
struct Key {
    std::string_view usual;
    std::string_view second{}, third{}, fourth{}, fifth{}, sixth{};

    std::array<std::string_view, 6> spellings() const { return {usual, second, third, fourth, fifth, sixth}; }
};

/// What a configuration class of transformers takes where a file lacks the key.
struct Default {
    std::string_view key;
    std::int64_t value = 0;
};

/// What is said while one file is read.
struct Reading {
    std::vector<std::string> assumed;
    std::string_view start_from;  ///< the name in the catalogue that is most like the file's model
};

/// One object of the file.
struct Part {
    Json json;
    Reading* reading = nullptr;
    std::string_view name;                ///< "text_config"; "the file" for the whole
    std::string_view type{};              ///< the class that `defaults` are of
    std::span<const Default> defaults{};  ///< empty: none hold
};

/// Far above every published network; contradictions are found when the finished model is checked.
constexpr std::int64_t most = 100'000'000;

/// The member, if it is there and not null. Throws Error{input} for a misspelled one.
[[nodiscard]] std::optional<Json> given(const Part& part, const Key& key);

/// A size of at least 1: the file's, or the class's default, which is noted. `size` gives nothing where there is
/// neither, `needed` throws Error{input} naming the key and the way out.
[[nodiscard]] std::optional<std::int64_t> size(const Part& part, const Key& key);
[[nodiscard]] std::int64_t needed(const Part& part, const Key& key);

/// A number that may be 0, which it also is where the file lacks it.
[[nodiscard]] std::int64_t count(const Part& part, const Key& key);

[[nodiscard]] bool flag(const Part& part, const Key& key, bool otherwise);

/// A side of a square: 448, or [448, 448].
[[nodiscard]] std::int64_t square(const Part& part, const Key& key);

/// a / b, which must have no remainder.
struct Named {
    std::string_view key;
    std::int64_t value;
};
[[nodiscard]] std::int64_t divided(const Part& part, Named a, Named b);

/// Adds a line to what is assumed, once.
void assume(Reading& reading, const std::string& line);

/// Throws Error{input}: file, place, message and the way out.
[[noreturn]] void refuse(const Part& part, std::string_view message);
[[noreturn]] void refuse(const Json& place, const Reading& reading, std::string_view message);

}  // namespace pipeweaver::workloads::hf
