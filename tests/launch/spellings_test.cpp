// Splits in the flags of frameworks, and flags read back.
#include "pipeweaver/launch/spellings.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::launch;

namespace {

Split split(std::int64_t ranks, std::vector<std::int64_t> layers) {
    return {.ranks = ranks, .layers = std::move(layers)};
}

std::string layout_of(const Split& said) {
    const Spelled spelled = spell_pipeline_layout(said);
    REQUIRE(spelled.says());
    REQUIRE(spelled.flags.size() == 1);
    return spelled.flags.front().value;
}

// Two to eight ranks with one to four chunks; three quarters of them even but for the first and the last rank.
Split drawn(Random& random) {
    const auto ranks = static_cast<std::int64_t>(2 + random.below(7)),
               chunks = static_cast<std::int64_t>(1 + random.below(4));
    Split said{.ranks = ranks};
    const bool free = random.below(4) == 0;
    const auto first = static_cast<std::int64_t>(random.below(5)), last = static_cast<std::int64_t>(random.below(5)),
               between = static_cast<std::int64_t>(random.below(5));
    for (std::int64_t s = 0; s < ranks * chunks; ++s) {
        const std::int64_t rank = s % ranks;
        const std::int64_t even = rank == 0 ? first : rank == ranks - 1 ? last : between;
        said.layers.push_back(free ? static_cast<std::int64_t>(random.below(6)) : even);
    }
    return said;
}

// The flags of a spelling parsed again, which are of no other flag.
void check_first_last(const Split& said) {
    const auto spelled = first_last_of(said);
    CHECK(spell_first_last(said).why_not == spelled.why_not);
    CHECK(spell_first_last_swift(said).flags.size() == spell_first_last(said).flags.size());
    if (!spelled.why_not.empty()) return;
    const Split again = split_of(spelled.counts, {said.ranks, said.depth(), 0});
    CHECK(again.layers == said.layers);
}

void check_custom(const Split& said) {
    const Spelled spelled = spell_custom_layers(said);
    REQUIRE(spelled.says());
    const Flag& flag = spelled.flags.front();
    const ReadSplit again = flag.name == "--custom-pipeline-layers"
                                ? parse_custom_layers(flag.value, said.chunks())
                                : parse_custom_virtual_layers(flag.value, said.ranks);
    CHECK(again.why_not == "");
    CHECK(again.split.layers == said.layers);
}

void check_hybrid(const Split& said, Random& random) {
    std::vector<std::string> letters;
    for (std::int64_t layer = 0; layer < said.depth(); ++layer)
        letters.emplace_back(std::vector<const char*>{"*-", "*E", "G-", "M", "-"}[random.below(5)]);
    const Spelled spelled = spell_hybrid_pattern(said, letters);
    REQUIRE(spelled.says());
    const auto stages = parse_hybrid_pattern(spelled.flags.front().value).stages;
    CHECK(split_of(stages, letters, said.ranks).layers == said.layers);
}

}  // namespace

TEST_CASE("what is spelled parses to the same split") {
    Random random(20261126);
    std::size_t counted = 0;
    for (int i = 0; i < 2000; ++i) {
        const Split said = drawn(random);
        const std::string text = layout_of(said);
        CAPTURE(text);
        const LayoutStages stages = parse_pipeline_layout(text).stages;
        CHECK(split_of(stages, said.ranks).layers == said.layers);
        CHECK_FALSE(why_not_constructed(stages, {said.ranks, said.depth(), 0}).has_value());
        if (first_last_of(said).why_not.empty()) ++counted;
        check_first_last(said);
        check_custom(said);
        check_hybrid(said, random);
    }
    CHECK(counted > 500);
    CHECK(counted < 1800);
}

TEST_CASE("a layout says equal stages once") {
    CHECK(layout_of(split(4, {0, 14, 14, 14, 14, 14, 14, 9})) == "E|(t*14|)*6t*9L");
    CHECK(layout_of(split(2, {3, 0})) == "Ettt|L");
    CHECK(layout_of(split(4, {0, 0, 0, 1})) == "E|(|)*2tL");
    CHECK(layout_of(split(1, {4})) == "Et*4L");
}

