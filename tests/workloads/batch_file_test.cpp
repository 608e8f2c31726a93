#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sys/stat.h>
#include <thread>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

// A batch file that lives as long as the object.
struct BatchFile {
    explicit BatchFile(const std::string& content, const std::string& name = "batch.jsonl")
        : path(testing::written(name, content)) {}
    ~BatchFile() { std::filesystem::remove(path); }
    BatchFile(const BatchFile&) = delete;
    BatchFile& operator=(const BatchFile&) = delete;

    std::filesystem::path path;
};

// The message without the path, or "read" where the batch is good.
std::string problem(const std::string& content, const Model& m) {
    const BatchFile file(content);
    try {
        static_cast<void>(read_batch(file.path, m));
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        const std::string message = error.what();
        const std::string path = file.path.string();
        CHECK(message.starts_with(path));
        return message.substr(path.size());
    }
    return "read";
}

std::vector<Sample> read(const std::string& content, const Model& m) { return read_batch(BatchFile(content).path, m); }

}  // namespace

TEST_CASE("a batch's images become 169 tokens and 2704 patches, whatever their size") {
    const auto samples =
        read(R"({"id":"a","text_tokens":100,"images":[{"width":640,"height":480},{"width":31,"height":9000}]})"
             "\n"
             R"({"id":"b","text_tokens":7,"loss_tokens":3})"
             "\n",
             model("dip-vlm-m"));

    REQUIRE(samples.size() == 2);
    const Item image{Modality::image, 169, 2704, 0, false};
    CHECK(samples[0] == Sample{"a", 100, 100, {image, image}});
    CHECK(samples[0].tokens() == 100 + 2 * 169);
    CHECK(samples[1] == Sample{"b", 7, 3, {}});
}

TEST_CASE("clips become latent patches by frames, cut to 16 seconds") {
    const auto samples = read(
        R"({"id":"a","text_tokens":20,"videos":[{"frames":136,"width":992,"height":544,"fps":16,"role":"target"}]})"
        "\n"
        R"({"id":"b","text_tokens":20,"videos":[{"frames":9000,"width":992,"height":544,"fps":30,"role":"target"}]})"
        "\n"
        R"({"id":"c","text_tokens":20,"videos":[{"frames":5,"width":992,"height":544,"fps":30,"role":"target"}]})",
        model("dip-t2v-s"));

    // 136 frames are 8 units of 17, each 3 latent frames of 16 x 28 patches.
    CHECK(samples[0].items == std::vector{Item{Modality::video, 0, 24 * 16 * 28, 8.5, true}});
    CHECK(samples[1].items == std::vector{Item{Modality::video, 0, 45 * 16 * 28, 16, true}});
    CHECK(samples[2].items[0].patches == 3 * 16 * 28);
}

