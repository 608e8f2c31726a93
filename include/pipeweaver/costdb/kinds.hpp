// The words of the cost database: number formats, passes, collectives, and where an answer comes from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pipeweaver::costdb {

/// Where an answer comes from, best first.
enum class Basis : std::uint8_t {
    exact,         ///< the table's own value at this shape
    interpolated,  ///< between measured points, or a measured point by a measured ratio
    extrapolated,  ///< from measured points on one side only, or of a like operator
    modelled       ///< a roofline or algorithm model
};
[[nodiscard]] std::string_view name_of(Basis basis);

/// fp8 has one scale a tensor or row, fp8_block one for each block of 128, nvfp4 one for each 16 values.
enum class Dtype : std::uint8_t { bf16, fp8, fp16, fp32, int8, fp8_block, nvfp4 };
[[nodiscard]] std::string_view name_of(Dtype dtype);
[[nodiscard]] std::int64_t size_of(Dtype dtype);           ///< bytes of one element, whole
[[nodiscard]] std::span<const std::string> dtype_names();  ///< in the order of Dtype

/// Which pass of an operator. For a GEMM out[m,n] = a[m,k] b[k,n]: `backward` is input and weight gradient together.
enum class Pass : std::uint8_t { forward, backward, backward_input, backward_weight };
[[nodiscard]] std::string_view name_of(Pass pass);
[[nodiscard]] std::span<const std::string> pass_names();  ///< in the order of Pass

enum class CollectiveKind : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all };
[[nodiscard]] std::string_view name_of(CollectiveKind kind);
[[nodiscard]] std::span<const std::string> collective_names();  ///< in the order of CollectiveKind

/// Which memory-bound work of a model: they reach different shares of the bandwidth.
enum class ElementwiseKind : std::uint8_t {
    other,
    norm_activation,  ///< norms, residuals, activation functions and rotary embeddings of a layer
    embedding,        ///< rows of a table, and their gradient
    cross_entropy,    ///< the loss over the vocabulary
    optimizer         ///< the update of weights
};
[[nodiscard]] std::string_view name_of(ElementwiseKind kind);
[[nodiscard]] std::span<const std::string> elementwise_names();  ///< in the order of ElementwiseKind

/// A kernel of a gated delta net, as its tables call it: the convolution in front of the rule, and the chunked rule of
/// FlashInfer, which has no backward.
enum class LinearKernel : std::uint8_t { causal_conv1d_fn, chunk_gated_delta_rule_flashinfer };
[[nodiscard]] std::string_view name_of(LinearKernel kernel);
[[nodiscard]] std::span<const std::string> linear_kernel_names();  ///< in the order of LinearKernel

/// Index of `name` in `names`. Throws Error{input} naming the nearest: "unknown dtype 'bf61'; did you mean 'bf16'?".
[[nodiscard]] std::size_t index_of(std::string_view what, std::string_view name, std::span<const std::string> names);

}  // namespace pipeweaver::costdb
