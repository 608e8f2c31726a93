// Items that a model's rules give other sizes than their own: which those are, and what is said of them.
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

using Lines = std::vector<std::string>;

// Samples of one item each.
std::vector<Sample> samples(const Model& model, const std::string& list, const std::vector<std::string>& items) {
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i)
        text += "{\"id\":\"" + std::to_string(i) + "\",\"text_tokens\":1,\"" + list + "\":[{" + items[i] + "}]}\n";
    return parse_batch("b.jsonl", text, model);
}

std::vector<std::string> images(std::size_t large, std::size_t fitting) {
    std::vector<std::string> all(large, R"("width":2800,"height":1400)");  // 100 x 50 tokens of 28 pixels
    all.insert(all.end(), fitting, R"("width":560,"height":560)");
    return all;
}

}  // namespace

TEST_CASE("images that a rule clips are counted, with what that saves and how to change it") {
    const Model m = model("qwen2.5-vl-7b");  // 28 pixels a token, 256 to 1280 of them
    const auto batch = samples(m, "images", images(3, 1));
    CHECK(batch[0].items[0].own == 4 * 5000);
    CHECK(batch[3].items[0].own == 0);
    // 50 x 25 tokens are left of 100 x 50.
    CHECK(
        resized(batch, m) ==
        Lines{"3 of 4 images were resized by the model's rule (256 to 1280 tokens) and have 4.0x fewer tokens than at "
              "their own sizes; to change that edit image.min_tokens and image.max_tokens in the model file "
              "(pipeweaver show MODEL prints it)"});
    CHECK(assumed_sizes("", batch, m) == resized(batch, m));
}

TEST_CASE("what is said follows the model's rule") {
    Model m = model("qwen2.5-vl-7b");
    m.image.max_tokens = 5000;
    CHECK(resized(samples(m, "images", images(3, 1)), m).empty());
    m.image.min_tokens = 1600;
    const auto lines = resized(samples(m, "images", images(1, 1)), m);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].starts_with(
        "1 of 2 images were resized by the model's rule (1600 to 5000 tokens) and have 4.0x more"));
    m.image = {.patch = 14, .merge = 2, .fixed_pixels = 560};
    CHECK(resized(samples(m, "images", images(0, 2)), m).empty());
    const auto square = resized(samples(m, "images", images(1, 1)), m);
    REQUIRE(square.size() == 1);
    CHECK(
        square[0].starts_with("1 of 2 images were resized by the model's rule (all 560 x 560 pixels) and have 12.5x "
                              "fewer"));
}

TEST_CASE("a twentieth may be resized without a word, and items given in tokens are") {
    const Model m = model("qwen2.5-vl-7b");
    CHECK(resized(samples(m, "images", images(1, 19)), m).empty());
    CHECK(resized(samples(m, "images", images(2, 18)), m).size() == 1);
    CHECK(resized(samples(m, "images", {R"("tokens":1280,"patches":5120)"}), m).empty());
    CHECK(resized(parse_batch("b.jsonl", to_jsonl(samples(m, "images", images(3, 1))), m), m).empty());
}

TEST_CASE("clips are scaled, thinned and cut: their own pixels, frames and seconds are compared") {
    const Model m = model("wan2.1-t2v-14b");  // 256 x 448 pixels, 16 frames a second, 16 s
    const auto positions = [&](const char* clip) {
        const Item item = samples(m, "videos", {clip})[0].items[0];
        return std::pair(item.patches, item.own);
    };
    CHECK(positions(R"("seconds":5)") == std::pair<std::int64_t, std::int64_t>(20 * 448, 0));
    CHECK(positions(R"("seconds":5,"width":512,"height":448)").second == 2 * 20 * 448);
    CHECK(positions(R"("seconds":5,"fps":32)").second == 40 * 448);
    CHECK(positions(R"("seconds":5,"fps":8)") == std::pair<std::int64_t, std::int64_t>(10 * 448, 0));
    CHECK(positions(R"("seconds":32)").second == 128 * 448);
    CHECK(resized(samples(m, "videos", {R"("seconds":5,"width":512,"height":448)"}), m) ==
          Lines{"1 of 1 clips were resized by the model's rule (256 x 448 pixels, 16 frames a second, the first 16 s) "
                "and have 2.0x fewer tokens than at their own sizes; to change that edit video in the model file "
                "(pipeweaver show MODEL prints it; without width and height there each clip keeps its own)"});
}

