#include "launch/rules/layout_text.hpp"

#include "launch/read/values.hpp"
#include "pipeweaver/base/error.hpp"
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

LayoutLetters of_lists(const std::string& layout) {
    LayoutLetters letters;
    for (const auto& names : lists_of(layout, "model.pipeline_model_parallel_layout")) {
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

LayoutLetters layout_letters(const std::string& layout) {
    try {
        if (layout.starts_with('[')) return of_lists(layout);
        return {parse_pipeline_layout(layout), {}};
    } catch (const Error& error) {
        return {{}, error.what()};
    }
}

}  // namespace pipeweaver::launch