TEST_CASE("layout strings are multiplied out as Megatron Core does") {
    CHECK(parse_pipeline_layout("Et*3|(tt|)*29,m|L").stages.size() == 32);
    CHECK(parse_pipeline_layout("E||t|L").stages == LayoutStages{"E", "", "t", "L"});
    CHECK(parse_pipeline_layout("Et(ab|)*0tL").stages == LayoutStages{"EttL"});
    CHECK(parse_pipeline_layout("E(t*2|)*2,L").stages == LayoutStages{"Ett", "tt", "L"});
    CHECK(parse_pipeline_layout("Et|*3L").stages == LayoutStages{"Et", "", "", "L"});
    for (const char* bad :
         {"Et tL", "(Et|tL)", "((t)*2|)*2", "Et*L", "()*2E", "EtxL", "Et*999999999L", "(t*90000|)*9"}) {
        CAPTURE(bad);
        CHECK(parse_pipeline_layout(bad).why_not.starts_with("--pipeline-model-parallel-layout: "));
    }
    const auto has = [](const char* text, const char* why) {
        return parse_pipeline_layout(text).why_not.find(why) != std::string::npos;
    };
    CHECK(has("Et|txL", "stage 1 of 'Et|txL' has 'x' behind 't'"));
    CHECK(has("Et*999999999L", ": '*999999' has a number above 100000"));
    CHECK(has("(t*90000|)*9", ": has more than 100000 letters, multiplied out"));
}

TEST_CASE("what Megatron Core does not construct has its rule") {
    const auto why = [](const std::string& text, const LayoutFor& wanted) {
        return why_not_constructed(parse_pipeline_layout(text).stages, wanted).value_or("none");
    };
    CHECK(why("Et|tL", {2, 2, 0}) == "none");
    CHECK(why("Et|t|tL", {2, 3, 0}) == "has 3 stages, no multiple of --pipeline-model-parallel-size 2");
    CHECK(why("t|tL", {2, 2, 0}) == "begins with no E: the embedding comes first");
    CHECK(why("Et|t", {2, 2, 0}) == "ends with no L: the loss comes last");
    CHECK(why("Et|EtL", {2, 2, 0}) == "has 2 E, allowed is one");
    CHECK(why("EtL|tL", {2, 2, 0}) == "has 2 L, allowed is one");
    CHECK(why("Et|tL", {2, 3, 0}) == "has 2 decoder layers (t), but --num-layers is 3");
    CHECK(why("Et|tmL", {2, 2, 0}) == "has 1 m, but --mtp-num-layers is 0");
    CHECK(why("Et|tmL", {2, 2, 1}) == "none");
    CHECK(why("Etm|tL", {2, 2, 1}) == "has t behind m; decoder layers come first");
    CHECK(why("Et|t|m|L", {2, 2, 1}) == "none");
    CHECK(why("Ett|m||L", {2, 2, 1}) == "stage 1 has m; they belong to the last chunk of their rank");
    CHECK(why("Ett|m|m|L", {4, 2, 2}) == "stage 1 has 1 of 2 m; all belong to one stage");
}

TEST_CASE("counts of the first and the last rank say what is even between") {
    const auto flags = [](const Split& said) {
        std::string text;
        for (const Flag& flag : spell_first_last(said).flags) text += flag.name + " " + flag.value + " ";
        return text;
    };
    CHECK(flags(split(4, {7, 7, 7, 7})).empty());
    CHECK(flags(split(4, {1, 9, 9, 9})) == "--decoder-first-pipeline-num-layers 1 ");
    CHECK(flags(split(4, {1, 9, 9, 8})) ==
          "--decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers 8 ");
    CHECK(flags(split(2, {1, 9, 1, 9})) ==
          "--decoder-first-pipeline-num-layers 2 --num-virtual-stages-per-pipeline-rank 2 ");
    CHECK(spell_first_last(split(4, {1, 9, 8, 9})).why_not ==
          "rank 2 has 8 layers, rank 1 9; ranks between the first and the last have equally many");
    CHECK(spell_first_last(split(2, {1, 9, 2, 9})).why_not ==
          "rank 0 has chunks of 1 and 2 layers; the counts are of ranks, whose chunks are equal");
    CHECK(spell_first_last(split(4, {0, 9, 9, 9})).why_not == "rank 0 has no layer; allowed are 1 and more");
}

