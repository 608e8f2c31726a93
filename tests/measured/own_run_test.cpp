// A run of one's own beside its prediction: parts that add up, and what would explain the difference.
#include "pipeweaver/measured/own_run.hpp"

#include "pipeweaver/measured/report.hpp"
#include "pipeweaver/planner/emulate_options.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace pipeweaver;
using namespace pipeweaver::measured;
using emulator::MemoryKind;

namespace {

planner::EmulationRequest small_run() {
    OptionTable table;
    planner::EmulateOptions options;
    options.add_to(table);
    options.workload.model = "dip-vlm-s";
    options.workload.cluster = "h100-sxm:16";
    options.workload.dataset = "vlm-mix";
    options.workload.tp.number = 4;
    options.workload.pp.number = 2;
    options.workload.dp.number = 2;
    options.workload.microbatches = 4;
    return options.request(1, in_order);
}

}  // namespace

TEST_CASE("a measured run's parts add up to the prediction, and each says what would explain the difference") {
    const auto request = small_run();
    const auto emulation = planner::emulate(request, in_order);
    const Duration longer = emulation.step * 6 / 5;
    const auto report = own_run(request, emulation, {longer, {}, MemoryKind::allocated});
    CHECK(report.predicted == emulation.step);
    CHECK(error_of(report.predicted.count(), report.measured.count()) == doctest::Approx(1 / 1.2 - 1));
    std::int64_t path = 0;
    for (const OwnPart& part : report.parts) {
        path += part.predicted;
        REQUIRE(part.times);
        const double grown = (*part.times - 1) * static_cast<double>(part.predicted);
        CHECK(grown == doctest::Approx(static_cast<double>((longer - emulation.step).count())));
    }
    CHECK(path == emulation.step.count());
    REQUIRE(report.parts.size() > 2);
    CHECK(report.parts.front().what == "compute");
    Duration rank{};
    for (const RankShare& one : report.ranks) rank += one.time;
    CHECK(std::abs((rank - emulation.step).count()) < 10);  // means are rounded down
    double support = 0;
    for (const Support& one : report.support) support += one.share;
    CHECK(support == doctest::Approx(1));
    CHECK(report.support.front().basis >= report.support.back().basis);
    CHECK_FALSE(report.measured_peak);
    for (const OwnPart& part : report.memory) CHECK_FALSE(part.times);
}

TEST_CASE("a run that was faster than predicted is not explained by a part that would be less than nothing") {
    const auto request = small_run();
    const auto emulation = planner::emulate(request, in_order);
    const auto report = own_run(request, emulation, {emulation.step / 2, {}, MemoryKind::allocated});
    std::size_t none = 0;
    for (const OwnPart& part : report.parts) {
        if (2 * part.predicted < emulation.step.count() - 1) {
            CHECK_FALSE(part.times);
            ++none;
        } else if (part.times) {
            CHECK(*part.times < 1);
        }
    }
    CHECK(none > 0);
}

TEST_CASE("memory is compared as it was measured, on the fullest GPU") {
    const auto request = small_run();
    const auto emulation = planner::emulate(request, in_order);
    Bytes fullest{};
    for (const auto& replica : emulation.replicas)
        for (const auto& rank : replica.memory) fullest = std::max(fullest, rank.peak);
    const Bytes more{fullest.count + (1_GiB).count};
    const auto report = own_run(request, emulation, {emulation.step, more, MemoryKind::allocated});
    CHECK(report.peak == fullest);
    std::int64_t sum = 0;
    for (const OwnPart& part : report.memory) {
        sum += part.predicted;
        REQUIRE(part.times);
        CHECK((*part.times - 1) * static_cast<double>(part.predicted) ==
              doctest::Approx(static_cast<double>((1_GiB).count)));
    }
    CHECK(sum == fullest.count);
    for (const OwnPart& part : report.parts) CHECK(*part.times == 1);
    const auto reserved = own_run(request, emulation, {emulation.step, more, MemoryKind::reserved});
    const auto shown = own_run(request, emulation, {emulation.step, more, MemoryKind::on_device});
    CHECK(fullest < reserved.peak);
    CHECK(reserved.peak < shown.peak);
}

TEST_CASE("an own run's text and JSON say the same figures, and memory only where it was measured") {
    const auto request = small_run();
    const auto emulation = planner::emulate(request, in_order);
    const auto report = own_run(request, emulation, {emulation.step * 2, {}, MemoryKind::reserved});
    const std::string text = own_run_text(report, {"a link of 25 GB/s"});
    CHECK(text.find("-50.0 %") != std::string::npos);
    CHECK(text.find("memory, reserved") != std::string::npos);
    CHECK(text.find("memory of the fullest GPU") == std::string::npos);
    CHECK(text.ends_with("assumed: a link of 25 GB/s\n"));
    const auto json = own_run_json(report, {"a link of 25 GB/s"});
    CHECK(json["step"]["error"] == -0.5);
    CHECK(json["parts"].size() == report.parts.size());
    CHECK(json["memory"]["measured_bytes"].is_null());
    CHECK(json["assumed"] == nlohmann::ordered_json{"a link of 25 GB/s"});

    const auto measured =
        own_run(request, emulation, {emulation.step, Bytes{report.peak.count * 2}, MemoryKind::reserved});
    CHECK(own_run_text(measured, {}).find("memory of the fullest GPU") != std::string::npos);
    CHECK(own_run_json(measured, {})["memory"]["error"] == -0.5);
}
