#include "capacity/study/rows.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/emulator/uncertainty.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace pipeweaver::capacity {

namespace {

// The part by which two rows may differ and still be as good: of the same machine, model and recipe what the costs are
// off by is off in both, and what is left is what a way to run a model meets of its own.
double doubt_between(const Study& study, const Row& a, const Row& b) {
    const auto same = [&](std::string_view option) {
        const auto* of_a = study.cells[a.cell].asked.find(option);
        const auto* of_b = study.cells[b.cell].asked.find(option);
        return (of_a == nullptr) == (of_b == nullptr) && (of_a == nullptr || of_a->text == of_b->text);
    };
    if (study.cells[a.cell].cluster == study.cells[b.cell].cluster && same("model") && same("recipe"))
        return std::sqrt(2.0) * emulator::Uncertainty{}.schedule;
    return std::hypot(a.error_percent, b.error_percent) / 100;
}

// By what part the run takes more than a constraint allows: the larger of both, 1 where it takes as much.
double most_missed(const Constraints& limits, const planner::TrainingCost& run) {
    return std::max(limits.days ? run.days / *limits.days : 0, limits.usd && run.usd ? *run.usd / *limits.usd : 0);
}

// So many decimals, and of little two digits: it shall not be told as nothing.
std::string two_digits(double value, int decimals) {
    return value < 1 ? fmt::format("{:.2g}", value) : fmt::format("{:.{}f}", value, decimals);
}

// Which constraint binds the run of a cell that comes closest.
std::string nearest_text(const Study& study, std::size_t cell, const planner::TrainingCost& run,
                         std::string_view at_least) {
    const Constraints& limits = study.constraints;
    const bool days_bind = limits.days && run.days / *limits.days >= most_missed(limits, run);
    const std::string what = days_bind ? fmt::format("days bind: it takes {}{}, allowed are {:g}", at_least,
                                                     two_digits(run.days, 1), *limits.days)
                                       : fmt::format("budget-usd binds: it takes {}{}, allowed are {}", at_least,
                                                     two_digits(*run.usd, 0), two_digits(*limits.usd, 0));
    return fmt::format("{} x {} comes closest, and {}", study.cells[cell].gpus, study.cells[cell].cluster, what);
}

class Ranker {
public:
    Ranker(const Study& study, Ranking& ranking) : study_(study), ranking_(ranking) {}

    void run() {
        auto& rows = ranking_.rows;
        ranking_.has_prices = !rows.empty() && std::all_of(rows.begin(), rows.end(), [](const Row& row) {
            return row.pace.run && row.pace.run->usd;
        });
        std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return order(a) < order(b); });
        choose_answers();
        mark_front();
        mark_ties();
        ranking_.none_meets = rows.empty() || rows.front().meets ? "" : nearest();
    }

private:
    double cost(const Row& row) const { return cost_of(study_, row, ranking_.has_prices); }

    // What is known by its peaks alone goes before what was measured only where it would at the far end of its error.
    static double held(const Row& row) { return row.modelled ? 1 + row.error_percent / 100 : 1; }
    static bool is_doubtful(const Row& row) { return row.modelled && row.at_risk; }
    double ranked_cost(const Row& row) const { return held(row) * cost(row); }
    static double ranked_time(const Row& row) { return held(row) * time_of(row); }

    std::tuple<bool, double, double, std::size_t> order(const Row& row) const {
        return {!row.meets, ranked_cost(row), ranked_time(row), row.cell};
    }

    std::int64_t gpus(const Row& row) const { return study_.cells[row.cell].gpus; }

    void choose_answers() {
        auto& rows = ranking_.rows;
        auto& answers = ranking_.answers;
        answers = {};
        for (std::size_t i = 0; i < rows.size() && rows[i].meets; ++i) {
            const auto better = [&](const std::optional<std::size_t>& best, const auto& key) {
                return !best || key(rows[i]) < key(rows[*best]);
            };
            if (better(answers.fewest,
                       [&](const Row& row) { return std::tuple(is_doubtful(row), gpus(row), ranked_cost(row)); }))
                answers.fewest = i;
            if (better(answers.fastest, [&](const Row& row) { return std::tuple(ranked_time(row), ranked_cost(row)); }))
                answers.fastest = i;
            if (!answers.cheapest) answers.cheapest = i;
        }
    }

    void mark_front() {
        for (Row& row : ranking_.rows)
            row.on_front = std::none_of(ranking_.rows.begin(), ranking_.rows.end(), [&](const Row& other) {
                const bool no_worse = cost(other) <= cost(row) && time_of(other) <= time_of(row);
                const bool better = cost(other) < cost(row) || time_of(other) < time_of(row);
                return no_worse && better;
            });
    }

    void mark_ties() {
        for (Row& row : ranking_.rows) {
            row.is_tied = false;
            if (!ranking_.answers.cheapest || !row.meets) continue;
            const Row& best = ranking_.rows[*ranking_.answers.cheapest];
            row.is_tied = &row != &best && cost(row) <= cost(best) * (1 + doubt_between(study_, row, best));
        }
    }

    std::string nearest() const {
        const auto most = [&](const Row& row) { return most_missed(study_.constraints, *row.pace.run); };
        const Row& row = *std::min_element(ranking_.rows.begin(), ranking_.rows.end(),
                                           [&](const Row& a, const Row& b) { return most(a) < most(b); });
        return "no row meets the constraints; " + nearest_text(study_, row.cell, *row.pace.run, "");
    }

    const Study& study_;
    Ranking& ranking_;
};

// Of cells of which no point was judged: what the constraints leave out by less than the others, or what is wrong.
std::string why_none(const Study& study, const std::vector<CellResult>& results) {
    std::optional<std::pair<std::size_t, planner::TrainingCost>> nearest;
    std::string why;
    for (const CellResult& result : results) {
        if (!result.why_not.empty() && why.empty()) why = result.why_not;
        for (const Point& point : result.points) {
            if (point.status == PointStatus::refused && why.empty()) why = point.why;
            if (point.status != PointStatus::bounded) continue;
            const auto run = pace_of(study, study.cells[result.cell], result.facts, point.bound).run;
            if (!run) continue;
            const double missed = most_missed(study.constraints, *run);
            if (!nearest || missed < most_missed(study.constraints, nearest->second))
                nearest.emplace(result.cell, *run);
        }
    }
    if (nearest)
        return "no point meets the constraints; " + nearest_text(study, nearest->first, nearest->second, "at least ");
    return fmt::format("no layout runs on any of the clusters: {}", why);
}

}  // namespace

std::vector<std::size_t> Answers::places() const {
    std::vector<std::size_t> places;
    for (const auto& answer : {fewest, cheapest, fastest})
        if (answer && std::find(places.begin(), places.end(), *answer) == places.end()) places.push_back(*answer);
    return places;
}

void rank_rows(const Study& study, Ranking& ranking) { Ranker(study, ranking).run(); }

Ranking rank(const Study& study, const std::vector<CellResult>& results) {
    PIPEWEAVER_ASSERT(results.size() == study.cells.size());
    Ranking ranking;
    for (std::size_t c = 0; c < results.size(); ++c) {
        for (const Point& point : results[c].points)
            ++(point.status == PointStatus::judged    ? ranking.judged
               : point.status == PointStatus::bounded ? ranking.bounded
                                                      : ranking.refused);
        if (const auto best = fastest_point(results[c])) ranking.rows.push_back(row_of(study, results[c], *best));
    }
    rank_rows(study, ranking);
    if (ranking.rows.empty()) ranking.none_meets = why_none(study, results);
    return ranking;
}

}  // namespace pipeweaver::capacity
