// Action lists say all that an executor needs, and the check finds what it could not run.
#include "pipeweaver/emit/actions.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;

namespace {

const std::vector<Recompute> modes{Recompute::none, Recompute::half, Recompute::full};

// One microbatch through two stages on two ranks, the second pass of each stage split if `split`; three modes that
// take the same time.
StepProblem chain_of_two(bool split) {
    StepProblem step;
    step.problem.name = "two";
    step.problem.ranks.resize(2);
    for (std::int64_t s = 0; s < 2; ++s)
        step.problem.stages.push_back({s, RankId{static_cast<std::uint32_t>(s)}, {{"net", s, 1}}});
    const auto add = [&](std::int64_t stage, TaskKind kind) {
        Task task;
        task.rank = RankId{static_cast<std::uint32_t>(stage)};
        task.kind = kind;
        task.stage = stage;
        task.microbatch = task.item = 0;
        task.module = "net";
        task.label = fmt::format("s{}.{}", stage, letter(kind));
        step.problem.tasks.push_back(task);
        return TaskId{static_cast<std::uint32_t>(step.problem.tasks.size() - 1)};
    };
    const auto f0 = add(0, TaskKind::forward), f1 = add(1, TaskKind::forward);
    const auto b1 = add(1, split ? TaskKind::input_gradient : TaskKind::backward), b0 = add(0, TaskKind::backward);
    step.problem.edges = {{f0, f1, {}}, {f1, b1, {}}, {b1, b0, {}}};
    step.transfers = {{0, Bytes{40}, 5, 4}, {2, Bytes{40}, 5, 4}};
    Mode mode;
    if (split) {
        const auto w1 = add(1, TaskKind::weight_gradient);
        step.problem.edges.push_back({b1, w1, {}});
        mode.weight = Duration{1};
        step.problem.pairs.push_back({f1, b1, w1, {mode, mode, mode}});
        mode.weight = {};
    } else {
        step.problem.pairs.push_back({f1, b1, {}, {mode, mode, mode}});
    }
    step.problem.pairs.push_back({f0, b0, {}, {mode, mode, mode}});
    return step;
}

std::string emitted(const StepProblem& step, const Schedule& schedule, const emit::ReplicaData& data = {}) {
    const auto lists = emit::derive_actions(step, schedule, replay(step.problem, schedule), modes, data);
    CHECK(emit::why_not_runnable(lists) == std::nullopt);
    auto text = to_json(lists);
    CHECK(to_json(emit::parse_actions("actions", text)) == text);
    return text;
}

Schedule schedule_of(const StepProblem& step, std::uint32_t mode) {
    Schedule schedule;
    schedule.order = {{TaskId{0}, TaskId{3}}, {TaskId{1}, TaskId{2}}};
    if (step.problem.tasks.size() == 5) schedule.order[1].push_back(TaskId{4});
    schedule.mode = {mode, mode};
    return schedule;
}

}  // namespace

