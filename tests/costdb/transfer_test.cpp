// A device served from another's table and a few points of its own.
#include "pipeweaver/costdb/transfer.hpp"

#include "costdb/transfer/correction.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/evaluate.hpp"
#include "pipeweaver/costdb/leave_out.hpp"
#include "pipeweaver/costdb/needs.hpp"
#include "tests/costdb/fixtures.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

/// H100's own points of the shapes that the tool would have measured there.
Measurements measured_on_h100(std::size_t count) {
    const auto shapes = shapes_to_measure(a100(), big_gemms(a100(), "h100_sxm"), count);
    Measurements measured;
    measured.device = "h100_sxm";
    measured.origins.push_back({"measure.csv", "own measurement", "unstated", ""});
    for (const auto& shape : shapes) {
        const auto cost = h100().cost(shape);
        measured.gemm.push_back({.m = shape.m, .n = shape.n, .k = shape.k, .latency_ns = cost.duration.count()});
    }
    return measured;
}

const EvaluationRow& row_of(const std::vector<EvaluationRow>& rows, const std::string& size, const std::string& basis) {
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.size == size && r.basis == basis; });
    REQUIRE(found != rows.end());
    return *found;
}

}  // namespace

TEST_CASE("a correction of constant values is that constant, nearby") {
    std::vector<Place> places;
    places.reserve(20);
    for (int i = 0; i < 20; ++i) places.push_back(place_of(512 << (i % 5), 1024 << (i % 4), 4096));
    const Correction correction(places, std::vector<double>(20, 0.3));

    CHECK(correction.at(place_of(3000, 3000, 3000)) == doctest::Approx(0.3).epsilon(0.01));
    for (const double said : left_one_out(places, std::vector<double>(20, 0.3)))
        CHECK(said == doctest::Approx(0.3).epsilon(0.01));
}

TEST_CASE("a correction follows a slope in the shape, and leaves half of a single deviation as noise") {
    std::vector<Place> places;
    std::vector<double> values;
    for (int i = 0; i < 60; ++i) {
        places.push_back(place_of(512 << (i % 5), 1024 << (i % 4), 1024 << (i % 3)));
        values.push_back(0.1 * (places.back()[0] - 8));
    }
    const Correction slope(places, values);
    CHECK(slope.at(place_of(4096, 4096, 2048)) - slope.at(place_of(512, 4096, 2048)) > 0.1 * std::log(8) * 0.6);

    values.assign(60, 0);
    values[7] = 1;
    const Correction bump(places, values);
    CHECK(bump.at(places[7]) > 0.05);
    CHECK(bump.at(places[7]) < 0.7);
}

TEST_CASE("with 32 points A100 serves H100, and H100 serves B200, within 15 percent in the median of big shapes") {
    Measurements of_b200 = CostDatabase::embedded("b200").measurements();
    std::erase_if(of_b200.gemm, [](const GemmPoint& p) { return p.dtype != Dtype::bf16; });
    const auto b200 = CostDatabase::from(std::move(of_b200));
    for (const auto& [donor, device] : {std::pair{&a100(), &h100()}, {&h100(), &b200}}) {
        const auto trial = try_transfer(*donor, *device, 32);

        const std::string name = device->device();
        CAPTURE(name);
        REQUIRE(trial.reports.size() == 1);
        CHECK(trial.reports[0].measured == 32);
        const auto big = row_of(trial.rows, "big", "any");
        const auto plain = row_of(trial.by_peak, "big", "any");
        CHECK(big.points >= 100);
        CHECK(big.error.median <= 15);
        CHECK(big.error.median < plain.error.median);
        CHECK(big.error.p90 < plain.error.p90);
        CHECK(big.within >= 0.85);
    }
}

