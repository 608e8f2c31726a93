// The project's one exception. Thrown where a call cannot do its work for a reason outside the program,
// caught once, in main(), which exits with its kind.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace pipeweaver {

/// What kind of failure it was; the value is the exit status of the command.
enum class ErrorKind {
    input = 2,  ///< malformed or contradictory input
    io = 3,     ///< a file or device did not do as asked
    limit = 4   ///< well-formed, but impossible: does not fit, cannot be expressed
};

/// A call could not do its work for a reason outside the program: a bad file, a missing cost, a full disk.
/// A bug is PIPEWEAVER_ASSERT's, and a schedule that does not fit is an ordinary result: neither is an Error.
class Error : public std::runtime_error {
public:
    Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

    ErrorKind kind() const noexcept { return kind_; }

    /// The same error, saying first where it was met: "gpt.json: tasks[7]: no cost".
    [[nodiscard]] Error in(std::string_view where) const { return {kind_, fmt::format("{}: {}", where, what())}; }

private:
    ErrorKind kind_;
};

/// Throws Error{kind} with the formatted message.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
    throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace pipeweaver
