// The machine that a command runs on.
#pragma once

#include <string>
#include <unistd.h>

namespace pipeweaver {

/// The name of the machine that this runs on; empty if it has none. For reports of what was measured: no result may
/// depend on it.
[[nodiscard]] inline std::string host_name() {
    char name[256] = {};
    return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace pipeweaver
