#include "tests/fuzz/ask.hpp"

#include "service/http/embedded.hpp"
#include "service/http/http.hpp"
#include "service/http/routes.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <future>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

namespace pipeweaver::fuzz {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {

const std::string job = "job", token = "0123456789abcdef";

// Two microbatches, one round: opened and planned in some milliseconds.
const std::string session =
    R"({"config":{"model":"dip-vlm-s","cluster":"h100-sxm:4","tp":2,"pp":2,"max-rounds":1},"sample":[)"
    R"({"id":"a","text_tokens":900,"images":[{"width":448,"height":448}]},{"id":"b","text_tokens":700}]})";
const std::string batch = R"({"id":"c","text_tokens":800,"images":[{"width":28,"height":28}]})"
                          "\n";

service::Limits limits() {
    service::Limits limits;
    limits.sessions = 2;  // "job" and one that is asked for
    limits.rate = 1e9;
    limits.samples = 64;
    limits.most_deadline = 1s;
    limits.open = {.most_budget = 20ms, .most_gpus = 16, .most_samples = 64};
    return limits;
}

// Of "GET /v1/sessions" the statuses that the OpenAPI document has.
std::map<std::string, std::set<int>> documented() {
    std::map<std::string, std::set<int>> all;
    const auto document = json::parse(service::openapi_text());
    for (const auto& [path, methods] : document["paths"].items())
        for (const auto& [method, operation] : methods.items()) {
            std::string name = method;
            for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
            name += ' ';
            name += path;
            for (const auto& [status, answer] : operation["responses"].items()) all[name].insert(std::stoi(status));
        }
    return all;
}

void require(bool holds, const service::Question& question, const service::Answer& answer, const char* what) {
    if (holds) return;
    throw std::logic_error(
        fmt::format("{} {}: {}: {} {}", question.method, question.path, what, answer.status, answer.body));
}

// A server with one session "job" whose step 1 is planned, whatever was asked before.
class Server {
public:
    Server()
        : store_("", {.plans_of_session = 64}, moved_),
          planning_(store_, metrics_, 1, limits(), [](const auto&, const auto&) {}),
          open_(planning_, metrics_, "", at_once),
          guarded_(planning_, metrics_, token, at_once) {}

    void ask(const service::Question& question) {
        restore();
        const auto answer = answer_of(question.authorization.empty() ? open_ : guarded_, question);
        metrics_.answered(question.method, answer.route, answer.status);
        require(answer.status >= 200 && answer.status < 500, question, answer, "no status of a good server");
        if (answer.status >= 400) require(is_error(answer.body), question, answer, "no error with one line");
        if (!answer.route.empty())
            require(documented_.at(question.method + " " + answer.route).contains(answer.status), question, answer,
                    "a status that is not documented");
        while (planning_.unfinished() > 0) std::this_thread::sleep_for(50us);
    }

private:
    // No wait for a plan lasts.
    static void at_once(Duration, const std::function<void()>& then) { then(); }

    static service::Answer answer_of(service::Routes& routes, const service::Question& question) {
        std::promise<service::Answer> done;
        routes.answer(question, [&](service::Answer answer) { done.set_value(std::move(answer)); });
        return done.get_future().get();
    }

    static bool is_error(const std::string& body) {
        const auto error = json::parse(body, nullptr, false);
        if (!error.is_object() || !error.contains("error")) return false;
        const auto message = error["error"]["message"].get<std::string>();
        return !message.empty() && message.find('\n') == std::string::npos;
    }

    void restore() {
        for (const auto& view : planning_.sessions())
            if (view.name != job) static_cast<void>(planning_.close(view.name));
        if (!planning_.session(job)) {
            std::promise<bool> done;
            planning_.open(job, session, [&](const auto& refusal) { done.set_value(!refusal); });
            if (!done.get_future().get()) throw std::logic_error("the session is refused");
        }
        if (planning_.step(job, 1).state == service::StepState::planned) return;
        bool fresh = false;
        if (planning_.submit(job, 1, {batch, 1s}, fresh)) throw std::logic_error("the step is refused");
        std::promise<void> done;
        planning_.when_done(job, 1, [&] { done.set_value(); });
        done.get_future().wait();
    }

    std::optional<std::string> moved_;
    service::Metrics metrics_;
    service::Store store_;
    service::Planning planning_;
    service::Routes open_, guarded_;
    std::map<std::string, std::set<int>> documented_ = documented();
};

}  // namespace

void ask(std::string_view bytes) {
    static Server server;
    const auto reading = service::read_request(bytes, std::size_t{1} << 16);
    if (reading.question) server.ask(*reading.question);
}

}  // namespace pipeweaver::fuzz