TEST_CASE("two stages and one microbatch give these lists") {
    const auto step = chain_of_two(false);
    const std::string expected =
        R"({"format":"pipeweaver-actions/1","problem":"two","replica":0,"replicas":1,"ranks":2,"most_alive":[1,1],
"stages":[
{"stage":0,"rank":0,"chain":"net","trainable":true,"gradient":true,"reads_batch":true,"inputs":[],)"
        R"("parts":[{"module":"net","first_layer":0,"layers":1,"trainable":true}]},
{"stage":1,"rank":1,"chain":"net","trainable":true,"gradient":true,"reads_batch":false,"inputs":[],)"
        R"("parts":[{"module":"net","first_layer":1,"layers":1,"trainable":true}]}
],
"tensors":[
{"tensor":0,"kind":"activation","from":{"stage":0,"microbatch":0,"item":0},"to":{"stage":1,"microbatch":0,"item":0},)"
        R"("shape":[5,4],"gradient":1,"join":"previous","dtype":"bf16","bytes_per_gpu":40},
{"tensor":1,"kind":"gradient","from":{"stage":1,"microbatch":0,"item":0},"to":{"stage":0,"microbatch":0,"item":0},)"
        R"("shape":[5,4],"of":0,"dtype":"bf16","bytes_per_gpu":40}
],
"actions":[
[{"op":"F","task":0,"stage":0,"microbatch":0,"item":0,"module":"net","recompute":"none"},
 {"op":"send","tensor":0,"peer":1,"tag":0},
 {"op":"receive","tensor":1,"peer":1,"tag":1},
 {"op":"wait","tensor":1},
 {"op":"B","task":3,"stage":0,"microbatch":0,"item":0,"module":"net","recompute":"none"},
 {"op":"reduce","stages":[0]}],
[{"op":"receive","tensor":0,"peer":0,"tag":0},
 {"op":"wait","tensor":0},
 {"op":"F","task":1,"stage":1,"microbatch":0,"item":0,"module":"net","recompute":"none","loss_weight":1.0},
 {"op":"B","task":2,"stage":1,"microbatch":0,"item":0,"module":"net","recompute":"none"},
 {"op":"send","tensor":1,"peer":0,"tag":1},
 {"op":"reduce","stages":[1]}]
]}
)";
    CHECK(emitted(step, schedule_of(step, 0)) == expected);
}

TEST_CASE("a rank reduces each stage behind its last backward, from the last stage to the first") {
    auto step = chain_of_two(false);
    step.problem.ranks.resize(1);
    for (Task& task : step.problem.tasks) task.rank = RankId{0};
    for (Stage& stage : step.problem.stages) stage.rank = RankId{0};
    const auto ops = [&](const Problem& problem, const emit::ReplicaData& data) {
        step.problem = problem;
        const Schedule schedule{{{TaskId{0}, TaskId{1}, TaskId{2}, TaskId{3}}}, {0, 0}};
        const auto lists = emit::derive_actions(step, schedule, replay(step.problem, schedule), modes, data);
        CHECK(emit::why_not_runnable(lists) == std::nullopt);
        std::string text;
        for (const emit::Action& action : lists.ranks.front()) {
            if (const auto* compute = std::get_if<emit::Compute>(&action))
                text += fmt::format("{}{} ", letter(compute->kind), compute->pass.stage);
            if (const auto* reduce = std::get_if<emit::Reduce>(&action))
                text += fmt::format("reduce {} ", fmt::join(reduce->stages, ","));
        }
        return text;
    };
    const Problem one_rank = step.problem;
    CHECK(ops(one_rank, {}) == "F0 F1 B1 reduce 1 B0 reduce 0 ");
    // The stage whose turn comes first is complete last, and the other waits for it.
    Problem turned = one_rank;
    for (Task& task : turned.tasks) task.stage = 1 - *task.stage;
    CHECK(ops(turned, {}) == "F1 F0 B0 B1 reduce 1 reduce 0 ");
    // A frozen stage is not reduced.
    const emit::ReplicaData frozen{
        0, 1, {{"net", false, true, true, {}, {}}, {"net", true, true, false, {}, {}}}, {}, {}};
    CHECK(ops(one_rank, frozen) == "F0 F1 B1 reduce 1 B0 ");
}

TEST_CASE("each rank has its own list, the tensors of its passes and what is free when a wait ends") {
    const auto step = chain_of_two(false);
    const auto schedule = schedule_of(step, 0);
    auto lists = emit::derive_actions(step, schedule, replay(step.problem, schedule), modes, {});
    const auto parts = [&](std::size_t rank) {
        const JsonDocument document("rank", emit::RankLists(lists).to_json(rank));
        document.require_format("pipeweaver-rank-actions", 1);
        const Json root = document.root();
        CHECK(root.at("rank").integer() == static_cast<std::int64_t>(rank));
        CHECK(root.at("most_alive").integer() == 1);
        CHECK(root.at("lists_sha256").text() == sha256(to_json(lists)));
        CHECK(root.at("stages").size() == 2);
        std::string tensors, freed;
        for (const Json& tensor : root.at("tensors").elements())
            tensors += std::to_string(tensor.at("tensor").integer());
        for (const Json& action : root.at("actions").elements())
            if (const auto found = action.find("freed"))
                for (const Json& one : found->elements())
                    freed += fmt::format(" {} by {}", one.integer(), action.at("tensor").integer());
        return fmt::format("{} of {}, freed{}", root.at("actions").size(), tensors, freed);
    };
    // Rank 1 sends its gradient when it has the activation of rank 0.
    CHECK(parts(0) == "6 of 01, freed 0 by 1");
    CHECK(parts(1) == "6 of 01, freed");
    lists.ranks.emplace_back();  // a third one, with nothing to do
    lists.most_alive.push_back(1);
    CHECK(parts(2) == "0 of , freed");
}

