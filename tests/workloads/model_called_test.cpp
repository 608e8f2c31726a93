// Models by the names that people have for them.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

TEST_CASE("a model is known by the names of its repositories, folders and releases") {
    struct Called {
        std::string_view name, model;
    };
    for (const auto& one :
         {Called{"qwen2.5-7b", "qwen2.5-7b"},
          Called{"Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"},
          Called{"/models/Qwen2.5-7B-Instruct/", "qwen2.5-7b"},
          Called{"qwen3_32b", "qwen3-32b"},
          Called{"Qwen/Qwen3-30B-A3B-Thinking-2507-FP8", "qwen3-30b-a3b"},
          Called{"meta-llama/Llama-2-7b-chat-hf", "llama2-7b"},
          Called{"meta-llama/Llama-3.1-8B-Instruct", "llama3-8b"},
          Called{"OpenGVLab/InternVL2_5-78B-MPO", "internvl2.5-78b"},
          Called{"OpenGVLab/InternVL3-78B-Pretrained", "internvl3-78b"},
          Called{"Wan-AI/Wan2.1-T2V-14B-Diffusers", "wan2.1-t2v-14b"},
          Called{"deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"},
          Called{"VIT-BIGG-14", "vit-bigG-14"},
          Called{"deepseek_v3_16b", "deepseek-v2-lite"},
          Called{"output/Qwen3-8B/v0-20250701-101010/checkpoint-100", "qwen3-8b"},
          Called{"/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/b968", "qwen3-8b"},
          Called{"./Qwen3-VL-30B-A3B-Instruct-mcore", "qwen3-vl-30b-a3b"},
          Called{"llama4-17bx16e", "llama4-scout-109b"},  // torchtitan's name
          Called{"/root/.cache/modelscope/hub/models/Qwen/Qwen2___5-VL-7B-Instruct", "qwen2.5-vl-7b"},
          Called{"Wan-AI/Wan2.1-I2V-14B-480P-Diffusers/transformer", "wan2.1-i2v-14b"},
          Called{"FLUX.1-dev/flux1-dev.safetensors", "flux.1-dev"},
          Called{"zai-org/GLM-5.2-FP8", "glm-5"},
          Called{"nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", "nemotron-3-ultra-550b-a55b"},
          Called{"ByteDance-Seed/Seed-Coder-8B-Reasoning-bf16", "seed-coder-8b"},
          Called{"mistralai/Magistral-Small-2506", "mistral-small-24b"},
          Called{"allenai/OLMo-2-0425-1B-Instruct", "olmo-2-1b"},
          Called{"nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-BF16", "nemotron-3-nano-omni-30b-a3b"},
          Called{"iic/gme-Qwen2-VL-2B-Instruct", "qwen2-vl-2b"},
          Called{"Qwen/Qwen3-VL-Reranker-8B", "qwen3-vl-8b"},
          Called{"ZhipuAI/GLM-4.6V", "glm-4.5v"},
          Called{"mistralai/Devstral-Small-2-24B-Instruct-2512", "mistral-small-3.1-24b"},
          Called{"google/gemma-7b-it", "gemma-7b"}}) {
        CAPTURE(one.name);
        CHECK(model_called(one.name) == one.model);
    }
}

TEST_CASE("dashes may be left out, and be where the catalogue has none") {
    CHECK(model_called("/mine/qwen2.5vl-32b-instruct") == "qwen2.5-vl-32b");
    CHECK(model_called("/mine/qwen-1.5-7B/") == "qwen1.5-7b");
    CHECK(model_called("qwen1half-7b-chat") == "qwen1.5-7b");  // as ms-swift had it until 2.6
}

TEST_CASE("what no model is called is no model") {
    for (const auto* const name : {"", "/", "-instruct", "checkpoint-100", "runs/v2-mine/checkpoint-100", "my/own",
                                   "Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen", "sd-vae-f8", "mistralai/Mistral-7B",
                                   "llava-hf/llava-v1.6-mistral-7b-hf", "my/weights.safetensors", "flux.safetensors",
                                   "tiiuae/Falcon3-9B-Base", "Llama-3-18B", "Qwen2-57B", "qwen25-7b"}) {
        CAPTURE(name);
        CHECK(model_called(name).empty());
    }
}

TEST_CASE("every model of the catalogue is called by its own name") {
    for (const auto& name : model_names()) {
        CAPTURE(name);
        CHECK(model_called(name) == name);
        CHECK(model(name).name == name);
    }
}

TEST_CASE("a repository of a model that is known needs no file") {
    CHECK(find_model("Qwen/Qwen2.5-VL-7B-Instruct") == model("qwen2.5-vl-7b"));
    CHECK(find_model("hf:Qwen/Qwen2.5-VL-7B-Instruct") == model("qwen2.5-vl-7b"));
    CHECK(find_model("Qwen2.5-VL-7B-Instruct") == model("qwen2.5-vl-7b"));
    CHECK_THROWS_WITH_AS(static_cast<void>(find_model("Qwen/Qwen2.5-VL-8B")),
                         "--model: there is no file 'Qwen/Qwen2.5-VL-8B', and nothing is downloaded: save the model's "
                         "config.json and give hf:FILE, or take a name of `pipeweaver list models`; the nearest is "
                         "'qwen2.5-vl-3b'",
                         Error);
}

TEST_CASE("a name that is not known is like one that is") {
    CHECK(model_like("Qwen/Qwen3-VL-9B-Instruct") == "qwen3-vl-2b");
    CHECK(model_like("lama-3.1-8b") == "llama3-8b");
    CHECK(model_like("").empty());
}

TEST_CASE("a release of fewer bits is known by the model that it was made of, and is not that model") {
    CHECK(model_of_fewer_bits("TechxGenus/Meta-Llama-3-8B-Instruct-AWQ") == "llama3-8b");
    CHECK(model_of_fewer_bits("Qwen/Qwen2.5-VL-72B-Instruct-GPTQ-Int4") == "qwen2.5-vl-72b");
    CHECK(model_of_fewer_bits("unsloth/Meta-Llama-3.1-8B-Instruct-unsloth-bnb-4bit") == "llama3-8b");
    CHECK(model_of_fewer_bits("Qwen/Qwen2.5-VL-72B-Instruct").empty());
    CHECK(model_called("Qwen/Qwen2.5-VL-72B-Instruct-GPTQ-Int4").empty());
    CHECK(model_of_fewer_bits("Qwen/Qwen2.5-7B-Instruct-Int4") == "qwen2.5-7b");
    CHECK(has_fewer_bits("/cache/somebody__Qwen3-30B-A3B-Thinking-2507-AWQ"));  // of a model that is not known
    CHECK_FALSE(has_fewer_bits("Qwen/Qwen2.5-VL-72B-Instruct"));
}
