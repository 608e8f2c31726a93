#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/base/text.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace pipeweaver;

TEST_CASE("SHA-256 gives the published digest of 'abc'") {
    CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("texts are joined as they are, or as what is said of each, without those of which nothing is said") {
    const std::vector<std::string> texts{"a", "", "bc"};
    CHECK(joined(texts, ", ") == "a, bc");
    CHECK(joined(texts, "+", [](const std::string& one) { return std::to_string(one.size()); }) == "1+0+2");
}

TEST_CASE("what is not there is null in JSON, and so is an empty text") {
    CHECK(or_null(std::optional(3)).dump() == "3");
    CHECK(or_null(std::optional<int>()).dump() == "null");
    CHECK(or_null(std::string("no")).dump() == "\"no\"");
    CHECK(or_null(std::string()).dump() == "null");
    CHECK(or_null(std::optional(std::string())).dump() == "\"\"");
}

TEST_CASE("gzip is the same at any time and comes back whole") {
    std::string text;
    for (int i = 0; i < 300'000; ++i) text += static_cast<char>('a' + i % 23);

    const auto zipped = gzip(text);

    CHECK(zipped.substr(4, 4) == std::string(4, '\0'));  // the time stamp
    CHECK(gunzip(zipped) == text);
    CHECK(gunzip(gzip("")).empty());
}

TEST_CASE("gzip data that is cut short or damaged is bad input") {
    auto zipped = gzip(std::string(1000, 'x') + "end");

    CHECK_THROWS_WITH_AS(gunzip(zipped.substr(0, zipped.size() - 5)), "gzip data is cut short", Error);
    zipped[15] = static_cast<char>(zipped[15] ^ 0x55);
    CHECK_THROWS_AS(gunzip(zipped), Error);
}

TEST_CASE("writing several files writes all or none") {
    const testing::TemporaryFolder temporary("write");
    const auto& folder = temporary.path();
    write_files({{folder / "a/one.txt", "1"}, {folder / "two.json.gz", "2"}});
    CHECK(read_file(folder / "a/one.txt") == "1");
    CHECK(read_file(folder / "two.json.gz") == "2");

    // "two.json.gz/x" cannot be: its folder is a file.
    CHECK_THROWS_AS(write_files({{folder / "a/one.txt", "new"}, {folder / "two.json.gz/x", "3"}}), Error);
    CHECK(read_file(folder / "a/one.txt") == "1");
    CHECK(std::distance(std::filesystem::directory_iterator(folder / "a"), {}) == 1);
}

TEST_CASE("times, sizes and speeds are read with their unit and refused without") {
    CHECK(parse_duration("1.5us") == Duration{1500});
    CHECK(parse_duration("2s") == Duration{2'000'000'000});
    CHECK(parse_bytes("80GiB") == 80_GiB);
    CHECK(parse_bytes("1.5GB") == Bytes{1'500'000'000});
    CHECK(parse_bandwidth("400Gb/s").bytes_per_second == 50'000'000'000);
    for (const char* bad : {"2", "s", "", "-1s", "1 s", "1e3s", "nan", "infs", "99999999999h", "0x2s"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_duration(bad), Error);
    }
    CHECK_THROWS_AS(parse_bandwidth("0GB/s"), Error);
}

TEST_CASE("the nearest name is offered, or all of them") {
    const std::array<std::string, 3> names{"dip-vlm-s", "dip-vlm-m", "llama3-8b"};
    CHECK(unknown("model", "dip-vlm-n", names) == "unknown model 'dip-vlm-n'; did you mean 'dip-vlm-s'?");
    const std::vector<std::string> visions{"qwen2.5-vl", "qwen2.5-vl-7b", "qwen2.5-vl-7b-moe-vit"};
    CHECK(unknown("model", "qwen2.5-vl-7b-instruct", visions) ==
          "unknown model 'qwen2.5-vl-7b-instruct'; did you mean 'qwen2.5-vl-7b'?");
    CHECK(unknown("model", "zzz", names) == "unknown model 'zzz'; known are dip-vlm-s, dip-vlm-m, llama3-8b");
}

TEST_CASE("a JSON error names file, place and what is allowed") {
    const JsonDocument document("p.json", R"({"ranks":[{"base":1},{"base":-1}],"kind":"G","big":1e300})");
    const Json root = document.root();
    CHECK_THROWS_WITH_AS(root.at("ranks")[1].at("base").integer(0, 9),
                         "p.json: ranks[1].base: is -1, must be a whole number from 0 to 9", Error);
    CHECK_THROWS_WITH_AS(root.only_keys({"rank", "kind", "big"}), "p.json: unknown key 'ranks'; did you mean 'rank'?",
                         Error);
    CHECK_THROWS_WITH_AS(root.at("kind").one_of({"F", "B"}), "p.json: kind: is 'G', must be one of F, B", Error);
    CHECK_THROWS_WITH_AS(root.at("x"), "p.json: the key 'x' is missing", Error);
    CHECK_THROWS_AS(root.at("big").integer(), Error);
}

TEST_CASE("what is not JSON is refused with line and column") {
    CHECK_THROWS_WITH_AS(JsonDocument("p.json", "{\"a\":1,\n \"b\":}"), "p.json: is not JSON: line 2, column 6", Error);
    CHECK_THROWS_WITH_AS(JsonDocument("p.json", R"({"a":1,"a":2})"), "p.json: the key 'a' occurs twice in one object",
                         Error);
    CHECK_THROWS_AS(JsonDocument("p.json", std::string(1000, '[')), Error);
    CHECK_THROWS_AS(JsonDocument("p.json", ""), Error);
    CHECK_THROWS_AS(JsonDocument("p.json", "\"\xff\""), Error);
}

TEST_CASE("a newer format is refused by name") {
    const JsonDocument document("p.json", R"({"format":"pipeweaver-problem/2"})");
    CHECK_THROWS_WITH_AS(document.require_format("pipeweaver-problem", 1),
                         "p.json: format: is 'pipeweaver-problem/2', this program reads 'pipeweaver-problem/1'", Error);
}

TEST_CASE("canonical bytes are sorted, without spaces, in UTF-8") {
    const JsonDocument document("p.json", "{\"b\" : [1, 2.0],\n\"a\":\"\xc3\xa4\\u0001\\n\"}");
    CHECK(document.canonical() == "{\"a\":\"\xc3\xa4\\u0001\\n\",\"b\":[1,2.0]}");
}

TEST_CASE("random numbers depend on seed, stream and place alone, and spread evenly") {
    Random a(1, 7), b(1, 7), other(1, 8);
    CHECK(a.next() == b.next());
    CHECK(a.next() != other.next());
    std::array<int, 10> counts{};
    for (int i = 0; i < 10'000; ++i) ++counts[a.below(10)];
    for (const int count : counts) CHECK(count == doctest::Approx(1000).epsilon(0.12));
    double sum = 0;
    for (int i = 0; i < 10'000; ++i) sum += a.uniform();
    CHECK(sum / 10'000 == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("an executor runs every job once on any number of threads") {
    for (const auto make : {on_threads, on_own_threads})
        for (const int threads : {1, 2, testing::many_threads()}) {
            std::vector<int> slots(1000);
            const auto execute = make(threads);
            for (int round = 0; round < 50; ++round)
                execute(slots.size(), [&](std::size_t i) { slots[i] += static_cast<int>(i); });
            CHECK(std::accumulate(slots.begin(), slots.end(), 0) == 50 * 499'500);
            CHECK(threads_of(execute) == static_cast<std::size_t>(threads));
        }
}

TEST_CASE("own threads take a call inside a job, and calls of several threads at once") {
    const auto execute = on_own_threads(3);
    std::vector<int> slots(8 * 50);
    const auto fill = [&](std::size_t row) { execute(50, [&](std::size_t i) { ++slots[row * 50 + i]; }); };
    execute(4, fill);
    {
        std::vector<std::jthread> callers;
        for (std::size_t row = 4; row < 8; ++row) callers.emplace_back([&fill, row] { fill(row); });
    }
    CHECK(std::count(slots.begin(), slots.end(), 1) == 400);
}

// GCC 12's sanitizers do not free the locks of their own allocator in a child: it would wait for them for ever.
TEST_CASE("a child of a fork makes own threads of its own, whatever its parent's were doing" *
          testing::never_sanitized()) {
    const auto execute = on_own_threads(3);
    std::atomic<bool> stop = false;
    std::jthread busy([&] {
        while (!stop) execute(64, [](std::size_t) { std::this_thread::sleep_for(std::chrono::microseconds(50)); });
    });
    for (int i = 0; i < 20; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            std::array<int, 100> slots{};
            on_own_threads(3)(slots.size(), [&](std::size_t k) { slots[k] = 1; });
            _exit(std::accumulate(slots.begin(), slots.end(), 0) == 100 ? 0 : 1);
        }
        int status = 1;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    stop = true;
}