TEST_CASE("latent patches equal the published examples of the video models") {
    const auto patches = [](const char* name, int width, int height, int frames) {
        Model m = model(name);
        m.video.width = width;
        m.video.height = height;
        m.video.max_seconds = 1'000;
        return read(R"({"id":"a","text_tokens":0,"videos":[{"frames":)" + std::to_string(frames) +
                        R"(,"width":1,"height":1,"fps":16,"role":"target"}]})",
                    m)[0]
            .items[0]
            .patches;
    };
    CHECK(patches("step-video-t2v-dit", 544, 992, 204) == 75'888);
    CHECK(patches("step-video-t2v-dit", 768, 768, 204) == 82'944);
    CHECK(patches("step-video-t2v-dit", 544, 992, 136) == 50'592);
    CHECK(patches("step-video-ti2v-dit", 544, 992, 102) == 37'944);
    CHECK(patches("hunyuanvideo-13b-dit", 720, 1280, 129) == 118'800);
    CHECK(patches("wan2.1-t2v-14b", 480, 832, 81) == 32'760);
}

TEST_CASE("images of native resolution keep their shape between the least and the most tokens") {
    const Model m = model("qwen2.5-vl-7b");  // 28 pixels a token, 256 to 1280 tokens
    const auto tokens = [&](int width, int height) {
        return read(R"({"id":"a","text_tokens":1,"images":[{"width":)" + std::to_string(width) + R"(,"height":)" +
                        std::to_string(height) + "}]}",
                    m)[0]
            .items[0];
    };
    CHECK(tokens(560, 840).tokens == 20 * 30);
    CHECK(tokens(560, 840).patches == 4 * 20 * 30);
    CHECK(tokens(570, 850).tokens == 20 * 30);    // rounded to the nearest 28
    CHECK(tokens(28, 28).tokens == 256);          // 16 x 16
    CHECK(tokens(2800, 2800).tokens == 35 * 35);  // sqrt(1280) = 35.8
    CHECK(tokens(100'000, 1).tokens <= 1280);
    CHECK(tokens(1, 100'000).tokens <= 1280);
    CHECK(read(R"({"id":"a","text_tokens":0,"images":[{"width":1024,"height":1024,"role":"target"}]})",
               model("flux.1-dev"))[0]
              .items[0]
              .patches == 4096);
}

TEST_CASE("tiles of SigLIP 384 make 196 tokens of 729 patches") {
    const auto item = read(R"({"id":"a","text_tokens":1,"images":[{"width":9,"height":9}]})", model("deepseek-vl2"))[0];
    CHECK(item.items == std::vector{Item{Modality::image, 196, 729, 0, false}});
}

TEST_CASE("a head makes its images from the backbone's own positions, four times each") {
    const auto samples = read(R"({"id":"a","text_tokens":9,"images":[{"width":9,"height":9,"role":"target"}]})",
                              model("nextstep-1-14b"));
    CHECK(samples[0].items == std::vector{Item{Modality::image, 256, 1024, 0, true}});
}

TEST_CASE("a batch comes back equal from its file, plain and zipped") {
    for (const auto& [dataset, name] :
         {std::pair{"vlm-mix", "dip-vlm-m"}, {"t2v-mix", "dip-t2v-l"}, {"speech", "step-audio-2-mini"}}) {
        const Model m = model(name);
        const auto batch = draw_batch(dataset, m, 3, 4).samples;
        CHECK(read(to_jsonl(batch), m) == batch);
        CHECK(read_batch(BatchFile(to_jsonl(batch), "batch.jsonl.gz").path, m) == batch);
    }
}

TEST_CASE("text is no part of the sequence of an encoder alone") {
    const auto samples =
        read(R"({"id":"a","text_tokens":100,"images":[{"width":9,"height":9}]})", model("step3-vit-5b"));
    CHECK(samples[0] == Sample{"a", 0, 0, {{Modality::image, 2704, 2704, 0, false}}});
}

TEST_CASE("bad batch lines are refused with file, line, place and what is allowed") {
    const Model m = model("dip-vlm-m");
    const std::string good = R"({"id":"a","text_tokens":5})"
                             "\n";
    const auto image = [&](const std::string& text) {
        return good + R"({"id":"b","text_tokens":5,"images":[{"width":9,"height":9},)" + text + "]}\n";
    };
    CHECK(problem(good, m) == "read");
    CHECK(problem(good + "{\"id\":", m) == ":2: is not JSON: line 1, column 7: it ends too early");
    CHECK(problem(good + "\n" + good, m) == ":2: the line is empty");
    CHECK(problem("", m) == ": holds no sample");
    CHECK(problem(good + "[]\n", m) == ":2: is [], an object is needed");
    CHECK(problem(good + good, m) == ":2: id: 'a' is that of line 1 already");
    CHECK(problem(R"({"id":"","text_tokens":5})", m) == ":1: id: is empty");
    CHECK(problem(R"({"id":7,"text_tokens":5})", m) == ":1: id: is 7, a text is needed");
    CHECK(problem(R"({"text_tokens":5})", m) == ":1: the key 'id' is missing");
    CHECK(problem(R"({"id":"a"})", m) == ":1: the key 'text_tokens' is missing");
    CHECK(problem(R"({"id":"a","text_tokens":0})", m) == ":1: the sample has neither text nor items");
    CHECK(problem(R"({"id":"a","text_tokens":-1})", m) ==
          ":1: text_tokens: is -1, must be a whole number from 0 to 1000000000");
    CHECK(problem(R"({"id":"a","text_tokens":1e30})", m) ==
          ":1: text_tokens: is 1e+30, must be a whole number from 0 to 1000000000");
    CHECK(problem(R"({"id":"a","text_tokens":"5"})", m) ==
          ":1: text_tokens: is \"5\", must be a whole number from 0 to 1000000000");
    CHECK(problem(R"({"id":"a","text_token":5})", m) == ":1: unknown key 'text_token'; did you mean 'text_tokens'?");
    CHECK(problem(image(R"({"width":0,"height":9})"), m) ==
          ":2: images[1].width: is 0, must be a whole number from 1 to 100000");
    CHECK(problem(image(R"({"width":9,"height":1000000000000})"), m) ==
          ":2: images[1].height: is 1000000000000, must be a whole number from 1 to 100000");
    CHECK(problem(image(R"({"width":9})"), m) == ":2: images[1]: the key 'height' is missing");
    CHECK(problem(image(R"({"width":9,"hight":9})"), m) ==
          ":2: images[1]: unknown key 'hight'; did you mean 'height'?");
    CHECK(problem(image(R"({"tokens":9})"), m) == ":2: images[1]: the key 'patches' is missing");
    CHECK(problem(image(R"({"tokens":0,"patches":0})"), m) == ":2: images[1]: has neither tokens nor patches");
    CHECK(problem(image(R"({"width":9,"height":9,"role":"output"})"), m) ==
          ":2: images[1].role: is 'output', must be one of input, target (did you mean 'input'?)");
}

TEST_CASE("a clip without a size is refused where the model has none that it would be scaled to") {
    Model m = model("wan2.1-t2v-14b");
    const auto clip = [](const std::string& size) {
        return R"({"id":"a","text_tokens":0,"videos":[{"seconds":5)" + size + R"(,"role":"target"}]})";
    };
    CHECK(problem(clip(""), m) == "read");
    m.video.width = m.video.height = 0;
    for (const std::string size : {"", R"(,"width":832)", R"(,"height":480)"})
        CHECK(problem(clip(size), m) ==
              ":1: videos[0]: lacks width or height, and the video rule of the model has neither: allowed are both, 1 "
              "to 100000 pixels, or tokens and patches in place of the size");
    CHECK(problem(clip(R"(,"width":832,"height":480)"), m) == "read");
    CHECK(problem(clip(R"(,"width":832,"height":0)"), m) ==
          ":1: videos[0].height: is 0, must be a whole number from 1 to 100000");
    // 20 latent frames of 6250 x 6250 patches fit, but in no microbatch; those of 16 frames a second and 32 s do not.
    CHECK(problem(clip(R"(,"width":100000,"height":100000)"), m)
              .starts_with(":1: sample 'a' has an item (video, number 0) of 781250000 tokens"));
    m.video.max_seconds = 32;
    CHECK(problem(R"({"id":"a","text_tokens":0,"videos":[{"seconds":32,"width":100000,"height":100000}]})", m) ==
          ":1: videos[0]: has 5000000000 latent patches, allowed are up to 1000000000");
}

TEST_CASE("a sample that no microbatch can hold is refused on its line") {
    const std::string good = R"({"id":"a","text_tokens":5})"
                             "\n";
    CHECK(problem(good + R"({"id":"b","text_tokens":8193})", model("dip-vlm-m")) ==
          ":2: sample 'b' has 8193 tokens, a microbatch of 'dip-vlm-m' holds 8192 (microbatch_tokens of its model "
          "file, or --microbatch-tokens; --too-long own packs it alone)");
    CHECK(problem(good + R"({"id":"b","text_tokens":0,"images":[{"tokens":8193,"patches":9}]})", model("dip-vlm-m")) ==
          ":2: sample 'b' has an item (image, number 0) of 8193 tokens, a microbatch of 'dip-vlm-m' holds 8192 "
          "(microbatch_tokens of its model file, or --microbatch-tokens; --too-long own packs it alone)");
}

TEST_CASE("samples too long are kept for a microbatch of their own, or to be dropped by id") {
    Model m = model("dip-vlm-m");
    const std::string lines = R"({"id":"a","text_tokens":5})"
                              "\n"
                              R"({"id":"b","text_tokens":8193})"
                              "\n"
                              R"({"id":"c","text_tokens":7})";
    m.too_long = TooLong::own;
    const auto all = read(lines, m);
    CHECK(all.size() == 3);
    CHECK(without_too_long(all, m).samples == all);
    m.too_long = TooLong::drop;
    const Kept kept = without_too_long(read(lines, m), m);
    CHECK(kept.dropped == std::vector<std::string>{"b"});
    CHECK(kept.samples == std::vector{all[0], all[2]});
    CHECK_THROWS_WITH_AS(
        static_cast<void>(without_too_long({all[1]}, m)),
        "--too-long: drop leaves nothing: no sample fits a microbatch of 'dip-vlm-m', which holds 8192 "
        "tokens; allowed are own, or more --microbatch-tokens",
        Error);
    m.too_long = TooLong::error;
    CHECK(problem(lines, m).starts_with(":2: sample 'b' has 8193 tokens"));
}

TEST_CASE("clips may be given by seconds, with no more frames than they have") {
    const Model m = model("dip-t2v-s");
    const auto clip = [&](const std::string& sizes) {
        return read(R"({"id":"a","text_tokens":2,"videos":[{)" + sizes + R"(,"role":"target"}]})", m)[0].items[0];
    };
    const Item whole{Modality::video, 0, 24 * 16 * 28, 8.5, true};
    CHECK(clip(R"("seconds":8.5)") == whole);
    CHECK(clip(R"("seconds":8.5,"fps":30,"width":10,"height":20)") == whole);
    CHECK(clip(R"("frames":136,"fps":16)") == whole);
    CHECK(clip(R"("seconds":8.5,"fps":4)").patches == 2 * 3 * 16 * 28);
    const auto wrong = [&](const std::string& sizes) {
        return problem(R"({"id":"a","text_tokens":2,"videos":[{)" + sizes + R"(,"role":"target"}]})", m);
    };
    CHECK(wrong(R"("seconds":8.5,"frames":3,"fps":2)") ==
          ":1: videos[0]: has frames and seconds, allowed is one of the two");
    CHECK(wrong(R"("frames":3)") == ":1: videos[0]: the key 'fps' is missing");
    CHECK(wrong(R"("seconds":0)").starts_with(":1: videos[0].seconds: is 0, must be"));
    CHECK(wrong(R"("seconds":1,"width":0)").starts_with(":1: videos[0].width: is 0, must be"));
}

TEST_CASE("a file of more samples than a step has is refused on its first line too many, read twice or once") {
    const Model m = model("dip-vlm-m");
    std::string three;
    for (const char* id : {"a", "b", "c"}) three += fmt::format("{{\"id\":\"{}\",\"text_tokens\":5}}\n", id);
    const BatchFile file(three);
    CHECK(read_batch(file.path, m, 3).size() == 3);
    const std::string message =
        ":3: is one sample too many: a batch file is the batch of one step, of at most 2 samples; write a file for "
        "each "
        "step";
    CHECK_THROWS_WITH_AS(static_cast<void>(read_batch(file.path, m, 2)), (file.path.string() + message).c_str(), Error);
    // Counted before it is parsed: what is wrong with the first line does not matter.
    const BatchFile bad("{\n{\n{\n", "bad.jsonl");
    CHECK_THROWS_WITH_AS(static_cast<void>(read_batch(bad.path, m, 2)), (bad.path.string() + message).c_str(), Error);

    // A pipe can be read only once.
    const auto pipe = testing::shared_temporary() / "pipe";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    for (const std::size_t most : {std::size_t{3}, std::size_t{2}}) {
        std::jthread writer([&] { std::ofstream(pipe) << three; });
        std::string found;
        try {
            found = std::to_string(read_batch(pipe, m, most).size());
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::limit);
            found = error.what();
        }
        CHECK(found == (most == 3 ? "3" : pipe.string() + message));
    }
    std::filesystem::remove(pipe);
}

TEST_CASE("items that a model neither reads nor makes are refused") {
    const std::string image = R"({"id":"a","text_tokens":5,"images":[{"width":9,"height":9}]})";
    const std::string target = R"({"id":"a","text_tokens":5,"images":[{"width":9,"height":9,"role":"target"}]})";
    CHECK(problem(image, model("llama3-8b")) ==
          ":1: images[0]: the model 'llama3-8b' has no module that reads image items");
    CHECK(problem(target, model("dip-vlm-s")) ==
          ":1: images[0]: the model 'dip-vlm-s' has no module that makes image items");
    CHECK(problem(R"({"id":"a","text_tokens":5,"audio":[{"seconds":0}]})", model("step-audio-2-mini")) ==
          ":1: audio[0].seconds: is 0, must be a number from 0.001 to 1000000");
    CHECK(problem(R"({"id":"a","text_tokens":5,"videos":[{"frames":1,"width":9,"height":9,"fps":0,"role":"target"}]})",
                  model("dip-t2v-s")) == ":1: videos[0].fps: is 0, must be a number from 0.001 to 10000");
}

TEST_CASE("a missing batch file is an I/O error, a cut gzip bad input") {
    const Model m = model("dip-vlm-m");
    try {
        static_cast<void>(read_batch("/nonexistent/batch.jsonl", m));
        FAIL("read");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::io);
    }
    std::string many;
    for (int i = 0; i < 20'000; ++i)
        many += R"({"id":")" + std::to_string(i) +
                R"(","text_tokens":5})"
                "\n";
    const std::string zipped = gzip(many);
    CHECK(problem(zipped.substr(0, zipped.size() - 20), m) == ": gzip data is cut short");
    CHECK(read(zipped, m).size() == 20'000);
}

TEST_CASE("files of chats, conversations and tables are named, with the command that makes a batch file of them") {
    const Model m = model("dip-vlm-m");
    const auto refused = [&](const std::string& content, const std::string& name) {
        const BatchFile file(content, name);
        try {
            static_cast<void>(read_batch(file.path, m));
        } catch (const Error& error) {
            const std::string path = file.path.string(), message = error.what();
            const std::string way =
                "`python3 -m pipeweaver.data.convert " + path + " --out batch.jsonl` makes one of it";
            CHECK_MESSAGE(message.ends_with(", no sample of a batch file; " + way), message);
            return message.substr(path.size(), message.find(", no sample") - path.size());
        }
        return std::string("read");
    };

    CHECK(refused(R"({"messages":[]})", "chat.jsonl") == ":1: is a chat (key 'messages')");
    CHECK(refused(R"({"id":0,"image":"a.jpg","width":8,"height":8,"conversations":[]})", "internvl.jsonl") ==
          ":1: is a conversation (key 'conversations')");
    CHECK(refused(R"({"instruction":"a","output":"b"})", "alpaca.json") ==
          ":1: is an instruction with its answer (key 'instruction')");
    CHECK(refused(R"({"file_name":"a.jpg","text":"b"})", "metadata.jsonl") ==
          ":1: is a caption of a file (key 'file_name')");
    CHECK(refused(R"([{"messages":[]}])", "list.json") == ":1: is a list");
    CHECK(refused(R"({"mine":{"root":"a/","annotation":"b.jsonl"}})", "meta.json") == ":1: is a list of data sets");
    CHECK(refused("PAR1", "rows.parquet") == ": is a Parquet table");
    CHECK(refused("a.jpg", "000.tar") == ": is a shard");
    CHECK(refused("{\"id\":\"a\",\"text_tokens\":5}", "batch.jsonl") == "read");
}

TEST_CASE("tokens of a batch by modality: text, what is read and what is made") {
    const Model made;
    Sample first, second;
    first.text_tokens = 100;
    first.items = {{.modality = Modality::image, .tokens = 64, .patches = 256},
                   {.modality = Modality::audio, .tokens = 25, .patches = 50}};
    second.text_tokens = 20;
    second.items = {{.modality = Modality::image, .tokens = 16, .patches = 64},
                    {.modality = Modality::video, .tokens = 0, .patches = 1000, .target = true}};
    CHECK(tokens_by_modality({first, second}, made) == "120 tokens of text, 80 of image, 1000 of video, 25 of audio");
    second.text_tokens = 0;
    CHECK(tokens_by_modality({second}, made) == "16 tokens of image, 1000 of video");
    CHECK(tokens_by_modality({}, made).empty());
    // Four patches are one position of what cross attention reads.
    Model reading;
    reading.modules = {{"vit", {}, PassUnit::items, {Modality::image}, true},
                       {"llm", {}, PassUnit::microbatch, {Modality::text}, true}};
    reading.edges = {{.from = 0, .to = 1, .token_reduction = 4}};
    Sample crossed;
    crossed.text_tokens = 10;
    crossed.items = {{.modality = Modality::image, .tokens = 0, .patches = 256}};
    CHECK(tokens_by_modality({crossed}, reading) == "10 tokens of text, 64 of image");
    CHECK(sizes_text({crossed}, reading) == parameters_by_module(reading) + "; 10 tokens of text, 64 of image");
    CHECK(sizes_text({}, reading) == parameters_by_module(reading));
}
