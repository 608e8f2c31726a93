// What is known of data that a launch names.
#include "launch/check_parts.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/frameworks/data_set.hpp"
#include "pipeweaver/launch/check.hpp"
#include "pipeweaver/launch/said.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

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
    CHECK(names_text_alone(swift_launch("--dataset 'zai-org/LongAlign-10k'")));
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

TEST_CASE("of data whose samples have images it is known how many, unless something makes others of it") {
    const auto automodel = [](const std::string& data) {
        return read_script(
            "automodel finetune vlm --model.pretrained_model_name_or_path google/gemma-3-4b-it "
            "--step_scheduler.local_batch_size 1 --dataset.path_or_dataset " +
                data + "\n",
            "launch.sh");
    };
    CHECK(most_images(automodel("mmoukouba/MedPix-VQA")) == 1);
    CHECK_FALSE(names_text_alone(automodel("naver-clova-ix/cord-v2")));
    CHECK_FALSE(most_images(automodel("own/images")));
    CHECK(most_images(swift_launch("--dataset modelscope/gsm8k")) == 0);
    CHECK(most_images(swift_launch("--dataset modelscope/gsm8k naver-clova-ix/cord-v2")) == 1);
    CHECK_FALSE(most_images(swift_launch("--dataset naver-clova-ix/cord-v2 --external_plugins own.py")));
    // Megatron-Bridge has short names, which are folders elsewhere.
    const auto bridge = [](const std::string& data) {
        return read_script(
            "torchrun scripts/training/run_recipe.py --recipe gemma3_vl_4b_sft_config "
            "dataset.source.dataset_name=" +
                data + "\n",
            "launch.sh");
    };
    CHECK(most_images(bridge("cord_v2")) == 1);
    CHECK(most_images(bridge("rdr")) == 1);
    CHECK_FALSE(most_images(bridge("raven")));  // several images
    CHECK_FALSE(most_images(swift_launch("--dataset medpix")));
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

TEST_CASE("of data whose questions alone are counted the longest is one of those that are answered by the model") {
    const auto qwen = workloads::find_model("qwen3-8b");
    const auto questions = swift_launch("--dataset AI-MO/NuminaMath-TIR#1000");
    CHECK_FALSE(longest_named(questions, qwen));
    REQUIRE(longest_named(questions, qwen, true));
    CHECK(longest_named(questions, qwen, true)->tokens == 1683 + 512);
    CHECK(counted_as(*longest_named(questions, qwen, true)).starts_with("no question of 'AI-MO/NuminaMath-TIR'"));
    const auto both = swift_launch("--dataset AI-MO/NuminaMath-TIR AI-ModelScope/alpaca-gpt4-data-en");
    REQUIRE(longest_named(both, qwen, true));  // of the other the whole sample, which is no shorter
    CHECK(longest_named(both, qwen, true)->tokens == 1683 + 512);
}

namespace {

// What is assumed of a launch on so many GPUs.
std::vector<std::string> assumed_of(const std::string& words, const std::string& cluster) {
    CheckAsked asked;
    asked.said = read_script(words + "\n", "launch.sh");
    asked.cluster = cluster;
    return check(asked, in_order).assumed;
}

bool has(const std::vector<std::string>& texts, const std::string& part) {
    return std::any_of(texts.begin(), texts.end(), [&](const std::string& one) { return contains(one, part); });
}

}  // namespace

TEST_CASE("samples are no longer than the longest of the data, whatever length a launch allows") {
    const std::string data = " --dataset AI-ModelScope/alpaca-gpt4-data-zh#500 --max_length ";
    const std::string counted = "no sample of 'AI-ModelScope/alpaca-gpt4-data-zh' has more than ";
    for (const std::string start :
         {"swift sft --model Qwen/Qwen3-0.6B --tuner_type lora --deepspeed zero2",
          "megatron sft --model Qwen/Qwen3-0.6B --micro_batch_size 2 --tensor_model_parallel_size 2"}) {
        CAPTURE(start);
        const auto longer = assumed_of(start + data + "4096", "h100-sxm:2");
        CHECK(has(longer, counted + "1056 tokens"));  // 544 and 512 beside; a multiple of 2 x 2, too
        CHECK_FALSE(has(longer, "samples are not said"));
        const auto shorter = assumed_of(start + data + "1024", "h100-sxm:2");
        CHECK_FALSE(has(shorter, counted));
        CHECK(has(shorter, "the longest that"));
        CHECK_FALSE(has(assumed_of(start + data + "4096 --system prompt.txt", "h100-sxm:2"), counted));
        CHECK_FALSE(has(assumed_of(start + " --packing true" + data + "4096", "h100-sxm:2"), counted));
    }
}

TEST_CASE("a length that nobody says is that of the data's questions and the answers behind them") {
    const std::string words =
        " --rlhf_type grpo --model Qwen/Qwen3-0.6B --reward_funcs accuracy --use_vllm true --vllm_mode server "
        "--dataset AI-MO/NuminaMath-TIR#1000 --max_completion_length 1024 ";
    for (const std::string start : {"swift rlhf --per_device_train_batch_size 1 --deepspeed zero2",
                                    "megatron rlhf --micro_batch_size 1 --global_batch_size 16"}) {
        CAPTURE(start);
        CHECK(has(assumed_of(start + words, "h100-sxm:8"), "no question of 'AI-MO/NuminaMath-TIR'"));
        CHECK_FALSE(has(assumed_of(start + words + "--external_plugins own.py", "h100-sxm:8"), "no question of"));
    }
}
