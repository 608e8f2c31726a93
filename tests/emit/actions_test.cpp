// actions.json says all that an executor needs.
#include "pipeweaver/emit/actions.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

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
    return emit::actions(step, schedule, replay(step.problem, schedule), modes, data);
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
{"stage":0,"rank":0,"chain":"net","trainable":true,"gradient":true,"reads_batch":true,"inputs":[],"parts":[{"module":"net","first_layer":0,"layers":1,"trainable":true}]},
{"stage":1,"rank":1,"chain":"net","trainable":true,"gradient":true,"reads_batch":false,"inputs":[],"parts":[{"module":"net","first_layer":1,"layers":1,"trainable":true}]}
],
"tensors":[
{"tensor":0,"kind":"activation","from":{"stage":0,"microbatch":0,"item":0},"to":{"stage":1,"microbatch":0,"item":0},"shape":[5,4],"gradient":1,"join":"previous","dtype":"bf16","bytes_per_gpu":40},
{"tensor":1,"kind":"gradient","from":{"stage":1,"microbatch":0,"item":0},"to":{"stage":0,"microbatch":0,"item":0},"shape":[5,4],"of":0,"dtype":"bf16","bytes_per_gpu":40}
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
        CHECK(emit::actions(step.problem, schedule_of(step, 0)) == text);
    }
}

TEST_CASE("a problem that does not say enough for action lists is refused by name") {
    const auto refusal = [](auto change) {
        auto step = chain_of_two(false);
        change(step.problem);
        try {
            (void)emit::actions(step.problem, schedule_of(step, 0));
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
