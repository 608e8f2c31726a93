#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/import.hpp"
#include "pipeweaver/costdb/query.hpp"
#include "tests/costdb/fixtures.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

CostDatabase measured() {
    Measurements points;
    points.device = "h100_sxm";
    points.elementwise = {
        {.kind = ElementwiseKind::norm_activation, .traffic_bytes = 1'000'000, .latency_ns = 2'000},
        {.kind = ElementwiseKind::norm_activation, .traffic_bytes = 4'000'000, .latency_ns = 8'000},
        {.kind = ElementwiseKind::norm_activation,
         .pass = Pass::backward,
         .traffic_bytes = 1'000'000,
         .latency_ns = 7'000},
    };
    return CostDatabase::from(std::move(points));
}

Cost ask(const CostDatabase& database, std::int64_t bytes, ElementwiseKind kind, Pass pass = Pass::forward) {
    return database.cost(Elementwise{Bytes{bytes}, kind, pass});
}

}  // namespace

TEST_CASE("memory-bound work that was measured is answered exactly, by kind and pass") {
    const auto database = measured();

    const auto forward = ask(database, 1'000'000, ElementwiseKind::norm_activation);
    const auto backward = ask(database, 1'000'000, ElementwiseKind::norm_activation, Pass::backward);

    CHECK(forward.duration == Duration{2'000});
    CHECK(forward.basis == Basis::exact);
    CHECK(forward.error_percent == 4.0);
    CHECK(backward.duration == Duration{7'000});
    CHECK(backward.basis == Basis::exact);
}

TEST_CASE("between measured points the time of memory-bound work is straight in logarithms") {
    const auto between = ask(measured(), 2'000'000, ElementwiseKind::norm_activation);

    CHECK(between.duration == Duration{4'000});
    CHECK(between.basis == Basis::interpolated);
}

TEST_CASE("beyond the measured points, and for other kinds and passes, the bandwidth answers") {
    const auto database = measured();
    const auto model = [](std::int64_t bytes) { return Duration{std::llround(double(bytes) / (0.8 * 3350))}; };

    for (const std::int64_t bytes : {999'999, 4'000'001}) {
        const auto beyond = ask(database, bytes, ElementwiseKind::norm_activation);
        CHECK(beyond.duration == model(bytes));
        CHECK(beyond.basis == Basis::modelled);
    }
    CHECK(ask(database, 1'000'000, ElementwiseKind::optimizer).duration == model(1'000'000));
    CHECK(ask(database, 4'000'000, ElementwiseKind::norm_activation, Pass::backward).basis == Basis::modelled);
    CHECK_THROWS_WITH_AS(static_cast<void>(ask(database, 1, ElementwiseKind::other, Pass::backward_weight)),
                         "pass: memory-bound work has no backward_weight, allowed are forward and backward", Error);
}

TEST_CASE("queries name the kind and pass of memory-bound work") {
    const CsvTable queries("q.csv", "pass,traffic_bytes,kind\nbackward,1000000,norm_activation\n,2680000,\n");

    CHECK(answer_queries(measured(), "elementwise", queries) ==
          "pass,traffic_bytes,kind,latency_us,basis,error_percent\n"
          "backward,1000000,norm_activation,7.000,exact,4.0\n"
          ",2680000,,1.000,modelled,20.0\n");
}

TEST_CASE("a user's points come before the embedded ones, which answer for what is lacking") {
    const Folder folder("over");
    const auto gemm = folder.write("gemm.csv", "dtype,m,n,k,latency_us\nbf16,32768,65536,12288,7.5\n");
    const auto norms =
        folder.write("norms.csv", "kind,pass,traffic_bytes,latency_us\nnorm_activation,forward,4096,3.25\n");
    static_cast<void>(import_tables({{gemm, "h100_sxm", "own", ""}, {norms, "h100_sxm", "own", ""}}, folder / "o.db"));

    const auto both = CostDatabase::over_embedded(folder / "o.db", "h100_sxm");

    CHECK(both.cost(Gemm{.m = 32768, .n = 65536, .k = 12288}).duration == Duration{7'500});
    const Gemm other{.m = 4096, .n = 4096, .k = 4096};
    CHECK(both.cost(other).duration == h100().cost(other).duration);
    CHECK(both.cost(other).basis == Basis::exact);
    CHECK(ask(both, 4096, ElementwiseKind::norm_activation).duration == Duration{3'250});
    CHECK(both.measurements().gemm.size() == h100().measurements().gemm.size());
    CHECK(both.measurements().elementwise.size() == 1);
    const auto origin_of = [&](const GemmPoint& p) {
        return both.measurements().origins[std::size_t(p.origin)].origin;
    };
    CHECK(origin_of(both.measurements().gemm.front()) == "own");
    CHECK(origin_of(both.measurements().gemm.back()) != "own");
    CHECK_THROWS_WITH_AS(static_cast<void>(CostDatabase::over_embedded(folder / "o.db", "b200")),
                         doctest::Contains("has no device 'b200'; it has h100_sxm"), Error);
}
