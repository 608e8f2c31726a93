// Published runs of several networks: what is known of them beside their columns.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/validation/run_errors.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/validation/published_rows.hpp"
#include "validation/multimodal_kinds.hpp"
#include "validation/multimodal_run.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::validation;
using namespace pipeweaver::validation::testing;

namespace {

PublishedRun of(std::string model, std::string note, std::string gpu = "H100") {
    PublishedRun row;
    row.model = std::move(model);
    row.note = std::move(note);
    row.gpu = std::move(gpu);
    row.gpus = row.dp = 8;
    row.tp = row.pp = row.cp = 1;
    row.micro_batch = 1;
    row.global_batch = 8;
    row.seq = 4096;
    return row;
}

// ms-swift's vit_gradient_checkpointing.sh.
PublishedRun clips(const std::string& note) {
    auto row = of("Qwen2.5-VL-7B", note, "A100-80GB-SXM");
    row.source = "ms-swift vit_gradient_checkpointing.sh";
    row.gpus = row.dp = 4;
    row.micro_batch = 4;
    row.global_batch = 16;
    return row;
}

PublishedRun wan(std::string note) {
    auto row = of("Wan 2.1 14B (video DiT)", std::move(note));
    row.seq = 37440;
    return row;
}

MultimodalRun run_of(const PublishedRun& row) {
    auto found = multimodal_run(row);
    REQUIRE_MESSAGE(found.run, found.refusal);
    return *found.run;
}

}  // namespace

TEST_CASE("every kind names a model, a recipe and a recomputation that there are, and its own words find it") {
    for (const MultimodalKind& kind : multimodal_kinds()) {
        CAPTURE(kind.name);
        CAPTURE(kind.also);
        const auto model = workloads::find_model(std::string(kind.model));
        CHECK(model.modules[model.backbone()].architecture.layers > 0);
        if (!kind.recipe.empty()) CHECK_NOTHROW(static_cast<void>(emulator::find_recipe(std::string(kind.recipe))));
        CHECK_FALSE(kind.assumed.empty());
        const auto row = of(std::string(kind.name), std::string(kind.also), "");
        CHECK(is_multimodal(row));
        CHECK(kind_of(row) == &kind);
    }
}

TEST_CASE("a note's split of layers is what adds up to the backbone's") {
    CHECK(split_in("PP2 17/23, GBS 512", 2, 40) == std::vector<std::int64_t>{17, 23});
    CHECK(split_in("9|15|15|13 (CP2)", 4, 52) == std::vector<std::int64_t>{9, 15, 15, 13});
    CHECK(split_in("steps 11/20 of 17|23", 2, 40) == std::vector<std::int64_t>{17, 23});
    CHECK(split_in("17/24", 2, 40).empty());
    CHECK(split_in("17/23/", 3, 40).empty());
    CHECK(split_in("", 2, 40).empty());
}

TEST_CASE("frameworks and devices of one generator are told apart") {
    CHECK(run_of(wan("NeMo Automodel, FSDP2")).recompute == emulator::Recompute::full);
    CHECK(run_of(wan("NeMo Automodel, FSDP2")).recipe->name == "torch-fsdp2-eager");
    CHECK(run_of(wan("Bridge: FSDP=0")).recompute == emulator::Recompute::blocks(8));
    auto elsewhere = wan("Bridge: FSDP=1");
    elsewhere.gpu = "B200";
    CHECK(run_of(elsewhere).recompute == emulator::Recompute::none);
    CHECK(run_of(elsewhere).recipe->zero == 3);
    CHECK(run_of(elsewhere).dataset == "constant-0+5.8125s");
    CHECK(run_of(elsewhere).model.microbatch_tokens == 37440);
    elsewhere.seq = 37441;
    CHECK_FALSE(multimodal_run(elsewhere).run);
}

TEST_CASE("a row's recomputation wins over its kind's") {
    auto row = wan("NeMo Automodel, FSDP2");
    row.recompute = "None";
    CHECK(run_of(row).recompute == emulator::Recompute::none);
    row.recompute = "blocks:3";
    CHECK(run_of(row).recompute == emulator::Recompute::blocks(3));
    row.recompute = "some";
    CHECK(multimodal_run(row).refusal.starts_with("recompute 'some': allowed are none, selective"));
}