TEST_CASE("a video rule without width and height keeps each clip's own, rounded to whole patches, and says so") {
    Model m = model("wan2.1-t2v-14b");
    m.video.width = m.video.height = 0;
    const auto positions = [&](const char* clip) { return samples(m, "videos", {clip})[0].items[0]; };
    // 81 frames are 1 + 80 / 4 latent ones.
    CHECK(positions(R"("frames":81,"fps":16,"width":832,"height":480)").patches == 21 * 52 * 30);
    CHECK(positions(R"("frames":81,"fps":16,"width":480,"height":832)").patches == 21 * 30 * 52);
    CHECK(positions(R"("frames":81,"fps":16,"width":835,"height":490)").patches == 21 * 52 * 31);
    CHECK(positions(R"("frames":81,"fps":16,"width":3,"height":480)").patches == 21 * 30);
    // Half a patch goes to the even number, as for images.
    CHECK(positions(R"("frames":81,"fps":16,"width":840,"height":488)").patches == 21 * 52 * 30);
    CHECK(resized(samples(m, "videos", {R"("frames":81,"fps":16,"width":480,"height":832)"}), m).empty());
    const auto odd =
        samples(m, "videos", {R"("seconds":5,"width":835,"height":480)", R"("seconds":5,"width":832,"height":480)"});
    CHECK(resized(odd, m) ==
          Lines{"1 of 2 clips have a side that is no multiple of 16 pixels, and are rounded to whole latent patches "
                "(video.spatial of the model file)"});
    const auto cut = resized(samples(m, "videos", {R"("seconds":32,"width":832,"height":480)"}), m);
    CHECK(cut == Lines{"1 of 1 clips were resized by the model's rule (16 frames a second, the first 16 s) and have "
                       "2.0x fewer tokens than at their own sizes; to change that edit video in the model file "
                       "(pipeweaver show MODEL prints it)"});
}

TEST_CASE("data sets that only count images say nothing of their sizes") {
    for (const auto* name : {"dip-vlm-s", "qwen2.5-vl-7b"})
        CHECK(resized({draw("vlm-mix", model(name), 1, 0), draw("vlm-mix", model(name), 1, 1)}, model(name)).empty());
    const Model m = model("qwen2.5-vl-7b");
    CHECK(resized({draw("constant-9+1x2800px", m, 1, 0)}, m).size() == 1);
}

TEST_CASE("a sample is filled with text, or with items of which an encoder has most to do") {
    const auto filled = filled_samples(model("qwen2.5-vl-7b"), 100);  // 4 patches a token
    REQUIRE(filled.size() >= 2);
    CHECK(filled[0].with == Modality::text);
    CHECK(filled[0].sample.text_tokens == 100);
    CHECK(filled[1].with == Modality::image);
    CHECK(filled[1].sample.text_tokens == 0);
    CHECK(filled[1].sample.items.at(0).tokens == 100);
    CHECK(filled[1].sample.items.at(0).patches == 400);
    // 64 x 64 patches of an image are 256 tokens.
    CHECK(filled_samples(model("gemma-3-4b"), 100).at(1).sample.items.at(0).patches == 1600);
    // As many as there is room for, and a part of one: nothing is left out.
    const auto many = filled_samples(model("gemma-3-4b"), 600).at(1).sample;
    REQUIRE(many.items.size() == 3);
    CHECK(many.items[1].patches == 4096);
    CHECK(many.items[2].tokens == 88);
    CHECK(many.tokens() == 600);
    // With one image at most the rest is text, and nothing else is in it.
    const auto one = filled_samples(model("gemma-3-4b"), 600, 1);
    REQUIRE(one.size() == 2);
    CHECK(one[1].sample.items.size() == 1);
    CHECK(one[1].sample.text_tokens == 344);
    CHECK(one[1].sample.tokens() == 600);
    CHECK(filled_samples(model("qwen2.5-omni-7b"), 100, 1).size() == 2);
    // An image may be cut into tiles, or larger than the limit that is assumed: it is counted as all positions.
    for (const auto* name : {"internvl3-38b", "internvl3-8b", "deepseek-vl2", "qwen2.5-vl-7b"}) {
        CAPTURE(name);
        const auto whole = filled_samples(model(name), 2000, 1);
        REQUIRE(whole.size() == 2);
        CHECK(whole[1].sample.items.size() > 1);
        CHECK(whole[1].sample.text_tokens == 0);
    }
    // Gemma 4 fills an image up to 280 positions.
    CHECK(filled_samples(model("gemma-4-31b"), 600, 1).at(1).sample.text_tokens == 320);
    CHECK(filled_samples(model("gemma-3-4b"), 600, 0).size() == 1);
    CHECK(filled_samples(model("qwen2.5-7b"), 100).size() == 1);
    // Images beside the sequence, and audio that is padded to half a minute: positions bound neither.
    CHECK(filled_samples(model("llama-3.2-11b-vision"), 100).empty());
    CHECK(filled_samples(model("qwen2-audio-7b"), 100).empty());
    CHECK(filled_samples(model("qwen2.5-omni-7b"), 100).size() >= 3);
}
