// Formats that products of blocks may be in, and which layers are in which.
//
// Formats      bf16; fp8, with a scale a tensor; fp8_block, one for each block of 128; nvfp4, one for each 16 values;
//              fp32, products in TF32. What is not a product's input stays in 16 bits, in fp32 all values are as wide.
#pragma once

#include "pipeweaver/costdb/kinds.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::workloads {
struct Device;
}

namespace pipeweaver::emulator {

/// Layers of a module, from the first to the last, whose products have a format of their own.
struct LayerPrecision {
    std::string module{};
    std::int64_t first = 0, last = 0;
    costdb::Dtype products = costdb::Dtype::bf16;

    /// "llm:0-3".
    std::string name() const;

    friend bool operator==(const LayerPrecision&, const LayerPrecision&) = default;
};

/// What blocks may be in, by name.
[[nodiscard]] const std::vector<std::pair<std::string_view, costdb::Dtype>>& product_formats();

/// Whether inputs of such products are cast to it: fewer than 16 bits.
[[nodiscard]] bool is_narrow(costdb::Dtype products);

/// Bytes of a value in the format, with its part of a scale: fp8_block 1 + 4/128, nvfp4 1/2 + 1/16.
[[nodiscard]] double bytes_with_scale(costdb::Dtype products);

/// Whether the device has such products; fp32 and bf16 every device.
[[nodiscard]] bool has_products(const workloads::Device& device, costdb::Dtype products);

/// Formats of 16 bits and fewer that the device has products of: "is bf16", "are bf16, fp8, fp8_block".
[[nodiscard]] std::string allowed_products(const workloads::Device& device);

}  // namespace pipeweaver::emulator
