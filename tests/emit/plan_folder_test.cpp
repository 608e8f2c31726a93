// A plan folder that was written is read back as it was planned, and emitted from without planning again.
#include "pipeweaver/emit/plan_folder.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/targets.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/schedule/solved.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/plan_files.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>

using namespace pipeweaver;
namespace fs = std::filesystem;

namespace {

// Two replicas, planned once for all tests and written.
struct Written {
    Written()
        : temporary("plan-folder"),
          folder(temporary.path() / "plan"),
          request(testing::small_request(2)),
          plan(testing::planned(request, in_order, {.opponents = !testing::short_form()})) {
        for (const auto& path : emit::write_plan_folder(request.job, request.batch, plan, folder,
                                                        {{"format", "pipeweaver-run/1"}}, in_order))
            files[path.lexically_relative(folder).string()] = read_file(path);
    }
    testing::TemporaryFolder temporary;
    fs::path folder;
    planner::Request request;
    planner::Plan plan;
    std::map<std::string, std::string> files;
};

const Written& written() {
    static const Written one;
    return one;
}

void check_emitted(std::string_view target, const std::map<std::string, std::string>& expected) {
    const auto files = emit::emit(written().folder, target, "out");
    REQUIRE(files.size() == expected.size());
    for (const auto& file : files) {
        CAPTURE(file.path.string());
        CHECK(file.content == written().files.at(expected.at(file.path.lexically_relative("out").string())));
    }
}

}  // namespace

TEST_CASE("a plan folder gives back its problems, schedules and action lists") {
    const auto& plan = written().plan;
    for (std::size_t r = 0; r < 2; ++r) {
        const std::string replica = fmt::format("replica-{:03}", r);
        const auto solved = schedule::read_solved(written().folder / replica / "solution.json");
        CHECK(solved.file.sha256 == fingerprint(plan.replicas[r].cut.step.problem));
        CHECK(solved.schedule == plan.replicas[r].found.schedule);
        const auto actions = emit::read_actions(written().folder / replica / "actions.json");
        CHECK(emit::why_not_runnable(actions) == std::nullopt);
        CHECK(to_json(actions) == written().files.at(replica + "/actions.json"));
    }
    CHECK(schedule::read_solved(written().folder / "torch/solution.json").schedule ==
          plan.target("torch-csv").found.schedule);
}

TEST_CASE("what targets make of a plan folder is what the plan wrote") {
    std::map<std::string, std::string> torch;
    for (const std::string name : {"schedule.csv", "schedule.comms.csv", "schedule.json"})
        torch[name] = "torch/" + name;
    check_emitted("torch-csv", torch);
    for (const auto& [target, name] : {std::pair("torch-actions", "actions.json"), {"chrome-trace", "trace.json.gz"}}) {
        std::map<std::string, std::string> expected;
        for (const std::string replica : {"replica-000/", "replica-001/"}) expected[replica + name] = replica + name;
        check_emitted(target, expected);
    }
}

TEST_CASE("a plan whose lists are wanted by rank has those alone, which are not emitted whole") {
    const testing::TemporaryFolder temporary("by-rank");
    planner::Request request = written().request;
    request.job.lists_by_rank = true;
    std::map<std::string, std::string> files;
    for (const auto& file : testing::plan_files(request.job, request.batch, written().plan, temporary.path()))
        files[file.path.lexically_relative(temporary.path()).string()] = file.content;
    CHECK(!files.contains("replica-000/actions.json"));
    for (std::size_t r = 0; r < 2; ++r) {
        const auto whole =
            emit::parse_actions("whole", written().files.at(fmt::format("replica-{:03}/actions.json", r)));
        const emit::RankLists lists(whole);
        for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank)
            CHECK(files.at(fmt::format("replica-{:03}/actions/rank-{:03}.json.gz", r, rank)) == lists.to_json(rank));
        CHECK(!files.contains(fmt::format("replica-{:03}/actions/rank-{:03}.json.gz", r, whole.ranks.size())));
    }
    for (const auto& [name, content] : files)
        if (!name.starts_with("replica-000/actions")) write_files({{temporary.path() / name, content}});
    write_files({{temporary.path() / "replica-000/actions/rank-000.json.gz", "{}"}});
    CHECK_THROWS_WITH_AS(static_cast<void>(emit::emit(temporary.path(), "torch-actions", "out")),
                         doctest::Contains("replica-000/actions: the plan was written with --actions by-rank"), Error);
}

