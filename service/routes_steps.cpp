// Routes of a step: submitted, looked at, cancelled, collected.
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "service/call.hpp"

#include <atomic>
#include <memory>

namespace pipeweaver::service {

using nlohmann::ordered_json;

namespace {

constexpr std::size_t most_read_at_once = std::size_t{256} << 10;  // a body that takes some ten milliseconds to read
constexpr Duration after_deadline = std::chrono::seconds(1);       // a collect waits so long for what comes late

}  // namespace

namespace {

struct Submission {
    std::string samples;
    Duration within{};
};

Submission submission_of(const std::string& body, const Limits& limits) {
    const JsonDocument document("step", body);
    const Json root = document.root();
    root.only_keys({"samples", "deadline_ms"});
    const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(limits.most_deadline).count();
    Submission submission;
    submission.within = std::chrono::milliseconds(root.at("deadline_ms").integer(1, most));
    const auto samples = root.at("samples").elements();
    if (samples.empty()) root.at("samples").fail("has none");
    if (samples.size() > limits.samples)
        refuse(413, fmt::format("step: samples: has {}, allowed are {}", samples.size(), limits.samples));
    for (const Json& one : samples) submission.samples += one.raw().dump() + "\n";
    return submission;
}

}  // namespace

// What is large is read on a thread that plans: meanwhile others are answered.
void Routes::submit(const Call& call) {
    call.require_json();
    const auto work = [this, session = call.session(), step = call.step(), respond = call.respond,
                       body = call.question.body] {
        answering(respond, [&] { respond(submitted(session, step, body)); });
    };
    if (call.question.body.size() > most_read_at_once) return planning_.soon(work);
    work();
}

Answer Routes::submitted(const std::string& session, std::int64_t step, const std::string& body) {
    auto submission = submission_of(body, planning_.limits());
    bool fresh = false;
    if (const auto refusal = planning_.submit(session, step, std::move(submission.samples), submission.within, fresh))
        return answer_of(*refusal);
    Answer answer = step_answer(session, step);
    if (fresh) answer.status = 202;
    return answer;
}

Answer Routes::step_answer(const std::string& session, std::int64_t number) const {
    const StepView view = planning_.step(session, number);
    ordered_json body{{"session", session}, {"step", number}};
    switch (view.state) {
        case StepState::waiting: {
            body["state"] = "waiting";
            body["left_ms"] =
                std::chrono::duration_cast<std::chrono::milliseconds>(planning_.left(session, number)).count();
            return answer_of(202, body);
        }
        case StepState::planned: {
            body["state"] = "planned";
            body["found"] = found_json(*view.plan);
            body["parts"] = planning_.part_names(session, number);
            return answer_of(200, body);
        }
        case StepState::failed:
            return error_of(view.status, view.error);
        case StepState::cancelled:
            return error_of(410, fmt::format("step {}: was cancelled", number));
        case StepState::unknown:
            break;
    }
    if (!planning_.session(session))
        return error_of(404, fmt::format("session '{}': there is none of that name", session));
    return error_of(404, fmt::format("step {}: was not submitted, or is not kept any longer", number));
}

namespace {

// Whoever comes first, what was waited for or the end of the wait, is the one.
class Once {
public:
    bool first() { return !done_.exchange(true); }

private:
    std::atomic<bool> done_ = false;
};

}  // namespace

// Until the step's deadline, unless the caller says how long.
void Routes::when_planned(const Call& call, std::function<void()> then) {
    const std::string& session = call.session();
    const std::int64_t step = call.step();
    if (const auto within = call.time("by_ms")) planning_.hurry(session, step, *within);
    const Duration wait = call.time("wait_ms").value_or(planning_.left(session, step) + after_deadline);
    if (wait == Duration{} || planning_.step(session, step).state != StepState::waiting) return then();
    const auto once = std::make_shared<Once>();
    const auto finish = [once, then = std::move(then)] {
        if (once->first()) then();
    };
    const std::uint64_t waiter = planning_.when_done(session, step, finish);
    after_(wait, [this, finish, session, step, waiter] {
        planning_.forget(session, step, waiter);
        finish();
    });
}

void Routes::step(const Call& call) {
    when_planned(call, [this, session = call.session(), step = call.step(), respond = call.respond] {
        respond(step_answer(session, step));
    });
}

void Routes::cancel(const Call& call) {
    if (const auto refusal = planning_.cancel(call.session(), call.step())) return call.respond(answer_of(*refusal));
    call.respond({204, "", ""});
}

namespace {

// "replicas/0/ranks/3" of ".../steps/7/replicas/0/ranks/3".
std::string name_of_part(const std::vector<std::string_view>& path) {
    constexpr std::size_t before = 5;  // v1, sessions, {session}, steps, {step}
    std::string name;
    for (std::size_t i = before; i < path.size(); ++i) name += fmt::format("{}{}", i == before ? "" : "/", path[i]);
    return name;
}

}  // namespace

void Routes::part(const Call& call) {
    for (std::size_t place = 2; place < call.places.size(); ++place)
        static_cast<void>(call.number(place, place == 2 ? "replica" : "rank"));
    const std::string name = name_of_part(parts_of_path(call.question.path));
    // The question does not outlive this call.
    when_planned(call, [this, name, session = call.session(), step = call.step(), respond = call.respond,
                        zip = call.question.accepts_gzip] {
        auto zipped = planning_.zipped_part(session, step, name);
        if (!zipped) {
            Answer answer = step_answer(session, step);
            const bool planned = answer.status == 200;
            return respond(planned ? error_of(404, fmt::format("{}: the plan has no such part", name)) : answer);
        }
        Answer answer;
        answer.zipped = zip;
        answer.body = zip ? std::move(*zipped) : gunzip(*zipped);
        if (name == "deferred") answer.type = "application/jsonl";
        respond(std::move(answer));
    });
}

void Routes::record(const Call& call) {
    when_planned(call, [this, session = call.session(), step = call.step(), respond = call.respond] {
        auto text = planning_.record(session, step);
        if (!text) return respond(step_answer(session, step));
        Answer answer;
        answer.body = std::move(*text);
        respond(std::move(answer));
    });
}

namespace {

// {"plan": ..., "replicas/0/solution": ...} of the parts below `prefix`, as they are.
std::optional<std::string> together(const Planning& planning, const std::string& session, std::int64_t step,
                                    const std::string& prefix) {
    std::string all = "{";
    for (const std::string& name : planning.part_names(session, step)) {
        // What a rank takes is in its replica's actions, too.
        if (!name.starts_with(prefix) || name.find("/ranks/") != std::string::npos || name == "deferred") continue;
        const auto zipped = planning.zipped_part(session, step, name);
        if (!zipped) return std::nullopt;
        all += fmt::format("{}\n{}: {}", all.size() > 1 ? "," : "", ordered_json(name.substr(prefix.size())).dump(),
                           gunzip(*zipped));
    }
    return all.size() > 1 ? std::optional(all + "}\n") : std::nullopt;
}

}  // namespace

void Routes::replica(const Call& call) {
    const std::string prefix = fmt::format("replicas/{}/", call.number(2, "replica"));
    when_planned(call, [this, prefix, session = call.session(), step = call.step(), respond = call.respond] {
        auto text = together(planning_, session, step, prefix);
        Answer answer = step_answer(session, step);
        if (answer.status == 200) {
            if (text)
                answer.body = std::move(*text);
            else
                answer = error_of(404, "the plan has no such replica");
        }
        respond(std::move(answer));
    });
}

void Routes::whole(const Call& call) {
    when_planned(call, [this, session = call.session(), step = call.step(), respond = call.respond] {
        auto text = together(planning_, session, step, "");
        Answer answer = step_answer(session, step);
        if (answer.status == 200 && text) answer.body = std::move(*text);
        respond(std::move(answer));
    });
}

}  // namespace pipeweaver::service
