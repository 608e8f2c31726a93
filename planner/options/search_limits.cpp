#include "pipeweaver/planner/search_limits.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace pipeweaver::planner {

void SearchLimits::add_to(OptionTable& options) {
    options.group("Limits of the search");
    options.parsed(
        "budget", "TIME",
        "the most time for the whole command, every replica included, like 1s or 300ms: what is left out for it is "
        "said (default: none, all is done until searches have stopped gaining, with equal results on any machine)",
        [this](const std::string& text) { budget = parse_duration(text); },
        [this] { return budget ? std::optional(fmt::format("{}ns", budget->count())) : std::nullopt; });
    options.integer(
        "max-rounds", max_rounds, 0, 1'000'000'000,
        "rounds of each search, which ends no sooner and no later (default: until it has stopped gaining; of rows of "
        "`recommend` 20)");
    options.integer("seed", seed, 0, 9'007'199'254'740'991, "seed of all random choices (default 1)");
    options.integer("threads", threads, 1, 1024, "threads of the search (default: all cores); no result depends on it");
}

std::optional<std::uint64_t> SearchLimits::rounds() const {
    return max_rounds ? std::optional(static_cast<std::uint64_t>(*max_rounds)) : std::nullopt;
}

int SearchLimits::wanted_threads() const {
    return threads > 0 ? static_cast<int>(threads)
                       : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

// Where not all cores can have one, half of what can be made is left to whatever else needs threads and memory.
int SearchLimits::thread_count() const {
    const int wanted = wanted_threads();
    const int possible = possible_threads(wanted);
    if (possible == wanted) return wanted;
    if (threads == 0) return std::max(1, possible / 2);
    fail(ErrorKind::limit, "--threads: is {}, {} can be made within the limits of processes and memory here", threads,
         possible);
}

}  // namespace pipeweaver::planner
