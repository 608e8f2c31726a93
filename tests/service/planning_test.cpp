#include "service/planning.hpp"

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_session.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <future>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

using namespace pipeweaver;
using namespace pipeweaver::service;
using namespace std::chrono_literals;
using testing::small_lines;
using testing::small_session;

namespace {

struct Server {
    std::optional<std::string> moved;
    Metrics metrics;
    Store store;
    std::function<void(const std::string&, const std::string&)> at_event;  // is told what is logged
    Planning planning;

    explicit Server(const std::string& folder = {}, Limits limits = {}, Retention retention = {})
        : store(folder, retention, moved),
          planning(store, metrics, 2, std::move(limits), [this](const std::string& event, const std::string& fields) {
              if (at_event) at_event(event, fields);
          }) {}

    std::optional<Refusal> open(const std::string& name, const std::string& asked = small_session()) {
        std::promise<std::optional<Refusal>> done;
        planning.open(name, asked, [&](std::optional<Refusal> refusal) { done.set_value(std::move(refusal)); });
        return done.get_future().get();
    }

    // The rounds that the session allows end a search, not its deadline: however slow the machine is.
    std::optional<Refusal> submit(std::int64_t step, int seed = 0, Duration within = 1h) {
        bool fresh = false;
        return planning.submit("job", step, {small_lines(seed), within}, fresh);
    }

    StepView wait(std::int64_t step) {
        std::promise<void> done;
        planning.when_done("job", step, [&] { done.set_value(); });
        done.get_future().wait();
        return planning.step("job", step);
    }

