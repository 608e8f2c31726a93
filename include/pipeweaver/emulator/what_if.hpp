// What would the step take if something were faster or slower? Factors on times, asked again of the whole emulation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::emulator {

/// Every factor is on time: 0.5 is twice as fast, 1 changes nothing. Factors that meet are multiplied.
struct WhatIf {
    /// A GPU that is slow or fast at all it runs: those behind one pipeline rank.
    struct Device {
        std::int64_t rank = 0;
        std::optional<std::int64_t> replica;  ///< nothing: in all of them
        double factor = 1;

        friend bool operator==(const Device&, const Device&) = default;
    };

    std::vector<Device> devices;
    std::map<std::string, double> links;      ///< by what they carry: link_names()
    std::map<std::string, double> operators;  ///< by class (OperatorClass) or by name ("qkv", "router", ...)
    std::map<std::string, double> modules;    ///< all that runs in their layers

    bool empty() const { return devices.empty() && links.empty() && operators.empty() && modules.empty(); }
    friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

/// "tensor", "context", "data", "copy" (streams of a GPU) and "pipeline" (transfers between ranks).
[[nodiscard]] const std::vector<std::string>& link_names();

}  // namespace pipeweaver::emulator
