#include "pipeweaver/costdb/kinds.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::costdb {

namespace {

const std::array<std::string, 4> bases{"exact", "interpolated", "extrapolated", "modelled"};
const std::array<std::string, 7> dtypes{"bf16", "fp8", "fp16", "fp32", "int8", "fp8_block", "nvfp4"};
const std::array<std::string, 4> passes{"forward", "backward", "backward_input", "backward_weight"};
const std::array<std::string, 4> collectives{"all_gather", "reduce_scatter", "all_reduce", "all_to_all"};
const std::array<std::string, 5> elementwises{"other", "norm_activation", "embedding", "cross_entropy", "optimizer"};
const std::array<std::string, 2> linear_kernels{"causal_conv1d_fn", "chunk_gated_delta_rule_flashinfer"};

}  // namespace

std::string_view name_of(Basis basis) { return bases[static_cast<std::size_t>(basis)]; }
std::string_view name_of(Dtype dtype) { return dtypes[static_cast<std::size_t>(dtype)]; }
std::string_view name_of(Pass pass) { return passes[static_cast<std::size_t>(pass)]; }
std::string_view name_of(CollectiveKind kind) { return collectives[static_cast<std::size_t>(kind)]; }
std::string_view name_of(ElementwiseKind kind) { return elementwises[static_cast<std::size_t>(kind)]; }

std::string_view name_of(LinearKernel kernel) { return linear_kernels[static_cast<std::size_t>(kernel)]; }

std::span<const std::string> dtype_names() { return dtypes; }
std::span<const std::string> pass_names() { return passes; }
std::span<const std::string> collective_names() { return collectives; }
std::span<const std::string> elementwise_names() { return elementwises; }
std::span<const std::string> linear_kernel_names() { return linear_kernels; }

std::int64_t size_of(Dtype dtype) {
    constexpr std::array<std::int64_t, 7> sizes{2, 1, 2, 4, 1, 1, 1};
    return sizes[static_cast<std::size_t>(dtype)];
}

std::size_t index_of(std::string_view what, std::string_view name, std::span<const std::string> names) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail(ErrorKind::input, "{}", unknown(what, name, names));
    return static_cast<std::size_t>(found - names.begin());
}

}  // namespace pipeweaver::costdb
