// Operators of a trace's events, and why no table holds some.
#include "costdb/import/kineto/kineto_operators.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::costdb;

namespace {

TraceEvent all_gather() {
    TraceEvent event;
    event.collective = "_allgather_base";
    event.dtype = "BFloat16";
    event.in_elements = "1000";
    event.out_elements = "8000";
    event.group_size = "8";
    return event;
}

std::string why_not(const TraceEvent& event) {
    const auto found = collective_of(event, 8);
    REQUIRE(found);
    CHECK(found->which == OperatorClass::collective);
    return found->why_not;
}

}  // namespace

TEST_CASE("a collective's message is all that is gathered, or all that is reduced, of its dtype") {
    const auto gathered = collective_of(all_gather(), 8);
    REQUIRE(gathered);
    CHECK(gathered->why_not.empty());
    CHECK(gathered->collective == CollectiveKind::all_gather);
    CHECK(gathered->sizes == std::array<std::int64_t, 5>{8, 8, 16'000});
    TraceEvent scattered = all_gather();
    scattered.collective = "reduce_scatter_tensor";
    scattered.dtype = "Float";
    scattered.in_elements = "8000";
    scattered.out_elements = "1000";
    CHECK(collective_of(scattered, 4)->sizes == std::array<std::int64_t, 5>{8, 4, 32'000});
    CHECK(!collective_of(TraceEvent{}, 8));
}

TEST_CASE("collectives that no table holds are listed with the reason") {
    CHECK(why_not(all_gather()).empty());
    TraceEvent event = all_gather();
    event.collective = "broadcast";
    CHECK(why_not(event) == "no table holds broadcast");
    event = all_gather();
    event.dtype = "ComplexDouble";
    CHECK(why_not(event) == "no table holds collectives of ComplexDouble");
    event = all_gather();
    event.out_split = "[1, 2]";
    CHECK(why_not(event) == "its parts differ in size");
    for (const char* size : {"1", "", "x"}) {
        event = all_gather();
        event.group_size = size;
        CHECK(why_not(event) == "its group or message is of no size that a table holds");
    }
}
