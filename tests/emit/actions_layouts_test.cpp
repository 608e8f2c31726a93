// Action lists of modules with layouts of their own: who has which positions, and what the check finds wrong in that.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/emit/partition_table.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/report.hpp"
#include "tests/support/layout_lists.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <set>

using namespace pipeweaver;
using emulator::ModuleLayout;
using emulator::Piece;
using emulator::Sharing;

namespace {

emit::ActionLists lists_on(planner::Request request, partition::Partition partition) {
    return testing::planned_lists(std::move(request), std::move(partition)).lists;
}

partition::Partition apart(const planner::Request& request, Sharing sharing, std::int64_t items) {
    auto partition = testing::cut_of(request, "dip");
    partition.layouts = {ModuleLayout{1, 2, sharing}, ModuleLayout{2, 1}};
    partition.unit_items.front() = items;
    return partition;
}

emit::ActionLists lists_of(Sharing sharing, std::int64_t items = 2) {
    const auto request = testing::layout_request();
    return lists_on(request, apart(request, sharing, items));
}

const emit::ActionShare& share_of(const emit::ActionLists& lists, std::int64_t microbatch, std::int64_t item) {
    for (const emit::ActionShare& share : lists.shares)
        if (share.microbatch == microbatch && share.item == item) return share;
    REQUIRE_MESSAGE(false, "no share");
    return lists.shares.front();
}

}  // namespace

TEST_CASE("stages of a module with copies say so, and each of its units who has which positions") {
    using Copies = std::vector<std::vector<Piece>>;
    const auto split = lists_of(Sharing::split);
    testing::check_runnable(split);
    CHECK(split.gpus == 2);
    CHECK(split.sequence_parallel);
    for (const emit::ActionStage& stage : split.stages) {
        CHECK(stage.layout.has_value() == (stage.role.chain == "vit"));
        if (stage.layout) CHECK(*stage.layout == ModuleLayout{1, 2, Sharing::split});
    }
    // Five images in units of 2, 2 and 1, none, 2, and 3 in units of 2 and 1.
    CHECK(split.shares.size() == 6);
    const auto& pair = share_of(split, 2, 0);
    CHECK(pair.chain == "vit");
    CHECK(pair.lengths == std::vector<std::int64_t>{256, 64});
    CHECK(pair.reduction == 4);
    CHECK(pair.copies == Copies{{{0, 0, 160}}, {{0, 160, 256}, {1, 0, 64}}});

    const auto dealt = lists_of(Sharing::dealt);
    testing::check_runnable(dealt);
    CHECK(share_of(dealt, 2, 0).copies == Copies{{{0, 0, 256}}, {{1, 0, 64}}});
    CHECK(share_of(dealt, 3, 1).copies == Copies{{{0, 0, 128}}, {}});

    // Of three alike one is split.
    auto alike = testing::layout_request();
    for (auto& item : alike.batch.microbatches[3].items) item.size.patches = 256;
    const auto hybrid = lists_on(alike, apart(alike, Sharing::hybrid, 3));
    testing::check_runnable(hybrid);
    const auto& three = share_of(hybrid, 3, 0);
    CHECK(three.lengths == std::vector<std::int64_t>{256, 256, 256});
    CHECK(three.copies == Copies{{{1, 0, 256}, {0, 0, 128}}, {{2, 0, 256}, {0, 128, 256}}});
}

TEST_CASE("lists say the GPUs of a rank where there are several, and nothing of layouts where all have one copy") {
    const auto request = testing::layout_request();
    auto whole = apart(request, Sharing::dealt, 2);
    whole.layouts.clear();
    const std::string text = to_json(lists_on(request, whole));
    CHECK(text.find(R"("ranks":2,"gpus":2,"sequence_parallel":true,"most_alive")") != std::string::npos);
    for (const std::string key : {"\"copies\"", "\"shares\"", "\"sharing\"", "\"tp\""})
        CHECK(text.find(key) == std::string::npos);

    auto alone = testing::small_request(1, {2, 1});
    alone.job.setup = std::make_shared<emulator::Setup>(testing::small_setup({.tp = 1, .pp = 2, .dp = 1}));
    CHECK(to_json(lists_on(alone, testing::cut_of(alone, "dip"))).find("gpus") == std::string::npos);
}

