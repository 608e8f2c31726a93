// Mixture-of-experts layers: the measured layer of the same or the nearest shape, along the tokens.
#pragma once

#include "costdb/tables/answer.hpp"
#include "costdb/tables/device_facts.hpp"
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
        double log_tokens = 0, ratio = 0;
        double miss = 0;  // how far interpolation between the next ones is off
        Timed measured;
    };
    /// What is not interpolated over.
    struct Kind {
        Dtype dtype = Dtype::bf16;
        std::size_t routing = 0;  // in routings_
        Shape shape{};
        friend auto operator<=>(const Kind&, const Kind&) = default;
    };
    struct Layer {
        Kind kind;
        std::array<double, 6> logs{};  // of the shape
        std::vector<Token> points;     // sorted by tokens
    };
    static void measure_misses(std::vector<Token>& points);
    const Layer* find(const Kind& kind) const;
    const Layer* nearest(const Kind& kind) const;

    std::vector<std::string> routings_;  // sorted
    std::vector<Layer> layers_;          // sorted by kind
};

}  // namespace pipeweaver::costdb
