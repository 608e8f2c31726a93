#include "apps/console.hpp"

#include "apps/command_line.hpp"
#include "apps/interrupt.hpp"
#include "apps/progress_line.hpp"
#include "pipeweaver/base/host.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/plan_folder.hpp"
#include "pipeweaver/planner/tuning.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace pipeweaver::apps {

namespace {

// Each line as printable() has it.
std::string printable_lines(std::string_view text) {
    std::string all;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        all += printable(text.substr(0, end));
        if (end == text.size()) break;
        all += '\n';
        text.remove_prefix(end + 1);
    }
    return all;
}

std::string json_line(const nlohmann::ordered_json& object) {
    return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

void print_on_stdout(std::string_view text) {
    const std::string all = printable_lines(text);
    static_cast<void>(std::fwrite(all.data(), 1, all.size(), stdout));  // what is lost is known at the end
}

void print_json(const nlohmann::ordered_json& answer) { fmt::print("{}", json_line(answer)); }

void print_on_stderr(std::string_view text) { static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr)); }

void Console::add_to(CLI::App& app) {
    add_flag(app, "json", json, "answer in JSON on stdout, and nothing else there", "Output");
    add_flag(app, "quiet", quiet, "no progress and no remarks on stderr", "Output");
    add_number(app, "progress-every", progress_every, "milliseconds between lines of progress off a terminal", "");
    add_flag(app, "progress-json", progress_json, "progress and rungs as JSON, an object a line", "");
}

void Console::say(std::string_view line) const {
    if (quiet) return;
    print_on_stderr(printable_lines(line) + "\n");
}

namespace {

std::string doing_json(const planner::Doing& doing) {
    nlohmann::ordered_json object{{"doing", progress_line(doing)}};
    if (doing.share) object["share"] = *doing.share;
    return json_line(object);
}

}  // namespace

void Console::tell(const nlohmann::ordered_json& object) const {
    if (quiet || !progress_json) return;
    const std::scoped_lock lock(mutex_);
    print_on_stderr(json_line(object));
}

void Console::show(const planner::Doing& doing) const {
    if (quiet) return;
    const bool rewrites = !progress_json && isatty(STDERR_FILENO) != 0;
    const std::scoped_lock lock(mutex_);
    const Duration between =
        std::chrono::milliseconds(rewrites ? 100 : std::clamp<std::int64_t>(progress_every, 0, 3'600'000));
    const Stopwatch& last = since_shown_ ? *since_shown_ : begun_;
    if ((since_shown_ || !rewrites) && last.elapsed() < between) return;
    since_shown_.emplace();
    if (progress_json) return print_on_stderr(doing_json(doing));
    print_on_stderr(rewrites ? fmt::format("\r{:<78}", progress_line(doing)) : progress_line(doing) + "\n");
}

void Console::clear() const {
    const std::scoped_lock lock(mutex_);
    if (since_shown_ && !progress_json && isatty(STDERR_FILENO) != 0) print_on_stderr("\n");
    since_shown_.reset();
}

namespace {

std::optional<schedule::StopReason> interrupted() {
    return Interrupt::came() ? std::optional(schedule::StopReason::stopped) : std::nullopt;
}

}  // namespace

void say_if_interrupted(const Console& console, const std::vector<std::string>& left_out) {
    if (!Interrupt::came()) return;
    std::fflush(stdout);  // the remark on stderr comes after the answer, also in a file
    console.say(left_out.empty() ? "interrupted, nothing was left out"
                                 : fmt::format("interrupted: {}", fmt::join(left_out, "; ")));
}

std::vector<std::string> left_out_by(const search::Found& found) {
    if (found.stop_reason != schedule::StopReason::stopped) return {};
    return {fmt::format("the search ended after {}", rounds_of(found.rounds))};
}

planner::Time time_of(std::optional<Duration> whole, const Stopwatch& start) {
    return planner::Time::until(time_left(whole, start), [](const search::Progress&) { return interrupted(); });
}

Executor Limits::executor() const { return on_threads(thread_count()); }

void Limits::say_if_fewer_threads(const Console& console) const {
    const int used = thread_count();
    if (used == wanted_threads()) return;
    console.say(
        fmt::format("{} of {} threads: the limits of processes or memory here allow no more", used, wanted_threads()));
}

search::Options Limits::search_options(const std::string& strategy) const {
    search::Options asked;
    if (!strategy.empty()) asked.strategy = strategy;
    asked.seed = static_cast<std::uint64_t>(seed);
    asked.max_rounds = rounds();
    if (!budget) asked.patience = planner::patience;
    return asked;
}

planner::Time Limits::begin(const Console& console) const {
    say_if_fewer_threads(console);
    const auto ask = [&console](const search::Progress& progress) {
        if (progress.best > Duration{}) console.show({"search", 0, 0, progress});
        return interrupted();
    };
    return planner::Time::until(time_left(budget), ask);
}

nlohmann::ordered_json Limits::run(const Stopwatch& start) const {
    return emit::run_json(*this, start.seconds(), host_name());
}

void Limits::add_run(nlohmann::ordered_json& json, const Stopwatch& start) const {
    const auto measured = run(start);
    for (const auto& [key, value] : measured.items())
        if (key != "format") json[key] = value;
}

}  // namespace pipeweaver::apps
