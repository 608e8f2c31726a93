#include "apps/console.hpp"

#include "pipeweaver/base/text.hpp"
#include "pipeweaver/search/bounds.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <thread>
#include <unistd.h>

namespace pipeweaver::apps {

namespace {

using Clock = std::chrono::steady_clock;

std::string host_name() {
    char name[256] = {};
    return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

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

void Limits::add_to(Options& options) {
    options.group("Limits of the search");
    options.parsed("budget", "TIME",
                   "time for all searches together, replicas and PyTorch included, like 1s or 300ms (default 1s)",
                   [this](const std::string& text) { budget = parse_duration(text); });
    options.integer("max-rounds", max_rounds, 0, 1'000'000'000, "rounds of each search: the reproducible budget");
    options.integer("seed", seed, 0, 9'007'199'254'740'991, "seed of all random choices (default 1)");
    options.integer("threads", threads, 1, 1024, "threads of the search (default: all cores); no result depends on it");
}

std::optional<std::uint64_t> Limits::rounds() const {
    return max_rounds ? std::optional(static_cast<std::uint64_t>(*max_rounds)) : std::nullopt;
}

std::optional<Duration> Limits::time() const {
    if (budget || max_rounds) return budget;
    return std::chrono::seconds(1);
}

int Limits::thread_count() const {
    return threads > 0 ? static_cast<int>(threads)
                       : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
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
    return [&console, limit, begun, share](const search::Progress& progress) -> std::optional<emulator::StopReason> {
        console.show(progress);
        if (limit && Clock::now() - begun >= share * std::chrono::duration<double, std::nano>(*limit))
            return emulator::StopReason::budget;
        return std::nullopt;
    };
}

nlohmann::ordered_json Limits::run(Clock::time_point start) const {
    nlohmann::ordered_json json{
        {"format", "pipeweaver-run/1"}, {"seconds", std::chrono::duration<double>(Clock::now() - start).count()},
        {"threads", thread_count()},    {"budget_ns", nullptr},
        {"max_rounds", nullptr},        {"host", host_name()}};
    if (const auto limit = time()) json["budget_ns"] = limit->count();
    if (max_rounds) json["max_rounds"] = *max_rounds;
    return json;
}

void Limits::add_run(nlohmann::ordered_json& json, Clock::time_point start) const {
    const auto measured = run(start);
    for (const auto& [key, value] : measured.items())
        if (key != "format") json[key] = value;
}

}  // namespace pipeweaver::apps
