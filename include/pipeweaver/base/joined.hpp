// Texts of several things in a row.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace pipeweaver {

/// What `of` says of each (without it: each text), `between` in between; those of which it says nothing are left out.
template <class Range, class Of = std::identity>
[[nodiscard]] std::string joined(const Range& all, std::string_view between, Of of = {}) {
    std::string text;
    for (const auto& one : all) {
        const auto& each = of(one);
        const std::string_view said(each);
        if (!text.empty() && !said.empty()) text += between;
        text += said;
    }
    return text;
}

}  // namespace pipeweaver
