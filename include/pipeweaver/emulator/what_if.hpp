// What would the step take if something were faster or slower? Factors on times, asked again of the whole emulation.
#pragma once

#include "pipeweaver/base/ids.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/emulator/layout.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emulator {

struct Operator;

/// Every factor is on time: 0.5 is twice as fast, 1 changes nothing. Factors that meet are multiplied.
struct WhatIf {
    /// The GPUs of one pipeline rank, slow or fast at all they run.
    struct Device {
        std::int64_t rank = 0;
        std::optional<std::int64_t> replica;  ///< none: in all of them
        double factor = 1;

        friend bool operator==(const Device&, const Device&) = default;
    };

    std::vector<Device> devices;
    std::map<std::string, double> links;      ///< by what they carry: link_names()
    std::map<std::string, double> operators;  ///< by class (OperatorClass) or by name ("qkv", "router", ...)
    std::map<std::string, double> modules;    ///< all that runs in their layers
    /// Work of a module in one direction; of programs alone, no file has them.
    struct Passes {
        std::string module;
        bool backward = false;
        double factor = 1;

        friend bool operator==(const Passes&, const Passes&) = default;
    };
    std::vector<Passes> passes{};
    /// Formats of products, as --what-if has them: the recipe that goes with it is in them. No file has them.
    std::string precision{};

    bool empty() const {
        return devices.empty() && links.empty() && operators.empty() && modules.empty() && passes.empty() &&
               precision.empty();
    }
    friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

/// "tensor", "context", "data", "copy" (streams of a GPU) and "pipeline" (transfers between ranks).
[[nodiscard]] const std::vector<std::string>& link_names();

/// What factors on operators can name: the classes, then the names of what the model's passes and the end of the step
/// launch in this layout, sorted.
[[nodiscard]] std::vector<std::string> operator_names(const workloads::Model& model, const Layout& layout);

/// The factor on an operator's time; `module` empty: it runs in none. Devices are left to the caller.
[[nodiscard]] double factor_of(const WhatIf& what_if, const Operator& op, std::string_view module);

/// The factor on a module's work in a direction.
[[nodiscard]] double pass_factor(const WhatIf& what_if, std::string_view module, bool backward);

/// The factor on all that runs on a rank of a replica.
[[nodiscard]] double device_factor(const WhatIf& what_if, std::int64_t replica, RankId rank);

/// Reads a file of factors ("pipeweaver-what-if/1", docs/formats.md), JSON or YAML. Throws Error{input} for what is not
/// as the format says, names that nothing in the model and layout has (the nearest is named), and factors that are not
/// in (0, 1000], each or multiplied with the largest that may meet it; Error{io}.
[[nodiscard]] WhatIf read_what_if(const std::filesystem::path& path, const workloads::Model& model,
                                  const Layout& layout);
[[nodiscard]] WhatIf parse_what_if(const JsonDocument& document, const workloads::Model& model, const Layout& layout);

}  // namespace pipeweaver::emulator
