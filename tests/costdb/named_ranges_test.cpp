// Named ranges of traces, on a CPU and on a GPU.
#include "pipeweaver/costdb/named_ranges.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::costdb;

namespace {

NamedRanges ranges_of(const std::string& text) {
    const pipeweaver::testing::TemporaryFolder folder("named_ranges");
    const auto path = folder.path() / "trace.json";
    write_files({{path, text}});
    return read_named_ranges(path, "PP:");
}

}  // namespace

TEST_CASE("on a CPU a range begins with the first operator of its thread inside it") {
    const auto found = ranges_of(R"({"distributedInfo":{"backend":"gloo","rank":3,"world_size":4},"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":14.5,"dur":1},
{"ph":"X","cat":"user_annotation","name":"PP:0F1","pid":1,"tid":1,"ts":20,"dur":5.001},
{"ph":"X","cat":"user_annotation","name":"PP:0F0","pid":1,"tid":1,"ts":10,"dur":8},
{"ph":"X","cat":"user_annotation","name":"Optimizer","pid":1,"tid":1,"ts":10,"dur":80},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":16,"dur":1},
{"ph":"X","cat":"cpu_op","name":"elsewhere","pid":1,"tid":2,"ts":11,"dur":1}]})");

    CHECK(found.rank == 3);
    CHECK_FALSE(found.on_gpu);
    CHECK(found.ranges == std::vector<NamedRange>{{"PP:0F0", 14'500, 18'000}, {"PP:0F1", 20'000, 25'001}});
}

TEST_CASE("on a GPU the longest of a launch's ranges counts, and what the host did does not") {
    const auto found = ranges_of(R"([
{"ph":"X","cat":"user_annotation","name":"PP:0F0","pid":1,"tid":1,"ts":1,"dur":2,"args":{"External id":7}},
{"ph":"X","cat":"gpu_user_annotation","name":"PP:0F0","pid":0,"tid":7,"ts":30,"dur":9,"args":{"External id":7}},
{"ph":"X","cat":"gpu_user_annotation","name":"PP:0F0","pid":0,"tid":20,"ts":33,"dur":2,"args":{"External id":7}},
{"ph":"X","cat":"gpu_user_annotation","name":"PP:0F0","pid":0,"tid":7,"ts":50,"dur":9.5,"args":{"External id":9}}])");

    CHECK_FALSE(found.rank);
    CHECK(found.on_gpu);
    CHECK(found.ranges == std::vector<NamedRange>{{"PP:0F0", 30'000, 39'000}, {"PP:0F0", 50'000, 59'500}});
}

TEST_CASE("a range without a time is refused with its event") {
    CHECK_THROWS_WITH_AS(ranges_of(R"([{"ph":"X","cat":"user_annotation","name":"PP:0F0","ts":"soon","dur":1}])"),
                         doctest::Contains("event 1 'PP:0F0': ts: is 'soon', which is no time in microseconds"), Error);
}
