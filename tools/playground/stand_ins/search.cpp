// What the search takes of base, where base itself cannot be compiled to WebAssembly: TBB, files, and a libc++ that
// parses no fractions.
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipeweaver {

void in_order(std::size_t count, const std::function<void(std::size_t)>& job) {
    for (std::size_t i = 0; i < count; ++i) job(i);
}

std::string human(Bytes size) { return fmt::format("{:.2f} GiB", static_cast<double>(size.count) / (1 << 30)); }

std::string must_be(std::int64_t is, std::string_view allowed) { return fmt::format("is {}, must be {}", is, allowed); }

std::string unknown(std::string_view what, std::string_view name, std::span<const std::string> candidates) {
    return fmt::format("unknown {} '{}'; known are {}", what, name, fmt::join(candidates, ", "));
}

}  // namespace pipeweaver
