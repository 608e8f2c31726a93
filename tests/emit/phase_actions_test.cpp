// Encoders dealt over all GPUs as action lists: who runs which items, and which rows go to which microbatch.
#include "pipeweaver/base/json.hpp"
#include "tests/support/layout_lists.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>

using namespace pipeweaver;
using emit::ActionLists;
using emit::ActionStage;
using emulator::ModuleLayout;

namespace {

testing::PlannedLists dealt_lists(const emulator::Layout& layout = {.tp = 2, .pp = 2, .dp = 1},
                                  const std::vector<int>& images = {5, 0, 2, 3}) {
    auto request = testing::layout_request(layout, images);
    auto partition = testing::cut_of(request, "three-phase");
    return testing::planned_lists(std::move(request), std::move(partition));
}

std::vector<const ActionStage*> phase_stages(const ActionLists& lists) {
    std::vector<const ActionStage*> stages;
    for (const ActionStage& stage : lists.stages)
        if (stage.layout && stage.layout->in_phases) stages.push_back(&stage);
    return stages;
}

// The kinds of the passes of a stage on its rank, and of all others as '.'.
std::string passes_of(const ActionLists& lists, const ActionStage& stage) {
    std::string text;
    for (const emit::Action& action : lists.ranks[stage.rank])
        if (const auto* compute = std::get_if<emit::Compute>(&action)) {
            const bool own = compute->pass.stage == stage.stage;
            if (own || text.empty() || text.back() != '.') text += own ? letter(compute->kind) : '.';
        }
    return text;
}

// By (microbatch, place): on which GPU of the replica each item is.
using Gpus = std::map<std::pair<std::int64_t, std::int64_t>, std::size_t>;

Gpus gpus_in(const ActionLists& lists) {
    Gpus gpus;
    for (const emit::ActionShare& share : lists.shares) {
        const std::size_t rank = lists.stages[static_cast<std::size_t>(*share.stage)].rank;
        for (std::size_t c = 0; c < share.copies.size(); ++c)
            for (const emulator::Piece& piece : share.copies[c]) {
                CHECK(piece.first == 0);
                CHECK(piece.end == share.lengths[piece.sequence]);
                const emit::ItemPlace& item = share.of[piece.sequence];
                CHECK(gpus.emplace(std::pair(item.microbatch, item.place), rank * share.copies.size() + c).second);
            }
    }
    return gpus;
}

Gpus gpus_dealt(const planner::Cut& cut) {
    Gpus gpus;
    for (std::size_t g = 0; g < cut.step.dealt.size(); ++g)
        for (const emulator::DealtItem& item : cut.step.dealt[g]) {
            const auto& unit = cut.units[item.microbatch][cut.partition.chains.size() + item.phase][item.unit];
            gpus[{static_cast<std::int64_t>(item.microbatch), static_cast<std::int64_t>(unit.items.front())}] = g;
        }
    return gpus;
}

}  // namespace

TEST_CASE("dealt encoders are a stage of each rank, with its items and the GPU that has each") {
    const auto dealt = dealt_lists();
    const ActionLists& lists = dealt.lists;
    testing::check_runnable(lists);
    const auto phases = phase_stages(lists);
    REQUIRE(phases.size() == 2);
    for (std::size_t r = 0; r < 2; ++r) {
        CHECK(phases[r]->rank == r);
        CHECK(phases[r] == &lists.stages[lists.stages.size() - 2 + r]);
        CHECK(phases[r]->role.chain == "vit");
        CHECK(phases[r]->role.reads_batch);
        CHECK(*phases[r]->layout == ModuleLayout{1, 4, emulator::Sharing::dealt, true});
        CHECK(passes_of(lists, *phases[r]) == "F.B");
        const auto& last = std::get<emit::Reduce>(lists.ranks[r].back());
        CHECK(std::count(last.stages.begin(), last.stages.end(), phases[r]->stage) == 1);
    }
    CHECK(lists.stages.front().role.inputs == std::vector<std::string>{"vit"});
    CHECK(gpus_in(lists).size() == 10);
    CHECK(gpus_in(lists) == gpus_dealt(dealt.plan.replicas.front().cut));
}

