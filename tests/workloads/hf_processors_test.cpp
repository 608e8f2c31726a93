// Files of image processors beside a config.json: how images become tokens, what must agree, what is assumed.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/support/shared.hpp"
#include "tests/support/temporary.hpp"
#include "workloads/hf_config.hpp"
#include "workloads/items.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

using Files = std::map<std::string, std::string>;

std::string kept_configuration(const std::string& name) {
    return read_file(testing::source_folder() / "tests/data/hf" / (name + ".json"));
}

Model beside(const std::string& name, const Files& files) {
    const testing::TemporaryFolder folder("processors");
    write_files({{folder.path() / "config.json", kept_configuration(name)}});
    for (const auto& [file, text] : files) write_files({{folder.path() / file, text}});
    return read_hf_model(folder.path());
}

Model with(const std::string& name, const std::string& text) {
    return beside(name, {{"preprocessor_config.json", text}});
}

std::string refusal(const std::string& name, const Files& files) {
    try {
        static_cast<void>(beside(name, files));
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "accepted";
}

bool assumes(const Model& model, const std::string& part) {
    return std::any_of(model.assumed.begin(), model.assumed.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("pixels of a processor's file are the limits of a native image") {
    struct Case {
        std::string model, text;
        std::int64_t least, most;
    };
    const std::string of_qwen3 = R"({"size":{"longest_edge":16777216,"shortest_edge":65536},"patch_size":16,)"
                                 R"("merge_size":2,"temporal_patch_size":2,"min_pixels":null})";
    const std::string of_glm = R"({"size":{"shortest_edge":12544,"longest_edge":9633792},"patch_size":14,)"
                               R"("temporal_patch_size":2,"merge_size":2})";
    const std::string of_kimi = R"({"in_token_limit":4096,"merge_kernel_size":[2,2],"patch_size":14})";
    for (const Case& c :
         {Case{"qwen2.5-vl-7b", R"({"min_pixels":3136,"max_pixels":12845056,"patch_size":14,"merge_size":2})", 4,
               16384},
          // What is said itself is in place of the size.
          Case{"qwen2.5-vl-7b", R"({"min_pixels":7840,"max_pixels":78400,"size":{"shortest_edge":1}})", 10, 100},
          Case{"qwen2.5-vl-7b", R"({"min_pixels":785,"max_pixels":1567})", 1, 1},
          Case{"qwen3-vl-8b", of_qwen3, 64, 16384}, Case{"glm-4.1v-9b", of_glm, 8, 6144},
          Case{"kimi-vl-a3b", of_kimi, 1, 1024},
          Case{"mistral-small-3.1-24b", R"({"patch_size":{"height":14,"width":14},"size":{"longest_edge":1120}})", 1,
               1600},
          Case{"gemma-4-31b", R"({"max_soft_tokens":560,"patch_size":16,"pooling_kernel_size":3})", 1, 560}}) {
        CAPTURE(c.model);
        const Model model = with(c.model, c.text);
        CHECK((model.image.min_tokens == c.least && model.image.max_tokens == c.most));
        CHECK(!assumes(model, "model card"));
        CHECK(model.source.ends_with("; images by preprocessor_config.json"));
    }
}

TEST_CASE("a limit that no file says stays the model card's, and is assumed") {
    const Model none = beside("qwen2.5-vl-7b", {});
    CHECK((none.image.min_tokens == 256 && none.image.max_tokens == 1280));
    CHECK(assumes(none,
                  "image.min_tokens and image.max_tokens are what the model card recommends: there is no "
                  "preprocessor_config.json"));
    const Model half = with("qwen2.5-vl-7b", R"({"min_pixels":3136})");
    CHECK((half.image.min_tokens == 4 && half.image.max_tokens == 1280));
    CHECK(assumes(half,
                  "image.max_tokens is what the model card recommends: preprocessor_config.json has no max_pixels"));
    const Model low = with("qwen2.5-vl-7b", R"({"max_pixels":78400})");
    CHECK((low.image.min_tokens == 1 && low.image.max_tokens == 100));
    CHECK(with("qwen2.5-vl-7b", R"({"min_pixels":7840000})").image.max_tokens == 10000);
}

TEST_CASE("processor_config.json has its processors inside") {
    const std::string text = R"({"image_processor":{"patch_size":14,"min_pixels":3136,"max_pixels":1003520},)"
                             R"("video_processor":{"patch_size":14,"fps":2},"processor_class":"P"})";
    const Model model = beside("qwen2.5-vl-7b", {{"processor_config.json", text}});
    CHECK((model.image.min_tokens == 4 && model.image.max_tokens == 1280));
    CHECK(assumes(model,
                  "what no file says of videos is as Qwen's tools have it: 2 frames a second, 4 to 768 of a clip"));
    const std::string other = R"({"max_pixels":784000})";
    const auto line = refusal("qwen2.5-vl-7b", {{"processor_config.json", text}, {"preprocessor_config.json", other}});
    CHECK(line.ends_with(
        "processor_config.json: image_processor.max_pixels: is 1003520, but another file beside it says 784000"));
}

TEST_CASE("a processor's file that contradicts the configuration is refused") {
    struct Case {
        std::string model, file, text, line;
    };
    const std::string images = "preprocessor_config.json", videos = "video_preprocessor_config.json";
    for (const Case& c :
         {Case{"qwen2.5-vl-7b", images, R"({"patch_size":16})",
               "patch_size: is 16, but the encoder's patches have 14 pixels (config.json)"},
          Case{"qwen2.5-vl-7b", videos, R"({"patch_size":16})",
               "patch_size: is 16, but the encoder's patches have 14 pixels (config.json)"},
          Case{"qwen2.5-vl-7b", images, R"({"merge_size":4})",
               "merge_size: is 4, but 2 x 2 patches make a token (config.json)"},
          Case{"qwen2.5-vl-7b", images, R"({"temporal_patch_size":1})",
               "temporal_patch_size: is 1, but 2 frames share a patch (config.json)"},
          Case{"qwen2.5-vl-7b", images, R"({"min_pixels":78400,"max_pixels":7840})",
               "max_pixels: is 7840, less than the least, 78400"},
          Case{"qwen2.5-vl-7b", images, R"({"max_pixels":783})", "max_pixels: is 783, less than one token"},
          Case{"llava-1.5-7b", images, R"({"crop_size":{"height":224,"width":224},"size":{"shortest_edge":224}})",
               "images are squares of 224 pixels, but the encoder takes 336 (config.json)"},
          Case{"gemma-3-4b", images, R"({"size":{"height":448,"width":448}})",
               "images are squares of 448 pixels, but the encoder takes 896 (config.json)"},
          Case{"qwen2.5-vl-7b", images, "[]", "is no object"}}) {
        const auto line = refusal(c.model, {{c.file, c.text}});
        CHECK_MESSAGE(line.find(c.file) != std::string::npos, line);
        CHECK_MESSAGE(line.ends_with(c.line), line);
    }
}

TEST_CASE("squares that processors scale to are the encoder's") {
    CHECK(with("gemma-3-4b", R"({"size":{"height":896,"width":896},"do_pan_and_scan":null})").image.fixed_pixels ==
          896);
    CHECK(with("llava-1.5-7b", R"({"crop_size":{"height":336,"width":336},"size":{"shortest_edge":336}})")
              .image.fixed_pixels == 336);
    CHECK(with("idefics3-8b", R"({"size":{"longest_edge":1456},"do_image_splitting":true})").image.fixed_pixels == 364);
}

TEST_CASE("files beside a configuration of another name are not its own") {
    const testing::TemporaryFolder folder("processors");
    write_files({{folder.path() / "mine.json", kept_configuration("qwen2.5-vl-7b")},
                 {folder.path() / "preprocessor_config.json", R"({"patch_size":16})"}});
    CHECK(read_hf_model(folder.path() / "mine.json").image.max_tokens == 1280);
}

TEST_CASE("limits of a video processor's file are those of clips, and what it lacks is said") {
    const std::string file = "video_preprocessor_config.json";
    const Model all = beside("qwen3-vl-8b", {{file, R"({"size":{"longest_edge":1048576,"shortest_edge":8192},"fps":1,)"
                                                    R"("min_frames":2,"max_frames":64,"patch_size":16})"}});
    REQUIRE(all.video.sampled.has_value());
    CHECK(*all.video.sampled == SampledClips{.patch = 16,
                                             .fps = 1,
                                             .min_frames = 2,
                                             .max_frames = 64,
                                             .min_pixels = 8192,
                                             .max_pixels = 1'048'576,
                                             .whole_clip = true});
    CHECK(!assumes(all, "videos"));
    const Model none = beside("qwen3-vl-8b", {});
    CHECK(none.video.sampled->max_pixels == 25'165'824);
    CHECK(assumes(none, "what no file says of videos is as Qwen3-VL's released files have it"));
    CHECK(assumes(beside("glm-4.1v-9b", {}), "videos are not read"));
}

namespace {

// Width and height of images, and what the released processors make of them: the functions of transformers 5.24.0 at
// these lines (src/transformers/models), run on a CPU.
constexpr std::array<std::array<std::int64_t, 2>, 20> sizes{
    {{640, 480},   {1920, 1080}, {336, 336}, {56, 56},    {28, 900},    {4000, 3000}, {813, 641},
     {1240, 1754}, {100, 2000},  {449, 447}, {1386, 677}, {1677, 2726}, {257, 356},   {2254, 445},
     {1557, 2447}, {297, 2138},  {939, 213}, {412, 1836}, {1772, 346},  {1045, 431}}};

constexpr std::string_view
    qwen3_file = R"({"size":{"shortest_edge":65536,"longest_edge":16777216},"patch_size":16,"merge_size":2})",
    glm_file = R"({"size":{"shortest_edge":12544,"longest_edge":9633792},"patch_size":14,"merge_size":2})";

struct Released {
    std::string_view model, file;
    std::array<std::int64_t, 20> tokens;
};

const std::array released{
    // qwen2_vl/image_processing_qwen2_vl.py:63
    Released{"qwen2.5-vl-7b",
             R"({"min_pixels":3136,"max_pixels":12845056,"patch_size":14,"merge_size":2,"temporal_patch_size":2})",
             {391, 2691, 144, 4, 32, 15301, 667, 2772, 284, 256, 1200, 5820, 117, 1280, 4872, 836, 272, 990, 756, 555}},
    // qwen2_vl/image_processing_qwen2_vl.py:63
    Released{"qwen3-vl-8b", qwen3_file, {300, 2040, 100, 64,  92,   11750, 500, 2145, 186, 196,
                                         903, 4420, 88,  980, 3724, 603,   203, 741,  605, 429}},
    // qwen2_vl/image_processing_qwen2_vl.py:63
    Released{"qwen3.6-35b-a3b", qwen3_file, {300, 2040, 100, 64,  92,   11750, 500, 2145, 186, 196,
                                             903, 4420, 88,  980, 3724, 603,   203, 741,  605, 429}},
    // glm4v/image_processing_glm4v.py:53
    Released{"glm-4.1v-9b", glm_file, {391,  2691, 144, 9,    32,   6030, 667, 2772, 284, 256,
                                       1200, 5820, 117, 1280, 4872, 836,  272, 990,  756, 555}},
    // glm4v/image_processing_glm4v.py:53
    Released{"glm-4.5v", glm_file, {391,  2691, 144, 9,    32,   6030, 667, 2772, 284, 256,
                                    1200, 5820, 117, 1280, 4872, 836,  272, 990,  756, 555}},
    // pixtral/image_processing_pixtral.py:49
    Released{
        "pixtral-12b",
        R"({"size":{"longest_edge":1024},"patch_size":{"height":16,"width":16}})",
        {1200, 2304, 441, 16, 114, 3072, 2091, 2944, 256, 812, 2048, 2560, 391, 832, 2624, 576, 826, 960, 832, 1728}},
    // pixtral/image_processing_pixtral.py:49, of patches of 28 pixels
    Released{"mistral-small-3.1-24b",
             R"({"size":{"longest_edge":1540},"patch_size":14})",
             {414, 1705, 144, 4, 33, 2310, 690, 2145, 165, 272, 1250, 1870, 130, 605, 1925, 440, 272, 715, 605, 608}},
    // rescale() of the repository's image_processing_kimi_vl.py
    Released{"kimi-vl-a3b",
             R"({"in_token_limit":4096,"patch_size":14,"merge_kernel_size":[2,2]})",
             {414, 1032, 144, 4, 33, 1036, 690, 1053, 288, 272, 1058, 1066, 130, 1095, 1066, 847, 272, 990, 832, 608}},
    // gemma3: mm_tokens_per_image
    Released{"gemma-3-27b",
             R"({"size":{"height":896,"width":896}})",
             {256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256}},
    // gemma4/image_processing_gemma4.py:33
    Released{"gemma-4-26b-a4b",
             R"({"max_soft_tokens":280,"patch_size":16,"pooling_kernel_size":3})",
             {266, 264, 256, 256, 188, 266, 252, 266, 222, 256, 253, 273, 266, 259, 260, 264, 245, 245, 259, 260}}};

}  // namespace

TEST_CASE("an image that is filled up to more tokens than its own is one that was resized") {
    const ItemRules rules(with("gemma-4-31b", R"({"max_soft_tokens":280,"patch_size":16,"pooling_kernel_size":3})"));
    const Item small = rules.image(336, 336, false), equal = rules.image(768, 768, false);
    CHECK((small.tokens == 256 && small.own == 9 * 7 * 7));
    CHECK((equal.tokens == 256 && equal.own == 0));
}

TEST_CASE("twenty images have the tokens of ten released processors") {
    for (const Released& one : released) {
        CAPTURE(one.model);
        const Model model = with(std::string(one.model), std::string(one.file));
        const ItemRules rules(model);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            CAPTURE(i);
            CHECK(rules.image(sizes[i][0], sizes[i][1], false).tokens == one.tokens[i]);
        }
    }
}
