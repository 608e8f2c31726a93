// Whether a model on a cluster can be answered at all, and what the answer rests on.
//
//   measured     the device's own table at this shape, or between its points
//   transferred  from points on one side only, from a like operator, or from another device's table
//   modelled     a roofline or an algorithm model
//
// Determinism  A function of the question.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/capacity/cell.hpp"
#include "pipeweaver/capacity/ranking.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::capacity {

struct SupportAsked {
    std::string model, cluster;       ///< as `plan` has them; without a count the fewest GPUs that fit, doubling
    std::string dataset{}, recipe{};  ///< empty: what suits the model, the usual one
    std::string costs{};              ///< a file of `costdb import`
    std::string batch{};              ///< a file, in place of a data set
};

/// Parts of a step's busy time.
struct BasisShares {
    std::string what;                                                 ///< a class of kernels, or "all"
    double of_time = 0, measured = 0, transferred = 0, modelled = 0;  ///< all of the step's time; the last three sum to
                                                                      ///< the first
};

struct Support {
    std::string dataset;  ///< or the batch's file
    std::int64_t gpus = 0;
    std::string footing, factors_source;  ///< of what kernels take in a step beside alone
    double error_percent = 0;
    std::string confidence;            ///< of the model's sizes
    std::vector<std::string> assumed;  ///< of the model
    Point point;                       ///< the layout that the shares are of
    std::vector<BasisShares> shares;   ///< all first, then classes that take time
};

/// Throws Error{input} for what is unknown, Error{limit} where no layout fits up to 65,536 GPUs.
[[nodiscard]] Support support_of(const SupportAsked& asked, const Executor& execute);

}  // namespace pipeweaver::capacity
