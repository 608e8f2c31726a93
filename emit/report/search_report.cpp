// report.html of a search: how it went, and the schedule it began with above the one it ended with.
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;
using namespace report_parts;
using search::Found;

namespace {

std::string asked(const Problem& problem, const SearchAsked& asked) {
    std::string text = fmt::format("{} on {}; strategy {}, seed {}", plural(problem.tasks.size(), "task"),
                                   plural(problem.ranks.size(), "rank"), asked.strategy, asked.seed);
    if (!asked.target.empty()) text += fmt::format("; under the rules of {}", asked.target);
    if (asked.warm) text += "; begun with a given schedule";
    return escape(text + ".");
}

std::string fullest_rank(const Problem& problem, const Replay& replay) {
    const auto most = std::max_element(replay.peak.begin(), replay.peak.end());
    const auto rank = static_cast<std::size_t>(most - replay.peak.begin());
    const auto& limit = problem.ranks[rank].capacity;
    return figure("fullest rank", human(*most),
                  limit ? fmt::format("rank {}, limit {}", rank, human(*limit)) : fmt::format("rank {}", rank));
}

// Of the makespan; the schedule may be a later one that is as long.
std::string finder(const Found& found) {
    const auto& last = found.history.back();
    return last.best == found.replay.makespan ? last.found_by : found.strategy;
}

std::string figures(const Problem& problem, const Found& found) {
    const Duration makespan = found.replay.makespan;
    return figure("makespan", human(makespan), fmt::format("found by {}", finder(found))) +
           figure("start over best", times(ratio(found.first->makespan, makespan)),
                  fmt::format("began with {}: {}", found.first->strategy, human(found.first->makespan))) +
           gap_figure(makespan, found.bound, "this problem") +
           figure("rounds", std::to_string(found.rounds),
                  fmt::format("{}, ended by {}", plural(found.evaluations, "evaluation"), name_of(found.stop_reason))) +
           fullest_rank(problem, found.replay);
}

enum Part : std::size_t { forward, backward, weight, other, tail, waiting, parts };

Part part_of(TaskKind kind) {
    switch (kind) {
        case TaskKind::forward:
            return forward;
        case TaskKind::backward:
        case TaskKind::input_gradient:
            return backward;
        case TaskKind::weight_gradient:
            return weight;
        case TaskKind::other:
            break;
    }
    return other;
}

std::vector<TimePart> rank_times(const Problem& problem, const Found& found) {
    const std::vector<Duration> none(problem.ranks.size(), Duration{0});
    std::vector<TimePart> all{{"forward", 0, none}, {"backward", 1, none}, {"weight gradient", 3, none},
                              {"other", 4, none},   {"tail", 6, none},     {"waiting", waiting_color, none}};
    const auto costs = Replayer(problem).costs(found.schedule->mode);
    all[waiting].ranks.assign(none.size(), found.replay.makespan);
    const auto spend = [&](Part part, std::size_t rank, Duration time) {
        all[part].ranks[rank] += time;
        all[waiting].ranks[rank] -= time;
    };
    for (std::size_t i = 0; i < problem.tasks.size(); ++i)
        spend(part_of(problem.tasks[i].kind), index(problem.tasks[i].rank), costs[i].duration);
    for (std::size_t r = 0; r < problem.ranks.size(); ++r)
        if (!found.schedule->order[r].empty()) spend(tail, r, problem.ranks[r].tail);
    return all;
}

std::string inputs(const Problem& problem, const SearchAsked& asked, const Found& found) {
    std::vector<std::string> facts{fact("problem", problem.name), fact("strategy", asked.strategy),
                                   fact("seed", std::to_string(asked.seed))};
    if (!asked.target.empty()) facts.push_back(fact("rules of", asked.target));
    facts.push_back(fact("began with", fmt::format("{}, {}", found.first->strategy, human(found.first->makespan))));
    facts.push_back(found_fact("found", found));
    return fact_table(facts);
}

}  // namespace

std::string report(const Problem& problem, const SearchAsked& how, const Found& found) {
    const Replay first = replay(problem, found.first->schedule);
    const std::vector<Drawn> pictures{
        {"first", caption("Before", found.first->strategy, first.makespan), &problem, &found.first->schedule, &first},
        {"plan", caption("After", finder(found), found.replay.makespan), &problem, &*found.schedule, &found.replay}};
    const Duration horizon = std::max({Duration{1}, first.makespan, found.replay.makespan});
    return filled_page({{"title", escape(problem.name)},
                        {"asked", asked(problem, how)},
                        {"figures", figures(problem, found)},
                        {"horizon", fmt::format("{}", horizon.count())},
                        {"search", progress(found)},
                        {"which", ""},
                        {"which_chain", ""},
                        {"axis", axis_labels(horizon)},
                        {"schedules", schedule_pictures(pictures, horizon)},
                        {"memory", memory_pictures(pictures.back(), horizon)},
                        {"ranks", time_of_ranks(rank_times(problem, found), found.replay.makespan)},
                        {"inputs", inputs(problem, how, found)}});
}

}  // namespace pipeweaver::emit
