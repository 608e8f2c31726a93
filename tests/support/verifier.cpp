#include "tests/support/verifier.hpp"

#include "pipeweaver/base/files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace pipeweaver::testing {

namespace {

using nlohmann::json;
using Count = std::int64_t;
__extension__ using Wide = __int128;

struct Violation {
    std::string message;
};

template <class... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
    if (!condition) throw Violation{fmt::format(format, std::forward<Args>(args)...)};
}

// Above any real time (73 years) and memory (2 EiB), and small enough that no sum of three can overflow.
constexpr Count most = Count{1} << 61;

bool is_count(const json& value) {
    if (value.is_number_unsigned()) return value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
    return value.is_number_integer() && value.get<Count>() >= 0;
}

Count count(const json& value, std::string_view what) {
    require(is_count(value), "{} is {}, not an integer from 0 to {}", what, value.dump(), most);
    return value.get<Count>();
}

std::size_t id(const json& value, std::size_t size, std::string_view what) {
    const Count number = count(value, what);
    require(static_cast<std::size_t>(number) < size, "{} is {}, there are {}", what, number, size);
    return static_cast<std::size_t>(number);
}

// A missing member and null are the same where the format calls a key optional.
const json* optional_member(const json& object, const char* key) {
    const auto member = object.find(key);
    return member == object.end() || member->is_null() ? nullptr : &*member;
}

struct Cost {
    Count duration, acquired, released;
    friend bool operator==(const Cost&, const Cost&) = default;
};

struct Lane {
    Count base, tail;
    std::optional<Count> capacity;
};

struct Arc {
    std::size_t from, to;
    Count lag;
};

struct Group {
    std::vector<std::size_t> tasks;        // in the order in which they must run
    std::vector<std::vector<Cost>> modes;  // per mode, per task
};

struct Facts {
    std::vector<Lane> lanes;
    std::vector<std::size_t> lane_of;  // per task
    std::vector<Cost> costs;           // per task
    std::vector<Arc> arcs;
    std::vector<Group> groups;
};

void read_lanes(const json& problem, Facts& facts) {
    for (const json& rank : problem.at("ranks")) {
        Lane lane{count(rank.at("base_bytes"), "base_bytes"), 0, std::nullopt};
        const json& capacity = rank.at("capacity_bytes");
        if (!capacity.is_null()) lane.capacity = count(capacity, "capacity_bytes");
        if (rank.contains("tail_ns")) lane.tail = count(rank.at("tail_ns"), "tail_ns");
        facts.lanes.push_back(lane);
    }
}

void read_tasks(const json& problem, Facts& facts) {
    static const std::set<std::string> kinds{"F", "B", "I", "W", "X"};
    for (const json& task : problem.at("tasks")) {
        require(task.at("id") == facts.costs.size(), "task {} has the id {}", facts.costs.size(), task.at("id").dump());
        require(task.at("kind").is_string() && kinds.contains(task.at("kind")), "unknown kind {}",
                task.at("kind").dump());
        facts.lane_of.push_back(id(task.at("rank"), facts.lanes.size(), "a task's rank"));
        facts.costs.push_back({count(task.at("duration_ns"), "duration_ns"),
                               count(task.at("acquire_bytes"), "acquire_bytes"),
                               count(task.at("release_bytes"), "release_bytes")});
        require(facts.costs.back().duration > 0, "task {} takes no time", facts.costs.size() - 1);
    }
}

void read_arcs(const json& problem, Facts& facts) {
    for (const json& edge : problem.at("edges")) {
        require(edge.is_array() && edge.size() == 3, "edge {} is not [from, to, lag]", edge.dump());
        const Arc arc{id(edge[0], facts.costs.size(), "an edge's task"),
                      id(edge[1], facts.costs.size(), "an edge's task"), count(edge[2], "a lag")};
        require(arc.from != arc.to, "edge {} joins a task with itself", edge.dump());
        facts.arcs.push_back(arc);
    }
}

