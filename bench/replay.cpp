// pipeweaver bench replay: how fast the search times an order, beside a longest path written by hand.
#include "apps/bench_commands.hpp"
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "bench/benches.hpp"
#include "bench/measure.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/search/search.hpp"
#include "search/instance/incremental_schedule.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace pipeweaver::bench {

using namespace apps;

namespace {

// The least that finds a makespan: a ready topological order, arrays of durations and of predecessors (those that the
// order on a rank implies left out, as the search does), one pass. Shares nothing with the search.
struct ByHand {
    std::vector<std::uint32_t> order, rank, first, from;
    std::vector<std::int64_t> lag, duration, tail, end, clock;

    ByHand(const schedule::Problem& problem, const std::vector<std::uint32_t>& sequence,
           const std::vector<schedule::TaskCost>& costs)
        : order(sequence), first(problem.tasks.size() + 1), end(problem.tasks.size()), clock(problem.ranks.size()) {
        for (const auto& task : problem.tasks) rank.push_back(static_cast<std::uint32_t>(task.rank));
        for (const auto& cost : costs) duration.push_back(cost.duration.count());
        for (const auto& one : problem.ranks) tail.push_back(one.tail.count());
        std::vector<schedule::Edge> kept;
        for (const auto& edge : problem.edges)
            if (rank[index(edge.from)] != rank[index(edge.to)] || edge.lag.count() > 0) kept.push_back(edge);
        std::stable_sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.to < b.to; });
        for (const auto& edge : kept) {
            ++first[index(edge.to) + 1];
            from.push_back(static_cast<std::uint32_t>(edge.from));
            lag.push_back(edge.lag.count());
        }
        for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    }

    std::int64_t makespan() {
        std::fill(clock.begin(), clock.end(), 0);
        for (const std::uint32_t task : order) {
            std::int64_t start = clock[rank[task]];
            for (std::uint32_t k = first[task]; k < first[task + 1]; ++k)
                start = std::max(start, end[from[k]] + lag[k]);
            clock[rank[task]] = end[task] = start + duration[task];
        }
        std::int64_t latest = 0;
        for (std::size_t r = 0; r < clock.size(); ++r)
            if (clock[r] > 0) latest = std::max(latest, clock[r] + tail[r]);
        return latest;
    }
};

// Random swaps of neighbours, insertions, and insertions far away; half of those that can be done are kept.
class Moves {
public:
    Moves(const search::Flat& flat, const search::IncrementalSchedule& from)
        : flat_(flat), current_(flat), longest_(longest(from)) {
        current_.copy(from);
    }

    // As a search asks: what is longer than a hundredth above the beginning is of no interest.
    void limited() { one(longest_); }
    void in_full() { one(INT64_MAX); }

    std::uint64_t done() const { return done_; }
    const search::IncrementalSchedule& current() const { return current_; }

private:
    static std::int64_t longest(const search::IncrementalSchedule& current) {
        return current.energy().makespan + current.energy().makespan / 100;
    }

    void one(std::int64_t limit) {
        Random random(1, number_++);
        const auto task = static_cast<std::uint32_t>(random.below(flat_.tasks()));
        const std::uint64_t reach = std::array<std::uint64_t, 4>{1, 1, 8, 40}[random.below(4)];
        const auto by = static_cast<std::int64_t>(1 + random.below(reach));
        const bool earlier = random.below(2) == 0;
        const std::uint32_t other = current_.neighbour(task, earlier ? -by : by);
        if (other == UINT32_MAX) return;
        if (!(earlier ? current_.propose_before(task, other, limit) : current_.propose_after(task, other, limit)))
            return;
        ++done_;
        if (limit < INT64_MAX && random.below(2) == 0)
            current_.keep();
        else
            current_.take_back();
    }

    const search::Flat& flat_;
    search::IncrementalSchedule current_;
    std::int64_t longest_;
    std::uint64_t number_ = 0, done_ = 0;
};

struct Speeds {
    std::string name;
    std::size_t tasks = 0;
    // Per second of CPU time, medians over the rounds: tasks timed, tasks replayed, moves.
    double by_hand = 0, full = 0, limited = 0, in_full = 0;
    // Medians of the rounds' ratios.
    double full_over_by_hand = 0, limited_over_full = 0, in_full_over_full = 0;
    double done = 0;  // of the moves in full: those that fit and closed no cycle
};

constexpr int replay_rounds = 15;
constexpr double seconds_of_a_rate = 0.004;  // of each of the four in a round

void require_equal(const std::string& name, std::int64_t by_hand, std::int64_t current) {
    if (by_hand != current) fail(ErrorKind::limit, "{}: by hand {} ns, by the search {} ns", name, by_hand, current);
}

