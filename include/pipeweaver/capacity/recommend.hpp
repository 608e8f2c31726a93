// The question "how many of which GPUs, for how much, in how many days" as a study.
#pragma once

#include "pipeweaver/capacity/study.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::capacity {

struct RecommendAsked {
    std::string clusters = "h100-sxm,h200-sxm,b200-sxm";  ///< names or files
    std::string gpus = "64-2048";  ///< "64-2048": doubled, with what lies between two up to 512; or "64,96"
    std::string tokens{};          ///< of the whole run, like 300B
    std::optional<double> days{}, budget_usd{};
    std::string prices{};  ///< "h100-sxm=2.5,...": USD of a GPU-hour
    std::string cores{};   ///< "usd=0.05,included=16,node=96": CPU cores of loaders, see CorePrice
    std::string faulty{};  ///< "2%": nodes that are down
    std::string groups{};  ///< of the axis: "shared", "own" or "auto"; empty: shared
    std::string cp{};      ///< "1,2": context parallel degrees that are tried; empty: all
    OptionValues plan{};   ///< options of `plan`: model, dataset, global-batch, recipe, ...
    std::size_t shown = 1, planned = 3;
};

/// Throws Error{input} as read_study(), and for ranges and prices that are none.
[[nodiscard]] Study study_of(const RecommendAsked& asked);

}  // namespace pipeweaver::capacity
