// Peaks and sizes of the devices that the cost model needs, in the units of its formulas (microseconds).
#pragma once

#include "pipeweaver/costdb/kinds.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace pipeweaver::costdb {

using workloads::Family;

struct DeviceFacts {
    std::string name;
    Family family = Family::hopper;  ///< of whose methods and errors; a device of no known generation counts as Hopper
    double bf16_flops_per_us = 0;
    double fp8_flops_per_us = 0;  ///< 0: not supported
    double fp4_flops_per_us = 0;  ///< 0: not supported
    double bytes_per_us = 0;
    std::int64_t multiprocessors = 0;
    double link_bytes_per_us = 0;     ///< one GPU to the others of its node, one direction
    double network_bytes_per_us = 0;  ///< a GPU's part of its node's, one direction

    /// Dense peak. Throws Error{input} for a dtype the device lacks. fp32 counts as TF32, half of bf16; int8 as twice.
    double peak(Dtype dtype) const;
};

/// The device of that name or alias. Throws Error{input} naming the nearest.
[[nodiscard]] DeviceFacts facts_of(std::string_view device);

}  // namespace pipeweaver::costdb
