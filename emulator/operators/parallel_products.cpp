// Products whose weights are split over the tensor parallel GPUs, and the traffic around them.
#include "emulator/operators/operator_builder.hpp"
#include "pipeweaver/emulator/product_format.hpp"

#include <cmath>

namespace pipeweaver::emulator {

using costdb::CollectiveKind;
using costdb::Pass;

void OperatorBuilder::reduce(std::string_view name, std::int64_t columns) {
    collective(name, execution_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
               columns);
}

// Inputs and gradients of norms, a backward of their own for their weights' gradients.
void OperatorBuilder::norms_again(const KernelShape& shape) {
    if (!execution_.norms_again || shape.norms == 0 || execution_.adapters) return;
    const std::int64_t copies = execution_.sequence_parallel ? 1 : layout_.tp;
    add("norms again", costdb::Elementwise{Bytes{2 * value_bytes() * shape.norms * shape.rows * copies * shape.columns},
                                           costdb::ElementwiseKind::norm_activation, costdb::Pass::backward});
    operators.back().shape = {.rows = shape.rows, .columns = shape.columns, .norms = shape.norms};
}

void OperatorBuilder::casts() {
    if (!is_narrow(execution_.products) || cast_values_ == 0) return;
    constexpr double backward_ratio = 1.6;
    const bool reads_twice = execution_.separate_amax && execution_.products == costdb::Dtype::nvfp4;
    const double bytes = (reads_twice ? 2 : 1) * (bf16_width + bytes_with_scale(execution_.products));
    elementwise("casts", costdb::ElementwiseKind::other, std::llround(bytes * static_cast<double>(cast_values_)),
                backward_ratio, {});
}

// By the names of the products that blocks have.
bool OperatorBuilder::has_adapter(std::string_view name) const {
    if (!execution_.adapters) return false;
    if (name == "qkv" || name == "linear in" || name == "cross query") return execution_.adapters->qkv;
    if (name == "attention output" || name == "linear out" || name == "cross output")
        return execution_.adapters->output;
    return name.ends_with("up") ? execution_.adapters->up : execution_.adapters->down;
}

void OperatorBuilder::adapter(std::int64_t n, std::int64_t k) {
    const std::int64_t rank = execution_.adapters->rank;
    const auto thin = [&](std::string_view name, std::int64_t columns, std::int64_t rows) {
        add(name,
            costdb::Gemm{.dtype = costdb::Dtype::bf16, .m = m_, .n = columns, .k = rows, .pass = gemm_pass(pass_)});
    };
    thin("adapter down", rank, k);
    thin("adapter up", n, rank);
    elementwise("adapter sum", costdb::ElementwiseKind::other, 6 * m_ * n,
                static_cast<double>(k) / static_cast<double>(n), {});
}

void OperatorBuilder::column_parallel(std::string_view name, std::int64_t n, std::int64_t k) {
    cast_values_ += m_ * k / (execution_.sequence_parallel ? layout_.tp : 1);
    const bool gathers = execution_.sequence_parallel, adapted = has_adapter(name);
    const bool frozen = execution_.adapters && !adapted;
    if (pass_ == PassKind::backward && layout_.tp > 1 && !execution_.adapters &&
        execution_.tensor_overlap == TensorOverlap::launch_order)
        return column_backward_in_launch_order(name, n, k);
    if (pass_ == PassKind::forward && gathers) collective("gather", CollectiveKind::all_gather, k);
    const bool weights = pass_ == PassKind::backward || pass_ == PassKind::weight_gradient;
    if (weights && gathers && !frozen) gather_for_weights(k);
    product(name, n, k, execution_.products, gemm_pass(pass_));
    if (adapted) adapter(n, k);
    if (has_input_gradient(pass_)) reduce("scatter", k);
}

// A pass of weight gradients alone waits for nothing but them: each is under way beside the product before.
void OperatorBuilder::gather_for_weights(std::int64_t k) {
    const bool ahead = pass_ == PassKind::weight_gradient && execution_.tensor_overlap == TensorOverlap::launch_order;
    if (layout_.tp > 1 && ahead && operators.size() > 1) joined_ = {last() - 1};
    collective("gather for weights", CollectiveKind::all_gather, k);
    if (layout_.tp > 1 && ahead && operators.size() > 1) joined_ = {last() - 1, last()};
}

// compute   input gradient   weight gradient
// tensor    gather           scatter
void OperatorBuilder::column_backward_in_launch_order(std::string_view name, std::int64_t n, std::int64_t k) {
    const auto before = operators.empty() ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{last()};
    const auto waits = joined_.empty() ? before : joined_;
    product(name, n, k, execution_.products, Pass::backward_input);
    operators.back().after = waits;
    const std::uint32_t input_gradient = last();
    std::vector<std::uint32_t> for_weights{input_gradient};
    if (execution_.sequence_parallel) {
        joined_ = waits;
        collective("gather for weights", CollectiveKind::all_gather, k);
        for_weights.push_back(last());
    }
    joined_ = {input_gradient};
    reduce("scatter", k);
    const std::uint32_t scatter = last();
    joined_ = for_weights;
    product(name, n, k, execution_.products, Pass::backward_weight);
    joined_ = {scatter, last()};
}

void OperatorBuilder::row_parallel(std::string_view name, std::int64_t n, std::int64_t k) {
    cast_values_ += m_ * k;
    if (has_input_gradient(pass_) && execution_.sequence_parallel) collective("gather", CollectiveKind::all_gather, n);
    product(name, n, k, execution_.products, gemm_pass(pass_));
    if (has_adapter(name)) adapter(n, k);
    if (pass_ == PassKind::forward) reduce("scatter", n);
}

}  // namespace pipeweaver::emulator
