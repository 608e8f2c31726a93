// Every fraction of a budget and every limit on work that the planner has, and what a plan of a given size does and
// leaves out. Nothing else in planner/ decides by size.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/search/options.hpp"
#include "pipeweaver/search/policy_names.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// How much work the choice of a partition may be.
struct ChoiceEffort {
    std::size_t finalists = 3;  ///< candidates that are searched; one alone is not
    std::size_t batches = 2;    ///< batches of the sample on which they are searched
    std::uint64_t rounds = 2;   ///< rounds of each search, after its starts
    /// Tasks of all those searches' problems together; of larger ones there are fewer finalists and batches.
    std::size_t most_tasks = 12'000;
    /// Tasks of all problems that policies decide on; of larger ones they decide on fewer batches.
    std::size_t most_by_policies = 250'000;
    std::size_t most_tuned = 120'000;  ///< tasks of all problems by which the best chain is tuned
    /// Candidates that are searched on the first batch, as shortly as a plan does: those that memory makes slow, which
    /// policies do not tell, are no finalists.
    std::size_t semifinalists = 0;
    std::size_t most_tasks_of_replica = SIZE_MAX;  ///< there is no time for partitions with more, but for the smallest
};

/// What a plan does by itself, in a fraction of a second; the same without searches; and what is worth a minute for a
/// partition that stays.
inline constexpr ChoiceEffort quick_choice{};
inline constexpr ChoiceEffort by_policies{.finalists = 0, .most_tuned = 0};
inline constexpr ChoiceEffort thorough_choice{8, 5, 10, 1'000'000, 10'000'000, 2'000'000, 32};

/// Fractions of the time that is left when the piece of work begins.
struct Fractions {
    double opponents = 0.5;      ///< at most: known schedules, tuned cuts and other layouts
    double turns_as_whole = 24;  ///< beside so many more turns of replicas, one to a thread, what is done once has half
    double launched = 0.95;      ///< as `opponents` where no order is searched, less what follows
    double choosing = 0.6;       ///< of that, before known schedules run on the batch: they are chosen on the sample
    double judging = 0.5;        ///< of what other layouts have, before the best of them are run
    double layouts = 0.4;        ///< the choice of a layout
    double partition = 0.4;      ///< a partition's choice, beside which searches are for replicas
    double replicas = 0.7;       ///< of what is left before that choice, what must be done of each replica at most
    double robustness = 0.02;    ///< replays under perturbed costs, which take less unless the budget is short
    double target = 0.3;         ///< the search for another target, in a plan of one replica
    double asked_target = 0.5;   ///< the same where that target's schedule is what is asked for
    double policies = 0.25;      ///< of a replica's; a search has more to gain, which begins with better ones
    double search = 0.98;        ///< of a replica's; the rest is for a lower peak, which seldom needs it
    double whole_backwards = 1.0 / 6;  ///< of a search both ways, for whole backwards
    double split_ahead = 1.0 / 2;      ///< of a search both ways, after which split backwards must be shorter
    double before_ports = 2.0 / 3;     ///< of a search that is likely to be followed by another, on shared ports
    double makespan = 0.7;             ///< of a search with a second objective, for the first
    double stages_target = 0.5;        ///< of a plan from stage times, for the target's own schedule
    double stages_whole = 0.5;         ///< of such a plan where split backwards take longer, for one without any
};
inline constexpr Fractions fractions{};

/// What a plan takes at least of each task of each replica, its files included: in runs of a known schedule on as many
/// tasks; and on one core, where none runs. Measured of 16 and 32 replicas of 27,000 tasks: 17 us, a run 1.2 us.
inline constexpr std::int64_t runs_to_plan = 15;
inline constexpr Duration time_of_task = std::chrono::microseconds(20);

/// What follows when all replicas are searched, in runs of a plain schedule on them: for as many tasks as that has, and
/// for its microbatches. Measured of 128 replicas of 64 microbatches and 2,048 or 8,192 tasks, where a run takes 0.19
/// CPU-seconds: 10.4 and 23.8 CPU-seconds to plan all as an opponent, 2.2 and 6.0 for the last rungs and files.
struct RunsAfter {
    std::int64_t by_tasks = 0, by_microbatches = 0;
};
inline constexpr RunsAfter runs_to_plan_again{12, 31}, runs_to_end{4, 4};

/// How long a replica's files take for each of its tasks: a search leaves that much of its time. Measured: 37,000 tasks
/// in 0.35 to 0.5 s, and 0.3 s to zip their lists.
inline constexpr Duration writing_a_task = std::chrono::microseconds(14);
inline constexpr Duration zipping_a_task = std::chrono::microseconds(9);

