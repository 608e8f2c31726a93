// pipeweaver solve: a schedule problem in, its best schedule out.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/interrupt.hpp"
#include "apps/stages.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/report.hpp"
#include "pipeweaver/planner/stage_plan.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/schedule/solved.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/search/carry_over.hpp"
#include "pipeweaver/search/policies.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::apps {

namespace {

using schedule::Outcome;
using schedule::Replayer;

std::string log_line(const search::Improvement& one) {
    return fmt::format("{}\t{}\t{}\t{}\t{:.6f}\t{}\n", one.rounds, one.evaluations, one.best.count(), one.bound.count(),
                       schedule::relative_gap(one.best, one.bound), one.found_by);
}

// A heading, and a line for every round after which the best or the bound was better: no times, so that the logs of
// two runs can be compared.
std::string search_log(const search::Found& found) {
    std::string text = "round\tevaluations\tbest_ns\tbound_ns\tgap\tfound_by\n";
    for (const auto& one : found.history) text += log_line(one);
    if (found.replay.makespan < found.history.back().best)  // by the second objective, on its way
        text += log_line({found.rounds, found.evaluations, found.replay.makespan, found.bound, found.strategy});
    return text;
}

struct Solve {
    explicit Solve(CLI::App& app) : options(app) {
        add_operand(app, "problem", problem, "FILE", "problem file (pipeweaver-problem/1), gzip allowed");
        console.add_to(app);
        options.group("The schedule");
        options.text("out", out, "FILE", "solution file to write; with --stages a folder (required)");
        options.writes();
        options.text("strategy", strategy, "STRATEGY", "a strategy of `pipeweaver list strategies` (default: default)");
        options.text("policy", policy, "POLICY",
                     "no search: the schedule of this policy of `pipeweaver list policies`");
        options.choice("target", target, planner::target_options(planner::has_own_rules),
                       "keep the rules of this target");
        options.text("warm", warm, "FILE", "begin with the schedule of this solution file");
        options.text("warm-problem", warm_problem, "FILE",
                     "the problem that --warm solves, where it is another batch: its order is carried over");
        options.choice("then", then, {"memory"}, "a second objective: the largest peak, at the makespan found");
        options.text("log", log, "FILE", "also write each improvement: round, evaluations, best, bound, gap, finder");
        options.writes();
        options.text("report", report, "FILE",
                     "also write a page (HTML): how the search went, the schedules before and after");
        options.writes();
        limits.add_to(options);
        stages.add_to(options);
        add_flag(app, "robust", robust, {}, {});  // not listed: only to say why not
    }

    void run() {
        const Stopwatch start;
        options.apply();
        if (robust)
            fail(ErrorKind::input,
                 "--robust: problem files and stage times carry no estimate of their errors; `pipeweaver plan` has "
                 "them");
        stages.check(problem);
        if (stages.given()) return solve_stages();
        require_given({{!problem.empty(), "PROBLEM", "a problem file, or --stages FILE"},
                       {!out.empty(), "--out FILE", "a file for the solution"}});
        check_options();
        const Interrupt interrupt(console.quiet);
        const OutputFolder folder(std::filesystem::path(out).parent_path());
        const auto file = schedule::read_problem(problem);
        const Replayer replayer(file.problem);
        const search::Found found = policy.empty() ? searched(replayer, file) : by_policy(replayer);
        console.clear();
        if (!found.schedule) fail(ErrorKind::limit, "{}: {}", problem, found.why_not);
        const auto solution = search::solution(found, file.problem, file.sha256);
        std::vector<FileToWrite> files{{out, to_json(solution)}};
        if (!log.empty()) files.push_back({log, search_log(found)});
        if (!report.empty()) files.push_back({report, emit::report(file.problem, asked(), found)});
        write_files(files);
        if (console.json) {
            auto answer = emit::solution_answer(file.problem, found);
            answer["run"] = limits.run(start);
            print_json(answer);
        } else {
            print_text("{}", emit::solution_table(file.problem, found));
        }
        say_if_interrupted(console, left_out_by(found));
    }

    // An option that was given and needs one search; or null.
    const char* for_a_search() const {
        return !log.empty() ? "--log" : !report.empty() ? "--report" : !then.empty() ? "--then" : nullptr;
    }

    // A start that was given; or null.
    const char* for_a_start() const {
        return !warm.empty() ? "--warm" : !warm_problem.empty() ? "--warm-problem" : nullptr;
    }

    void check_options() const {
        if (!policy.empty() && !strategy.empty())
            fail(ErrorKind::input, "--policy, --strategy: at most one of the two makes sense");
        const char* searching = for_a_search() != nullptr ? for_a_search() : for_a_start();
        if (!policy.empty() && searching != nullptr)
            fail(ErrorKind::input, "{}: does not go with --policy, which searches nothing", searching);
        if (warm.empty() && !warm_problem.empty())
            fail(ErrorKind::input, "--warm-problem: needs --warm, a solution of that problem");
    }

