// What a layer waits for the host that launches its kernels.
#pragma once

#include "pipeweaver/costdb/operators.hpp"

#include <string_view>

namespace pipeweaver::costdb {
class CostDatabase;
}

namespace pipeweaver::emulator {

/// Time in which the GPU has nothing to run because the host is not through with launching (Recipe::layer).
struct HostWait {
    static constexpr std::string_view op = "host";
    Duration wait{};

    [[nodiscard]] costdb::Cost cost(const costdb::CostDatabase& costs) const;  ///< `wait` itself
};

}  // namespace pipeweaver::emulator
