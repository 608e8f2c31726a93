// The files that a plan's folder has, and who reads them.
#include "emit/plan/launch_files.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/targets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace pipeweaver::emit::report_parts {

using namespace planner;

namespace {

std::string file(std::string_view name, std::string_view holds, std::string_view reader) {
    return fmt::format("<tr><th scope=\"row\">{}</th>{}{}</tr>\n", escape(name), cell("holds", holds),
                       cell("read by", reader));
}

// "replica-000", or the first and the last of several.
std::string replicas_of(const Plan& plan) {
    if (plan.replicas.size() == 1) return fmt::format("replica-{:03}", plan.replicas.front().number);
    return fmt::format("replica-{:03} ... {:03}", plan.replicas.front().number, plan.replicas.back().number);
}

std::string files_of_replicas(const Job& job, const Plan& plan) {
    const std::string folder = replicas_of(plan);
    const std::string name =
        job.lists_by_rank ? fmt::format("{}/rank-NNN.json.gz", rank_lists_folder) : std::string("actions.json");
    std::string rows = file(fmt::format("{}/{}", folder, name),
                            "what each rank does, in order, with tensors and peers: the order and what is recomputed",
                            "pipeweaver.torch: read_actions()");
    rows += file(folder + "/problem.json.gz, solution.json", "the schedule problem and the schedule that was found",
                 "pipeweaver replay, emit, solve");
    const auto traced = std::count_if(plan.replicas.begin(), plan.replicas.end(),
                                      [](const ReplicaPlan& replica) { return replica.examined; });
    const bool all = static_cast<std::size_t>(traced) == plan.replicas.size();
    return rows + file(folder + "/trace.json.gz",
                       "the predicted step, bar by bar" +
                           (all ? "" : fmt::format(", of the {} replicas that were looked at closely", traced)),
                       "https://ui.perfetto.dev");
}

// Of the schedules that are written for a planner's target, those that hold its order.
std::string orders_of(const planner::Target& target) {
    std::vector<std::string> names;
    for (const emit::Target& one : emit::targets())
        if (one.of == target.name)
            for (const std::string& name : one.files)
                if (name.ends_with(".csv")) names.push_back(name);
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string files_of_targets(const Plan& plan) {
    std::string rows;
    for (const TargetPlan& own : plan.targets) {
        const planner::Target& target = planner::target(own.target);
        if (!own.found.schedule) continue;
        rows += file(fmt::format("{}/{}", target.folder, orders_of(target)), "the order of every rank",
                     fmt::format("{}: see above", target.title));
        rows += file(fmt::format("{}/schedule.json{}", target.folder, target.fixed_shapes ? ", padding.json" : ""),
                     target.fixed_shapes
                         ? "layers of each stage; the shape that every microbatch is padded to, recomputation"
                         : "layers of each stage",
                     "whoever builds the stages");
    }
    return rows;
}

std::string files_of_launch(const Job& job, const Plan& plan) {
    const Rung* rung = plan.ladder.launched();
    if (rung == nullptr) return {};
    std::string rows = file(launch::launch_file, fmt::format("how rung {} is launched", rung->name), "pipeweaver emit");
    if (is_in_another_layout(job, *rung))
        rows += file(launched_assignment_file, fmt::format("which samples each replica of rung {} takes", rung->name),
                     "a sampler");
    const auto files = files_of_rung(job, plan.ladder, *rung);
    for (std::size_t i = rung->files.size(); i < files.size(); ++i)
        if (files[i] != launched_assignment_file)
            rows += file(files[i], "the same as its target takes it", "your launch script: see above");
    return rows;
}

}  // namespace

std::string folder_section(const Job& job, const Plan& plan) {
    std::string rows =
        file("assignment.json", "the samples and items of each microbatch, with its loss weight", "your sampler");
    rows += file("partition.json", "the layers of each stage, for the batches to come",
                 "pipeweaver plan --partition partition.json");
    if (job.defer)
        rows += file("deferred.jsonl", "the samples that are left for a later step",
                     "pipeweaver plan --deferred deferred.jsonl");
    rows += files_of_replicas(job, plan) + files_of_targets(plan) + files_of_launch(job, plan);
    rows += file("plan.json", "the figures of this page", "programs");
    return wide_table(
        "<table class=\"folder stack\"><thead><tr><th>file</th><th>holds</th><th>read by</th></tr></thead>"
        "<tbody>\n",
        rows);
}

}  // namespace pipeweaver::emit::report_parts
