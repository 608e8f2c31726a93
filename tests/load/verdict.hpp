// What `bench service` finds: a promise, what was measured of it, what is allowed.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <string>

namespace pipeweaver::load {

struct Verdict {
    std::string part, what, measured, allowed;
    std::optional<bool> held;                  ///< none: it is told beside a promise, and is none
    nlohmann::ordered_json figures = nullptr;  ///< what was measured, for programs
};

/// Takes a verdict as soon as it is found.
using OnVerdict = std::function<void(const Verdict&)>;

/// "PART  WHAT  MEASURED  ALLOWED  held", in columns.
[[nodiscard]] std::string line_of(const Verdict& verdict);

[[nodiscard]] nlohmann::ordered_json to_json(const Verdict& verdict);

}  // namespace pipeweaver::load