TEST_CASE("a recomputed pass is alive from its backward on, a split one until its weight gradient") {
    const auto whole = chain_of_two(false), split = chain_of_two(true);
    using Counts = std::vector<std::int64_t>;
    CHECK(emit::most_alive(whole.problem, schedule_of(whole, 2), modes) == Counts{1, 1});

    // Two passes of one rank, one after the other: together alive unless the first is over or recomputed whole.
    Problem problem;
    problem.ranks.resize(1);
    for (const TaskKind kind : {TaskKind::forward, TaskKind::forward, TaskKind::backward, TaskKind::backward}) {
        Task task;
        task.kind = kind;
        problem.tasks.push_back(task);
    }
    problem.pairs = {{TaskId{0}, TaskId{2}, {}, {Mode{}, Mode{}, Mode{}}},
                     {TaskId{1}, TaskId{3}, {}, {Mode{}, Mode{}, Mode{}}}};
    Schedule both{{{TaskId{0}, TaskId{1}, TaskId{3}, TaskId{2}}}, {0, 1}};
    CHECK(emit::most_alive(problem, both, modes) == Counts{2});
    both.mode = {0, 2};
    CHECK(emit::most_alive(problem, both, modes) == Counts{2});  // recomputed while the other waits
    both.mode = {2, 2};
    CHECK(emit::most_alive(problem, both, modes) == Counts{1});
    both.order = {{TaskId{0}, TaskId{2}, TaskId{1}, TaskId{3}}};
    both.mode = {0, 0};
    CHECK(emit::most_alive(problem, both, modes) == Counts{1});
    CHECK(emit::most_alive(split.problem, schedule_of(split, 0), modes) == Counts{1, 1});
}

TEST_CASE("what is known of stages, losses and rows is in the lists") {
    const auto step = chain_of_two(true);
    emit::ReplicaData data{1, 2, {}, {0, 0.25, 0, 0, 0}, {{{0, 2}, {1, 4}}, {}}};
    data.stages = {{"a", false, false, true, {}, {false}}, {"b", true, true, true, {"a"}, {true}}};
    const JsonDocument document("actions", emitted(step, schedule_of(step, 1), data));
    const auto root = document.root();
    CHECK(root.at("replica").integer(0, 9) == 1);
    CHECK(root.at("replicas").integer(0, 9) == 2);
    CHECK(root.at("stages").elements()[1].at("inputs").elements()[0].text() == "a");
    const auto activation = root.at("tensors").elements()[0];
    CHECK(activation.at("join").text() == "item");
    CHECK(activation.at("slices").elements()[1].elements()[0].integer(0, 9) == 1);
    std::vector<std::string> ops;
    for (const auto& action : root.at("actions").elements()[1].elements()) {
        ops.push_back(action.at("op").text());
        if (ops.back() == "F") CHECK(action.at("loss_weight").number(0, 1) == 0.25);
        if (ops.back() == "I") CHECK(action.at("recompute").text() == "half");
    }
    CHECK(ops == std::vector<std::string>{"receive", "wait", "F", "I", "send", "W", "reduce"});
    for (const auto& action : root.at("actions").elements()[0].elements())  // stage 0 is frozen
        CHECK(action.at("op").text() != "reduce");
}

