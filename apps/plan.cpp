// pipeweaver plan: a batch, a model and a cluster in; the best partition and schedule out.
#include "pipeweaver/planner/plan.hpp"

#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/workload.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emit/plan_files.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace pipeweaver::apps {

namespace {

struct Plan {
    explicit Plan(CLI::App& app) : options(app) {
        console.add_to(app);
        options.with_configuration();
        workload.add_to(options);
        limits.add_to(options);
        options.parsed(
            "partition", "plan on this partition alone: dip, megatron or balanced", [this](const std::string& name) {
                if (name != "dip" && name != "megatron" && name != "balanced")
                    fail(ErrorKind::input, "--partition: is '{}', allowed are dip, megatron, balanced", name);
                partition = name;
            });
        options.parsed("assignment", "microbatches to replicas: balanced by cost (default), or in-turn, for comparison",
                       [this](const std::string& name) {
                           if (name != "balanced" && name != "in-turn")
                               fail(ErrorKind::input, "--assignment: is '{}', allowed are balanced, in-turn", name);
                           sharing = name == "balanced" ? partition::Sharing::balanced : partition::Sharing::in_turn;
                       });
        options.parsed("target",
                       "what the schedule is for: torch-actions (default) or torch-csv, which must then exist",
                       [this](const std::string& name) {
                           if (name != "torch-actions" && name != "torch-csv")
                               fail(ErrorKind::input, "--target: is '{}', allowed are torch-actions, torch-csv", name);
                           for_torch = name == "torch-csv";
                       });
        options.text("out", out, "folder of the plan (required)");
    }

    void run() {
        const auto start = std::chrono::steady_clock::now();
        options.apply();
        if (out.empty()) fail(ErrorKind::input, "--out: is missing, a folder for the plan is needed");
        planner::Request request = workload.request(static_cast<std::uint64_t>(limits.seed), limits.executor());
        request.max_rounds = limits.rounds();
        request.partition = partition;
        request.sharing = sharing;
        request.for_torch = for_torch;
        const auto costs = costdb::CostDatabase::embedded(request.cluster.device);
        const auto plan = make_plan(request, costs);
        console.clear();
        auto files = emit::plan_files(request, plan, out);
        const auto measured = limits.run(start);
        files.push_back({std::filesystem::path(out) / "run.json", measured.dump(1) + "\n"});
        write_files(files);
        if (console.json) {
            auto answer = nlohmann::ordered_json::parse(emit::plan_json(request, plan));
            answer["run"] = measured;
            fmt::print("{}\n", answer.dump());
        } else {
            fmt::print("{}", emit::plan_table(request, plan));
            std::fflush(stdout);  // the remark on stderr comes behind the table, also in a file
            console.say(fmt::format("\nwritten to {}: report.html, plan.json, assignment.json, replica-000/ ...{}", out,
                                    plan.torch.found.schedule ? ", torch/schedule.csv" : ""));
        }
    }

    // Says what would fit where the plan does not.
    planner::Plan make_plan(const planner::Request& request, const costdb::CostDatabase& costs) const {
        try {
            return planner::make_plan(request, costs, limits.executor(),
                                      [this](double share) { return limits.begin(console, share); });
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::limit || for_torch) throw;
            const auto asked = workload.layout_request(request, request.seed);
            fail(ErrorKind::limit, "{}; {}", error.what(), planner::what_would_fit(asked, costs, limits.executor()));
        }
    }

    Options options;
    Console console;
    WorkloadOptions workload;
    Limits limits;
    std::string partition;
    partition::Sharing sharing = partition::Sharing::balanced;
    bool for_torch = false;
    std::string out;
};

}  // namespace

void add_plan(CLI::App& program) {
    auto* app = program.add_subcommand("plan", "plan a training step of a multimodal model");
    app->footer(
        "example: pipeweaver plan --model dip-vlm-m --cluster h100-sxm:32 --tp 8 --pp 4 --dataset vlm-mix "
        "--microbatches 16 --out plan");
    const auto plan = std::make_shared<Plan>(*app);  // shared: CLI11 keeps the callback
    app->callback([plan] { plan->run(); });
}

}  // namespace pipeweaver::apps
