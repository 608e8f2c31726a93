#include "service/http/routes.hpp"
#include "tests/support/small_session.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <future>
#include <map>
#include <stdexcept>
#include <thread>

using namespace pipeweaver;
using namespace pipeweaver::service;
using namespace std::chrono_literals;
using nlohmann::json;
using testing::small_lines;
using testing::small_session;

namespace {

struct Event {
    std::string name;
    json data;
};

// Of a piece as it is sent: whole events, each on its lines.
std::vector<Event> events_of(const std::string& piece) {
    std::vector<Event> all;
    for (std::size_t at = piece.find("event: "); at != std::string::npos; at = piece.find("event: ", at)) {
        const std::size_t end = piece.find("\n\n", at), data = piece.find("\ndata: ", at);
        REQUIRE(end != std::string::npos);
        all.push_back({piece.substr(at + 7, data - at - 7), json::parse(piece.substr(data + 7, end - data - 7))});
        at = end;
    }
    return all;
}

struct Server {
    std::optional<std::string> moved;
    Metrics metrics;
    Store store;
    std::map<std::string, std::string> said;  // the last of each event of the log
    std::string full_at;                      // the event that the log takes no more
    Planning planning{store, metrics, 2, {}, [this](const std::string& event, const std::string& fields) {
                          if (event == full_at) throw std::runtime_error("the log is full");
                          said[event] = fields;
                      }};
    Routes routes;

    explicit Server(const std::string& folder = {})
        : store(folder, {}, moved), routes(planning, metrics, "", [](Duration, const std::function<void()>&) {}) {}

    Answer ask(const std::string& path, const std::map<std::string, std::string>& query = {}) {
        Question question;
        question.method = "GET";
        question.path = path;
        question.query = query;
        std::promise<Answer> done;
        routes.answer(question, [&](Answer answer) { done.set_value(std::move(answer)); });
        return done.get_future().get();
    }

    void open() {
        std::promise<void> done;
        planning.open("job", small_session(), [&](const auto& refusal) {
            CHECK(!refusal);
            done.set_value();
        });
        done.get_future().wait();
    }

    void plan(std::int64_t step, Duration within = 1h) {
        bool fresh = false;
        REQUIRE(!planning.submit("job", step, {small_lines(), within}, fresh));
        std::promise<void> done;
        planning.when_done("job", step, [&] { done.set_value(); });
        done.get_future().wait();
    }
};

// The events that come until one of that name does.
std::vector<Event> until(const Pieces& pieces, const std::string& name) {
    std::vector<Event> all;
    for (int look = 0; look < 10'000; ++look) {
        const auto piece = pieces();
        REQUIRE(piece);
        for (Event& one : events_of(*piece)) all.push_back(std::move(one));
        if (!all.empty() && all.back().name == name) return all;
        std::this_thread::sleep_for(2ms);
    }
    FAIL("there was no event " << name);
    return all;
}

}  // namespace

TEST_CASE("a reader of events is told what was, then what is done, and how things stand where that changed") {
    Server server;
    server.open();
    server.plan(1);
    const Answer answer = server.ask("/v1/events");
    REQUIRE(answer.pieces);
    CHECK(answer.type == "text/event-stream");
    const auto first = answer.pieces();
    REQUIRE(first);
    CHECK(first->starts_with("retry: "));
    const auto begun = events_of(*first);
    REQUIRE(begun.size() == 2);
    CHECK(begun[0].name == "history");
    REQUIRE(begun[0].data.size() == 1);
    CHECK(begun[0].data[0]["step"] == 1);
    CHECK(begun[0].data[0]["how"] == "search");
    CHECK(begun[0].data[0]["late_seconds"] < -3000);
    CHECK_FALSE(begun[0].data[0].contains("why"));
    CHECK(begun[1].name == "state");
    CHECK(begun[1].data["state"]["sessions"][0]["session"] == "job");
    CHECK(begun[1].data["state"]["sessions"][0]["late"] == 0);
    CHECK(answer.pieces()->empty());  // nothing has changed

    server.plan(2);
    const auto next = until(answer.pieces, "state");
    CHECK(next[0].name == "done");
    REQUIRE(next[0].data.size() == 1);
    CHECK(next[0].data[0]["step"] == 2);
    CHECK(next.back().data["state"]["sessions"][0]["planned"] == 2);
}