TEST_CASE("a solved problem without a model gives the same lists, its tensors without shapes") {
    for (const bool split : {false, true}) {
        const auto step = chain_of_two(split);
        auto text = emitted(step, schedule_of(step, 0));
        for (const std::string known : {R"("shape":[5,4])", R"(,"bytes_per_gpu":40)"})
            for (auto at = text.find(known); at != std::string::npos; at = text.find(known))
                text.replace(at, known.size(), known.front() == ',' ? "" : R"("shape":null)");
        CHECK(to_json(emit::derive_actions(step.problem, schedule_of(step, 0))) == text);
    }
}

TEST_CASE("a problem that does not say enough for action lists is refused by name") {
    const auto refusal = [](auto change) {
        auto step = chain_of_two(false);
        change(step.problem);
        try {
            (void)emit::derive_actions(step.problem, schedule_of(step, 0));
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::limit);
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(refusal([](Problem&) {}).empty());
    CHECK(refusal([](Problem& p) { p.tasks[2].microbatch = std::nullopt; }) ==
          "two: task 's1.B' has no microbatch or no stage that the problem lists");
    CHECK(refusal([](Problem& p) { p.stages.clear(); }) ==
          "two: task 's0.F' has no microbatch or no stage that the problem lists");
    CHECK(refusal([](Problem& p) { p.tasks[0].kind = TaskKind::other; }) ==
          "two: task 's0.F' is of kind X, which no executor knows");
    CHECK(refusal([](Problem& p) { std::swap(p.stages[0], p.stages[1]); }) ==
          "two: stages[0] has the number 1: action lists need them in order");
}

namespace {

// Lists of two stages on two ranks, changed: why they cannot run; empty: they can.
template <class Change>
std::string refusal(bool split, Change change) {
    const auto step = chain_of_two(split);
    const auto schedule = schedule_of(step, 0);
    auto lists = emit::derive_actions(step, schedule, replay(step.problem, schedule), modes, {});
    change(lists);
    return emit::why_not_runnable(lists).value_or("");
}

emit::Message& message_at(emit::ActionLists& lists, std::size_t rank, std::size_t place) {
    return std::get<emit::Message>(lists.ranks[rank][place]);
}

void remove(emit::ActionLists& lists, std::size_t rank, std::size_t place) {
    auto& list = lists.ranks[rank];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(place));
}

void swap(emit::ActionLists& lists, std::size_t rank, std::size_t a, std::size_t b) {
    std::swap(lists.ranks[rank][a], lists.ranks[rank][b]);
}

}  // namespace

