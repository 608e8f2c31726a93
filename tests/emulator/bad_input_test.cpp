// Bad problem and solution files: one line that says file, place, what is wrong and what is allowed.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/schedule/solution.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;

namespace {

const std::string good_problem = R"({"format":"pipeweaver-problem/1","name":"two","source":"hand",
"ranks":[{"capacity_bytes":20,"base_bytes":5}],
"tasks":[{"id":0,"rank":0,"kind":"F","duration_ns":10,"acquire_bytes":8,"release_bytes":0,"label":"F0"},
{"id":1,"rank":0,"kind":"B","duration_ns":20,"acquire_bytes":2,"release_bytes":10,"label":"B0"}],
"edges":[[0,1,3]],
"pairs":[{"forward":0,"backward":1,"modes":[{"forward_ns":10,"backward_ns":20,"held_bytes":8,"transient_bytes":2}]}]})";

const std::string good_solution = R"({"format":"pipeweaver-solution/1","problem":"two","order":[[0,1]],"mode":[0]})";

// The text with `what` replaced by `by`; the test is wrong if `what` is not there.
std::string with(std::string text, const std::string& what, const std::string& by) {
    const std::size_t place = text.find(what);
    REQUIRE(place != std::string::npos);
    return text.replace(place, what.size(), by);
}

// "kind message" of the Error that the call throws.
template <class Call>
std::string error_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return fmt::format("{} {}", static_cast<int>(error.kind()), error.what());
    }
    return "no error";
}

std::string problem_error(const std::string& what, const std::string& by) {
    return error_of([&] { static_cast<void>(parse_problem("p.json", with(good_problem, what, by))); });
}

std::string solution_error(const std::string& what, const std::string& by) {
    const auto file = parse_problem("p.json", good_problem);
    return error_of([&] { static_cast<void>(parse_schedule("s.json", with(good_solution, what, by), file)); });
}

}  // namespace

TEST_CASE("the files that the bad ones are made of are good") {
    const auto file = parse_problem("p.json", good_problem);
    CHECK(parse_schedule("s.json", good_solution, file) == Schedule{{{TaskId{0}, TaskId{1}}}, {0}});
}

TEST_CASE("a problem whose tasks wait in a cycle is refused with their labels") {
    CHECK(problem_error("[[0,1,3]]", "[[0,1,3],[1,0,0]]") ==
          "2 p.json: edges: 2 tasks wait for each other in a cycle: 0 'F0' -> 1 'B0'");
}

TEST_CASE("a task id that is not the task's index is refused: twice the same, or one left out") {
    CHECK(problem_error("{\"id\":1", "{\"id\":0") == "2 p.json: tasks[1].id: is 0, needed is the task's index 1");
    CHECK(problem_error("{\"id\":1", "{\"id\":2") == "2 p.json: tasks[1].id: is 2, needed is the task's index 1");
    CHECK(problem_error("{\"id\":1,", "{") == "2 p.json: tasks[1]: the key 'id' is missing");
}

TEST_CASE("an edge to nowhere, to itself or without a lag is refused") {
    CHECK(problem_error("[0,1,3]", "[0,2,3]") == "2 p.json: edges[0]: there is no task 2, the last is 1");
    CHECK(problem_error("[0,1,3]", "[1,1,3]") == "2 p.json: edges[0]: joins task 1 with itself");
    CHECK(problem_error("[0,1,3]", "[0,1]") == "2 p.json: edges[0]: has another form than [from, to, lag_ns]");
    CHECK(problem_error("[0,1,3]", "[0,1,-3]") ==
          "2 p.json: edges[0][2]: is -3, must be a whole number from 0 to 9223372036854775807");
}

TEST_CASE("a capacity below one task is impossible rather than malformed, and says how many bytes are short") {
    CHECK(problem_error(":20,\"base", ":14,\"base") ==
          "4 p.json: tasks[1]: 'B0' does not fit rank 0 even alone: 1 bytes short (15 B of 14 B)");
    CHECK(problem_error(":20,\"base", ":4,\"base") ==
          "4 p.json: ranks[0]: base_bytes 5 exceeds capacity_bytes 4: 1 bytes short");
}

TEST_CASE("an unknown key is refused with the nearest known one") {
    CHECK(problem_error("\"source\"", "\"sauce\"") == "2 p.json: unknown key 'sauce'; did you mean 'source'?");
    CHECK(problem_error("\"capacity_bytes\"", "\"capacity\"") ==
          "2 p.json: ranks[0]: unknown key 'capacity'; did you mean 'capacity_bytes'?");
    CHECK(solution_error("\"mode\"", "\"modes\"") == "2 s.json: unknown key 'modes'; did you mean 'mode'?");
}

