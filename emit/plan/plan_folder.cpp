#include "pipeweaver/emit/plan_folder.hpp"

#include "emit/plan/launch_files.hpp"
#include "emit/plan/parts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/stage_files.hpp"
#include "pipeweaver/emit/targets.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/schedule/whole_plan.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace pipeweaver::emit {

using namespace planner;
namespace fs = std::filesystem;

nlohmann::ordered_json run_json(const SearchLimits& limits, double seconds, const std::string& host) {
    nlohmann::ordered_json json{
        {"format", "pipeweaver-run/1"}, {"seconds", seconds},    {"threads", limits.thread_count()},
        {"budget_ns", nullptr},         {"max_rounds", nullptr}, {"host", host}};
    if (limits.budget) json["budget_ns"] = limits.budget->count();
    if (limits.max_rounds) json["max_rounds"] = *limits.max_rounds;
    return json;
}

namespace {

// Where the content of a file that is written last goes.
std::string* whole_file(WholeFiles& whole, const fs::path& folder, const fs::path& path) {
    if (path == folder / plan_file) return &whole.plan;
    return path == folder / assignment_file ? &whole.assignment : nullptr;
}

}  // namespace

PlanWriter::PlanWriter(const Job& job, const Batch& batch, fs::path folder)
    : job_(job), batch_(batch), folder_(std::move(folder)) {}

void PlanWriter::add(const ReplicaPlan& replica) {
    std::call_once(totalled_, [&] { losses_ = loss_totals(job_, batch_, replica.cut.partition); });
    for (const FileToWrite& file : replica_files(job_, batch_, replica, losses_, folder_)) pending_.add(file);
}

void PlanWriter::add_rest(const Plan& plan, const Executor& execute) {
    make_whole_files(job_, batch_, plan, folder_, execute, [&](FileToWrite file) {
        if (std::string* const last = whole_file(whole_, folder_, file.path))
            *last = std::move(file.content);
        else
            pending_.add(file);
    });
}

std::vector<fs::path> PlanWriter::finish(const nlohmann::ordered_json& run) {
    pending_.add({folder_ / "run.json", run.dump(1) + "\n"});
    return finish_plan(pending_, folder_, whole_);
}

std::vector<fs::path> write_plan_files(const std::vector<FileToWrite>& files, const fs::path& folder) {
    PendingFiles pending;
    WholeFiles whole;
    for (const FileToWrite& file : files) {
        if (std::string* const last = whole_file(whole, folder, file.path))
            *last = file.content;
        else
            pending.add(file);
    }
    return finish_plan(pending, folder, whole);
}

std::vector<fs::path> write_plan_folder(const Job& job, const Batch& batch, const Plan& plan, const fs::path& folder,
                                        const nlohmann::ordered_json& run, const Executor& execute) {
    PlanWriter writer(job, batch, folder);
    run_jobs(execute, plan.replicas.size(), [&](std::size_t r) { writer.add(plan.replicas[r]); });
    writer.add_rest(plan, execute);
    return writer.finish(run);
}

std::vector<fs::path> write_plan_folder(const StageRequest& request, const StagePlan& plan, const fs::path& folder,
                                        const nlohmann::ordered_json& run) {
    PendingFiles pending;
    for (const FileToWrite& file : stage_files(request, plan, folder)) pending.add(file);
    pending.add({folder / "run.json", run.dump(1) + "\n"});
    auto written = pending.finish();
    remove_older_targets(folder, written);
    return written;
}

namespace {

// Prefix, three digits or more, suffix: "replica-007", "rank-1234.json.gz".
bool is_numbered(std::string_view name, std::string_view prefix, std::string_view suffix = "") {
    constexpr std::size_t least_digits = 3;
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) return false;
    if (name.size() < prefix.size() + least_digits + suffix.size()) return false;
    const auto digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    return digits.find_first_not_of("0123456789") == std::string_view::npos;
}

// The names in a folder that are so; none where there is no such folder. Throws Error{io}.
std::vector<std::string> numbered_in(const fs::path& folder, std::string_view prefix, std::string_view suffix = "") {
    std::vector<std::string> names;
    std::error_code error;
    for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error))
        if (auto name = entry->path().filename().string(); is_numbered(name, prefix, suffix))
            names.push_back(std::move(name));
    if (error && error != std::errc::no_such_file_or_directory)
        fail(ErrorKind::io, "{}: cannot be read: {}", folder.string(), error.message());
    return names;
}

// What a plan writes of a schedule for the planner's target: the pair, padding, and the files of the rows that emit it.
std::vector<std::string> files_of(const std::string& target) {
    std::vector<std::string> names{"problem.json.gz", "solution.json"};
    if (planner::target(target).fixed_shapes) names.emplace_back("padding.json");
    for (const Target& row : targets())
        if (row.of == target && !row.is_launched()) names.insert(names.end(), row.files.begin(), row.files.end());
    return names;
}

}  // namespace

void remove_older_targets(const fs::path& folder, const std::vector<fs::path>& written) {
    for (const planner::Target& one : planner::targets())
        if (!one.folder.empty()) remove_files(folder / one.folder, files_of(one.name), written);
    remove_older_launches(folder, written);
}

