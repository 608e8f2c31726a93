// Packing for fixed shapes.
#pragma once

#include "workloads/packing/bins.hpp"
#include "workloads/sample_work.hpp"

namespace pipeweaver::workloads {

/// Packs for fixed shapes: every microbatch is as large as the largest in tokens and in items, and every item as the
/// largest. Few full ones cost less than many even ones where one sample is large whatever is done. Keeps references to
/// its arguments; `loads` are the samples'.
class PaddedPacking {
public:
    PaddedPacking(const std::vector<Sample>& samples, const std::vector<Load>& loads, const Model& model);

    Bins run() const;

    /// FLOPs of all microbatches, padding included.
    double cost(const Bins& bins) const;

private:
    void add_costs(const std::vector<Sample>& samples, std::size_t m);
    std::size_t fewest_bins() const;
    Works tokens_and_items() const;

    const std::vector<Load>& loads_;
    const Model& model_;
    SampleWork work_;
    double of_token_ = 0, of_item_ = 0;
};

}  // namespace pipeweaver::workloads
