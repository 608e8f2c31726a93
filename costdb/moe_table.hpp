// Mixture-of-experts layers: the measured layer of the same or the nearest shape, along the tokens.
#pragma once

#include "costdb/answer.hpp"
#include "costdb/device_facts.hpp"
#include "pipeweaver/costdb/measurements.hpp"

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::costdb {

class MoeTable {
public:
    MoeTable() = default;
    MoeTable(const DeviceFacts& device, std::span<const MoePoint> points);

    Answer cost(const DeviceFacts& device, const MixtureOfExperts& query) const;

private:
    /// hidden, ffn, top_k, experts, moe_tp, moe_ep
    using Shape = std::array<std::int64_t, 6>;
    struct Token {
        std::int64_t tokens = 0;
        double ratio = 0;
        std::int64_t latency_ns = 0;
    };
    struct Layer {
        Dtype dtype = Dtype::bf16;
        std::string routing;
        Shape shape{};
        std::vector<Token> points;  // sorted by tokens
    };
    static Shape shape_of(const MixtureOfExperts& query);
    const Layer* nearest(const MixtureOfExperts& query) const;

    std::vector<Layer> layers_;
};

}  // namespace pipeweaver::costdb
