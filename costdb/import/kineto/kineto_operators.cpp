#include "costdb/import/kineto/kineto_operators.hpp"

#include "costdb/tables/checks.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>

namespace pipeweaver::costdb {

namespace {

using Dims = std::vector<std::int64_t>;

OperatorShape listed(OperatorClass which, std::string why_not) {
    OperatorShape shape;
    shape.which = which;
    shape.why_not = std::move(why_not);
    return shape;
}

const std::string no_shapes = "the trace has no shapes (record_shapes=True records them)";

std::optional<Dtype> dtype_named(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, Dtype>, 16> names{{
        {"c10::BFloat16", Dtype::bf16},
        {"BFloat16", Dtype::bf16},
        {"bfloat16", Dtype::bf16},
        {"c10::Half", Dtype::fp16},
        {"Half", Dtype::fp16},
        {"half", Dtype::fp16},
        {"float", Dtype::fp32},
        {"Float", Dtype::fp32},
        {"c10::Float8_e4m3fn", Dtype::fp8},
        {"c10::Float8_e5m2", Dtype::fp8},
        {"Float8_e4m3fn", Dtype::fp8},
        {"Float8_e5m2", Dtype::fp8},
        {"signed char", Dtype::int8},
        {"Char", Dtype::int8},
        {"Byte", Dtype::int8},
        {"unsigned char", Dtype::int8},
    }};
    const auto* found = std::find_if(names.begin(), names.end(), [&](const auto& pair) { return pair.first == name; });
    return found == names.end() ? std::nullopt : std::optional(found->second);
}

bool are_sizes(std::span<const std::int64_t> sizes) {
    return std::all_of(sizes.begin(), sizes.end(), [](auto size) { return size >= 1 && size <= largest_size; });
}

/// Inputs `first` and `first + 1` are the factors.
OperatorShape gemm_of(const TraceEvent& op, std::size_t first) {
    if (op.dims.size() < first + 2 || op.types.size() < first + 2) return listed(OperatorClass::gemm, no_shapes);
    const Dims &a = op.dims[first], &b = op.dims[first + 1];
    if (a.size() != 2 || b.size() != 2 || a[1] != b[0] || !are_sizes(a) || !are_sizes(b))
        return listed(OperatorClass::gemm, "its shapes are those of no product of two matrices");
    const auto dtype = dtype_named(op.types[first]);
    if (!dtype || op.types[first + 1] != op.types[first])
        return listed(OperatorClass::gemm, "no table holds GEMMs of " + op.types[first]);
    OperatorShape shape;
    shape.which = OperatorClass::gemm;
    shape.dtype = *dtype;
    shape.sizes = {a[0], b[1], a[1]};
    return shape;
}

/// Where an attention operator has its arguments.
struct AttentionSignature {
    std::string_view name;
    std::size_t query, causal;  // places of the query (key and value follow) and of what says causal
    bool heads_first;           // [batch, heads, length, size], else [batch, length, heads, size]
    Pass pass;
};
// As declared in PyTorch's native_functions.yaml, and flash-attn's own operators.
constexpr std::array<AttentionSignature, 12> attentions{{
    {"aten::_flash_attention_forward", 0, 8, false, Pass::forward},
    {"aten::_flash_attention_backward", 1, 11, false, Pass::backward},
    {"aten::_scaled_dot_product_flash_attention", 0, 4, true, Pass::forward},
    {"aten::_scaled_dot_product_flash_attention_backward", 1, 11, true, Pass::backward},
    {"aten::_efficient_attention_forward", 0, 9, false, Pass::forward},
    {"aten::_efficient_attention_backward", 1, 14, false, Pass::backward},
    {"aten::_scaled_dot_product_cudnn_attention", 0, 6, true, Pass::forward},
    {"aten::_scaled_dot_product_cudnn_attention_backward", 1, 14, true, Pass::backward},
    {"aten::_cudnn_attention_forward", 0, 10, true, Pass::forward},
    {"aten::_cudnn_attention_backward", 1, 14, true, Pass::backward},
    {"flash_attn::_flash_attn_forward", 0, 5, false, Pass::forward},
    {"flash_attn::_flash_attn_backward", 1, 11, false, Pass::backward},
}};

OperatorShape attention_of(const TraceEvent& op, const AttentionSignature& as) {
    constexpr auto which = OperatorClass::attention;
    if (op.dims.size() < as.query + 3 || op.types.size() < as.query + 3) return listed(which, no_shapes);
    const Dims &q = op.dims[as.query], &k = op.dims[as.query + 1];
    if (q.size() != 4 || k.size() != 4 || !are_sizes(q) || !are_sizes(k))
        return listed(which, "packed sequences: the trace does not say their lengths");
    const std::size_t length = as.heads_first ? 2 : 1, heads = as.heads_first ? 1 : 2;
    if (q[length] != k[length]) return listed(which, "queries and keys differ in number");
    if (q[0] != k[0] || q[3] != k[3] || q[heads] % k[heads] != 0)
        return listed(which, "its shapes are those of no attention that a table holds");
    const auto dtype = dtype_named(op.types[as.query]);
    if (!dtype) return listed(which, "no table holds attention of " + op.types[as.query]);
    if (op.concrete.size() <= as.causal)
        return listed(which, "the trace does not say whether it is causal (no Concrete Inputs)");
    const auto& causal = op.concrete[as.causal];
    OperatorShape shape;
    shape.which = which;
    shape.dtype = *dtype;
    shape.pass = as.pass;
    shape.causal = causal == "True" || causal == "true" || causal == "1";
    if (!shape.causal && causal != "False" && causal != "false" && causal != "0")
        return listed(which, "the trace does not say whether it is causal");
    shape.sizes = {q[0], q[length], q[heads], k[heads], q[3]};
    return shape;
}

std::int64_t number(std::string_view digits) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc{} && end == digits.data() + digits.size() ? value : -1;
}

/// How many of the ranks "[0, 1, 8]" are in the node of the first; all where the list is missing or cut short.
std::int64_t ranks_of_a_node(std::string_view ranks, std::int64_t gpus, std::int64_t gpus_per_node) {
    std::vector<std::int64_t> nodes;
    for (std::size_t at = 0; at < ranks.size();) {
        const auto begin = ranks.find_first_of("0123456789", at);
        if (begin == std::string_view::npos) break;
        at = std::min(ranks.find_first_not_of("0123456789", begin), ranks.size());
        nodes.push_back(number(ranks.substr(begin, at - begin)) / gpus_per_node);
    }
    if (static_cast<std::int64_t>(nodes.size()) != gpus) return std::min(gpus, gpus_per_node);
    return std::count(nodes.begin(), nodes.end(), nodes.front());
}

struct CollectiveWord {
    std::string_view word;
    CollectiveKind kind;
    bool whole_is_output;
};
constexpr std::array<CollectiveWord, 12> traced_collectives{{
    {"allreduce", CollectiveKind::all_reduce, false},
    {"all_reduce", CollectiveKind::all_reduce, false},
    {"allreduce_coalesced", CollectiveKind::all_reduce, false},
    {"_allgather_base", CollectiveKind::all_gather, true},
    {"allgather", CollectiveKind::all_gather, true},
    {"all_gather", CollectiveKind::all_gather, true},
    {"_reduce_scatter_base", CollectiveKind::reduce_scatter, false},
    {"reduce_scatter", CollectiveKind::reduce_scatter, false},
    {"reduce_scatter_tensor", CollectiveKind::reduce_scatter, false},
    {"all_to_all", CollectiveKind::all_to_all, false},
    {"all_to_allv", CollectiveKind::all_to_all, false},
    {"alltoall", CollectiveKind::all_to_all, false},
}};

bool is_even(std::string_view split) { return split.empty() || split == "[]"; }

bool has_any(std::string_view text, std::span<const std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(), [&](auto part) { return contains(text, part); });
}

}  // namespace