TEST_CASE("a microbatch takes the rows of its items of each rank, and gives their gradients back") {
    const auto dealt = dealt_lists();
    const ActionLists& lists = dealt.lists;
    std::map<std::int64_t, std::int64_t> rows, gradients;  // by microbatch
    for (const emit::ActionTensor& tensor : lists.tensors) {
        const auto& end = tensor.gradient ? tensor.to : tensor.from;
        const auto& stage = lists.stages[static_cast<std::size_t>(end.stage)];
        if (!stage.layout) continue;
        const auto& other = tensor.gradient ? tensor.from : tensor.to;
        CHECK(end == emit::Pass{stage.stage, 0, 0});
        CHECK(other.stage == 0);
        CHECK(tensor.shape[1] == 2048);
        CHECK(tensor.reverse.has_value());
        (tensor.gradient ? gradients : rows)[other.microbatch] += tensor.shape[0];
        if (tensor.gradient) continue;
        CHECK(tensor.by_item);
        // The rows before it in the share, worked out anew.
        std::int64_t first = 0, count = 0;
        for (const emit::ActionShare& share : lists.shares)
            for (std::size_t s = 0; s < share.of.size() && *share.stage == stage.stage; ++s) {
                if (share.of[s].microbatch < other.microbatch) first += share.lengths[s] / 4;
                if (share.of[s].microbatch == other.microbatch) count += share.lengths[s] / 4;
            }
        CHECK(tensor.shape[0] == count);
        if (!tensor.slices.empty()) CHECK(tensor.slices == std::vector<emit::Rows>{{first, first + count}});
    }
    CHECK(rows == std::map<std::int64_t, std::int64_t>{{0, 192}, {2, 80}, {3, 112}});
    CHECK(gradients == rows);
}

TEST_CASE("a rank without items has the encoder's stage all the same, for the sum of its gradients") {
    const auto dealt = dealt_lists({.tp = 1, .pp = 4, .dp = 1}, {1, 1, 0});
    testing::check_runnable(dealt.lists);
    CHECK(dealt.lists.gpus == 1);
    CHECK(dealt.lists.shares.size() == 2);
    const auto phases = phase_stages(dealt.lists);
    REQUIRE(phases.size() == 4);
    for (const ActionStage* stage : phases) {
        CHECK(stage->layout->copies == 4);
        CHECK(passes_of(dealt.lists, *stage) == (stage->rank < 2 ? "F.B" : "."));
        std::size_t reduced = 0;
        for (const emit::Action& action : dealt.lists.ranks[stage->rank])
            if (const auto* reduce = std::get_if<emit::Reduce>(&action))
                reduced +=
                    static_cast<std::size_t>(std::count(reduce->stages.begin(), reduce->stages.end(), stage->stage));
        CHECK(reduced == 1);
    }
    // The one item of a rank is all that its microbatch takes.
    for (const emit::ActionTensor& tensor : dealt.lists.tensors) CHECK(tensor.slices.empty());
}

TEST_CASE("the list of a rank has the shares of the dealt items that come to it") {
    const auto lists = dealt_lists().lists;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        const JsonDocument document("rank", emit::RankLists(lists).to_json(rank));
        std::set<std::int64_t> stages;
        for (const Json& share : document.root().at("shares").elements()) stages.insert(share.at("stage").integer());
        // The first stage of the chain is on rank 0, and takes of both.
        CHECK(stages == (rank == 0 ? std::set<std::int64_t>{2, 3} : std::set<std::int64_t>{3}));
    }
}

