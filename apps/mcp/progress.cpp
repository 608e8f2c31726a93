#include "apps/mcp/progress.hpp"

#include "apps/mcp/lines.hpp"
#include "pipeweaver/base/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <csignal>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace pipeweaver::apps {

namespace {

using ToldJson = nlohmann::ordered_json;

std::string told_text(const ToldJson& object, std::string_view key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> told_number(const ToldJson& object, std::string_view key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

// "data: 1.736 s, 1.278x over now"; "flags: nothing: ..." where it gains nothing.
std::string rung_message(const ToldJson& rung) {
    const std::string name = told_text(rung, "rung"), why_nothing = told_text(rung, "why_nothing");
    if (!why_nothing.empty()) return fmt::format("{}: nothing: {}", name, why_nothing);
    const auto over = name == "now" ? std::nullopt : told_number(rung, "over_now");
    return fmt::format("{}: {:.3f} s{}", name, 1e-9 * told_number(rung, "step_ns").value_or(0),
                       over ? fmt::format(", {:.3f}x over now", *over) : "");
}

// None: the line is for people.
std::optional<ProgressTold> progress_of(const std::string& line) {
    const auto object = ToldJson::parse(line, nullptr, false);
    if (!object.is_object()) return std::nullopt;
    if (object.contains("rung")) return ProgressTold{rung_message(object), std::nullopt};
    if (!object.contains("doing")) return std::nullopt;
    return ProgressTold{told_text(object, "doing"), told_number(object, "share")};
}

void read_progress(int from, const OnProgress& on) {
    sigset_t pipe;  // a search leaves it at its default, and who is told may be gone
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    LineSource lines(from);
    while (const auto line = lines.next())
        if (const auto told = progress_of(*line)) on(*told);
    ::close(from);
}

}  // namespace

TakenProgress::TakenProgress(OnProgress on) : before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    std::array<int, 2> ends{-1, -1};
    if (before_ < 0 || ::pipe2(ends.data(), O_CLOEXEC) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) {
        for (const int file : {before_, ends[0], ends[1]})
            if (file >= 0) ::close(file);
        fail(ErrorKind::io, "what a command tells of its progress cannot be taken");
    }
    ::close(ends[1]);
    reader_ = std::jthread([from = ends[0], told = std::move(on)] { read_progress(from, told); });
}

TakenProgress::~TakenProgress() {
    ::dup2(before_, STDERR_FILENO);  // nothing writes any more: the reader comes to the end
    ::close(before_);
}

}  // namespace pipeweaver::apps
