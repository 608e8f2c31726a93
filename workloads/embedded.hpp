// The data files of this module, as they lie in workloads/data/ when the program is built.
#pragma once

#include <string_view>

namespace pipeweaver::workloads {

[[nodiscard]] std::string_view embedded_catalogue();
[[nodiscard]] std::string_view embedded_datasets();
[[nodiscard]] std::string_view embedded_clusters();
[[nodiscard]] std::string_view embedded_networks();
[[nodiscard]] std::string_view embedded_public_models();

}  // namespace pipeweaver::workloads
