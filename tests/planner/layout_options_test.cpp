#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/job_options.hpp"
#include "pipeweaver/planner/workload_options.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

using Given = std::vector<std::pair<std::string, std::string>>;

WorkloadOptions options_of(const Given& given) {
    WorkloadOptions options;
    OptionTable table;
    options.add_to(table);
    for (const auto& [name, text] : given) {
        const auto found = std::find_if(table.entries().begin(), table.entries().end(),
                                        [&name = name](const OptionTable::Entry& one) { return one.name == name; });
        REQUIRE(found != table.entries().end());
        found->set(text);
    }
    return options;
}

Given small(const Given& more) {
    Given all{{"model", "dip-vlm-s"}, {"cluster", "h100-sxm:8"}, {"dataset", "vlm-mix"}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

Request request_of(const Given& given) { return options_of(given).request(1, in_order); }

std::string error_of(const Given& given) {
    try {
        static_cast<void>(request_of(given));
    } catch (const Error& error) {
        return error.what();
    }
    return "none";
}

std::vector<std::string> ids(const Batch& batch) {
    std::vector<std::string> all;
    for (const auto& sample : batch.samples) all.push_back(sample.id);
    return all;
}

}  // namespace

TEST_CASE("a global batch is the same in every layout, in samples or in microbatches") {
    const auto of = [](const std::string& all, const std::string& tp, const std::string& pp) {
        return request_of(small({{"global-batch", all}, {"tp", tp}, {"pp", pp}})).batch;
    };
    const Batch one = of("12mb", "8", "1"), four = of("12mb", "2", "1"), samples = of("40", "8", "1");
    CHECK(one.microbatches.size() == 12);
    CHECK(ids(one) == ids(four));
    CHECK(one.drawn_microbatches == 0);  // of each replica: it does not follow
    CHECK(samples.samples.size() == 40);
    CHECK(ids(samples) == ids(of("40", "2", "2")));
    // The same as so many of each replica.
    CHECK(ids(one) == ids(request_of(small({{"microbatches", "3"}, {"tp", "2"}, {"pp", "1"}})).batch));
}

TEST_CASE("a global batch of a file is drawn from its samples by the seed, other draws are the sample") {
    std::string lines;
    for (int i = 0; i < 40; ++i)
        lines +=
            R"({"id":"s)" + std::to_string(i) + R"(","text_tokens":1000,"images":[{"width":224,"height":224}]})" + "\n";
    const auto file = testing::written("draws.jsonl", lines).string();
    const auto asked = [&](const std::string& all) {
        return options_of({{"model", "dip-vlm-s"},
                           {"cluster", "h100-sxm:8"},
                           {"tp", "2"},
                           {"pp", "2"},
                           {"batch", file},
                           {"global-batch", all}});
    };
    const Batch drawn = asked("12").request(1, in_order).batch;
    const auto of_draw = ids(drawn);
    CHECK(std::set<std::string>(of_draw.begin(), of_draw.end()).size() == 12);
    CHECK(drawn.name == "12 of the 40 samples of " + file + ", seed 1");
    CHECK(ids(asked("12").request(1, in_order).batch) == of_draw);
    CHECK(ids(asked("12").request(2, in_order).batch) != of_draw);
    const auto whole = ids(asked("40").request(1, in_order).batch);
    CHECK(whole.size() == 40);
    CHECK(whole[7] == "s7");  // all of them are no draw
    CHECK_THROWS_WITH_AS(
        static_cast<void>(asked("41").request(1, in_order)),
        ("--global-batch: is 41, but " + file + " has 40 samples: allowed are at most as many").c_str(), Error);

    Request request = asked("12").request(1, in_order);
    JobOptions{}.fill(request.job, asked("12"));
    CHECK(request.job.sample.batches.size() == 5);
    CHECK(request.job.sample.name.option() == "101-105");
    WorkloadOptions as_it_is = asked("12");
    as_it_is.global_batch.reset();
    Request other = as_it_is.request(1, in_order);
    JobOptions{}.fill(other.job, as_it_is);
    CHECK(other.job.sample.batches.empty());
}

TEST_CASE("a draw of the sample of which nothing is kept is left out, or refused by name") {
    std::string lines;
    for (int i = 0; i < 4; ++i)
        lines += R"({"id":"s)" + std::to_string(i) + R"(","images":[{"width":224,"height":224}],"text_tokens":)" +
                 (i == 0 ? "1000" : "100000") + "}\n";
    const auto file = testing::written("long.jsonl", lines).string();
    const auto options = options_of({{"model", "dip-vlm-s"},
                                     {"cluster", "h100-sxm:8"},
                                     {"tp", "2"},
                                     {"pp", "4"},
                                     {"too-long", "drop"},
                                     {"batch", file},
                                     {"global-batch", "1"}});
    const auto model = options.found_model();
    std::vector<std::uint64_t> kept, empty;
    for (std::uint64_t seed = 1; seed <= 105; ++seed)
        (options.read(model, seed, true).samples.empty() ? empty : kept).push_back(seed);
    const auto of_usual =
        static_cast<std::size_t>(std::count_if(kept.begin(), kept.end(), [](auto seed) { return seed > 100; }));
    REQUIRE(of_usual < 5);
    REQUIRE(!kept.empty());
    REQUIRE(kept.front() <= 100);
    const Job job = options.request(kept.front(), in_order).job;
    const JobSample usual = JobOptions{}.read_sample(job, options);
    CHECK(usual.batches.size() == of_usual);
    CHECK(usual.name.option() == (of_usual == 0 ? "" : "101-105"));
    const std::string one = std::to_string(empty.front());
    JobOptions named;
    named.sample = one;
    CHECK_THROWS_WITH_AS(static_cast<void>(named.read_sample(job, options)),
                         ("--sample: " + file + ", seed " + one +
                          " keeps no sample, for --too-long drop leaves out all; allowed are draws with one that fits")
                             .c_str(),
                         Error);
}

TEST_CASE("latents of a microbatch: what is said, else few where a step's samples are given") {
    const auto tokens = [](const Given& more) {
        Given all{{"model", "flux.1-dev"}, {"cluster", "h100-sxm:8"}};
        all.insert(all.end(), more.begin(), more.end());
        return options_of(all).found_model().microbatch_tokens;
    };
    const std::pair<std::string, std::string> drawn{"dataset", "constant-0+1x512px"};
    CHECK(tokens({drawn, {"global-batch", "64"}}) == 16'384);
    CHECK(tokens({{"batch", "b.jsonl"}}) == 16'384);
    CHECK(tokens({drawn, {"global-batch", "64mb"}}) == 131'072);
    CHECK(tokens({drawn, {"microbatches", "4"}}) == 131'072);
    CHECK(tokens({drawn, {"global-batch", "64"}, {"microbatch-tokens", "40000"}}) == 40'000);
    CHECK(options_of({{"model", "dip-vlm-s"}, {"batch", "b.jsonl"}}).found_model().microbatch_tokens == 8192);
}

TEST_CASE("what a global batch does not go with is one line") {
    CHECK(error_of(small({{"global-batch", "8mb"}, {"microbatches", "4"}, {"tp", "8"}, {"pp", "1"}})) ==
          "--global-batch, --microbatches: allowed is one of the two, what all replicas train in a step or what each "
          "does");
    CHECK(
        error_of({{"model", "dip-vlm-s"}, {"cluster", "h100-sxm:8"}, {"batch", "b.jsonl"}, {"global-batch", "8mb"}}) ==
        "--global-batch: is 8mb, but of a batch file samples are drawn; allowed is a number of samples");
    for (const char* text : {"", "mb", "0", "8 mb", "-4mb", "8MB", "1.5"})
        CHECK_THROWS_WITH_AS(options_of({{"global-batch", text}}),
                             doctest::Contains("must be a whole number of samples from 1 to 10000000, or of "
                                               "microbatches, like 64mb"),
                             Error);
    CHECK(error_of(small({{"layout", "auto"}, {"pp", "3"}, {"tp", "2"}})) ==
          "--tp 2 * --pp 3 = 6 GPUs do not divide the cluster's 8");
    // Its published layout is tp 4 x pp 4; of what nobody said that is said.
    CHECK(error_of({{"model", "dip-vlm-s"}, {"cluster", "h100-sxm:8"}, {"pp", "4"}, {"dataset", "vlm-mix"}}) ==
          "--tp 4 * --pp 4 = 16 GPUs do not divide the cluster's 8; --tp is that of the model's published layout, "
          "--tp auto chooses one");
}

TEST_CASE("--layout auto frees all degrees, and what is given beside it is the user's own, with its batch") {
    const auto options = options_of(small({{"layout", "auto"}, {"tp", "4"}, {"pp", "1"}, {"microbatches", "3"}}));
    const auto setup = request_of(small({{"tp", "4"}, {"pp", "1"}, {"microbatches", "3"}})).job.setup;
    const auto asked = options.layout_request(*setup, {}, 1);
    CHECK(!asked.tp);
    CHECK(!asked.pp);
    CHECK(!asked.cp);
    CHECK(asked.any_ep);
    CHECK(asked.any_zero);
    REQUIRE(asked.own);
    CHECK(asked.own->layout.tp == 4);
    CHECK(asked.own->layout.dp == 2);
    CHECK(asked.microbatches.size() == 6);
    CHECK(!asked.for_each_replica);

    const auto fixed = options_of(small({{"tp", "4"}, {"cp", "auto"}, {"zero", "auto"}})).layout_request(*setup, {}, 1);
    CHECK(fixed.tp == 4);
    CHECK(!fixed.cp);
    CHECK(fixed.any_zero);
    CHECK(!fixed.any_ep);
    CHECK(!fixed.own);
    CHECK(fixed.for_each_replica);
}

TEST_CASE("beside --layout auto what is given without --tp and --pp holds for all layouts, and --cp 1 always does") {
    const auto setup = request_of(small({{"tp", "4"}, {"pp", "1"}})).job.setup;
    const auto asked = [&](const std::vector<std::pair<std::string, std::string>>& given) {
        return options_of(small(given)).layout_request(*setup, {}, 1);
    };
    const auto fixed = asked({{"layout", "auto"}, {"cp", "2"}, {"zero", "1"}, {"ep", "1"}});
    CHECK(fixed.cp == 2);
    CHECK(fixed.ep == 1);
    CHECK(!fixed.any_ep);
    CHECK(!fixed.any_zero);
    CHECK(!fixed.own);
    CHECK(!fixed.tp);
    const auto own = asked({{"layout", "auto"}, {"tp", "2"}, {"pp", "1"}, {"cp", "2"}, {"zero", "2"}});
    REQUIRE(own.own);
    CHECK(own.own->layout.cp == 2);
    CHECK(!own.cp);
    CHECK(own.any_zero);
    CHECK(asked({{"layout", "auto"}, {"tp", "2"}, {"pp", "1"}, {"cp", "1"}}).cp == 1);
    CHECK(asked({{"tp", "2"}}).cp == 1);
}

TEST_CASE("a job's words repeat the layout that was chosen, and its batch" * testing::on_release_libraries()) {
    const auto chosen = request_of(small({{"layout", "auto"}, {"global-batch", "8mb"}}));
    REQUIRE(chosen.job.layout_choice);
    REQUIRE(chosen.job.words);
    Given words;
    for (const auto& one : chosen.job.words->all())
        if (one.name != "seed") words.emplace_back(one.name, one.text);
    CHECK(chosen.job.words->find("seed")->text == "1");
    const auto again = request_of(words);
    CHECK(!again.job.layout_choice);
    CHECK(name_of(again.job.setup->layout) == name_of(chosen.job.setup->layout));
    CHECK(again.job.setup->recipe == chosen.job.setup->recipe);
    CHECK(ids(again.batch) == ids(chosen.batch));
    CHECK(again.batch.microbatches.size() == 8);
}

TEST_CASE("what is said of a recipe is taken over it") {
    const auto recipe_of = [](const Given& more) {
        Given all{{"tp", "8"}, {"pp", "1"}};
        all.insert(all.end(), more.begin(), more.end());
        return request_of(small(all)).job.setup->recipe;
    };
    const auto usual = recipe_of({});
    CHECK(usual.name == "megatron-core");
    const auto said = recipe_of(
        {{"zero", "2"}, {"launch", "3us"}, {"action", "40us"}, {"overlap-slowdown", "1.25"}, {"host-link", "20GB/s"}});
    CHECK(said.zero == 2);
    CHECK(said.launch == std::chrono::microseconds(3));
    CHECK(said.action == std::chrono::microseconds(40));
    CHECK(said.overlap_slowdown == 1.25);
    CHECK(recipe_of({{"split-slowdown", "1.1"}}).split_slowdown == 1.1);
    CHECK(said.host_link == Bandwidth{20'000'000'000});
    CHECK(recipe_of({{"zero", "1"}, {"bucket", "40MB"}}).bucket == Bytes{40'000'000});
    CHECK(recipe_of({{"launched", "eager"}}).layer == emulator::find_recipe("megatron-core-plain").layer);
    CHECK(recipe_of({{"launched", "graphs"}}).launched == emulator::Launched::graphs);
    // A host that is said to take time launches kernel by kernel, whatever the recipe has; it can be read again.
    for (const char* recipe : {"megatron-core", "maxtext"}) {
        const auto timed = recipe_of({{"recipe", recipe}, {"launch", "3us"}});
        CHECK(timed.launched == emulator::Launched::eager);
        const std::string text = emulator::to_json(timed);
        const auto again = emulator::parse_recipe(JsonDocument("recipe.json", text));
        CHECK(again.launched == emulator::Launched::eager);
        CHECK(again.launch == std::chrono::microseconds(3));
    }
    CHECK(recipe_of({{"recipe", "maxtext"}, {"launch", "0us"}}).launched == emulator::Launched::graphs);
    CHECK(error_of(small({{"tp", "8"}, {"pp", "1"}, {"launched", "graphs"}, {"launch", "3us"}})) ==
          "--launch: goes with --launched eager; with graphs the host is never waited for");
    CHECK(error_of(small({{"tp", "8"}, {"pp", "1"}, {"launched", "compiled"}})) ==
          "is 'compiled', must be graphs or eager");
    for (const char* zero : {"2", "3"})
        CHECK(error_of(small({{"tp", "8"}, {"pp", "1"}, {"zero", zero}, {"bucket", "40MB"}})) ==
              std::string("--bucket: goes with --zero 0 and 1; with ") + zero +
                  " gradients are reduced in every backward, layer by layer");
}
