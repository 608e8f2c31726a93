// Leave-out as a function of the library.
#include "pipeweaver/costdb/evaluate.hpp"

#include "pipeweaver/base/error.hpp"
#include "tests/costdb/fixtures.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

LeftOut point(double truth_ns, double answer_ns, double printed_percent, Basis basis = Basis::interpolated) {
    return {.op = "gemm",
            .kind = "bf16",
            .basis = basis,
            .truth_ns = truth_ns,
            .answer_ns = answer_ns,
            .printed_percent = printed_percent};
}

}  // namespace

TEST_CASE("a summary has medians, nine of ten, and the share within the printed error") {
    std::vector<LeftOut> points;
    for (int i = 0; i <= 10; ++i) points.push_back(point(1000, 1000 + 10 * i, 4.5));  // 0 to 10 percent

    const auto rows = summary(points);

    REQUIRE(rows.size() == 4);  // all and small, any and interpolated
    for (const auto& row : rows) {
        CHECK(row.points == 11);
        CHECK(row.error.median == doctest::Approx(5));
        CHECK(row.error.p90 == doctest::Approx(9));
        CHECK(row.within == doctest::Approx(5. / 11));
        CHECK(row.printed == 4.5);
    }
}

TEST_CASE("a summary tells size and basis apart") {
    std::vector<LeftOut> points{point(1000, 1100, 20), point(1000, 2000, 20, Basis::extrapolated)};
    points[1].big = true;

    const auto rows = summary(points);

    const auto of = [&](const std::string& size, const std::string& basis) {
        return std::find_if(rows.begin(), rows.end(),
                            [&](const auto& r) { return r.size == size && r.basis == basis; });
    };
    CHECK(of("all", "any")->points == 2);
    CHECK(of("big", "any")->error.median == doctest::Approx(100));
    CHECK(of("small", "interpolated")->error.median == doctest::Approx(10));
    CHECK(of("small", "extrapolated") == rows.end());
}

TEST_CASE("every point is left out once in folds, on any number of threads alike") {
    const auto pcie = CostDatabase::embedded("a100_pcie");
    const EvaluateOptions options{.folds = 5, .seed = 3};

    const auto alone = evaluate(pcie, "gemm", options, in_order);
    const auto together = evaluate(pcie, "gemm", options, on_threads(3));

    const auto in_folds = std::count_if(alone.begin(), alone.end(), [](const auto& p) { return !p.plane; });
    CHECK(in_folds == static_cast<std::ptrdiff_t>(pcie.measurements().gemm.size()));
    REQUIRE(alone.size() == together.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
        CHECK(alone[i].truth_ns == together[i].truth_ns);
        CHECK(alone[i].answer_ns == together[i].answer_ns);
    }
    for (const auto& p : alone) CHECK(p.basis != Basis::exact);
}

TEST_CASE("a whole plane that is left out is never answered from itself") {
    // n = 2048 is twice as slow as its neighbours: only a look-up that has seen it can know.
    Measurements measured;
    measured.device = "h100_sxm";
    measured.origins.push_back({"t.csv", "test", "none", ""});
    for (const std::int64_t m : {512, 1024, 2048})
        for (const std::int64_t n : {1024, 2048, 4096})
            for (const std::int64_t k : {1024, 4096})
                measured.gemm.push_back(
                    {.m = m, .n = n, .k = k, .latency_ns = m * n * k / 400'000 * (n == 2048 ? 2 : 1)});
    const auto found = evaluate(CostDatabase::from(measured), "gemm", {.folds = 2}, in_order);

    std::size_t planes = 0;
    for (const auto& p : found)
        if (p.plane) ++planes;
    CHECK(planes > measured.gemm.size());
    const auto rows = summary(found);
    const auto row = std::find_if(rows.begin(), rows.end(), [](const auto& r) { return r.left_out == "planes"; });
    REQUIRE(row != rows.end());
    CHECK(row->error.p90 > 30);
}

TEST_CASE("an unknown operator is named with the nearest") {
    CHECK_THROWS_WITH_AS(static_cast<void>(evaluate(h100(), "gem", {}, in_order)),
                         "unknown operator 'gem'; did you mean 'gemm'?", Error);
}