void remove_older_plan(const fs::path& folder, const std::vector<fs::path>& written) {
    remove_older_targets(folder, written);
    remove_files(folder, {"deferred.jsonl"}, written);
    for (const std::string& name : numbered_in(folder, "replica-")) {
        const fs::path replica = folder / name, lists = replica / rank_lists_folder;
        remove_files(lists, numbered_in(lists, "rank-", ".json.gz"), written);
        remove_files(replica, files_of("free"), written);
    }
}

namespace {

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

std::optional<JsonDocument> read_if_there(const fs::path& path, std::string_view format) {
    if (!is_there(path)) return std::nullopt;
    auto document = JsonDocument::read_large(path);
    document.require_format(format, 1);
    return document;
}

// The folders of the replicas, by number, or the folder itself.
std::vector<fs::path> replicas_in(const fs::path& folder) {
    auto names = numbered_in(folder, "replica-");
    std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
        return std::pair(a.size(), a) < std::pair(b.size(), b);
    });
    std::vector<fs::path> replicas;
    for (const std::string& name : names)
        if (fs::is_directory(folder / name)) replicas.push_back(folder / name);
    if (replicas.empty()) replicas.push_back(folder);
    return replicas;
}

}  // namespace

SolvedFolder read_solved_folder(const fs::path& folder, bool actions) {
    SolvedFolder one{folder, schedule::read_solved(folder / "solution.json"), {}};
    if (actions && is_there(folder / "actions.json")) one.actions = read_actions(folder / "actions.json");
    return one;
}

PlanFolder read_plan_folder(const fs::path& folder, const PlanParts& parts) {
    PlanFolder all;
    all.folder = folder;
    schedule::require_whole(folder);
    all.plan = read_if_there(folder / plan_file, "pipeweaver-plan");
    if (all.plan) {
        const Json partition = all.plan->root().at("partition");
        all.partition = {partition.at("name").text(), partition.at("chunks_per_rank").integer(1)};
    }
    if (parts.assignment) all.assignment = read_if_there(folder / "assignment.json", "pipeweaver-assignment");
    if (parts.replicas)
        for (const fs::path& replica : replicas_in(folder))
            all.replicas.push_back(read_solved_folder(replica, parts.actions));
    for (const planner::Target& target : planner::targets()) {
        std::error_code ignored;
        if (parts.targets && !target.folder.empty() && fs::is_directory(folder / target.folder, ignored))
            all.targets.emplace(target.name, read_solved_folder(folder / target.folder, false));
    }
    return all;
}

namespace {

// The plan's own schedule for the target, or the one problem of a folder that is no plan's.
SolvedFolder own_schedule(PlanFolder plan, const Target& target) {
    if (const auto own = plan.targets.find(target.of); own != plan.targets.end()) return std::move(own->second);
    const std::string& name = planner::target(target.of).folder;
    std::error_code ignored;
    if (plan.plan && !fs::exists(schedule::problem_in(plan.folder), ignored)) {
        const auto why = plan.plan->root().at(name).find("why_not");
        fail(ErrorKind::limit, "{}: the plan has no schedule for {}: {}", plan.folder.string(), target.name,
             why ? why->text() : name + "/ is missing");
    }
    return read_solved_folder(plan.folder, false);
}

const Target& find_target(std::string_view name) {
    std::vector<std::string> names;
    for (const Target& one : targets()) {
        if (one.name == name) return one;
        names.push_back(one.name);
    }
    fail(ErrorKind::input, "--target: {}", unknown("target", name, names));
}

}  // namespace

std::vector<FileToWrite> emit(const fs::path& source, std::string_view name, const fs::path& out) {
    const Target& target = find_target(name);
    if (target.is_launched()) return emit_launch(source, target, out);
    const bool of_replicas = target.of == "free";
    PlanFolder plan = read_plan_folder(source, {.assignment = false, .replicas = of_replicas, .targets = !of_replicas});
    std::optional<Duration> optimizer;
    if (of_replicas && plan.plan) optimizer = Duration{plan.plan->root().at("after_all_ranks_ns").integer(0)};
    std::vector<SolvedFolder> schedules;
    if (of_replicas)
        schedules = std::move(plan.replicas);
    else
        schedules.push_back(own_schedule(std::move(plan), target));
    std::vector<FileToWrite> files;
    for (const SolvedFolder& one : schedules) {
        const ToEmit from{.problem = one.solved.file.problem,
                          .schedule = one.solved.schedule,
                          .actions = one.actions ? &*one.actions : nullptr,
                          .folder = one.folder,
                          .optimizer = optimizer};
        if (const auto why = target.check(from)) fail(ErrorKind::limit, "{}", *why);
        // Files of several replicas keep their folders; those of a single problem lie at the top.
        const bool alone = !of_replicas || one.folder == source;
        for (auto& file : target.write(from, alone ? out : out / one.folder.filename()))
            files.push_back(std::move(file));
    }
    return files;
}

}  // namespace pipeweaver::emit
