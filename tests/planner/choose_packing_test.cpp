#include "planner/job/sample.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using testing::small_request;

TEST_CASE("another packing is taken where the sample is clearly shorter in it, with the first one's partition" *
          pipeweaver::testing::on_release_libraries()) {
    const Request given = small_request(1, {5, 0, 2, 9, 1, 4, 0, 7});
    Request fewer = small_request(1, {5, 2, 9, 5, 7});
    fewer.job.packing = workloads::Packing::first_fit_decreasing;
    Request same = given;
    same.job.packing = workloads::Packing::balanced;

    CHECK(choose_packing({given, same}, in_order).job.packing == workloads::Packing::given);
    const Request chosen = choose_packing({given, same, fewer}, in_order);
    CHECK(chosen.job.packing == workloads::Packing::first_fit_decreasing);
    CHECK(chosen.batch.microbatches.size() == fewer.batch.microbatches.size());
    REQUIRE(chosen.job.fixed);
    CHECK(chosen.job.fixed->partition.name == choose_packing({given}, in_order).job.fixed->partition.name);
    CHECK(choose_packing({fewer, given}, in_order).job.packing == workloads::Packing::first_fit_decreasing);
    CHECK(choose_packing({given, same, fewer}, on_threads(3)).job.packing == chosen.job.packing);
}

TEST_CASE("a packing in which the sample does not fit is not taken") {
    const Request given = small_request(1, {5, 0, 2, 9});
    Request large = small_request(1, {4000});
    large.job.packing = workloads::Packing::balanced;
    CHECK(choose_packing({given, large}, in_order).job.packing == workloads::Packing::given);
}
