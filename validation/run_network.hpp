// The network of a published run: its columns, and what the model's name adds.
#pragma once

#include "pipeweaver/validation/published_run.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::validation {

/// The text's letters and digits alone, in lower case.
[[nodiscard]] std::string letters_and_digits(std::string_view text);

/// The catalogue's language model that the text names ("llama3-70b truncated to 12 layers", "deepseekv2", "GPT-3.6B"):
/// compared by letters and digits alone, up to the first " (" or " truncated". Nothing: none.
[[nodiscard]] std::optional<workloads::Architecture> network_named(std::string_view model);

struct RunNetwork {
    std::optional<workloads::Architecture> network;
    std::vector<std::string> assumed;
    std::string refusal;  ///< empty where there is a network
};
[[nodiscard]] RunNetwork network_of(const PublishedRun& row);

}  // namespace pipeweaver::validation
