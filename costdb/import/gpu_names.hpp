// Which device of ours a GPU is, by the name that its driver gives it.
#pragma once

#include <string>
#include <string_view>

namespace pipeweaver::costdb {

/// "a100_sxm" of "NVIDIA A100-SXM4-80GB", "h100_sxm" of "NVIDIA H100 80GB HBM3"; empty for others.
[[nodiscard]] std::string device_of_product(std::string_view product);

/// The canonical name of `given`, or where that is empty of `product`. Throws Error{input} if neither is known, or if
/// both are and differ. `file` is for errors.
[[nodiscard]] std::string device_of(std::string_view file, std::string_view given, std::string_view product);

}  // namespace pipeweaver::costdb
