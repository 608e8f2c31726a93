#include "pipeweaver/partition/partitioners.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::partition;

namespace {

using Names = std::vector<std::pair<std::string, std::int64_t>>;

// Partitioner and chunks a rank; of dip, which takes no such number, 0.
Names names_of(const std::vector<Partition>& partitions) {
    Names names;
    for (const Partition& one : partitions) names.emplace_back(one.name, one.name == "dip" ? 0 : one.chunks_per_rank);
    return names;
}

}  // namespace

TEST_CASE("partitioners are found by name, and an unknown one names the nearest") {
    CHECK(partitioner_names() ==
          std::vector<std::string>{"dip", "modules", "megatron", "balanced", "uniform", "first-stage", "three-phase"});
    for (const Partitioner& one : partitioners()) {
        CHECK(&partitioner(one.name) == &one);
        CHECK(!one.about.empty());
    }
    CHECK_THROWS_WITH_AS(static_cast<void>(partitioner("megatorn")),
                         "unknown partition 'megatorn'; did you mean 'megatron'?", Error);
}

TEST_CASE("the names by which code asks for partitions are those of rows") {
    for (const char* name : {dip_partition, modules_partition, megatron_partition, balanced_partition,
                             uniform_partition, first_stage_partition})
        CHECK(partitioner(name).name == name);
}

TEST_CASE("a partitioner's cuts bear its name, and are one chain exactly where it says so") {
    const testing::SmallWorkload setup({.tp = 1, .pp = 4, .dp = 1}, {7, 0, 3, 12});
    for (const Use use : {Use::job, Use::opponent, Use::framework})
        for (const Cutting& one : cuttings(use, setup)) {
            if (one.by->why_not != nullptr) continue;
            const auto partition = one.make(setup, setup.microbatches);
            CHECK(partition.name == one.by->name);
            CHECK((partition.chains.size() == 1) == one.by->one_chain);
        }
}

TEST_CASE("for each use the table's rows are cut, with the chunks that it tries, or the named one alone") {
    const testing::SmallWorkload setup({.tp = 1, .pp = 4, .dp = 1}, {7, 0, 3, 12});
    const auto cut_for = [&](Use use, std::string_view name = {}) {
        Names names;
        for (const Cutting& one : cuttings(use, setup, name)) names.emplace_back(one.by->name, one.chunks_per_rank);
        return names;
    };
    CHECK(cut_for(Use::framework) ==
          Names{{"dip", 0}, {"megatron", 1}, {"balanced", 1}, {"megatron", 2}, {"balanced", 2}});
    CHECK(cut_for(Use::framework, "dip") == Names{{"dip", 0}});
    CHECK(cut_for(Use::framework, "balanced") == Names{{"balanced", 1}, {"balanced", 2}});
    CHECK(cut_for(Use::job).front() == Names::value_type{"dip", 0});
    CHECK(cut_for(Use::opponent).front() == Names::value_type{"first-stage", 1});
    CHECK(names_of(partitions_for(Use::framework, setup, setup.microbatches)) == cut_for(Use::framework));
}

TEST_CASE("uniform stages have as many layers, or embedding and head count as one each, only its name asks for it") {
    testing::SmallWorkload setup({.tp = 1, .pp = 4, .dp = 1}, {0, 0});
    setup.model.modules.erase(setup.model.modules.begin());
    setup.model.edges.clear();
    auto& layers = setup.model.modules.front().architecture.layers;
    const auto cut = [&] {
        std::vector<std::int64_t> counts;
        const auto uniform = setup.cut("uniform");
        for (const auto& stage : uniform.chains.front().stages) counts.push_back(stage.parts.front().count);
        return counts;
    };
    layers = 12;
    CHECK(cut() == std::vector<std::int64_t>{3, 3, 3, 3});
    layers = 14;
    CHECK(cut() == std::vector<std::int64_t>{3, 4, 4, 3});
    CHECK(names_of(partitions_for(Use::framework, setup, setup.microbatches, "uniform")) ==
          Names{{"uniform", 1}, {"uniform", 2}});
}

TEST_CASE("cuts into more stages than the model has layers are not tried") {
    testing::SmallWorkload setup({.tp = 1, .pp = 3, .dp = 1}, {0, 0});
    setup.model.modules.erase(setup.model.modules.begin());
    setup.model.edges.clear();
    setup.model.modules[0].architecture.layers = 5;
    CHECK(names_of(partitions_for(Use::framework, setup, setup.microbatches)) ==
          Names{{"dip", 0}, {"megatron", 1}, {"balanced", 1}});
    setup.model.modules[0].architecture.layers = 6;
    CHECK(partitions_for(Use::framework, setup, setup.microbatches).size() == 5);
}

TEST_CASE("a partitioner is asked for no more stages than it can cut, and for the fewest where it can cut none") {
    const auto chunks_of = [](const testing::SmallWorkload& setup, std::string_view name, Use use) {
        std::vector<std::int64_t> chunks;
        for (const Cutting& one : cuttings(use, setup, name)) {
            chunks.push_back(one.chunks_per_rank);
            CHECK(one.make(setup, setup.microbatches).chunks_per_rank == one.chunks_per_rank);
        }
        return chunks;
    };
    testing::SmallWorkload setup({.tp = 1, .pp = 4, .dp = 1}, {7, 0, 3, 12});
    setup.model.modules[0].architecture.layers = 30;  // the encoder, whole on the first stage
    setup.model.modules[1].architecture.layers = 7;
    for (const Use use : {Use::job, Use::opponent, Use::framework})
        CHECK(chunks_of(setup, "first-stage", use) == std::vector<std::int64_t>{1, 2});
    CHECK(chunks_of(setup, "balanced", Use::job) == std::vector<std::int64_t>{1, 2, 4, 8});
    setup.model.modules[1].architecture.layers = 6;
    CHECK(chunks_of(setup, "first-stage", Use::job) == std::vector<std::int64_t>{1});
    setup.model.modules[1].architecture.layers = 2;
    CHECK_THROWS_WITH_AS(static_cast<void>(partitions_for(Use::job, setup, setup.microbatches, "first-stage")),
                         doctest::Contains("4 stages are more than the 2 layers of llm"), Error);
}

TEST_CASE("the encoder's stage has the layers of the language model that its framework asks for") {
    testing::SmallWorkload setup({.tp = 1, .pp = 4, .dp = 1}, {40, 40});
    const auto in_front = [&] {
        const auto cut = setup.cut("first-stage");
        std::int64_t layers = 0;
        for (const auto& part : cut.chains.front().stages.front().parts)
            if (part.module == 1) layers += part.count;
        return layers;
    };
    CHECK(in_front() < 3);  // the encoder alone takes a quarter of all time
    workloads::build_as(setup.model, {.framework = "a", .source = "b", .first_layers = 3});
    CHECK(in_front() == 3);
    const auto cut = setup.cut("first-stage");
    CHECK(cut.chains.front().stages.size() == 4);
    std::int64_t all = 0;
    for (const auto& stage : cut.chains.front().stages)
        for (const auto& part : stage.parts) all += part.count;
    CHECK(all == 14);
    // Three layers beside the encoder, and five others: six stages at most.
    CHECK(partitioner("first-stage").most_stages(setup.model).count == 6);
}
