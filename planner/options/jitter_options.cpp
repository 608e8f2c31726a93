#include "pipeweaver/planner/jitter_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <string_view>

namespace pipeweaver::planner {

namespace {

constexpr const char* jitter_replays = "jitter";
constexpr double most_slow_percent = 1000;
constexpr std::int64_t most_slow_rank = 1'000'000;

// "3%": a share of 1.
double read_task_jitter(const std::string& text) {
    const bool has_unit = text.ends_with('%');
    const double most = 100 * most_task_jitter;
    const auto percent =
        has_unit ? number_in(std::string_view(text).substr(0, text.size() - 1), 0, most) : std::nullopt;
    if (!percent) fail(ErrorKind::input, "{}", must_be(text, fmt::format("a percentage from 0% to {}%", most)));
    return *percent / 100;
}

// "20%", "10-30%", "1:10-30%".
SlowRank read_slow_rank(const std::string& text) {
    SlowRank slow;
    std::string_view rest = text;
    bool good = rest.ends_with('%');
    if (good) rest.remove_suffix(1);
    if (const auto colon = rest.find(':'); colon != std::string_view::npos) {
        slow.rank = integer_in(rest.substr(0, colon), 0, most_slow_rank);
        good = good && slow.rank;
        rest.remove_prefix(colon + 1);
    }
    const auto dash = rest.find('-');
    const auto least = number_in(rest.substr(0, dash), 0, most_slow_percent);
    const auto most = dash == std::string_view::npos ? least : number_in(rest.substr(dash + 1), 0, most_slow_percent);
    if (!good || !least || !most || *least > *most)
        fail(ErrorKind::input, "{}",
             must_be(text, fmt::format("[RANK:]PERCENT or [RANK:]LEAST-MOST%, up to {}%, like 10-30% or 3:20%",
                                       most_slow_percent)));
    slow.least = *least / 100;
    slow.most = *most / 100;
    return slow;
}

std::string text_of_slow(const SlowRank& slow) {
    return fmt::format("{}{}-{}%", slow.rank ? fmt::format("{}:", *slow.rank) : "", text_of(100 * slow.least),
                       text_of(100 * slow.most));
}

}  // namespace

void JitterOptions::add_to(OptionTable& options) {
    options.choice("robust", robust, {jitter_replays},
                   "replay 1,000 steps whose tasks and ranks vary: the lists against a queue of ready tasks and 1F1B, "
                   "and what a slow rank costs");
    options.parsed(
        "jitter", "PERCENT", "with --robust: standard deviation of a task's time (default 2%)",
        [this](const std::string& text) { jitter = read_task_jitter(text); },
        [this] { return jitter ? std::optional(text_of(100 * *jitter) + "%") : std::nullopt; });
    options.parsed(
        "slow", "[RANK:]PERCENT",
        "with --robust: in each step this rank, or one that is drawn, takes longer by so much, or by 10-30% (default: "
        "every rank varies by 1 %)",
        [this](const std::string& text) { slow = read_slow_rank(text); },
        [this] { return slow ? std::optional(text_of_slow(*slow)) : std::nullopt; });
}

std::optional<JitterRequest> JitterOptions::request(std::int64_t seed) const {
    if (robust.empty()) {
        if (jitter || slow)
            fail(ErrorKind::input, "{}: goes with --robust {}", jitter ? "--jitter" : "--slow", jitter_replays);
        return std::nullopt;
    }
    JitterRequest asked;
    if (jitter) asked.task = *jitter;
    asked.slow = slow;
    asked.seed = static_cast<std::uint64_t>(seed);
    return asked;
}

}  // namespace pipeweaver::planner
