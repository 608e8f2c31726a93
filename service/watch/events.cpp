#include "service/watch/events.hpp"

#include "service/http/views.hpp"
#include "service/planning.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipeweaver::service {

using nlohmann::ordered_json;

namespace {

using Clock = std::chrono::steady_clock;

constexpr Duration between_states = std::chrono::milliseconds(200);
constexpr Duration between_beats = std::chrono::seconds(5);

std::int64_t milliseconds(Duration time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time).count(); }

std::string line_of(const ordered_json& json) {
    return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string event(const char* name, const std::string& data) {
    return fmt::format("event: {}\ndata: {}\n\n", name, data);
}

ordered_json done_json(const DoneStep& step) {
    ordered_json one{{"number", step.number}, {"at_ms", step.at_ms},     {"session", step.session},
                     {"step", step.step},     {"seconds", step.seconds}, {"late_seconds", step.late_seconds},
                     {"gap", ordered_json{}}, {"how", step.how}};
    if (step.gap) one["gap"] = *step.gap;
    if (!step.why.empty()) one["why"] = step.why;
    if (step.gap) one["makespan_ns"] = step.makespan_ns;
    return one;
}

const char* name_of(WaitsFor state) {
    switch (state) {
        case WaitsFor::policy:
            return "waits for its plan by policy";
        case WaitsFor::turn:
            return "waits for its search";
        case WaitsFor::search:
            break;
    }
    return "is searched";
}

}  // namespace

struct Events::Reader {
    std::optional<TimePoint> end;
    bool begun = false;
    std::uint64_t seen_done = 0, seen_states = 0;  // up to which it was told
    TimePoint told;
};

std::size_t Events::readers() {
    std::erase_if(readers_, [](const auto& reader) { return reader.expired(); });
    return readers_.size();
}

std::optional<Pieces> Events::open(std::optional<Duration> time) {
    if (readers() >= most_readers) return std::nullopt;
    const auto reader = std::make_shared<Reader>();  // shared: the connection's, and counted here
    if (time) reader->end = Clock::now() + *time;
    readers_.push_back(reader);
    return [this, reader] { return next(*reader); };
}

// Times are in milliseconds since the server began, so that nothing changes by time alone.
const std::string& Events::state() {
    const TimePoint now = Clock::now();
    if (states_ > 0 && now < looked_ + between_states) return state_;
    looked_ = now;
    ordered_json sessions = ordered_json::array(), queue = ordered_json::array();
    for (const SessionView& view : planning_.sessions()) sessions.push_back(session_json(view));
    for (const QueuedStep& one : planning_.queue(most_queue))
        queue.push_back({{"session", one.session},
                         {"step", one.step},
                         {"priority", one.priority},
                         {"due_ms", milliseconds(one.deadline - begun_)},
                         {"samples", one.samples},
                         {"state", name_of(one.waits_for)}});
    std::string text = line_of({{"ready", planning_.ready()},
                                {"unfinished", planning_.unfinished()},
                                {"sessions", std::move(sessions)},
                                {"queue", std::move(queue)}});
    if (text != state_ || states_ == 0) ++states_;
    state_ = std::move(text);
    return state_;
}

std::optional<std::string> Events::next(Reader& reader) {
    const TimePoint now = Clock::now();
    if (planning_.draining() || (reader.end && now >= *reader.end)) return std::nullopt;
    std::string piece;
    const auto done = planning_.history().after(reader.seen_done);
    if (!reader.begun || !done.empty()) {
        ordered_json all = ordered_json::array();
        for (const DoneStep& step : done) all.push_back(done_json(step));
        piece += reader.begun ? "" : "retry: 1000\n";
        piece += event(reader.begun ? "done" : "history", line_of(all));
        if (!done.empty()) reader.seen_done = done.back().number;
    }
    const std::string now_ms = fmt::format("{{\"now_ms\":{}", milliseconds(now - begun_));
    const std::string& state = this->state();
    if (reader.seen_states != states_) piece += event("state", fmt::format("{},\"state\":{}}}", now_ms, state));
    reader.seen_states = states_;
    if (piece.empty() && now >= reader.told + between_beats) piece = event("beat", now_ms + "}");
    if (!piece.empty()) reader.told = now;
    reader.begun = true;
    return piece;
}

}  // namespace pipeweaver::service
