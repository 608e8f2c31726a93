#include "service/http/routes.hpp"

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "service/http/call.hpp"
#include "service/http/embedded.hpp"
#include "service/http/views.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace pipeweaver::service {

using nlohmann::ordered_json;

namespace {

ordered_json distribution_json(const Metrics::Distribution& distribution) {
    return {{"limits", distribution.limits}, {"counts", distribution.counts}};
}

}  // namespace

struct Routes::Route {
    std::string_view method, pattern;
    void (Routes::*operation)(const Call&);
    bool open = false;  // to all, also where there is a token
};

const std::vector<Routes::Route>& Routes::table() {
    static const std::vector<Route> all{
        {"GET", "/", &Routes::page, true},
        {"GET", "/openapi.json", &Routes::document, true},
        {"GET", "/healthz", &Routes::health, true},
        {"GET", "/readyz", &Routes::readiness, true},
        {"GET", "/metrics", &Routes::metrics},
        {"GET", "/v1/status", &Routes::status},
        {"GET", "/v1/events", &Routes::events},
        {"GET", "/v1/sessions", &Routes::list},
        {"PUT", "/v1/sessions/{session}", &Routes::open},
        {"GET", "/v1/sessions/{session}", &Routes::session},
        {"DELETE", "/v1/sessions/{session}", &Routes::close},
        {"GET", "/v1/sessions/{session}/kept", &Routes::kept},
        {"PUT", "/v1/sessions/{session}/steps/{step}", &Routes::submit},
        {"GET", "/v1/sessions/{session}/steps/{step}", &Routes::step},
        {"DELETE", "/v1/sessions/{session}/steps/{step}", &Routes::cancel},
        {"GET", "/v1/sessions/{session}/steps/{step}/whole", &Routes::whole},
        {"GET", "/v1/sessions/{session}/steps/{step}/plan", &Routes::part},
        {"GET", "/v1/sessions/{session}/steps/{step}/assignment", &Routes::part},
        {"GET", "/v1/sessions/{session}/steps/{step}/deferred", &Routes::part},
        {"GET", "/v1/sessions/{session}/steps/{step}/record", &Routes::record},
        {"GET", "/v1/sessions/{session}/steps/{step}/replicas/{replica}", &Routes::replica},
        {"GET", "/v1/sessions/{session}/steps/{step}/replicas/{replica}/problem", &Routes::part},
        {"GET", "/v1/sessions/{session}/steps/{step}/replicas/{replica}/solution", &Routes::part},
        {"GET", "/v1/sessions/{session}/steps/{step}/replicas/{replica}/actions", &Routes::part},
        {"GET", "/v1/sessions/{session}/steps/{step}/replicas/{replica}/ranks/{rank}", &Routes::part}};
    return all;
}

std::vector<RouteName> Routes::names() {
    std::vector<RouteName> all;
    for (const Route& route : table()) all.push_back({std::string(route.method), std::string(route.pattern)});
    return all;
}

Routes::Routes(Planning& planning, Metrics& metrics, const std::string& token, After after)
    : planning_(planning), metrics_(metrics), events_(planning), guard_(token), after_(std::move(after)) {}

void Routes::answer(const Question& question, const Respond& respond) {
    std::string allowed;
    for (const Route& route : table()) {
        auto places = places_of(route.pattern, question.path);
        if (!places) continue;
        if (route.method != question.method) {
            allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", route.method);
            continue;
        }
        const Respond routed = [respond, pattern = route.pattern](Answer answer) {
            answer.route = pattern;
            respond(std::move(answer));
        };
        if (auto refused = guard_.refusal(question, route.open)) return routed(std::move(*refused));
        answering(routed, [&] { (this->*route.operation)({question, std::move(*places), routed}); });
        return;
    }
    if (allowed.empty()) return respond(error_of(404, "there is no such address; /openapi.json has them all"));
    Answer answer = error_of(405, "method: " + shown_must_be(question.method, "one of " + allowed));
    answer.headers.emplace_back("Allow", allowed);
    respond(std::move(answer));
}