Speeds measure(const schedule::Problem& problem) {
    const schedule::Replayer replayer(problem);
    const search::Flat flat(replayer);
    search::Options options;
    options.max_rounds = 0;
    const auto found = search::solve(replayer, options, in_order);
    if (!found.schedule) fail(ErrorKind::limit, "{}: {}", problem.name, found.why_not);
    const auto& mode = found.schedule->mode;
    std::vector<std::uint32_t> sequence(problem.tasks.size());
    for (std::uint32_t i = 0; i < sequence.size(); ++i) sequence[i] = flat.topological[i];
    std::stable_sort(sequence.begin(), sequence.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return found.replay.start[a] < found.replay.start[b]; });

    ByHand by_hand(problem, sequence, replayer.costs(mode));
    search::FlatReplay full(flat);
    search::IncrementalSchedule current(flat);
    current.load(sequence, mode);
    Moves limited(flat, current), in_full(flat, current);
    std::vector<double> rates[4], ratios[3];
    std::uint64_t tried = 0;
    for (int round = 0; round < replay_rounds; ++round) {
        std::int64_t makespan = 0;
        const double tasks = static_cast<double>(problem.tasks.size());
        const double a = rate([&] { makespan = by_hand.makespan(); }, seconds_of_a_rate);
        const double b = rate([&] { full.replay(sequence, mode); }, seconds_of_a_rate);
        require_equal(problem.name, makespan, full.energy().makespan);
        const double c = rate([&] { limited.limited(); }, seconds_of_a_rate);
        const double d = rate([&] { in_full.in_full(), ++tried; }, seconds_of_a_rate);
        require_equal(problem.name, ByHand(problem, limited.current().sequence(), replayer.costs(mode)).makespan(),
                      limited.current().energy().makespan);
        for (const auto& [k, value] : {std::pair(0, a * tasks), {1, b * tasks}, {2, c}, {3, d}})
            rates[k].push_back(value);
        for (const auto& [k, value] : {std::pair(0, b / a), {1, c / b}, {2, d / b}}) ratios[k].push_back(value);
    }
    return {problem.name,      problem.tasks.size(),
            median(rates[0]),  median(rates[1]),
            median(rates[2]),  median(rates[3]),
            median(ratios[0]), median(ratios[1]),
            median(ratios[2]), static_cast<double>(in_full.done()) / static_cast<double>(tried)};
}

struct BenchReplay {
    explicit BenchReplay(CLI::App& app) {
        add_operands(app, "problems", operands, "FILE",
                     "problem files (pipeweaver-problem/1), gzip allowed, or folders of them");
        console.add_to(app);
    }

    void run() {
        if (operands.empty()) fail_missing("PROBLEMS", "problem files or folders of them");
        for (const std::string& operand : operands) {
            if (!std::filesystem::is_directory(operand)) add(operand);
            if (std::filesystem::is_directory(operand))
                for (const auto& path : problem_files(operand)) add(path);
        }
        if (console.json) return print_json();
        fmt::print("{:<28} {:>6} {:>12} {:>12} {:>8} {:>14} {:>8} {:>14} {:>8}\n", "problem", "tasks", "by hand/s",
                   "replayed/s", "ratio", "moves/s", "ratio", "in full/s", "ratio");
        for (const Speeds& one : results)
            fmt::print("{:<28} {:>6} {:>11.1f}M {:>11.1f}M {:>8.2f} {:>13.2f}M {:>8.1f} {:>13.2f}M {:>8.1f}\n",
                       one.name, one.tasks, one.by_hand / 1e6, one.full / 1e6, one.full_over_by_hand, one.limited / 1e6,
                       one.limited_over_full, one.in_full / 1e6, one.in_full_over_full);
        fmt::print(
            "\nmedian: a full replay is {:.2f} as fast as by hand; in the time of one, {:.1f} moves under a limit "
            "or {:.1f} in full\n",
            of(&Speeds::full_over_by_hand), of(&Speeds::limited_over_full), of(&Speeds::in_full_over_full));
    }

    void add(const std::filesystem::path& path) { results.push_back(measure(schedule::read_problem(path).problem)); }

    double of(double Speeds::*figure) const {
        std::vector<double> values;
        for (const Speeds& one : results) values.push_back(one.*figure);
        return median(values);
    }

    void print_json() const {
        nlohmann::ordered_json json{{"instances", nlohmann::ordered_json::array()}};
        for (const Speeds& one : results)
            json["instances"].push_back({{"name", one.name},
                                         {"tasks", one.tasks},
                                         {"by_hand_tasks_per_s", one.by_hand},
                                         {"replayed_tasks_per_s", one.full},
                                         {"replay_over_by_hand", one.full_over_by_hand},
                                         {"moves_per_s", one.limited},
                                         {"moves_over_replay", one.limited_over_full},
                                         {"moves_in_full_per_s", one.in_full},
                                         {"moves_in_full_over_replay", one.in_full_over_full},
                                         {"moves_done_share", one.done}});
        json["replay_over_by_hand_median"] = of(&Speeds::full_over_by_hand);
        json["moves_over_replay_median"] = of(&Speeds::limited_over_full);
        json["moves_in_full_over_replay_median"] = of(&Speeds::in_full_over_full);
        fmt::print("{}\n", json.dump());
    }

    Console console;
    std::vector<std::string> operands;
    std::vector<Speeds> results;
};

}  // namespace

void add_replay(CLI::App& program) {
    add_command<BenchReplay>(
        program, "replay", about_bench("replay"),
        {.synopsis = "FILE... [OPTION...]",
         .description =
             "Times, by turns in one run and in CPU time: a longest path written by hand over flat arrays, in a "
             "ready topological order; the search's replay of the same order, which besides the times finds the "
             "memory of all ranks; and the search's evaluation of random moves (swaps of neighbours, insertions, "
             "insertions far away), once under a limit 1 % above the makespan, as a search asks, and once without "
             "one, so that every move is followed to its end. Moves that do not fit count.\n"
             "'ratio' is the replay over the one by hand, in tasks; and moves over full replays.",
         .examples = {{"The problem of a plan", "pipeweaver bench replay plan/replica-000"},
                      {"For a program to read", "pipeweaver bench replay plan/replica-000 --json"}},
         .files = {{"FILE", "pipeweaver-problem/1, or a folder: its problem files"}},
         .see_also = {"pipeweaver bench search"}});
}

}  // namespace pipeweaver::bench
