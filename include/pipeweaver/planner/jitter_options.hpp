// How steps vary, by name: of commands that replay them.
#pragma once

#include "pipeweaver/base/options.hpp"
#include "pipeweaver/planner/jitter.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace pipeweaver::planner {

struct JitterOptions {
    std::string robust;
    std::optional<double> jitter{};
    std::optional<SlowRank> slow{};

    /// --robust, --jitter, --slow.
    void add_to(OptionTable& options);

    /// None: not asked. Throws Error{input} for --jitter and --slow without --robust.
    [[nodiscard]] std::optional<JitterRequest> request(std::int64_t seed) const;
};

}  // namespace pipeweaver::planner
