#include "emit/targets/trace.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "tests/support/shared.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace std::chrono_literals;

namespace {

// Two ranks, an encoder on both, then a language model on both: F 4, 4, 6, 6 us, backwards twice that, 1 us between
// ranks.
struct Example {
    Example() {
        problem.name = "picture";
        problem.ranks = {{100_B, 10_B, 0us}, {100_B, 10_B, 0us}};
        const auto add = [&](std::uint32_t rank, TaskKind kind, Duration time, const char* module, std::int64_t stage) {
            Task task;
            task.rank = RankId{rank};
            task.kind = kind;
            task.duration = time;
            task.module = module;
            task.stage = stage;
            task.microbatch = 0;
            task.label = module + std::string(1, letter(kind)) + std::to_string(stage);
            (kind == TaskKind::forward ? task.acquire : task.release) = 20_B;
            if (!problem.tasks.empty())
                problem.edges.push_back({TaskId{static_cast<std::uint32_t>(problem.tasks.size() - 1)},
                                         TaskId{static_cast<std::uint32_t>(problem.tasks.size())},
                                         problem.tasks.back().rank == task.rank ? 0us : 1us});
            problem.tasks.push_back(task);
        };
        using enum TaskKind;
        add(0, forward, 4us, "vit", 0);
        add(1, forward, 4us, "vit", 1);
        add(0, forward, 6us, "llm", 2);
        add(1, forward, 6us, "llm", 3);
        add(1, backward, 12us, "llm", 3);
        add(0, backward, 12us, "llm", 2);
        add(1, backward, 8us, "vit", 1);
        add(0, backward, 8us, "vit", 0);
        schedule.order = {{TaskId{0}, TaskId{2}, TaskId{5}, TaskId{7}}, {TaskId{1}, TaskId{3}, TaskId{4}, TaskId{6}}};
    }
    Problem problem;
    Schedule schedule;
};

// PIPEWEAVER_UPDATE_GOLDEN=1 rewrites the file; the diff is reviewed.
void check_golden(const std::string& name, const std::string& text) {
    const std::string path = (testing::source_folder() / "tests/golden" / name).string();
    if (std::getenv("PIPEWEAVER_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    std::stringstream stored;
    stored << std::ifstream(path).rdbuf();
    CHECK(text == stored.str());
}

}  // namespace

TEST_CASE("the picture of two ranks is the stored one") {
    const Example example;
    const Replayer replayer(example.problem);
    check_golden("two_ranks.txt", emit::picture(replayer, example.schedule, replayer.replay(example.schedule), 66));
}

TEST_CASE("many short tasks in a column are seen as what most of its time is") {
    // One rank, three columns of 10 us.
    Problem problem;
    problem.ranks = {{std::nullopt, 0_B, 0us}};
    Schedule schedule{{{}}, {}};
    const auto add = [&](TaskKind kind, Duration time, const char* module) {
        Task task;
        task.kind = kind;
        task.duration = time;
        task.module = module;
        schedule.order[0].push_back(TaskId{static_cast<std::uint32_t>(problem.tasks.size())});
        problem.tasks.push_back(task);
    };
    using enum TaskKind;
    for (const char* module : {"vit", "llm", "vit", "llm", "vit"}) add(forward, 2us, module);  // v 6, l 4
    for (const char* module : {"vit", "llm"}) {                                                // + 4, L 6
        add(weight_gradient, 2us, module);
        add(backward, 3us, "llm");
    }
    add(backward, 3us, "llm");  // L 3, l 3, v 4
    add(forward, 3us, "llm");
    add(forward, 4us, "vit");
    const Replayer replayer(problem);
    const auto text = emit::picture(replayer, schedule, replayer.replay(schedule), 3);

    CHECK(text.substr(0, text.find(" forward")) == "makespan 30.00 us, one column = 10.00 us\nrank 0  |vLv|\nl llm");
}

TEST_CASE("a column of which the rank waits more than half is a dot, at half it is not") {
    // Two ranks in turn: 5 us on rank 0, a lag of 11 us, 4 us on rank 1.
    Problem problem;
    problem.ranks = {{std::nullopt, 0_B, 0us}, {std::nullopt, 0_B, 0us}};
    Task first, second;
    first.duration = 5us;
    first.module = "llm";
    second = first;
    second.rank = RankId{1};
    second.duration = 4us;
    problem.tasks = {first, second};
    problem.edges = {{TaskId{0}, TaskId{1}, 11us}};
    const Schedule schedule{{{TaskId{0}}, {TaskId{1}}}, {}};
    const Replayer replayer(problem);
    const auto text = emit::picture(replayer, schedule, replayer.replay(schedule), 2);

    CHECK(text.substr(0, text.find("l llm")) ==
          "makespan 20.00 us, one column = 10.00 us\nrank 0  |l.|\nrank 1  |..|\n");
}

TEST_CASE("a trace has each task once, with PyTorch's names, and the memory as it changes") {
    const Example example;
    const Replayer replayer(example.problem);
    const auto trace =
        nlohmann::json::parse(emit::chrome_trace(replayer, example.schedule, replayer.replay(example.schedule)));
    std::vector<std::string> names;
    std::vector<std::int64_t> memory;
    for (const auto& event : trace["traceEvents"]) {
        if (event["ph"] == "X" && event["tid"] == 0) names.push_back(event["name"]);
        if (event["ph"] == "C" && event["pid"] == 0) memory.push_back(event["args"]["bytes"]);
    }
    CHECK(names ==
          std::vector<std::string>{"PP:0F0", "PP:2F0", "PP:2B0", "PP:0B0", "PP:1F0", "PP:3F0", "PP:3B0", "PP:1B0"});
    CHECK(memory == std::vector<std::int64_t>{10, 30, 50, 30, 10});
}
