// Which rows of a study are searched, and what that makes of them.
#include "capacity/study/rows.hpp"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace pipeweaver::capacity {

namespace {

// A row that is too late by launch flags may be in time when planned, if it is late by no more than this factor. Some
// gain more, but what is planned for nothing takes the place of a row that answers.
constexpr double most_gained = 1.25;

// Of the rows that miss the constraints, but may meet them when planned, and would then be on fewer GPUs or cheaper
// than the answers by now: the one that misses them by least.
std::optional<std::size_t> nearly_an_answer(const Study& study, const Ranking& ranking) {
    std::optional<std::size_t> nearest;
    const auto gpus = [&](std::size_t i) { return study.cells[ranking.rows[i].cell].gpus; };
    const auto cost = [&](std::size_t i) { return cost_of(study, ranking.rows[i], ranking.has_prices); };
    const auto& [fewest, cheapest, fastest] = ranking.answers;
    for (std::size_t i = 0; i < ranking.rows.size(); ++i) {
        const Row& row = ranking.rows[i];
        if (row.meets || row.planned || !row.why_not_planned.empty()) continue;
        if (!meets(study.constraints, row, 1 / most_gained)) continue;
        const bool may_answer = !fewest || gpus(i) < gpus(*fewest) || cost(i) < most_gained * cost(*cheapest);
        if (may_answer && (!nearest || time_of(row) < time_of(ranking.rows[*nearest]))) nearest = i;
    }
    return nearest;
}

// On shared GPUs.
bool has_pipeline(const Point& point) { return !point.split && point.as.layout.pp > 1; }

// Which row is planned next: an answer that is not, what may be one, then the cheapest of the rest; none: all are.
std::optional<std::size_t> next_to_plan(const Study& study, const Ranking& ranking) {
    const auto is_open = [&](std::size_t i) {
        return !ranking.rows[i].planned && ranking.rows[i].why_not_planned.empty();
    };
    for (const auto& answer : {ranking.answers.fewest, ranking.answers.cheapest})
        if (answer && is_open(*answer)) return answer;
    if (const auto near = nearly_an_answer(study, ranking)) return near;
    if (const auto& answer = ranking.answers.fastest; answer && is_open(*answer)) return answer;
    for (std::size_t i = 0; i < ranking.rows.size(); ++i)
        if (is_open(i)) return i;
    return std::nullopt;
}

// The fastest of the points to search for a row whose own has no order to search, if one may make it faster than
// `step`: those with a pipeline; of groups of GPUs those on shared ones.
std::optional<std::size_t> point_to_search(const CellResult& result, const Point& own, Duration step) {
    const auto is_searched = own.split ? [](const Point& point) { return !point.split.has_value(); }
                                       : [](const Point& point) { return has_pipeline(point); };
    const auto best = fastest_point(result, is_searched);
    const bool may_win = best && static_cast<double>(result.points[*best].step.count()) <
                                     most_gained * static_cast<double>(step.count());
    return may_win ? best : std::nullopt;
}

// Plans a row; of one without a pipeline also the cell's best layout that has one, of groups of GPUs the best layout on
// shared ones, which becomes the row's where it is faster: an order to search is where most is gained.
void plan(const Study& study, const CellResult& result, Row& row, const Executor& execute, const planner::Time& time) {
    std::vector<std::size_t> points{row.point};
    if (const Point& own = result.points[row.point]; !has_pipeline(own))
        if (const auto other = point_to_search(result, own, row.flags_step)) points.push_back(*other);
    std::optional<Row> best;
    LaunchedElsewhere by_flags{.point = row.point};
    for (const std::size_t point : points) {
        Row tried = point == row.point ? row : row_of(study, result, point);
        if (result.points[point].split)
            tried.why_not_planned = "no order is searched on groups of GPUs";
        else
            plan_row(study.cells[row.cell], result.points[point].as, tried, execute, time);
        if (tried.planned) tried.memory_left = result.facts.usable - tried.planned->memory;
        judge_by_step(study, result.facts, tried);
        if (point == by_flags.point) by_flags.step = tried.flags_step;
        if (!best || (tried.planned && tried.step() < best->step())) best = std::move(tried);
    }
    if (best->point != by_flags.point) best->elsewhere = by_flags;
    row = std::move(*best);
}

}  // namespace

void plan_best(const Study& study, const std::vector<CellResult>& results, Ranking& ranking, const Executor& execute,
               const planner::Time& time, const std::function<void(std::size_t, std::size_t)>& on_done) {
    for (std::size_t done = 0; done < study.planned; ++done) {
        const auto next = next_to_plan(study, ranking);
        if (!next || time.is_over()) break;
        if (on_done) on_done(done, study.planned);
        plan(study, results[ranking.rows[*next].cell], ranking.rows[*next], execute, time);
        rank_rows(study, ranking);
    }
}

}  // namespace pipeweaver::capacity
