#include "service/http/answers.hpp"

#include "pipeweaver/base/files.hpp"

#include <openssl/crypto.h>

#include <utility>

namespace pipeweaver::service {

using nlohmann::ordered_json;

namespace {

bool is_loopback_host(std::string_view host) {
    const std::string_view name =
        host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.rfind(':'));
    const bool is_number = name.find_first_not_of("0123456789.") == std::string_view::npos;
    return host.empty() || name == "localhost" || name == "[::1]" || (is_number && name.starts_with("127."));
}

}  // namespace

Answer answer_of(int status, const ordered_json& body) {
    return {status, body.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n"};
}

Answer error_of(int status, const std::string& message) {
    return answer_of(status, {{"error", {{"message", message}}}});
}

Answer page_answer(std::string text, bool has_parts) {
    Answer answer;
    answer.type = "text/html; charset=utf-8";
    answer.body = std::move(text);
    const std::string own =
        has_parts ? "script-src 'self' 'unsafe-inline'; frame-src blob:; " : "script-src 'unsafe-inline'; ";
    answer.headers = {{"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; " + own +
                                                      "connect-src 'self'; img-src data:; frame-ancestors 'none'"},
                      {"X-Content-Type-Options", "nosniff"}};
    return answer;
}

std::vector<std::string_view> parts_of_path(std::string_view path) {
    std::vector<std::string_view> parts;
    if (path.starts_with('/')) path.remove_prefix(1);
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        parts.push_back(path.substr(0, slash));
        path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
        if (path.empty() && slash != std::string_view::npos) parts.emplace_back();
    }
    return parts;
}

std::optional<std::vector<std::string>> places_of(std::string_view pattern, std::string_view path) {
    const auto expected = parts_of_path(pattern), given = parts_of_path(path);
    if (expected.size() != given.size()) return std::nullopt;
    std::vector<std::string> places;
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (expected[i].starts_with('{'))
            places.emplace_back(given[i]);
        else if (expected[i] != given[i])
            return std::nullopt;
    }
    return places;
}

Guard::Guard(const std::string& token) : token_sha256_(token.empty() ? std::string() : sha256(token)) {}

// Of equal length, compared in a time that says nothing of where they differ.
std::optional<Answer> Guard::refusal(const Question& question, bool open) const {
    if (token_sha256_.empty()) {
        if (is_loopback_host(question.host)) return std::nullopt;
        return error_of(421, "Host: is no loopback name; a server for others needs a token and TLS");
    }
    if (open) return std::nullopt;
    constexpr std::string_view scheme = "Bearer ";
    const bool is_bearer = question.authorization.starts_with(scheme);
    const std::string given = sha256(is_bearer ? std::string_view(question.authorization).substr(scheme.size()) : "");
    if (is_bearer && CRYPTO_memcmp(given.data(), token_sha256_.data(), token_sha256_.size()) == 0) return std::nullopt;
    Answer answer = error_of(401, "Authorization: is missing or wrong; needed is the server's token: Bearer TOKEN");
    answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    return answer;
}

}  // namespace pipeweaver::service
