#include "service/http/call.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>

namespace pipeweaver::service {

namespace {

constexpr std::int64_t most_number = 9'007'199'254'740'991;  // that JSON's readers agree on
constexpr std::int64_t most_milliseconds = 600'000;
constexpr std::size_t longest_name = 64;

bool is_name(std::string_view text) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.';
    };
    return !text.empty() && text.size() <= longest_name && std::all_of(text.begin(), text.end(), allowed);
}

bool is_json(std::string_view type) { return type.substr(0, type.find(';')) == "application/json"; }

std::int64_t integer(const char* name, const std::string& text, std::int64_t most) {
    try {
        return parse_integer(name, text, 0, most);
    } catch (const Error& error) {
        refuse(400, error.what());
    }
}

}  // namespace

Answer answer_of(const Refusal& refusal) {
    Answer answer = error_of(refusal.status, refusal.message);
    if (refusal.retry_after) answer.headers.emplace_back("Retry-After", std::to_string(*refusal.retry_after));
    return answer;
}

void refuse(int status, const std::string& message) { throw Refusal{status, message}; }

void require_open(const Planning& planning, const std::string& session) {
    const auto view = planning.session(session);
    if (!view) throw unknown_session(session);
    if (!view->ready) throw not_ready(session, view->error);
}

const std::string& Routes::Call::session() const {
    if (!is_name(places[0]))
        refuse(400, fmt::format("session: is no name; allowed are up to {} letters, digits, '-', '_' and '.'",
                                longest_name));
    return places[0];
}

std::int64_t Routes::Call::number(std::size_t place, const char* name) const {
    return integer(name, places[place], most_number);
}

std::optional<Duration> Routes::Call::time(const char* name) const {
    const auto given = question.query.find(name);
    if (given == question.query.end()) return std::nullopt;
    return std::chrono::milliseconds(integer(name, given->second, most_milliseconds));
}

void Routes::Call::require_json() const {
    if (!is_json(question.content_type))
        refuse(415, "Content-Type: " + must_be(question.content_type, "application/json"));
}

}  // namespace pipeweaver::service
