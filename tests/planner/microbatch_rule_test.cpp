// --microbatch-tokens and --too-long: what they make of a job's model and batch, and that they stay with the job.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/plan_options.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

WorkloadOptions options_of(const std::string& more) {
    WorkloadOptions options;
    OptionTable table;
    options.add_to(table);
    const JsonDocument document("asked",
                                R"({"model":"llama3-8b","cluster":"h100-sxm:8","tp":2,"pp":2,"dp":2)" + more + "}");
    table.configure(document.root());
    return options;
}

Request request_of(const std::string& more) { return options_of(more).request(1, in_order); }

std::int64_t most_tokens(const Batch& batch) {
    std::int64_t most = 0;
    for (const auto& one : batch.microbatches) most = std::max(most, one.tokens);
    return most;
}

const std::string drawn = R"(,"dataset":"c4","microbatches":4)";

}  // namespace

TEST_CASE("microbatches hold as many tokens as options say, and the model's file is what it was") {
    const Request usual = request_of(drawn), larger = request_of(drawn + R"(,"microbatch-tokens":30000)");
    CHECK(most_tokens(usual.batch) <= 8192);
    CHECK(most_tokens(larger.batch) > 20'000);
    CHECK(most_tokens(larger.batch) <= 30'000);
    CHECK(larger.batch.microbatches.size() == usual.batch.microbatches.size());
    CHECK(to_json(larger.job.setup->model) == to_json(workloads::model("llama3-8b")));
    REQUIRE(larger.job.words);
    REQUIRE(larger.job.words->find("microbatch-tokens") != nullptr);
    CHECK(larger.job.words->find("microbatch-tokens")->text == "30000");
    CHECK(usual.job.words->find("microbatch-tokens") == nullptr);
    CHECK_THROWS_WITH_AS(options_of(R"(,"microbatch-tokens":0)"), doctest::Contains("must be a whole number from 1"),
                         Error);
}

TEST_CASE("a batch without the samples too long, or with microbatches of their own, says what it is") {
    const auto file = testing::written("rule.jsonl", R"({"id":"a","text_tokens":900})"
                                                     "\n"
                                                     R"({"id":"b","text_tokens":5000})"
                                                     "\n"
                                                     R"({"id":"c","text_tokens":100})"
                                                     "\n"
                                                     R"({"id":"d","text_tokens":1000})"
                                                     "\n");
    const std::string asked = fmt::format(R"(,"batch":"{}","microbatch-tokens":1000)", file.string());
    CHECK_THROWS_WITH_AS(request_of(asked), doctest::Contains(":2: sample 'b' has 5000 tokens"), Error);
    CHECK_THROWS_WITH_AS(request_of(asked + R"(,"too-long":"error")"), doctest::Contains(":2: sample 'b'"), Error);
    CHECK_THROWS_WITH_AS(request_of(asked + R"(,"too-long":"cut")"),
                         doctest::Contains("must be one of error, drop, own"), Error);

    const Request dropped = request_of(asked + R"(,"too-long":"drop")");
    CHECK(dropped.batch.samples.size() == 3);
    CHECK(dropped.batch.dropped == std::vector<std::string>{"b"});
    CHECK(dropped.batch.microbatches.size() == 2);
    CHECK(not_taken(dropped.batch) == " (1 larger than a microbatch dropped)");
    // Batches that come later are of the same job.
    const Batch later = dropped.job.batch("later", {{"x", 1001, 1001, {}}, {"y", 1000, 1000, {}}, {"z", 1, 1, {}}});
    CHECK(later.dropped == std::vector<std::string>{"x"});
    CHECK(later.samples.size() == 2);

    const Request own = request_of(asked + R"(,"too-long":"own")");
    CHECK(own.batch.microbatches.size() == 4);
    CHECK(most_tokens(own.batch) == 5000);
    CHECK(not_taken(own.batch).empty());
}

TEST_CASE("what a plan.json asked of microbatches is taken where options say nothing") {
    const JsonDocument plan("plan", R"({"microbatch_tokens":4000,"too_long":"own"})");
    WorkloadOptions silent, loud;
    loud.microbatch_tokens = 5000;
    loud.too_long = "drop";
    silent.pack_as(plan.root());
    loud.pack_as(plan.root());
    CHECK(silent.microbatch_tokens == 4000);
    CHECK(silent.too_long == "own");
    CHECK(loud.microbatch_tokens == 5000);
    CHECK(loud.too_long == "drop");
}
