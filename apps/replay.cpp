// pipeweaver replay: what a schedule does, and what a recorded run of it did.
#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/explain/schedule_files.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/emulation_files.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/measured/measured_plan.hpp"
#include "pipeweaver/measured/report.hpp"
#include "pipeweaver/planner/jitter_options.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/traces/graph.hpp"
#include "pipeweaver/traces/report.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <span>

namespace pipeweaver::apps {

namespace {

// What of a recorded step is asked.
struct TraceQuestion {
    std::vector<std::string> files;
    std::string factors;   // "gemm=0.8,nccl=0.5"; empty: none
    std::string emulated;  // the trace of an emulated step; empty: none
};

void replay_traces(const TraceQuestion& question, bool as_json) {
    std::optional<traces::Graph> emulated;
    if (!question.emulated.empty()) {
        const std::vector<std::string> file{question.emulated};
        emulated = traces::read_graph(file);
        if (!emulated->is_emulated)
            fail(ErrorKind::input, "{}: is no trace of an emulated step (trace.json.gz of emulate --out)",
                 question.emulated);
    }
    const auto found =
        traces::findings_of(traces::read_graph(question.files), question.factors, emulated ? &*emulated : nullptr);
    if (as_json)
        print_json(traces::findings_json(found));
    else
        print_text("{}", traces::findings_text(found));
}

struct ReplaySchedule {
    explicit ReplaySchedule(CLI::App& app) : options(app) {
        add_operand(app, "problem", files.problem, "FILE", "problem file, gzip allowed, or the folder of a plan");
        add_operand(app, "solution", files.solution, "FILE", "solution file, gzip allowed; not with a folder");
        console.add_to(app);
        options.group("A recorded run");
        add_texts(app, "measured", measured, "FILE",
                  "what each rank recorded: timings of the executor, or PyTorch traces", "A recorded run");
        options.integer("replica", files.replica, 0, 1'000'000, "which replica of a plan's folder (default 0)");
        options.text("model", model, "MODEL", "refuse a plan that is older than this model; with a plan's folder");
        options.group("Steps that vary");
        varied.add_to(options);
        options.integer("seed", seed, 0, 9'007'199'254'740'991, "with --robust: seed of the draws (default 1)");
        options.integer("threads", limits.threads, 1, 1024, "threads (default: all cores); no result depends on it");
        options.group("A recorded step");
        add_texts(app, "trace", traced.files, "FILE",
                  "PyTorch traces of a step, one of each rank or of one alone, or the trace of an emulated step",
                  "A recorded step");
        options.text("what-if", traced.factors, "FACTORS",
                     "with --trace: factors on times, like gemm=0.8,nccl=0.5,rank3=1.2,launch=0");
        options.text("emulated", traced.emulated, "FILE",
                     "with --trace: show beside it the step of trace.json.gz that emulate --out wrote");
    }

    void run() const {
        options.apply();
        if (!traced.files.empty()) {
            require_traces_alone();
            replay_traces(traced, console.json);
            return;
        }
        require_fitting();
        const auto solved = files.read();
        const schedule::Replayer replayer(solved.file.problem);
        const auto replay = files.replay(replayer, solved.schedule);
        if (measured.empty())
            tell(replayer, solved.schedule, replay, drawn(solved));
        else
            compare(solved);
    }

    std::optional<planner::JitterReport> drawn(const schedule::Solved& solved) const {
        const auto asked = varied.request(seed.value_or(1));
        if (!asked) return std::nullopt;
        const planner::ReplicaLists lists{&solved.file.problem, &solved.schedule};
        return planner::jitter(std::span(&lists, 1), *asked, limits.executor());
    }

    // Options that say nothing of what is read are refused, not ignored.
    void require_fitting() const {
        if (files.problem.empty())
            fail_missing("PROBLEM or --trace FILE", "a problem file or a plan's folder, or traces of a step");
        const bool varies = varied.request(1).has_value();
        if (varies && !measured.empty()) fail(ErrorKind::input, "--robust: goes without --measured");
        if (!varies && seed) fail(ErrorKind::input, "--seed: goes with --robust");
        if (!traced.factors.empty() || !traced.emulated.empty())
            fail(ErrorKind::input, "--{}: goes with --trace", traced.factors.empty() ? "emulated" : "what-if");
        if (!files.is_folder() && !model.empty())
            fail(ErrorKind::input, "--model: goes with a plan's folder, {} is none", files.problem);
        if (!files.is_folder() && files.replica != 0 && measured.empty())
            fail(ErrorKind::input, "--replica: goes with a plan's folder, or with --measured; {} is one schedule alone",
                 files.problem);
        if (!model.empty()) measured::require_model(files.problem, model);
    }

    void require_traces_alone() const {
        const bool varies = varied.request(1).has_value();
        const std::string other = !files.problem.empty() ? "PROBLEM"
                                  : !measured.empty()    ? "--measured"
                                  : !model.empty()       ? "--model"
                                  : files.replica != 0   ? "--replica"
                                  : varies               ? "--robust"
                                  : seed                 ? "--seed"
                                                         : "";
        if (!other.empty()) fail(ErrorKind::input, "{}: goes without --trace, which needs no plan", other);
    }

    void compare(const schedule::Solved& solved) const {
        const auto planned = measured::planned_of(solved, files.problem, files.replica);
        const auto comparison = measured::compare(planned, measured::read_run(planned, measured));
        if (console.json)
            print_json(measured::comparison_json(planned, comparison));
        else
            print_text("{}", measured::comparison_text(planned, comparison));
    }

    void tell(const schedule::Replayer& replayer, const schedule::Schedule& schedule, const schedule::Replay& replay,
              const std::optional<planner::JitterReport>& jitter) const {
        const auto& of = replayer.problem();
        const auto bound = search::best_bound(replayer);
        const double gap = schedule::relative_gap(replay.makespan, bound.value);
        if (console.json) {
            nlohmann::ordered_json answer{{"problem", of.name},
                                          {"makespan_ns", replay.makespan.count()},
                                          {"lower_bound_ns", bound.value.count()},
                                          {"gap", gap},
                                          {"peak_bytes", nlohmann::ordered_json::array()},
                                          {"signature", signature(schedule, replay.makespan)}};
            for (const Bytes peak : replay.peak) answer["peak_bytes"].push_back(peak.count);
            if (jitter) answer["jitter"] = emit::jitter_json(*jitter);
            print_json(answer);
            return;
        }
        print_text("{}: makespan {}   bound {} ({})   gap {:.1f} %\n", of.name, human(replay.makespan),
                   human(bound.value), bound.name, 100 * gap);
        for (std::size_t r = 0; r < replay.peak.size(); ++r) {
            const auto& capacity = of.ranks[r].capacity;
            print_text("rank {:<3} peak {}{}\n", r, human(replay.peak[r]), capacity ? " of " + human(*capacity) : "");
        }
        print_text("{}", emit::picture(replayer, schedule, replay));
        if (jitter) print_text("{}", emit::jitter_text(*jitter));
    }

    Options options;
    Console console;
    Limits limits;
    planner::JitterOptions varied;
    ScheduleFiles files;
    std::string model;
    std::vector<std::string> measured;
    std::optional<std::int64_t> seed{};
    TraceQuestion traced;
};

}  // namespace

void add_replay(CLI::App& program) {
    add_command<ReplaySchedule>(
        program, "replay", "recompute and check a schedule, and compare a recorded run with it",
        {.synopsis = "(PROBLEM SOLUTION | PLAN [--replica N]) [--measured FILE... | --robust jitter] [--json] | "
                     "--trace FILE... [--what-if FACTORS] [--emulated FILE] [--json]",
         .description = "Recomputes times and memory of a schedule and holds the solution's claims against "
                        "them. A schedule that overflows a rank's memory or waits for ever is refused with the task.\n"
                        "With --measured it is compared with a run that its ranks recorded: which passes took longer "
                        "than planned, by modules and kind, how much of the step that and waiting cost, which tasks "
                        "differ most, and which rank is slow beside its peers. Clocks of the ranks are aligned by the "
                        "messages between them.\n"
                        "With --robust jitter 1,000 steps are replayed whose tasks and ranks vary: what the lists lose "
                        "against a queue of ready tasks and 1F1B, and what each rank's slowness costs.\n"
                        "With --trace a step that PyTorch's profiler recorded is replayed without any plan: kernels, "
                        "launches and collectives of all ranks as one graph, what decides how long it takes, what "
                        "other times would change, which rank the others wait for, and which kernels to fuse.",
         .examples = {{"What solve wrote", "pipeweaver replay plan/replica-000/problem.json.gz solution.json"},
                      {"What plan wrote, for a program to read",
                       "pipeweaver replay plan/replica-000/problem.json.gz plan/replica-000/solution.json --json"},
                      {"A run that two ranks recorded",
                       "pipeweaver replay examples/measured --measured examples/measured/timings-0.json.gz "
                       "examples/measured/timings-1.json.gz"},
                      {"The same plan where times vary and a rank is slow",
                       "pipeweaver replay examples/measured --robust jitter --slow 10-30%"},
                      {"A step that a profiler recorded, were its collectives twice as fast",
                       "pipeweaver replay --trace examples/traces/rank-0.json examples/traces/rank-1.json "
                       "--what-if nccl=0.5"}},
         .files = {{"PROBLEM, SOLUTION", "pipeweaver-problem/1 and pipeweaver-solution/1"},
                   {"PLAN", "a folder that plan or solve --stages wrote, or one of its folders with a schedule"},
                   {"--measured FILE", "pipeweaver-timings/1 or a PyTorch trace with ranges like PP:0F3, of one rank"},
                   {"--trace FILE", "what PyTorch's profiler exports, gzip allowed"}},
         .see_also = {"pipeweaver solve", "pipeweaver costdb import", "docs/measured-runs.md", "docs/traces.md",
                      "docs/formats.md"}});
}

}  // namespace pipeweaver::apps
