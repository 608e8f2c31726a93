// costdb calibrate --steps: in-situ factors of a device from measured steps.
#pragma once

#include <string>

namespace pipeweaver::apps {

/// Fits the factors, prints the error of steps left out before and after, and writes `database` (empty: the embedded
/// tables) of `device` with them to `out`. Throws Error.
void calibrate_steps(const std::string& steps, const std::string& device, const std::string& database,
                     const std::string& out);

}  // namespace pipeweaver::apps
