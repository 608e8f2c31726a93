// The report's first sections: what each step of the ladder gains, what is to be done for its best rung, and where that
// is said.
#include "emit/plan/ladder_facts.hpp"
#include "emit/plan/launch_files.hpp"
#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/targets.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::emit::report_parts {

using namespace planner;

namespace {

void add_nothing(Table& table, std::string_view rung, const std::string& why) {
    table.add({std::string(rung)}, fmt::format("<td class=\"nothing\" colspan=\"6\">{}</td>", escape(why)), "");
}

std::string memory_text(const Rung& rung) {
    return fmt::format("{:.1f} of {:.1f} GiB", gib(rung.peak), gib(rung.usable));
}

std::string way_text(const Ladder& ladder, const Rung& rung) {
    const std::string way = named_way(ladder, rung);
    return rung.padding ? fmt::format("{}; {}", way, rung_padding_text(rung)) : way;
}

void add_rung(Table& table, const Job& job, const Ladder& ladder, const Rung& rung, std::string_view name) {
    if (!rung.why_nothing.empty()) return add_nothing(table, name, "nothing: " + rung.why_nothing);
    const auto gpus = static_cast<double>(job.setup->cluster.gpus);
    table.add({std::string(name), human(rung.step), over_now_text(ladder, rung), memory_text(rung),
               fmt::format("{:.0f}", tokens_per_second(rung) / gpus), way_text(ladder, rung),
               fmt::format("{}", fmt::join(what_to_do(job, ladder, rung), "; "))},
              &rung == &ladder.best() ? "best" : "");
}

// A click selects all of it.
std::string command(std::string_view text) { return fmt::format("<pre class=\"command\">{}</pre>\n", escape(text)); }

std::string named(const Ladder& ladder, const Rung& rung) {
    auto step = fmt::format("{}: step {}", rung.name, human(rung.step));
    if (ladder.is_now(rung)) return step + (ladder.now_is_said ? ", what runs now" : ", the best known today");
    if (!ladder.has_now()) return step;
    if (!are_comparable(rung, ladder.now())) return step + ", and one of it and now is padded";
    return fmt::format("{}, {} as fast as now", step, over_now_text(ladder, rung));
}

std::string best_rung(const Job& job, const Ladder& ladder) {
    const Rung& best = ladder.best();
    return fmt::format("<p class=\"do\"><strong>{}</strong><br>{}.</p>\n", escape(named(ladder, best)),
                       escape(ladder.is_now(best) ? keep_text(ladder)
                                                  : fmt::format("{}", fmt::join(what_to_do(job, ladder, best), "; "))));
}

std::string command_of_rung(const Ladder& ladder, const Rung& rung) {
    return fmt::format("<p class=\"prints\">{}</p>\n", escape(named(ladder, rung))) + command(rung.command);
}

// Of each rung that has one; the best's is open.
std::string emulate_commands(const Ladder& ladder) {
    std::string others;
    std::size_t count = 0;
    for (const auto* rungs : {&ladder.rungs, &ladder.beyond})
        for (const Rung& rung : *rungs) {
            if (rung.command.empty() || !rung.why_nothing.empty() || &rung == &ladder.best()) continue;
            others += command_of_rung(ladder, rung);
            ++count;
        }
    std::string html;
    if (!ladder.best().command.empty()) html = command_of_rung(ladder, ladder.best());
    if (count > 0) html += folded(fmt::format("{} of the other rungs", plural(count, "command")), others, html.empty());
    return html;
}

// The pictured schedule, from the plan's own files.
std::string replay_command(const Plan& plan) {
    const ReplicaPlan& replica = plan.replicas[plan.slowest];
    const auto folder = fmt::format("replica-{:03}", replica.number);
    return fmt::format("<p class=\"prints\">the plan's schedule{}: makespan {}, in this folder</p>\n",
                       plan.replicas.size() == 1 ? "" : fmt::format(" of replica {}", replica.number),
                       escape(human(replica.found.replay.makespan))) +
           command(fmt::format("pipeweaver replay {0}/problem.json.gz {0}/solution.json", folder));
}

std::string run_by(const std::string& who, const emit::Target& row, const WrittenFiles& written) {
    return folded(who,
                  fmt::format("<pre># {}</pre>\n", escape(fmt::format("{}", fmt::join(row.how_to_run(written), "\n")))),
                  false);
}

// How targets load what was made for them.
std::string loading(const Plan& plan) {
    std::string html;
    for (const TargetPlan& own : plan.targets) {
        const planner::Target& target = planner::target(own.target);
        for (const emit::Target& row : emit::targets())
            if (own.found.schedule && row.of == own.target && row.how_to_run != nullptr)
                html += run_by(
                    fmt::format("{} loads its schedule", target.title), row,
                    {target.folder, own.microbatches.size(), target.fixed_shapes, is_of_first_alone(plan, target)});
    }
    return html;
}

// How the job's target launches the rung that flags say.
std::string launching(const Job& job, const Plan& plan) {
    const Rung* rung = plan.ladder.launched();
    std::string html;
    if (rung == nullptr || files_of_rung(job, plan.ladder, *rung).size() == rung->files.size()) return html;
    const launch::Launch launched = launch::launch_of(*rung);
    for (const emit::Target& row : emit::targets())
        if (row.is_launched() && row.of == job.target && !row.check_launch(launched))
            html += run_by(fmt::format("{} launches rung {}", row.title, rung->name), row, {.folder = row.folder});
    return html;
}

// "replica-000", or the first and the last of several.
std::string replicas_of(const Plan& plan) {
    if (plan.replicas.size() == 1) return fmt::format("replica-{:03}", plan.replicas.front().number);
    return fmt::format("replica-{:03} ... {:03}", plan.replicas.front().number, plan.replicas.back().number);
}

void add_replicas(Table& files, const Job& job, const Plan& plan) {
    const std::string folder = replicas_of(plan);
    const std::string name =
        job.lists_by_rank ? fmt::format("{}/rank-NNN.json.gz", rank_lists_folder) : std::string("actions.json");
    const std::string alone = planner::launched_alone(plan);
    files.add({fmt::format("{}/{}", folder, name),
               "what each rank does, in order, with tensors and peers: the order and what is recomputed",
               alone.empty() ? "pipeweaver.torch: read_actions()"
                             : fmt::format("your own executor: pipeweaver.torch does not run {}", alone)});
    files.add({folder + "/problem.json.gz, solution.json", "the schedule problem and the schedule that was found",
               "pipeweaver replay, emit, solve"});
    const auto traced = std::count_if(plan.replicas.begin(), plan.replicas.end(),
                                      [](const ReplicaPlan& replica) { return replica.examined; });
    const bool all = static_cast<std::size_t>(traced) == plan.replicas.size();
    files.add({folder + "/trace.json.gz",
               "the predicted step, bar by bar" +
                   (all ? "" : fmt::format(", of the {} replicas that were looked at closely", traced)),
               "https://ui.perfetto.dev"});
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

void add_targets(Table& files, const Plan& plan) {
    for (const TargetPlan& own : plan.targets) {
        const planner::Target& target = planner::target(own.target);
        if (!own.found.schedule) continue;
        files.add({fmt::format("{}/{}", target.folder, orders_of(target)), "the order of every rank",
                   fmt::format("{}: see above", target.title)});
        files.add({fmt::format("{}/schedule.json{}", target.folder, target.fixed_shapes ? ", padding.json" : ""),
                   target.fixed_shapes
                       ? "layers of each stage; the shape that every microbatch is padded to, recomputation"
                       : "layers of each stage",
                   "whoever builds the stages"});
    }
}

void add_launch(Table& table, const Job& job, const Plan& plan) {
    const Rung* rung = plan.ladder.launched();
    if (rung == nullptr) return;
    table.add({launch::launch_file, fmt::format("how rung {} is launched", rung->name), "pipeweaver emit"});
    if (has_own_assignment(job, *rung))
        table.add({std::string(launched_assignment_file),
                   fmt::format("which samples each replica of rung {} takes", rung->name), "a sampler"});
    const auto files = files_of_rung(job, plan.ladder, *rung);
    for (std::size_t i = rung->files.size(); i < files.size(); ++i)
        if (files[i] != launched_assignment_file)
            table.add({files[i], "the same as its target takes it", "your launch script: see above"});
}

// The files that the plan's folder has, and who reads them.
std::string folder_section(const Job& job, const Plan& plan) {
    Table files("folder stack", {head("file"), "holds", "read by"});
    files.add({"assignment.json", "the samples and items of each microbatch, with its loss weight", "your sampler"});
    files.add({"partition.json", "the layers of each stage, for the batches to come",
               "pipeweaver plan --partition partition.json"});
    if (job.defer)
        files.add({"deferred.jsonl", "the samples that are left for a later step",
                   "pipeweaver plan --deferred deferred.jsonl"});
    add_replicas(files, job, plan);
    add_targets(files, plan);
    add_launch(files, job, plan);
    files.add({"plan.json", "the figures of this page", "programs"});
    return files.wide();
}

}  // namespace

std::string ladder(const Job& job, const Batch& batch, const Plan& plan) {
    const Ladder& of = plan.ladder;
    Table table("ladder stack", {"rung", number("step"), number("over now"), number("fullest rank"),
                                 number("tokens/s a GPU"), "way", "what to do"});
    if (!of.has_now()) add_nothing(table, "now", of.why_none);
    for (const Rung& rung : of.rungs) add_rung(table, job, of, rung, rung.name);
    for (const Rung& rung : of.beyond)
        add_rung(table, job, of, rung, rung.name == groups_rung ? rung.name : "beyond: the target does not launch it");
    const auto missing = left_out_text(plan);
    std::string more;
    for (const std::string& line : not_worth_lines(of)) more += fmt::format("<p>{}.</p>\n", escape(line));
    if (const auto host = host_text(of); !host.empty()) more += fmt::format("<p>Host: {}.</p>\n", escape(host));
    if (const auto room = room_text(room_of(job, batch, of.best())); !room.empty())
        more += fmt::format("<p>Memory: {}.</p>\n", escape(room));
    for (const std::string& line : fed_lines(plan)) more += fmt::format("<p>Input: {}.</p>\n", escape(line));
    for (const std::string& line : training_lines(job, of)) more += fmt::format("<p>{}.</p>\n", escape(line));
    return table.wide() + more +
           fmt::format("<p>Trust: {}. {}{}.</p>\n", escape(trust_text(job, plan)),
                       missing.empty() ? std::string() : fmt::format("Left out {}. ", escape(missing)),
                       escape(search_text(plan)));
}

std::string how_to_run(const Job& job, const Plan& plan) {
    std::string html;
    if (!plan.ladder.rungs.empty()) html += best_rung(job, plan.ladder);
    html += heading("Stages") + stage_section(job, plan);
    html += heading("Commands that print these steps");
    if (!plan.ladder.rungs.empty()) html += emulate_commands(plan.ladder);
    html += replay_command(plan) + launching(job, plan) + loading(plan);
    return html + heading("Files") + folder_section(job, plan);
}

}  // namespace pipeweaver::emit::report_parts
