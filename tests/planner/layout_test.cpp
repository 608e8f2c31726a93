#include "pipeweaver/emulator/layout.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/partition/replicas.hpp"
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "planner/layout/layout_trial.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
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
    // `partition`: that of the partitioner with so many chunks, if it has a choice; empty: the best.
    Plan plan(const emulator::Layout& in, const std::vector<workloads::Microbatch>& batch,
              const std::string& partition = {}, std::int64_t chunks = 1) const {
        Request whole;
        whole.job.setup = std::make_shared<emulator::Setup>(with_layout(*this, in));
        whole.batch.microbatches = batch;
        whole.batch.samples.resize(batch.size());
        whole.job.max_rounds = 0;
        if (!partition.empty())
            whole = testing::on_partition(
                whole, partition::partitioner(partition).make(*whole.job.setup, whole.batch.microbatches, chunks));
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

// The small setup's own choice, made once for all tests.
const LayoutChoice& small_choice() {
    static const Small setup;
    static const LayoutChoice choice = setup.choose(setup.request());
    return choice;
}

auto as_tuple(const LayoutTried& one) {
    return std::tuple(one.layout.tp, one.layout.pp, one.layout.dp, one.layout.cp, one.zero, one.microbatches, one.step,
                      one.partition, one.policy, one.recompute, one.memory, one.searched);
}

}  // namespace

TEST_CASE("every layout of the GPUs is tried or refused with its reason, the fastest first") {
    const Small setup;
    const auto& choice = small_choice();
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

        CHECK(!tried.searched);  // there was nothing to choose
        const auto plan = setup.plan(tried.layout, request.microbatches, tried.partition, tried.chunks_per_rank);
        const auto same = std::find_if(
            plan.baselines.all.begin(), plan.baselines.all.end(),
            [&](const Baseline& baseline) { return !baseline.is_opponent && baseline.policy == tried.policy; });
        REQUIRE(same != plan.baselines.all.end());
        CHECK(tried.step == same->step);
    }
}

