#include "workloads/clips/sampled_clips.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "workloads/sample_work.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

struct ClipRow {
    double frames, fps;
    std::int64_t width, height;
    std::int64_t groups, across, down;  // by hand, from the sources that sampled_clips.hpp names
};

Clip clip_of(const ClipRow& row) { return {row.frames / row.fps, row.fps, row.width, row.height}; }

void check_rows(const SampledClips& rule, std::initializer_list<ClipRow> rows) {
    for (const ClipRow& row : rows) {
        CAPTURE(row.frames);
        const ClipGrid grid = sampled(rule, clip_of(row));
        CHECK(grid.groups == row.groups);
        CHECK(grid.width == row.across);
        CHECK(grid.height == row.down);
    }
}

Item only_item(const std::string& video, const Model& m) {
    const auto samples = parse_batch("b", R"({"id":"a","text_tokens":9,"videos":[)" + video + "]}", m);
    REQUIRE(samples.at(0).items.size() == 1);
    return samples[0].items[0];
}

}  // namespace

TEST_CASE("clips of Qwen2.5-VL have their frames thinned to pairs, and each frame between 128 and 768 tokens") {
    check_rows({.min_pixels = 128 * 28 * 28, .max_pixels = 768 * 28 * 28},
               {{240, 24, 1920, 1080, 10, 36, 20},      // 20 frames; scaled down by 1.856
                {81, 16, 832, 480, 5, 30, 17},          // 10.1 frames are 10; neither limit holds
                {3, 30, 640, 360, 1, 23, 13},           // 4 are the least, the clip has one pair
                {300, 30, 90, 100, 10, 11, 12},         // scaled up to 128 tokens
                {100'000, 25, 1280, 720, 384, 36, 20},  // 768 frames are the most
                {7, 1, 336, 336, 3, 12, 12}});          // fewer frames a second than are read
}

TEST_CASE("clips of Qwen3-VL have the pixels of all their frames between two numbers") {
    check_rows({.patch = 16, .min_pixels = 4'096, .max_pixels = 25'165'824, .whole_clip = true},
               {{240, 24, 1920, 1080, 10, 46, 26},    // 41.8 million pixels: scaled down
                {81, 16, 832, 480, 5, 26, 15},        // neither limit holds
                {5, 2.5, 640, 360, 2, 20, 11},        // 4 of its 5 frames
                {300, 30, 90, 20, 10, 4, 1},          // a side of less than one token is scaled up to it
                {100'000, 25, 1280, 720, 384, 7, 4},  // the more frames, the smaller each
                {9, 2, 500, 333, 5, 16, 10},          // the last frame stands for two
                {2, 24, 16, 16, 1, 2, 2}});           // scaled up to 4,096 pixels
}

TEST_CASE("a clip's groups of frames are read each for itself by the encoder, and its tokens by the language model") {
    const Model m = model("qwen2.5-vl-7b");
    const Item clip = only_item(R"({"frames":81,"fps":16,"width":832,"height":480})", m);
    CHECK((clip.tokens == 5 * 17 * 30 && clip.patches == 4 * clip.tokens && clip.spans == 5));
    const Item again = only_item(R"({"tokens":2550,"patches":10200,"seconds":5.0625,"spans":5})", m);
    CHECK(again == clip);
    CHECK(parse_batch("again", to_jsonl({{"a", 9, 9, {clip}}}), m)[0].items[0] == clip);
    const Item large = only_item(R"({"frames":81,"fps":16,"width":832,"height":480})", model("qwen3-vl-8b"));
    CHECK((large.tokens == 5 * 26 * 15 && large.spans == 5));
}

TEST_CASE("a clip's encoder does the work of its groups of frames, not of one long sequence") {
    const Model m = model("qwen2.5-vl-7b");
    const SampleWork work(m);
    const auto vit = [&](std::int64_t patches, std::int64_t spans) {
        Item item{Modality::video, patches / 4, patches};
        item.spans = spans;
        return work.of({"a", 0, 0, {item}}, 0);
    };
    CHECK(vit(10'200, 5) == doctest::Approx(5 * vit(2'040, 1)));
    CHECK(vit(10'200, 5) < vit(10'200, 1));
}

TEST_CASE("a clip without its width and height is refused where these decide how many tokens it has") {
    const Model m = model("qwen2.5-vl-7b");
    CHECK_THROWS_WITH_AS(static_cast<void>(only_item(R"({"seconds":4})", m)),
                         doctest::Contains("lacks width or height"), Error);
}

TEST_CASE("where a model reads images alone, a clip's refusal says that its frames may be given") {
    CHECK_THROWS_WITH_AS(static_cast<void>(only_item(R"({"seconds":4})", model("internvl3-38b"))),
                         "b:1: videos[0]: the model 'internvl3-38b' has no module that reads video items; give the "
                         "frames that your training takes of a clip as images of the sample",
                         Error);
}

TEST_CASE("a rule of sampled clips is written and read as it is") {
    const Model m = model("qwen3-vl-8b");
    REQUIRE(m.video.sampled.has_value());
    CHECK(m.video.sampled->whole_clip);
    CHECK(parse_model(JsonDocument("again.json", to_json(m))) == m);
}

// By the video processors of transformers 5.24.0, run on a CPU: src/transformers/models/qwen2_vl/
// video_processing_qwen2_vl.py:170 and :44, qwen3_vl/video_processing_qwen3_vl.py:139 and :75.
TEST_CASE("ten clips have the tokens of the released video processors") {
    struct Row {
        double seconds, fps;
        std::int64_t width, height, of_frames, of_clip;
    };
    const SampledClips of_frames{.min_pixels = 128 * 28 * 28, .max_pixels = 768 * 28 * 28},
        of_clip{.patch = 16, .min_pixels = 4'096, .max_pixels = 25'165'824, .whole_clip = true};
    for (const Row& row : std::initializer_list<Row>{{10, 24, 1280, 720, 7200, 8800},
                                                     {3.5, 30, 640, 480, 1173, 1200},
                                                     {60, 25, 1920, 1080, 43200, 11400},
                                                     {1, 30, 320, 240, 280, 160},
                                                     {0.5, 30, 448, 448, 512, 392},
                                                     {600, 24, 854, 480, 195840, 10752},
                                                     {20, 12, 1080, 1920, 14400, 11880},
                                                     {7.3, 29.97, 1440, 1080, 5376, 10710},
                                                     {120, 30, 640, 360, 35880, 10920},
                                                     {33, 60, 512, 512, 10692, 8448}}) {
        CAPTURE(row.seconds);
        const Clip clip{row.seconds, row.fps, row.width, row.height};
        const auto tokens = [&](const SampledClips& rule) {
            const ClipGrid grid = sampled(rule, clip);
            return grid.groups * grid.width * grid.height;
        };
        CHECK(tokens(of_frames) == row.of_frames);
        CHECK(tokens(of_clip) == row.of_clip);
    }
}
