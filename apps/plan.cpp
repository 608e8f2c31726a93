// pipeweaver plan: a batch, a model and a cluster in; the best partition and schedule out.
#include "pipeweaver/planner/plan.hpp"

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/interrupt.hpp"
#include "apps/next_steps.hpp"
#include "apps/output_kind.hpp"
#include "apps/progress_line.hpp"
#include "apps/server_plan.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/plan_folder.hpp"
#include "pipeweaver/launch/today.hpp"
#include "pipeweaver/planner/anchor.hpp"
#include "pipeweaver/planner/ladder.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/record.hpp"
#include "pipeweaver/planner/tuning.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::apps {

namespace {

// The part of a whole plan's time that is left out of this one, about.
double part_left_out(const planner::Plan& plan) {
    double part = 0;
    for (const planner::LeftOut& one : planner::left_out(plan)) part += one.part;
    return part;
}

// Tells whoever reads along of rungs that it was not told, or not so.
class RungsTold {
public:
    RungsTold(const Console& console, std::int64_t gpus) : console_(console), gpus_(gpus) {}

    void operator()(const planner::Ladder& so_far) {
        told_.resize(std::max(told_.size(), so_far.rungs.size()));
        for (std::size_t place = 0; place < so_far.rungs.size(); ++place) {
            auto rung = emit::rung_so_far_json(gpus_, so_far, so_far.rungs[place]);
            rung["place"] = place;
            if (std::exchange(told_[place], rung) != rung) console_.tell(rung);
        }
    }

private:
    const Console& console_;
    std::int64_t gpus_;
    std::vector<nlohmann::ordered_json> told_;  // by their places
};

struct Plan {
    explicit Plan(CLI::App& app) : options(app) {
        console.add_to(app);
        asked.workload.add_to(options);
        options.group("The plan");
        options.with_configuration();
        asked.add_to(options);
        limits.add_to(options);
        options.flag("verbose", verbose, "after the ladder: every schedule, memory, robustness, layouts, a picture");
        options.group("Plans of a service");
        options.text("server", server.url, "URL",
                     "let this server of `pipeweaver serve` plan the batch, whose search has three seconds unless "
                     "--budget says otherwise; files named here are read here");
        options.text("server-token", server.token_file, "FILE", "the token that the server asks for");
        options.text("server-authority", server.authority, "FILE",
                     "certificate (PEM) that the server's is signed with (default: the system's)");
        options.text("served", served, "FILE",
                     "plan again what a server served, from its record; goes with --out and --threads alone");
    }

    void run() {
        const Stopwatch start;
        options.apply();
        // What a script says is taken from it, what a record says from there.
        auto needed = served.empty() && !launch::is_script(asked.now) ? asked.workload.needed() : std::vector<Needed>();
        needed.push_back({!asked.out.empty(), "--out DIR", "a folder for the plan"});
        require_given(needed);
        require_apart_from_folder();
        require_output_kind(asked.out, OutputKind::plan);
        if (served.empty() && server.url.empty()) {
            take_script();
            now = planner::parse_now(asked.now, asked.layers);  // what is wrong in it is said before layouts are judged
            return plan_here(start);
        }
        const OutputFolder folder(asked.out);
        served.empty() ? plan_there() : plan_served(start);
    }

    void take_script() {
        if (!launch::is_script(asked.now)) {
            if (!asked.set.empty()) fail(ErrorKind::input, "--set: goes with --now FILE, a script");
            return;
        }
        script = launch::take_script(asked);
        for (const std::string& one : script.notes) console.say(fmt::format("{}: {}", script.file, one));
    }

    void say_replaced(const std::string& replaced) const {
        if (!replaced.empty()) console.say(fmt::format("{}: {}", asked.out, replaced));
    }

    void say_not_taken(const planner::Batch& batch) const {
        const std::string one = launch::not_taken_by(batch, script);
        if (!one.empty()) console.say(fmt::format("{}: {}", script.file, one));
    }

    // A file that the plan would write over or remove is not read. A partition is written again as it is.
    void require_apart_from_folder() const {
        namespace fs = std::filesystem;
        std::error_code none;
        const fs::path folder = fs::weakly_canonical(fs::absolute(asked.out, none), none);
        for (const auto& entry : options.entries()) {
            const auto file = entry.say && !entry.writes ? entry.say() : std::nullopt;
            if (!file || !fs::is_regular_file(*file, none)) continue;
            const fs::path name = fs::weakly_canonical(*file, none).lexically_relative(folder);
            const std::string first = name.empty() ? std::string() : name.begin()->string();
            const bool is_written = first.starts_with("replica-") || first == "torch" || first == "plan.json" ||
                                    first == "assignment.json" || first == "launch.json" || first == "report.html" ||
                                    first == "run.json";
            if (is_written)
                fail(ErrorKind::input,
                     "--{}: is '{}', which the plan would write over, allowed is another folder for --out", entry.name,
                     *file);
        }
    }

