// How often a store knew what it was asked for. Depends on threads and history: for people, not for results.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pipeweaver::emulator {

struct StoreStatistics {
    std::uint64_t hits = 0, misses = 0, evictions = 0;
    std::size_t blocks = 0, bytes = 0;  ///< now
};

}  // namespace pipeweaver::emulator
