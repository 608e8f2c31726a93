// The numbers of the search that were found by experiment: sizes of rounds, shares, temperatures, limits of effort.
// Changing one changes results, never correctness. README.md says what they were tried on.
//
// Work         is counted in tasks looked at, so that a round takes about 10 ms whatever the size of the problem.
// Random draws "one in n" stands for random.below(n) == 0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pipeweaver::search {

/// Rounds of the default strategy's engine (improve/engine.hpp).
struct EngineTuning {
    std::size_t slots = 8;
    /// In short problems without memory modes what a search ends at depends on where it began: twice as many slots,
    /// each with half of the work.
    std::uint32_t short_problem = 500;
    std::size_t stagger_slots = 2;              ///< twice as many for several models
    std::uint64_t first_starts_work = 500'000;  ///< tasks times initial schedules of round 0,
    std::uint64_t starts_work = 40'000;         ///< and of each round after it, until all were tried
    std::uint32_t less_memory_tasks = 2'500;    ///< of more, list policies are not tried under less memory
    /// The group search ends after so many rounds without a better one, of one model or several; in problems of more
    /// tasks after fewer in proportion.
    std::uint64_t group_patience = 5, group_patience_of_several = 25;
    std::uint64_t group_patience_tasks = 3600;
    std::uint64_t most_group_rounds = 60;
    std::uint64_t group_tasks = 1500;  ///< problems of more tasks have fewer group rounds in proportion
    /// Between cycles of annealing it goes on for so many times the rounds before, at first.
    double group_share = 0.25;
    double least_group_share = 0.125, most_group_share = 4;
    double spent_modes_from = 0.02;  ///< gain of modes that spare memory is spent on, from which groups run under them
    std::uint32_t spent_tasks_from = 160;  ///< problems of fewer tasks do without
    /// Group rounds after which the worse half of the slots follows the better, and steps of each slot: both at least.
    std::uint64_t group_sync_rounds = 8, group_sync_steps = 24;
    std::uint64_t group_beginnings_work = 100'000;  ///< tasks scheduled in each direction before its first round
    std::uint64_t group_work = 3'000;               ///< tasks scheduled per slot and round of the group search, about
    std::uint64_t anneal_work = 300'000;            ///< tasks times evaluations per slot and round of annealing
    std::uint64_t least_anneal_steps = 16;          ///< per slot and round, however large the problem is
    std::uint64_t cost_of_step = 50;                ///< of an annealing step whatever the problem, as so many tasks
    /// Rounds of the first annealing cycle, of one model or several; each next is half as long again.
    std::uint64_t first_cycle = 25, first_cycle_of_several = 60;
    double hot = 0.005;             ///< first temperature of a cycle, as a fraction of makespan / sqrt(tasks)
    double hot_if_tiny = 0.02;      ///< the same in problems of fewer than `spent_tasks_from` tasks
    double cold = 0.0005;           ///< the last one
    double hotter = 4;              ///< every second cycle begins this many times hotter
    double weight = 0.5;            ///< of the average end against the makespan
    std::uint64_t sync_rounds = 4;  ///< annealing rounds after which the worse half of the slots follows the better
    std::uint32_t rebuild_permille = 3;  ///< rebuilds among a thousand annealing steps, on average over the slots
};

/// Steps of annealing (improve/anneal.hpp).
struct AnnealTuning {
    std::uint64_t mode_percent = 40;      ///< steps that change a memory mode, where there is a choice
    std::uint64_t critical_percent = 75;  ///< below this, those that move a critical task; the others move any
    std::uint64_t far_one_in = 8;         ///< of moves farther than to the neighbour, those that may go `far`
    std::uint64_t near = 8, far = 40;     ///< places that a move goes at most
    int partner_attempts = 4;             ///< draws of another pair that pays for a mode's memory
    double slack = 2;                     ///< of the makespan a step is timed with, in units of what is allowed
};

/// Search over group priorities (improve/group_search.hpp).
struct GroupTuning {
    std::int64_t spacing = 1024;      ///< between the keys of neighbours at the start
    std::uint64_t mode_percent = 35;  ///< steps that change memory modes, where there is a choice
};

/// Search over staggered pipelines (improve/stagger.hpp).
struct StaggerTuning {
    int draws = 16;                ///< beginnings of which the best is taken: most are far off
    std::uint64_t patience = 100;  ///< steps without a better one before it begins anew, or twice as many, by chance
    /// As in annealing that does not cool: hardly anything worse, but plateaus are large. A fraction of the makespan.
    double temperature = 0.002;
};

/// Microbatches placed into gaps (construct/gap_filling.hpp).
struct GapTuning {
    std::size_t attempts = 16;          ///< per microbatch, on average
    std::uint32_t most_tasks = 20'000;  ///< time grows with the tasks of a rank times microbatches
};

/// List schedules by wished times (construct/dispatch.hpp).
struct DispatchTuning {
    std::size_t recalled_at_once = 3;  ///< of the refused, when memory is given back: most would be refused again
};

/// Times found again after a step (instance/timing.hpp).
struct TimingTuning {
    /// So many places ahead it is cheaper to look at every task than to find out which of them wait.
    std::uint32_t near = 64;
};

