#include "planner/layout/layout.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

// Modules of 6 and 8 layers with 8 and 16 heads, on 8 GPUs.
struct Small : testing::SmallWorkload {
    Small() : SmallWorkload({.tp = 2, .pp = 4, .dp = 1}, {5, 0, 2, 9, 1, 4, 0, 7}) {}
    LayoutRequest request() const {
        LayoutRequest request;
        request.setup = this;
        request.microbatches = microbatches;
        return request;
    }
    LayoutChoice choose(const LayoutRequest& request, const Executor& execute = in_order) const {
        return choose_layout(request, execute);
    }
    // What the policies make of the batch in that layout: no round of a search.
    // `partition`: that of the partitioner with one chunk, if it has a choice; empty: the best.
    Plan plan(const emulator::Layout& in, const std::vector<workloads::Microbatch>& batch,
              const std::string& partition = {}) const {
        Request whole;
        whole.job.setup = std::make_shared<emulator::Setup>(with_layout(*this, in));
        whole.batch.microbatches = batch;
        whole.batch.samples.resize(batch.size());
        whole.job.max_rounds = 0;
        if (!partition.empty())
            whole = testing::on_partition(
                whole, partition::partitioner(partition).make(*whole.job.setup, whole.batch.microbatches, 1));
        return testing::planned(whole);
    }
};

std::size_t refused(const LayoutChoice& choice, std::string_view why) {
    for (const auto& one : choice.refused)
        if (one.why.find(why) != std::string::npos) return one.count;
    return 0;
}

std::string error_of(const Small& setup, const LayoutRequest& request) {
    try {
        static_cast<void>(setup.choose(request));
    } catch (const Error& error) {
        return fmt::format("{} {}", static_cast<int>(error.kind()), error.what());
    }
    return "chosen";
}

auto as_tuple(const LayoutTried& one) {
    return std::tuple(one.layout.tp, one.layout.pp, one.layout.dp, one.microbatches, one.step, one.partition,
                      one.policy);
}

}  // namespace

TEST_CASE("every layout of the GPUs is tried or refused with its reason, the fastest first") {
    const Small setup;
    const auto choice = setup.choose(setup.request());
    // tp * pp divides 8 in ten ways; one of them has 8 ranks, more than the ViT's 6 layers.
    CHECK(choice.tried.size() == 9);
    REQUIRE(choice.refused.size() == 1);
    CHECK(refused(choice, "pp is more than a module's layers") == 1);
    for (std::size_t i = 0; i < choice.tried.size(); ++i) {
        const auto& layout = choice.tried[i].layout;
        CHECK(layout.gpus() == 8);
        CHECK_NOTHROW(check(layout, setup.cluster, setup.model));
        CHECK(choice.tried[i].microbatches == 8);
        if (i > 0) CHECK(choice.tried[i - 1].per_microbatch() <= choice.tried[i].per_microbatch());
    }
    CHECK(choice.layout().gpus() == 8);
    CHECK(choice.tried.front().step < choice.tried.back().step);
}

TEST_CASE("a layout's time is that of the plan's own baseline on it, with what follows all ranks") {
    const Small setup;
    for (const std::int64_t dp : {1, 2, 4}) {
        auto request = setup.request();
        request.microbatches = testing::small_batch({5, 0, 2, 9, 1, 4, 0});  // which replicas cannot share evenly
        request.tp = dp == 4 ? 1 : 2;
        request.dp = dp;
        const auto choice = setup.choose(request);
        REQUIRE(choice.tried.size() == 1);
        const auto& tried = choice.tried.front();

        const auto plan = setup.plan(tried.layout, request.microbatches, tried.partition);
        const auto same = std::find_if(
            plan.baselines.all.begin(), plan.baselines.all.end(),
            [&](const Baseline& baseline) { return !baseline.is_opponent && baseline.policy == tried.policy; });
        REQUIRE(same != plan.baselines.all.end());
        CHECK(tried.step == same->step);
    }
}

