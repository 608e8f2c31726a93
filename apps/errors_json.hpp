// Errors of predictions as `validate` and `bench accuracy` write them.
#pragma once

#include "pipeweaver/validation/run_errors.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::apps {

[[nodiscard]] inline nlohmann::ordered_json errors_json(const validation::Errors& errors) {
    nlohmann::ordered_json json{{"n", errors.rows}};
    if (errors.rows == 0) return json;
    json["mape_percent"] = errors.mean_percent;
    json["median_percent"] = errors.median_percent;
    json["p90_percent"] = errors.p90_percent;
    json["max_percent"] = errors.max_percent;
    json["bias_percent"] = errors.bias_percent;
    return json;
}

}  // namespace pipeweaver::apps
