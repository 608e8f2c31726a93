// What each address answers: the one place that knows the service's paths, statuses and JSON.
//
// Paths        docs/service.md and openapi.json; a test holds both equal to the table here.
// Security     names come from a fixed set of characters and are never part of a file's path. With a token every
//              address but the page, its document and the two of health asks for it; without one only a loopback Host
//              is served.
#pragma once

#include "service/http/answers.hpp"
#include "service/http/http.hpp"
#include "service/planning.hpp"
#include "service/watch/events.hpp"

#include <string>
#include <vector>

namespace pipeweaver::service {

/// One of the server's addresses: "GET", "/v1/sessions/{session}".
struct RouteName {
    std::string method, pattern;
};

class Routes {
public:
    /// Calls a function after a time, on the server's thread.
    using After = std::function<void(Duration, std::function<void()>)>;

    /// Pre: all outlive this. An empty token: none is asked for.
    Routes(Planning& planning, Metrics& metrics, const std::string& token, After after);

    void answer(const Question& question, const Respond& respond);

    [[nodiscard]] static std::vector<RouteName> names();

    struct Call;  ///< service/http/call.hpp

private:
    struct Route;
    static const std::vector<Route>& table();

    void page(const Call& call);
    void document(const Call& call);
    void health(const Call& call);
    void readiness(const Call& call);
    void metrics(const Call& call);
    void status(const Call& call);
    void events(const Call& call);
    void list(const Call& call);
    void open(const Call& call);
    void session(const Call& call);
    void close(const Call& call);
    void submit(const Call& call);
    void step(const Call& call);
    void cancel(const Call& call);
    void part(const Call& call);
    void record(const Call& call);
    void kept(const Call& call);
    void replica(const Call& call);
    void whole(const Call& call);

    void when_planned(const Call& call, std::function<void()> then);

    /// The parts of a step's plan below `prefix` together; 404 with `none` where there are none.
    void below(const Call& call, const std::string& prefix, const std::string& none);

    /// What takes long to put together and to zip is made on a thread that plans: meanwhile others are answered.
    void give(const Respond& respond, bool zip, std::function<Answer()> make);
    Answer opened(const std::string& name) const;
    Answer submitted(const std::string& session, std::int64_t step, const std::string& body, const std::string& id);
    Answer step_answer(const std::string& session, std::int64_t step) const;

    Planning& planning_;
    Metrics& metrics_;
    Events events_;
    Guard guard_;
    After after_;
};

}  // namespace pipeweaver::service
