// What is known of data that a launch names.
#include "launch/check_parts.hpp"
#include "pipeweaver/frameworks/data_set.hpp"
#include "pipeweaver/launch/said.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace pipeweaver;
using namespace pipeweaver::launch;

namespace {

SaidLaunch swift_launch(const std::string& more) {
    return read_script("swift sft --model Qwen/Qwen2.5-7B-Instruct " + more + "\n", "launch.sh");
}

}  // namespace

TEST_CASE("a data set is known by its names on hubs, whatever the case, subset and number of rows") {
    for (const auto* name : {"swift/self-cognition", "modelscope/self-cognition#500", "swift/self-cognition:qwen3#20",
                             "HF::modelscope/Self-Cognition"}) {
        CAPTURE(name);
        const auto* const set = frameworks::data_set(name);
        REQUIRE(set != nullptr);
        CHECK(set->most == 131);
    }
    REQUIRE(frameworks::data_set("Rowan/hellaswag") != nullptr);
    CHECK(frameworks::data_set("Rowan/hellaswag")->most == 0);  // nobody has published its longest sample
    for (const auto* name : {"", "self-cognition", "own/self-cognition", "data.jsonl", "swift/self"}) {
        CAPTURE(name);
        CHECK(frameworks::data_set(name) == nullptr);
    }
}

TEST_CASE("data is text alone where all of it is known to be, and nothing makes other samples of it") {
    CHECK(names_text_alone(swift_launch("--dataset modelscope/gsm8k AI-ModelScope/alpaca-gpt4-data-zh#500")));
    CHECK_FALSE(names_text_alone(swift_launch("--dataset modelscope/gsm8k AI-ModelScope/LaTeX_OCR")));
    CHECK_FALSE(names_text_alone(swift_launch("--dataset modelscope/gsm8k own.jsonl")));
    for (const auto* more : {"--external_plugins own.py", "--columns '{\"a\": \"query\"}'", "--cached_dataset own"})
        CHECK_FALSE(names_text_alone(swift_launch(std::string("--dataset modelscope/gsm8k ") + more)));
    CHECK_FALSE(names_text_alone(swift_launch("--max_length 512")));
    const auto veomni = [](const std::string& chat) {
        return read_script(
            "python tasks/train_text.py --model.model_path Qwen3.5-9B --data.max_seq_len 2048 "
            "--train.micro_batch_size 1 --data.chat_template " +
                chat + "\n",
            "launch.sh");
    };
    CHECK(names_text_alone(veomni("chatml")));
    CHECK_FALSE(names_text_alone(veomni("qwen3vl")));
}

TEST_CASE("the longest sample of known data is known by the tokenizer that counted it") {
    const auto qwen = workloads::find_model("qwen3-8b"), llama = workloads::find_model("llama3-8b");
    const auto both = swift_launch("--dataset swift/self-cognition#9 AI-ModelScope/alpaca-gpt4-data-zh#500");
    REQUIRE(longest_named(both, qwen));
    CHECK(longest_named(both, qwen)->tokens == 544 + 512);  // of the longer one, with what its template may add
    CHECK(longest_named(both, qwen)->data_set == "AI-ModelScope/alpaca-gpt4-data-zh");
    CHECK_FALSE(longest_named(both, llama));
    CHECK_FALSE(longest_named(swift_launch("--dataset swift/self-cognition modelscope/gsm8k"), qwen));
    CHECK(longest_named(swift_launch("--dataset swift/self-cognition --system 'You help.'"), qwen));
    CHECK(longest_named(swift_launch("--dataset swift/self-cognition --model_name robot --model_author us"), qwen));
    CHECK_FALSE(longest_named(swift_launch("--dataset swift/self-cognition --system prompt.txt"), qwen));
    const std::string words(100, 'w');  // each short enough, both together are not
    CHECK_FALSE(longest_named(
        swift_launch("--dataset swift/self-cognition --system " + words + " --model_name " + words), qwen));
}