std::vector<Cost> mode_costs(const json& mode, bool split) {
    const auto value = [&](const char* key) { return count(mode.at(key), key); };
    const Count passing = mode.contains("forward_transient_bytes") ? value("forward_transient_bytes") : 0;
    const Count kept = split ? value("kept_bytes") : 0;
    const Count held = value("held_bytes"), transient = value("transient_bytes");
    std::vector<Cost> costs{{value("forward_ns"), held + passing, passing},
                            {value("backward_ns"), transient, held + transient - kept}};
    if (split) costs.push_back({value("weight_ns"), 0, kept});
    for (const Cost& cost : costs)
        require(cost.duration > 0 && cost.released >= 0, "mode {} takes no time or gives back less than nothing",
                mode.dump());
    return costs;
}

void read_groups(const json& problem, Facts& facts) {
    const json* pairs = optional_member(problem, "pairs");
    if (pairs == nullptr) return;
    std::set<std::size_t> seen;
    for (const json& pair : *pairs) {
        Group group;
        for (const char* key : {"forward", "backward", "weight"}) {
            if (key == std::string_view("weight") && optional_member(pair, key) == nullptr) continue;
            group.tasks.push_back(id(pair.at(key), facts.costs.size(), "a pair's task"));
            require(seen.insert(group.tasks.back()).second, "task {} is paired twice", group.tasks.back());
            require(facts.lane_of[group.tasks.back()] == facts.lane_of[group.tasks.front()],
                    "the pair of task {} is on two ranks", group.tasks.front());
        }
        for (const json& mode : pair.at("modes")) group.modes.push_back(mode_costs(mode, group.tasks.size() == 3));
        require(!group.modes.empty(), "the pair of task {} has no mode", group.tasks.front());
        for (std::size_t i = 0; i < group.tasks.size(); ++i)
            require(facts.costs[group.tasks[i]] == group.modes[0][i], "mode 0 differs from task {}", group.tasks[i]);
        facts.groups.push_back(std::move(group));
    }
}

Facts read_facts(const json& problem) {
    require(problem.at("format") == "pipeweaver-problem/1", "the problem's format is {}", problem.at("format").dump());
    Facts facts;
    read_lanes(problem, facts);
    read_tasks(problem, facts);
    require(!facts.lanes.empty() && !facts.costs.empty(), "there is no rank or no task");
    read_arcs(problem, facts);
    read_groups(problem, facts);
    return facts;
}

using Order = std::vector<std::vector<std::size_t>>;

Order read_order(const json& solution, const Facts& facts) {
    const json& lists = solution.at("order");
    require(lists.is_array() && lists.size() == facts.lanes.size(), "order has {} lists for {} ranks", lists.size(),
            facts.lanes.size());
    std::map<std::size_t, std::size_t> place;  // task -> position on its rank
    Order order;
    for (const json& list : lists) {
        require(list.is_array(), "order holds {}, not a list", list.dump());
        order.emplace_back();
        for (const json& entry : list) {
            const std::size_t task = id(entry, facts.costs.size(), "order: a task");
            require(facts.lane_of[task] + 1 == order.size(), "task {} is on rank {}", task, order.size() - 1);
            require(place.emplace(task, order.back().size()).second, "task {} occurs twice", task);
            order.back().push_back(task);
        }
    }
    require(place.size() == facts.costs.size(), "{} tasks are missing", facts.costs.size() - place.size());
    for (const Group& group : facts.groups)
        for (std::size_t i = 1; i < group.tasks.size(); ++i)
            require(place[group.tasks[i - 1]] < place[group.tasks[i]], "task {} runs before task {}", group.tasks[i],
                    group.tasks[i - 1]);
    return order;
}

