// What all servers answer in one way: JSON, errors, a page, and who is not let in.
#pragma once

#include "service/http/answer.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::service {

/// Whatever bytes a caller sent, and an answer quotes, it is UTF-8.
[[nodiscard]] Answer answer_of(int status, const nlohmann::ordered_json& body);

/// {"error": {"message": ...}}
[[nodiscard]] Answer error_of(int status, const std::string& message);

/// A page that loads nothing but from its server, and into which nothing may be put. One that `has_parts` loads scripts
/// from there and shows pages that it has made.
[[nodiscard]] Answer page_answer(std::string text, bool has_parts = false);

/// "a/b" apart at its slashes; one at the end leaves an empty part.
[[nodiscard]] std::vector<std::string_view> parts_of_path(std::string_view path);

/// What stands for the pattern's `{names}`, in order; none: the path is not of the pattern.
[[nodiscard]] std::optional<std::vector<std::string>> places_of(std::string_view pattern, std::string_view path);

/// Lets in who bears the token; without one, who asks for a loopback host.
class Guard {
public:
    /// An empty token: none is asked for.
    explicit Guard(const std::string& token);

    /// The answer for who may not; none: it may. What is `open` asks for no token.
    [[nodiscard]] std::optional<Answer> refusal(const Question& question, bool open) const;

private:
    std::string token_sha256_;
};

}  // namespace pipeweaver::service