TEST_CASE("the list of a rank has the shares of its passes and of what comes to it, the same as the whole") {
    const auto lists = lists_of(Sharing::hybrid);
    const JsonDocument whole("actions", to_json(lists));
    std::set<std::string> all, seen;
    for (const Json& share : whole.root().at("shares").elements())
        all.insert(fmt::format("{} {}", share.at("microbatch").integer(), share.at("item").integer()));
    for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
        const JsonDocument document("rank", emit::RankLists(lists).to_json(rank));
        CHECK(document.root().at("gpus").integer() == 2);
        CHECK(document.root().at("sequence_parallel").boolean());
        std::set<std::string> mine, needed;
        for (const Json& share : document.root().at("shares").elements()) {
            mine.insert(fmt::format("{} {}", share.at("microbatch").integer(), share.at("item").integer()));
            CHECK(share.at("copies").size() == 2);
        }
        for (const emit::Action& action : lists.ranks[rank])
            if (const auto* compute = std::get_if<emit::Compute>(&action); compute && compute->module == "vit")
                needed.insert(fmt::format("{} {}", compute->pass.microbatch, compute->pass.item));
        for (const emit::ActionTensor& tensor : lists.tensors)
            if (lists.stages[static_cast<std::size_t>(tensor.to.stage)].rank == rank &&
                lists.stages[static_cast<std::size_t>(tensor.from.stage)].role.chain == "vit")
                needed.insert(fmt::format("{} {}", tensor.from.microbatch, tensor.from.item));
        CHECK(mine == needed);
        seen.insert(mine.begin(), mine.end());
    }
    CHECK(seen == all);
}

namespace {

// Lists of split units, changed: why they cannot run.
std::string refusal(const std::function<void(emit::ActionLists&)>& change) {
    static const auto lists = lists_of(Sharing::split);
    auto changed = lists;
    change(changed);
    return emit::why_not_runnable(changed).value_or("");
}

emit::ActionShare& pair_of(emit::ActionLists& lists) {
    for (emit::ActionShare& share : lists.shares)
        if (share.microbatch == 2) return share;
    FAIL("no share of microbatch 2");
    return lists.shares.front();
}

}  // namespace

// The share that is changed: sequences of 256 and 64; copy 0 has 0-160 of the first, copy 1 the rest of both.
TEST_CASE("layouts and shares that do not go together are refused with what is wrong") {
    using emit::ActionLists;
    const std::string of = "share of vit, microbatch 2, item 0: ";
    CHECK(refusal([](ActionLists&) {}).empty());
    CHECK(refusal([](ActionLists& a) { a.gpus = 0; }) == "a rank has 0 GPUs");
    CHECK(refusal([](ActionLists& a) { a.gpus = 4; }) == "stage 0: tp 1 x 2 copies are not the 4 GPUs of a rank");
    CHECK(refusal([](ActionLists& a) { a.stages[0].layout->tp = 2; }) ==
          "stage 0: tp 2 x 2 copies are not the 2 GPUs of a rank");
    CHECK(refusal([](ActionLists& a) { a.stages[1].layout.reset(); }) ==
          "stages 0 and 1 of vit have different layouts");
    CHECK(refusal([](ActionLists& a) { a.stages[1].layout->sharing = Sharing::dealt; }) ==
          "stages 0 and 1 of vit have different layouts");
    CHECK(refusal([](ActionLists& a) { a.stages[0].layout->in_phases = true; }) ==
          "stage 0: tp 1 x 2 copies in phases, the replica has 4 GPUs");
    CHECK(refusal([](ActionLists& a) { a.shares.push_back(pair_of(a)); }) == of + "is there twice");
    CHECK(refusal([](ActionLists& a) { pair_of(a).chain = "llm"; }) ==
          "share of llm, microbatch 2, item 0: there are no such copies");
    CHECK(refusal([](ActionLists& a) { pair_of(a).stage = 0; }) ==
          "share of vit, microbatch 2, item 0, stage 0: there are no such copies");
    CHECK(refusal([](ActionLists& a) { pair_of(a).copies.emplace_back(); }) == of + "is of 3 copies, there are 2");
    CHECK(refusal([](ActionLists& a) { pair_of(a).reduction = 0; }) ==
          of + "a length or the reduction is below 1, or no sequence is there");
    CHECK(refusal([](ActionLists& a) { pair_of(a).lengths.clear(); }) ==
          of + "a length or the reduction is below 1, or no sequence is there");
    CHECK(refusal([](ActionLists& a) { pair_of(a).of = {{2, 0}, {2, 1}}; }) == of + "names 2 items, 0 are needed");
    CHECK(refusal([](ActionLists& a) { pair_of(a).copies[0][0].sequence = 2; }) ==
          of + "a piece is of sequence 2, there are 2");
    CHECK(refusal([](ActionLists& a) { pair_of(a).copies[0][0].end = 158; }) ==
          of + "positions 0 to 158 of sequence 0 are no rows of 4");
    const std::string not_once = of + "the copies do not have each of the 256 positions of sequence 0 once";
    CHECK(refusal([](ActionLists& a) { pair_of(a).copies[0][0].end = 164; }) == not_once);
    CHECK(refusal([](ActionLists& a) { pair_of(a).copies[0][0].end = 156; }) == not_once);
    CHECK(refusal([](ActionLists& a) { pair_of(a).copies[0].clear(); }) == not_once);
    CHECK(refusal([](ActionLists& a) { pair_of(a).copies[1] = pair_of(a).copies[0]; }) == not_once);
    CHECK(refusal([](ActionLists& a) { pair_of(a).lengths[1] = 68; }) ==
          of + "the copies do not have each of the 68 positions of sequence 1 once");
    CHECK(refusal([](ActionLists& a) { std::erase_if(a.shares, [](const auto& s) { return s.microbatch == 2; }); }) ==
          "stage 0, microbatch 2, item 0: no share says which GPU has which positions");
    CHECK(refusal([](ActionLists& a) {
              for (auto& tensor : a.tensors)
                  if (tensor.by_item && tensor.from.microbatch == 2) tensor.slices = {{0, 81}};
          }).ends_with("takes rows 0 to 81 of an output of 80"));
}