TEST_CASE("checkpointing of encoder and language model apart has the measured order") {
    const auto step = [](const char* note) {
        const auto one = predicted(clips(note));
        REQUIRE_MESSAGE(one.step_time_s, one.reason);
        return *one.step_time_s;
    };
    CHECK(run_of(clips("gc true, vgc false")).recompute == emulator::Recompute::backbone);
    CHECK(run_of(clips("gc false, vgc true")).recompute == emulator::Recompute::encoders);
    // Measured: 2.45, 2.32, 2.16 and 1.95 s.
    const double both = step("gc true, vgc true"), language = step("gc true, vgc false");
    const double vision = step("gc false, vgc true"), neither = step("gc false, vgc false");
    CHECK(both > language);
    CHECK(language > vision);
    CHECK(vision > neither);
}

TEST_CASE("tensor parallelism over links that are not stated is refused") {
    auto row = clips("PCIe or NVLink not stated");
    CHECK(predicted(row).step_time_s);
    row.tp = 2;
    row.dp = 2;
    CHECK(predicted(row).reason == "tensor parallelism over links that are not stated");
}

TEST_CASE("with adapters the backbone's alone are trained, and the step is shorter") {
    const auto whole = predicted(clips("gc true, vgc true")), adapters = predicted(clips("gc true, vgc true, LoRA r8"));
    REQUIRE(whole.step_time_s);
    REQUIRE_MESSAGE(adapters.step_time_s, adapters.reason);
    CHECK(*adapters.step_time_s < *whole.step_time_s);
    CHECK(adapters.reason.find("adapters of rank 8") != std::string::npos);
}

TEST_CASE("samples are padded to the row's sequence with images of the data it names") {
    auto row = of("qwen3.5-27b VL", "MIMO tutorial, RDR");
    row.seq = 2048;
    const auto run = run_of(row);
    CHECK(run.dataset == "constant-1472+1x768px");  // 24 x 24 tokens
    CHECK(run.model.microbatch_tokens == 2048);
    CHECK(run.model.most_items == 1);
    row.note = "MIMO tutorial, other data";
    CHECK(multimodal_run(row).refusal == "unknown: seq, or the data");
}

TEST_CASE("encoders lie on the first stage, or on one of their own") {
    auto row = of("qwen3.5-27b VL", "MIMO tutorial, RDR");
    row.pp = 2;
    CHECK(run_of(row).layers == "32,32");
    row.note = "MIMO tutorial, RDR, 30/34";
    CHECK(run_of(row).layers == "30,34");
    row.pp = 3;
    row.note = "MIMO tutorial, RDR, encoder on a GPU of its own";
    CHECK(run_of(row).layers == "vit:27,0,0/llm:0,32,32");
    row.pp = 4;
    CHECK(multimodal_run(row).refusal == "a pipeline of several networks: its cut is not stated");
}

TEST_CASE("a ratio is that of the measured steps, or what the row says") {
    std::vector<PublishedRun> runs(3);
    std::vector<Prediction> predictions(3);
    runs[0].id = "a";
    runs[0].step_time_s = 2;
    runs[1].id = "b";
    runs[1].against = "a";
    runs[1].step_time_s = 1;
    runs[2].against = "b";
    runs[2].step_ratio = 1.5;
    predictions[0].step_time_s = 4;
    predictions[1].step_time_s = 3;
    const auto ratios = ratios_of(runs, predictions);
    REQUIRE(ratios.size() == 2);
    CHECK(ratios[0].measured == 0.5);
    CHECK(*ratios[0].predicted == 0.75);
    CHECK(ratios[0].same_sign());
    CHECK(ratios[1].measured == 1.5);
    CHECK_FALSE(ratios[1].predicted);
    CHECK_FALSE(ratios[1].same_sign());
    runs[2].against = "c";
    CHECK_THROWS_AS(static_cast<void>(ratios_of(runs, predictions)), Error);
}
