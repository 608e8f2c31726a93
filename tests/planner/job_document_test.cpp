// A job that exists before any batch of it: made from a document, opened, and only then given batches.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/plan_options.hpp"
#include "pipeweaver/planner/session.hpp"
#include "tests/support/small_session.hpp"
#include "tests/support/times.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

Job job_of(const std::string& more) {
    const JsonDocument document("job.json",
                                R"({"model":"dip-vlm-s","cluster":"h100-sxm:16","tp":4,"pp":4,)" + more + "}");
    PlanConfiguration asked;
    asked.configure(document.root());
    return asked.plan.job_alone(asked.limits, in_order);
}

Batch next_batch(const Job& job, int seed) {
    return job.batch("next", workloads::parse_batch("next", testing::small_lines(seed), job.setup->model));
}

}  // namespace

TEST_CASE("a job of a document has no batch, is cut on its sample, and plans any batch that comes") {
    const Job job = job_of(R"("dataset":"vlm-mix","microbatches":4,"sample":"101-102","max-rounds":2)");
    CHECK(job.sample.batches.size() == 2);
    CHECK(!job.fixed);
    const Session session(job, in_order, {});
    REQUIRE(session.job().fixed);
    CHECK(session.job().split != Split::automatic);
    CHECK(session.replicas() == std::vector<std::size_t>{0});

    const Batch batch = next_batch(session.job(), 1);
    const Plan plan = session.plan(batch, in_order, {});
    CHECK(plan.makespan <= session.by_policy(batch, in_order).makespan);
    CHECK(plan.partition().name == session.partition().name);
    // The same as a session that goes on from a first plan of that batch on that partition.
    const Session after(session.job(), session.by_policy(batch, in_order));
    CHECK(after.by_policy(next_batch(job, 2), in_order).makespan ==
          session.by_policy(next_batch(job, 2), in_order).makespan);
}

TEST_CASE("a job that nothing can be chosen on is refused when it is made, in one line") {
    CHECK_THROWS_WITH_AS(static_cast<void>(job_of(R"("max-rounds":2)")),
                         doctest::Contains("--sample, --partition: a job without a batch needs"), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(job_of(R"("dataset":"vlm-mix","packing":"tight")")),
                         doctest::Contains("packing"), Error);
    CHECK(job_of(R"("dataset":"vlm-mix","microbatches":4,"partition":"balanced")").partition == "balanced");
}
