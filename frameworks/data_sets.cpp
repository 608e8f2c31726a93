#include "pipeweaver/base/text.hpp"
#include "pipeweaver/frameworks/data_set.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace pipeweaver::frameworks {

namespace {

// Its table of data sets counts tokens by Qwen2.5's template, of all rows of those that are not larger than 100,000.
// Of these three the mean, 59, 157 and 168, is of answers, too; other rows of it count questions alone.
constexpr std::string_view swift_table =
    "modelscope/ms-swift 3602360a docs/source_en/Instruction/Supported-models-and-datasets.md";
constexpr std::string_view swift_registry = "modelscope/ms-swift 3602360a swift/dataset/dataset/llm.py";
constexpr std::string_view swift_info = "modelscope/ms-swift 3602360a swift/dataset/data/dataset_info.json";
constexpr std::string_view automodel_text =
    "NVIDIA-NeMo/Automodel 0.5.0 components/datasets/llm/squad.py, hellaswag.py, vlm/datasets.py make_tulu3_dataset";

constexpr std::string_view automodel_images =
    "NVIDIA-NeMo/Automodel 0.5.0 components/datasets/vlm/datasets.py make_medpix_dataset, "
    "make_shopify_product_catalogue_dataset";
constexpr std::string_view bridge_images = "NVIDIA-NeMo/Megatron-Bridge 067f987d data/sources/hf.py, hf_adapters.py";

constexpr std::array all_data_sets{
    DataSet{"swift/self-cognition|modelscope/self-cognition", swift_table, 131},
    DataSet{"AI-ModelScope/alpaca-gpt4-data-zh|llm-wizard/alpaca-gpt4-data-zh", swift_table, 544},
    DataSet{"AI-ModelScope/alpaca-gpt4-data-en|vicgalle/alpaca-gpt4", swift_table, 607},
    DataSet{"modelscope/gsm8k|openai/gsm8k", swift_table, 0, 241},
    DataSet{"AI-MO/NuminaMath-TIR|AI-ModelScope/NuminaMath-TIR", swift_table, 0, 1683},
    DataSet{"AI-MO/NuminaMath-CoT|AI-ModelScope/NuminaMath-CoT", swift_info},
    DataSet{"open-r1/DAPO-Math-17k-Processed", swift_table, 0, 1517},
    DataSet{"liucong/Chinese-DeepSeek-R1-Distill-data-110k-SFT", swift_info},
    DataSet{"swift/Chinese-Qwen3-235B-2507-Distill-data-110k-SFT", swift_info},
    DataSet{"swift/Chinese-Qwen3-235B-Thinking-2507-Distill-data-110k-SFT", swift_info},
    DataSet{"AI-ModelScope/function-calling-chatml", swift_registry},
    DataSet{"AI-ModelScope/LongAlpaca-12k|Yukang/LongAlpaca-12k", swift_registry},
    DataSet{"AI-ModelScope/orpo-dpo-mix-40k|mlabonne/orpo-dpo-mix-40k", swift_registry},
    DataSet{"hjh0119/shareAI-Llama3-DPO-zh-en-emoji", swift_registry},
    DataSet{"AI-ModelScope/ultrafeedback-binarized-preferences-cleaned-kto", swift_registry},
    DataSet{"ZhipuAI/LongWriter-6k|zai-org/LongWriter-6k", swift_info},
    DataSet{"zai-org/LongAlign-10k|THUDM/LongAlign-10k",
            "arXiv 2401.18058 and its card at Hugging Face: modalities: text"},
    DataSet{"DAMO_NLP/jd", swift_registry},
    DataSet{"lvjianjin/AdvertiseGen|shibing624/AdvertiseGen", swift_registry},
    DataSet{"sapientinc/sudoku-extreme-1k", swift_registry},
    DataSet{"LLM-Research/xlam-function-calling-60k|Salesforce/xlam-function-calling-60k", swift_registry},
    DataSet{"AI-ModelScope/ruozhiba", swift_registry},
    DataSet{"rajpurkar/squad", automodel_text},
    DataSet{"rowan/hellaswag", automodel_text},
    DataSet{"allenai/tulu-3-sft-mixture", automodel_text},
    DataSet{.names = "mmoukouba/MedPix-VQA", .source = automodel_images, .images = 1},
    DataSet{.names = "rdr|quintend/rdr-items", .source = bridge_images, .images = 1},
    DataSet{.names = "Shopify/product-catalogue", .source = automodel_images, .images = 1},
    DataSet{.names = "cord_v2|naver-clova-ix/cord-v2", .source = bridge_images, .images = 1},
    DataSet{.names = "medpix", .source = bridge_images, .images = 1},
};

bool is_called(const DataSet& row, const std::string& name) {
    for (std::size_t at = 0; at <= row.names.size();) {
        const std::size_t end = std::min(row.names.find('|', at), row.names.size());
        if (in_lower_case(row.names.substr(at, end - at)) == name) return true;
        at = end + 1;
    }
    return false;
}

}  // namespace

const DataSet* data_set(std::string_view named) {
    for (const std::string_view hub : {"HF::", "MS::"})
        if (named.starts_with(hub)) named.remove_prefix(hub.size());
    const std::string name = in_lower_case(named.substr(0, named.find_first_of(":#")));
    const auto* const found = std::find_if(all_data_sets.begin(), all_data_sets.end(),
                                           [&](const DataSet& row) { return is_called(row, name); });
    return found == all_data_sets.end() ? nullptr : found;
}

}  // namespace pipeweaver::frameworks
