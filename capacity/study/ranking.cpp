#include "pipeweaver/capacity/ranking.hpp"

#include "capacity/study/row_options.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/emulator/uncertainty.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

namespace pipeweaver::capacity {

namespace {

// None where no network is known, or its domains hold no tensor parallel group.
std::optional<FaultColumns> faults_of(const Study& study, const Cell& cell, const emulator::Layout& layout) {
    if (study.faulty == 0) return std::nullopt;
    const auto network = workloads::network_of(cell.machine);
    if (!network || cell.gpus % network->node != 0 || why_no_group(*network, layout.tp)) return std::nullopt;
    return fault_columns({.network = *network, .gpus = cell.gpus, .faulty = study.faulty, .tp = layout.tp});
}

// By what a row is cheap: USD, else GPU-hours, else GPUs times step.
double cost_of(const Study& study, const Ranking& ranking, const Row& row) {
    if (row.pace.run) return ranking.has_prices ? *row.pace.run->usd : row.pace.run->gpu_hours;
    return static_cast<double>(study.cells[row.cell].gpus) * static_cast<double>(row.step().count());
}

// By what it is soon.
double time_of(const Row& row) { return row.pace.run ? row.pace.run->days : static_cast<double>(row.step().count()); }

bool meets(const Constraints& limits, const Row& row, double factor) {
    const auto& run = row.pace.run;
    if (!run) return true;
    if (limits.days && run->days * factor > *limits.days) return false;
    return !(limits.usd && run->usd && *run->usd * factor > *limits.usd);
}

void judge_by_step(const Study& study, const CellFacts& facts, Row& row) {
    row.pace = pace_of(study, study.cells[row.cell], facts, row.step());
    row.meets = meets(study.constraints, row, 1);
    row.at_risk = row.meets && !meets(study.constraints, row, 1 + row.error_percent / 100);
}

Row row_of(const Study& study, const CellResult& result, std::size_t place) {
    const Cell& cell = study.cells[result.cell];
    const Point& point = result.points[place];
    Row row{.cell = result.cell, .point = place, .flags_step = point.step};
    row.memory_left = result.facts.usable - point.memory;
    row.error_percent = result.facts.error_percent;
    row.command = options_of(cell, point.as).command("pipeweaver plan");
    row.faults = faults_of(study, cell, point.as.layout);
    judge_by_step(study, result.facts, row);
    return row;
}

std::optional<std::size_t> fastest_point(const CellResult& result) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        if (result.points[i].status != PointStatus::judged) continue;
        if (!best || result.points[i].step < result.points[*best].step) best = i;
    }
    return best;
}

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

// Which constraint binds the run of a cell that comes closest.
std::string nearest_text(const Study& study, std::size_t cell, const planner::TrainingCost& run,
                         std::string_view at_least) {
    const Constraints& limits = study.constraints;
    const bool days_bind = limits.days && run.days / *limits.days >= most_missed(limits, run);
    const std::string what =
        days_bind
            ? fmt::format("days bind: it takes {}{:.1f}, allowed are {:g}", at_least, run.days, *limits.days)
            : fmt::format("budget-usd binds: it takes {}{:.0f}, allowed are {:.0f}", at_least, *run.usd, *limits.usd);
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
    double cost(const Row& row) const { return cost_of(study_, ranking_, row); }

    std::tuple<bool, double, double, std::size_t> order(const Row& row) const {
        return {!row.meets, cost(row), time_of(row), row.cell};
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
            if (better(answers.fewest, [&](const Row& row) { return std::tuple(gpus(row), cost(row)); }))
                answers.fewest = i;
            if (better(answers.fastest, [&](const Row& row) { return std::tuple(time_of(row), cost(row)); }))
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

}  // namespace

Pace pace_of(const Study& study, const Cell& cell, const CellFacts& facts, Duration step) {
    const workloads::Cluster& cluster = cell.machine;
    const double seconds = static_cast<double>(step.count()) * 1e-9, gpus = static_cast<double>(cell.gpus);
    Pace pace;
    pace.tokens_per_second = static_cast<double>(facts.tokens) / seconds;
    pace.tokens_per_second_per_gpu = pace.tokens_per_second / gpus;
    pace.samples_per_second = static_cast<double>(facts.samples) / seconds;
    pace.tflops_per_gpu = facts.model_flops / seconds / gpus * 1e-12;
    pace.mfu = facts.model_flops / (seconds * gpus * workloads::device(cluster.device).bf16_flops);
    if (study.training_tokens > 0)
        pace.run = planner::training_cost(study.training_tokens, step, facts.tokens, cluster);
    return pace;
}

namespace {

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
    Ranker(study, ranking).run();
    if (ranking.rows.empty()) ranking.none_meets = why_none(study, results);
    return ranking;
}

namespace {

// A row that is too late by launch flags may be in time by a searched schedule, which seldom takes less than this part
// of theirs.
constexpr double most_gained = 1.25;

// Of the rows that miss the constraints, but may meet them when planned, and would then be on fewer GPUs or cheaper
// than the answers by now: the one that misses them by least.
std::optional<std::size_t> nearly_an_answer(const Study& study, const Ranking& ranking) {
    std::optional<std::size_t> nearest;
    const auto gpus = [&](std::size_t i) { return study.cells[ranking.rows[i].cell].gpus; };
    const auto cost = [&](std::size_t i) { return cost_of(study, ranking, ranking.rows[i]); };
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

// Of the cell's points with a pipeline the fastest by launch flags, if a searched order may make it faster than `step`.
std::optional<std::size_t> pipelined_point(const CellResult& result, Duration step) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        const Point& point = result.points[i];
        if (point.status != PointStatus::judged || point.as.layout.pp == 1) continue;
        if (!best || point.step < result.points[*best].step) best = i;
    }
    const bool may_win = best && static_cast<double>(result.points[*best].step.count()) <
                                     most_gained * static_cast<double>(step.count());
    return may_win ? best : std::nullopt;
}

// Plans a row; of one without a pipeline also the cell's best layout that has one, which becomes the row's where it is
// faster: an order to search is where most is gained.
void plan(const Study& study, const CellResult& result, Row& row, const Executor& execute, const planner::Time& time) {
    std::vector<std::size_t> points{row.point};
    if (result.points[row.point].as.layout.pp == 1)
        if (const auto other = pipelined_point(result, row.flags_step)) points.push_back(*other);
    std::optional<Row> best;
    for (const std::size_t point : points) {
        Row tried = point == row.point ? row : row_of(study, result, point);
        plan_row(study.cells[row.cell], result.points[point].as, tried, execute, time);
        if (tried.planned) tried.memory_left = result.facts.usable - tried.planned->memory;
        judge_by_step(study, result.facts, tried);
        if (!best || (tried.planned && tried.step() < best->step())) best = std::move(tried);
    }
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
        Ranker(study, ranking).run();
    }
}

}  // namespace pipeweaver::capacity
