// What of a collected table is left out of the embedded database.
#pragma once

#include "pipeweaver/costdb/measurements.hpp"

#include <cstddef>

namespace pipeweaver::costdb {

/// Leaves out of a large table what its other points tell, and what is no property of the device. Returns how many.
///
/// Smooth axes  products of some m (all n and k stay), attention and linear attention below 64 positions, experts of
///              some numbers of tokens. What that costs: costdb/README.md.
/// Spikes       products of 1.3 times the median of the five around them along m, aligned to 16 or not: in fp8 on B200
///              one of seventeen, up to 3.5 times; elsewhere one of fifty to three hundred.
/// Throttled    where the table is said to be, 16-bit products above 200 us and 1.5 times the roofline. On GB200 nearly
///              all of 2^40 multiply-adds and more, none in 8 and 4 bits, none on GB300, B300 and B200: a state of the
///              machine that was measured.
/// The host     products by blocks that take less than twice the median of tiny ones: until there their time is that
///              of their launches, 0.15 to 0.35 ms whatever the shape.
std::size_t thin(Measurements& points, bool throttled = false);

}  // namespace pipeweaver::costdb