    std::string part(std::int64_t step, const std::string& name) const {
        const auto zipped = planning.zipped_part("job", step, name);
        return zipped ? gunzip(*zipped) : "none";
    }
};

int status_of(const std::optional<Refusal>& refusal) { return refusal ? refusal->status : 0; }

// What is searched until its deadline.
std::string long_session() {
    return R"({"config":{"model":"dip-vlm-s","cluster":"h100-sxm:16","tp":4,"pp":4,"partition":"balanced",)"
           R"("budget":"200ms"},"sample":[)" +
           testing::small_samples() + "]}";
}

// A batch that takes some hundred milliseconds to read.
std::string many_lines() {
    std::string images;
    for (int n = 0; n < 20; ++n) images += fmt::format("{}{}", n == 0 ? "" : ",", R"({"width":448,"height":448})");
    std::string lines;
    for (int i = 0; i < 50'000; ++i)
        lines += fmt::format("{{\"id\":\"s{}\",\"text_tokens\":100,\"images\":[{}]}}\n", i, images);
    return lines;
}

}  // namespace

TEST_CASE("a step is planned, given, and given again unchanged, also by the next server") {
    const testing::TemporaryFolder folder("planning");
    std::string solution;
    {
        Server server(folder.path().string());
        REQUIRE(!server.open("job"));
        REQUIRE(!server.submit(1));
        const auto view = server.wait(1);
        REQUIRE(view.state == StepState::planned);
        CHECK(view.plan->rounds == 3);
        CHECK(view.plan->searched());
        solution = server.part(1, "replicas/0/solution");
        CHECK(solution.find("pipeweaver-solution/1") != std::string::npos);
        CHECK(!server.submit(1));  // equal contents: the same step
        CHECK(server.part(1, "replicas/0/solution") == solution);
    }
    Server again(folder.path().string());
    CHECK(!again.open("job"));  // waits until it plans again
    CHECK(again.planning.ready());
    CHECK(again.part(1, "replicas/0/solution") == solution);
    CHECK(!again.submit(1));
    CHECK(status_of(again.submit(1, 3)) == 409);
    REQUIRE(!again.submit(2));  // the batch of step 1, planned as before
    REQUIRE(again.wait(2).state == StepState::planned);
    CHECK(again.part(2, "replicas/0/solution") == solution);
    CHECK(again.planning.record("job", 2));
}

TEST_CASE("steps with equal contents are planned once, with others refused") {
    Server server;
    REQUIRE(!server.open("job"));
    bool first = false, second = true;
    CHECK(!server.planning.submit("job", 1, {small_lines(), 1h}, first));
    CHECK(!server.planning.submit("job", 1, {small_lines(), 1h}, second));
    CHECK(first);
    CHECK_FALSE(second);
    CHECK(status_of(server.submit(1, 4)) == 409);
    CHECK(server.wait(1).state == StepState::planned);
    CHECK(server.planning.session("job")->planned == 1);
}

TEST_CASE("a session is opened once, with other contents refused, and closed with its plans") {
    Server server;
    CHECK(!server.open("job"));
    CHECK(!server.open("job"));
    CHECK(status_of(server.open("job", small_session(R"(,"seed":2)"))) == 409);
    CHECK(status_of(server.open("bad", R"({"config":{"model":"x","cluster":"h100-sxm:16"},"sample":[]})")) == 400);
    CHECK(status_of(server.open("small",
                                R"({"config":{"model":"dip-vlm-s","cluster":"h100-sxm:1","tp":1,"pp":1},"sample":[)" +
                                    testing::small_samples() + "]}")) == 422);
    CHECK(server.planning.sessions().size() == 1);
    REQUIRE(!server.submit(1));
    server.wait(1);
    CHECK(!server.planning.close("job"));
    CHECK(status_of(server.planning.close("job")) == 404);
    CHECK(server.planning.step("job", 1).state == StepState::unknown);
    REQUIRE(!server.open("job"));
    CHECK(server.planning.step("job", 1).state == StepState::unknown);
}

TEST_CASE("a session that is opened again by who hears that it is closed is stored") {
    const testing::TemporaryFolder folder("planning");
    {
        Server server(folder.path().string());
        REQUIRE(!server.open("job", long_session()));
        REQUIRE(!server.submit(1));
        std::optional<Refusal> again;
        server.planning.when_done("job", 1, [&] { again = server.open("job"); });
        CHECK(!server.planning.close("job"));
        CHECK(!again);
        CHECK(server.planning.session("job"));
    }
    Server next(folder.path().string());
    CHECK(next.planning.session("job"));
    CHECK(!next.open("job"));
}

TEST_CASE("what is opened while its name is closed is opened afterwards, and stored") {
    const testing::TemporaryFolder folder("planning");
    { const Server first(folder.path().string()); }
    // Some hundred milliseconds for each session that is taken out.
    Sqlite::in_file((folder.path() / "state.sqlite").string(), {"cannot be changed"})
        .run(
            "CREATE TRIGGER slow BEFORE DELETE ON session BEGIN SELECT (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
            "SELECT i + 1 FROM n WHERE i < 2000000) SELECT max(i) FROM n); END");
    Server server(folder.path().string());
    const std::string asked = small_session(R"(,"partition":"dip")");
    REQUIRE(!server.open("job", asked));
    REQUIRE(!server.submit(1));
    REQUIRE(server.wait(1).state == StepState::planned);
    std::promise<void> began;
    auto closed = std::async(std::launch::async, [&] {
        began.set_value();
        return server.planning.close("job");
    });
    began.get_future().wait();
    // Other contents, which are refused until the other thread has had a core to begin with. It takes its time then.
    const auto open_other = [&] { return server.open("job", small_session(R"(,"partition":"dip","seed":2)")); };
    std::this_thread::sleep_for(50ms);
    auto refusal = open_other();
    for (int look = 0; look < 50 && status_of(refusal) == 409; ++look) {
        std::this_thread::sleep_for(1ms);
        refusal = open_other();
    }
    CHECK(!refusal);
    CHECK(!closed.get());
    CHECK(server.planning.session("job"));
    CHECK(server.store.sessions().size() == 1);
    CHECK(server.planning.step("job", 1).state == StepState::unknown);
    REQUIRE(!server.submit(1, 2));
    CHECK(server.wait(1).state == StepState::planned);
}

TEST_CASE("a session that cannot be taken out of the store stays open") {
    const testing::TemporaryFolder folder("planning");
    { const Server first(folder.path().string()); }
    Sqlite::in_file((folder.path() / "state.sqlite").string(), {"cannot be changed"})
        .run("CREATE TRIGGER full BEFORE DELETE ON session BEGIN SELECT RAISE(ABORT, 'no room'); END");
    Server server(folder.path().string());
    REQUIRE(!server.open("job"));
    CHECK_THROWS_WITH_AS(static_cast<void>(server.planning.close("job")), doctest::Contains("no room"), Error);
    CHECK(server.store.sessions().size() == 1);
    CHECK(!server.open("job"));
    REQUIRE(!server.submit(1));
    CHECK(server.wait(1).state == StepState::planned);
}

TEST_CASE("a session that is wanted sooner is opened sooner") {
    Server server;
    const std::string minutes =
        R"({"config":{"model":"dip-vlm-m","cluster":"h100-sxm:32","tp":8,"pp":4,"budget":"60s"},"sample":[)" +
        testing::small_samples() + "]}";
    const Stopwatch watch;
    auto opened = std::async(std::launch::async, [&] { return server.open("job", minutes); });
    while (!server.planning.session("job")) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(50ms);
    server.planning.hurry("job", 0ms);
    CHECK(!opened.get());
    CHECK(watch.elapsed() < 50s);  // of 60
    server.planning.hurry("none", 0ms);
    REQUIRE(!server.submit(1, 0, 1ms));
    CHECK(server.wait(1).state == StepState::planned);
}

TEST_CASE("a session whose stored content is damaged is said to be, and others are opened again") {
    const testing::TemporaryFolder folder("planning");
    {
        Server first(folder.path().string());
        REQUIRE(!first.open("job"));
        REQUIRE(!first.open("other"));
    }
    Sqlite::in_file((folder.path() / "state.sqlite").string(), {"cannot be changed"})
        .run("UPDATE session SET kept = x'1f8b0800' WHERE name = 'other'");
    Server server(folder.path().string());
    CHECK(!server.open("job"));
    const auto refusal = server.open("other");
    REQUIRE(refusal);
    CHECK(refusal->status == 500);
    CHECK(refusal->message.find("is damaged") != std::string::npos);
    CHECK(server.store.sessions().size() == 2);  // nothing is thrown away
    CHECK(!server.planning.close("other"));
    CHECK(!server.open("other"));
}

TEST_CASE("a deadline that leaves no time gets the plan by policy") {
    Server server;
    REQUIRE(!server.open("job"));
    REQUIRE(!server.submit(1, 2, 1ms));
    const auto view = server.wait(1);
    REQUIRE(view.state == StepState::planned);
    CHECK_FALSE(view.plan->searched());
    CHECK(view.plan->lower_bound_ns <= view.plan->makespan_ns);
}

TEST_CASE("a search ends before its deadline, and earlier where the plan is wanted earlier") {
    Server server;
    REQUIRE(!server.open("job", long_session()));
    REQUIRE(!server.submit(1, 0, 1h));
    REQUIRE(!server.submit(2, 1, 1h));
    REQUIRE(!server.submit(3, 2, 1h));
    // None is planned yet: there is nothing that would end their searches.
    for (const std::int64_t step : {1, 2, 3}) CHECK(server.planning.left("job", step) > 50ms);
    for (const std::int64_t step : {3, 1, 2}) {
        server.planning.hurry("job", step, 50ms);
        CHECK(server.planning.left("job", step) <= 50ms);
    }
    for (const std::int64_t step : {1, 2, 3}) CHECK(server.wait(step).state == StepState::planned);
    CHECK(server.planning.left("job", 1) == Duration{});
}

TEST_CASE("steps that were wanted at once leave later ones their search") {
    Server server;
    REQUIRE(!server.open("job", long_session()));
    for (std::int64_t step = 0; step < 10; ++step) {
        REQUIRE(!server.submit(step, 0, 1h));
        std::this_thread::sleep_for(100ms);  // it is searched
        server.planning.hurry("job", step, 0ms);
        REQUIRE(server.wait(step).state == StepState::planned);
    }
    // A busy machine may take the time of one or the other; one that reserves too much for a search has none of any.
    bool searched = false;
    for (std::int64_t step = 10; step < 15 && !searched; ++step) {
        REQUIRE(!server.submit(step, 1, 2s));
        const auto view = server.wait(step);
        REQUIRE(view.state == StepState::planned);
        searched = view.plan->searched();
    }
    CHECK(searched);
}

TEST_CASE("a step that is read while its session is closed, or the server ends, is not taken") {
    const auto submitted_while = [](const std::function<void(Planning&)>& work, std::chrono::milliseconds before) {
        Server server;
        REQUIRE(!server.open("job"));
        auto submitted = std::async(std::launch::async, [&, lines = many_lines()] {
            bool fresh = false;
            return server.planning.submit("job", 1, {lines, 1h}, fresh);
        });
        std::this_thread::sleep_for(before);
        work(server.planning);
        const int status = status_of(submitted.get());
        const bool is_idle = server.planning.drain();
        CHECK((is_idle || status == 0));
        return status;
    };
    // One that was read before this thread had a core again was rightly taken: then once more, with less of a wait.
    const auto refused_while = [&](const std::function<void(Planning&)>& work) {
        int status = 0;
        for (const auto before : {30ms, 10ms, 3ms, 1ms, 0ms})
            if ((status = submitted_while(work, before)) != 0) break;
        return status;
    };
    CHECK(refused_while([](Planning& planning) { CHECK(!planning.close("job")); }) == 404);
    CHECK(refused_while([](Planning& planning) { static_cast<void>(planning.drain()); }) == 503);
}

TEST_CASE("a step that is planned while it is submitted again with other samples is planned once") {
    Server server;
    REQUIRE(!server.open("job"));
    auto slow = std::async(std::launch::async, [&, lines = many_lines()] {
        bool fresh = false;
        return server.planning.submit("job", 1, {lines, 1ms}, fresh);
    });
    std::this_thread::sleep_for(30ms);
    const int quick = status_of(server.submit(1, 0, 1ms));
    server.wait(1);
    const int other = status_of(slow.get());
    server.wait(1);
    CHECK(std::set{quick, other} == std::set{0, 409});
    CHECK(server.planning.session("job")->planned == 1);
}

TEST_CASE("a plan that is stored is not cancelled any more") {
    const testing::TemporaryFolder folder("planning");
    {
        Server server(folder.path().string());
        REQUIRE(!server.open("job"));
        server.at_event = [&](const std::string& event, const auto&) {
            if (event == "planned") CHECK(!server.planning.cancel("job", 1));
        };
        REQUIRE(!server.submit(1));
        CHECK(server.wait(1).state == StepState::planned);
    }
    const Server again(folder.path().string());
    CHECK(again.planning.step("job", 1).state == StepState::planned);
}

TEST_CASE("what goes wrong with a search leaves the plan by policy") {
    const testing::TemporaryFolder folder("planning");
    { const Server first(folder.path().string()); }
    Sqlite::in_file((folder.path() / "state.sqlite").string(), {"cannot be changed"})
        .run("CREATE TRIGGER full BEFORE INSERT ON plan BEGIN SELECT RAISE(ABORT, 'no room'); END");
    Server server(folder.path().string());
    REQUIRE(!server.open("job"));
    std::vector<std::string> events;
    server.at_event = [&](const std::string& event, const auto&) {
        events.push_back(event);
        if (events.size() == 1) throw std::runtime_error("the log is full");
    };
    REQUIRE(!server.submit(1));
    const auto view = server.wait(1);
    REQUIRE(view.state == StepState::planned);
    CHECK_FALSE(view.plan->searched());
    CHECK(events == std::vector<std::string>{"plan not stored", "not searched", "plan not stored", "planned"});
    CHECK(server.part(1, "replicas/0/solution").find("pipeweaver-solution/1") != std::string::npos);
}

TEST_CASE("what is cancelled is not planned, and may be submitted anew") {
    Server server;
    REQUIRE(!server.open("job", small_session(R"(,"seed":3)")));
    CHECK(status_of(server.planning.cancel("job", 1)) == 404);
    bool fresh = false;
    REQUIRE(!server.planning.submit("job", 1, {small_lines(), 1h}, fresh));
    const bool was_waiting = server.planning.step("job", 1).state == StepState::waiting;
    CHECK(!server.planning.cancel("job", 1));
    const auto state = server.wait(1).state;
    CHECK((state == StepState::cancelled || !was_waiting || state == StepState::planned));
    if (state == StepState::cancelled) {
        CHECK(!server.submit(1));
        CHECK(server.wait(1).state == StepState::planned);
    }
}

TEST_CASE("a session's queue has an end, and so have sessions and submissions a second") {
    Limits limits;
    limits.sessions = 1;
    limits.queue = 2;
    Server server("", limits);
    REQUIRE(!server.open("job", long_session()));
    CHECK(status_of(server.open("other")) == 429);
    int refused = 0;
    for (std::int64_t step = 0; step < 6; ++step)
        if (const auto refusal = server.submit(step, static_cast<int>(step), 1h)) {
            CHECK(refusal->status == 429);
            CHECK(refusal->retry_after);
            ++refused;
        }
    CHECK(refused == 4);
    for (const std::int64_t step : {0, 1}) server.planning.hurry("job", step, 1ms);
    for (const std::int64_t step : {0, 1}) CHECK(server.wait(step).state == StepState::planned);

    // A burst of two, and no second one within a quarter of an hour.
    limits.queue = 100;
    limits.rate = 2;
    Server two("", limits);
    REQUIRE(!two.open("job"));
    CHECK(!two.submit(0));
    CHECK(!two.submit(1));
    limits.rate = 0.001;
    Server one("", limits);
    REQUIRE(!one.open("job"));
    CHECK(!one.submit(0));
    CHECK(status_of(one.submit(1)) == 429);
}

TEST_CASE("all sessions together have so many unfinished steps, samples and bytes") {
    const auto refused = [](const Limits::Together& together) {
        Limits limits;
        limits.together = together;
        Server server("", limits);
        for (const char* name : {"job", "other"}) REQUIRE(!server.open(name, long_session()));
        bool fresh = false;
        REQUIRE(!server.planning.submit("other", 1, {small_lines(), 1h}, fresh));
        const auto refusal = server.submit(1, 0, 1h);
        server.planning.hurry("other", 1, 0ms);
        server.planning.hurry("job", 1, 0ms);
        if (refusal) CHECK(refusal->retry_after);
        std::promise<void> done;
        server.planning.when_done("other", 1, [&] { done.set_value(); });
        done.get_future().wait();
        CHECK(!server.submit(2, 0, 1ms));  // there is room again
        server.wait(2);
        return status_of(refusal);
    };
    CHECK(refused({.steps = 1}) == 429);
    CHECK(refused({.memory = 1}) == 429);
    if (!testing::short_form()) {
        CHECK(refused({.steps = 2}) == 0);
        CHECK(refused({.memory = std::size_t{1} << 50}) == 0);
        CHECK(refused({.bytes = 2 * small_lines().size()}) == 0);
    }
    CHECK(refused({.samples = 15}) == 429);
    CHECK(refused({.samples = 16}) == 0);
    CHECK(refused({.bytes = 2 * small_lines().size() - 1}) == 429);
}

TEST_CASE("the log says which request a plan is of, and how late it was") {
    Server server;
    REQUIRE(!server.open("job"));
    std::map<std::string, std::string> said;
    server.at_event = [&](const std::string& event, const std::string& fields) { said[event] = fields; };
    bool fresh = false;
    REQUIRE(!server.planning.submit("job", 1, {small_lines(), 1h, 0, "r17"}, fresh));
    server.wait(1);
    const auto planned = nlohmann::json::parse(said.at("planned"));
    CHECK(planned["request"] == "r17");
    CHECK(planned["late_seconds"] < -3000);
    CHECK(planned["late_seconds"] > -3600);
}

TEST_CASE("what is wrong with a batch is said at once, and nothing is left of it") {
    Server server;
    REQUIRE(!server.open("job"));
    bool fresh = false;
    for (const char* samples : {"", "{}\n", "x\n", R"({"id":"a","text_tokens":-1})", R"({"id":"a"}{"id":"b"})"}) {
        CAPTURE(samples);
        CHECK_THROWS_AS(static_cast<void>(server.planning.submit("job", 1, {samples, 1s}, fresh)), Error);
    }
    CHECK(server.planning.step("job", 1).state == StepState::unknown);
    CHECK(server.planning.unfinished() == 0);
    CHECK(status_of(server.planning.submit("none", 1, {small_lines(), 1s}, fresh)) == 404);
}

TEST_CASE("a server that ends takes nothing more, and plans what it took") {
    Server server;
    REQUIRE(!server.open("job"));
    REQUIRE(!server.submit(1));
    server.planning.drain();
    CHECK(!server.planning.ready());
    CHECK(status_of(server.submit(2, 1)) == 503);
    CHECK(status_of(server.open("other")) == 503);
    CHECK(server.wait(1).state == StepState::planned);
    CHECK(server.planning.drain());
}
