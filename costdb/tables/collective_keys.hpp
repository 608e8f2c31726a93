// The key under which the tables hold a measured collective: what bytes of other formats measured counts for them.
#pragma once

#include "pipeweaver/costdb/measurements.hpp"

namespace pipeweaver::costdb {

/// Inside a node: 16-bit and one-byte sweeps of a node of eight, and fp32 all-reduces apart; everything else moves as
/// 16-bit. Across nodes (`gpus` above `gpus_per_node`) 16-bit with that layout. Latency and spread are left at 0.
inline CollectivePoint collective_key(CollectiveKind kind, Dtype dtype, std::int64_t gpus, std::int64_t gpus_per_node,
                                      std::int64_t message_bytes) {
    constexpr std::int64_t node = 8;
    CollectivePoint point{.kind = kind, .gpus = gpus, .message_bytes = message_bytes};
    if (gpus > gpus_per_node) {
        point.source = LinkSource::nodes;
        point.gpus_per_node = gpus_per_node;
        return point;
    }
    point.gpus_per_node = node;
    if (dtype == Dtype::fp32 && kind == CollectiveKind::all_reduce) {
        point.source = LinkSource::large;
        point.dtype = Dtype::fp32;
    } else if (size_of(dtype) == 1) {
        point.dtype = Dtype::int8;
    }
    return point;
}

}  // namespace pipeweaver::costdb