TEST_CASE("of a transferred table only what was measured is exact") {
    auto transferred = transfer(a100(), measured_on_h100(32));
    const auto own = std::vector(transferred.points.gemm.begin(), transferred.points.gemm.begin() + 32);
    const auto served = CostDatabase::from(std::move(transferred.points));

    for (const auto& a : asked(served, own)) {
        CHECK(a.answer.basis == Basis::exact);
        CHECK(a.error == 0);
    }
    std::size_t others = 0;
    for (const auto& point : a100().measurements().gemm) {
        const auto cost = served.cost(query_of(point));
        const bool is_own = std::any_of(
            own.begin(), own.end(), [&](const auto& o) { return o.m == point.m && o.n == point.n && o.k == point.k; });
        if (is_own) continue;
        ++others;
        if (cost.basis != Basis::exact && cost.error_percent >= 1.25 * transferred.reports[0].error_percent - 0.1)
            continue;
        FAIL("m " << point.m << " n " << point.n << " k " << point.k);
    }
    CHECK(others > 10'000);
    CHECK(served.cost(Gemm{.m = 1, .n = 64, .k = 64}).basis == Basis::extrapolated);
    // fp8 has no donor's table: modelled as before, without a cap.
    CHECK(served.cost(Gemm{.dtype = Dtype::fp8, .m = 4096, .n = 4096, .k = 4096}).basis == Basis::modelled);
}

TEST_CASE("a transferred table keeps its mark in a file") {
    const Folder folder("transfer");
    const auto transferred = transfer(a100(), measured_on_h100(16));
    write_database(folder / "new.sqlite", transferred.points);

    const auto from_file = CostDatabase::read(folder / "new.sqlite", "h100_sxm");
    const auto in_memory = CostDatabase::from(transferred.points);

    REQUIRE(from_file.measurements().origins.size() == 2);
    CHECK(from_file.measurements().origins[0].transferred_permille == 0);
    CHECK(from_file.measurements().origins[1].transferred_permille > 0);
    CHECK(from_file.measurements().origins[1].origin == "transferred from a100_sxm");
    for (const std::int64_t m : {1, 1000, 4096, 8192}) {
        const auto a = from_file.cost(Gemm{.m = m, .n = 4096, .k = 4096});
        const auto b = in_memory.cost(Gemm{.m = m, .n = 4096, .k = 4096});
        CHECK(a.duration == b.duration);
        CHECK(a.basis == b.basis);
        CHECK(a.error_percent == b.error_percent);
    }
}

TEST_CASE("shapes to measure are among the needed ones, as many as asked, and the same each time") {
    const CsvTable table("needs.csv",
                         "dtype,m,n,k,pass,times\nbf16,4096,4096,4096,forward,3\nbf16,4096,4096,4096,backward_input,3\n"
                         "bf16,512,1024,1024,,\nfp8,8192,4096,4096,forward,1\n");
    const auto needs = needed_gemms(table);
    REQUIRE(needs.size() == 3);
    CHECK(needs[1].times == 6);

    CHECK(shapes_csv(shapes_to_measure(h100(), needs, 32)) ==
          "dtype,m,n,k,pass\nbf16,512,1024,1024,forward\nbf16,4096,4096,4096,forward\nfp8,8192,4096,4096,forward\n");
    CHECK(shapes_csv(shapes_to_measure(h100(), needs, 1)) ==
          "dtype,m,n,k,pass\nbf16,4096,4096,4096,forward\nfp8,8192,4096,4096,forward\n");
}

TEST_CASE("a transfer without enough measured shapes, or without a shared number format, is refused") {
    CHECK_THROWS_WITH_AS(static_cast<void>(transfer(a100(), measured_on_h100(5))),
                         "5 forward GEMMs in bf16 are measured, at least 8 are needed for a transfer from a100_sxm",
                         Error);
    auto fp8 = measured_on_h100(16);
    for (auto& point : fp8.gemm) point.dtype = Dtype::fp8;
    CHECK_THROWS_WITH_AS(static_cast<void>(transfer(a100(), std::move(fp8))),
                         "no forward GEMM is measured in a number format that the donor a100_sxm has a table of",
                         Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(needed_gemms(CsvTable("needs.csv", "dtype,m,n,kk\nbf16,1,1,1\n"))),
                         "needs.csv:1: unknown column 'kk'; did you mean 'k'?", Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(needed_gemms(CsvTable("needs.csv", "dtype,m,n,k\n"))),
                         "needs.csv: has no rows", Error);
}
