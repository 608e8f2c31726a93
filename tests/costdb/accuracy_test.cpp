// How good the look-up is on points that it has not seen: one of ten of every table, and whole planes.
#include "tests/costdb/fixtures.hpp"
#include "tests/costdb/leave_out.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::costdb;
using namespace pipeweaver::costdb::testing;

namespace {

/// At most that many percent of error, in the median and for nine of ten.
struct Bar {
    double median, p90;
};

void check(const std::string& name, const std::vector<double>& found, Bar bar) {
    CAPTURE(name);
    REQUIRE(found.size() >= 100);
    CHECK(quantile(found, 0.5) <= bar.median);
    CHECK(quantile(found, 0.9) <= bar.p90);
}

struct GemmBars {
    const CostDatabase& device;
    Dtype dtype;
    Bar big, all;
};

std::array<GemmBars, 5> gemm_bars() {
    return {{{a100(), Dtype::bf16, {2.6, 10.5}, {4.2, 13}},
             {h100(), Dtype::bf16, {3.7, 10.5}, {3, 11}},
             {h200(), Dtype::bf16, {3.7, 10.5}, {3, 11}},
             {h100(), Dtype::fp8, {3.3, 9.5}, {3, 11}},
             {h200(), Dtype::fp8, {3.3, 9.5}, {3, 11}}}};
}

}  // namespace

TEST_CASE("left-out GEMMs are met within the noise of their tables, and far better than by a roofline") {
    for (const auto& [device, dtype, big, all] : gemm_bars()) {
        const auto asked = leave_out(device, &Measurements::gemm, one_of_ten<GemmPoint>(2));
        const auto name = device.device() + " " + std::string(name_of(dtype));
        const auto of_dtype = [&, wanted = dtype](const auto& a) { return a.point.dtype == wanted; };
        const auto big_ones = errors(asked, [&](const auto& a) { return of_dtype(a) && is_big(a.point); });
        check(name + " big", big_ones, big);
        check(name + " all", errors(asked, of_dtype), all);

        auto nothing = device.measurements();
        nothing.gemm.clear();
        const auto roofline = CostDatabase::from(std::move(nothing));
        std::vector<double> plain;
        for (const auto& a : asked)
            if (of_dtype(a) && is_big(a.point)) {
                const auto modelled = static_cast<double>(roofline.cost(query_of(a.point)).duration.count());
                plain.push_back(100 * std::abs(modelled / static_cast<double>(a.point.latency_ns) - 1));
            }
        std::sort(plain.begin(), plain.end());
        CHECK(quantile(big_ones, 0.5) < 0.75 * quantile(plain, 0.5));
        CHECK(quantile(big_ones, 0.9) < 0.75 * quantile(plain, 0.9));
    }
}

TEST_CASE("left-out attentions are met within 3 and 11 percent causal, 5 and 16 percent encoder") {
    for (const auto* device : {&a100(), &h100(), &h200()}) {
        std::vector<Asked<AttentionPoint>> asked;  // one fold of ten alone moves the median by 0.2
        for (std::uint64_t fold = 1; fold <= 3; ++fold) {
            const auto some = leave_out(*device, &Measurements::attention, one_of_ten<AttentionPoint>(fold));
            asked.insert(asked.end(), some.begin(), some.end());
        }
        check(device->device() + " causal", errors(asked, [](const auto& a) { return a.point.causal; }), {3, 11});
        const auto encoder = errors(asked, [](const auto& a) { return !a.point.causal; });
        if (!encoder.empty()) check(device->device() + " encoder", encoder, {5, 16});
    }
}
