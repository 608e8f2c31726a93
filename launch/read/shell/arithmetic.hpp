// What bash works out between $(( and )).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace pipeweaver::launch {

/// The value of whole numbers and variables with + - * / %, comparisons, && || ! ?: and brackets, 100 deep at most;
/// what holds is 1. `value_of` gives the text of a variable, or the word itself. None: it is another expression, or a
/// number of a sum is 10^12 or more.
[[nodiscard]] std::optional<std::int64_t> worked_out(const std::string& text,
                                                     const std::function<std::string(const std::string&)>& value_of);

}  // namespace pipeweaver::launch
