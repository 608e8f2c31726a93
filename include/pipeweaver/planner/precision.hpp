// What other formats of products would change: of whole modules, and of the fewest layers that make a step so much
// shorter.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/emulator/product_format.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

/// Layers in a format, so many that the step takes a share less; without a format: each module in each format that the
/// device has.
struct PrecisionAsked {
    std::optional<costdb::Dtype> products{};
    double share = 0;  ///< of the step, above 0 and below 1
};

/// "precision", or "precision=fp8:5%". Throws Error{input} naming --what-if. Pre: it begins with "precision" and names
/// no module.
[[nodiscard]] PrecisionAsked precision_asked(std::string_view text);

struct ModuleInFormat {
    std::string module;
    costdb::Dtype products{};
    Duration step{};
    Bytes peak;  ///< of the fullest rank
};

struct LayersInFormat {
    std::vector<emulator::LayerPrecision> layers;  ///< by module and place
    std::int64_t count = 0, of = 0;                ///< layers, and those that have another format now
    bool reached = false;                          ///< whether they are enough
    Duration step{};
    Bytes peak;
    std::string precision{};  ///< all formats of that step, as --precision takes them
};

struct PrecisionAnswer {
    PrecisionAsked asked{};
    Duration step{};  ///< as it is
    std::vector<ModuleInFormat> modules{};
    std::optional<LayersInFormat> layers{};
};

/// What a choice comes to: the step, and the sum over ranks of the eighth powers of their busy seconds, which shrinks
/// by most where the busiest do.
struct Came {
    Duration step{};
    double load = 0;
};

/// Of rows with so many like layers each, how many of each are enough for a step of `most`. Chosen greedily, one after
/// the other (`at_once` while they are far from enough), twice: each time where the step gets shorter by most a layer,
/// and where the load does, as ranks that are equally slow shorten a step together alone. What can be left out of
/// either again is; the fewer layers are the answer, of equally many those by the step. Where they are never enough it
/// is all that shortens anything. `come` answers several choices at once, in their order.
using ComeOf = std::function<std::vector<Came>(const std::vector<std::vector<std::int64_t>>& choices)>;
[[nodiscard]] std::vector<std::int64_t> fewest_layers(const std::vector<std::int64_t>& rows, Duration most,
                                                      std::int64_t at_once, const ComeOf& come);

}  // namespace pipeweaver::planner
