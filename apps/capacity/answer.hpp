// The answer of a study: printed, and written into a folder.
#pragma once

#include "apps/console.hpp"
#include "pipeweaver/capacity/answer.hpp"
#include "pipeweaver/capacity/run.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::apps {

/// How long points took that were judged here, none of those that a folder had.
struct Judging {
    std::size_t points = 0;
    double seconds = 0;
};

/// Shows how many cells are done, and when all may be; knows how long those took that were judged here.
class ShownCells {
public:
    explicit ShownCells(const Console& console) : console_(console) {}

    void operator()(const capacity::RunProgress& now);

    Judging judging() const { return {points_, since_.seconds()}; }

private:
    const Console& console_;
    Stopwatch since_;
    std::optional<std::size_t> found_;  ///< cells that were there before
    std::size_t points_ = 0;
};

/// Throws Error{limit} where a signal or the end of its time came before all cells were judged; `then` says what to do.
void require_all(const std::vector<std::optional<capacity::CellResult>>& results, const planner::Time& time,
                 std::string_view then);

struct AnswerWanted {
    std::string out;  ///< folder; empty: nothing is written
    const Stopwatch* start = nullptr;
    planner::Time time{};
    std::optional<Judging> judging{};
    std::vector<std::string> remarks{};  ///< lines under what is printed for a person
};

/// Ranks, plans the best rows, prints and writes.
void give_answer(const capacity::Study& study, const std::vector<capacity::CellResult>& results, const Console& console,
                 const Limits& limits, const AnswerWanted& wanted);

}  // namespace pipeweaver::apps
