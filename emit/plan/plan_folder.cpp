#include "pipeweaver/emit/plan_folder.hpp"

#include "emit/plan/launch_files.hpp"
#include "emit/plan/parts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/targets.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/schedule/solved.hpp"
#include "pipeweaver/schedule/whole_plan.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
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

// What is written last is kept, all else begun.
void take_file(FileToWrite file, const fs::path& folder, PendingFiles& pending, WholeFiles& whole) {
    if (file.path == folder / plan_file)
        whole.plan = std::move(file.content);
    else if (file.path == folder / assignment_file)
        whole.assignment = std::move(file.content);
    else
        pending.add(file);
}

}  // namespace

PlanWriter::PlanWriter(const Job& job, const Batch& batch, fs::path folder)
    : job_(job), batch_(batch), folder_(std::move(folder)) {}

void PlanWriter::add(const ReplicaPlan& replica) {
    std::call_once(totalled_, [&] { losses_ = loss_totals(job_, batch_, replica.cut.partition); });
    for (const FileToWrite& file : replica_files(job_, batch_, replica, losses_, folder_)) pending_.add(file);
}

void PlanWriter::add_rest(const Plan& plan, const Executor& execute) {
    make_whole_files(job_, batch_, plan, folder_, execute,
                     [&](FileToWrite file) { take_file(std::move(file), folder_, pending_, whole_); });
}

std::vector<fs::path> PlanWriter::finish(const nlohmann::ordered_json& run) {
    pending_.add({folder_ / "run.json", run.dump(1) + "\n"});
    return finish_plan(pending_, folder_, whole_);
}

std::vector<fs::path> write_plan_files(const std::vector<FileToWrite>& files, const fs::path& folder) {
    PendingFiles pending;
    WholeFiles whole;
    for (const FileToWrite& file : files) take_file(file, folder, pending, whole);
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

// Where the plan's own schedule for the target lies, or the one problem of a folder that is no plan's.
fs::path own_schedule(const fs::path& folder, const std::optional<JsonDocument>& plan, const Target& target) {
    const std::string& name = planner::target(target.of).folder;
    std::error_code ignored;
    if (!name.empty() && fs::is_directory(folder / name, ignored)) return folder / name;
    if (!plan || is_there(schedule::problem_in(folder))) return folder;
    const auto why = plan->root().at(name).find("why_not");
    fail(ErrorKind::limit, "{}: the plan has no schedule for {}: {}", folder.string(), target.name,
         why ? why->text() : name + "/ is missing");
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
    schedule::require_whole(source);
    std::optional<JsonDocument> plan;
    if (is_there(source / plan_file)) plan = JsonDocument::read_large(source / plan_file);
    if (plan) {
        plan->require_format("pipeweaver-plan", 1);
        const Json partition = plan->root().at("partition");  // a whole one says what it runs on
        static_cast<void>(partition.at("name").text());
        static_cast<void>(partition.at("chunks_per_rank").integer(1));
    }
    const bool of_replicas = target.of == "free";
    std::optional<Duration> optimizer;
    if (of_replicas && plan) optimizer = Duration{plan->root().at("after_all_ranks_ns").integer(0)};
    std::vector<FileToWrite> files;
    for (const fs::path& folder : of_replicas ? replicas_in(source) : std::vector{own_schedule(source, plan, target)}) {
        const schedule::Solved solved = schedule::read_solved(folder / "solution.json");
        std::optional<ActionLists> actions;
        if (of_replicas && is_there(folder / "actions.json")) actions = read_actions(folder / "actions.json");
        const ToEmit from{.problem = solved.file.problem,
                          .schedule = solved.schedule,
                          .actions = actions ? &*actions : nullptr,
                          .folder = folder,
                          .optimizer = optimizer};
        if (const auto why = target.check(from)) fail(ErrorKind::limit, "{}", *why);
        // Files of several replicas keep their folders; those of a single problem lie at the top.
        const bool alone = !of_replicas || folder == source;
        for (auto& file : target.write(from, alone ? out : out / folder.filename())) files.push_back(std::move(file));
    }
    return files;
}

}  // namespace pipeweaver::emit
