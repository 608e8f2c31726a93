#include "service/http/routes.hpp"

#include "pipeweaver/base/files.hpp"
#include "service/http/embedded.hpp"
#include "tests/support/small_session.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <future>
#include <set>
#include <thread>

using namespace pipeweaver;
using namespace pipeweaver::service;
using nlohmann::json;
using testing::small_samples;
using testing::small_session;

namespace {

struct Server {
    std::optional<std::string> moved;
    Metrics metrics;
    Store store;
    std::function<void(const std::string&)> at_event;  // is told the log's events
    Planning planning{store, metrics, 2, {}, [this](const std::string& event, const auto&) {
                          if (at_event) at_event(event);
                      }};
    std::vector<std::function<void()>> timers;  // that run
    Routes routes;

    explicit Server(const std::string& token = {}, const std::string& folder = {})
        : store(folder, {}, moved),
          routes(planning, metrics, token,
                 [this](Duration, const std::function<void()>& then) { timers.push_back(then); }) {}

    Answer ask(const Question& question) {
        std::promise<Answer> done;
        routes.answer(question, [&](Answer answer) { done.set_value(std::move(answer)); });
        return done.get_future().get();
    }

    Answer ask(const std::string& method, const std::string& path, const std::string& body = {}) {
        Question question;
        question.method = method;
        question.path = path;
        question.host = "127.0.0.1:8080";
        question.body = body;
        if (method == "PUT") question.content_type = "application/json";
        return ask(question);
    }
};

// Runs SQL on the state that a server left in the folder.
void change(const testing::TemporaryFolder& folder, const std::string& sql) {
    Sqlite::in_file((folder.path() / "state.sqlite").string(), {"cannot be changed"}).run(sql);
}

// The rounds that the session allows end a search, not its deadline: however slow the machine is.
std::string step(int seed = 0, const std::string& deadline = "600000") {
    return R"({"samples":[)" + small_samples(seed) + R"(],"deadline_ms":)" + deadline + "}";
}

const std::string job = "/v1/sessions/job";

// Opens a session "job" and plans its step 1.
void plan_first(Server& server) {
    REQUIRE(server.ask("PUT", job, small_session()).status == 200);
    REQUIRE(server.ask("PUT", job + "/steps/1", step()).status == 202);
    REQUIRE(server.ask("GET", job + "/steps/1").status == 200);
}

struct WrongRequest {
    std::string method, path, body;
    int status;
};

// Requests that a server refuses after plan_first(), each with its status.
std::vector<WrongRequest> wrong_requests() {
    const std::string deep(100'000, '[');
    return {{"GET", "/nothing", "", 404},
            {"GET", "/v1/sessions/", "", 400},
            {"GET", "/v1/sessions/none", "", 404},
            {"GET", "/v1/sessions/a%2fb", "", 400},
            {"GET", "/v1/sessions/" + std::string(65, 'a'), "", 400},
            {"POST", job, "{}", 405},
            {"DELETE", "/v1/sessions/none", "", 404},
            {"PUT", job, small_session(R"(,"seed":9)"), 409},
            {"PUT", "/v1/sessions/new", "", 400},
            {"PUT", "/v1/sessions/new", deep, 400},
            {"PUT", "/v1/sessions/new", R"({"config":{},"sample":[]})", 400},
            {"PUT", job + "/steps/x", step(), 400},
            {"PUT", job + "/steps/-1", step(), 400},
            {"PUT", job + "/steps/9007199254740992", step(), 400},
            {"PUT", job + "/steps/2", "{", 400},
            {"PUT", job + "/steps/2", deep, 400},
            {"PUT", job + "/steps/2", R"({"samples":[],"deadline_ms":1})", 400},
            {"PUT", job + "/steps/2", step(0, "0"), 400},
            {"PUT", job + "/steps/2", step(0, "-5"), 400},
            {"PUT", job + "/steps/2", step(0, "1e9"), 400},
            {"PUT", job + "/steps/2", R"({"deadline_ms":1})", 400},
            {"PUT", job + "/steps/2", step(0, R"(1,"priority":101)"), 400},
            {"PUT", job + "/steps/2", step(0, R"(1,"priority":-1)"), 400},
            {"PUT", job + "/steps/2", R"({"samples":[{"id":"a","x":1}],"deadline_ms":1})", 400},
            {"PUT", job + "/steps/1", step(5), 409},
            {"PUT", "/v1/sessions/none/steps/1", step(), 404},
            {"GET", job + "/steps/2", "", 404},
            {"DELETE", job + "/steps/2", "", 404},
            {"GET", job + "/steps/1/replicas/7", "", 404},
            {"GET", job + "/steps/1/replicas/x/problem", "", 400},
            {"GET", job + "/steps/1/replicas/0/ranks/9", "", 404},
            {"GET", job + "/steps/1/deferred", "", 404},
            {"GET", job + "/steps/1/replicas/0/../../plan", "", 404}};
}

}  // namespace

TEST_CASE("the OpenAPI document has the addresses that are served, and no others") {
    const auto document = json::parse(openapi_text());
    std::set<std::string> described, served;
    for (const auto& [path, methods] : document["paths"].items())
        for (const auto& [method, operation] : methods.items()) {
            std::string line = method;
            for (char& c : line) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
            described.insert((line += " ") += path);
        }
    for (const RouteName& route : Routes::names()) served.insert(route.method + " " + route.pattern);
    CHECK(described == served);
}

TEST_CASE("what a server may answer to any request is documented for all") {
    const auto document = json::parse(openapi_text());
    for (const auto& methods : document["paths"])
        for (const auto& operation : methods) {
            CHECK(operation["responses"].contains("431"));
            CHECK(operation["responses"].contains("503"));
            CHECK(operation["responses"].contains("500") == operation["responses"].contains("401"));
        }
}

TEST_CASE("a session that is closed while it is opened is said to be, with a status that is documented") {
    Server server;
    server.at_event = [&](const std::string& event) {
        if (event == "session opened") CHECK(!server.planning.close("job"));
    };
    CHECK(server.ask("PUT", job, small_session()).status == 409);
    CHECK(server.ask("GET", job).status == 404);
}

TEST_CASE("a session is opened, a step submitted and collected by its addresses") {
    Server server;
    const auto opened = server.ask("PUT", "/v1/sessions/job", small_session());
    REQUIRE(opened.status == 200);
    CHECK(json::parse(opened.body)["partition"]["format"] == "pipeweaver-partition/1");
    CHECK(json::parse(server.ask("GET", "/v1/sessions").body)["sessions"].size() == 1);
    CHECK(server.ask("PUT", "/v1/sessions/job/steps/3", step(0, R"(600000,"priority":100)")).status == 202);
    const auto found = server.ask("GET", "/v1/sessions/job/steps/3");
    REQUIRE(found.status == 200);
    CHECK(json::parse(found.body)["found"]["by"] == "search");
    CHECK(server.ask("PUT", "/v1/sessions/job/steps/3", step()).status == 200);
    const std::string below = "/v1/sessions/job/steps/3/";
    for (const char* part : {"whole", "plan", "assignment", "record", "replicas/0", "replicas/0/problem",
                             "replicas/0/solution", "replicas/0/actions", "replicas/0/ranks/2"}) {
        CAPTURE(part);
        const auto answer = server.ask("GET", below + part);
        CHECK(answer.status == 200);
        CHECK(json::accept(answer.body));
        CHECK(answer.type == "application/json");
    }
    Question zipped;
    zipped.method = "GET";
    zipped.path = below + "plan";
    zipped.accepts_gzip = true;
    const auto plan = server.ask(zipped);
    CHECK(plan.zipped);
    CHECK(gunzip(plan.body) == server.ask("GET", below + "plan").body);
    CHECK(json::parse(server.ask("GET", below + "whole").body).contains("replicas/0/solution"));
    CHECK(server.ask("DELETE", below.substr(0, below.size() - 1)).status == 204);  // planned: it stays
    CHECK(server.ask("GET", below + "plan").status == 200);
    CHECK(server.ask("GET", "/v1/status").body.find("\"latest\"") != std::string::npos);
    CHECK(server.ask("DELETE", "/v1/sessions/job").status == 204);
    CHECK(server.ask("GET", below + "plan").status == 404);
}

TEST_CASE("a step that is taken is said to wait, however soon it is planned") {
    Server server;
    plan_first(server);
    for (int i = 2; i < 30; ++i) {
        const auto answer = server.ask("PUT", fmt::format("{}/steps/{}", job, i),
                                       R"({"samples":[{"id":"a","text_tokens":9,"images":[{"width":28,"height":28}]}],)"
                                       R"("deadline_ms":1})");
        CHECK(answer.status == 202);
        CHECK(json::parse(answer.body)["state"] == "waiting");
    }
}

TEST_CASE("every wrong request gets its status and a line that says why") {
    Server server;
    plan_first(server);
    for (const WrongRequest& one : wrong_requests()) {
        CAPTURE(one.method);
        CAPTURE(one.path);
        CAPTURE(one.body.substr(0, 100));
        const auto answer = server.ask(one.method, one.path, one.body);
        CHECK(answer.status == one.status);
        CHECK(!json::parse(answer.body)["error"]["message"].get<std::string>().empty());
        if (one.status == 405) CHECK(answer.headers.front().second == "PUT, GET, DELETE");
    }
}

TEST_CASE("a body that is no JSON by its type is refused, in UTF-8 whatever the type") {
    Server server;
    plan_first(server);
    Question text;
    text.method = "PUT";
    text.path = job + "/steps/2";
    text.content_type = "text/plain";
    text.body = step();
    CHECK(server.ask(text).status == 415);
    text.content_type = "\xc3\x28";
    CHECK(json::accept(server.ask(text).body));
}

TEST_CASE("a wait that is no number of milliseconds up to ten minutes is refused, in UTF-8 whatever it is") {
    Server server;
    plan_first(server);
    Question wait;
    wait.method = "GET";
    wait.path = job + "/steps/1";
    for (const char* value : {"soon", "\xff\xfe", "-1", "600001"}) {
        wait.query["wait_ms"] = value;
        const auto answer = server.ask(wait);
        CHECK(answer.status == 400);
        CHECK(json::accept(answer.body));
    }
}

TEST_CASE("with a token every address asks for it but the page, its document and health") {
    Server server("a secret of some length");
    const auto ask = [&](const std::string& path, const std::string& authorization) {
        Question question;
        question.method = "GET";
        question.path = path;
        question.authorization = authorization;
        question.host = "example.org";
        return server.ask(question);
    };
    for (const char* path : {"/", "/openapi.json", "/healthz", "/readyz"}) CHECK(ask(path, "").status == 200);
    for (const char* path : {"/metrics", "/v1/sessions", "/v1/status", "/v1/events"}) {
        CHECK(ask(path, "").status == 401);
        CHECK(ask(path, "Bearer a secret of some lengti").status == 401);
        CHECK(ask(path, "Bearer ").status == 401);
        CHECK(ask(path, "Basic a secret of some length").status == 401);
        CHECK(ask(path, "Bearer a secret of some length").status == 200);
    }
    CHECK(ask("/v1/status", "").headers.front().first == "WWW-Authenticate");
}

TEST_CASE("without a token only this machine's names are served, whatever a browser was made to ask") {
    Server server;
    const auto ask = [&](const std::string& host) {
        Question question;
        question.method = "GET";
        question.path = "/v1/sessions";
        question.host = host;
        return server.ask(question).status;
    };
    for (const char* host : {"127.0.0.1:8080", "localhost:8080", "localhost", "[::1]:8080", "127.0.0.2", ""}) {
        CAPTURE(host);
        CHECK(ask(host) == 200);
    }
    for (const char* host :
         {"evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1:8080"}) {
        CAPTURE(host);
        CHECK(ask(host) == 421);
    }
}

TEST_CASE("what goes wrong after a wait is an answer, too") {
    const testing::TemporaryFolder folder("routes");
    {
        Server first({}, folder.path().string());
        REQUIRE(first.ask("PUT", job, small_session()).status == 200);
    }
    // What is stored from now on cannot be read.
    change(folder, "CREATE TRIGGER damage AFTER INSERT ON part BEGIN UPDATE part SET content = x'00'; END");
    Server server({}, folder.path().string());
    REQUIRE(server.ask("PUT", job, small_session()).status == 200);
    REQUIRE(server.ask("PUT", job + "/steps/1", step()).status == 202);
    for (const char* part : {"/plan", "/whole", "/replicas/0"})
        CHECK(server.ask("GET", job + "/steps/1" + part).status == 500);
    CHECK(server.ask("GET", job + "/steps/1").status == 200);
}

TEST_CASE("what is missing of a plan is not found, and its summary is no substitute") {
    const testing::TemporaryFolder folder("routes");
    {
        Server first({}, folder.path().string());
        plan_first(first);
    }
    change(folder, "DELETE FROM part");
    Server server({}, folder.path().string());
    CHECK(server.ask("GET", job + "/steps/1").status == 200);
    CHECK(server.ask("GET", job + "/steps/1/whole").status == 404);
}

TEST_CASE("what needs a session that is not opened again says so") {
    const testing::TemporaryFolder folder("routes");
    {
        Server first({}, folder.path().string());
        plan_first(first);
    }
    // The empty object, zipped.
    change(folder, "UPDATE session SET kept = x'1f8b0800000000000203abae050043bfa6a302000000'");
    Server server({}, folder.path().string());
    while (!server.planning.ready()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(server.ask("GET", job + "/steps/1").status == 200);
    for (const char* part : {"/steps/1/record", "/kept"}) {
        const auto answer = server.ask("GET", job + part);
        CHECK(answer.status == 500);
        CHECK(answer.body.find("cannot be opened again") != std::string::npos);
    }
}

TEST_CASE("who was answered is let go, however long a wait was asked for") {
    Server server;
    REQUIRE(server.ask("PUT", job, small_session()).status == 200);
    REQUIRE(server.ask("PUT", job + "/steps/1", step()).status == 202);
    auto connection = std::make_shared<std::promise<int>>();
    const std::weak_ptr<std::promise<int>> held = connection;
    auto status = connection->get_future();
    Question question;
    question.method = "GET";
    question.path = job + "/steps/1";
    question.query["wait_ms"] = "600000";
    server.routes.answer(question, [connection](const Answer& answer) { connection->set_value(answer.status); });
    connection.reset();
    CHECK(status.get() == 200);
    REQUIRE(server.timers.size() == 1);
    for (int look = 0; !held.expired() && look < 60'000; ++look)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(held.expired());
    server.timers.front()();
}

TEST_CASE("what is long is zipped for who takes it so") {
    Server server;
    plan_first(server);
    for (const std::string path : {"/steps/1/whole", "/steps/1/replicas/0", "/steps/1/record", "/kept"}) {
        CAPTURE(path);
        Question question;
        question.method = "GET";
        question.path = job + path;
        const auto plain = server.ask(question);
        question.accepts_gzip = true;
        const auto zipped = server.ask(question);
        CHECK_FALSE(plain.zipped);
        REQUIRE(zipped.zipped);
        CHECK(zipped.body.size() < plain.body.size() / 2);
        CHECK(gunzip(zipped.body) == plain.body);
    }
}

TEST_CASE("a method that nobody knows is one label, whatever its text") {
    Metrics metrics;
    for (int i = 0; i < 100; ++i) metrics.answered(fmt::format("BREW{}", i), "none", 405);
    metrics.answered("GET", "/", 200);
    const std::string text = metrics.text();
    CHECK(text.find("BREW") == std::string::npos);
    CHECK(text.find("method=\"other\"") != std::string::npos);
    CHECK(text.find("method=\"GET\"") != std::string::npos);
}

TEST_CASE("metrics count what was asked and planned") {
    Server server;
    REQUIRE(server.ask("PUT", "/v1/sessions/job", small_session()).status == 200);
    server.ask("PUT", "/v1/sessions/job/steps/1", step());
    server.ask("GET", "/v1/sessions/job/steps/1");
    const std::string text = server.ask("GET", "/metrics").body;
    for (const char* line :
         {"pipeweaver_submitted_total 1", "pipeweaver_plans_total{how=\"search\"} 1", "pipeweaver_sessions 1",
          "pipeweaver_unfinished 0", "pipeweaver_first_plan_seconds_count 1", "pipeweaver_plan_seconds_count 1",
          "pipeweaver_late_total 0"}) {
        CAPTURE(line);
        CHECK(text.find(line) != std::string::npos);
    }
}