void Routes::page(const Call& call) { call.respond(page_answer(page_text())); }

void Routes::document(const Call& call) {
    Answer answer;
    answer.body = openapi_text();
    call.respond(std::move(answer));
}

void Routes::health(const Call& call) { call.respond(answer_of(200, {{"healthy", true}})); }

void Routes::readiness(const Call& call) {
    const bool ready = planning_.ready();
    call.respond(answer_of(ready ? 200 : 503, {{"ready", ready}}));
}

void Routes::metrics(const Call& call) {
    Answer answer;
    answer.type = "text/plain; version=0.0.4";
    answer.body = metrics_.text();
    call.respond(std::move(answer));
}

void Routes::status(const Call& call) {
    ordered_json sessions = ordered_json::array();
    for (const SessionView& view : planning_.sessions()) {
        ordered_json one = session_json(view);
        one["latest"] = ordered_json::array();
        for (const std::int64_t step : planning_.planned_steps(view.name, steps_shown)) {
            const StepView shown = planning_.step(view.name, step);
            if (!shown.plan) continue;
            ordered_json latest{{"step", step}};
            latest.update(found_json(*shown.plan));
            one["latest"].push_back(std::move(latest));
        }
        sessions.push_back(std::move(one));
    }
    call.respond(answer_of(200, {{"ready", planning_.ready()},
                                 {"unfinished", planning_.unfinished()},
                                 {"sessions", std::move(sessions)},
                                 {"seconds", distribution_json(metrics_.seconds())},
                                 {"gaps", distribution_json(metrics_.gaps())}}));
}

void Routes::events(const Call& call) {
    const auto time = call.time("for_ms");
    if (planning_.draining()) throw Refusal{503, "the server is ending", 1};
    auto pieces = events_.open(time);
    if (!pieces) {
        metrics_.refused("readers");
        throw Refusal{503, fmt::format("{} read events, as many as may", Events::most_readers), 5};
    }
    Answer answer;
    answer.pieces = std::move(*pieces);
    answer.type = "text/event-stream";
    answer.headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};
    call.respond(std::move(answer));
}

void Routes::list(const Call& call) {
    ordered_json all = ordered_json::array();
    for (const SessionView& view : planning_.sessions()) all.push_back(session_json(view));
    call.respond(answer_of(200, {{"sessions", std::move(all)}}));
}

void Routes::open(const Call& call) {
    const std::string& name = call.session();
    call.require_json();
    planning_.open(name, call.question.body,
                   [this, name, respond = call.respond](const std::optional<Refusal>& refusal) {
                       answering(respond, [&] { respond(refusal ? answer_of(*refusal) : opened(name)); });
                   });
}

Answer Routes::opened(const std::string& name) const {
    const auto view = planning_.session(name);
    if (!view || !view->ready) return error_of(409, "the session was closed while it was opened");
    ordered_json body = session_json(*view);
    body["partition"] = ordered_json::parse(view->partition);
    return answer_of(200, body);
}

void Routes::session(const Call& call) {
    if (const auto within = call.time("by_ms")) planning_.hurry(call.session(), *within);
    const auto view = planning_.session(call.session());
    if (!view) throw unknown_session(call.session());
    ordered_json body = session_json(*view);
    if (view->ready) body["partition"] = ordered_json::parse(view->partition);
    body["latest_steps"] = planning_.planned_steps(view->name, steps_shown);
    call.respond(answer_of(200, body));
}

void Routes::kept(const Call& call) {
    require_open(planning_, call.session());
    give(call.respond, call.question.accepts_gzip, [this, session = call.session()] {
        auto text = planning_.kept(session);
        return text ? Answer{200, std::move(*text)} : answer_of(unknown_session(session));
    });
}

// What a session leaves may be gigabytes: meanwhile others are answered.
void Routes::close(const Call& call) {
    planning_.soon([this, session = call.session(), respond = call.respond] {
        answering(respond, [&] {
            const auto refusal = planning_.close(session);
            respond(refusal ? answer_of(*refusal) : Answer{204, "", ""});
        });
    });
}

}  // namespace pipeweaver::service
