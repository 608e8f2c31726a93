// The matrix products of a model's forward on one tensor parallel GPU, and what other sizes would make of them.
#pragma once

#include "pipeweaver/costdb/explain.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::apps {

struct ModelProduct {
    std::string name;        ///< as the emulator calls it: "qkv", "head", ...
    std::int64_t times = 0;  ///< in one forward of the network
    costdb::Explanation explained;
};

/// How routed experts are priced, whose products are left out here.
enum class Experts : std::uint8_t {
    none,
    fused,  ///< as one layer that was measured
    apart   ///< by the products of each expert, or as like a layer that was measured
};

/// All of them together.
struct ModelProducts {
    std::vector<ModelProduct> products;  ///< each name and shape once, in the order in which they run first
    double tflops_per_s = 0;
    double error_percent = 0;         ///< of the products, weighed by their time
    Experts experts = Experts::none;  ///< of any layer
};

/// Of the repeated blocks and the output head, for `m` positions. Throws Error{input} where tp divides no heads, or as
/// costdb::explain().
[[nodiscard]] ModelProducts products_of(const workloads::Architecture& network, std::int64_t tp, std::int64_t m,
                                        const costdb::CostDatabase& costs);

/// Another size of the network, or of its layout, that is faster per FLOP.
struct FasterSize {
    std::string axis;  ///< "hidden", "ffn", "vocab", "tp"
    std::int64_t from = 0, to = 0;
    double tflops_per_s = 0;
    double gain = 0;            ///< as costdb::Neighbour's
    bool beyond_error = false;  ///< whether it is more than either error
    std::string product{};      ///< whose time per FLOP changes most
    std::optional<costdb::Cause> cause{};
};

/// For each size the fastest per FLOP near it; of tp half and double. Sizes where none is faster, or no product
/// is, are left out.
[[nodiscard]] std::vector<FasterSize> faster_sizes(const workloads::Architecture& network, std::int64_t tp,
                                                   std::int64_t m, const ModelProducts& here,
                                                   const costdb::CostDatabase& costs);

}  // namespace pipeweaver::apps
