// The cost database that is part of the program: costdb/data/default.sqlite.gz, as embedded.S places it.
#pragma once

#include <string_view>

namespace pipeweaver::costdb {

[[nodiscard]] std::string_view embedded_store();  ///< still zipped

}  // namespace pipeweaver::costdb