    void plan_here(const Stopwatch& start) {
        const std::string& out = asked.out;
        const Interrupt interrupt(console.quiet);
        const OutputFolder folder(out);
        limits.say_if_fewer_threads(console);
        asked.workload.anchor_read = planner::read_anchor(asked.workload.anchor);
        asked.workload.layout_time = time_of(limits.budget, start).fraction(planner::fractions.layouts);
        auto packings = asked.plans_all() ? asked.packings(limits, limits.executor())
                                          : std::vector{asked.request(limits, limits.executor())};
        say_not_taken(packings.front().batch);
        planner::Wanted wanted = asked.wanted(packings.front().job);
        const auto time = time_of(limits.budget, start);
        PlanShare share(start, limits.budget);
        wanted.on_doing = [&](const planner::Doing& doing) { console.show(share(doing)); };
        const auto own = asked.plans_all() ? asked.own_packings(packings.front().job, limits, limits.executor())
                                           : std::vector<planner::Request>();
        RungsTold told(console, packings.front().job.setup->cluster.gpus);
        const auto ladder = begin(std::move(packings), own, wanted, time, told);
        const planner::Request& request = ladder.request;
        const std::string replaced = replaced_plan(out);
        emit::PlanWriter writer(request.job, request.batch, out);
        if (wanted.opponents) wanted.start = &ladder;
        wanted.on_ladder = std::ref(told);
        wanted.on_replica_takes =
            planner::writing_a_task + (request.job.lists_by_rank ? planner::zipping_a_task : Duration{});
        wanted.on_replica = [&](const planner::ReplicaPlan& replica) { writer.add(replica); };
        auto plan = asked.make_plan(request, limits.executor(), time, wanted);
        if (wanted.opponents) plan.ladder = planner::ladder_of(ladder, plan, limits.executor(), time);
        told(plan.ladder);
        plan.ladder.interrupted = Interrupt::came();
        if (request.job.loader && !Interrupt::came())
            plan.input = planner::input_of_advised(request, plan, limits.executor());
        console.clear();
        say_replaced(replaced);
        writer.add_rest(plan, limits.executor());
        const auto measured = limits.run(start);
        const auto files = writer.finish(measured);
        say_odd_nodes(request.job.setup->cluster);
        if (console.json) {
            auto answer = emit::plan_json(request.job, request.batch, plan);
            answer["run"] = measured;
            print_json(answer);
        } else {
            print_text("{}", emit::plan_text(request.job, request.batch, plan, verbose));
            std::fflush(stdout);  // the remark on stderr comes after the table, also in a file
            console.say(next_steps(files, out, made_for(request.job, plan)));
        }
        say_left_out(plan, share);
    }

    void say_left_out(const planner::Plan& plan, const PlanShare& share) const {
        if (const double left = part_left_out(plan); left > 0 && !Interrupt::came())
            console.say(fmt::format("all of it takes about {:.0f} s more: leave --budget out",
                                    std::ceil(static_cast<double>(share.longer_for(left).count()) * 1e-9)));
    }

    // Without opponents, as for some replicas alone, there is no ladder: their samples are packed as they come.
    planner::LadderStart begin(std::vector<planner::Request> packings, const std::vector<planner::Request>& own,
                               const planner::Wanted& wanted, const planner::Time& time, RungsTold& told) const {
        if (!wanted.opponents) return {.request = std::move(packings.front())};
        planner::NowWanted in_layout = now;
        in_layout.cp = asked.workload.kept_cp();
        if (asked.workload.packing.empty() && !now.packing)
            in_layout.remark = launch::packing_remark(packings.front().batch, script);
        return planner::begin_ladder(std::move(packings), own, in_layout, limits.executor(), time, wanted.on_doing,
                                     std::ref(told));
    }

    // What a record says, again.
    void plan_served(const Stopwatch& start) const {
        const auto again = planner::plan_again(served, limits.executor());
        say_replaced(replaced_plan(asked.out));
        const auto files = emit::write_plan_folder(again.job, again.batch, again.plan, asked.out, limits.run(start),
                                                   limits.executor());
        if (console.json)
            print_json(emit::plan_json(again.job, again.batch, again.plan));
        else
            print_text("{}", emit::plan_table(again.job, again.batch, again.plan));
        std::fflush(stdout);
        console.say(next_steps(files, asked.out, made_for(again.job, again.plan)));
    }

    void plan_there() const {
        const auto request = asked.request(limits, limits.executor());
        const auto there = plan_on_server(server, options.given(), request.batch, limits.budget, asked.out);
        if (console.json)
            print_json(there.answer);
        else
            print_text("{}\n", text_of(there.answer));
        std::fflush(stdout);
        console.say(next_steps(there.files, asked.out));
    }

