#include "pipeweaver/planner/record.hpp"

#include "pipeweaver/base/error.hpp"
#include "service/open_session.hpp"
#include "service/parts.hpp"
#include "tests/support/small_session.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/times.hpp"
#include "tests/support/verifier.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <map>

using namespace pipeweaver;
using namespace pipeweaver::service;
using testing::small_lines;
using testing::small_session;

namespace {

std::map<std::string, std::string> texts(const planner::Job& job, const planner::Batch& batch,
                                         const planner::Plan& plan) {
    std::map<std::string, std::string> all;
    for (Part& part : parts_of(job, batch, plan)) all[part.name] = std::move(part.content);
    return all;
}

std::string newly_opened(const std::string& more = "") { return open_session(small_session(more), {}, in_order); }

const std::string& opened() {
    static const std::string one = newly_opened();
    return one;
}

}  // namespace

TEST_CASE("a served plan comes again from its record, every part the same bytes") {
    const std::string kept = open_session(R"({"config":{"model":"dip-vlm-s","cluster":"h100-sxm:16","tp":4,"pp":4,)"
                                          R"("budget":"300ms"},"sample":[)" +
                                              testing::small_samples() + "]}",
                                          {}, in_order);
    const auto job = planner::read_session("job", kept, in_order);
    const std::string lines = small_lines(4);
    const auto batch = job.batch(7, lines);
    for (const std::uint64_t questions : {0U, 12U, 60U}) {
        planner::Endings endings;
        const auto plan = job.session.plan(batch, on_own_threads(3), testing::after_questions(questions), {}, &endings);
        const bool searched = endings.front().has_value();
        CHECK(searched == (questions > 0));
        const auto file = testing::written(
            "record.json", planner::record(kept, 7, lines, searched ? planner::How(endings) : planner::How()));
        const auto again = planner::plan_again(file, in_order);
        CHECK(texts(again.job, again.batch, again.plan) == texts(job.session.job(), batch, plan));
    }
}

TEST_CASE("the parts of a plan are a schedule that runs, and a list for each rank") {
    const auto job = planner::read_session("job", opened(), in_order);
    const auto batch = job.batch(0, small_lines(2));
    auto parts = texts(job.session.job(), batch, job.session.by_policy(batch, in_order));
    const auto verdict = testing::verify(parts.at("replicas/0/problem"), parts.at("replicas/0/solution"));
    CHECK_MESSAGE(verdict.ok, verdict.violation);
    for (const char* name : {"plan", "assignment", "replicas/0/actions", "replicas/0/ranks/0", "replicas/0/ranks/3"}) {
        CAPTURE(name);
        CHECK(nlohmann::json::accept(parts[name]));
    }
    CHECK(parts.count("replicas/0/ranks/4") == 0);
}

TEST_CASE("what is kept leaves nothing open: layout, partition, split and the order to begin with") {
    const auto kept = nlohmann::json::parse(opened());
    for (const char* key : {"tp", "pp", "dp", "partition", "split", "packing"}) CHECK(kept["config"].contains(key));
    CHECK(kept["config"]["split"] != "auto");
    CHECK(kept["order"]["solution"]["format"] == "pipeweaver-solution/1");
    CHECK(newly_opened() == opened());
    const auto job = planner::read_session("job", kept.dump(), in_order);
    CHECK(nlohmann::json::parse(job.partition)["format"] == "pipeweaver-partition/1");
    CHECK(job.session.replicas() == std::vector<std::size_t>{0});
}

TEST_CASE("a session's batches are dealt by its loader, which is kept") {
    const auto kept = newly_opened(R"(,"loader":{"format":"pipeweaver-loader/1","name":"own","workers":3,)"
                                   R"("stages":[{"name":"decode","on":"core","image_ns":1}]})");
    const auto job = planner::read_session("job", kept, in_order);
    REQUIRE(job.session.job().loader);
    CHECK(job.session.job().loader->name == "own");
    CHECK(job.session.job().loader->queue.workers == 3);
}

