// The pieces of published steps, by numbers worked by hand.
#include "pipeweaver/validation/run_errors.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/validation/published_rows.hpp"
#include "validation/run_network.hpp"
#include "validation/training_run.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace pipeweaver;
using namespace pipeweaver::validation;
using namespace pipeweaver::validation::testing;
using doctest::Approx;

TEST_CASE("layers are cut evenly, or with embedding and head counted as layers") {
    CHECK(cut_layers(96, 8, 6) == std::vector<std::int64_t>(8, 12));
    CHECK(cut_layers(126, 8, 8) == std::vector<std::int64_t>{15, 16, 16, 16, 16, 16, 16, 15});
    CHECK(cut_layers(126, 8, 5).empty());
    CHECK(cut_layers(9, 4, 1).empty());
}

TEST_CASE("a row's command names the same step: model, cluster and recipe as JSON, in quotes of the shell") {
    const auto one = predicted(gpt_39b());
    CHECK(one.command.starts_with("pipeweaver emulate --model '{\"format\":\"pipeweaver-model/1\","));
    CHECK(one.command.find(" --recipe '{\"format\":\"pipeweaver-recipe/1\",\"name\":\"megatron-2022\",") !=
          std::string::npos);
    CHECK(one.command.find("--partition uniform") != std::string::npos);
    CHECK(one.command.ends_with(" --any-memory"));
    PublishedRun unknown;
    CHECK(predicted(unknown).command.empty());
}

TEST_CASE("a model's name finds its network by letters and digits") {
    CHECK(network_named("llama3-70b truncated to 12 layers")->name == "llama3-70b");
    CHECK(network_named("DeepSeekV2")->name == "deepseek-v2");
    CHECK(network_named("GPT-39.1B")->name == "megatron-gpt-39.1b");
    CHECK_FALSE(network_named("Nemotron_3_Nano"));
    CHECK_FALSE(network_named(""));
    CHECK_FALSE(network_named("vit-22b"));  // no language model
}

// DeepSeek-V2: 160 experts of 3 * 5120 * 1536; 6 of them chosen.
TEST_CASE("experts are counted apart from what every replica holds") {
    const auto network = workloads::architecture("deepseek-v2");
    CHECK(workloads::layer_parameter_parts(network, 0).experts == 0);
    CHECK(workloads::layer_parameter_parts(network, 1).experts == std::int64_t{160} * 3 * 5120 * 1536);
    CHECK(workloads::layer_parameter_parts(network, 1).common(1) +
              workloads::layer_parameter_parts(network, 1).experts ==
          workloads::layer_parameters(network, 1));
}

// 4 m h + 2 m (2*1536 + 2*512 + 64) + 2 m 128 (2*192 + 128 + 2*128) + 4 m h, and 6 m 12288 where dense; with experts
// 6 m 3072 + 2 m 6 (5120 + 3*1536) + 8 m 160.
TEST_CASE("latent attention and experts keep what their formulas say") {
    const auto network = workloads::architecture("deepseek-v2");
    const std::int64_t attention = 8 * 5120 + 2 * 4160 + 2 * 128 * 768;
    CHECK(workloads::layer_activations(network, 0, 10, 0, 1).count == 10 * (attention + 6 * 12288));
    CHECK(workloads::layer_activations(network, 1, 10, 0, 1).count ==
          10 * (attention + 6 * 3072 + 12 * (5120 + 3 * 1536) + 8 * 160));
}

TEST_CASE("the embedded costs put four published runs within a tenth, and memory within half a per cent") {
    CHECK(*predicted(gpt_39b()).step_time_s == Approx(14.7134).epsilon(0.1));
    CHECK(*predicted(llama_70b_fp8()).step_time_s == Approx(19.9927).epsilon(0.1));
    CHECK(*predicted(llama_70b_cut()).step_time_s == Approx(0.843).epsilon(0.1));
    CHECK(*predicted(deepseek_v2_cut()).step_time_s == Approx(0.4926).epsilon(0.1));
    CHECK(*predicted(llama_70b_cut()).memory_gib == Approx(66.55).epsilon(0.005));
    CHECK(*predicted(deepseek_v2_cut()).memory_gib == Approx(44.7).epsilon(0.005));
    CHECK_FALSE(predicted(gpt_39b()).memory_gib);
}

TEST_CASE("errors are means, medians, nearest-rank percentiles and a bias") {
    const auto errors = errors_of({0.10, -0.02, 0.04, -0.20});
    CHECK(errors.rows == 4);
    CHECK(errors.mean_percent == Approx(9));
    CHECK(errors.median_percent == Approx(7));
    CHECK(errors.p90_percent == Approx(20));
    CHECK(errors.max_percent == Approx(20));
    CHECK(errors.bias_percent == Approx(-2));
    CHECK(errors_of(std::vector<double>(10, 0.01)).p90_percent == Approx(1));
    CHECK(errors_of({}).rows == 0);
}

TEST_CASE("the error table counts every row, and says why rows were refused") {
    std::vector<PublishedRun> runs(5);
    runs[0].source = runs[1].source = runs[2].source = runs[4].source = "one";
    runs[3].source = "two";
    runs[0].step_time_s = 2;
    std::vector<Prediction> predictions(5);
    predictions[0].step_time_s = 2.2;
    predictions[2].reason = predictions[3].reason = predictions[4].reason = "unknown: tp";
    predictions[1].reason = "unknown: pp";
    const auto groups = errors_by_source(runs, predictions);
    REQUIRE(groups.size() == 2);
    CHECK(groups[0].rows == 4);
    REQUIRE(groups[0].predicted.size() == 1);
    CHECK(groups[0].predicted[0].step_time.rows == 1);
    CHECK(groups[0].predicted[0].step_time.bias_percent == Approx(10));
    CHECK(groups[0].refused_rows() == 3);
    CHECK(groups[0].refused.front().reason == "unknown: tp");
    CHECK(groups[0].refused.front().rows == 2);
    CHECK(groups[1].predicted.empty());
    REQUIRE(errors_of_all(runs, predictions).size() == 1);
    CHECK(errors_of_all(runs, predictions)[0].rows == 1);
}
