#include "pipeweaver/emulator/in_situ.hpp"

#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/workloads/cluster.hpp"

namespace pipeweaver::emulator {

using workloads::Family;

std::optional<FittedConstants> fitted_constants(std::string_view device) {
    // Three: kernels in a step, the network of 800 Gb/s a node, the Python host of 2022. The fit is flat: compute from
    // 1.00 to 1.03 and a share from 0.55 to 0.75 change the mean error by 0.1 %.
    if (device == "a100_sxm")
        return FittedConstants{.compute = 1.02,
                               .network_share = 0.75,
                               .host_us = 925,
                               .rows =
                                   "49 runs of 64-512 GPUs (compute, network share) and 714 of 2-8 GPUs (host) of "
                                   "vTrain: mean error 9.0 % -> 7.8 % and 33 % -> 6 %"};
    // Two. Compute 1.125 with 0.25 is as good: the runs do not tell them apart.
    if (device == "h100_sxm")
        return FittedConstants{.compute = 1.075,
                               .inside_gemms = 0.35,
                               .rows =
                                   "12 runs of MLPerf Training 4.1/5.0 and Megatron-Bridge, 8-2432 GPUs: mean error "
                                   "11.4 % -> 2.1 %"};
    // Four: two of them for mixtures of experts alone.
    if (device == "b200")
        return FittedConstants{.compute = 1.09,
                               .collectives = 1.2,
                               .grouped_gemm_share = 0.35,
                               .expert_layer_us = 1500,
                               .rows =
                                   "15 dense runs (compute, collectives) and 6 with experts of SimuMax, 8 GPUs: mean "
                                   "error 8.9 % -> 2.5 %, and 3.1 %"};
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
