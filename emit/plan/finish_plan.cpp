// The end of writing a plan's folder: what says something of the other files, and what of an older plan stays.
#include "emit/plan/parts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/file_limits.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/plan_folder.hpp"
#include "pipeweaver/schedule/whole_plan.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <system_error>

namespace pipeweaver::emit {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using schedule::PlanHashes;

namespace {

// What an older plan of some replicas leaves for one of others.
struct Kept {
    PlanHashes files{};
    std::vector<ordered_json> replicas{};  // of assignment.json
};

std::string folder_of(std::int64_t replica) { return fmt::format("replica-{:03}", replica); }

bool is_of(const std::string& file, std::int64_t replica) { return file.starts_with(folder_of(replica) + "/"); }

ordered_json read(const fs::path& path) {
    return ordered_json::parse(read_file(path, longest_by_program), nullptr, false);
}

bool has_same(const ordered_json& a, const ordered_json& b, std::initializer_list<const char*> keys) {
    return a.is_object() && std::all_of(keys.begin(), keys.end(), [&](const char* key) {
               return a.contains(key) && b.contains(key) && a.at(key) == b.at(key);
           });
}

// Whether the files of the replica are there, as the older plan says them.
bool is_whole(const fs::path& folder, const PlanHashes& files) {
    std::error_code none;
    return std::all_of(files.begin(), files.end(), [&](const auto& file) {
        return fs::is_regular_file(folder / file.first, none) &&
               schedule::hash_of_file(folder / file.first) == file.second;
    });
}

// Where the older plan was asked for the same, over the same partition.
Kept kept_where_same(const fs::path& folder, const ordered_json& plan, const ordered_json& assignment,
                     const PlanHashes& now) {
    Kept kept;
    std::error_code none;
    if (!fs::exists(folder / plan_file, none) || !fs::exists(folder / assignment_file, none)) return kept;
    const auto older = read(folder / plan_file), shared_out = read(folder / assignment_file);
    if (!has_same(older, plan, {"format", "asked", "assignment"})) return kept;
    if (!has_same(shared_out, assignment, {"format", "loss", "loss_tokens"})) return kept;
    const PlanHashes files = schedule::hashes_of_plan(folder);
    const auto partition = files.find("partition.json");
    if (partition == files.end() || !now.contains("partition.json") || partition->second != now.at("partition.json"))
        return kept;
    std::set<std::int64_t> planned;
    for (const auto& one : assignment.at("replicas")) planned.insert(one.at("replica").get<std::int64_t>());
    for (const auto& one : shared_out.at("replicas")) {
        const auto replica = one.at("replica").get<std::int64_t>();
        PlanHashes own;
        for (const auto& file : files)
            if (is_of(file.first, replica)) own.insert(file);
        if (planned.contains(replica) || own.empty() || !is_whole(folder, own)) continue;
        kept.replicas.push_back(one);
        kept.files.merge(own);
    }
    return kept;
}

// Of an older plan that is damaged nothing is kept.
Kept kept_of(const fs::path& folder, const ordered_json& plan, const ordered_json& assignment, const PlanHashes& now) {
    try {
        return kept_where_same(folder, plan, assignment, now);
    } catch (const ordered_json::exception&) {
        return {};
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) throw;
        return {};
    }
}

std::string with_replicas(ordered_json assignment, const std::vector<ordered_json>& more) {
    auto& all = assignment.at("replicas");
    for (const auto& one : more) all.push_back(one);
    std::sort(all.begin(), all.end(), [](const ordered_json& a, const ordered_json& b) {
        return a.at("replica").get<std::int64_t>() < b.at("replica").get<std::int64_t>();
    });
    return assignment.dump(1) + "\n";
}

PlanHashes hashes_below(const fs::path& folder, const PendingFiles& pending) {
    PlanHashes hashes;
    for (const auto& [path, hash] : pending.hashes())
        if (path != folder / "run.json") hashes.emplace(path.lexically_relative(folder).generic_string(), hash);
    return hashes;
}

}  // namespace

std::vector<fs::path> finish_plan(PendingFiles& pending, const fs::path& folder, const WholeFiles& whole) {
    const FolderLock lock(folder);
    auto plan = ordered_json::parse(whole.plan), assignment = ordered_json::parse(whole.assignment);
    const Kept kept = kept_of(folder, plan, assignment, hashes_below(folder, pending));
    pending.add({folder / assignment_file,
                 kept.replicas.empty() ? whole.assignment : with_replicas(std::move(assignment), kept.replicas)});
    auto hashes = hashes_below(folder, pending);
    hashes.insert(kept.files.begin(), kept.files.end());
    plan["files"] = hashes;
    pending.add({folder / plan_file, plan.dump(1) + "\n"});
    auto written = pending.finish(folder / plan_file);
    std::vector<fs::path> stay = written;
    for (const auto& [name, hash] : kept.files) stay.push_back(folder / name);
    std::sort(stay.begin(), stay.end());
    remove_older_plan(folder, stay);
    return written;
}

}  // namespace pipeweaver::emit
