// Where the numbers come from: tests/costdb/calibration_test.cpp takes points out of the embedded tables, asks the rest
// for them, and holds every error here that has at least 100 such points to 85-95 % of them. A change of tables or
// method makes it fail and print the new numbers. What it leaves out: on_grid one point of ten; off_grid whole (n,k)
// planes, sequence lengths, batches, head counts, GPU counts; beyond the ends of each axis, numbers of key heads; like
// head sizes, encoder tables, layer shapes; modelled whole tables.
#include "costdb/calibration.hpp"

#include <array>
#include <cmath>

namespace pipeweaver::costdb {

namespace {

/// Percent: on_grid, off_grid, beyond, like, modelled.
using Errors = std::array<double, 5>;
struct Row {
    Errors small, big;
};

// Two sources differ by 2-6 % in the median for the same shape (noise floor of the collected tables, data/README of
// the collection): what is measured is not known better than that.
constexpr double exact_percent = 4;

constexpr Row ampere_gemm{{12.4, 17.5, 23.2, 23.2, 51.8}, {8.5, 11.4, 6.4, 6.4, 21.5}};
constexpr Row hopper_gemm_bf16{{8.2, 9.5, 12.4, 12.4, 37.3}, {8.8, 10, 12.6, 12.6, 14.3}};
constexpr Row hopper_gemm_fp8{{7.8, 7.0, 10.8, 10.8, 77.2}, {8.3, 10.9, 10, 10, 58}};
// B200's table holds 144 scattered shapes: a fifth of them asked of the rest.
constexpr Row blackwell_gemm{{22, 22, 22, 22, 37.3}, {22, 22, 22, 22, 14.3}};
constexpr Row ampere_causal{{11.7, 13.5, 32.5, 45.1, 64.1}, {6.3, 7.8, 7.2, 77.4, 42.2}};
constexpr Row hopper_causal{{12.4, 13.1, 31.1, 45.1, 69.5}, {6.7, 6.7, 17.5, 77.4, 49.3}};
constexpr Row hopper_encoder{{16.6, 18, 24.7, 265, 58.5}, {8.7, 11.9, 9.5, 217, 17.5}};
constexpr Errors collective{10.3, 10.3, 19.5, 13.3, 38};
constexpr Errors collective_nodes{3.6, 3.6, 2.9, 2.9, 54.3};
// Of another device's links: what H100's sweeps inside a node say of H200's.
constexpr Errors point_to_point{4.6, 4.6, 6.7, 10, 84};
constexpr Errors moe{11.3, 11.3, 21.1, 54.5, 149};

// Published shares of the bandwidth that such kernels reach are 0.67-0.91 (SimuMax system files); 0.8 is assumed.
constexpr double elementwise_percent = 20;

Row row_of(Subject subject, Family family) {
    switch (subject) {
        case Subject::gemm_bf16:
            return family == Family::ampere   ? ampere_gemm
                   : family == Family::hopper ? hopper_gemm_bf16
                                              : blackwell_gemm;
        case Subject::gemm_fp8:
            return hopper_gemm_fp8;
        case Subject::attention_causal:
            return family == Family::ampere ? ampere_causal : hopper_causal;
        case Subject::attention_encoder:
            return hopper_encoder;
        case Subject::collective:
            return {collective, collective};
        case Subject::collective_nodes:
            return {collective_nodes, collective_nodes};
        case Subject::point_to_point:
            return {point_to_point, point_to_point};
        case Subject::moe:
            return {moe, moe};
        case Subject::elementwise:
            break;
    }
    constexpr Errors elementwise{elementwise_percent, elementwise_percent, elementwise_percent, elementwise_percent,
                                 elementwise_percent};
    return {elementwise, elementwise};
}

}  // namespace

double error_percent(Subject subject, Family family, Region region, bool big) {
    if (region == Region::exact) return exact_percent;
    const auto row = row_of(subject, family);
    return (big ? row.big : row.small)[static_cast<std::size_t>(region) - 1];
}

double combined(double first_percent, double second_percent) { return std::hypot(first_percent, second_percent); }

double gemm_ratio(Family family, Pass pass) {
    if (pass == Pass::backward_weight) return 1.05;
    return family == Family::ampere ? 0.99 : family == Family::hopper ? 1.00 : 1.01;
}

// All three ratios: nine of ten of the shapes of which forward and backward are measured (A100-PCIe and B200).
double gemm_ratio_error_percent(Pass pass) { return pass == Pass::backward_weight ? 20.5 : 20.3; }

double attention_ratio(Family family) {
    return family == Family::ampere ? 2.86 : family == Family::hopper ? 2.7 : 2.99;
}

double attention_ratio_error_percent(bool big) { return big ? 14.5 : 148; }

// Medians of measured / base over big shapes (layers of 512 tokens and more) of A100, H100 and H200.
double gemm_model_factor(Dtype dtype) { return size_of(dtype) == 1 ? 2.3 : 1.28; }
double attention_model_factor(bool causal) { return causal ? 1.30 : 1.25; }
double moe_model_factor() { return 2.5; }

}  // namespace pipeweaver::costdb