TEST_CASE("of several dealt encoders each has stages of its own, run by one task of a rank") {
    auto request = testing::layout_request();
    testing::change_setup(request, [](emulator::Setup& setup) {
        workloads::Module ear = setup.model.modules.front();
        ear.name = "ear";
        ear.modalities = {workloads::Modality::audio};
        setup.model.modules.front().trainable = false;
        setup.model.modules.insert(setup.model.modules.begin() + 1, ear);
        setup.model.edges = {{0, 2, 4, 1024, 2048}, {1, 2, 2, 0, 0}};
    });
    for (auto& microbatch : request.batch.microbatches)
        for (std::size_t k = 0; k < 2; ++k)
            microbatch.items.push_back(
                {microbatch.samples.front(), 90 + k, {workloads::Modality::audio, 64, 128, 0, false}});
    const auto dealt = testing::planned_lists(request, testing::cut_of(request, "three-phase"));
    testing::check_runnable(dealt.lists);
    CHECK(dealt.lists.stages.front().role.inputs == std::vector<std::string>{"vit", "ear"});
    CHECK(gpus_in(dealt.lists) == gpus_dealt(dealt.plan.replicas.front().cut));
    const auto phases = phase_stages(dealt.lists);
    REQUIRE(phases.size() == 4);
    std::set<std::string> names;
    for (const ActionStage* stage : phases) {
        names.insert(fmt::format("{} {}", stage->role.chain, stage->rank));
        // No gradient reaches the frozen one.
        const std::string passes = passes_of(dealt.lists, *stage);
        CHECK(std::count(passes.begin(), passes.end(), 'F') == 1);
        CHECK(std::count(passes.begin(), passes.end(), 'B') == (stage->role.chain == "ear" ? 1 : 0));
    }
    CHECK(names == std::set<std::string>{"ear 0", "ear 1", "vit 0", "vit 1"});
    for (const emit::ActionTensor& tensor : dealt.lists.tensors)
        if (dealt.lists.stages[static_cast<std::size_t>(tensor.from.stage)].role.chain == "ear") {
            CHECK(tensor.shape == std::vector<std::int64_t>{tensor.shape[0], 1024});
            CHECK(tensor.shape[0] % 64 == 0);
            CHECK(tensor.reverse.has_value());
        } else if (dealt.lists.stages[static_cast<std::size_t>(tensor.from.stage)].role.chain == "vit") {
            CHECK(tensor.shape == std::vector<std::int64_t>{tensor.shape[0], 2048});
            CHECK(!tensor.reverse);
        }
}

TEST_CASE("lists of dealt items that contradict each other are refused") {
    const auto lists = dealt_lists().lists;
    const auto refusal_of = [&](auto change) {
        ActionLists changed = lists;
        change(changed);
        return emit::why_not_runnable(changed).value_or("");
    };
    const std::string of = "share of vit, microbatch 0, item 0, stage 2: ";
    CHECK(refusal_of([](ActionLists&) {}).empty());
    CHECK(refusal_of([](ActionLists& a) { a.shares[0].of.pop_back(); }).starts_with(of + "names "));
    CHECK(refusal_of([](ActionLists& a) { a.shares[0].of[0] = a.shares[0].of[1]; }) == of + "an item is there twice");
    CHECK(refusal_of([](ActionLists& a) { a.shares[0].copies.pop_back(); }) == of + "is of 1 copies, there are 2");
    CHECK(refusal_of([](ActionLists& a) { a.shares[0].stage.reset(); }) ==
          "share of vit, microbatch 0, item 0: there are no such copies");
    CHECK(refusal_of([](ActionLists& a) { a.shares[0].stage = 9; }) ==
          "share of vit, microbatch 0, item 0, stage 9: there are no such copies");
    CHECK(refusal_of([](ActionLists& a) { a.shares.pop_back(); }) ==
          "stage 3, microbatch 0, item 0: no share says which GPU has which positions");
    CHECK(refusal_of([](ActionLists& a) { a.stages[2].layout->copies = 2; }) ==
          "stage 2: tp 1 x 2 copies in phases, the replica has 4 GPUs");
    CHECK(refusal_of([](ActionLists& a) {
              for (auto& tensor : a.tensors)
                  if (tensor.from.stage == 2 && tensor.by_item) tensor.slices = {{0, 1000}};
          }).find("takes rows 0 to 1000 of an output of ") != std::string::npos);
}
