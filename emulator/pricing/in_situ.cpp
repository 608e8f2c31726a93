#include "pipeweaver/emulator/in_situ.hpp"

#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/workloads/cluster.hpp"

namespace pipeweaver::emulator {

using workloads::Family;

std::optional<FittedConstants> fitted_constants(std::string_view device) {
    // One; the host's time for a layer is the recipe megatron-2022's. The fit is flat: 1.00 to 1.03 change the mean
    // error by 0.1 %.
    if (device == "a100_sxm")
        return FittedConstants{.compute = 1.02, .rows = "49 runs of 64-512 GPUs of vTrain: mean error 7.7 %"};
    // Two. The runs hardly tell them apart: compute 1.06 with 0.35 is 0.3 % worse.
    if (device == "h100_sxm")
        return FittedConstants{.compute = 1.075,
                               .inside_gemms = 0.30,
                               .rows =
                                   "13 runs of MLPerf Training 4.1/5.0 and Megatron-Bridge, 8-2432 GPUs: mean error "
                                   "2.1 %"};
    // Four: two of them for mixtures of experts alone.
    if (device == "b200")
        return FittedConstants{.compute = 1.09,
                               .collectives = 1.2,
                               .grouped_gemm_share = 0.35,
                               .expert_layer_us = 1500,
                               .rows =
                                   "15 dense runs (compute, collectives) and 6 with experts of SimuMax, 8 GPUs: mean "
                                   "error 2.6 %, and 3.0 %"};
    return std::nullopt;
}

InSituFactors in_situ_factors(std::string_view device) {
    const auto factors_of = [](const FittedConstants& fitted, std::string_view source) {
        // Runs with products in pieces are of H100 alone.
        const double exposed =
            fitted.inside_gemms < 1 ? fitted.inside_gemms : fitted_constants("h100_sxm")->inside_gemms;
        return InSituFactors{fitted.compute, fitted.collectives, exposed, std::string(source)};
    };
    if (const auto fitted = fitted_constants(device)) return factors_of(*fitted, fitted->rows);
    if (workloads::family_of(device) == Family::ampere)
        return factors_of(*fitted_constants("a100_sxm"), "assumed as on A100-SXM: no runs of this device were at hand");
    if (workloads::family_of(device) == Family::hopper)
        return factors_of(*fitted_constants("h100_sxm"), "assumed as on H100: no runs of this device were at hand");
    if (workloads::family_of(device) == Family::blackwell)
        return factors_of(*fitted_constants("b200"), "assumed as on B200: no runs of this device were at hand");
    return factors_of({}, "none fitted");
}

InSituFactors in_situ_factors(const costdb::CostDatabase& costs, std::string_view device) {
    InSituFactors factors = in_situ_factors(device);
    if (const auto& own = costs.measurements().in_situ) {
        factors.compute = static_cast<double>(own->compute_ppm) / 1e6;
        factors.collectives = static_cast<double>(own->tp_exposed_ppm) / 1e6;
        factors.source = own->note;
    }
    return factors;
}

}  // namespace pipeweaver::emulator
