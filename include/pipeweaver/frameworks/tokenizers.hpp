// How many entries a tokenizer has, by the words in which a launch names it. Data: a tokenizer is a row.
//
// Determinism  Tables alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pipeweaver::frameworks {

/// Between so many entries; where both are equal it is known.
struct Vocabulary {
    std::int64_t least = 0, most = 0;
    std::string_view whose{};   ///< "Llama 2"; empty: not known
    std::string_view source{};  ///< where the numbers are from

    bool is_known() const { return least == most; }
};

/// A tokenizer as a launch of Megatron-LM says it.
struct SaidTokenizer {
    std::string type;                          ///< --tokenizer-type
    std::string model{};                       ///< --tokenizer-model: a name or a path; empty: not said
    std::string vocabulary_file{};             ///< --vocab-file; empty: the type's own
    std::optional<std::int64_t> vocabulary{};  ///< --vocab-size, which some types take
};

/// The entries that the model is built with, before they are padded. None: the type takes what the launch says, and it
/// does not say it.
[[nodiscard]] std::optional<Vocabulary> vocabulary_of(const SaidTokenizer& said);

}  // namespace pipeweaver::frameworks
