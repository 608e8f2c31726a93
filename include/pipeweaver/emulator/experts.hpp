// The experts of a mixture-of-experts layer as an operator of one GPU.
#pragma once

#include "pipeweaver/costdb/operators.hpp"

#include <cstdint>
#include <string_view>

namespace pipeweaver::costdb {
class CostDatabase;
}

namespace pipeweaver::emulator {

/// The experts of a layer on one GPU: one of `gpus` equal parts of the fused layer over all tokens of an expert
/// parallel group, routed evenly. `layer.tokens` are those of the group, `layer.experts` all experts; its moe_ep
/// stays 1.
///
/// Why so        The rows an expert gets, which decide how well it runs, are those of the whole group, and under
///               balanced routing every GPU has an equal part of rows and weights. The tables' moe_ep above 1 is
///               something else: inference kernels that walk over the tokens of all GPUs and pick their own. With 128
///               experts, 16384 tokens and moe_ep 128 one takes 1.7 ms, where 1/128 of the whole layer is 0.08 ms.
/// Holds         the products, the activation in between, gathering the rows and summing the chosen. Not the router,
///               the copies around the exchange, the exchange.
/// Not measured  A layer whose shape and number of tokens the tables have not is a product for each of this GPU's
///               experts and matrices over the rows that an expert gets, and the activation function between them. On
///               B200 products at the share of the peak that was fitted (FittedConstants::grouped_gemm_share). In 8
///               bits a measured layer of fewer tokens, or one like it, where that is faster.
/// Passes        of measured layers the forward alone. Input gradient as long as the forward, weight gradient 1.05
///               times that, both together for a backward: what GEMMs take (pipeweaver/costdb/database.hpp).
/// Precision     8 bits where the step's products are, by tensor, as layers were measured: MXFP8 is taken to be as
///               fast. Else 16 bits. Casts of what is multiplied are apart ("casts").
/// Plain         experts without a gate have two of the layer's three products: 2/3 of its time.
struct Experts {
    static constexpr std::string_view op = "experts";
    costdb::MixtureOfExperts layer;
    std::int64_t gpus = 1;
    bool gated = true;
    costdb::Pass pass = costdb::Pass::forward;

    double flops() const;  ///< of this GPU, in this pass
    [[nodiscard]] costdb::Cost cost(const costdb::CostDatabase& costs) const;

private:
    costdb::Cost as_products(const costdb::CostDatabase& costs) const;
};

}  // namespace pipeweaver::emulator
