// Where the numbers come from: tests/costdb/calibration_test.cpp takes points out of the embedded tables, asks the rest
// for them, and holds every error here that has at least 100 such points to 85-95 % of them. A change of tables or
// method makes it fail and print the new numbers. What it leaves out: on_grid one point of ten; off_grid whole (n,k)
// planes, sequence lengths, batches, head counts, GPU counts; beyond the ends of each axis, numbers of key heads; like
// head sizes, encoder tables, layer shapes; modelled whole tables.
#include "costdb/tables/calibration.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::costdb {

namespace {

/// Percent: floor + slope * doubt on the grid and beyond curves, floor + slope * sqrt(doubt) elsewhere, doubt in
/// percent: misses far from the query tell less of it.
struct Line {
    double floor = 0, slope = 0;
};
struct Errors {
    Line on_grid, off_grid, beyond;
    double like = 0, unlike = 0, modelled = 0;
    bool is_curve = false;
};
struct Row {
    Errors small, big;
};

// What repetition of one table cannot tell: where the tables are smoothest, neighbours scatter by 1 to 1.5 %.
constexpr double least_percent = 2;
// Two sources differ by 2-6 % in the median for the same shape (data/README of the collection): what is measured is not
// known better than that.
constexpr double exact_percent = 4;

constexpr Errors constant(double percent, double like, double modelled) {
    return {{percent, 0}, {percent, 0}, {percent, 0}, like, like, modelled};
}

constexpr Row ampere_gemm{{{0, 2.1}, {1.5, 4.6}, {12, 3}, 23.2, 23.2, 51.8},
                          {{0, 2.1}, {1.5, 4.6}, {8, 1}, 6.4, 6.4, 21.5}};
constexpr Row hopper_gemm_bf16{{{0.5, 1.8}, {0, 4.6}, {6, 2.5}, 12.4, 12.4, 37.3},
                               {{0.5, 1.8}, {0, 4.9}, {12, 0.5}, 12.6, 12.6, 14.3}};
constexpr Row hopper_gemm_fp8{{{0.5, 1.6}, {0.5, 3.8}, {10, 1}, 10.8, 10.8, 77.2},
                              {{0.5, 1.6}, {0.5, 4.2}, {9, 0.5}, 10, 10, 58}};
constexpr Row ampere_causal{{{0, 1.5}, {0, 4}, {18, 8.5}, 25, 45, 64.1}, {{0, 1.5}, {0, 3.3}, {0, 3.7}, 15, 77, 42.2}};
constexpr Row hopper_causal{{{0, 1.5}, {0, 4.4}, {29, 1}, 25, 45, 69.5}, {{0, 1.5}, {0, 3.7}, {0, 6}, 15, 77, 49.3}};
constexpr Row hopper_encoder{{{1.5, 1.4}, {0, 6.5}, {8, 4.5}, 35, 265, 58.5},
                             {{1.5, 1.4}, {0, 6}, {5, 2}, 18, 150, 17.5}};
constexpr Errors collective{{1.5, 1.7}, {1.5, 1.7}, {4, 2}, 13.3, 13.3, 43, true};
constexpr Errors collective_nodes{{0, 2.7}, {0, 2.7}, {2.5, 2}, 13.3, 13.3, 54.3, true};
// Of another device's links: what H100's sweeps inside a node say of H200's.
constexpr Errors point_to_point{{0, 1.9}, {0, 1.9}, {2, 2}, 10, 10, 84, true};
constexpr Errors moe{{2, 1.5}, {2, 1.5}, {15.5, 2.9}, 54.5, 54.5, 149};

constexpr Errors linear{{1.5, 1.7}, {1.5, 1.7}, {4, 2}, 30, 30, 100};

// Published shares of the bandwidth that such kernels reach are 0.67-0.91 (SimuMax system files); 0.8 is assumed.
constexpr double elementwise_percent = 20;

constexpr Row both(const Errors& errors) { return {errors, errors}; }
constexpr Row collective_row = both(collective);
constexpr Row collective_nodes_row = both(collective_nodes);
constexpr Row point_to_point_row = both(point_to_point);
constexpr Row moe_row = both(moe);
constexpr Row linear_row = both(linear);
constexpr Row elementwise_row = both(constant(elementwise_percent, elementwise_percent, elementwise_percent));

const Row& row_of(Subject subject, Family family) {
    switch (subject) {
        case Subject::gemm_bf16:
            return family == Family::ampere ? ampere_gemm : hopper_gemm_bf16;
        case Subject::gemm_fp8:
            return hopper_gemm_fp8;
        case Subject::attention_causal:
            return family == Family::ampere ? ampere_causal : hopper_causal;
        case Subject::attention_encoder:
            return hopper_encoder;
        case Subject::collective:
            return collective_row;
        case Subject::collective_nodes:
            return collective_nodes_row;
        case Subject::point_to_point:
            return point_to_point_row;
        case Subject::moe:
            return moe_row;
        case Subject::linear:
            return linear_row;
        case Subject::elementwise:
            break;
    }
    return elementwise_row;
}

double percent_of(const Errors& errors, Region region, double doubt) {
    switch (region) {
        case Region::exact:
            break;
        case Region::on_grid:
            return errors.on_grid.floor + errors.on_grid.slope * doubt;
        case Region::off_grid:
            return errors.off_grid.floor + errors.off_grid.slope * std::sqrt(doubt);
        case Region::beyond:
            return errors.beyond.floor + errors.beyond.slope * (errors.is_curve ? doubt : std::sqrt(doubt));
        case Region::like:
            return errors.like;
        case Region::unlike:
            return errors.unlike;
        case Region::modelled:
            return errors.modelled;
    }
    return 0;
}

}  // namespace

double error_percent(Subject subject, Family family, Region region, bool big, double doubt) {
    const auto& row = row_of(subject, family);
    return std::max(least_percent, percent_of(big ? row.big : row.small, region, 100 * doubt));
}

double exact_error_percent(std::int64_t spread_permille) {
    return std::max(exact_percent, static_cast<double>(spread_permille) / 10);
}

double combined(double first_percent, double second_percent) { return std::hypot(first_percent, second_percent); }

double gemm_ratio(Family family, Pass pass) {
    if (pass == Pass::backward_weight) return 1.05;
    return family == Family::ampere ? 0.99 : family == Family::hopper ? 1.00 : 1.01;
}

// All three ratios: nine of ten of the shapes of which forward and backward are measured (A100-PCIe and B200).
double gemm_ratio_error_percent(Pass pass) { return pass == Pass::backward_weight ? 20.5 : 20.3; }

// The powers go through the ratios of 8 to 128 heads at 4096 (B200) and 4 to 32 heads (A100-PCIe), both at head size
// 128.
double attention_ratio(Family family, double waves) {
    constexpr double power = 0.43;
    switch (family) {
        case Family::ampere:
            return 2.86 * std::min(1., std::pow(waves / 3, power));
        case Family::blackwell:
            return 2.99 * std::clamp(std::pow(waves / 13, power), 0.4, 1.);
        case Family::hopper:
        case Family::other:
            break;
    }
    return 2.7;
}

double attention_ratio_error_percent(Family family, bool big) {
    if (big) return 14.5;
    return family == Family::hopper ? 148 : 29.5;
}

// Medians of measured / base over big shapes (layers of 512 tokens and more) of A100, H100 and H200.
double gemm_model_factor(Dtype dtype) { return size_of(dtype) == 1 ? 2.3 : 1.28; }
double attention_model_factor(bool causal) { return causal ? 1.30 : 1.25; }
double moe_model_factor() { return 2.5; }

}  // namespace pipeweaver::costdb
