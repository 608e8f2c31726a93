#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

struct Means {
    double items = 0, text = 0, seconds = 0;
};

Means means(std::string_view dataset, const Model& m, std::uint64_t count = 40'000) {
    Means sum;
    for (std::uint64_t number = 0; number < count; ++number) {
        const Sample sample = draw(dataset, m, 1, number);
        sum.items += static_cast<double>(sample.items.size());
        sum.text += static_cast<double>(sample.text_tokens);
        for (const auto& item : sample.items) sum.seconds += item.seconds;
    }
    const auto n = static_cast<double>(count);
    return {sum.items / n, sum.text / n, sum.seconds / n};
}

// dip-vlm-s without limits, so that nothing is cut.
Model unlimited() {
    Model m = model("dip-vlm-s");
    m.microbatch_tokens = 1'000'000;
    m.most_items = 0;
    return m;
}

}  // namespace

TEST_CASE("drawn documents have the means of their quantiles, near the published ones") {
    const auto obelics = means("obelics", unlimited());
    // Integrals of the quantile functions: 2.655 images (rounded down) and 852.5 text tokens.
    CHECK(obelics.items == doctest::Approx(2.655).epsilon(0.015));
    CHECK(obelics.text == doctest::Approx(852.5).epsilon(0.015));
    // The quantiles were fitted to these; their integrals lie 6 % and 5 % above.
    CHECK(obelics.items == doctest::Approx(2.50).epsilon(0.07));
    CHECK(obelics.text == doctest::Approx(816).epsilon(0.06));

    const auto laion = means("laion-2b", unlimited());
    CHECK(laion.items == 1);
    CHECK(laion.text == doctest::Approx(16.4).epsilon(0.04));

    CHECK(means("scienceqa", unlimited()).items == doctest::Approx(10'332.0 / 21'208).epsilon(0.02));
}

TEST_CASE("drawn clips have the published mean length before they are cut to 16 seconds") {
    Model m = model("dip-t2v-s");
    m.video.max_seconds = 1'000;
    m.most_video_seconds = 0;
    CHECK(means("internvid", m).seconds == doctest::Approx(11.7).epsilon(0.08));
    CHECK(means("internvid", model("dip-t2v-s")).seconds < 10);
}

TEST_CASE("a mixture takes its parts by weight") {
    // Only LAION has samples of one image and at most 77 text tokens that are not OBELICS' or ScienceQA's: count
    // images.
    const auto mix = means("vlm-mix", unlimited());
    const auto obelics = means("obelics", unlimited());
    const auto question = means("scienceqa", unlimited());
    CHECK(mix.items == doctest::Approx(0.5 * obelics.items + 0.4 + 0.1 * question.items).epsilon(0.03));
    CHECK(mix.text == doctest::Approx(0.5 * obelics.text + 0.4 * 16.4 + 0.1 * question.text).epsilon(0.03));
}

TEST_CASE("a sample depends on data set, seed and number alone") {
    const Model m = model("dip-vlm-m");
    std::map<std::uint64_t, Sample> forwards;
    for (std::uint64_t number = 0; number < 200; ++number) forwards[number] = draw("vlm-mix", m, 7, number);
    for (std::uint64_t number = 200; number-- > 0;) CHECK(draw("vlm-mix", m, 7, number) == forwards[number]);

    int same = 0;
    for (std::uint64_t number = 0; number < 200; ++number)
        same += draw("vlm-mix", m, 8, number).text_tokens == forwards[number].text_tokens ? 1 : 0;
    CHECK(same < 40);
    CHECK(forwards[3].id == "vlm-mix-3");
}

