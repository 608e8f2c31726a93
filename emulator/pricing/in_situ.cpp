#include "pipeweaver/emulator/in_situ.hpp"

#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipeweaver::emulator {

using workloads::Family;

namespace {

constexpr ClassFactors of_compute(double compute, double traffic = 1) { return {compute, compute, compute, traffic}; }

// Six: two of them for mixtures of experts alone. Products alone were measured at clocks that steps do not keep.
constexpr FittedConstants of_b200{
    .device = "b200",
    .factors = {.products = 1.44, .attention = 0.97, .memory_bound = 1.2, .traffic = 1.65},
    .grouped_gemm_share = 0.47,
    .expert_layer_us = 2700,
    .tuned_products = 1.27,  // GB200's: its runs are of tuned stacks, these are not
    .rows = "33 dense bf16 runs of SimuMax and torchtitan, 8 GPUs: mean error 3.4 %; 6 with experts",
    .error_percent = 3.4};

// One row for these, as each has few runs of its own. Their attention was measured forward alone, and the forward of
// B300 and GB300 gains what backwards do not. How much traffic stays exposed is said by one run with tp 2.
constexpr FittedConstants like_gb200(std::string_view device, double attention) {
    return {.device = device,
            .factors = {.products = 1.27, .attention = attention, .memory_bound = 1.1, .traffic = 1.45},
            .inside_gemms = 0.60,
            .rows = "11 bf16 runs of B300, GB200 and GB300, 4-512 GPUs: mean error 6.0 %",
            .error_percent = 6.0,
            .by_stacks = true};
}

// Products by tensor were measured, these runs have MXFP8: by one factor language models of tuned stacks come out 5 to
// 11 % too slow, FLUX as much too fast and more.
constexpr FittedConstants in_eight_bits(FittedConstants row) {
    row.precision = Precision::eight_bit;
    row.factors.products = 1.07;
    row.tuned_products = 0;
    row.rows = "11 fp8 runs of language models and FLUX on B200, GB200 and GB300, 4-512 GPUs: mean error 12 %";
    row.error_percent = 12;
    return row;
}

constexpr std::array fitted_rows{
    // One; the host's time for a layer is the recipe megatron-2022's. The fit is flat: 1.00 to 1.03 change the mean
    // error by 0.1 %.
    FittedConstants{.device = "a100_sxm",
                    .factors = of_compute(1.02),
                    .rows = "49 runs of 64-512 GPUs of vTrain: mean error 7.7 %",
                    .error_percent = 7.7},
    // Two. The runs hardly tell them apart: compute 1.06 with 0.35 is 0.3 % worse.
    FittedConstants{.device = "h100_sxm",
                    .precision = Precision::eight_bit,
                    .factors = of_compute(1.075),
                    .inside_gemms = 0.30,
                    .rows = "13 runs of MLPerf Training 4.1/5.0 and Megatron-Bridge, 8-2432 GPUs: mean error 2.1 %",
                    .error_percent = 2.1},
    // By class, though the classes are collinear within these runs (a product 1.19, attention 1.35 and memory-bound
    // work 1.46 are 0.4 % worse): which class carries how much is drawn to what is known of kernels
    // (studies/fit_runs.py).
    FittedConstants{.device = "h100_sxm",
                    .factors = {.products = 1.24, .attention = 1.22, .memory_bound = 1.36},
                    .inside_gemms = 0.20,
                    .rows = "68 bf16 runs of NVIDIA's tuned recipes, 8-6144 GPUs: mean error 3.9 %",
                    .error_percent = 3.9},
    FittedConstants{.device = "h200_sxm",
                    .factors = {.products = 1.22, .attention = 1.20, .memory_bound = 1.25},
                    .inside_gemms = 0.20,
                    .rows = "9 bf16 runs of KempnerForge and Megatron-Bridge, 8-32 GPUs: mean error 12 %",
                    .error_percent = 12},
    of_b200,
    in_eight_bits(of_b200),
    like_gb200("b300", 1.3),
    in_eight_bits(like_gb200("b300", 1.3)),
    like_gb200("gb200", 1.0),
    in_eight_bits(like_gb200("gb200", 1.0)),
    like_gb200("gb300", 1.3),
    in_eight_bits(like_gb200("gb300", 1.3)),
};

// Whose runs stand for those of a device that has none.
struct Like {
    Family family;
    std::string_view device, called;
};
constexpr std::array<Like, 3> likes{{{Family::ampere, "a100_sxm", "A100-SXM"},
                                     {Family::hopper, "h100_sxm", "H100"},
                                     {Family::blackwell, "b200", "B200"}}};

bool is_after_ampere(std::string_view device) {
    const Family family = workloads::family_of(device);
    return family == Family::hopper || family == Family::blackwell;
}

Precision other_than(Precision precision) {
    return precision == Precision::eight_bit ? Precision::sixteen_bit : Precision::eight_bit;
}

std::optional<FittedConstants> in_either(std::string_view device, Precision precision) {
    const auto own = fitted_constants(device, precision);
    return own ? own : fitted_constants(device, other_than(precision));
}

// Runs with products in pieces are of H100 alone.
double exposed_of(const FittedConstants& fitted) {
    return fitted.inside_gemms < 1 ? fitted.inside_gemms
                                   : fitted_constants("h100_sxm", Precision::eight_bit)->inside_gemms;
}

}  // namespace