TEST_CASE("keys of layouts and shares that cannot be read are refused with their place") {
    const std::string text = to_json(lists_of(Sharing::split));
    const auto refusal_of = [&](const std::string& from, const std::string& to) {
        std::string changed = text;
        const auto at = changed.find(from);
        REQUIRE(at != std::string::npos);
        changed.replace(at, from.size(), to);
        try {
            (void)emit::parse_actions("lists", changed);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(refusal_of(R"("copies":2)", R"("copies":0)").find("stages[0].copies") != std::string::npos);
    CHECK(refusal_of(R"("sharing":"split")", R"("sharing":"even")").find("stages[0].sharing") != std::string::npos);
    CHECK(refusal_of(R"("sequence_parallel":true)", R"("sequence_parallel":1)").find("sequence_parallel") !=
          std::string::npos);
    CHECK(refusal_of("[0,0,160]", "[0,0]").find("is no piece: a sequence, its first position and the end") !=
          std::string::npos);
}

TEST_CASE("the assignment says of each unit which copy has which rows of its items, as the lists do") {
    const auto request = testing::layout_request();
    const auto made = testing::planned_lists(request, apart(request, Sharing::split, 2));
    const JsonDocument document("assignment", emit::assignment_json(made.request.job, made.request.batch, made.plan));
    std::size_t units = 0;
    for (const Json& microbatch : document.root().at("replicas")[0].at("microbatches").elements())
        for (const Json& unit : microbatch.at("units").elements()) {
            CHECK(unit.find("copies").has_value() == (unit.at("module").text() == "vit"));
            if (unit.at("module").text() != "vit") continue;
            const auto& share = share_of(made.lists, microbatch.at("microbatch").integer(), unit.at("item").integer());
            std::vector<std::vector<Piece>> copies;
            for (const Json& copy : unit.at("copies").elements()) {
                copies.emplace_back();
                for (const Json& piece : copy.elements())
                    copies.back().push_back(
                        {static_cast<std::size_t>(piece[0].integer()), piece[1].integer(), piece[2].integer()});
            }
            CHECK(copies == share.copies);
            CHECK(unit.at("items").size() == share.lengths.size());
            ++units;
        }
    CHECK(units == made.lists.shares.size());
}

TEST_CASE("tables and the report say a module's layout in words where its copies share the GPUs of a rank") {
    const auto request = testing::layout_request();
    const std::string words = "vit: tp 1 x 2 copies, hybrid";
    for (const bool shared : {true, false}) {
        auto partition = apart(request, Sharing::hybrid, 2);
        if (!shared) partition.layouts.clear();
        const auto made = testing::planned_lists(request, std::move(partition));
        const auto& [on, plan, lists] = made;
        const auto says = [&](const std::string& text, std::string_view what) {
            return (text.find(what) != std::string::npos) == shared;
        };
        CHECK(says(emit::plan_table(on.job, on.batch, plan), words + "\n"));
        CHECK(says(emit::report(on.job, on.batch, plan), "<p>" + words + ": on each rank"));
        planner::PartitionChoice choice{plan.partition(), {}, {}, false};
        choice.tried.push_back({.partition = plan.partition()});
        const std::string table = emit::partition_table(on.job, on.batch, choice);
        CHECK(says(table, "vit 2 (tp 1 x 2 copies, hybrid), llm whole"));
        CHECK(says(table, words + "\n"));
    }
}