TEST_CASE("every layout that is said to fit plans, where memory refuses others" *
          doctest::skip(pipeweaver::testing::short_form())) {
    Small setup;
    setup.model.modules[1].architecture =
        testing::small_network(workloads::ModuleKind::language_model, 16, 8192);  // 18 B parameters
    setup.model.edges[0].projector_out = 8192;
    const auto choice = setup.choose(setup.request());
    CHECK(refused(choice, "memory") > 0);
    REQUIRE(!choice.tried.empty());
    for (const auto& tried : choice.tried) {
        CAPTURE(tried.layout.tp);
        CAPTURE(tried.layout.pp);
        const auto plan = setup.plan(tried.layout, setup.microbatches);
        CHECK(plan.step <= tried.step + tried.step / 10);
    }
}

TEST_CASE("what is fixed stays, and what is fixed wrongly is refused") {
    const Small setup;
    auto request = setup.request();
    request.pp = 2;
    for (const auto& one : setup.choose(request).tried) CHECK(one.layout.pp == 2);
    request.dp = 2;
    const auto choice = setup.choose(request);
    REQUIRE(choice.tried.size() == 1);
    CHECK(choice.layout().tp == 2);
    request.dp = 3;
    CHECK(error_of(setup, request) == "2 --tp auto --pp 2 --dp 3 on 8 GPUs: the numbers given do not divide the GPUs");
    request.pp = 8;
    request.dp = std::nullopt;
    CHECK(error_of(setup, request) ==
          "2 --tp auto --pp 8 --dp auto on 8 GPUs: no layout is possible: pp is more than a module's layers; vit has 6 "
          "(1)");
}

TEST_CASE("tensor parallelism stays inside a node and divides the heads") {
    Small setup;
    setup.cluster.gpus = 12;
    setup.cluster.gpus_per_node = 6;
    // tp 4 and 12 do not divide a node of 6, tp 3 and 6 not the 8 heads: 2 + 1 and 3 + 2 layouts.
    const auto choice = setup.choose(setup.request());
    CHECK(refused(choice, "tp does not divide the 6 GPUs of a node") == 3);
    CHECK(refused(choice, "attention heads; tp must divide 8: vit has 8, llm 16") == 5);
    for (const auto& one : choice.tried) CHECK(one.layout.tp <= 2);
}

TEST_CASE("a batch that replicas share needs a microbatch for each of them, drawn ones do not") {
    const Small setup;
    auto request = setup.request();
    request.microbatches = testing::small_batch({3, 1});
    const auto shared = setup.choose(request);
    CHECK(refused(shared, "more replicas than microbatches") == 3);  // 8 replicas once, 4 replicas twice
    for (const auto& one : shared.tried) CHECK(one.microbatches == 2);

    request.for_each_replica = true;
    const auto drawn = setup.choose(request);
    CHECK(refused(drawn, "more replicas") == 0);
    for (const auto& one : drawn.tried) CHECK(one.microbatches == static_cast<std::size_t>(2 * one.layout.dp));
}

TEST_CASE("a layout is not chosen that cannot hold the largest microbatch of what is drawn for all its replicas") {
    const Small setup;
    auto request = setup.request();
    request.for_each_replica = true;
    const auto with = [&](const std::vector<workloads::Microbatch>& others) {
        request.draw = [&](std::int64_t replicas) {
            auto all = request.microbatches;
            for (std::int64_t r = 1; r < replicas; ++r) all.insert(all.end(), others.begin(), others.end());
            return all;
        };
        return setup.choose(request);
    };
    auto large = testing::small_batch({1, 1, 1, 1, 1, 1, 1, 1});
    large[3].items.front().size.patches = 30'000'000;

    const auto alike = with(request.microbatches);
    REQUIRE(alike.layout().dp > 1);
    CHECK(as_tuple(alike.tried.front()) == as_tuple(with({}).tried.front()));
    const auto other = with(large);
    CHECK(other.layout().dp == 1);  // which has no other replicas
    CHECK(refused(other, "does not fit the memory") > 0);
}

