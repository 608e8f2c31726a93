// pipeweaver costdb calibrate: a device's costs from another's and a few measurements.
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "apps/costdb/costdb_commands.hpp"
#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/costdb/in_situ_fit.hpp"
#include "pipeweaver/costdb/needs.hpp"
#include "pipeweaver/costdb/transfer.hpp"
#include "pipeweaver/emulator/in_situ.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::apps {

namespace {

using costdb::CostDatabase;

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.) / static_cast<double>(values.size());
}

void print_errors(const char* what, std::vector<double> errors) {
    const double average = mean(errors);
    const auto worst = *std::max_element(errors.begin(), errors.end());
    print_text("  {:<34} mean {:5.1f} %  worst {:5.1f} %\n", what, average, worst);
}

std::int64_t ppm(double factor) { return std::llround(1e6 * factor); }

// Fits in-situ factors, prints the error of steps left out before and after, and writes the device with them to `out`.
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

struct Calibrate {
    explicit Calibrate(CLI::App& app) : options(app) {
        options.group("The device");
        options.text("device", device, "DEVICE", "the device to be served");
        options.text("database", database, "FILE", "costs to start from (default: the embedded tables)");
        options.group("From another device's table");
        options.text("donor", donor, "DEVICE", "the device whose GEMM table is carried over");
        options.text(
            "needs", needs, "FILE",
            "gemm.csv of `costdb needs`, or dtype,m,n,k[,pass][,batch][,times] (default: the donor's big ones)");
        options.integer("points", points, static_cast<std::int64_t>(costdb::fewest_measured), 1000,
                        "shapes to measure at most (default: 32)");
        options.text("out-shapes", out_shapes, "FILE", "write the shapes to measure, as `costdb import` reads them");
        options.writes();
        options.text("measured", measured, "FILE", "those shapes with latency_us");
        options.text("origin", origin, "TEXT", "who measured them (default: own measurement)");
        options.text("licence", licence, "TEXT", "of the numbers (default: unstated)");
        options.group("From measured steps");
        options.text("steps", steps, "FILE",
                     "steps: compute_s,tp_exposed_s,other_s,measured_s, the first two without in-situ factors");
        options.group("The answer");
        options.text("out", out, "FILE", "database to write; zipped if it ends in .gz");
        options.writes();
    }

    void run() {
        options.apply();
        const bool writes_database = !steps.empty() || !measured.empty();
        require_given({{!device.empty(), "--device DEVICE", "the device to be served"},
                       {!out.empty() || !writes_database, "--out FILE", "a database to write"}});
        if (!steps.empty()) return calibrate_steps(steps, device, database, out);
        if (donor.empty())
            fail(ErrorKind::input,
                 "costdb calibrate: give --donor DEVICE (a transfer) or --steps FILE (in-situ factors)");
        const auto from = database.empty() ? CostDatabase::embedded(donor) : CostDatabase::read(database, donor);
        if (out_shapes.empty() == measured.empty())
            fail(ErrorKind::input,
                 "costdb calibrate: give either --out-shapes FILE (what to measure) or --measured FILE");
        if (measured.empty())
            choose(from);
        else
            carry_over(from);
    }

    void choose(const CostDatabase& from) const {
        const auto wanted =
            needs.empty() ? costdb::big_gemms(from, device) : costdb::needed_gemms(CsvTable::read(needs));
        const auto shapes = costdb::shapes_to_measure(from, wanted, static_cast<std::size_t>(points));
        write_files({{out_shapes, costdb::shapes_csv(shapes)}});
        print_text("{} of {} shapes -> {}\nmeasure them on {}, add latency_us, and give them to --measured\n",
                   shapes.size(), wanted.size(), out_shapes, device);
    }

    void carry_over(const CostDatabase& from) const {
        auto own = costdb::read_measurements(measured, device, origin, licence);
        costdb::Transferred transferred;
        try {
            transferred = costdb::transfer(from, std::move(own));
        } catch (const Error& error) {
            throw error.in(measured);
        }
        costdb::write_database(out, transferred.points);
        for (const auto& r : transferred.reports)
            print_text(
                "GEMM {}: {} measured, {} carried over from {}\n"
                "  by the ratio of the peaks         median {:5.1f} %  p90 {:5.1f} %\n"
                "  transferred, each point left out  median {:5.1f} %  p90 {:5.1f} %\n"
                "  printed error of what was not measured: {:.1f} %\n",
                name_of(r.dtype), r.measured, r.transferred, from.device(), r.by_peak.median, r.by_peak.p90,
                r.left_out.median, r.left_out.p90, r.error_percent);
        print_text("-> {}\n", out);
    }

    Options options;
    std::string device, database, donor, needs, out_shapes, measured, steps, out;
    std::string origin = "own measurement", licence = "unstated";
    std::int64_t points = 32;
};

}  // namespace

void add_costdb_calibrate(CLI::App& parent) {
    add_command<Calibrate>(
        parent, "calibrate", "serve a device from another's table, or fit it to measured steps",
        {.synopsis =
             "--device DEVICE (--donor DEVICE (--out-shapes FILE | --measured FILE) | --steps FILE) [OPTION...]",
         .description =
             "A transfer has two steps. First the tool chooses a few shapes among those that are needed, which stand "
             "for the others in size and time. Measured on the device, they then correct the donor's whole table by a "
             "smooth function of the shape. What was measured is answered as exact; the rest as interpolated at best, "
             "with the error that the measured shapes show when each is left out. Both errors, and that of plain "
             "scaling by the peaks, are printed.\n"
             "--steps fits two factors to measured training steps: how much slower kernels are in a step than alone, "
             "and which share of tensor-parallel communication is not hidden.",
         .examples = {{"Which shapes to measure on H100 to use A100's table",
                       "pipeweaver costdb calibrate --donor a100_sxm --device h100_sxm --out-shapes measure.csv"},
                      {"H100's costs from A100's and the measured shapes",
                       "pipeweaver costdb calibrate --donor a100_sxm --device h100_sxm "
                       "--measured examples/measured-h100-gemm.csv --out transferred.sqlite"},
                      {"How kernels run in steps of your own",
                       "pipeweaver costdb calibrate --device h100_sxm --steps examples/measured-steps.csv "
                       "--out own.sqlite"}},
         .see_also = {"pipeweaver costdb evaluate", "pipeweaver costdb import", "docs/costs.md"}});
}

}  // namespace pipeweaver::apps
