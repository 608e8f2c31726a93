// The tables of built_encoders(), each in its framework's folder.
#pragma once

#include "pipeweaver/workloads/built.hpp"

#include <span>

namespace pipeweaver::frameworks {

[[nodiscard]] std::span<const workloads::Built> built_by_megatron_bridge();
[[nodiscard]] std::span<const workloads::Built> built_by_megatron_lm();
[[nodiscard]] std::span<const workloads::Built> built_by_swift();
[[nodiscard]] std::span<const workloads::Built> built_by_torchtitan();
[[nodiscard]] std::span<const workloads::Built> built_by_veomni();

}  // namespace pipeweaver::frameworks