TEST_CASE("the choice does not depend on who tried the layouts, or when") {
    const Small setup;
    const auto backwards = [](std::size_t count, const std::function<void(std::size_t)>& job) {
        for (std::size_t i = count; i-- > 0;) job(i);
    };
    const auto expected = setup.choose(setup.request());
    for (const Executor& execute : {Executor(backwards), on_threads(2), on_threads(testing::full_or_short(8, 4))}) {
        const auto found = setup.choose(setup.request(), execute);
        CHECK(std::equal(found.tried.begin(), found.tried.end(), expected.tried.begin(), expected.tried.end(),
                         [](const auto& a, const auto& b) { return as_tuple(a) == as_tuple(b); }));
        CHECK(found.refused.size() == expected.refused.size());
    }
}

TEST_CASE("a model too large for the GPUs names the closest layout, its rank, what is short, and GPUs that fit it") {
    Small setup;
    setup.model.modules[1].architecture =
        testing::small_network(workloads::ModuleKind::language_model, 48, 8192);  // 52 B parameters
    setup.model.edges[0].projector_out = 8192;
    const auto request = setup.request();
    const std::string message = error_of(setup, request);
    CAPTURE(message);
    CHECK(message.starts_with("4 --tp auto --pp auto --dp auto on 8 GPUs: no layout fits the memory; tp "));
    CHECK(message.find(" comes closest: rank ") != std::string::npos);
    CHECK(message.find(" GiB short of the 73.60 GiB usable of a h100_sxm; 16 GPUs fit it as tp ") != std::string::npos);
    // What was said to fit does.
    setup.cluster.gpus = 16;
    CHECK(message.ends_with(fmt::format("tp {} x pp {} x dp {}", setup.choose(setup.request()).layout().tp,
                                        setup.choose(setup.request()).layout().pp,
                                        setup.choose(setup.request()).layout().dp)));
}

TEST_CASE("where only the fixed numbers do not fit, a layout on the same GPUs is named") {
    Small setup;
    setup.model.modules[1].architecture =
        testing::small_network(workloads::ModuleKind::language_model, 24, 8192);  // 26 B parameters
    setup.model.edges[0].projector_out = 8192;
    auto request = setup.request();
    request.tp = request.pp = 1;
    const std::string message = error_of(setup, request);
    CAPTURE(message);
    CHECK(
        message.starts_with("4 --tp 1 --pp 1 --dp auto on 8 GPUs: no layout fits the memory; tp 1 x pp 1 x dp 8 "
                            "comes closest: rank 0 is "));
    CHECK(message.ends_with(" fits on these GPUs"));
}

TEST_CASE("what is short is the weights' 6 bytes a parameter, 12 over the replicas, and one microbatch's activations") {
    Small setup;
    setup.cluster.gpus = 1;
    setup.model.modules[1].architecture = testing::small_network(workloads::ModuleKind::language_model, 24, 8192);
    setup.model.edges[0].projector_out = 8192;
    auto request = setup.request();
    request.microbatches = testing::small_batch({0});
    const std::string message = error_of(setup, request);
    CAPTURE(message);
    // A layer of the language model has 4 * 8192^2 + 3 * 8192 * 32768 = 1.0737 G, 24 of them 25.77 G; embedding and
    // head 0.52 G; the ViT and the projector 0.11 G: 26.4 G parameters at 18 bytes are 442.7 GiB, 73.6 of them usable.
    const auto place = message.find("rank 0 is ");
    REQUIRE(place != std::string::npos);
    const double short_by = std::stod(message.substr(place + 10));
    CHECK(short_by > 442.7 - 73.6);
    CHECK(short_by < 442.7 - 73.6 + 8);
}
