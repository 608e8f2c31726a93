// Loaders by name and as files, and what they take for samples.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/loader/loader.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::loader;

namespace {

using namespace std::chrono_literals;
using workloads::Item;
using workloads::Modality;

Loader read(const std::string& members, const std::string& stage) {
    return find_loader(R"({"format":"pipeweaver-loader/1","workers":2,)" + members + R"("stages":[)" + stage + "]}");
}

Stage one_stage(const std::string& stage) { return read("", stage).stages.at(0); }

}  // namespace

TEST_CASE("loaders that ship say where each of their rates is from, and a typing error names the nearest") {
    for (const Loader& one : loaders()) {
        CAPTURE(one.name);
        CHECK(find_loader(one.name) == one);
        for (const Stage& stage : one.stages) CHECK(!stage.source.empty());
    }
    CHECK_THROWS_WITH_AS(static_cast<void>(find_loader("disc")),
                         "--loader: unknown loader 'disc'; did you mean 'disk'?", Error);
}

TEST_CASE("a file says its queue, when packs are taken, and what stages take") {
    const Loader mine =
        read(R"("name":"mine","prefetch":3,"cores":5,"window":64,"takes":"step","together":"microbatch",)",
             R"({"name":"decode","on":"core","megapixel_ns":7,"pack_ns":9,"source":"measured"},)"
             R"({"name":"hand on","on":"copy","pack_ns":11})");
    CHECK(mine.name == "mine");
    CHECK(mine.queue == Queue{.workers = 2, .prefetch = 3, .cores = 5, .window = 64});
    CHECK(mine.taking == Taking{.whole_step = true, .microbatches_together = true});
    CHECK(mine.stages[0].rates == Rates{.pack = 9ns, .megapixel = 7ns});
    CHECK(mine.stages[0].source == "measured");
    CHECK(mine.stages[1].on == On::copy);
    CHECK(read("", R"({"name":"a","on":"core"})").queue == Queue{.workers = 2});
}

TEST_CASE("what is read takes a latency for each file and its bytes at a speed, and of what is cached nothing") {
    const Stage read_all = one_stage(R"({"name":"read","on":"storage","latency_ns":1000,"bytes_per_s":1000000,)"
                                     R"("image_bytes":50,"clip_second_bytes":8,"audio_ns":5})");
    CHECK(read_all.rates == Rates{.image = 51us, .clip = 1us, .clip_second = 8us, .audio = 1005ns});
    const Stage half = one_stage(R"({"name":"read","on":"storage","latency_ns":1000,"bytes_per_s":1000000,)"
                                 R"("image_bytes":50,"cached":0.5})");
    CHECK(half.rates.image == 25'500ns);
    CHECK(half.rates.clip == 500ns);
}

TEST_CASE("a loader's file that cannot be is refused with its key") {
    const auto rejects = [](const std::string& members, const std::string& stage, const char* words) {
        CHECK_THROWS_WITH_AS(static_cast<void>(read(members, stage)), doctest::Contains(words), Error);
    };
    const std::string good = R"({"name":"a","on":"core"})";
    rejects(R"("prefetch":0,)", good, "prefetch: is 0, must be a whole number from 1");
    rejects(R"("takes":"batch",)", good, "takes: is 'batch', must be one of microbatch, step");
    rejects(R"("worker":1,)", good, "worker");
    rejects("", "", "stages: has 0 stages, allowed are 1 to 32");
    rejects("", good + "," + good, "stages[1]: stage 'a' comes twice");
    rejects("", R"({"name":"a","on":"copy"},{"name":"b","on":"core"})", "comes behind 'a', which copies");
    rejects("", R"({"name":"a","on":"core","cached":0.5})", "stages[0].cached: goes with stages on storage");
    rejects("", R"({"name":"a","on":"storage","image_bytes":5})", "image_bytes: goes with bytes_per_s");
    rejects("", R"({"name":"a","on":"storage","latency_ns":5,"bytes_per_s":1})",
            "bytes_per_s: goes with bytes to read");
    rejects("", R"({"name":"a","on":"storage","sample_ns":5,"cached":0.5})", "cached: goes with latency_ns or bytes");
    rejects("", R"({"name":"a","on":"core","megapixels_ns":5})", "megapixel_ns");
    rejects("", R"({"name":"a","on":"storage","bytes_per_s":1,"image_bytes":1000000})", "more than an hour");
}

TEST_CASE("a pack is its samples stage by stage, and then what stages take for the pack") {
    workloads::Model model;
    model.image.patch = 10;
    model.image.merge = 2;
    workloads::Sample first, second;
    first.text_tokens = 100;
    first.items = {Item{.modality = Modality::image, .tokens = 25, .patches = 100, .own = 400},
                   Item{.modality = Modality::video, .seconds = 1.5}};
    second.items = {Item{.modality = Modality::image, .tokens = 25}, Item{.modality = Modality::audio, .seconds = 2}};
    Stage decode{"decode", On::core, {}, ""};
    decode.rates = {.pack = 3us, .token = 1us, .image = 1us, .megapixel = 1ms, .clip_second = 2us, .audio_second = 4us};
    // 400 patches of 10 x 10 are 0.04 megapixels; 25 tokens of 20 x 20 are 0.01.
    CHECK(time_of(decode, first, model) == 100us + 1us + 40us + 3us);
    CHECK(time_of(decode, second, model) == 1us + 10us + 8us);
    workloads::Sample made;
    made.items = {Item{.modality = Modality::image, .tokens = 25, .patches = 250, .target = true}};
    CHECK(time_of(decode, made, model) == 1us + 10us);
    const Stage read{"read", On::storage, {.sample = 5us}, ""},
        copy{"copy", On::copy, {.pack = 2us, .sample = 1us}, ""};
    const Loader loader{"mine", {}, {}, {read, decode, copy}};
    workloads::Microbatch both;
    both.samples = {1, 0};
    const Pack pack = pack_of(loader, both, {first, second}, model);
    std::vector<std::pair<Duration, bool>> pieces;
    for (const Piece& piece : pack.pieces) pieces.emplace_back(piece.time, piece.core);
    CHECK(pieces ==
          std::vector<std::pair<Duration, bool>>{{5us, false}, {19us, true}, {5us, false}, {144us, true}, {3us, true}});
    CHECK(pack.copy == 4us);
    CHECK(pack.samples == 2);
    CHECK(not_counted(loader, {first, second}).empty());
    CHECK(not_counted(find_loader("disk"), {first, second}) ==
          std::vector<std::string>{
              "loader 'disk' has no rate for audio, of which there are 1: they are taken for nothing",
              "loader 'disk' reads text for nothing: its stages on storage have no rate for it"});
    Loader mute = loader;
    mute.stages = {Stage{"decode", On::core, {.image = 1us, .clip = 1us, .audio = 1us}, ""}};
    CHECK(not_counted(mute, {first, second}) ==
          std::vector<std::string>{
              "loader 'mine' has no rate for text, of which there are 100 tokens: they are taken for nothing"});
}
