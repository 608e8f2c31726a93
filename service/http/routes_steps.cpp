// Routes of a step: submitted, looked at, cancelled, collected.
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "service/http/call.hpp"
#include "service/http/views.hpp"

#include <atomic>
#include <memory>

namespace pipeweaver::service {

using nlohmann::ordered_json;

namespace {

constexpr std::size_t most_read_at_once = std::size_t{256} << 10;  // a body that takes some ten milliseconds to read
constexpr Duration after_deadline = std::chrono::seconds(1);       // a collect waits so long for what comes late
constexpr std::size_t least_zipped = 1024;
constexpr std::int64_t most_priority = 100;

Submission submission_of(const std::string& body, const Limits& limits) {
    const JsonDocument document("step", body);
    const Json root = document.root();
    root.only_keys({"samples", "deadline_ms", "priority"});
    const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(limits.most_deadline).count();
    Submission submission;
    submission.within = std::chrono::milliseconds(root.at("deadline_ms").integer(1, most));
    if (const auto priority = root.find("priority"))
        submission.priority = static_cast<int>(priority->integer(0, most_priority));
    const auto samples = root.at("samples").elements();
    if (samples.empty()) root.at("samples").fail("has none");
    if (samples.size() > limits.samples)
        refuse(413, fmt::format("step: samples: has {}, allowed are {}", samples.size(), limits.samples));
    for (const Json& one : samples) submission.samples += one.raw().dump() + "\n";
    return submission;
}

Answer waiting(const std::string& session, std::int64_t step, Duration left) {
    return answer_of(202, {{"session", session},
                           {"step", step},
                           {"state", "waiting"},
                           {"left_ms", std::chrono::duration_cast<std::chrono::milliseconds>(left).count()}});
}

}  // namespace

// What is large is read on a thread that plans: meanwhile others are answered.
void Routes::submit(const Call& call) {
    call.require_json();
    const auto work = [this, session = call.session(), step = call.step(), respond = call.respond,
                       body = call.question.body, id = call.question.id] {
        answering(respond, [&] { respond(submitted(session, step, body, id)); });
    };
    if (call.question.body.size() > most_read_at_once) return planning_.soon(work);
    work();
}

Answer Routes::submitted(const std::string& session, std::int64_t step, const std::string& body,
                         const std::string& id) {
    auto submission = submission_of(body, planning_.limits());
    submission.request = id;
    const Duration within = submission.within;
    bool fresh = false;
    if (const auto refusal = planning_.submit(session, step, std::move(submission), fresh)) return answer_of(*refusal);
    // It waited when it was taken, also where it is planned by now.
    return fresh ? waiting(session, step, within) : step_answer(session, step);
}

Answer Routes::step_answer(const std::string& session, std::int64_t number) const {
    const StepView view = planning_.step(session, number);
    switch (view.state) {
        case StepState::waiting:
            return waiting(session, number, planning_.left(session, number));
        case StepState::planned:
            return answer_of(200, {{"session", session},
                                   {"step", number},
                                   {"state", "planned"},
                                   {"found", found_json(*view.plan)},
                                   {"parts", planning_.part_names(session, number)}});
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
class Wait {
public:
    Wait(Respond respond, std::function<void()> then) : respond_(std::move(respond)), then_(std::move(then)) {}

    void end() {
        if (!over_.exchange(true)) answering(respond_, then_);
    }

private:
    Respond respond_;
    std::function<void()> then_;
    std::atomic<bool> over_ = false;
};

}  // namespace

// Until the step's deadline, unless the caller says how long.
void Routes::when_planned(const Call& call, std::function<void()> then) {
    const std::string& session = call.session();
    const std::int64_t step = call.step();
    if (const auto within = call.time("by_ms")) planning_.hurry(session, step, *within);
    const Duration time = call.time("wait_ms").value_or(planning_.left(session, step) + after_deadline);
    if (time == Duration{} || planning_.step(session, step).state != StepState::waiting) return then();
    const auto wait = std::make_shared<Wait>(call.respond, std::move(then));
    const std::uint64_t waiter = planning_.when_done(session, step, [wait] { wait->end(); });
    // The timer holds neither the connection nor what it would be told once that was told it.
    after_(time, [this, weak = std::weak_ptr(wait), session, step, waiter] {
        const auto unanswered = weak.lock();
        if (!unanswered) return;
        planning_.forget(session, step, waiter);
        unanswered->end();
    });
}

void Routes::give(const Respond& respond, bool zip, std::function<Answer()> make) {
    planning_.soon([respond, zip, make = std::move(make)] {
        answering(respond, [&] {
            Answer answer = make();
            if (zip && answer.body.size() >= least_zipped) {
                answer.body = gzip(answer.body);
                answer.zipped = true;
            }
            respond(std::move(answer));
        });
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

// What cannot be read of what was stored is no fault of the request.
std::string unzipped(const std::string& part) {
    try {
        return gunzip(part);
    } catch (const std::exception& error) {
        refuse(500, fmt::format("the stored plan is damaged: {}", error.what()));
    }
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
        answer.body = zip ? std::move(*zipped) : unzipped(*zipped);
        if (name == "deferred") answer.type = "application/jsonl";
        respond(std::move(answer));
    });
}

void Routes::record(const Call& call) {
    when_planned(call, [this, session = call.session(), step = call.step(), respond = call.respond,
                        zip = call.question.accepts_gzip] {
        give(respond, zip, [this, session, step] {
            auto text = planning_.record(session, step);
            if (text) return Answer{200, std::move(*text)};
            require_open(planning_, session);
            Answer answer = step_answer(session, step);
            return answer.status == 200 ? error_of(404, "the plan is not kept any longer") : answer;
        });
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
                           unzipped(*zipped));
    }
    return all.size() > 1 ? std::optional(all + "}\n") : std::nullopt;
}

}  // namespace

void Routes::replica(const Call& call) {
    below(call, fmt::format("replicas/{}/", call.number(2, "replica")), "the plan has no such replica");
}

void Routes::whole(const Call& call) { below(call, "", "the plan is not kept any longer"); }

void Routes::below(const Call& call, const std::string& prefix, const std::string& none) {
    when_planned(call, [this, prefix, none, session = call.session(), step = call.step(), respond = call.respond,
                        zip = call.question.accepts_gzip] {
        give(respond, zip, [this, prefix, none, session, step] {
            auto text = together(planning_, session, step, prefix);
            Answer answer = step_answer(session, step);
            if (answer.status != 200) return answer;
            return text ? Answer{200, std::move(*text)} : error_of(404, none);
        });
    });
}

}  // namespace pipeweaver::service