std::optional<OperatorShape> collective_of(const TraceEvent& event, std::int64_t gpus_per_node) {
    if (event.collective.empty()) return std::nullopt;
    constexpr auto which = OperatorClass::collective;
    const auto* found = std::find_if(traced_collectives.begin(), traced_collectives.end(),
                                     [&](const auto& word) { return word.word == event.collective; });
    if (found == traced_collectives.end()) return listed(which, "no table holds " + event.collective);
    const auto dtype = dtype_named(event.dtype);
    if (!dtype) return listed(which, "no table holds collectives of " + event.dtype);
    if (!is_even(event.in_split) || !is_even(event.out_split)) return listed(which, "its parts differ in size");
    const auto gpus = number(event.group_size);
    const auto elements = number(found->whole_is_output ? event.out_elements : event.in_elements);
    if (gpus < 2 || gpus > largest_size || elements < 1 || elements > largest_size * 256)
        return listed(which, "its group or message is of no size that a table holds");
    OperatorShape shape;
    shape.which = which;
    shape.dtype = *dtype;
    shape.collective = found->kind;
    shape.sizes = {gpus, ranks_of_a_node(event.group_ranks, gpus, gpus_per_node), elements * size_of(*dtype)};
    return shape;
}

std::optional<OperatorShape> operator_of(const TraceEvent& op, std::int64_t gpus_per_node) {
    const std::string_view name = op.name;
    if (name == "record_param_comms") return collective_of(op, gpus_per_node);
    if (name == "aten::mm" || name == "aten::_scaled_mm") return gemm_of(op, 0);
    if (name == "aten::addmm" || name == "aten::_addmm_activation" || name == "aten::addmm_") return gemm_of(op, 1);
    if (name == "aten::bmm" || name == "aten::baddbmm" || name == "aten::baddbmm_")
        return listed(OperatorClass::gemm, "batched: the tables hold single products");
    if (contains(name, "convolution") || contains(name, "aten::conv") || contains(name, "_conv_"))
        return listed(OperatorClass::convolution, "no table holds convolutions");
    for (const auto& signature : attentions)
        if (name == signature.name) return attention_of(op, signature);
    return std::nullopt;
}

