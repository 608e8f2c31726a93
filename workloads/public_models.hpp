// The table of data/public_models.json: models by the configurations of their repositories, and what people call the
// models of the catalogue.
#pragma once

#include "pipeweaver/workloads/model.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::workloads {

/// Names of its models, in its order.
[[nodiscard]] std::vector<std::string> public_model_names();

/// The model of that name, read when it is asked for. Empty: the table has none.
[[nodiscard]] std::optional<Model> public_model(std::string_view name);

/// What people call models of the catalogue beside their names there: the last part of a repository's name in lower
/// case, '-' for '.' and '_', and the name in the catalogue.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> names_in_public();

}  // namespace pipeweaver::workloads
