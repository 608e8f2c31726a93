// What commands share: the budget's clock, progress on stderr, and the answer on stdout.
#pragma once

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/search_limits.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/search/options.hpp"

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace pipeweaver::apps {

/// Prints as far as it can be printed: what is lost there is no reason to end.
void print_on_stderr(std::string_view text);

/// Prints on stdout what is for people, each line as printable() has it.
void print_on_stdout(std::string_view text);

template <class... Arguments>
void print_text(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    print_on_stdout(fmt::format(text, std::forward<Arguments>(arguments)...));
}

/// Prints an answer on stdout, on one line. Bytes that are no UTF-8, of a file or its name, become U+FFFD.
void print_json(const nlohmann::ordered_json& answer);

/// --json and --quiet.
struct Console {
    bool json = false;
    bool quiet = false;
    std::int64_t progress_every = 10'000;  ///< milliseconds between lines where stderr is no terminal
    bool progress_json = false;            ///< for a program: each line of progress is a JSON object

    void add_to(CLI::App& app);

    /// Lines for people, on stderr.
    void say(std::string_view line) const;

    /// Says on stderr what is done, unless quiet: on a terminal one line that is rewritten, ten times a second at most;
    /// elsewhere a line every `progress_every`; with `progress_json` {"doing": that line, "share": what of all is done,
    /// where that is known}. May be called from several threads.
    void show(const planner::Doing& doing) const;

    /// Tells whoever reads `progress_json`, at once; nobody else. May be called from several threads.
    void tell(const nlohmann::ordered_json& object) const;

    /// Ends the rewritten line.
    void clear() const;

private:
    mutable std::mutex mutex_;
    mutable std::optional<Stopwatch> since_shown_;
    Stopwatch begun_;
};

/// Says, after a command that a signal may have ended early (interrupt.hpp), that it did and what was left out for it;
/// nothing where none came.
void say_if_interrupted(const Console& console, const std::vector<std::string>& left_out);

/// "the search ended after 40 rounds", if it was ended by who asked for it; else nothing.
[[nodiscard]] std::vector<std::string> left_out_by(const search::Found& found);

/// The time of a command that began then and has so much, without an end where there is none; the first signal
/// (interrupt.hpp) ends it.
[[nodiscard]] planner::Time time_of(std::optional<Duration> whole, const Stopwatch& start);

/// The limits of searches, with a clock.
struct Limits : planner::SearchLimits {
    Executor executor() const;

    /// Says that the machine's cores are not all used, where limits of processes or memory allow no more threads.
    void say_if_fewer_threads(const Console& console) const;

    /// What a search by the strategy is asked for; empty: the default one.
    search::Options search_options(const std::string& strategy) const;

    /// The budget, which begins now; the search that uses it is shown. A signal ends it (interrupt.hpp).
    planner::Time begin(const Console& console) const;

    /// What was measured, for run.json: seconds of `start`, threads, budget, host.
    nlohmann::ordered_json run(const Stopwatch& start) const;

    /// The same beside what else `json` has, as the answers of bench have it.
    void add_run(nlohmann::ordered_json& json, const Stopwatch& start) const;
};

}  // namespace pipeweaver::apps