/// What a plan without a search does whatever the time, in runs of a known schedule on all replicas: the rungs of what
/// runs now and of the data; at the end a row of the table, and replicas that are built, compared and written. Measured
/// of 128 replicas of 64 microbatches on 4 ranks, beside a build, in which a run takes 0.22 s: 3.5 s, 1.8 s and 7 s.
inline constexpr double runs_of_ladder = 15, runs_to_launch = 40;

/// The same for each microbatch on each rank, where the time has no clock to measure a run by.
inline constexpr Duration launching_a_microbatch = std::chrono::microseconds(180);

/// How large a problem may be, and on how much of a job's sample something is decided.
struct Sizes {
    std::size_t tasks = 50'000;              ///< of a replica's problem; policies and bounds take minutes beyond
    std::size_t tasks_in_order = 1'000'000;  ///< of one that a policy of a fixed order emulates
    std::size_t tasks_exchanged = 200'000;   ///< of all quick plans by which replicas trade, some 2 us each on one core
    std::size_t tasks_perturbed = 100'000;   ///< of all replicas that are replayed under perturbed costs; one always is
    std::size_t tasks_perturbed_soon = 20'000;  ///< of those that are replayed in a tenth of a second
    std::size_t replicas_examined = 8;          ///< the most loaded ones have full bounds, perturbed costs and traces
    std::size_t layout_microbatches = 32;       ///< of a replica, by which a layout is judged quickly
    std::size_t layout_fewest = 16;             ///< of one, by which it is where the pipeline is short
    std::size_t layout_cut = 16;                ///< of a batch, that its partitions are cut on
    std::size_t layout_bound = 32;              ///< of a batch, that its bound is from
    std::size_t layouts_at_once = 8;            ///< that are judged before bounds are compared again
    std::size_t layouts_shown = 10;             ///< the best, which no bound may hide
    std::size_t layouts_promising = 9;          ///< the best, that are searched without rounds
    std::size_t layouts_searched = 3;           ///< the best, that are judged whole and searched before one is taken
    std::size_t tasks_of_layout = 8'000;        ///< of a replica; in larger ones policies decide
    std::size_t candidate_microbatches = 24;    ///< of a batch, by which a partition is chosen
    std::size_t candidates_on_all = 8;          ///< partitions that policies run on the whole sample
    std::size_t cuts_tuned = 2;                 ///< of the opponents' cuts, the best: layers are moved between stages
    std::size_t batches_tuned_on = 2;           ///< of the sample
    std::size_t steps_tuned = 300;              ///< of cuts, for each that is tuned
    std::size_t opponents_anyhow = 2;           ///< cuts of opponents that are tried whatever the time
    std::size_t opponents_on_all = 8;           ///< opponents that run on the whole sample
    std::size_t packing_batches = 4;            ///< batches of the sample by which a packing is chosen
    std::size_t samples_of_step = 1'000;        ///< of a batch file: with more, and more than this, it is asked about
    std::size_t microbatches_of_step = 64;      ///< of a replica
    std::size_t trading_partners = 3;           ///< of the fastest replicas, for the slowest
    std::size_t trades = 2;                     ///< with each of them
};
inline constexpr Sizes sizes{};

/// When a difference counts, as a factor.
struct Margins {
    double packing = 0.99;      ///< another packing's steps must be shorter than that of the given one's
    double layouts = 1.005;     ///< of layouts within it of the best the user's own or the simplest is taken
    double searching = 0.95;    ///< of a known schedule's step: what a search is expected to gain at most
    double chunks = 1.005;      ///< of partitions within it of the best the one with the fewest chunks is taken
    double even_plans = 1.002;  ///< of the slowest quick plan over their mean: such plans say no more
    double even_loads = 1.001;  ///< of the largest load over their mean: that counts, too
    double ports = 0.01;        ///< of a makespan: what shared ports may add before it is searched again
    /// How much longer all I and W may take than the backwards that they are parts of, for a search of split ones to be
    /// worth its time: where traffic has nothing beside it in either, they lose more than their order can win.
    double splitting = 1.03;
    double worth = 1.02;        ///< of an easier rung's step over that of a rung: what is worth the change
    double worth_draws = 0.95;  ///< of draws of wrong costs, in which it must be the faster one, too
};
inline constexpr Margins margins{};

/// Rounds of a search of a layout, after its starts.
inline constexpr std::uint64_t layout_rounds = 2;

