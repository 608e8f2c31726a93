#include "tests/support/mutate.hpp"

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/random.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <numeric>

namespace pipeweaver::testing {

namespace {

using nlohmann::json;

struct Subject {
    json& problem;
    json& solution;
    Random& random;

    std::size_t draw(std::size_t bound) { return random.below(bound); }
    std::size_t any_task() { return draw(problem["tasks"].size()); }
    json& order_of(std::size_t task) { return solution["order"][problem["tasks"][task]["rank"].get<std::size_t>()]; }
    std::size_t any_rank_in_use() { return problem["tasks"][any_task()]["rank"]; }
};

std::size_t place_of(const json& list, std::size_t task) {
    return static_cast<std::size_t>(std::find(list.begin(), list.end(), json(task)) - list.begin());
}

// Two tasks change places on their rank, and, if asked, their starts.
void swap_tasks(Subject& s, std::size_t a, std::size_t b, bool starts_too) {
    json& order = s.order_of(a);
    std::swap(order[place_of(order, a)], order[place_of(order, b)]);
    if (starts_too) std::swap(s.solution["start_ns"][a], s.solution["start_ns"][b]);
}

// Visits the list from a random element on; true as soon as `change` is.
template <class Change>
bool at_some(json& list, Subject& s, Change change) {
    const std::size_t size = list.size(), first = size > 0 ? s.draw(size) : 0;
    for (std::size_t i = 0; i < size; ++i)
        if (change(list[(first + i) % size])) return true;
    return false;
}

bool swap_across_edge(Subject& s, bool starts_too) {
    return at_some(s.problem["edges"], s, [&](const json& edge) {
        const bool one_rank = &s.order_of(edge[0]) == &s.order_of(edge[1]);
        if (one_rank) swap_tasks(s, edge[0], edge[1], starts_too);
        return one_rank;
    });
}

bool swap_neighbours(Subject& s) {
    return at_some(s.solution["order"], s, [&](json& list) {
        if (list.size() < 2) return false;
        const std::size_t place = s.draw(list.size() - 1);
        swap_tasks(s, list[place], list[place + 1], s.draw(2) == 0);
        return true;
    });
}

bool drop_task(Subject& s) {
    const std::size_t task = s.any_task();
    json& order = s.order_of(task);
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(place_of(order, task)));
    return true;
}

bool repeat_task(Subject& s) {
    const std::size_t task = s.any_task();
    s.order_of(task).push_back(task);
    return true;
}

bool unknown_task(Subject& s) {
    s.order_of(s.any_task()).push_back(s.problem["tasks"].size());
    return true;
}

bool wrong_rank(Subject& s) {
    const std::size_t ranks = s.solution["order"].size();
    if (ranks < 2) return false;
    const std::size_t task = s.any_task();
    const std::size_t other = (s.problem["tasks"][task]["rank"].get<std::size_t>() + 1 + s.draw(ranks - 1)) % ranks;
    drop_task(s);
    s.solution["order"][other].push_back(task);
    return true;
}

bool another_list(Subject& s) {
    s.solution["order"].push_back(json::array());
    return true;
}

bool start_too_early(Subject& s) {
    return at_some(s.problem["edges"], s, [&](const json& edge) {
        const auto before = s.solution["start_ns"][edge[0].get<std::size_t>()].get<std::int64_t>();
        s.solution["start_ns"][edge[1].get<std::size_t>()] = before;
        return true;
    });
}

bool start_into_next(Subject& s) {
    return at_some(s.solution["order"], s, [&](const json& list) {
        if (list.size() < 2) return false;
        const std::size_t place = s.draw(list.size() - 1);
        s.solution["start_ns"][list[place].get<std::size_t>()] =
            s.solution["start_ns"][list[place + 1].get<std::size_t>()];
        return true;
    });
}

bool start_below_zero(Subject& s) {
    s.solution["start_ns"][s.any_task()] = -1;
    return true;
}

bool start_missing(Subject& s) {
    s.solution["start_ns"].erase(s.draw(s.solution["start_ns"].size()));
    return true;
}

bool all_later(Subject& s, std::int64_t by, bool said) {
    for (json& start : s.solution["start_ns"]) start = start.get<std::int64_t>() + by;
    if (said) s.solution["makespan_ns"] = s.solution["makespan_ns"].get<std::int64_t>() + by;
    return true;
}

bool mode_unknown(Subject& s) {
    return s.solution.contains("mode") && at_some(s.solution["mode"], s, [](json& mode) { return mode = 1000, true; });
}

bool mode_other(Subject& s) {
    if (!s.solution.contains("mode") || s.solution["mode"].empty()) return false;
    const std::size_t pair = s.draw(s.solution["mode"].size());
    const std::size_t modes = s.problem["pairs"][pair]["modes"].size();
    if (modes < 2) return false;
    s.solution["mode"][pair] = (s.solution["mode"][pair].get<std::size_t>() + 1) % modes;
    return true;
}

bool add_to(json& number, std::int64_t by) {
    number = number.get<std::int64_t>() + by;
    return true;
}

bool bound_above(Subject& s) {
    s.solution["lower_bound_ns"] = s.solution["makespan_ns"].get<std::int64_t>() + 1;
    return true;
}

bool wrong_digest(Subject& s) {
    s.solution["problem_sha256"] = sha256("another problem");
    return true;
}

bool key_missing(Subject& s) {
    constexpr std::array<const char*, 6> keys{"format", "problem", "order", "start_ns", "makespan_ns", "peak_bytes"};
    s.solution.erase(keys[s.draw(keys.size())]);
    return true;
}

bool not_an_integer(Subject& s) {
    s.solution["makespan_ns"] = s.solution["makespan_ns"].get<double>() + 0.5;
    return true;
}

// ---- changes of the problem

bool capacity_below_peak(Subject& s) {
    const std::size_t rank = s.any_rank_in_use();
    const auto peak = s.solution["peak_bytes"][rank].get<std::int64_t>();
    if (peak == 0) return false;
    s.problem["ranks"][rank]["capacity_bytes"] = peak - 1;
    return true;
}

bool capacity_at_peak(Subject& s) {
    const std::size_t rank = s.any_rank_in_use();
    s.problem["ranks"][rank]["capacity_bytes"] = s.solution["peak_bytes"][rank];
    return true;
}

bool releases_more(Subject& s) {
    std::vector<bool> paired(s.problem["tasks"].size());
    if (s.problem.contains("pairs"))
        for (const json& pair : s.problem["pairs"])
            for (const char* key : {"forward", "backward", "weight"})
                if (pair.contains(key)) paired[pair[key].get<std::size_t>()] = true;
    return at_some(s.problem["tasks"], s, [&](json& task) {
        return !paired[task["id"].get<std::size_t>()] && add_to(task["release_bytes"], 1);
    });
}

bool no_duration(Subject& s) {
    s.problem["tasks"][s.any_task()]["duration_ns"] = 0;
    return true;
}

bool longer_task(Subject& s) { return add_to(s.problem["tasks"][s.any_task()]["duration_ns"], 7); }

bool edge_against_order(Subject& s) {
    return at_some(s.solution["order"], s, [&](const json& list) {
        if (list.size() < 2) return false;
        s.problem["edges"].push_back({list.back(), list.front(), 0});
        return true;
    });
}

bool edge_to_nowhere(Subject& s) {
    s.problem["edges"].push_back({0, s.problem["tasks"].size(), 0});
    return true;
}

bool long_lag(Subject& s) {
    return at_some(s.problem["edges"], s, [&](json& edge) { return add_to(edge[2], s.solution["makespan_ns"]); });
}

bool mode_zero_differs(Subject& s) {
    return s.problem.contains("pairs") &&
           at_some(s.problem["pairs"], s, [](json& pair) { return add_to(pair["modes"][0]["forward_ns"], 1); });
}

bool paired_twice(Subject& s) {
    if (!s.problem.contains("pairs") || s.problem["pairs"].empty()) return false;
    s.problem["pairs"].push_back(s.problem["pairs"][0]);
    if (!s.solution["mode"].is_null()) s.solution["mode"].push_back(0);
    return true;
}

bool longer_tail(Subject& s) {
    json& rank = s.problem["ranks"][s.any_rank_in_use()];
    rank["tail_ns"] = s.solution["makespan_ns"].get<std::int64_t>() + 1;
    return true;
}

bool ids_shifted(Subject& s) { return add_to(s.problem["tasks"][s.any_task()]["id"], 1); }

struct Kind {
    std::string_view name;
    Expect expect;
    bool (*apply)(Subject&);
};

constexpr auto refused = Expect::refused;

constexpr std::array kinds{
    Kind{"swap two tasks across an edge", refused, [](Subject& s) { return swap_across_edge(s, false); }},
    Kind{"swap two tasks and their starts across an edge", refused,
         [](Subject& s) { return swap_across_edge(s, true); }},
    Kind{"swap two neighbours", Expect::either, swap_neighbours},
    Kind{"drop a task", refused, drop_task},
    Kind{"repeat a task", refused, repeat_task},
    Kind{"run an unknown task", refused, unknown_task},
    Kind{"run a task on a wrong rank", refused, wrong_rank},
    Kind{"give a list too many", refused, another_list},
    Kind{"start before a predecessor ends", refused, start_too_early},
    Kind{"start with the next task", refused, start_into_next},
    Kind{"start below zero", refused, start_below_zero},
    Kind{"leave out a start", refused, start_missing},
    Kind{"start all later and say so", Expect::accepted, [](Subject& s) { return all_later(s, 5, true); }},
    Kind{"start all later silently", refused, [](Subject& s) { return all_later(s, 5, false); }},
    Kind{"name an unknown mode", refused, mode_unknown},
    Kind{"take another mode without new times", Expect::either, mode_other},
    Kind{"claim a longer makespan", refused, [](Subject& s) { return add_to(s.solution["makespan_ns"], 1); }},
    Kind{"claim a shorter makespan", refused, [](Subject& s) { return add_to(s.solution["makespan_ns"], -1); }},
    Kind{"claim another peak", refused, [](Subject& s) { return add_to(s.solution["peak_bytes"][0], -1); }},
    Kind{"claim a bound above the makespan", refused, bound_above},
    Kind{"claim no bound", Expect::accepted, [](Subject& s) { return s.solution["lower_bound_ns"] = nullptr, true; }},
    Kind{"name another problem's digest", refused, wrong_digest},
    Kind{"name another problem", refused, [](Subject& s) { return s.solution["problem"] = "another", true; }},
    Kind{"name another format", refused,
         [](Subject& s) { return s.solution["format"] = "pipeweaver-solution/2", true; }},
    Kind{"leave out a key", refused, key_missing},
    Kind{"give a makespan with a fraction", refused, not_an_integer},
    Kind{"lower a capacity below the peak", refused, capacity_below_peak},
    Kind{"lower a capacity to the peak", Expect::accepted, capacity_at_peak},
    Kind{"give back more than was taken", refused, releases_more},
    Kind{"let a task take no time", refused, no_duration},
    Kind{"let a task take longer", Expect::either, longer_task},
    Kind{"add an edge against the order", refused, edge_against_order},
    Kind{"add an edge to nowhere", refused, edge_to_nowhere},
    Kind{"lengthen a lag beyond the makespan", refused, long_lag},
    Kind{"let mode 0 differ from its tasks", refused, mode_zero_differs},
    Kind{"put a task into two pairs", refused, paired_twice},
    Kind{"lengthen a tail", refused, longer_tail},
    Kind{"give a task another id", refused, ids_shifted},
};

}  // namespace

std::size_t mutation_kinds() { return kinds.size(); }
std::string_view mutation_name(std::size_t kind) { return kinds.at(kind).name; }
Expect mutation_expects(std::size_t kind) { return kinds.at(kind).expect; }

std::optional<Instance> mutate(const Instance& instance, std::size_t kind, std::uint64_t seed) {
    json problem = json::parse(instance.problem), solution = json::parse(instance.solution);
    const json before = problem;
    Random random(seed, kind);
    Subject subject{problem, solution, random};
    if (!kinds.at(kind).apply(subject)) return std::nullopt;
    if (problem != before && solution.contains("problem_sha256")) solution["problem_sha256"] = sha256(problem.dump());
    return Instance{problem.dump(), solution.dump()};
}

}  // namespace pipeweaver::testing
