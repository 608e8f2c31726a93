// The cost databases that are part of the program, one a device: costdb/data/*.sqlite.gz, as embedded.S places them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::costdb {

/// The devices that have one, sorted.
[[nodiscard]] std::vector<std::string> embedded_devices();

/// Of that device, still zipped; empty: it has none.
[[nodiscard]] std::string_view embedded_store(std::string_view device);

}  // namespace pipeweaver::costdb