TEST_CASE("a drawn batch is the samples' longest prefix that fills so many microbatches") {
    const Model m = model("dip-vlm-m");
    const auto batch = draw_batch("vlm-mix", m, 1, 16);

    CHECK(batch.microbatches.size() == 16);
    CHECK(batch.microbatches.back().samples.back() == batch.samples.size() - 1);
    for (std::size_t i = 0; i < batch.samples.size(); ++i) CHECK(batch.samples[i] == draw("vlm-mix", m, 1, i));
    auto one_more = batch.samples;
    one_more.push_back(draw("vlm-mix", m, 1, batch.samples.size()));
    CHECK(pack(one_more, m).size() == 17);
}

TEST_CASE("so many samples are drawn in the order of any other batch") {
    const Model m = model("dip-vlm-m");
    const auto batch = draw_samples("vlm-mix", m, 1, 40);

    REQUIRE(batch.samples.size() == 40);
    const auto longer = draw_batch("vlm-mix", m, 1, 16);
    for (std::size_t i = 0; i < batch.samples.size(); ++i) CHECK(batch.samples[i] == longer.samples[i]);
    CHECK(batch.microbatches.size() == pack(batch.samples, m).size());
}

TEST_CASE("drawn batches of the two kinds of published set-ups vary as they should") {
    const auto vlm = draw_batch("vlm-mix", model("dip-vlm-m"), 1, 64);
    std::size_t least = 48, most = 0;
    double tokens = 0;
    for (const auto& microbatch : vlm.microbatches) {
        tokens += static_cast<double>(microbatch.tokens);
        least = std::min(least, microbatch.items.size());
        most = std::max(most, microbatch.items.size());
    }
    CHECK(most >= 3 * least);
    CHECK(tokens / 64 > 0.8 * 8192);

    const auto t2v = draw_batch("t2v-mix", model("dip-t2v-s"), 1, 64);
    for (const auto& microbatch : t2v.microbatches) {
        CHECK(!microbatch.items.empty());
        CHECK(microbatch.items.size() <= 8);
        for (const auto& ref : microbatch.items) {
            CHECK(ref.size.target);
            CHECK(ref.size.tokens == 0);
            CHECK(ref.size.patches % (3 * 16 * 28) == 0);
            CHECK(ref.size.patches <= 45 * 16 * 28);
        }
    }
}

TEST_CASE("documents longer than a microbatch lose text first, then items") {
    Model m = model("dip-vlm-s");
    m.microbatch_tokens = 400;  // two images and 62 tokens
    bool text_cut = false;
    for (std::uint64_t number = 0; number < 300; ++number) {
        const Sample whole = draw("obelics", unlimited(), 1, number);
        const Sample cut = draw("obelics", m, 1, number);
        const std::size_t images = std::min<std::size_t>(whole.items.size(), 2);
        CHECK(cut.items.size() == images);
        CHECK(cut.text_tokens ==
              std::min<std::int64_t>(whole.text_tokens, 400 - 169 * static_cast<std::int64_t>(images)));
        CHECK(cut.loss_tokens == cut.text_tokens);
        text_cut |= cut.text_tokens < whole.text_tokens;
    }
    CHECK(text_cut);
}

TEST_CASE("audio is drawn for models that hear, by an encoder or as tokens") {
    const Sample encoded = draw("speech", model("step-audio-2-mini"), 1, 5);
    REQUIRE(encoded.items.size() == 1);
    const double seconds = encoded.items[0].seconds;
    CHECK(static_cast<double>(encoded.items[0].patches) == doctest::Approx(50 * seconds).epsilon(0.05));
    CHECK(static_cast<double>(encoded.items[0].tokens) == doctest::Approx(12.5 * seconds).epsilon(0.1));

    const Sample direct = draw("speech", model("step-audio-130b"), 1, 5);
    CHECK(static_cast<double>(direct.items[0].tokens) == doctest::Approx(41.6 * seconds).epsilon(0.05));
    CHECK(direct.items[0].patches == 0);
}