TEST_CASE("every layout that is said to fit plans, where memory refuses others" *
          pipeweaver::testing::on_release_libraries()) {
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

TEST_CASE("what is fixed stays, and what is fixed wrongly is refused" * testing::on_release_libraries()) {
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

TEST_CASE("tensor parallelism stays inside a node and divides the heads" * testing::on_release_libraries()) {
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

TEST_CASE("a layout is not chosen that cannot hold the largest microbatch of what is drawn for all its replicas" *
          testing::on_release_libraries()) {
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
    const auto& expected = small_choice();
    for (const Executor& execute : testing::full_or_short<std::vector<Executor>>(
             {Executor(backwards), on_threads(2), on_threads(8)}, {on_threads(3)})) {
        const auto found = setup.choose(setup.request(), execute);
        CHECK(std::equal(found.tried.begin(), found.tried.end(), expected.tried.begin(), expected.tried.end(),
                         [](const auto& a, const auto& b) { return as_tuple(a) == as_tuple(b); }));
        CHECK(found.refused.size() == expected.refused.size());
    }
}

TEST_CASE("a model too large for the GPUs names the closest layout, its rank, what is short, and GPUs that fit it" *
          testing::on_release_libraries()) {
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
    LayoutRequest of_own = request;
    of_own.drawn_for_own = true;  // 16 GPUs would draw others
    CHECK(error_of(setup, of_own).find("; 16 GPUs fit the same ") != std::string::npos);
    // What was said to fit does.
    setup.cluster.gpus = 16;
    const auto fits = setup.choose(setup.request()).layout();
    CHECK(message.ends_with(fmt::format("tp {} x pp {} x dp {}", fits.tp, fits.pp, fits.dp)));
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

TEST_CASE("where a layout fits with less kept free, that headroom and the layout are named") {
    Small setup;
    setup.cluster.gpus = 1;
    // 13 layers of 4 * 4096^2 + 3 * 4096 * 16384 = 0.268 G, embedding and head 0.262 G, ViT and projector 0.08 G: 3.83
    // G parameters at 18 bytes are 64.2 GiB. With 20 % kept free 58.88 GiB are usable, with 3 % 71.39.
    setup.model.modules[1].architecture = testing::small_network(workloads::ModuleKind::language_model, 13, 4096);
    setup.model.edges[0].projector_out = 4096;
    setup.headroom = {200'000};
    auto request = setup.request();
    request.microbatches = testing::small_batch({0});
    const std::string message = error_of(setup, request);
    CAPTURE(message);
    CHECK(message.find(" with 20 % kept free; with --headroom 3% tp 1 x pp 1 x dp 1 fits on these GPUs; ") !=
          std::string::npos);
    setup.headroom = emulator::usual_headroom;
    CHECK(error_of(setup, request) == "chosen");

    setup.headroom = {200'000};
    setup.model.modules[1].architecture = testing::small_network(workloads::ModuleKind::language_model, 26, 4096);
    CHECK(error_of(setup, request).find("--headroom") == std::string::npos);
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

namespace {

LayoutRequest all_free(const Small& setup) {
    auto request = setup.request();
    request.cp = std::nullopt;
    request.any_ep = request.any_zero = true;
    return request;
}

const LayoutChoice& free_choice() {
    static const Small setup;
    static const LayoutChoice choice = setup.choose(all_free(setup));
    return choice;
}

bool is_same(const LayoutTried& one, const LayoutAndZero& other) {
    const emulator::Layout& in = other.layout;
    return one.layout.tp == in.tp && one.layout.pp == in.pp && one.layout.dp == in.dp && one.layout.cp == in.cp &&
           one.zero == other.zero;
}

}  // namespace

TEST_CASE("with all degrees free layouts differ in context parallelism and ZeRO stage, too, and none is there twice") {
    const Small setup;
    const auto& choice = free_choice();
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, int>> seen;
    bool any_context = false, any_stage = false;
    for (const auto& one : choice.tried) {
        CHECK(one.layout.gpus() == 8);
        CHECK_NOTHROW(check(one.layout, setup.cluster, setup.model));
        CHECK(seen.insert({one.layout.tp, one.layout.cp, one.layout.pp, one.layout.dp, one.zero}).second);
        CHECK(one.microbatches == 8);
        CHECK(one.memory <= capacity_of(setup));
        any_context = any_context || one.layout.cp > 1;
        any_stage = any_stage || one.zero > 1;
        // Where nobody has a copy there is nothing to share out.
        if (one.layout.weight_copies() == 1) CHECK(one.zero == 1);
    }
    CHECK(any_context);
    CHECK(any_stage);
    CHECK(choice.equal_batch);
    CHECK(choice.tried.size() + choice.passed_over > 30);
    // At least as good as the best of fewer.
    CHECK(choice.best().step <= small_choice().best().step);
}

TEST_CASE("layouts for a target have the ZeRO stages that it launches, and partitions that it carries" *
          testing::on_release_libraries()) {
    const Small setup;
    auto request = all_free(setup);
    request.target = "megatron";
    for (const auto& one : setup.choose(request).tried) CHECK(one.zero == 1);
    request.target = "free";
    for (const auto& one : setup.choose(request).tried) CHECK(one.partition != "three-phase");
}

TEST_CASE("the layout that is taken is near the fastest, and of those near it the user's own" *
          testing::on_release_libraries()) {
    const Small setup;
    const auto& choice = free_choice();
    const auto near = [](const LayoutTried& one, const LayoutTried& other) {
        return static_cast<double>(one.step.count()) <= 1.005 * static_cast<double>(other.step.count());
    };
    CHECK(near(choice.best(), choice.tried.front()));

    auto request = all_free(setup);
    request.own = {choice.best().layout, choice.best().zero};
    const auto kept = setup.choose(request);
    CHECK(kept.best().is_own);
    CHECK(is_same(kept.best(), *request.own));

    request.own = {choice.tried.back().layout, choice.tried.back().zero};
    const auto left = setup.choose(request);
    CHECK(!left.best().is_own);
    CHECK(std::count_if(left.tried.begin(), left.tried.end(), [](const auto& one) { return one.is_own; }) == 1);
}

TEST_CASE("a layout of the user's own that cannot be is named with its reason") {
    const Small setup;
    auto request = all_free(setup);
    request.microbatches = testing::small_batch({3, 1});
    request.own = {{.tp = 1, .pp = 1, .dp = 8}, 1};
    const auto choice = setup.choose(request);
    REQUIRE(choice.own_refused);
    CHECK(*choice.own_refused == "more replicas than microbatches");
}

TEST_CASE("no layout is faster than its bound, and what cannot hold its weights is refused before it is tried") {
    Small setup;
    const auto request = all_free(setup);
    LayoutCandidates candidates(request, in_order);
    const auto& choice = free_choice();
    for (const LayoutCandidate& one : candidates.take()) {
        if (one.refused) continue;
        for (const auto& tried : choice.tried)
            if (is_same(tried, one.as)) CHECK(tried.step >= one.bound);
    }
    setup.model.modules[1].architecture =
        testing::small_network(workloads::ModuleKind::language_model, 48, 8192);  // 52 B parameters
    setup.model.edges[0].projector_out = 8192;
    const auto large = all_free(setup);
    std::size_t refused_by_memory = 0;
    LayoutCandidates heavy(large, in_order);
    for (const LayoutCandidate& one : heavy.take())
        if (one.refused == LayoutReason::memory) {
            ++refused_by_memory;
            const auto in = heavy.setup_of(one.as);
            CHECK(!try_layout(large, *in, heavy.costs_of(*in), LayoutEffort::quick).tried);
        }
    CHECK(refused_by_memory > 5);
}

TEST_CASE("what microbatches cost is priced once for layouts that differ in ranks, replicas and ZeRO stage") {
    const Small setup;
    auto request = all_free(setup);
    request.stores = std::make_shared<LayoutStores>();
    const LayoutCandidates candidates(request, in_order);
    const emulator::Layout chained{.tp = 2, .pp = 4, .dp = 1}, alone{.tp = 2, .pp = 1, .dp = 4};
    const auto one = candidates.setup_of({chained, 1}), sharded = candidates.setup_of({alone, 3});
    const auto& costs = candidates.costs_of(*one);
    CHECK(costs.size() == request.microbatches.size());
    CHECK(&costs == &candidates.costs_of(*sharded));
    const auto priced = request.stores->of(chained)->statistics().misses;
    CHECK(priced > 0);
    CHECK(partition::microbatch_costs(*sharded, request.microbatches) == costs);
    CHECK(request.stores->of(chained)->statistics().misses == priced);
    CHECK(partition::microbatch_costs(in_layout(setup, {alone, 3}), request.microbatches) == costs);
}

TEST_CASE("of many microbatches some tell what all take, within a tenth") {
    const Small setup;
    auto request = setup.request();
    request.microbatches.clear();
    for (int i = 0; i < 10; ++i)
        for (const auto& one : testing::small_batch({5, 0, 2, 9, 1, 4, 0, 7})) request.microbatches.push_back(one);
    for (const emulator::Layout& layout :
         {emulator::Layout{.tp = 2, .pp = 4, .dp = 1}, emulator::Layout{.tp = 8, .pp = 1, .dp = 1},
          emulator::Layout{.tp = 4, .pp = 2, .dp = 1}}) {
        const auto in = in_layout(setup, {layout, 1});
        const auto costs = partition::microbatch_costs(in, request.microbatches);
        const auto quick = try_layout(request, in, costs, LayoutEffort::quick),
                   whole = try_layout(request, in, costs, LayoutEffort::whole);
        REQUIRE(quick.tried);
        REQUIRE(whole.tried);
        const double ratio =
            static_cast<double>(quick.tried->step.count()) / static_cast<double>(whole.tried->step.count());
        CHECK(ratio > 0.9);
        CHECK(ratio < 1.1);
    }
}

TEST_CASE("where time ends the choice before a layout fits, the message does not say that none fits") {
    Small setup;
    setup.model.modules[1].architecture =
        testing::small_network(workloads::ModuleKind::language_model, 24, 8192);  // 26 B parameters
    setup.model.edges[0].projector_out = 8192;
    setup.cluster.gpus = 64;
    auto request = all_free(setup);
    request.tp = 1;
    request.cp = 1;
    std::string message;
    try {
        static_cast<void>(choose_layout(request, in_order, Time::until([] { return Duration{}; })));
    } catch (const Error& error) {
        message = error.what();
    }
    CAPTURE(message);
    CHECK(message.find("there was no time for a layout that fits") != std::string::npos);
    CHECK(message.find("no layout fits the memory") == std::string::npos);
}

TEST_CASE("a choice that time ends has what was judged by then, and says so") {
    const Small setup;
    const auto choice = choose_layout(all_free(setup), in_order, Time::until([] { return Duration{}; }));
    CHECK(choice.cut_short);
    CHECK(!choice.tried.empty());
    CHECK(choice.tried.size() <= 8);
    CHECK(choice.not_reached > 0);
    std::size_t refused = 0;
    for (const LayoutRefused& one : choice.refused) refused += one.count;
    CHECK(choice.tried.size() + choice.passed_over + choice.not_reached + refused == choice.considered.size());
    CHECK(!small_choice().cut_short);
}

TEST_CASE("a job whose layout was given is held against all layouts of its GPUs, with its own batch") {
    const auto request = testing::small_request(2);
    const auto choice = launched_layouts(request.job, request.batch, {}, in_order);
    const auto own = std::find_if(choice.tried.begin(), choice.tried.end(), [](const auto& one) { return one.is_own; });
    REQUIRE(own != choice.tried.end());
    CHECK(is_same(*own, {request.job.setup->layout, request.job.setup->recipe.zero}));
    CHECK(choice.best().step <= own->step);
    for (const auto& one : choice.tried) CHECK(one.microbatches == request.batch.microbatches.size());

    // What a plan makes of the setup that the choice leads to.
    Request better = request;
    better.job.setup =
        std::make_shared<emulator::Setup>(in_layout(*request.job.setup, {choice.best().layout, choice.best().zero}));
    CHECK(testing::planned(better).step <= choice.best().step + choice.best().step / 10);
}

TEST_CASE("from ZeRO 2 on a setup reduces gradients in every backward, not in buckets") {
    Small setup;
    setup.recipe.bucket = Bytes{40'000'000};
    const emulator::Layout layout{.tp = 1, .pp = 1, .dp = 8};
    CHECK(in_layout(setup, {layout, 1}).recipe.bucket == Bytes{40'000'000});
    CHECK(in_layout(setup, {layout, 2}).recipe.bucket == Bytes{});
    CHECK(in_layout(setup, {layout, 2}).recipe.zero == 2);
    CHECK(in_layout(setup, {layout, 2}).layout.dp == 8);
}
