#include "apps/console.hpp"

#include "apps/command_line.hpp"
#include "pipeweaver/base/host.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/plan_folder.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <unistd.h>

namespace pipeweaver::apps {

void Console::add_to(CLI::App& app) {
    add_flag(app, "json", json, "answer in JSON on stdout, and nothing else there", "Output");
    add_flag(app, "quiet", quiet, "no progress and no remarks on stderr", "Output");
}

void Console::say(std::string_view line) const {
    if (!quiet) fmt::print(stderr, "{}\n", line);
}

void Console::show(const search::Progress& progress) const {
    if (quiet || isatty(STDERR_FILENO) == 0) return;
    if (progress.bound <= Duration{}) return;  // nothing is known yet
    if (since_shown_ && since_shown_->elapsed() < std::chrono::milliseconds(100)) return;
    since_shown_.emplace();
    fmt::print(stderr, "\r{:>8} rounds  best {}  bound {}  gap {:.1f} %  ({})    ", progress.rounds,
               human(progress.best), human(progress.bound), 100 * schedule::relative_gap(progress.best, progress.bound),
               progress.found_by);
}

void Console::clear() const {
    if (since_shown_) fmt::print(stderr, "\n");
    since_shown_.reset();
}

Executor Limits::executor() const { return on_threads(thread_count()); }

search::Options Limits::search_options(const std::string& strategy) const {
    search::Options asked;
    if (!strategy.empty()) asked.strategy = strategy;
    asked.seed = static_cast<std::uint64_t>(seed);
    asked.max_rounds = rounds();
    return asked;
}

planner::Time Limits::begin(const Console& console) const {
    const auto show = [&console](const search::Progress& progress) -> std::optional<schedule::StopReason> {
        console.show(progress);
        return std::nullopt;
    };
    return planner::Time::until(time_left(time()), show);
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
