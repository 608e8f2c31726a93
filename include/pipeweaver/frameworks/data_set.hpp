// Public data sets that launches name: what of them is known without reading them. Data: a data set is a row.
//
// Units        tokens of a sample.
// Determinism  Tables alone.
#pragma once

#include <cstdint>
#include <string_view>

namespace pipeweaver::frameworks {

/// A data set of text, or of text and images.
struct DataSet {
    std::string_view names;  ///< as hubs call it, "a/x|b/x", whatever their case
    std::string_view source;
    std::int64_t most = 0;  ///< tokens of its longest sample by Qwen2.5's tokenizer and template; 0: not known
    std::int64_t most_of_question = 0;  ///< the same of what is in front of an answer, where that alone is known
    std::int64_t images = 0;            ///< of a sample, at most; 0: it is text alone
};

/// The data set that a launch names, as "owner/name", and with ms-swift's endings "owner/name:subset#rows"; null: none
/// of those that are known.
[[nodiscard]] const DataSet* data_set(std::string_view named);

}  // namespace pipeweaver::frameworks
