// What the page's server takes for a question, and the processes that answer it: /bin stands in for the program.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "service/ui/runs.hpp"
#include "service/ui/ui_routes.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/types.h>
#include <thread>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::service;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

UiField field(const std::string& name, bool takes_value = true) {
    UiField one;
    one.name = name;
    one.kind = takes_value ? "WORD" : "";
    one.takes_value = takes_value;
    return one;
}

UiOptions small_options(const std::string& program = "/bin/echo") {
    UiOptions options;
    options.program = program;
    options.version = "0";
    options.commands = {
        {"plan", "plans", true, {field("model"), field("verbose", false), field("config"), field("server"), field("")}},
        {"check", "checks", false, {field("cluster")}}};
    return options;
}

std::string refusal(const json& question) {
    try {
        static_cast<void>(UiRoutes::run_question(small_options(), question.dump()));
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "";
}

void write(const fs::path& path, const std::string& text) { static_cast<void>(write_files({{path, text}})); }

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

RunState ended(Runs& runs, std::uint64_t run) {
    for (;;) {
        const auto state = runs.state(run);
        REQUIRE(state.has_value());
        if (!state->is_going) return *state;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

Question asked(const std::string& method, const std::string& path, const std::string& body = {}) {
    Question question;
    question.method = method;
    question.path = path;
    question.host = "127.0.0.1:8081";
    question.body = body;
    if (method == "POST") question.content_type = "application/json";
    return question;
}

}  // namespace

TEST_CASE("ui: a question is the words of a command line, its files by their names") {
    const json question{{"command", "plan"},
                        {"options", {{"model", "hf:own.json"}, {"verbose", true}}},
                        {"files", {{"own.json", "{}"}}}};
    const RunQuestion run = UiRoutes::run_question(small_options(), question.dump());
    CHECK(run.words == std::vector<std::string>{"plan", "--model", "hf:own.json", "--verbose", "--out", "out", "--json",
                                                "--progress-json", "--progress-every", "250"});
    CHECK(run.files == std::vector<std::pair<std::string, std::string>>{{"own.json", "{}"}});

    const json check{{"command", "check"}, {"operand", "-x.sh"}, {"options", {{"cluster", "a b"}}}};
    CHECK(UiRoutes::run_question(small_options(), check.dump()).words ==
          std::vector<std::string>{"check", "--cluster", "a b", "--json", "--progress-json", "--progress-every", "250",
                                   "--", "-x.sh"});
    const json off{{"command", "plan"}, {"options", {{"verbose", false}}}};
    CHECK(UiRoutes::run_question(small_options(), off.dump()).words.size() == 7);
}

TEST_CASE("ui: what a question may not ask is said") {
    CHECK(says(refusal({{"command", "costdb"}}), "one of plan, check"));
    CHECK(says(refusal({{"command", "plan"}, {"also", 1}}), "also"));
    CHECK(refusal(json::array()) != "");
    for (const std::string name : {"nosuch", "config", "out", "server", "json", ""}) {
        CAPTURE(name);
        CHECK(says(refusal({{"command", "plan"}, {"options", {{name, "x"}}}}), "no option '" + name + "'"));
    }
    for (const std::string value : {"/etc/passwd", "hf:/etc/passwd", "a/b", "..", "../x"})
        CHECK(says(refusal({{"command", "plan"}, {"options", {{"model", value}}}}), "without '/'"));
    CHECK(says(refusal({{"command", "plan"}, {"options", {{"model", std::string("a\0b", 3)}}}}), "--model"));
    CHECK(says(refusal({{"command", "plan"}, {"options", {{"model", 3}}}}), "model"));
    CHECK(says(refusal({{"command", "plan"}, {"options", {{"verbose", "yes"}}}}), "verbose"));
    CHECK(says(refusal({{"command", "check"}, {"operand", "/etc/passwd"}}), "operand"));
}

TEST_CASE("ui: names of files stay in their folder") {
    for (const std::string name : {"", ".", "..", ".bashrc", "-x", "a/b", "a\\b", "a:b", "a\nb", "out"}) {
        CAPTURE(name);
        CHECK(says(refusal({{"command", "plan"}, {"files", {{name, ""}}}}), "files: "));
    }
    CHECK(refusal({{"command", "plan"}, {"files", {{std::string(100, 'x'), ""}}}}).empty());
    CHECK(says(refusal({{"command", "plan"}, {"files", {{std::string(101, 'x'), ""}}}}), "100 characters"));
    json many = json::object();
    for (int i = 0; i < 33; ++i) many["f" + std::to_string(i)] = "";
    CHECK(says(refusal({{"command", "plan"}, {"files", many}}), "at most 32"));
}

TEST_CASE("ui: a run answers on stdout, in a folder that goes with the server") {
    const testing::TemporaryFolder top("ui-runs");
    ::setenv("TMPDIR", top.path().c_str(), 1);
    {
        Runs runs("/bin/sh");
        const auto run = runs.begin({{"-c",
                                      "cat given.txt; echo progress >&2; mkdir out out/in; echo x > out/in/a; "
                                      "echo y > out/b; ls /proc/self/fd | wc -l > out/c; "
                                      "echo $PIPEWEAVER_READS_BELOW > out/d; exit 3"},
                                     {{"given.txt", "content"}}});
        REQUIRE(run.has_value());
        const RunState state = ended(runs, *run);
        CHECK(state.status == 3);
        CHECK(state.lines == "progress\n");
        CHECK(runs.answer(*run) == "content");
        CHECK(runs.files(*run) == std::vector<std::string>{"b", "c", "d", "in/a"});
        CHECK(runs.content(*run, "in/a") == "x\n");
        CHECK(runs.content(*run, "c") == "4\n");  // stdin, stdout, stderr and the folder that ls reads
        CHECK(says(runs.content(*run, "d"), "/" + std::to_string(*run) + "/files\n"));
        CHECK_FALSE(runs.state(*run + 1).has_value());
        CHECK_FALSE(fs::is_empty(top.path()));
    }
    CHECK(fs::is_empty(top.path()));
    ::unsetenv("TMPDIR");
}

namespace {

// Or a zombie, of which whoever takes orphans has not heard yet.
bool is_gone(pid_t process) {
    try {
        return says(read_file("/proc/" + std::to_string(process) + "/stat"), ") Z ");
    } catch (const Error&) {
        return true;
    }
}

}  // namespace

TEST_CASE("ui: a run that is ended is gone at once, with what it began") {
    constexpr std::chrono::seconds soon(100);  // however busy the machine is; by itself it would end later
    Runs runs("/bin/sh");
    const auto run = runs.begin({{"-c", "sleep 1000 & echo $! >&2; wait"}, {}});
    REQUIRE(run.has_value());
    std::string told;
    while ((told = runs.state(*run)->lines).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const pid_t inner = std::stoi(told);
    const auto begun = std::chrono::steady_clock::now();
    runs.end(*run, true);
    CHECK(ended(runs, *run).status == -1);
    // What a signal has ended may need its turn to be gone.
    while (!is_gone(inner) && std::chrono::steady_clock::now() - begun < soon)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(is_gone(inner));
    CHECK(std::chrono::steady_clock::now() - begun < soon);
    runs.end(*run, true);  // it has ended: nothing

    const auto before = std::signal(SIGINT, SIG_IGN);  // as where a shell has begun the server in its background
    const auto asked_to = runs.begin({{"-c", "trap 'echo best; exit 5' INT; echo ready >&2; sleep 100 & wait"}, {}});
    std::signal(SIGINT, before);
    while (runs.state(*asked_to)->lines.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    runs.end(*asked_to, false);
    CHECK(ended(runs, *asked_to).status == 5);
    CHECK(runs.answer(*asked_to) == "best\n");
}

TEST_CASE("ui: so many runs go on, and so many are kept") {
    Runs runs("/bin/sh");
    for (std::size_t i = 0; i < Runs::most_going; ++i) CHECK(runs.begin({{"-c", "sleep 100"}, {}}).has_value());
    CHECK_FALSE(runs.begin({{"-c", "true"}, {}}).has_value());
    for (std::size_t run = 1; run <= Runs::most_going; ++run) {
        runs.end(run, true);
        ended(runs, run);
    }
    for (std::size_t i = 0; i < Runs::most_kept; ++i) ended(runs, runs.begin({{"-c", "true"}, {}}).value());
    CHECK_FALSE(runs.state(1).has_value());  // the oldest are forgotten
    CHECK(runs.state(Runs::most_going + 1).has_value());
}

TEST_CASE("ui: a program that there is not is said, and leaves nothing") {
    Runs runs("/nonexistent");
    CHECK_THROWS_WITH_AS(runs.begin({{"x"}, {}}), doctest::Contains("cannot be run"), Error);
    CHECK_FALSE(runs.state(1).has_value());
}

TEST_CASE("ui: no file is read but below the folder that the environment names") {
    const testing::TemporaryFolder top("ui-below");
    const fs::path& folder = top.path();
    fs::create_directories(folder / "given");
    write(folder / "given" / "in.txt", "in");
    write(folder / "out.txt", "out");
    fs::create_symlink(folder / "out.txt", folder / "given" / "link.txt");
    ::setenv("PIPEWEAVER_READS_BELOW", (folder / "given").c_str(), 1);
    CHECK(read_file(folder / "given" / "in.txt") == "in");
    CHECK(is_readable_file(folder / "given" / "in.txt"));
    for (const fs::path& path : {folder / "out.txt", folder / "given" / "link.txt", folder / "given" / ".." / "out.txt",
                                 fs::path(folder.string() + "/givenx")}) {
        CHECK_FALSE(is_readable_file(path));
        CHECK_THROWS_WITH_AS(static_cast<void>(read_file(path)), doctest::Contains("may not be read here"), Error);
        CHECK_THROWS_AS(LineReader{path}, Error);
    }
    ::unsetenv("PIPEWEAVER_READS_BELOW");
    CHECK(read_file(folder / "out.txt") == "out");
}

TEST_CASE("ui: addresses of the page") {
    UiRoutes routes(small_options());
    const auto status = [&](const std::string& method, const std::string& path, const std::string& body = {}) {
        return routes.answer(asked(method, path, body)).status;
    };
    for (const std::string path : {"/", "/ui/app.js", "/ui/chart.js", "/ui/play.js", "/ui/forms"})
        CHECK(status("GET", path) == 200);
    for (const std::string path : {"/ui/runs", "/ui/runs/1", "/ui/runs/x/answer", "/../etc", "/ui/page.html"})
        CHECK(status("GET", path) == 404);
    const json forms = json::parse(routes.answer(asked("GET", "/ui/forms")).body);
    CHECK(forms["commands"][0]["fields"].size() == 3);  // but config and server

    const Answer begun = routes.answer(asked("POST", "/ui/runs", R"({"command": "check"})"));
    REQUIRE(begun.status == 201);
    Answer events = routes.answer(asked("GET", "/ui/runs/1/events"));
    CHECK(events.type == "text/event-stream");
    std::string told;
    while (const auto piece = events.pieces()) told += *piece;
    CHECK(says(told, "event: end\ndata: {\"status\":0,"));
    CHECK(routes.answer(asked("GET", "/ui/runs/1/answer")).body ==
          "check --json --progress-json --progress-every 250\n");
    CHECK(status("GET", "/ui/runs/1/files") == 404);
    CHECK(status("PUT", "/ui/runs/1/answer") == 405);
    CHECK(status("DELETE", "/ui/runs/1") == 200);
    CHECK(status("POST", "/ui/runs", "{") == 400);

    Question form = asked("POST", "/ui/runs", R"({"command": "check"})");  // as another site's form would send it
    form.content_type = "text/plain";
    CHECK(routes.answer(form).status == 415);
    Question elsewhere = asked("GET", "/ui/forms");
    elsewhere.host = "127.0.0.1.evil.example:8081";
    CHECK(routes.answer(elsewhere).status == 421);
}

TEST_CASE("ui: what a command tells a program is an event of its own, and all else is for people") {
    const testing::TemporaryFolder top("ui-events");
    const fs::path program = top.path() / "program";
    write(program,
          "#!/bin/sh\n"
          "cat >&2 <<'END'\n"
          "a remark\n"
          "and another\n"
          "{\"doing\":\"search\",\"share\":0.5}\n"
          "{\"rung\":\"now\",\"place\":0}\n"
          "{\"rung\":torn\n"
          "{\"other\":1}\n"
          "END\n");
    fs::permissions(program, fs::perms::owner_all);
    UiRoutes routes(small_options(program.string()));
    REQUIRE(routes.answer(asked("POST", "/ui/runs", R"({"command": "check"})")).status == 201);
    Answer events = routes.answer(asked("GET", "/ui/runs/1/events"));
    std::string told;
    while (const auto piece = events.pieces()) told += *piece;
    std::string said;
    std::vector<std::string> names;  // neighbours alike as one: lines may come in one piece or in two
    for (auto at = told.find("event: "); at != std::string::npos; at = told.find("event: ", at + 1)) {
        const auto end = told.find('\n', at), data = end + std::string("\ndata: ").size();
        const std::string name = told.substr(at + 7, end - at - 7);
        if (name == "beat") continue;  // on a machine that is slow
        if (names.empty() || names.back() != name) names.push_back(name);
        const json object = json::parse(told.substr(data, told.find('\n', data) - data));
        CHECK(object.contains("millis"));
        if (name == "lines") said += object["text"].get<std::string>();
        if (name == "doing") CHECK((object["doing"] == "search" && object["share"] == 0.5));
        if (name == "rung") CHECK((object["rung"] == "now" && object["place"] == 0));
    }
    CHECK(said == "a remark\nand another\n{\"rung\":torn\n{\"other\":1}\n");
    CHECK(names == std::vector<std::string>{"lines", "doing", "rung", "lines", "end"});
}

TEST_CASE("ui: with a token the page is open, and nothing else") {
    const testing::TemporaryFolder top("ui-token");
    const fs::path file = top.path() / "token";
    write(file, "0123456789abcdef\n");
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    UiOptions options = small_options();
    options.token_file = file.string();
    UiRoutes routes(options);
    CHECK(routes.answer(asked("GET", "/")).status == 200);
    CHECK(routes.answer(asked("GET", "/ui/forms")).status == 401);
    CHECK(routes.answer(asked("POST", "/ui/runs", R"({"command": "check"})")).status == 401);
    Question with = asked("GET", "/ui/forms");
    with.authorization = "Bearer 0123456789abcdef";
    CHECK(routes.answer(with).status == 200);
    with.authorization += "0";
    CHECK(routes.answer(with).status == 401);
}