void choose_modes(const json& solution, Facts& facts) {
    const json* modes = optional_member(solution, "mode");
    if (modes == nullptr) return;
    require(modes->is_array() && modes->size() == facts.groups.size(), "{} modes for {} pairs", modes->size(),
            facts.groups.size());
    for (std::size_t k = 0; k < facts.groups.size(); ++k) {
        const Group& group = facts.groups[k];
        const std::size_t chosen = id((*modes)[k], group.modes.size(), "mode: a pair's mode");
        for (std::size_t i = 0; i < group.tasks.size(); ++i) facts.costs[group.tasks[i]] = group.modes[chosen][i];
    }
}

// Lets the clock run: at every moment at which something ends or arrives, each free rank starts its next task if all
// that it waits for is there.
std::vector<Count> simulate(const Facts& facts, const Order& order) {
    const std::size_t tasks = facts.costs.size();
    std::vector<std::vector<const Arc*>> out(tasks);
    std::vector<std::size_t> waits(tasks), next(order.size());
    std::vector<Wide> arrival(tasks), free(order.size());
    std::vector<Count> start(tasks);
    for (const Arc& arc : facts.arcs) {
        out[arc.from].push_back(&arc);
        ++waits[arc.to];
    }
    std::priority_queue<Wide, std::vector<Wide>, std::greater<>> moments;
    moments.push(0);
    std::size_t started = 0;
    while (!moments.empty()) {
        const Wide now = moments.top();
        require(now <= most, "the schedule is longer than {} ns", most);
        while (!moments.empty() && moments.top() == now) moments.pop();
        for (std::size_t r = 0; r < order.size(); ++r) {
            if (next[r] == order[r].size() || free[r] > now) continue;
            const std::size_t task = order[r][next[r]];
            if (waits[task] > 0 || arrival[task] > now) continue;
            ++next[r];
            ++started;
            start[task] = static_cast<Count>(now);
            free[r] = now + facts.costs[task].duration;
            moments.push(free[r]);
            for (const Arc* arc : out[task]) {
                --waits[arc->to];
                arrival[arc->to] = std::max(arrival[arc->to], free[r] + arc->lag);
                moments.push(free[r] + arc->lag);
            }
        }
    }
    require(started == tasks, "deadlock: {} tasks never start", tasks - started);
    return start;
}

std::vector<Count> read_starts(const json& solution, const Facts& facts, const Order& order) {
    const json& list = solution.at("start_ns");
    require(list.is_array() && list.size() == facts.costs.size(), "{} starts for {} tasks", list.size(),
            facts.costs.size());
    std::vector<Count> start;
    for (const json& entry : list) start.push_back(count(entry, "a start"));
    const auto end = [&](std::size_t task) { return Wide{start[task]} + facts.costs[task].duration; };
    for (const auto& sequence : order)
        for (std::size_t i = 1; i < sequence.size(); ++i)
            require(start[sequence[i]] >= end(sequence[i - 1]), "task {} starts before task {} ends", sequence[i],
                    sequence[i - 1]);
    for (const Arc& arc : facts.arcs)
        require(start[arc.to] >= end(arc.from) + arc.lag, "task {} starts before task {} and the lag allow", arc.to,
                arc.from);
    return start;
}

std::vector<Count> memory_peaks(const Facts& facts, const std::vector<Count>& start) {
    // (rank, time, ends first, change); negative changes of one moment come first too, which changes no verdict.
    std::vector<std::tuple<std::size_t, Wide, int, Count, std::size_t>> events;
    for (std::size_t i = 0; i < start.size(); ++i) {
        events.emplace_back(facts.lane_of[i], start[i], 1, facts.costs[i].acquired, i);
        events.emplace_back(facts.lane_of[i], Wide{start[i]} + facts.costs[i].duration, 0, -facts.costs[i].released, i);
    }
    std::sort(events.begin(), events.end());
    std::vector<Count> peaks;
    std::vector<Wide> used;
    for (const Lane& lane : facts.lanes) {
        require(!lane.capacity || lane.base <= *lane.capacity, "rank {}: the base exceeds the capacity", peaks.size());
        peaks.push_back(lane.base);
        used.push_back(lane.base);
    }
    for (const auto& [rank, time, starts, change, task] : events) {
        const Lane& lane = facts.lanes[rank];
        used[rank] += change;
        require(used[rank] >= lane.base, "rank {}: task {} gives back more than was taken", rank, task);
        require(used[rank] <= lane.capacity.value_or(most), "rank {}: task {} exceeds the capacity", rank, task);
        peaks[rank] = std::max(peaks[rank], static_cast<Count>(used[rank]));
    }
    return peaks;
}

