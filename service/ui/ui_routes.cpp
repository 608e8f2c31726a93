#include "service/ui/ui_routes.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "service/http/embedded.hpp"
#include "service/listen.hpp"
#include "service/ui/forms.hpp"
#include "service/ui/play_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

namespace pipeweaver::service {

using nlohmann::ordered_json;

namespace {

constexpr std::size_t longest_file_name = 100, most_files = 32;
constexpr std::int64_t most_run = 1'000'000'000;
constexpr std::string_view progress_milliseconds = "250";
constexpr auto between_ui_beats = std::chrono::seconds(5);

void require_no_path(const std::string& name, const std::string& value) {
    if (value.find('/') != std::string::npos || value.find('\0') != std::string::npos || value.starts_with(".."))
        fail(ErrorKind::input, "{}: {}", name,
             must_be(value, "a value without '/': files are given with the question, by their names alone"));
}

bool is_file_name(std::string_view name) {
    const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return c >= ' ' && c != 0x7f && c != '/' && c != '\\' && c != ':';
    });
    return plain && !name.empty() && name.size() <= longest_file_name && name.front() != '.' && name.front() != '-' &&
           name != "out";
}

const UiCommand& command_named(const UiOptions& options, const Json& root) {
    const std::string name = root.at("command").text();
    for (const UiCommand& command : options.commands)
        if (command.name == name) return command;
    std::string all;
    for (const UiCommand& command : options.commands) all += (all.empty() ? "" : ", ") + command.name;
    root.at("command").fail(must_be(name, "one of " + all));
}

void add_option(std::vector<std::string>& words, const UiCommand& command, const std::string& name, const Json& value) {
    const auto field = std::find_if(command.fields.begin(), command.fields.end(),
                                    [&](const UiField& one) { return !one.name.empty() && one.name == name; });
    if (field == command.fields.end() || is_set_here(name))
        fail(ErrorKind::input, "options: {} has no option '{}' that the page may set", command.name, name);
    if (!field->takes_value) {
        if (value.boolean()) words.push_back("--" + name);
        return;
    }
    const std::string text = value.text();
    require_no_path("--" + name, text);
    words.push_back("--" + name);
    words.push_back(text);
}

