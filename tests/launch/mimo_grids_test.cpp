// Grids of modules on GPUs of their own, by the rules of Megatron-Bridge's megatron_mimo_config.py.
#include "pipeweaver/launch/megatron_words.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
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
}