    static MadeFor made_for(const planner::Job& job, const planner::Plan& plan) {
        return {job.target, plan.targets.empty() ? 0 : plan.targets.front().microbatches.size(),
                planner::launched_alone(plan)};
    }

    void say_odd_nodes(const workloads::Cluster& cluster) const {
        const std::int64_t nodes = cluster.gpus / cluster.gpus_per_node, rest = cluster.gpus % cluster.gpus_per_node;
        if (nodes == 0 || rest == 0) return;
        console.say(fmt::format(
            "--cluster: {} GPUs are {} nodes of {} and {} GPUs of another; nodes of another size need a cluster file",
            cluster.gpus, nodes, cluster.gpus_per_node, rest));
    }

    Options options;
    Console console;
    planner::PlanOptions asked;
    Limits limits;
    ServerOptions server;
    std::string served;
    launch::TakenScript script;
    planner::NowWanted now;
    bool verbose = false;
};

}  // namespace

void add_plan(CLI::App& program) {
    add_command<Plan>(
        program, "plan", "plan a training step of a multimodal model",
        {.synopsis = "--model MODEL --cluster CLUSTER (--batch FILE | --dataset DATASET) --out DIR [OPTION...]",
         .description =
             "Plans one training step of a multimodal model: how its modules are cut into pipeline stages, how the "
             "batch is packed, and in which order each rank runs its work within its memory. Prints the ladder: what "
             "is run now, and what packing, launch flags, another layout and a searched order gain over it, for what "
             "--target names; with --verbose all known schedules, memory and a picture after it. Writes the folder "
             "DIR.\n"
             "With --robust it takes, of the schedules found up to 1 % longer than the shortest, the one whose median "
             "makespan is smallest if costs are wrong.\n"
             "All is done that there is to do, with the same result on any machine and number of threads; with "
             "--budget what there was time for, and the ladder says what was left out.",
         .examples = {{"A known model on 32 GPUs, a batch drawn from a published mix",
                       "pipeweaver plan --model dip-vlm-m --cluster h100-sxm:32 --tp 8 --pp 4 --dataset vlm-mix "
                       "--out plan"},
                      {"A schedule that stands up to wrong costs",
                       "pipeweaver plan --model dip-vlm-m --cluster h100-sxm:32 --dataset vlm-mix --microbatches 8 "
                       "--robust --max-rounds 20 --out plan-robust"},
                      {"Options from a file, samples of your own",
                       "pipeweaver plan --config examples/plan.yaml --batch examples/batch.jsonl --out plan-own"},
                      {"What the launch flags of Megatron-LM gain over what runs now",
                       "pipeweaver plan --model dip-vlm-m --cluster h100-sxm:32 --tp 8 --pp 4 --dataset vlm-mix "
                       "--microbatches 8 --target megatron --now first-stage,1f1b --out plan-megatron"},
                      {"A Hugging Face configuration, planned for PyTorch's pipeline runtime",
                       "pipeweaver plan --model hf:examples/qwen2.5-vl-7b.json --cluster h100-sxm:16 --tp 4 --pp 4 "
                       "--dataset vlm-mix --microbatches 8 --target torch-csv --out plan-torch"}},
         .files = {{"report.html", "the plan for a person: one page that loads nothing"},
                   {"plan.json", "the plan and why, for a program"},
                   {"assignment.json", "which samples and items each microbatch takes, with loss weights"},
                   {"deferred.jsonl", "with --defer: the samples that are left for a later step"},
                   {"replica-NNN/",
                    "problem, solution, action lists and a trace of each replica; of each rank alone with --actions "
                    "by-rank"},
                   {"launch.json", "how the best rung that flags can launch is launched"},
                   {"megatron/", "with --target megatron: its launch flags, and keys of Megatron-Bridge"},
                   {"megatron-mimo/", "with --target megatron-mimo: the same, and grids of a split that is faster"},
                   {"torchtitan/", "with --target torchtitan: its launch flags"},
                   {"torch/",
                    "a schedule under the rules of PyTorch's pipeline runtime; with --target megatron or torchtitan "
                    "only with --also torch-csv"},
                   {"run.json", "what was measured: seconds, threads, host"}},
         .see_also = {"pipeweaver list", "pipeweaver show", "pipeweaver emit", "docs/your-own-model.md",
                      "docs/formats.md"},
         .usual = {"model", "cluster", "tp", "pp", "layout", "batch", "dataset", "microbatches", "global-batch",
                   "target", "now", "recipe", "out", "budget", "json", "verbose"}});
}

}  // namespace pipeweaver::apps