Count makespan(const Facts& facts, const std::vector<Count>& start) {
    Wide last = 0;
    for (std::size_t i = 0; i < start.size(); ++i)
        last = std::max(last, Wide{start[i]} + facts.costs[i].duration + facts.lanes[facts.lane_of[i]].tail);
    return static_cast<Count>(last);
}

void check_names(const json& problem, const json& solution) {
    require(solution.at("format") == "pipeweaver-solution/1", "the solution's format is {}",
            solution.at("format").dump());
    require(solution.at("problem") == problem.at("name"), "the solution is for {}, the problem is {}",
            solution.at("problem").dump(), problem.at("name").dump());
    const json* digest = optional_member(solution, "problem_sha256");
    require(digest == nullptr || *digest == sha256(problem.dump()), "problem_sha256 is not that of this problem");
}

void check_claims(const json& solution, const Verdict& verdict) {
    require(solution.at("makespan_ns").is_number_integer() && solution.at("makespan_ns") == verdict.makespan_ns,
            "makespan_ns is {}, the tasks end at {}", solution.at("makespan_ns").dump(), verdict.makespan_ns);
    const json& peaks = solution.at("peak_bytes");
    require(peaks == json(verdict.peak_bytes), "peak_bytes is {}, recomputed {}", peaks.dump(),
            fmt::join(verdict.peak_bytes, ","));
}

void check(const json& problem, const json& solution, Check mode, Verdict& verdict) {
    Facts facts = read_facts(problem);
    check_names(problem, solution);
    const Order order = read_order(solution, facts);
    choose_modes(solution, facts);
    verdict.start_ns = mode == Check::replay ? simulate(facts, order) : read_starts(solution, facts, order);
    verdict.peak_bytes = memory_peaks(facts, verdict.start_ns);
    verdict.makespan_ns = makespan(facts, verdict.start_ns);
    if (mode == Check::everything) check_claims(solution, verdict);
    const json* bound = optional_member(solution, "lower_bound_ns");
    if (bound == nullptr) return;
    verdict.lower_bound_ns = count(*bound, "lower_bound_ns");
    require(*verdict.lower_bound_ns <= verdict.makespan_ns, "lower_bound_ns {} exceeds the makespan {}",
            *verdict.lower_bound_ns, verdict.makespan_ns);
}

}  // namespace

Verdict verify(std::string_view problem, std::string_view solution, Check mode) {
    Verdict verdict;
    try {
        check(json::parse(problem), json::parse(solution), mode, verdict);
        verdict.ok = true;
    } catch (const Violation& violation) {
        verdict.violation = violation.message;
    } catch (const json::exception& error) {
        verdict.violation = fmt::format("malformed file: {}", error.what());
    }
    return verdict;
}

std::string line(const Verdict& verdict) {
    if (!verdict.ok) return fmt::format("violation: {}", verdict.violation);
    std::string gap = "unknown";
    if (verdict.lower_bound_ns.value_or(0) > 0) {
        const auto bound = static_cast<double>(*verdict.lower_bound_ns);
        const auto above = static_cast<double>(verdict.makespan_ns - *verdict.lower_bound_ns);
        gap = fmt::format("{:.3f}%", 100 * above / bound);
    }
    return fmt::format("ok makespan_ns={} gap={} peak={}", verdict.makespan_ns, gap,
                       fmt::join(verdict.peak_bytes, ","));
}

}  // namespace pipeweaver::testing
