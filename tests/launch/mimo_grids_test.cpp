// Grids of modules on GPUs of their own, by the rules of Megatron-Bridge's megatron_mimo_config.py.
#include "launch/read/grids.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/launch/check.hpp"
#include "pipeweaver/launch/megatron_words.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::launch;

namespace {

groups::Placed placed(std::string name, std::size_t module, std::int64_t tp, std::int64_t pp, std::int64_t dp) {
    groups::Placed one;
    one.name = std::move(name);
    one.modules = {module};
    one.tp = tp;
    one.pp = pp;
    one.dp = dp;
    return one;
}

std::string why_no_grids_of(const groups::Placing& placing, const workloads::Model& model) {
    const Spelled said = spell_mimo(placing, model);
    CHECK(said.flags.empty() != said.says());
    return said.why_not;
}

// The published layout's variables with these in place of its own.
std::string script_with(const std::string& changed) {
    return "export MIMO_LANGUAGE_TP=4 MIMO_LANGUAGE_PP=2 MIMO_LANGUAGE_CP=1 MIMO_LANGUAGE_DP=2\n"
           "export MIMO_LANGUAGE_OFFSET=0 MIMO_IMAGES_TP=1 MIMO_IMAGES_PP=1 MIMO_IMAGES_CP=1 MIMO_IMAGES_DP=1\n"
           "export MIMO_IMAGES_OFFSET=16 MICRO_BATCH_SIZE=2\n" +
           changed + "\n";
}

// The rule that is broken first, and why; empty: none is.
std::string broken_by(const std::string& changed, const std::string& cluster = "h100-sxm:24") {
    CheckAsked asked;
    asked.said = read_script(script_with(changed), "mimo.sh");
    asked.cluster = cluster;
    asked.fits = false;
    const Checked checked = check(asked, in_order);
    return checked.constructs() ? std::string()
                                : std::string(checked.broken.front().id) + ": " + checked.broken.front().why;
}

}  // namespace

TEST_CASE("the published layout of 17 GPUs is said as its launcher has it") {
    // slurm_sft.sh at 067f987d: its defaults, and MICRO_BATCH_SIZE=2 for two replicas of the language model.
    const workloads::Model model = workloads::find_model("qwen3.5-27b");
    const groups::Placing placing{{}, 16, {placed("vit", 0, 1, 1, 1), placed("llm", 1, 4, 2, 2)}};
    const Spelled said = spell_mimo(placing, model);
    REQUIRE(said.says());
    const std::vector<Flag> expected{
        {"MIMO_LANGUAGE_TP", "4"},    {"MIMO_LANGUAGE_PP", "2"},     {"MIMO_LANGUAGE_CP", "1"},
        {"MIMO_LANGUAGE_DP", "2"},    {"MIMO_LANGUAGE_OFFSET", "0"}, {"MIMO_IMAGES_TP", "1"},
        {"MIMO_IMAGES_PP", "1"},      {"MIMO_IMAGES_CP", "1"},       {"MIMO_IMAGES_DP", "1"},
        {"MIMO_IMAGES_OFFSET", "16"}, {"MICRO_BATCH_SIZE", "2"}};
    CHECK(said.flags == expected);
}

TEST_CASE("what grids cannot say is refused by its rule") {
    const workloads::Model model = workloads::find_model("qwen3.5-27b");
    const groups::Placed llm = placed("llm", 1, 4, 2, 2);
    CHECK(why_no_grids_of({{}, 1, {llm}}, model).find("two groups") != std::string::npos);
    CHECK(why_no_grids_of({{}, 1, {placed("vit", 0, 1, 3, 1), llm}}, model) ==
          "vit has 3 stages; the encoder of images has one");
    CHECK(why_no_grids_of({{}, 1, {placed("vit", 0, 1, 1, 4), llm}}, model).find("do not divide") != std::string::npos);
    CHECK(why_no_grids_of({{}, 1, {placed("vit", 0, 3, 1, 1), llm}}, model) ==
          "vit has tp 3, which is no power of two");
    groups::Placed whole = llm;
    whole.zero = 0;
    CHECK(why_no_grids_of({{}, 1, {placed("vit", 0, 1, 1, 1), whole}}, model).find("ZeRO 0") != std::string::npos);
    // Of 16 rounds 1F1B has three of images ahead of two stages, and two and one of text.
    groups::Placed vit = placed("vit", 0, 1, 1, 1), tight = llm;
    vit.ahead = {3};
    tight.ahead = {1, 1};
    CHECK(why_no_grids_of({{}, 16, {vit, tight}}, model) ==
          "llm has room for 1 rounds ahead on stage 0, and the launcher runs 2");
    tight.ahead = {2, 1};
    CHECK(why_no_grids_of({{}, 16, {vit, tight}}, model).empty());
    vit.ahead = {2};
    CHECK(why_no_grids_of({{}, 16, {vit, tight}}, model) ==
          "vit has room for 2 rounds ahead on stage 0, and the launcher runs 3");
    CHECK(why_no_grids_of({{}, 2, {vit, tight}}, model).empty());
}