TEST_CASE("an unknown data set is refused with the nearest name, one the model cannot read by its items") {
    CHECK_THROWS_WITH_AS(draw("vlm-mux", model("dip-vlm-s"), 1, 0),
                         "unknown data set 'vlm-mux'; did you mean 'vlm-mix'?", Error);
    CHECK(try_draw("vlm-mux", model("dip-vlm-s"), 1, 0).why_not ==
          "unknown data set 'vlm-mux'; did you mean 'vlm-mix'?");
    CHECK(try_draw("vlm-mix", model("dip-vlm-s"), 1, 0).why_not.empty());
    CHECK_THROWS_WITH_AS(draw("vlm-mix", model("llama3-8b"), 1, 0),
                         "data set 'obelics' has image items, which the model 'llama3-8b' neither reads nor makes",
                         Error);
}

TEST_CASE("every data set is called assumed and says what it was fitted to") {
    const auto all = datasets();
    CHECK(all.size() == 13);
    for (const auto& dataset : all) {
        CHECK(dataset.assumed == (dataset.name != "constant-SIZES" && dataset.name != "uniform-RANGES"));
        CHECK(!dataset.about.empty());
    }
}

TEST_CASE("data sets of text alone have their published means, and go with models that read no images") {
    for (const auto& [set, mean] : {std::pair("c4", 427.0), std::pair("ultrachat", 1467.0)}) {
        const std::string name = set;
        CAPTURE(name);
        double sum = 0;
        for (std::uint64_t number = 0; number < 4'000; ++number) {
            const Sample one = draw(name, model("llama3-8b"), 1, number);
            CHECK(one.items.empty());
            sum += static_cast<double>(one.text_tokens);
        }
        CHECK(sum / 4'000 == doctest::Approx(mean).epsilon(0.05));
    }
    CHECK(draw_batch("c4", model("llama3-8b"), 1, 2).microbatches.size() == 2);
}

TEST_CASE("clips and audio are said by seconds, clips with fewer frames a second than the model reads keep theirs") {
    const Model t2v = model("dip-t2v-s");  // 16 frames a second, 17 frames make 3 of 16 x 28 patches
    CHECK(draw("constant-0+8.5s", t2v, 1, 0).items == std::vector{Item{Modality::video, 0, 24 * 16 * 28, 8.5, true}});
    CHECK(draw("constant-0+8.5s@30fps", t2v, 1, 0).items[0].patches == 24 * 16 * 28);
    CHECK(draw("constant-0+8.5s@4fps", t2v, 1, 0).items[0].patches == 2 * 3 * 16 * 28);  // 34 frames
    const auto heard = draw("constant-40+12s-audio", model("step-audio-2-mini"), 1, 0);
    CHECK(heard.items == std::vector{Item{Modality::audio, 150, 600, 12, false}});
    CHECK(heard.text_tokens == 40);
    for (const auto* wrong : {"constant-4+2s@fps", "constant-4+2s@0fps", "constant-4+0s-audio", "constant-4+2s-audi",
                              "constant-4+2s-audio+3s"})
        CHECK_THROWS_WITH_AS(static_cast<void>(draw(wrong, t2v, 1, 0)), doctest::Contains("constant-40+12s-audio"),
                             Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(draw("constant-40+12s-audio", t2v, 1, 0)),
                         "data set 'constant-40+12s-audio' has audio items, which the model 'dip-t2v-s' neither reads "
                         "nor makes",
                         Error);
}

TEST_CASE("clips of a range of seconds are drawn evenly") {
    const Model t2v = model("dip-t2v-s");
    double least = 100, most = 0;
    for (std::uint64_t number = 0; number < 200; ++number) {
        const Sample one = draw("uniform-0+2..8s@8fps", t2v, 1, number);
        REQUIRE(one.items.size() == 1);
        least = std::min(least, one.items[0].seconds);
        most = std::max(most, one.items[0].seconds);
    }
    CHECK((least >= 2 && least < 2.3 && most <= 8 && most > 7.7));
    CHECK(draw("uniform-0+5..5s", t2v, 1, 0).items == draw("constant-0+5s", t2v, 1, 0).items);
    for (const auto* wrong : {"uniform-0+8..2s", "uniform-0+2..s", "constant-0+2..8s", "uniform-0+0..2s"})
        CHECK_THROWS_AS(static_cast<void>(draw(wrong, t2v, 1, 0)), Error);
}

TEST_CASE("what is assumed of sizes is said where a batch has such items") {
    const auto said = [](const char* dataset, const char* of) {
        const Model m = model(of);
        return assumed_sizes(dataset, draw_batch(dataset, m, 1, 1).samples, m);
    };
    CHECK(said("c4", "llama3-8b").empty());
    CHECK(said("vlm-mix", "dip-vlm-s").empty());  // all images are scaled to one size
    CHECK(said("vlm-mix", "qwen2.5-vl-7b") ==
          std::vector<std::string>{"images of vlm-mix have 512 x 512 pixels: it gives their number alone"});
    CHECK(said("constant-9+1x500px", "qwen2.5-vl-7b").empty());
    CHECK(
        said("t2v-mix", "dip-t2v-s") ==
        std::vector<std::string>{"clips given by seconds or frames are scaled to 256 x 448 pixels and read at 16 "
                                 "frames a second, or all of theirs if these are fewer, the first 16 s of each (video "
                                 "of the model)"});
    CHECK(said("speech", "step-audio-2-mini") ==
          std::vector<std::string>{"audio given by seconds has 12.5 tokens and 50 positions of its encoder a second "
                                   "(audio of the model)"});
}

TEST_CASE("clips of a data set have an assumed size where the model keeps theirs, since it gives none") {
    Model m = model("wan2.1-t2v-14b");
    const Sample scaled = draw("constant-0+5s", m, 1, 0);
    m.video.width = m.video.height = 0;
    CHECK(draw("constant-0+5s", m, 1, 0) == scaled);
    const auto said = [&](std::string_view dataset) { return assumed_sizes(dataset, {scaled}, m); };
    const std::string rest =
        "and read at 16 frames a second, or all of theirs if these are fewer, the first 16 s of each (video of the "
        "model)";
    CHECK(said("constant-0+5s") ==
          std::vector{"clips given by seconds or frames are taken as 256 x 448 pixels, since constant-0+5s has no "
                      "sizes of them, " +
                      rest});
    CHECK(said("") == std::vector{"clips given by seconds or frames keep their sizes, to whole latent patches of 16 x "
                                  "16 pixels, " +
                                  rest});
    m.video.spatial = 1000;  // a patch larger than the assumed frame
    CHECK(draw("constant-0+5s", m, 1, 0).items[0].patches == 20);
}

TEST_CASE("samples of a data set that are too long are cut, or refused, dropped or whole as the job says") {
    Model m = model("llama3-8b");
    m.microbatch_tokens = 400;
    const auto longest = [&] {
        std::int64_t most = 0;
        for (const Sample& one : draw_batch("c4", m, 1, 40).samples) most = std::max(most, one.tokens());
        return most;
    };
    CHECK(longest() == 400);
    m.too_long = TooLong::drop;
    const auto kept = draw_batch("c4", m, 1, 40);
    CHECK(longest() < 400);
    CHECK(kept.microbatches.size() == 40);
    CHECK(kept.dropped.size() > 10);
    CHECK(kept.dropped.front().starts_with("c4-"));
    m.too_long = TooLong::own;
    CHECK(longest() > 400);
    for (const Packing packing : packings()) {
        CAPTURE(name_of(packing));
        for (const auto& one : draw_batch("c4", m, 1, 40, packing).microbatches)
            CHECK((one.tokens <= 400 || one.samples.size() == 1));
    }
    CHECK(draw_batch("c4", m, 1, 40).microbatches.size() == 40);
    CHECK(draw_batch("constant-500", m, 1, 3).microbatches.size() == 3);
    m.too_long = TooLong::error;
    CHECK_THROWS_WITH_AS(draw_batch("c4", m, 1, 40), doctest::Contains("a microbatch of 'llama3-8b' holds 400"), Error);
    m.too_long = TooLong::drop;
    CHECK_THROWS_WITH_AS(draw_batch("constant-500", m, 1, 3),
                         "data set 'constant-500' has nothing that a microbatch of 'llama3-8b' takes", Error);
}

TEST_CASE("constant lengths fill microbatches with samples of that many tokens, of text alone") {
    auto model = workloads::model("llama3-8b");
    model.microbatch_tokens = 4096;
    const auto drawn = draw_batch("constant-1024", model, 1, 3);
    CHECK(drawn.microbatches.size() == 3);
    CHECK(drawn.samples.size() == 12);
    for (const auto& microbatch : drawn.microbatches) CHECK(microbatch.lengths == std::vector<std::int64_t>(4, 1024));
    CHECK_THROWS_WITH_AS(
        static_cast<void>(draw("constant-8192", model, 1, 0)),
        "data set 'constant-8192': a sample has 8192 tokens, allowed are at most 4096: a microbatch of 'llama3-8b' "
        "(microbatch_tokens of its model file, or --microbatch-tokens; --too-long own packs it alone)",
        Error);
    for (const auto* wrong : {"constant-", "constant-0", "constant-5x", "constant-5+x3px", "constant-5+0x3px",
                              "constant-5+1s2", "constant--5", "constant-1+2s+1x3px"})
        CHECK_THROWS_WITH_AS(static_cast<void>(draw(wrong, model, 1, 0)),
                             doctest::Contains("allowed are constant-4096"), Error);
    CHECK_THROWS_WITH_AS(
        static_cast<void>(draw("constant-8+1x28px", model, 1, 0)),
        "data set 'constant-8+1x28px' has image items, which the model 'llama3-8b' neither reads nor makes", Error);
}

TEST_CASE("sizes are drawn evenly from the ranges that a name says") {
    const auto model = workloads::model("dip-vlm-s");
    auto free = model;
    free.image.fixed_pixels = 0;
    std::int64_t least = 1000, most = 0, smallest = 1 << 20, largest = 0;
    for (std::uint64_t number = 0; number < 400; ++number) {
        const Sample one = draw("uniform-100..109+1x112..560px", free, 3, number);
        CHECK(one == draw("uniform-100..109+1x112..560px", free, 3, number));
        least = std::min(least, one.text_tokens);
        most = std::max(most, one.text_tokens);
        smallest = std::min(smallest, one.items.front().patches);
        largest = std::max(largest, one.items.front().patches);
    }
    CHECK(least == 100);
    CHECK(most == 109);
    CHECK(smallest == 2 * 2 * 4 * 4);
    CHECK(largest == 10 * 10 * 4 * 4);
    CHECK(draw("uniform-7", model, 3, 0).text_tokens == 7);
    for (const auto* wrong : {"uniform-", "uniform-9..8", "uniform-0..", "uniform-1+1x9..8px", "constant-1..2"})
        CHECK_THROWS_WITH_AS(static_cast<void>(draw(wrong, model, 1, 0)),
                             doctest::Contains("allowed are constant-4096"), Error);
}

TEST_CASE("constant images and clips are as large as the model's rules make them") {
    const Sample image = draw("constant-40+2x728px", workloads::model("dip-vlm-s"), 1, 0);
    CHECK(image.text_tokens == 40);
    REQUIRE(image.items.size() == 2);
    CHECK(image.items.front().patches == 52 * 52);
    const Sample clip = draw("constant-0+5.8125s", workloads::model("wan2.1-t2v-14b"), 1, 0);
    REQUIRE(clip.items.size() == 1);
    // 93 frames of 256 x 448 pixels: 1 + 92 / 4 latent frames of 16 x 28 positions.
    CHECK(clip.items.front().patches == 24 * 16 * 28);
}