OperatorClass class_of_kernel(std::string_view name) {
    using namespace std::string_view_literals;
    constexpr std::array attention{"flash"sv, "fmha"sv, "attention"sv};
    constexpr std::array convolution{"conv"sv,   "Conv"sv,           "winograd"sv,      "Winograd"sv,  "dgrad"sv,
                                     "wgrad"sv,  "fprop"sv,          "scudnn"sv,        "im2col"sv,    "fft2d"sv,
                                     "gcgemm"sv, "computeOffsets"sv, "OffsetsKernel"sv, "cudnn::cnn"sv};
    constexpr std::array gemm{"gemm"sv, "splitK"sv, "cublas"sv, "cutlass"sv,
                              "gemv"sv, "nvjet"sv,  "xmma"sv,   "epilogue"sv};
    constexpr std::array memory{"at::native"sv, "softmax"sv,    "norm"sv,          "bn_"sv,    "elementwise"sv,
                                "nchwToNhwc"sv, "nhwcToNchw"sv, "triton_"sv,       "reduce"sv, "dropout"sv,
                                "copy"sv,       "transpose"sv,  "Tensor_kernel"sv, "rotary"sv, "swiglu"sv,
                                "adam"sv,       "embedding"sv};
    if (contains(name, "nccl")) return OperatorClass::collective;
    if (contains(name, "at::native") && !has_any(name, attention)) return OperatorClass::memory_bound;
    if (has_any(name, attention)) return OperatorClass::attention;
    if (has_any(name, convolution)) return OperatorClass::convolution;
    if (has_any(name, gemm)) return OperatorClass::gemm;
    if (has_any(name, memory)) return OperatorClass::memory_bound;
    return OperatorClass::unknown;
}

}  // namespace pipeweaver::costdb
