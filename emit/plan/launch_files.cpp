#include "emit/plan/launch_files.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emit/mimo_script.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/targets.hpp"
#include "pipeweaver/launch/launch.hpp"
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <fmt/format.h>

namespace pipeweaver::emit {

namespace fs = std::filesystem;
using namespace planner;

namespace {

// Calls `take` with each row of the target that writes how a rung is launched.
template <class Take>
void for_rows(const std::string& target, Take take) {
    for (const emit::Target& row : targets())
        if (row.is_launched() && row.of == target) take(row);
}

bool is_launched(const Ladder& ladder, const Rung& rung) { return ladder.launched() == &rung; }

constexpr const char* grids_script = "mimo.sh";

// Of modules on GPUs of their own that the job's target launches, where its rows lie.
std::vector<std::string> files_of_grids(const Job& job, const Rung& rung) {
    std::vector<std::string> files;
    if (!rung.placing || !rung.why_nothing.empty()) return files;
    for_rows(job.target,
             [&](const emit::Target& row) { files.push_back(fmt::format("{}/{}", row.folder, grids_script)); });
    return files;
}

void add_grids(std::vector<FileToWrite>& files, const Job& job, const Plan& plan, const fs::path& folder) {
    for (const Rung& rung : plan.ladder.beyond)
        for (const std::string& file : files_of_grids(job, rung))
            files.push_back({folder / file, mimo_script(*rung.placing, job.setup->model, rung.planned)});
}

}  // namespace

bool has_own_assignment(const Job& job, const Rung& rung) {
    if (!rung.launched) return false;
    const emulator::Setup& own = *rung.launched->setup;
    return !are_equal({own.layout, own.recipe.zero}, {job.setup->layout, job.setup->recipe.zero}) ||
           own.model.built != job.setup->model.built;  // encoders that cost more or less are shared out otherwise
}

std::vector<FileToWrite> launch_files(const Job& job, const Plan& plan, const fs::path& folder) {
    std::vector<FileToWrite> files;
    add_grids(files, job, plan, folder);
    const Rung* rung = plan.ladder.launched();
    if (rung == nullptr) return files;
    const launch::Launch launch = launch::launch_of(*rung);
    files.push_back({folder / launch::launch_file, launch::to_json(launch)});
    if (has_own_assignment(job, *rung))
        files.push_back({folder / launched_assignment_file, assignment_json(*rung->launched)});
    for_rows(job.target, [&](const emit::Target& row) {
        if (row.check_launch(launch)) return;
        for (FileToWrite& file : row.write_launch(launch, folder / row.folder)) files.push_back(std::move(file));
    });
    return files;
}

std::vector<std::string> files_of_rung(const Job& job, const Ladder& ladder, const Rung& rung) {
    std::vector<std::string> files = rung.files;
    for (std::string& file : files_of_grids(job, rung)) files.push_back(std::move(file));
    if (has_own_assignment(job, rung)) {
        std::erase(files, assignment_file);
        if (is_launched(ladder, rung)) files.emplace(files.begin(), launched_assignment_file);
    }
    if (!is_launched(ladder, rung)) return files;
    const launch::Launch launch = launch::launch_of(rung);
    for_rows(job.target, [&](const emit::Target& row) {
        if (row.check_launch(launch)) return;
        for (const std::string& name : row.files) files.push_back(row.folder + "/" + name);
    });
    return files;
}

std::vector<std::string> refused_of_rung(const Job& job, const Ladder& ladder, const Rung& rung) {
    std::vector<std::string> refused;
    if (!is_launched(ladder, rung)) return refused;
    const launch::Launch launch = launch::launch_of(rung);
    std::string_view folder;  // of what was said last, and what
    std::string said;
    for_rows(job.target, [&](const emit::Target& row) {
        const auto why = row.check_launch(launch);
        if (!why || (row.folder == folder && *why == said)) return;
        folder = row.folder;
        said = *why;
        refused.push_back(fmt::format("no files in {}/: {}{}", row.folder,
                                      row.name == row.folder ? "" : fmt::format("{}: ", row.name), *why));
    });
    return refused;
}

void remove_older_launches(const fs::path& folder, const std::vector<fs::path>& written) {
    remove_files(folder, {launch::launch_file, std::string(launched_assignment_file)}, written);
    for (const emit::Target& row : targets())
        if (row.is_launched()) {
            std::vector<std::string> names = row.files;
            names.emplace_back(grids_script);
            remove_files(folder / row.folder, names, written);
        }
}

std::vector<FileToWrite> emit_launch(const fs::path& source, const emit::Target& target, const fs::path& out) {
    const fs::path file = source / launch::launch_file;
    std::error_code ignored;
    if (fs::is_directory(source, ignored) && !fs::exists(file, ignored))
        fail(ErrorKind::limit, "{}: the plan has no rung that flags launch, so nothing is written for {}",
             source.string(), target.name);
    const launch::Launch launch = launch::read_launch(file);
    if (const auto why = target.check_launch(launch)) fail(ErrorKind::limit, "{}: {}", target.name, *why);
    return target.write_launch(launch, out);
}

}  // namespace pipeweaver::emit
