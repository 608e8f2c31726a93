// Emulations that are refused: what does not fit, and plan folders of another format.
#include "pipeweaver/planner/emulate.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/emulate_options.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::planner;

TEST_CASE("what does not fit is named by its replica and rank, and fits with more recomputation") {
    EmulationRequest request;
    const Request small = testing::small_request(2);
    request.job = small.job;
    request.batch = small.batch;
    request.job.partition = "balanced";
    testing::change_setup(request, [](emulator::Setup& setup) { setup.headroom.parts_per_million = 978'000; });
    request.recompute = no_recompute;
    for (const char* part : {"replica 0", "rank 0"})
        CHECK_THROWS_WITH_AS(static_cast<void>(emulate(request, in_order)), doctest::Contains(part), Error);
    const auto made = try_emulate(request, in_order);
    CHECK_FALSE(made.emulation);
    CHECK(made.why_not->kind() == ErrorKind::limit);
    request.recompute = {};
    CHECK(emulate(request, in_order).recompute != no_recompute);
    request.recompute = recompute_by_rank;
    CHECK(emulate(request, in_order).by_rank.size() == 2);
}

TEST_CASE("a rank holds what it does where all ranks recompute as is said of it") {
    const Request small = testing::small_request();
    EmulationRequest request;
    request.job = small.job;
    request.batch = small.batch;
    request.job.partition = "balanced";
    request.any_memory = true;
    const auto emulated = [&](const char* recompute) {
        request.recompute = step_recompute_named(recompute);
        REQUIRE(request.recompute);
        return emulate(request, in_order);
    };
    const Emulation said = emulated("by-rank:full/blocks:1/none/none"), none = emulated("none"),
                    full = emulated("full"), one = emulated("blocks:1");
    CHECK(said.recompute == step_recompute_named("by-rank:full/blocks:1/none/none"));
    const std::vector<const Emulation*> as{&full, &one, &none, &none};
    for (std::size_t rank = 0; rank < as.size(); ++rank) {
        CAPTURE(rank);
        CHECK(said.by_rank.front()[rank] == (rank < 2 ? as[rank]->recompute->everywhere : no_recompute.everywhere));
        CHECK(said.replicas[0].memory[rank].peak == as[rank]->replicas[0].memory[rank].peak);
    }
    CHECK(full.replicas[0].memory[0].peak < none.replicas[0].memory[0].peak);
    CHECK(none.step < said.step);
    CHECK(said.step < full.step);

    // Policies whose order times decide take it, too.
    request.policy = "dual-queue";
    CHECK(emulated("by-rank:blocks:1/blocks:1/blocks:1/blocks:1").step == emulated("blocks:1").step);
    request.recompute = step_recompute_named("by-rank:full/none");
    CHECK_THROWS_WITH_AS(static_cast<void>(emulate(request, in_order)),
                         "--recompute: by-rank:full/none says 2 settings, allowed are those of 4 ranks", Error);
    // What is tried of other layouts goes on.
    CHECK(try_emulate(request, in_order).why_not);
}

TEST_CASE("a recomputation of each rank has a name that is read again") {
    const StepRecompute said{
        .by_rank = true,
        .of_ranks = {emulator::Recompute::full, emulator::Recompute::blocks(3), emulator::Recompute::none}};
    CHECK(name_of(said) == "by-rank:full/blocks:3/none");
    CHECK(step_recompute_named(name_of(said)) == said);
    for (const char* text : {"by-rank:", "by-rank:full/", "by-rank:full/some", "by-rank:blocks:0/none"})
        CHECK(!step_recompute_named(text));
}

TEST_CASE("fewer microbatches than replicas are why there is no emulation") {
    EmulationRequest request;
    const Request small = testing::small_request(2);
    request.job = small.job;
    request.batch = small.batch;
    request.batch.microbatches.clear();
    const auto made = try_emulate(request, in_order);
    CHECK_FALSE(made.emulation);
    CHECK(made.why_not->kind() == ErrorKind::input);
    CHECK(contains(made.why_not->what(), "more than the batch's 0 microbatches"));
}

TEST_CASE("the plan folder of a schedule is one of this format") {
    const testing::TemporaryFolder temporary("emulate");
    EmulateOptions options;
    options.workload.model = "dip-vlm-s";
    options.workload.cluster = "h100-sxm:8";
    options.workload.dataset = "vlm-mix";
    options.schedule = temporary.path().string();
    const std::string rest = R"("asked":{"packing":"given"},"assignment":{"method":"balanced"}})";
    const std::map<std::string, std::string> refused{
        {R"({"format":"pipeweaver-problem/1",)", "needed is 'pipeweaver-plan/1'"},
        {R"({"format":"pipeweaver-plan/9",)", "pipeweaver-plan/9"},
        {"{", "the key 'format' is missing"}};
    for (const auto& [start, said] : refused) {
        std::ofstream(temporary.path() / "plan.json") << start << rest;
        CHECK_THROWS_WITH_AS(static_cast<void>(options.request(1, in_order)), doctest::Contains(said.c_str()), Error);
        CHECK(contains(options.try_request(1, in_order).why_not->what(), said));
    }
}

TEST_CASE("under a schedule on a V a named partition lies like one: there and back") {
    const auto emulated = [](const std::string& policy) {
        EmulateOptions options;
        OptionTable table;
        options.add_to(table);
        const JsonDocument document(
            "asked", R"({"model":"llama3-8b","cluster":"h100-sxm:8","tp":2,"pp":4,"dataset":"constant-1024",)"
                     R"("microbatches":8,"chunks":2,"any-memory":true,"policy":")" +
                         policy + R"("})");
        table.configure(document.root());
        return emulate(options.request(1, in_order), in_order);
    };
    const auto ranks = [](const Emulation& emulation) {
        std::vector<std::size_t> all;
        for (const auto& stage : emulation.partition.chains.front().stages) all.push_back(index(stage.rank));
        return all;
    };
    for (const char* policy : {"zb-v", "v-half", "v-min"})
        CHECK(ranks(emulated(policy)) == std::vector<std::size_t>{0, 1, 2, 3, 3, 2, 1, 0});
    CHECK(ranks(emulated("interleaved")) == std::vector<std::size_t>{0, 1, 2, 3, 0, 1, 2, 3});
}