/// When a search without a number of rounds ends by itself. Annealing gains late in its cycles, each of which is half
/// as long again as the one before: a fixed number of rounds ends a search between two of them that both gain.
/// Measured by `solve --log` on replica 0 of 16 microbatches, seeds 1 and 2: rounds after which a search ended, and in
/// brackets how much longer its makespan was than after 2,500, in per cent.
///
///   rounds, share   dip-vlm-m               dip-vlm-l                 dip-t2v-l      internvl3-38b
///   100, 0.5        176 (0.21), 194 (0.10)  2500 (0), 2500 (0)        100 (0) both   124 (0), 151 (0)
///   100, 0          176 (0.21), 194 (0.10)  416 (1.67), 447 (0.64)    100 (0) both   124 (0), 151 (0)
///   25, 0           50 (0.32), 57 (0.41)    147 (2.77), 55 (2.88)     25 (0) both    49 (0), 41 (0.12)
///   400, 0          656 (0.06), 746 (0)     2108 (0), 1173 (0.19)     400 (0) both   424 (0), 451 (0)
inline constexpr search::Patience patience{.rounds = 100, .share = 0.5, .gain = 0.001, .gap = 0.005};

/// Rounds of a search of split backwards before it may be given up: the first on a large problem gain most.
inline constexpr std::uint64_t fair_rounds = 5;

/// Rounds for a lower peak: some 5 ms on a thousand tasks. The more, the lower the peak and the less slack is left:
/// after 30, most schedules of the presets were 0.1 % slower under perturbed costs, after 8 hardly one.
inline constexpr std::uint64_t peak_rounds = 8;

/// Which schedules near the best are handed over, and how one of them is chosen.
struct ChoiceRule {
    bool by_median = false;      ///< what counts: the smallest median, or else the most wins
    double within = 0.001;       ///< how much longer a makespan may be than the smallest, as a part of it
    std::size_t most = 12;       ///< schedules of a replica and partition that are compared
    std::size_t work = 100'000;  ///< tasks of all of them together; fewer schedules of larger problems, at last one

    /// What a search of one of `problems` problems with so many tasks must hand over.
    [[nodiscard]] search::AlternativesWanted near(std::size_t tasks, std::size_t problems) const {
        const std::size_t least = by_median ? 2 : 1;  // who asks for a robust schedule gets a choice, whatever it takes
        return {std::clamp<std::size_t>(work / (tasks * problems), least, most) - 1, within};
    }
};

/// What a plan keeps to by itself, and what `--robust` asks for.
inline constexpr ChoiceRule usual_rule{};
inline constexpr ChoiceRule robust_rule{true, 0.01, 40, 400'000};

/// As few as a rule has: for searches among whose schedules nothing is chosen.
inline constexpr ChoiceRule no_choice{.most = 2};

/// Policies that are quick, and one of which is seldom a tenth behind the best of all: drafts are chosen from them.
inline const std::vector<std::string> quick_policies{search::dual_queue_policy, search::gpipe_policy,
                                                     search::interleaved_policy};

/// What judges a partition before any search: the policies that frameworks run on a chain, and the dual queue.
inline const std::vector<std::string> candidate_policies{search::one_f_one_b_policy, search::interleaved_policy,
                                                         search::dual_queue_policy};

/// What a plan of some size does, and what it leaves out.
struct Effort {
    bool can_plan = true;           ///< else the batch is refused
    bool policy_first = true;       ///< one policy is applied whatever the time; else the search's first schedule is
    bool full_bounds_first = true;  ///< else quick bounds, and full ones when the search has ended and time is left
    bool keeps_order = true;        ///< searches of later batches begin with a first plan's order, too
    bool exchanges = true;          ///< replicas trade microbatches by quick plans, not by loads alone
    std::size_t examined = 1;       ///< replicas with full bounds, perturbed costs and traces: the most loaded
    std::size_t perturbed = 1;      ///< of them, replicas that are replayed under perturbed costs
    bool perturbs_anyhow = true;    ///< these replays are made whatever time is left
    std::size_t alternatives = 0;   ///< schedules near a replica's best that are compared with it
    std::size_t finalists = 0;      ///< partitions that are searched before a job takes one; 0: policies decide
};

/// What a plan of so many replicas, each of about so many tasks, does. Pre: both at least 1.
[[nodiscard]] inline Effort effort_of(std::size_t tasks, std::size_t replicas, const ChoiceRule& rule = usual_rule) {
    const bool at_leisure = tasks <= search::most_tasks_at_leisure;
    Effort effort;
    effort.can_plan = tasks <= sizes.tasks;
    effort.policy_first = effort.full_bounds_first = effort.keeps_order = at_leisure;
    effort.exchanges = replicas > 1 && 2 * tasks * replicas <= sizes.tasks_exchanged;
    effort.examined = std::min(replicas, sizes.replicas_examined);
    effort.perturbed = std::clamp<std::size_t>(sizes.tasks_perturbed / tasks, 1, effort.examined);
    effort.perturbs_anyhow = effort.perturbed * tasks <= sizes.tasks_perturbed_soon;
    effort.alternatives = rule.near(tasks, replicas).most;
    effort.finalists = std::min(quick_choice.finalists, quick_choice.most_tasks / tasks);
    if (effort.finalists < 2) effort.finalists = 0;
    return effort;
}

}  // namespace pipeweaver::planner