/// Any schedule within memory (construct/find_feasible.hpp).
struct FeasibleTuning {
    std::size_t slots = 8;
    std::uint64_t round_work = 150'000;  ///< tasks looked at per slot and round
    std::uint64_t most_rounds = 200;     ///< then going on is not worth its time
    std::uint64_t first_cycle = 60;      ///< tasks looked at in the first annealing cycle, per task
    std::uint64_t most_doublings = 6;    ///< of later cycles' lengths
    double hot = 0.5, cold = 0.005;      ///< temperatures, as fractions of what a task leaves taken on average
    int steps_per_temperature = 32;
    std::uint64_t mode_one_in = 3;     ///< steps that change a memory mode, where there is a choice
    std::uint64_t move_one_in = 4;     ///< of the others, those that move the task itself
    std::uint64_t useless_one_in = 8;  ///< pushes and pulls that do not help at once, but are tried all the same
};

/// Less memory at the same makespan (lower_memory.hpp).
struct MemoryTuning {
    std::size_t slots = 8;
    std::uint64_t round_work = 150'000;                ///< tasks times evaluations per slot and round
    std::uint64_t least_steps = 8, cost_of_step = 50;  ///< as in EngineTuning
    std::uint64_t sync_rounds = 5;  ///< rounds after which the worse half of the slots follows the better
    /// Rounds: where the schedule was optimal; else so many, and one for so many rounds of the search that found it.
    std::uint64_t rounds_of_optimal = 100, least_rounds = 20, found_rounds_per_round = 4;
    double hot = 0.02, cold = 0.0002;  ///< temperatures, as fractions of a capacity
    double sum_weight = 0.3;           ///< of the average peak against the largest
    double area_weight = 0.1;          ///< of the average level: a step counts that lowers one of several equal peaks
    std::uint64_t mode_percent = 30;   ///< steps that change a memory mode, where there is a choice
    std::uint64_t against_one_in = 5;  ///< moves that take memory earlier or give it back later, now and then
    std::uint64_t far_one_in = 4;      ///< moves that may go `far`
    std::uint64_t near = 4, far = 30;  ///< places that a move goes at most
};

/// Bounds before the search (bounds/root_bounds.hpp).
struct RootTuning {
    /// Below this memory pressure prices never proved more than the other bounds, above it they mostly did.
    double least_pressure = 0.5;
    std::uint64_t price_units = 2'000'000;  ///< about 10 ms
    std::uint64_t edge_work = 10'000'000;   ///< about 20 ms
    std::uint32_t most_tasks = 20'000;      ///< beyond, even the pressure takes long
    std::int64_t edge_steps = 65'536;       ///< edge finding: the bound is found to this fraction of itself
    std::int64_t first_edge_step = 16;      ///< and looked for in steps of so many of these at first
    /// Pasts and futures of all tasks together may be quadratic: ancestors looked at (bounds/one_machine.hpp), arcs
    /// followed (bounds/price_forest.hpp); what would take more is left out.
    std::size_t most_ancestors = 4'000'000, most_forest_arcs = 4'000'000;
};

/// The bound that understands memory (bounds/price_bound.hpp).
struct PriceTuning {
    std::uint64_t units_per_round = 25'000;  ///< beside the engine's rounds: about a twentieth of one
    std::uint64_t most_units = 40'000'000;   ///< in all
    std::size_t cells = 200;                 ///< of time, each with its prices
    std::size_t trees_per_scale = 8;         ///< a step may multiply prices by a hundred
    std::uint64_t phases_per_check = 10;
    int raises_per_check = 10;
    double raise_share = 0.8;  ///< of what the prices promise, the limit is raised by
    double margin = 1e-7;      ///< by which the worth must be exceeded; rounding is far below
    double first_step = 5;
    double least_price = 1e-9;
};

/// Exact search (exact/exact.hpp): limits of one search.
struct ExactLimits {
    std::size_t first_width = 128;       ///< states per layer of the first pass
    std::size_t wider = 8;               ///< each next pass is this many times wider
    std::size_t widest = 131'072;        ///< beyond, the search gives up
    std::uint64_t nodes = 100'000'000;   ///< steps tried in all; then it gives up
    std::uint64_t round_work = 800'000;  ///< of a round: nodes times tasks, and comparisons of states
};

struct ExactTuning {
    std::size_t slots = 16;
    std::uint64_t edge_work = 2'000'000;  ///< edge finding at the beginning of a pass
    ExactLimits whole;                    ///< of the problem itself
    /// The easier problem is solved in this, or hardly ever; the narrower ones take some 20,000 nodes.
    ExactLimits easier{.nodes = 4'000'000};
    ExactLimits narrower{.widest = 8'192, .nodes = 400'000};
    /// Where no initial schedule fits: any order at all.
    ExactLimits any_order{.widest = 8'192, .nodes = 2'000'000};
};

/// The published method (dip/dip.hpp), where its paper leaves numbers open.
struct DipTuning {
    std::size_t slots = 8;             ///< nodes of a wave
    std::uint64_t completions = 10;    ///< of each
    std::uint64_t round_work = 3'000;  ///< tasks scheduled per slot and round, about
    double beta = 0.02;                ///< weight of what is seldom visited against what is good
    double widening = 2;               ///< a node has fewer children than so many times the square root of its visits
    double enough = 0.05;              ///< modes: stops when the sum of times is proven to be within this of the best
    int price_rounds = 20;             ///< modes: at the latest after so many prices
};

struct Tuning {
    EngineTuning engine;
    AnnealTuning anneal;
    GroupTuning group;
    StaggerTuning stagger;
    GapTuning gap;
    DispatchTuning dispatch;
    TimingTuning timing;
    FeasibleTuning feasible;
    MemoryTuning memory;
    RootTuning root;
    PriceTuning price;
    ExactTuning exact;
    DipTuning dip;
};
inline constexpr Tuning tuning;

}  // namespace pipeweaver::search