    emit::SearchAsked asked() const {
        return {strategy.empty() ? "default" : strategy, static_cast<std::uint64_t>(limits.seed), target,
                !warm.empty()};
    }

    std::vector<schedule::Schedule> warm_starts(const Replayer& replayer, const schedule::ProblemFile& file) const {
        if (warm.empty()) return {};
        if (warm_problem.empty()) return {schedule::read_schedule(warm, file)};
        const auto previous = schedule::read_problem(warm_problem);
        const auto schedule = schedule::read_schedule(warm, previous);
        if (schedule::replay(previous.problem, schedule).outcome != Outcome::completed)
            fail(ErrorKind::input, "{}: does not run on {}: `pipeweaver replay` says why", warm, warm_problem);
        return search::carry_over(previous.problem, schedule, replayer);
    }

    void solve_stages() const {
        require_given({{stages.microbatches.has_value(), "--microbatches N", "of a step of these stages"},
                       {!out.empty(), "--out DIR", "a folder for the answer"}});
        if (!policy.empty() || !warm.empty() || !warm_problem.empty())
            fail(ErrorKind::input, "{}: does not go with --stages, which compares all policies",
                 policy.empty() ? for_a_start() : "--policy");
        if (!report.empty())
            fail(ErrorKind::input, "--report: does not go with --stages, which writes report.html into --out");
        if (for_a_search() != nullptr)
            fail(ErrorKind::input, "{}: does not go with --stages, which searches twice", for_a_search());
        stages.solve({strategy, planner::target_called(target), out}, limits, console);
    }

    search::Found searched(const Replayer& replayer, const schedule::ProblemFile& file) const {
        planner::SolveRequest request;
        if (!strategy.empty()) request.strategy = strategy;
        request.seed = static_cast<std::uint64_t>(limits.seed);
        request.max_rounds = limits.rounds();
        request.target = planner::target_called(target);
        request.lower_memory = !then.empty();
        request.starts = warm_starts(replayer, file);
        try {
            return planner::solve_problem(replayer, request, limits.executor(), limits.begin(console));
        } catch (const Error& error) {
            throw error.kind() == ErrorKind::limit ? error.in(problem) : error;
        }
    }

    search::Found by_policy(const Replayer& replayer) const {
        const planner::Target& runtime = planner::target(planner::target_called(target));
        try {
            static_cast<void>(rules_of(runtime, replayer.problem()));
        } catch (const Error& error) {
            throw error.in(problem);
        }
        auto found = search::as_found(policy, search::apply_policy(policy, replayer), search::best_bound(replayer));
        if (runtime.breaks != nullptr && found.schedule)
            if (const auto why = runtime.breaks(replayer.problem(), *found.schedule))
                fail(ErrorKind::limit, "{}: {}", problem, *why);
        return found;
    }

    Options options;
    Console console;
    StageOptions stages;
    Limits limits;
    std::string problem, out, strategy, policy, target, warm, warm_problem, log, then, report;
    bool robust = false;
};

}  // namespace

void add_solve(CLI::App& program) {
    add_command<Solve>(
        program, "solve", "find the best schedule of a problem, or of measured stage times",
        {.synopsis = "(PROBLEM | --stages FILE --microbatches N) --out FILE [OPTION...]",
         .description = "Searches for the order of tasks and the memory modes with the smallest makespan, within the "
                        "memory of every rank, until it has stopped gaining or the lower bound is met, with the same "
                        "result on any machine; --budget ends it sooner. With --stages the problem is a chain of "
                        "stages that you measured, and the answer is a folder with a schedule for PyTorch.",
         .examples = {{"The problem of a plan, searched again with another seed",
                       "pipeweaver solve plan/replica-000/problem.json.gz --budget 300ms --seed 2 --out solution.json"},
                      {"With a page that shows how the search went",
                       "pipeweaver solve plan/replica-000/problem.json.gz --max-rounds 30 --out solution.json "
                       "--report search.html"},
                      {"One known schedule instead of a search",
                       "pipeweaver solve plan/replica-000/problem.json.gz --policy dual-queue --out policy.json"},
                      {"A batch like the one before, beginning with its order",
                       "pipeweaver solve plan/replica-000/problem.json.gz --warm solution.json --budget 100ms --out "
                       "next.json"},
                      {"Stage times from a profile",
                       "pipeweaver solve --stages examples/stages.csv --microbatches 16 --capacity 73.6GiB "
                       "--link 50GB/s --budget 300ms --out stages"}},
         .files = {{"PROBLEM", "pipeweaver-problem/1, also in YAML if you write it by hand"},
                   {"--out FILE", "pipeweaver-solution/1"},
                   {"--log FILE",
                    "tab separated; equal for equal problem and options, unless --budget ends the search"},
                   {"--report FILE",
                    "one page (HTML) that loads nothing; equal for equal problem and options, unless --budget ends the "
                    "search"},
                   {"--stages FILE", "CSV of stage times"}},
         .see_also = {"pipeweaver replay", "pipeweaver list policies", "docs/your-own-stage-times.md",
                      "docs/formats.md"}});
}

}  // namespace pipeweaver::apps