Precision precision_of(costdb::Dtype products) {
    // TF32 with fp8: a run in it is 16 % too slow by the row of 16 bits, within 1 % by the other.
    const bool sixteen_bit = products == costdb::Dtype::bf16 || products == costdb::Dtype::fp16;
    return sixteen_bit ? Precision::sixteen_bit : Precision::eight_bit;
}

std::string_view name_of(Footing footing) {
    constexpr std::array<std::string_view, 4> names{"fitted", "borrowed", "assumed", "modelled"};
    return names[static_cast<std::size_t>(footing)];
}

std::optional<FittedConstants> fitted_constants(std::string_view device, Precision precision) {
    for (const FittedConstants& row : fitted_rows)
        if (row.device == device && row.precision == precision) return row;
    return std::nullopt;
}

std::optional<FittedConstants> constants_like(std::string_view device, Precision precision) {
    if (const auto own = fitted_constants(device, precision)) return own;
    for (const Like& like : likes)
        if (workloads::family_of(device) == like.family) return fitted_constants(like.device, precision);
    return std::nullopt;
}

Footing footing(const InSituFactors& in_situ, const Recipe& recipe, std::string_view device) {
    const bool own = recipe.runs.contains(std::string(device));
    return in_situ.footing == Footing::fitted && !own ? Footing::borrowed : in_situ.footing;
}

namespace {

InSituFactors known_factors(std::string_view device, Precision precision) {
    if (const auto fitted = in_either(device, precision)) {
        const bool own = fitted->precision == precision;
        return {fitted->factors,           exposed_of(*fitted),
                is_after_ampere(device),   own ? Footing::fitted : Footing::borrowed,
                std::string(fitted->rows), fitted->error_percent,
                fitted->tuned_products};
    }
    for (const Like& like : likes) {
        if (workloads::family_of(device) != like.family) continue;
        const auto theirs = in_either(like.device, precision);
        return {theirs->factors, exposed_of(*theirs), is_after_ampere(device), Footing::borrowed,
                fmt::format("assumed as on {}: no runs of this device were at hand", like.called)};
    }
    return {{}, exposed_of({}), false, Footing::assumed, "none fitted"};
}

// Where neither tables nor runs are at hand, that outweighs whose factors are borrowed.
void take_as_modelled(InSituFactors& factors) {
    factors.footing = Footing::modelled;
    factors.source = "the peaks of its data sheet alone, neither tables nor runs";
}

}  // namespace

InSituFactors in_situ_factors(std::string_view device, Precision precision) {
    InSituFactors factors = known_factors(device, precision);
    const workloads::Device* const known = workloads::known_device(device);
    if (known != nullptr && known->modelled) take_as_modelled(factors);
    return factors;
}

InSituFactors in_stack(InSituFactors in_situ, const Recipe& recipe) {
    const bool is_tuned = recipe.execution.tensor_overlap == TensorOverlap::inside_gemms;
    if (!is_tuned || in_situ.tuned_products == 0) return in_situ;
    in_situ.factors.products = in_situ.tuned_products;
    in_situ.source += "; products as in runs of tuned stacks";
    return in_situ;
}

double error_percent(const InSituFactors& in_situ, Footing footing) {
    // Held back: other stacks of H100 9.2, B200's tuned runs by constants of untuned ones 16.
    constexpr double borrowed = 9.2, assumed = 16;
    const bool own_runs = in_situ.error_percent > 0;
    if (footing == Footing::modelled) return 100 * (on_peaks.most - 1);
    if (footing == Footing::fitted && own_runs) return in_situ.error_percent;
    if (footing == Footing::fitted) return borrowed;  // on runs of a user's own, whose error is not known
    return footing == Footing::borrowed && own_runs ? std::max(borrowed, in_situ.error_percent) : assumed;
}

InSituFactors in_situ_factors(const costdb::CostDatabase& costs, std::string_view device, Precision precision) {
    const bool has_tables = !costs.measurements().gemm.empty();
    InSituFactors factors = has_tables ? known_factors(device, precision) : in_situ_factors(device, precision);
    if (const auto& own = costs.measurements().in_situ) {
        factors.factors =
            of_compute(static_cast<double>(own->compute_ppm) / 1e6, static_cast<double>(own->tp_exposed_ppm) / 1e6);
        factors.footing = Footing::fitted;
        factors.source = own->note;
        factors.error_percent = factors.tuned_products = 0;
    }
    return factors;
}

}  // namespace pipeweaver::emulator
