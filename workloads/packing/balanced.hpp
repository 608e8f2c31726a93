// Packing that makes microbatches alike.
#pragma once

#include "workloads/packing/bins.hpp"

namespace pipeweaver::workloads {

/// `count` bins that are even in every kind of work, in the order in which a pipeline takes them: those with the least
/// of `passing`, a number a sample, at both ends, growing to the middle, so that neighbours, which are in the pipeline
/// together, are alike, and the first and the last are waited for least. A function of loads and works as they stand:
/// for the same bins of the same samples, sort them first. Where the samples are not found to fit, it begins with the
/// bins `otherwise`, and has as many if these are more. None is empty. Pre: count >= 1 where there are samples. Time
/// O(samples * log samples), and a number of looks at exchanges that does not grow with them.
[[nodiscard]] Bins bins_balanced(const std::vector<Load>& loads, const Load& limit, Works works,
                                 const std::vector<double>& passing, std::size_t count, Bins otherwise);

}  // namespace pipeweaver::workloads