TEST_CASE("a damaged plan.json is refused, whatever is emitted") {
    const testing::TemporaryFolder temporary("damaged-json");
    const fs::path folder = temporary.path() / "plan";
    fs::copy(written().folder, folder, fs::copy_options::recursive);
    auto plan = nlohmann::json::parse(read_file(folder / "plan.json"));
    plan["partition"].erase("name");
    write_files({{folder / "plan.json", plan.dump()}});
    for (const char* target : {"torch-actions", "torch-csv"})
        CHECK_THROWS_WITH_AS(static_cast<void>(emit::emit(folder, target, "out")), doctest::Contains("partition"),
                             Error);
}

TEST_CASE("damaged action lists are refused with the file and the tensor") {
    const testing::TemporaryFolder temporary("damaged-plan");
    fs::copy(written().folder / "replica-000", temporary.path(), fs::copy_options::recursive);
    auto lists = emit::read_actions(temporary.path() / "actions.json");
    for (auto& list : lists.ranks)
        std::erase_if(list, [](const emit::Action& action) {
            const auto* message = std::get_if<emit::Message>(&action);
            return message != nullptr && message->op == emit::Message::Op::receive && message->tensor == 0;
        });
    const auto path = temporary.path() / "actions.json";
    write_files({{path, to_json(lists)}});
    try {
        static_cast<void>(emit::emit(temporary.path(), "torch-actions", "out"));
        FAIL("was emitted");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::limit);
        CHECK(std::string(error.what()).starts_with(path.string() + ": tensor 0 from rank "));
        CHECK(std::string(error.what()).ends_with(" has no receive"));
    }
}

TEST_CASE("of many replicas the slowest have a trace, and who wrote the files changes none of them") {
    const std::vector<int> images{5, 0, 2, 9, 1, 4, 0, 7, 3, 6};
    auto request = testing::small_request(10, images);
    request.job.max_rounds = 0;
    const auto plan = testing::planned(request, in_order, {.targets = false, .robustness = false, .opponents = false});
    const testing::TemporaryFolder temporary("many-replicas");
    const nlohmann::ordered_json run{{"format", "pipeweaver-run/1"}};
    const auto one = emit::write_plan_folder(request.job, request.batch, plan, temporary.path() / "one", run, in_order);
    const auto two =
        emit::write_plan_folder(request.job, request.batch, plan, temporary.path() / "two", run, on_threads(2));
    REQUIRE(one.size() == two.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
        CHECK(one[i].lexically_relative(temporary.path() / "one") ==
              two[i].lexically_relative(temporary.path() / "two"));
        CHECK(read_file(one[i]) == read_file(two[i]));
    }
    Duration fastest_with = Duration::max(), slowest_without{};
    std::size_t traces = 0;
    for (std::size_t r = 0; r < 10; ++r) {
        const bool has = fs::exists(temporary.path() / fmt::format("one/replica-{:03}/trace.json.gz", r));
        const Duration makespan = plan.replicas[r].found.replay.makespan;
        traces += has ? 1 : 0;
        if (has)
            fastest_with = std::min(fastest_with, makespan);
        else
            slowest_without = std::max(slowest_without, makespan);
    }
    CHECK(traces == planner::sizes.replicas_examined);
    CHECK(fastest_with >= slowest_without);
}

TEST_CASE("a replica is planned into a folder of the others, whose files stay where the plan was asked for the same") {
    const testing::TemporaryFolder temporary("one-by-one");
    const fs::path folder = temporary.path() / "plan";
    const auto write = [&](std::size_t replica, std::uint64_t seed) {
        planner::Request request = testing::small_request(2);
        request.job.partition = "balanced";
        request.job.max_rounds = 1;
        request.job.seed = seed;
        const planner::Wanted wanted{.targets = false, .robustness = false, .opponents = false, .replicas = {replica}};
        const auto plan = testing::planned(request, in_order, wanted);
        emit::write_plan_folder(request.job, request.batch, plan, folder, {{"format", "pipeweaver-run/1"}}, in_order);
    };
    write(0, 1);
    write(1, 1);
    CHECK(fs::exists(folder / "replica-000/solution.json"));
    CHECK(emit::emit(folder, "torch-actions", "out").size() == 2);
    write(1, 2);
    CHECK_FALSE(fs::exists(folder / "replica-000/solution.json"));
    CHECK(emit::emit(folder, "torch-actions", "out").size() == 1);
}

TEST_CASE("plan.json says what options say in place of the model") {
    planner::Request request = written().request;
    const auto asked = [&] { return emit::plan_json(request.job, request.batch, written().plan).at("asked"); };
    CHECK_FALSE(asked().contains("microbatch_tokens"));
    CHECK_FALSE(asked().contains("too_long"));
    testing::change_setup(request, [](emulator::Setup& setup) {
        setup.model.microbatch_tokens = 5000;
        setup.model.microbatch_tokens_of_file = 4000;
        setup.model.too_long = workloads::TooLong::own;
    });
    CHECK(asked().at("microbatch_tokens") == 5000);
    CHECK(asked().at("too_long") == "own");
}
