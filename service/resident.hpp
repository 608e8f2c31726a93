// How much memory this process has.
#pragma once

#include <cstddef>

namespace pipeweaver::service {

/// Bytes that are resident; 0: the system does not say.
[[nodiscard]] std::size_t resident_bytes();

}  // namespace pipeweaver::service