TEST_CASE("numbers that are no counts are refused: zero, negative, fractions, texts, huge ones") {
    const auto duration = [](const std::string& number) {
        return problem_error("\"duration_ns\":10", "\"duration_ns\":" + number);
    };
    const std::string allowed = ", must be a whole number from 1 to 9223372036854775807";
    for (const char* bad : {"0", "-1", "10.5", "\"10\"", "true", "null", "1e300", "9223372036854775808"}) {
        CAPTURE(bad);
        const auto message = duration(bad);
        CHECK(message.starts_with("2 p.json: tasks[0].duration_ns: is "));
        CHECK(message.ends_with(allowed));
    }
    CHECK(duration("9223372036854775807") ==
          "2 p.json: the sum of all durations, lags and tails exceeds 9223372036854775807");
    CHECK(problem_error("[0,1,3]", "[0,1,9223372036854775807]") ==
          "2 p.json: the sum of all durations, lags and tails exceeds 9223372036854775807");
}

TEST_CASE("a pair that contradicts its tasks is refused") {
    CHECK(problem_error("\"held_bytes\":8", "\"held_bytes\":7") ==
          "2 p.json: pairs[0].modes[0]: differs from the fields of task 0");
    CHECK(problem_error("\"backward\":1", "\"backward\":0") == "2 p.json: pairs[0]: task 0 is in two pairs");
    CHECK(problem_error("[[0,1,3]]", "[]") == "2 p.json: pairs[0]: no path of edges leads from task 0 to task 1");
}

TEST_CASE("other formats and newer versions are refused by name") {
    CHECK(problem_error("problem/1", "problem/2") ==
          "2 p.json: format: is 'pipeweaver-problem/2', this program reads 'pipeweaver-problem/1'");
    CHECK(solution_error("pipeweaver-solution/1", "pipeweaver-problem/1") ==
          "2 s.json: format: is 'pipeweaver-problem/1', needed is 'pipeweaver-solution/1'");
}

TEST_CASE("an order that is no schedule of the problem is refused with the task") {
    CHECK(solution_error("[[0,1]]", "[[0]]") == "2 s.json: order: task 1 is missing");
    CHECK(solution_error("[[0,1]]", "[[0,1,0]]") == "2 s.json: order[0][2]: is task 0 for the second time");
    CHECK(solution_error("[[0,1]]", "[[0,1,2]]") == "2 s.json: order[0][2]: is 2, must be a whole number from 0 to 1");
    CHECK(solution_error("[[0,1]]", "[[0,1],[]]") == "2 s.json: order: has 2 lists, the problem has 1 ranks");
    CHECK(solution_error("[0]}", "[1]}") == "2 s.json: mode[0]: is 1, must be a whole number from 0 to 0");
    CHECK(solution_error(",\"mode\":[0]", "") == "2 s.json: the key 'mode' is missing");
}

TEST_CASE("a solution of another problem is refused") {
    CHECK(solution_error("\"two\"", "\"three\"") == "2 s.json: problem: is 'three', the problem is 'two'");
    const auto file = parse_problem("p.json", good_problem);
    CHECK(solution_error("\"mode\"", "\"problem_sha256\":\"00\",\"mode\"") ==
          "2 s.json: problem_sha256: is '00', that of the problem is '" + file.sha256 + "'");
}

TEST_CASE("a file that is cut short, absent or a folder is refused with its name") {
    const testing::TemporaryFolder folder("bad-input");
    const auto zipped = gzip(good_problem);
    const auto cut = folder.path() / "cut.json.gz";
    write_files({{folder.path() / "cut.bytes", zipped.substr(0, zipped.size() - 9)}});
    std::filesystem::rename(folder.path() / "cut.bytes", cut);
    const auto error = [](const std::filesystem::path& path) {
        return error_of([&] { static_cast<void>(read_problem(path)); });
    };

    CHECK(error(cut) == fmt::format("2 {}: gzip data is cut short", cut.string()));
    CHECK(error(folder.path() / "absent") ==
          fmt::format("3 {}/absent: cannot be read: No such file or directory", folder.path().string()));
    CHECK(error(folder.path()) == fmt::format("3 {}: is a folder, a file is needed", folder.path().string()));
    CHECK(problem_error("\"edges\":[[0,1,3]],", "\"edges\":[[0,1,3],") == "2 p.json: is not JSON: line 6, column 8");
}
