// How far the predictions of the collected published runs are off.
#include "pipeweaver/validation/accuracy.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/shared.hpp"
#include "tests/validation/published_rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>

using namespace pipeweaver;
using namespace pipeweaver::validation;
using namespace pipeweaver::validation::testing;

namespace {

struct Bar {
    std::string source, device;
    bool experts, multimodal;
    std::size_t rows;
    double mean_percent;
};

// Errors of all groups whose source holds the bar's, as one.
Errors errors_of_source(const std::vector<PublishedRun>& runs, const std::vector<Prediction>& predictions,
                        const Bar& bar) {
    std::vector<double> relative;
    for (std::size_t i = 0; i < runs.size(); ++i)
        if (runs[i].source.find(bar.source) != std::string::npos && predictions[i].device == bar.device &&
            predictions[i].experts == bar.experts && predictions[i].multimodal == bar.multimodal &&
            predictions[i].step_time_s && runs[i].step_time_s)
            relative.push_back(*predictions[i].step_time_s / *runs[i].step_time_s - 1);
    return errors_of(relative);
}

}  // namespace

TEST_CASE("published runs are predicted within the errors that docs/accuracy.md states" *
          pipeweaver::testing::on_release_libraries()) {
    const auto shared = pipeweaver::testing::shared_folder();
    if (!shared) {
        pipeweaver::testing::left_out("the table of published runs, which is not at hand");
        return;
    }
    const auto runs = read_published_runs(CsvTable::read(*shared / "data/runs/published_runs.csv"));
    const auto predictions = predict_all(runs);
    for (const Bar& bar :
         {Bar{"vTrain", "a100_sxm", false, false, 49, 7.8}, Bar{"sequence-parallel", "a100_sxm", false, false, 4, 2.5},
          Bar{"SimuMax", "b200", false, false, 15, 3}, Bar{"SimuMax", "b200", true, false, 6, 3.5},
          Bar{"", "h100_sxm", false, false, 13, 2.5}, Bar{"", "h100_sxm", false, true, 1, 8},
          Bar{"MLPerf", "b200", false, true, 2, 16}}) {
        CAPTURE(bar.source);
        CAPTURE(bar.device);
        const auto errors = errors_of_source(runs, predictions, bar);
        CHECK(errors.rows == bar.rows);
        CHECK(errors.mean_percent <= bar.mean_percent);
    }
    std::vector<double> memory;
    for (std::size_t i = 0; i < runs.size(); ++i)
        if (predictions[i].memory_gib && runs[i].memory_gib) {
            const double ratio = *predictions[i].memory_gib / *runs[i].memory_gib;
            CHECK(ratio > 0.98);
            memory.push_back(ratio - 1);
        }
    CHECK(memory.size() == 22);
    CHECK(errors_of(memory).mean_percent <= 0.3);
    for (const Prediction& one : predictions) CHECK((one.step_time_s || !one.reason.empty()));
}

TEST_CASE("16-bit runs collected in 2026 are predicted within the errors that docs/accuracy.md states" *
          pipeweaver::testing::on_release_libraries()) {
    const auto shared = pipeweaver::testing::shared_folder();
    if (!shared || !std::filesystem::exists(*shared / "data/runs/measured_2026.csv")) {
        pipeweaver::testing::left_out("the table of runs collected in 2026, which is not at hand");
        return;
    }
    const auto runs = read_published_runs(CsvTable::read(*shared / "data/runs/measured_2026.csv"));
    const auto predictions = predict_all(runs);
    const auto accuracy = accuracy_of(runs, predictions);
    CHECK(static_cast<double>(accuracy.predicted) >= 0.95 * static_cast<double>(runs.size()));
    struct Held {
        std::string_view device, stack;
        bool experts;
        double mean_percent, bias_percent;
    };
    constexpr std::array<Held, 6> bars{{{"h100_sxm", "megatron-core-overlap", false, 4.5, 3},
                                        {"h100_sxm", "nanotron", false, 7, 3},
                                        {"h100_sxm", "torch-fsdp1", false, 7, 3},
                                        {"a100_sxm", "internevo", false, 9, 4},
                                        {"a100_sxm", "torch-fsdp1", false, 7, 3},
                                        {"b200", "torch-fsdp2", false, 8, 5}}};
    for (const Held& bar : bars) {
        CAPTURE(bar.device);
        CAPTURE(bar.stack);
        const auto found = std::find_if(accuracy.stacks.begin(), accuracy.stacks.end(), [&](const StackErrors& one) {
            return one.device == bar.device && one.stack == bar.stack && one.experts == bar.experts &&
                   one.products == "bf16";
        });
        REQUIRE(found != accuracy.stacks.end());
        CHECK(found->now.mean_percent <= bar.mean_percent);
        CHECK(std::abs(found->now.bias_percent) <= bar.bias_percent);
    }
}

TEST_CASE("small runs on one node are predicted within seven per cent") {
    const auto shared = pipeweaver::testing::shared_folder();
    if (!shared) {
        pipeweaver::testing::left_out("the table of single-node runs, which is not at hand");
        return;
    }
    auto runs = read_published_runs(CsvTable::read(*shared / "data/runs/vtrain_single_node_a100.csv"));
    if (pipeweaver::testing::short_form()) runs.resize(runs.size() / 20);
    const auto groups = errors_by_source(runs, predict_all(runs));
    REQUIRE(groups.size() == 1);
    REQUIRE(groups[0].predicted.size() == 1);
    CHECK(groups[0].predicted[0].step_time.rows == runs.size());
    CHECK(groups[0].predicted[0].step_time.mean_percent <= pipeweaver::testing::full_or_short(7, 12));
}
