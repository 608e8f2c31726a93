// A request at its route, and the answers that routes have in common: for routes.cpp and routes_steps.cpp.
#pragma once

#include "service/http/answers.hpp"
#include "service/http/routes.hpp"

#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::service {

inline constexpr std::size_t steps_shown = 8;  ///< of a session: the latest

[[nodiscard]] Answer answer_of(const Refusal& refusal);

/// Throws a Refusal: what an operation cannot do ends there.
[[noreturn]] void refuse(int status, const std::string& message);

/// Throws a Refusal where the session does not plan: 404, 500 where it cannot be opened again, 503 until it is opened.
void require_open(const Planning& planning, const std::string& session);

/// What the operation throws is its answer.
template <class Operation>
void answering(const Respond& respond, const Operation& operation) {
    try {
        operation();
    } catch (const Refusal& refusal) {
        respond(answer_of(refusal));
    } catch (const std::exception& error) {
        respond(answer_of(refusal_of(error)));
    }
}

struct Routes::Call {
    const Question& question;
    std::vector<std::string> places;  ///< what stands for each {name} of the pattern, in order
    Respond respond;

    // Each refuses what it finds wrong.
    [[nodiscard]] const std::string& session() const;
    [[nodiscard]] std::int64_t step() const { return number(1, "step"); }
    [[nodiscard]] std::int64_t number(std::size_t place, const char* name) const;
    [[nodiscard]] std::optional<Duration> time(const char* name) const;  ///< that the query gives
    void require_json() const;
};

}  // namespace pipeweaver::service
