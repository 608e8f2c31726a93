#include "apps/console.hpp"

#include "apps/run_json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/search/bounds.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <unistd.h>

namespace pipeweaver::apps {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void Console::add_to(CLI::App& app) {
    app.add_flag("--json", json, "answer in JSON on stdout, and nothing else there")->group("Output");
    app.add_flag("--quiet", quiet, "no progress and no remarks on stderr")->group("Output");
}

void Console::say(std::string_view line) const {
    if (!quiet) fmt::print(stderr, "{}\n", line);
}

void Console::show(const search::Progress& progress) const {
    if (quiet || isatty(STDERR_FILENO) == 0) return;
    const auto now = Clock::now();
    if (shown_ && now - last_shown_ < std::chrono::milliseconds(100)) return;
    last_shown_ = now;
    shown_ = true;
    fmt::print(stderr, "\r{:>8} rounds  best {}  bound {}  gap {:.1f} %  ({})    ", progress.rounds,
               human(progress.best), human(progress.bound), 100 * search::relative_gap(progress.best, progress.bound),
               progress.found_by);
}

void Console::clear() const {
    if (shown_) fmt::print(stderr, "\n");
    shown_ = false;
}

Executor Limits::executor() const { return on_threads(thread_count()); }

search::Options Limits::search_options(const std::string& strategy) const {
    search::Options asked;
    if (!strategy.empty()) asked.strategy = strategy;
    asked.seed = static_cast<std::uint64_t>(seed);
    asked.max_rounds = rounds();
    return asked;
}

search::KeepGoing Limits::begin(const Console& console, double share) const {
    const auto limit = time();
    const auto begun = Clock::now();
    return [&console, limit, begun, share](const search::Progress& progress) -> std::optional<schedule::StopReason> {
        console.show(progress);
        if (limit && Clock::now() - begun >= share * std::chrono::duration<double, std::nano>(*limit))
            return schedule::StopReason::budget;
        return std::nullopt;
    };
}

nlohmann::ordered_json Limits::run(Clock::time_point start) const {
    return run_json(*this, std::chrono::duration<double>(Clock::now() - start).count());
}

void Limits::add_run(nlohmann::ordered_json& json, Clock::time_point start) const {
    const auto measured = run(start);
    for (const auto& [key, value] : measured.items())
        if (key != "format") json[key] = value;
}

}  // namespace pipeweaver::apps
