#include "apps/costdb/calibrate_steps.hpp"

#include "apps/console.hpp"
#include "pipeweaver/costdb/in_situ_fit.hpp"
#include "pipeweaver/costdb/transfer.hpp"
#include "pipeweaver/emulator/in_situ.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::apps {

namespace {

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.) / static_cast<double>(values.size());
}

void print_errors(const char* what, std::vector<double> errors) {
    const double average = mean(errors);
    const auto worst = *std::max_element(errors.begin(), errors.end());
    print_text("  {:<34} mean {:5.1f} %  worst {:5.1f} %\n", what, average, worst);
}

std::int64_t ppm(double factor) { return std::llround(1e6 * factor); }

}  // namespace

void calibrate_steps(const std::string& steps, const std::string& device, const std::string& database,
                     const std::string& out) {
    const auto measured = costdb::measured_steps(CsvTable::read(steps));
    const auto costs =
        database.empty() ? costdb::CostDatabase::embedded(device) : costdb::CostDatabase::read(database, device);
    const auto known = emulator::in_situ_factors(costs, costs.device());
    std::vector<double> before;
    before.reserve(measured.size());
    for (const auto& step : measured)
        before.push_back(costdb::error_percent(step, {known.factors.products, known.factors.traffic}));
    const auto factors = costdb::fit_factors(measured);
    auto points = costs.measurements();
    points.in_situ = costdb::InSitu{ppm(factors.compute), ppm(factors.tp_exposed),
                                    fmt::format("fitted to {} measured steps", measured.size())};
    costdb::write_database(out, points);
    print_text(
        "{}: kernels in a step over kernels alone {:.3f} (was {:.3f}), tensor-parallel communication not hidden "
        "{:.3f} (was {:.3f})\n",
        costs.device(), factors.compute, known.factors.products, factors.tp_exposed, known.factors.traffic);
    print_errors("before", before);
    print_errors("after, each step left out", costdb::left_out_errors(measured));
    print_text("-> {}\n", out);
}

}  // namespace pipeweaver::apps
