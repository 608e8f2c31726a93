#include "apps/capacity/answer.hpp"

#include "apps/interrupt.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/capacity/answer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace pipeweaver::apps {

namespace {

// Points that a paper prints, for those who know it: docs/capacity-study.md.
constexpr std::string_view calculons = "Calculon's published 518 points/s";

nlohmann::ordered_json measured(const Limits& limits, const AnswerWanted& wanted) {
    auto json = limits.run(*wanted.start);
    if (wanted.judging) {
        json["points"] = wanted.judging->points;
        json["judging_seconds"] = wanted.judging->seconds;
    }
    return json;
}

}  // namespace

void ShownCells::operator()(const capacity::RunProgress& now) {
    if (!found_) found_ = now.cells;
    points_ = now.points;
    planner::Doing doing{"cells", now.cells, now.of, {}, {}};
    const auto here = static_cast<std::int64_t>(now.cells - *found_);
    if (here > 0) doing.left = since_.elapsed() / here * static_cast<std::int64_t>(now.of - now.cells);
    console_.show(doing);
}

void require_all(const std::vector<std::optional<capacity::CellResult>>& results, const planner::Time& time,
                 std::string_view then) {
    const auto done = std::count_if(results.begin(), results.end(), [](const auto& one) { return one.has_value(); });
    if (static_cast<std::size_t>(done) == results.size()) return;
    if (Interrupt::came() || time.is_over())
        fail(ErrorKind::limit, "{}: {} of {} cells were judged; {}", Interrupt::came() ? "interrupted" : "out of time",
             done, results.size(), then);
}

void give_answer(const capacity::Study& study, const std::vector<capacity::CellResult>& results, const Console& console,
                 const Limits& limits, const AnswerWanted& wanted) {
    const auto ranking =
        capacity::answer(study, results, limits.executor(), wanted.time, [&](std::size_t done, std::size_t of) {
            console.show({"rows planned", done, of, {}});
        });
    console.clear();
    const auto run = measured(limits, wanted);
    if (!wanted.out.empty()) {
        auto files = capacity::answer_files(study, results, ranking, wanted.out);
        files.push_back({std::filesystem::path(wanted.out) / "run.json", run.dump(2) + "\n"});
        write_files(files);
        capacity::remove_old_rows(files, wanted.out);
    }
    if (console.json) {
        auto answer = capacity::answer_json(study, results, ranking);
        answer["run"] = run;
        print_json(answer);
    } else {
        print_text("{}", capacity::answer_text(study, results, ranking));
        for (const std::string& remark : wanted.remarks) print_text("{}\n", remark);
    }
    std::fflush(stdout);
    if (wanted.judging && wanted.judging->points > 0)
        console.say(fmt::format("{} points in {:.1f} s: {:.0f} a second ({} is of one kind of schedule)",
                                wanted.judging->points, wanted.judging->seconds,
                                static_cast<double>(wanted.judging->points) / wanted.judging->seconds, calculons));
    say_if_interrupted(console, {"rows whose search ended early keep the launch flags' step"});
    if (!ranking.none_meets.empty()) fail(ErrorKind::limit, "{}", ranking.none_meets);
}

}  // namespace pipeweaver::apps