std::optional<std::uint64_t> run_of(const std::string& text) {
    const auto number = integer_in(text, 1, most_run);
    return number ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

std::string event_text(std::string_view name, const ordered_json& data) {
    return fmt::format("event: {}\ndata: {}\n\n", name,
                       data.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

// What one reader was told of a run.
struct Watching {
    std::uint64_t run = 0;
    std::size_t told = 0;  // bytes of its lines
    bool has_ended = false;
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

// What a command tells a program is an object of one of these on a line of its own, and an event of that name.
constexpr std::array<std::string_view, 2> told_as_json{"doing", "rung"};

// The name of the event that the line is; empty: it is for people.
std::string_view event_of(std::string_view line, ordered_json& object) {
    for (const std::string_view name : told_as_json) {
        if (!line.starts_with(fmt::format("{{\"{}\":", name))) continue;
        object = ordered_json::parse(line, nullptr, false);
        if (object.is_object()) return name;
    }
    return {};
}

// Events of lines in their order; those for people that stand together are one.
std::string events_of(std::string_view lines, std::int64_t millis) {
    std::string events, plain;
    const auto end_plain = [&] {
        if (!plain.empty()) events += event_text("lines", {{"text", plain}, {"millis", millis}});
        plain.clear();
    };
    while (!lines.empty()) {
        const std::size_t length = std::min(lines.find('\n'), lines.size() - 1) + 1;
        ordered_json object;
        if (const auto name = event_of(lines.substr(0, length), object); name.empty()) {
            plain += lines.substr(0, length);
        } else {
            end_plain();
            object["millis"] = millis;
            events += event_text(name, object);
        }
        lines.remove_prefix(length);
    }
    end_plain();
    return events;
}

std::optional<std::string> next_event(Runs& runs, Watching& watching) {
    if (watching.has_ended) return std::nullopt;
    const auto state = runs.state(watching.run);
    if (!state) return std::nullopt;
    std::string text;
    if (state->lines.size() > watching.told) {
        text = events_of(std::string_view(state->lines).substr(watching.told), state->millis);
        watching.told = state->lines.size();
    }
    if (!state->is_going) {
        watching.has_ended = true;
        return text +
               event_text("end",
                          {{"status", state->status}, {"millis", state->millis}, {"files", runs.files(watching.run)}});
    }
    const auto now = std::chrono::steady_clock::now();
    if (text.empty() && now - watching.last >= between_ui_beats) text = event_text("beat", {{"millis", state->millis}});
    if (!text.empty()) watching.last = now;
    return text;
}

// The page and its scripts, which are open to all.
std::optional<Answer> page_file(const Question& question) {
    if (question.method != "GET" && question.method != "HEAD") return std::nullopt;
    for (const UiFile& file : ui_files())
        if (file.path == question.path) {
            Answer answer = page_answer(std::string(file.text), true);
            answer.type = std::string(file.type) + "; charset=utf-8";
            return answer;
        }
    return std::nullopt;
}

Answer not_there() { return error_of(404, "there is no such run any more"); }

}  // namespace

UiRoutes::UiRoutes(const UiOptions& options)
    : options_(options), guard_(token_of(options.token_file)), runs_(std::make_shared<Runs>(options.program)) {}

RunQuestion UiRoutes::run_question(const UiOptions& options, const std::string& body) {
    const JsonDocument document("question", body);
    const Json root = document.root();
    root.only_keys({"command", "options", "operand", "files"});
    const UiCommand& command = command_named(options, root);
    RunQuestion question;
    question.words.push_back(command.name);
    if (const auto given = root.find("options"))
        for (const auto& [name, value] : given->members()) add_option(question.words, command, name, value);
    if (command.writes) question.words.insert(question.words.end(), {"--out", "out"});
    question.words.insert(question.words.end(),
                          {"--json", "--progress-json", "--progress-every", std::string(progress_milliseconds)});
    if (const auto operand = root.find("operand")) {
        require_no_path("operand", operand->text());
        question.words.insert(question.words.end(), {"--", operand->text()});
    }
    if (const auto files = root.find("files"))
        for (const auto& [name, text] : files->members()) {
            if (!is_file_name(name) || question.files.size() >= most_files)
                fail(ErrorKind::input, "files: {}",
                     must_be(name, fmt::format("one of at most {} names of up to {} characters, without '/', '\\' and "
                                               "':', that begin with no '.' or '-'",
                                               most_files, longest_file_name)));
            question.files.emplace_back(name, text.text());
        }
    return question;
}

Answer UiRoutes::answer(const Question& question) {
    const auto page = page_file(question);
    if (auto refused = guard_.refusal(question, page.has_value())) return std::move(*refused);
    if (page) return *page;
    try {
        if (question.path == "/ui/forms" && question.method == "GET")
            return answer_of(200, forms_json(options_.commands, options_.version));
        if (question.path == "/ui/play" && question.method == "POST") return play(question);
        if (question.path == "/ui/runs" && question.method == "POST") return begin(question);
        if (const auto run = places_of("/ui/runs/{run}", question.path))
            if (const auto number = run_of(run->front())) return of_run(question.method, *number, "", question);
        if (const auto run = places_of("/ui/runs/{run}/{what}", question.path))
            if (const auto number = run_of(run->front()))
                return of_run(question.method, *number, run->back(), question);
        return error_of(404, "there is no such address");
    } catch (const Error& error) {
        return error_of(error.kind() == ErrorKind::input ? 400 : 500, error.what());
    } catch (const std::exception& error) {
        return error_of(500, error.what());  // of the disk: full, or the folder is gone
    }
}

Answer UiRoutes::play(const Question& question) {
    if (!question.content_type.starts_with("application/json"))
        return error_of(415, "Content-Type: " + must_be(question.content_type, "application/json"));
    Answer answer;
    answer.body = search_play(question.body);
    return answer;
}

Answer UiRoutes::begin(const Question& question) {
    if (!question.content_type.starts_with("application/json"))
        return error_of(415, "Content-Type: " + must_be(question.content_type, "application/json"));
    const auto run = runs_->begin(run_question(options_, question.body));
    if (!run) return error_of(503, fmt::format("{} runs go on, as many as may: end one of them", Runs::most_going));
    return answer_of(201, {{"run", *run}});
}

Answer UiRoutes::of_run(const std::string& method, std::uint64_t run, const std::string& what,
                        const Question& question) {
    if (!runs_->state(run)) return not_there();
    if (method == "DELETE" && what.empty()) {
        runs_->end(run, !question.query.contains("best"));
        return answer_of(200, {{"run", run}});
    }
    if (method != "GET") return error_of(405, "method: " + shown_must_be(method, "GET"));
    if (what == "events") return events(run);
    if (what == "files") return file(run, question);
    if (what != "answer") return error_of(404, "there is no such address");
    Answer answer;
    answer.body = runs_->answer(run);
    answer.headers = {{"X-Content-Type-Options", "nosniff"}};
    return answer;
}

Answer UiRoutes::events(std::uint64_t run) {
    Answer answer;
    answer.type = "text/event-stream";
    answer.headers = {{"Cache-Control", "no-store"}};
    answer.pieces = [runs = runs_, watching = Watching{run}]() mutable -> std::optional<std::string> {
        try {
            return next_event(*runs, watching);
        } catch (const std::exception&) {
            return std::nullopt;  // its folder is gone, or it says too much: the reader sees that no end was told
        }
    };
    return answer;
}

Answer UiRoutes::file(std::uint64_t run, const Question& question) const {
    const auto name = question.query.find("name");
    const auto files = runs_->files(run);
    if (name == question.query.end() || std::find(files.begin(), files.end(), name->second) == files.end())
        return error_of(404, "the run has no such file");
    Answer answer;
    answer.type = "application/octet-stream";
    answer.body = runs_->content(run, name->second);
    answer.headers = {{"X-Content-Type-Options", "nosniff"}};
    return answer;
}

}  // namespace pipeweaver::service
