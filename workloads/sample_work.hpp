// What a sample costs, before any price is known: FLOPs.
#pragma once

#include "pipeweaver/workloads/batch.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pipeweaver::workloads {

/// Forward FLOPs of every module over what a sample brings it; windows as if there were none. Keeps the model.
class SampleWork {
public:
    explicit SampleWork(const Model& model);

    double of(const Sample& sample, std::size_t m) const;
    bool by_microbatch(std::size_t m) const { return model_.modules[m].unit != PassUnit::items; }

    /// Of a sequence of `length` positions.
    double of_length(std::size_t m, std::int64_t length) const;

private:
    struct Flops {
        double of_position = 0, of_pair = 0;  // pairs of positions that attend to each other
    };

    const Model& model_;
    std::vector<Flops> flops_;  // of each module
};

}  // namespace pipeweaver::workloads