TEST_CASE("counts that Megatron Core refuses are refused with the rule") {
    const auto refused = [](const FirstLast& counts, const LayoutFor& wanted, const char* why) {
        CHECK_THROWS_WITH_AS(static_cast<void>(split_of(counts, wanted)), doctest::Contains(why), Error);
    };
    refused({.first = 0}, {4, 12, 0}, "the first rank has 0 layers");
    refused({.first = 1}, {4, 12, 0}, "11 layers are left for 3 ranks between");
    refused({.first = 6, .last = 6}, {4, 12, 0}, "0 of 12 layers are left for 2 ranks between");
    refused({.first = 6, .last = 5}, {2, 12, 0}, "1 of 12 layers are left for 0 ranks between");
    refused({.first = 3, .chunks = 2}, {4, 12, 0}, "rank 0 has 3 layers, no multiple of its 2 chunks");
    refused({}, {4, 13, 0}, "cannot share them evenly");
}

TEST_CASE("encoders lie whole on the first stage, or the rule says where not") {
    Split said = split(2, {3, 5});
    said.encoders = {{"vit", {24, 8}}};
    for (const Spelled& spelled : {spell_pipeline_layout(said), spell_first_last(said), spell_custom_layers(said)})
        CHECK(spelled.why_not == "stage 1 has 8 layers of vit; encoders are built whole on the first stage");
    said.encoders = {{"vit", {32, 0}}};
    CHECK(layout_of(said) == "Ettt|t*5L");
    said.generators = {{"dit", {1, 4}}};
    CHECK(spell_pipeline_layout(said).why_not ==
          "stage 0 has 1 layers of dit; what follows the language model is built on the last");
}

TEST_CASE("LoongForge's lists are of ranks where their chunks are as it shares them out, else of stages") {
    CHECK(spell_custom_layers(split(2, {3, 2, 4, 3})).flags.front() == Flag{"--custom-pipeline-layers", "7,5"});
    CHECK(spell_custom_layers(split(2, {4, 2, 3, 3})).flags.front() ==
          Flag{"--custom-virtual-pipeline-layers", "4,2,3,3"});
    CHECK(spell_custom_layers(split(1, {9})).why_not.find("one rank") != std::string::npos);
    for (const char* bad : {"9", "", "1,x", "1,,2", "-1,3"}) {
        CAPTURE(bad);
        CHECK(parse_custom_layers(bad, 1).why_not.starts_with("--custom-pipeline-layers: "));
    }
    CHECK(parse_custom_layers("1,4", 2).why_not ==
          "--custom-pipeline-layers: rank 0 has 1 layers, allowed are 2 and more, one for each chunk");
    CHECK(parse_custom_virtual_layers("1,4,2", 2).why_not ==
          "--custom-virtual-pipeline-layers: has 3 stages, no multiple of the 2 ranks");
    CHECK(parse_custom_virtual_layers("1,x", 2).why_not ==
          "--custom-virtual-pipeline-layers: is 'x', must be a whole number from 0 to 100000");
}

TEST_CASE("a hybrid pattern has a letter for each part of a layer") {
    const auto llm = workloads::find_model("dip-vlm-s");
    const auto letters = hybrid_letters(llm.modules[llm.backbone()].architecture);
    REQUIRE(letters);
    CHECK(letters->front() == "*-");
    CHECK(spell_hybrid_pattern(split(2, {1, 2}), {"*-", "*E", "G-"}).flags.front().value == "*-|*EG-");
    CHECK(parse_hybrid_pattern("M*|E-/MM/MM").stages == std::vector<std::string>{"M*", "E-"});
    CHECK(parse_hybrid_pattern("M*t").why_not.starts_with("--hybrid-layer-pattern: has 't' at 2, allowed are "));
    using Stages = std::vector<std::string>;
    CHECK_THROWS_WITH_AS(static_cast<void>(split_of(Stages{"*", "-*-"}, {"*-", "*-"}, 2)), doctest::Contains("stage 0"),
                         Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(split_of(Stages{"*-", ""}, {"*-", "*-"}, 2)),
                         doctest::Contains("has 1 layers, but the model has 2"), Error);
}