TEST_CASE("grids that are written are read as they were") {
    const workloads::Model model = workloads::find_model("qwen3.5-27b");
    groups::Placed llm = placed("llm", 1, 4, 2, 2);
    llm.recompute = emulator::Recompute::selective;
    llm.chain.stages = {{RankId{0}, {{1, 0, 33}}}, {RankId{1}, {{1, 33, 31}}}};
    const groups::Placing placing{{}, 16, {placed("vit", 0, 1, 1, 1), llm}};
    std::string text;
    for (const Flag& one : spell_mimo(placing, model).flags) text += "export " + one.name + "=" + one.value + "\n";
    for (const Flag& one : spell_beside_mimo(placing, model)) text += one.name + "=" + one.value + "\n";
    const SaidLaunch said = read_script(text + "PIPEWEAVER_PLANNED='{\"seed\":\"2\"}'\n", "mimo.sh");
    CHECK(said.dialect == Dialect::grid_variables);
    const GridsLaunch read = read_grids(said);
    CHECK(read.assumed.empty());
    CHECK(read.language.gpus() == 16);
    CHECK(read.language.tp == 4);
    CHECK(read.language.recompute == emulator::Recompute::selective);
    CHECK(read.language.layers == std::vector<std::int64_t>{33, 31});
    CHECK(read.images.offset == 16);
    CHECK(read.images.recompute == emulator::Recompute::none);
    CHECK(read.micro_batch == 2);
    CHECK(read.planned == R"({"seed":"2"})");
}

TEST_CASE("grids that are not said are the launcher's") {
    const GridsLaunch read = read_grids(read_script("export MIMO_LANGUAGE_DP=4\n", "mimo.sh"));
    CHECK(read.language.gpus() == 32);
    CHECK(read.images.offset == 16);
    CHECK(read.assumed.size() == 9);
}

TEST_CASE("a rule of grids that is broken says the variable and what is allowed") {
    CHECK(broken_by("").empty());
    CHECK(broken_by("export MIMO_IMAGES_OFFSET=8") ==
          "grids-overlap: MIMO_IMAGES_OFFSET is 8, among ranks 0 to 15 of LANGUAGE; allowed is 16");
    CHECK(broken_by("export MIMO_LANGUAGE_TP=2") ==
          "grids-tile: MIMO_IMAGES_OFFSET is 16, but tp 2 x pp 2 x cp 1 x dp 2 of LANGUAGE are 8 ranks from 0 on; "
          "allowed is 8");
    CHECK(broken_by("export MIMO_LANGUAGE_SIZE=8") ==
          "grids-size: MIMO_LANGUAGE_SIZE is 8, but tp 4 x pp 2 x cp 1 x dp 2 are 16; allowed is 16");
    CHECK(broken_by("", "h100-sxm:16") == "grids-gpus: the grids have 17 ranks, the cluster has 16 GPUs");
    CHECK(broken_by("export MIMO_LANGUAGE_TP=3 MIMO_IMAGES_OFFSET=12").starts_with("grids-tp: MIMO_LANGUAGE_TP is 3"));
    CHECK(broken_by("export MIMO_IMAGES_DP=3 MICRO_BATCH_SIZE=6") ==
          "grids-dp: MIMO_LANGUAGE_DP is 2 and MIMO_IMAGES_DP 3; allowed are a divisor and its multiple");
    CHECK(broken_by("export MICRO_BATCH_SIZE=3").starts_with("grids-micro-batch: MICRO_BATCH_SIZE is 3"));
    CHECK(broken_by("export MICRO_BATCH_SIZE=1 GLOBAL_BATCH_SIZE=32").starts_with("grids-micro-batch"));
    CHECK(broken_by("export GLOBAL_BATCH_SIZE=3").starts_with("grids-global-batch"));
    CHECK(broken_by("export MIMO_IMAGES_PP=2").starts_with("grids-images-pp"));
}