TEST_CASE("steps that wait are told with when they are due, those due first") {
    Server server;
    std::promise<void> opened;
    server.planning.open("job",
                         R"({"config":{"model":"dip-vlm-m","cluster":"h100-sxm:32","tp":8,"pp":4,"budget":"200ms"},)"
                         R"("sample":[)" +
                             testing::small_samples() + "]}",
                         [&](const auto&) { opened.set_value(); });
    opened.get_future().wait();
    bool fresh = false;
    REQUIRE(!server.planning.submit("job", 1, {small_lines(), 2h}, fresh));
    REQUIRE(!server.planning.submit("job", 2, {small_lines(1), 1h, 7}, fresh));
    const Answer answer = server.ask("/v1/events");
    const auto state = until(answer.pieces, "state").back().data;
    const auto& queue = state["state"]["queue"];
    REQUIRE(queue.size() == 2);
    CHECK(queue[0]["step"] == 2);
    CHECK(queue[0]["priority"] == 7);
    CHECK(queue[1]["step"] == 1);
    CHECK(queue[1]["samples"] == 8);
    const auto due = queue[1]["due_ms"].get<std::int64_t>() - state["now_ms"].get<std::int64_t>();
    CHECK(due <= 7'200'000);
    CHECK(due > 7'000'000);
    for (const std::int64_t step : {1, 2}) CHECK(!server.planning.cancel("job", step));
    CHECK(until(answer.pieces, "state").back().data["state"]["queue"].empty());
}

TEST_CASE("what was late is told with the reason, in the log, too") {
    Server server;
    server.open();
    server.plan(1, 1ns);
    const auto planned = json::parse(server.said.at("planned"));
    CHECK(planned["why_late"].get<std::string>().starts_with("submitted with less time (1 ns) than a plan by policy"));
    const auto done = events_of(*server.ask("/v1/events").pieces())[0].data;
    CHECK(done[0]["why"] == planned["why_late"]);
    CHECK(done[0]["late_seconds"] > 0);
    CHECK(server.planning.session("job")->late == 1);
}

TEST_CASE("what could not be planned is told with why") {
    Server server;
    server.open();
    server.full_at = "planned";
    server.plan(1);
    const auto done = events_of(*server.ask("/v1/events").pieces())[0].data;
    REQUIRE(done.size() == 1);
    CHECK(done[0]["how"] == "none");
    CHECK(done[0]["gap"].is_null());
    CHECK(done[0]["why"] == "the log is full");
    CHECK(server.planning.session("job")->failed == 1);
    CHECK(json::parse(server.said.at("not planned"))["why"] == "the log is full");
}

TEST_CASE("so many read events and no more, until one of them is gone") {
    Server server;
    std::vector<Answer> readers;
    for (std::size_t i = 0; i < Events::most_readers; ++i) readers.push_back(server.ask("/v1/events"));
    for (const Answer& reader : readers) CHECK(reader.pieces);
    const Answer refused = server.ask("/v1/events");
    CHECK(refused.status == 503);
    CHECK_FALSE(refused.pieces);
    CHECK(refused.headers.front() == std::pair<std::string, std::string>("Retry-After", "5"));
    readers.pop_back();
    CHECK(server.ask("/v1/events").pieces);
}

TEST_CASE("events end when their time is over, and when the server ends") {
    Server server;
    const Answer brief = server.ask("/v1/events", {{"for_ms", "1"}});
    std::this_thread::sleep_for(2ms);
    CHECK_FALSE(brief.pieces());
    CHECK(server.ask("/v1/events", {{"for_ms", "soon"}}).status == 400);
    const Answer answer = server.ask("/v1/events");
    CHECK(answer.pieces());
    server.planning.drain();
    CHECK_FALSE(answer.pieces());
    CHECK(server.ask("/v1/events").status == 503);
}
