// Two factors from measured steps.
#include "pipeweaver/costdb/in_situ_fit.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/import.hpp"
#include "pipeweaver/costdb/transfer.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "tests/costdb/fixtures.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

MeasuredStep step(double compute, double tp, double other, StepFactors truth) {
    return {compute, tp, other, truth.compute * compute + truth.tp_exposed * tp + other};
}

double loss(const std::vector<MeasuredStep>& steps, StepFactors f) {
    double sum = 0;
    for (const auto& s : steps)
        sum += std::pow((f.compute * s.compute_s + f.tp_exposed * s.tp_s + s.other_s) / s.measured_s - 1, 2);
    return sum;
}

}  // namespace

TEST_CASE("factors that made the steps are found again") {
    const StepFactors truth{1.12, 0.4};
    const std::vector steps{step(1, 0.3, 0.1, truth), step(2, 0.1, 0, truth), step(1.5, 0.8, 0.2, truth)};

    const auto found = fit_factors(steps);

    CHECK(found.compute == doctest::Approx(1.12));
    CHECK(found.tp_exposed == doctest::Approx(0.4));
    for (const double error : left_out_errors(steps)) CHECK(error == doctest::Approx(0).epsilon(1e-9));
}

TEST_CASE("steps that want a factor outside its bounds get the best one inside") {
    const StepFactors truth{1.2, -0.5};
    const std::vector steps{step(1, 0.3, 0, truth), step(2, 0.1, 0, truth), step(1.5, 0.8, 0, truth)};

    const auto found = fit_factors(steps);

    CHECK(found.tp_exposed == 0);
    double best = 1e300;
    for (int c = 500; c <= 3000; ++c)
        for (int x = 0; x <= 3000; x += 100) best = std::min(best, loss(steps, {c / 1000., x / 1000.}));
    CHECK(loss(steps, found) <= best);
}

TEST_CASE("without communication its factor stays 1") {
    const std::vector steps{step(1, 0, 0.2, {1.3, 1}), step(2, 0, 0.1, {1.3, 1}), step(3, 0, 0, {1.3, 1})};

    CHECK(fit_factors(steps).compute == doctest::Approx(1.3));
    CHECK(fit_factors(steps).tp_exposed == 1);
}

TEST_CASE("tables of steps are read strictly") {
    const auto read = [](const std::string& text) { return measured_steps(CsvTable("steps.csv", text)); };
    const std::string header = "compute_s,tp_exposed_s,other_s,measured_s\n";

    CHECK(read(header + "1,0,0.5,2\n1,0.1,0,2\n1,1,1,4\n").size() == 3);
    CHECK_THROWS_WITH_AS(read(header + "1,0,0,1\n"), "steps.csv: has 1 steps, at least 3 are needed", Error);
    CHECK_THROWS_WITH_AS(read(header + "1,0,0,0\n"),
                         "steps.csv:2: measured_s: is '0', must be a number above 0 and up to 86400", Error);
    CHECK_THROWS_WITH_AS(read("compute_s,tp_s,other_s,measured_s\n1,0,0,1\n"),
                         doctest::Contains("unknown column 'tp_s'"), Error);
}

TEST_CASE("the emulator takes the factors that a database holds") {
    const Folder folder("in-situ");
    auto points = h200().measurements();
    points.in_situ = InSitu{1'250'000, 500'000, "fitted to 4 measured steps"};
    write_database(folder / "own.sqlite", points);

    const auto costs = CostDatabase::read(folder / "own.sqlite", "h200_sxm");

    const auto own = emulator::in_situ_factors(costs, "h200_sxm");
    CHECK(own.factors.products == 1.25);
    CHECK(own.factors.traffic == 0.5);
    CHECK(own.source == "fitted to 4 measured steps");
    CHECK(emulator::in_situ_factors(h200(), "h200_sxm").factors == emulator::in_situ_factors("h200_sxm").factors);
    // The rest of the database is as it was, with the links that H200 has from H100.
    const Gemm gemm{.m = 4096, .n = 4096, .k = 4096};
    const PointToPoint transfer{.gpus_per_node = 1, .message = Bytes{1 << 20}};
    CHECK(costs.cost(gemm).duration == h200().cost(gemm).duration);
    CHECK(costs.cost(transfer).duration == h200().cost(transfer).duration);
    CHECK(costs.cost(transfer).basis == h200().cost(transfer).basis);
    CHECK(costs.measurements().links_of == "h100_sxm");
}

TEST_CASE("factors of a measured run are kept beside the points, and those of a later run take their place") {
    const Folder folder("pass-factors");
    auto points = h200().measurements();
    write_database(folder / "base.sqlite", points);
    const PassFactor forward{"m", "vit", false, 1'300'000, 5}, backward{"m", "vit", true, 1'200'000, 5};
    const PassFactor other{"n", "llm", false, 900'000, 3}, later{"m", "vit", true, 1'100'000, 7};
    const auto factors = [&](const char* name) {
        return CostDatabase::read(folder / name, "h200_sxm").measurements().pass_factors;
    };

    write_measured_run({"h200_sxm", "plan", "a", {forward, backward}}, folder / "base.sqlite", folder / "own.sqlite");
    write_measured_run({"h200_sxm", "other", "b", {other}}, folder / "own.sqlite", folder / "own.sqlite");
    write_measured_run({"h200_sxm", "plan", "c", {later}}, folder / "own.sqlite", folder / "own.sqlite");
    write_measured_run({"h200_sxm", "plan", "a", {forward}}, {}, folder / "alone.sqlite");

    CHECK(factors("base.sqlite").empty());
    CHECK(factors("own.sqlite") == std::vector{forward, later, other});
    CHECK(factors("alone.sqlite") == std::vector{forward});
    const auto over = CostDatabase::over_embedded(folder / "alone.sqlite", "h200_sxm");
    CHECK(over.measurements().pass_factors == std::vector{forward});
    const Gemm gemm{.m = 4096, .n = 4096, .k = 4096};
    CHECK(CostDatabase::read(folder / "own.sqlite", "h200_sxm").cost(gemm).duration == h200().cost(gemm).duration);
    CHECK(over.cost(gemm).duration == h200().cost(gemm).duration);
}