TEST_CASE("grids of no known module or degree are refused with the variable") {
    const auto read = [](const std::string& changed) {
        return read_grids(read_script(script_with(changed), "mimo.sh"));
    };
    CHECK_THROWS_WITH_AS(read("export MIMO_AUDIO_TP=1"),
                         "mimo.sh: MIMO_AUDIO_TP: there are no grids of a module 'AUDIO', allowed are LANGUAGE and "
                         "IMAGES",
                         Error);
    CHECK_THROWS_AS(read("export MIMO_IMAGES_TP=0"), Error);
    CHECK_THROWS_AS(read("export MIMO_IMAGES_TP=two"), Error);
    CHECK_THROWS_AS(read("PIPEWEAVER_IMAGES_RECOMPUTE=half"), Error);
    CHECK_THROWS_AS(read("PIPEWEAVER_LANGUAGE_LAYERS=64"), Error);
    CHECK_THROWS_AS(read("PIPEWEAVER_LANGUAGE_LAYERS=0,64"), Error);
    CHECK_THROWS_AS(read("export MIMO_IMAGES_TP=1000000"), Error);
}

TEST_CASE("a degree that the script leaves to its caller is asked for") {
    CheckAsked asked;
    asked.said = read_script(script_with("export MIMO_LANGUAGE_TP=$TP"), "mimo.sh");
    asked.cluster = "h100-sxm:17";
    const Checked checked = check(asked, in_order);
    CHECK(checked.verdict == Verdict::undecided);
    REQUIRE(!checked.open.empty());
    CHECK(checked.open.front().setting == "MIMO_LANGUAGE_TP");
    CHECK(read_script("# MIMO_IMAGES_TP=2 is another\nexport MIMO_LANGUAGE_DP=4\n", "mimo.sh").unset.empty());
}

TEST_CASE("grids are read as a launcher has them that its caller may change, and as its program takes them") {
    const std::string launcher =
        "MIMO_LANGUAGE_TP=\"${MIMO_LANGUAGE_TP:-4}\"\nMIMO_LANGUAGE_PP=\"${MIMO_LANGUAGE_PP:-2}\"\n"
        "MIMO_LANGUAGE_CP=\"${MIMO_LANGUAGE_CP:-1}\"\nMIMO_LANGUAGE_DP=\"${MIMO_LANGUAGE_DP:-2}\"\n"
        "HF_MODEL=\"${HF_MODEL:-Qwen/Qwen3.5-27B}\"\n"
        "export HF_MODEL MIMO_LANGUAGE_TP MIMO_LANGUAGE_PP MIMO_LANGUAGE_CP MIMO_LANGUAGE_DP\n"
        "srun python examples/megatron_mimo/qwen35_vl/finetune_qwen35_vl.py --seq-length 2048 --train-iters 9 "
        "--micro-batch-size 2\n";
    const SaidLaunch changed = read_script(launcher, "sft.sh", std::nullopt, {{"MIMO_LANGUAGE_TP", "2"}});
    CHECK(changed.dialect == Dialect::grid_variables);
    CHECK(changed.named_model == "Qwen/Qwen3.5-27B");
    CHECK(read_grids(changed).language.tp == 2);
    CHECK(read_grids(changed).language.dp == 2);

    const std::string program = "python finetune_qwen35_vl.py --hf-model Qwen/Qwen3.5-27B --micro-batch-size 2 ";
    const SaidLaunch words = read_script(
        program + "--component language=tp=4,pp=2,dp=2 --component images=tp=1,dp=1,rank_offset=16\n", "run.sh");
    const GridsLaunch read = read_grids(words);
    CHECK(read.language.gpus() == 16);
    CHECK(read.images.offset == 16);
    CHECK(read.micro_batch == 2);
    CHECK(read.assumed.empty());
    const SaidLaunch joined = read_script(
        program + "--component=language=tp=4,dp=2 --component images=dp=1,rank_offset=8 --micro-batch-size=4\n",
        "run.sh");
    CHECK(read_grids(joined).language.gpus() == 8);
    CHECK(read_grids(joined).micro_batch == 4);
    CHECK_THROWS_WITH_AS(read_script(program + "--component language=tp=4,ep=2,dp=1\n", "run.sh"),
                         "run.sh:1: --component: is 'ep=2', must be tp=N, pp=N, cp=N, dp=N or rank_offset=N", Error);
    CHECK_THROWS_AS(read_script(program + "--component language=tp=4\n", "run.sh"), Error);
    CHECK_THROWS_AS(read_grids(read_script(program + "--component audio=dp=1\n", "run.sh")), Error);
}
