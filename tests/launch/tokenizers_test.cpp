// Vocabularies of launches that name a tokenizer.
#include "pipeweaver/frameworks/tokenizers.hpp"

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/launch/check.hpp"
#include "pipeweaver/launch/model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace pipeweaver;
using launch::Verdict;

namespace {

const std::string seven_billion =
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 --swiglu --seq-length 4096 "
    "--untie-embeddings-and-output-weights --disable-bias-linear --max-position-embeddings 4096 --micro-batch-size 1 "
    "--global-batch-size 32 --bf16 --use-distributed-optimizer --hidden-dropout 0 ";

launch::SaidLaunch words(const std::string& text) {
    return launch::read_words(launch::Dialect::megatron_arguments, text, "--args");
}

launch::MegatronLaunch read(const std::string& text) { return launch::settled(launch::read_megatron(words(text))); }

launch::Checked checked(const std::string& text, const std::string& cluster) {
    launch::CheckAsked asked;
    asked.said = words(text);
    asked.cluster = cluster;
    return launch::check(asked, in_order);
}

bool assumes(const launch::Checked& one, const std::string& words) {
    return std::any_of(one.assumed.begin(), one.assumed.end(),
                       [&](const std::string& sentence) { return sentence.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("a tokenizer that is known has its entries, padded by tp") {
    CHECK(read("--tokenizer-type GPT2BPETokenizer").padded_vocab == 50304);
    CHECK(read("--tokenizer-type GPT2BPETokenizer --tensor-model-parallel-size 8").padded_vocab == 51200);
    CHECK(read("--tokenizer-type Llama2Tokenizer --tokenizer-model /m/tokenizer.model").padded_vocab == 32000);
    CHECK(read("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Meta-Llama-3-8B").padded_vocab ==
          128256);
    CHECK(read("--tokenizer-type TikTokenizer --make-vocab-size-divisible-by 1000").padded_vocab == 132000);
}

TEST_CASE("what a launch says of its vocabulary counts more than its tokenizer") {
    CHECK(read("--tokenizer-type Llama2Tokenizer --vocab-size 64000").padded_vocab == 64000);
    CHECK(read("--tokenizer-type Llama2Tokenizer --padded-vocab-size 65536").padded_vocab == 65536);
    // To 0.17 a tokenizer that is none has one entry more than it is told.
    const auto none = read("--tokenizer-type NullTokenizer --vocab-size 131072");
    CHECK(none.least_vocab == 131072);
    CHECK(none.padded_vocab == 131200);
    CHECK_FALSE(frameworks::vocabulary_of({"NullTokenizer"}).has_value());
}

TEST_CASE("a vocabulary file of one's own is not GPT-2's") {
    CHECK(read("--tokenizer-type GPT2BPETokenizer --vocab-file /d/gpt2-vocab.json").padded_vocab == 50304);
    CHECK_FALSE(frameworks::vocabulary_of({"GPT2BPETokenizer", {}, "/d/my-vocab.json"})->is_known());
}

TEST_CASE("a launch that names a known tokenizer is judged, and says what was taken of it") {
    const auto one =
        checked(seven_billion + "--tokenizer-type Llama2Tokenizer --tokenizer-model t.model", "h100-sxm:8");
    const auto said = checked(seven_billion + "--vocab-size 32000", "h100-sxm:8");
    REQUIRE(one.fit);
    CHECK(one.verdict == said.verdict);
    CHECK(one.fit->ranks[0].peak == said.fit->ranks[0].peak);
    CHECK(assumes(one, "Llama2Tokenizer 't.model' has 32000 entries, padded to 32000"));
}

TEST_CASE("of an unknown tokenizer the fewest and the most entries decide together") {
    const std::string unknown = "--tokenizer-type SentencePieceTokenizer --tokenizer-model /m/own.model ";
    const std::string recomputed = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1 ";
    const auto fits = checked(seven_billion + recomputed + unknown, "h200-sxm:8");
    CHECK(fits.verdict == Verdict::fits);
    CHECK(assumes(fits, "has 256 to 262208 entries, of which the most are counted"));

    const auto short_of = checked(seven_billion + unknown + "--micro-batch-size 4", "h100-sxm:8");
    CHECK(short_of.verdict == Verdict::does_not_fit);

    const auto between = checked(seven_billion + recomputed + unknown, "h100-sxm:8");
    CHECK(between.verdict == Verdict::undecided);
    REQUIRE(between.open.size() == 1);
    CHECK(between.open[0].setting == "--vocab-size");
    CHECK(between.open[0].why.find("the verdict is 'fits' with the fewest") != std::string::npos);
}

TEST_CASE("a named model's vocabulary counts, whatever the tokenizer") {
    launch::CheckAsked asked;
    asked.said = words(
        "--seq-length 4096 --micro-batch-size 1 --global-batch-size 32 --bf16 --use-distributed-optimizer "
        "--tokenizer-type GPT2BPETokenizer");
    asked.cluster = "h100-sxm:8";
    asked.model = "llama2-7b";
    CHECK_FALSE(assumes(launch::check(asked, in_order), "GPT2BPETokenizer"));
}

TEST_CASE("a tokenizer that the script leaves to its caller is one that is not known") {
    launch::CheckAsked asked;
    asked.said = launch::read_script("torchrun pretrain_gpt.py " + seven_billion +
                                         "--recompute-granularity full --recompute-method uniform "
                                         "--recompute-num-layers 1 --tokenizer-type SentencePieceTokenizer "
                                         "--tokenizer-model \"$2\"",
                                     "launch.sh");
    CHECK(asked.said.unset.empty());
    asked.cluster = "h200-sxm:8";
    const auto answer = launch::check(asked, in_order);
    CHECK(answer.verdict == Verdict::fits);
    CHECK(assumes(answer, "has 256 to 262208 entries, of which the most are counted"));
}