// Rank 0: F send receive wait B reduce. Rank 1: receive wait F B send reduce; split: receive wait F I send W reduce.
TEST_CASE("lists that an executor could not run are refused with the rank and the tensor") {
    using emit::ActionLists;
    CHECK(refusal(false, [](ActionLists&) {}) == "");
    CHECK(refusal(false, [](ActionLists& a) { remove(a, 0, 1); }) == "tensor 0 from rank 0 to rank 1 has no send");
    CHECK(refusal(false, [](ActionLists& a) { remove(a, 1, 0); }) == "tensor 0 from rank 0 to rank 1 has no receive");
    CHECK(refusal(false, [](ActionLists& a) { a.ranks[1].push_back(a.ranks[1][0]); }) ==
          "rank 1: tensor 0 has a second receive");
    CHECK(refusal(false, [](ActionLists& a) { message_at(a, 0, 1).peer = 0; }) ==
          "tensor 0 goes from rank 0 to rank 1, but its send and receive have other ranks or tags");
    CHECK(refusal(false, [](ActionLists& a) { message_at(a, 0, 1).tag = 7; }) ==
          "tensor 0 goes from rank 0 to rank 1, but its send and receive have other ranks or tags");
    CHECK(refusal(false, [](ActionLists& a) { message_at(a, 0, 1).tensor = 9; }) ==
          "rank 0: send of tensor 9, which does not exist");
    CHECK(refusal(false, [](ActionLists& a) { swap(a, 0, 1, 2); }) ==
          "ranks 0 and 1 post tensors 1 and 0 in another order");
    CHECK(refusal(false, [](ActionLists& a) { swap(a, 0, 0, 1); }) == "rank 0: sends tensor 0 before it is made");
    CHECK(refusal(false, [](ActionLists& a) { swap(a, 0, 2, 3); }) ==
          "rank 0: waits for tensor 1 without receiving it");
    CHECK(refusal(false, [](ActionLists& a) { remove(a, 0, 3); }) ==
          "rank 0: B of stage 0, microbatch 0, item 0 comes before tensor 1, which it needs, is there");
    CHECK(refusal(false, [](ActionLists& a) { swap(a, 1, 2, 3); }) ==
          "rank 1: B of stage 1, microbatch 0, item 0 comes before its F");
    CHECK(refusal(false, [](ActionLists& a) { a.ranks[1].insert(a.ranks[1].begin() + 2, a.ranks[1][2]); }) ==
          "rank 1: F of stage 1, microbatch 0, item 0 comes twice");
    CHECK(refusal(false, [](ActionLists& a) { swap(a, 0, 4, 5); }) ==
          "rank 0: B of stage 0, microbatch 0, item 0 comes behind the stage's reduce");
    CHECK(refusal(false, [](ActionLists& a) { remove(a, 0, 5); }) ==
          "stage 0 is trained, but its gradients are never reduced");
    CHECK(refusal(false, [](ActionLists& a) { std::get<emit::Reduce>(a.ranks[0][5]).stages = {1}; }) ==
          "rank 0: reduces stage 1 twice, or does not have it");
    CHECK(refusal(false, [](ActionLists& a) { a.tensors[1].reverse = 1; }) ==
          "tensor 0: 1 is not its gradient or activation");
    CHECK(refusal(false, [](ActionLists& a) { a.tensors[0].to.stage = 5; }) ==
          "stage 5 is not among the plan's stages");
    CHECK(refusal(false, [](ActionLists& a) { a.most_alive.pop_back(); }) ==
          "the plan has lists for 2 ranks and activation counts for 1");
    CHECK(refusal(true, [](ActionLists& a) { remove(a, 1, 5); }) == "I of stage 1, microbatch 0, item 0 has no W");
    CHECK(refusal(true, [](ActionLists& a) { swap(a, 1, 3, 5); }) ==
          "rank 1: W of stage 1, microbatch 0, item 0 comes before its I");
}

TEST_CASE("ranks that wait for each other in a cycle are named") {
    // Each of two ranks has a pass whose output the other needs first.
    using Op = emit::Message::Op;
    emit::ActionLists lists;
    lists.most_alive = {1, 1};
    for (const std::size_t rank : {0U, 1U}) {
        const auto stage = static_cast<std::int64_t>(rank);
        lists.stages.push_back({stage, rank, {}, {}});
        lists.stages.back().role.trained = false;
        lists.tensors.push_back({false, {stage, 0, 0}, {1 - stage, 1, 0}, {}, {}, true, {}, "bf16", {}});
    }
    const auto list = [](std::int64_t stage) {  // needs the other's tensor before it makes its own
        const auto mine = static_cast<std::size_t>(stage), other = 1 - mine;
        return std::vector<emit::Action>{
            emit::Message{Op::wait, other}, emit::Compute{TaskKind::forward, 0, {stage, 1, 0}, {}, {}, {}},
            emit::Compute{TaskKind::forward, 0, {stage, 0, 0}, {}, {}, {}}, emit::Message{Op::send, mine, other, 0}};
    };
    const auto receive = [](std::size_t tensor) { return emit::Message{Op::receive, tensor, tensor, 0}; };
    lists.ranks = {list(0), list(1)};
    lists.ranks[0].insert(lists.ranks[0].begin(), receive(1));
    lists.ranks[1].push_back(receive(0));
    CHECK(emit::why_not_runnable(lists) ==
          "the plan has a cycle: rank 0 waits for tensor 1 of rank 1, rank 1 waits for tensor 0 of rank 0");
}