TEST_CASE("a session may name no file, and nothing that a service has not") {
    const auto refused = [](const std::string& more, const char* why) {
        CAPTURE(more);
        CHECK_THROWS_WITH_AS(static_cast<void>(newly_opened(more)), doctest::Contains(why), Error);
    };
    for (const char* more :
         {R"(,"partition":"/etc/passwd")", R"(,"recipe":"r.yaml")", R"(,"sample":"a.jsonl")",
          R"(,"partition":"p.json")", R"(,"sample":"notes")", R"(,"sample":"101,notes")", R"(,"sample":1.5)",
          R"(,"sample":{"a":1})", R"(,"recipe":"tmp/x")", R"(,"loader":"own.json")"})
        refused(more, "names a file");
    for (const char* key : {"out", "costs", "anchor", "batch", "deferred", "actions", "target", "threads"})
        refused(fmt::format(R"(,"{}":"x")", key), "is not for sessions of a service");
    refused(R"(,"modle":"x")", "did you mean 'model'");
    refused(R"(,"budget":"1h")", "must be at most 60 s");
    const auto asked = [](const char* text) { return open_session(text, {}, in_order); };
    CHECK_THROWS_WITH_AS(asked(R"({"config":{"model":"hf:x","cluster":"h100-sxm:16"},"sample":[]})"),
                         doctest::Contains("names a file"), Error);
    CHECK_THROWS_WITH_AS(asked(R"({"config":{"model":"dip-vlm-s","cluster":"x.json:16"},"sample":[]})"),
                         doctest::Contains("names a file"), Error);
    CHECK_THROWS_WITH_AS(asked(R"({"config":{"model":"dip-vlm-s","cluster":"h100-sxm:16"}})"),
                         "missing --batch FILE or --dataset DATASET: the samples of a step", Error);
    CHECK_THROWS_AS(asked("[]"), Error);
    CHECK_THROWS_AS(asked("{"), Error);
    CHECK_THROWS_AS(asked((std::string(100'000, '[')).c_str()), Error);
}

TEST_CASE("what is too large for a server is refused before anything is made of it") {
    const OpenLimits limits{.most_gpus = 8, .most_samples = 3};
    const auto refused = [&](const std::string& config, const std::string& sample, const char* why) {
        const std::string asked = fmt::format(R"({{"config":{{"model":"dip-vlm-s",{}}}{}}})", config, sample);
        CAPTURE(asked);
        try {
            static_cast<void>(open_session(asked, limits, in_order));
            FAIL("it is not refused");
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::limit);
            CHECK(std::string(error.what()) == why);
        }
    };
    refused(R"("cluster":"h100-sxm:1000000")", "", "config: cluster: has 1000000 GPUs, allowed are 8");
    refused(R"("cluster":"h100-sxm:8")", R"(,"sample":[{},{},{},{}])", "sample: has 4, allowed are 3");
    refused(R"("cluster":"h100-sxm:8","dataset":"vlm-mix","microbatches":4)", "",
            "config: microbatches: is 4, must be at most 3");
    refused(R"("cluster":"h100-sxm:8","dataset":"vlm-mix","global-batch":9)", "",
            "config: global-batch: is 9, must be at most 3");
}

TEST_CASE("a model, a cluster and a partition may be given as documents") {
    const auto kept = nlohmann::json::parse(opened());
    auto asked = nlohmann::json::parse(small_session());
    asked["config"]["partition"] = nlohmann::json::parse(kept["config"]["partition"].get<std::string>());
    const auto again = nlohmann::json::parse(open_session(asked.dump(), {}, in_order));
    CHECK(nlohmann::json::parse(again["config"]["partition"].get<std::string>())["modules"] ==
          nlohmann::json::parse(kept["config"]["partition"].get<std::string>())["modules"]);
}

TEST_CASE("servers share out a session's replicas, and each plans what all would") {
    const std::string asked =
        R"({"config":{"model":"dip-vlm-s","cluster":"h100-sxm:32","tp":4,"pp":4,"max-rounds":3},"sample":[)" +
        testing::small_samples() + "," + testing::small_samples(1) + "]}";
    const std::string lines = small_lines(5) + small_lines(6);
    const auto parts_by = [&](std::vector<std::size_t> replicas) {
        const auto job =
            planner::read_session("job", open_session(asked, {.replicas = std::move(replicas)}, in_order), in_order);
        const auto batch = job.batch(1, lines);
        return texts(job.session.job(), batch, job.session.by_policy(batch, in_order));
    };
    auto all = parts_by({}), second = parts_by({1});
    CHECK(second.count("replicas/0/solution") == 0);
    CHECK(second.at("replicas/1/solution") == all.at("replicas/1/solution"));
    CHECK(second.at("replicas/1/ranks/2") == all.at("replicas/1/ranks/2"));
    CHECK_THROWS_WITH_AS(parts_by({5}), doctest::Contains("this server plans none of the 2"), Error);
}

TEST_CASE("a record that is damaged is refused by its key") {
    const std::string& kept = opened();
    const auto refused = [&](const nlohmann::json& patch, const char* why) {
        auto json = nlohmann::json::parse(planner::record(kept, 1, small_lines(), planner::Endings(1)));
        json.merge_patch(patch);
        CHECK_THROWS_WITH_AS(planner::plan_again(testing::written("record.json", json.dump()), in_order),
                             doctest::Contains(why), Error);
    };
    refused({{"format", "pipeweaver-record/2"}}, "pipeweaver-record/2");
    refused({{"step", "x"}}, "step");
    refused({{"endings", {1, 2}}}, "endings");
    refused({{"endings", nlohmann::json::array({nullptr, nullptr})}}, "has 2 entries, the session plans 1 replicas");
    refused({{"endings", nlohmann::json::array({{1, 2, 3}})}}, "2 or 5 are needed");
    refused({{"samples", "{}"}}, "step 1");
    refused({{"session", {{"config", {{"split", "auto"}}}}}}, "leaves open");
}
