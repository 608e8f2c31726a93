#include "launch/rules/layout_text.hpp"

#include "launch/read/values.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace pipeweaver::launch {

namespace {

std::optional<char> letter_of(const std::string& name) {
    static constexpr std::array<std::pair<std::string_view, char>, 5> letters{
        {{"embedding", 'E'}, {"decoder", 't'}, {"mtp", 'm'}, {"loss", 'L'}, {"encoder", 'e'}}};
    for (const auto& [known, letter] : letters)
        if (in_lower_case(name) == known) return letter;
    return std::nullopt;
}

ReadStages of_lists(const std::string& layout) {
    const auto lists = lists_of(layout);
    if (!lists) return {{}, "model.pipeline_model_parallel_layout: " + must_be(layout, "a list of lists of names")};
    ReadStages letters;
    for (const auto& names : *lists) {
        letters.stages.emplace_back();
        for (const std::string& name : names) {
            const auto letter = letter_of(name);
            if (!letter) return {{}, fmt::format("'{}' is no kind of layer", name)};
            letters.stages.back() += *letter;
        }
    }
    return letters;
}

}  // namespace

ReadStages layout_letters(const std::string& layout) {
    return layout.starts_with('[') ? of_lists(layout) : parse_pipeline_layout(layout);
}

}  // namespace pipeweaver::launch
