#include "pipeweaver/validation/flops.hpp"

#include <algorithm>

namespace pipeweaver::validation {

namespace {

constexpr std::array<std::string_view, flops_counted> flops_words{"model", "full-attention", "hardware", "parameters"};

}  // namespace

std::string_view name_of(FlopsCounted counted) { return flops_words.at(static_cast<std::size_t>(counted)); }

std::optional<FlopsCounted> flops_called(std::string_view name) {
    const auto found = std::find(flops_words.begin(), flops_words.end(), name);
    if (found == flops_words.end()) return std::nullopt;
    return static_cast<FlopsCounted>(found - flops_words.begin());
}

std::vector<std::string> flops_names() { return {flops_words.begin(), flops_words.end()}; }

}  // namespace pipeweaver::validation
