#include "pipeweaver/emit/emulation_files.hpp"
#include "tests/support/small_emulation.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace pipeweaver;
using emulator::Stream;

TEST_CASE("a trace of kernels has a process for each rank, a thread for each stream in use, and its memory") {
    const auto replica = testing::small_replica(4);
    const std::vector<emit::RankKernels> ranks{
        {1,
         {{Stream::compute, "qkv", "llm", 0, 1, Duration{1500}, Duration{250}},
          {Stream::tensor, "gather", "llm", 0, 1, Duration{1750}, Duration{1}}}},
        {3, {{Stream::data, "reduce \"gradients\"", "", {}, {}, Duration{2'000'000}, Duration{3000}}}}};
    const auto text = emit::kernel_trace(replica, ranks);
    const auto events = nlohmann::json::parse(text)["traceEvents"];

    std::vector<std::string> threads, kernels;
    int memory = 0;
    for (const auto& event : events) {
        if (event["name"] == "thread_name")
            threads.push_back(event["pid"].dump() + event["tid"].dump() + event["args"]["name"].get<std::string>());
        if (event["ph"] == "X") kernels.push_back(event.dump());
        if (event["ph"] == "C") ++memory;
    }
    CHECK(threads == std::vector<std::string>{"10compute", "11tensor", "33data"});
    CHECK(memory == 6);
    REQUIRE(kernels.size() == 3);
    CHECK(kernels[0] == R"({"args":{"microbatch":0,"stage":1},"cat":"llm","dur":0.25,"name":"qkv","ph":"X","pid":1,)"
                        R"("tid":0,"ts":1.5})");
    CHECK(kernels[2] == R"({"args":{},"cat":"","dur":3.0,"name":"reduce \"gradients\"","ph":"X","pid":3,"tid":3,)"
                        R"("ts":2000.0})");
    CHECK(text.find("\"ts\":1.750,\"dur\":0.001") != std::string::npos);
}
