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

enum class Dtype : std::uint8_t { bf16, fp8, fp16, fp32, int8 };
[[nodiscard]] std::string_view name_of(Dtype dtype);
[[nodiscard]] std::int64_t size_of(Dtype dtype);           ///< bytes of one element
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

/// Index of `name` in `names`. Throws Error{input} naming the nearest: "unknown dtype 'bf61'; did you mean 'bf16'?".
[[nodiscard]] std::size_t index_of(std::string_view what, std::string_view name, std::span<const std::string> names);

}  // namespace pipeweaver::costdb
