#include "pipeweaver/emit/targets.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/emit/torch_csv.hpp"
#include "pipeweaver/emit/trace.hpp"

#include <algorithm>

namespace pipeweaver::emit {

namespace fs = std::filesystem;
using namespace schedule;
using namespace emulator;

namespace {

struct Solved {
    ProblemFile file;
    Schedule schedule;
};

fs::path problem_in(const fs::path& folder) {
    std::error_code ignored;
    const fs::path plain = folder / "problem.json";
    return fs::exists(plain, ignored) ? plain : folder / "problem.json.gz";
}

Solved read_solved(const fs::path& folder) {
    Solved solved{read_problem(problem_in(folder)), {}};
    solved.schedule = read_schedule(folder / "solution.json", solved.file);
    return solved;
}

// The replicas of a plan folder, or the folder itself.
std::vector<fs::path> replicas_in(const fs::path& source) {
    std::vector<fs::path> folders;
    for (int r = 0;; ++r) {
        const fs::path folder = source / fmt::format("replica-{:03}", r);
        std::error_code ignored;
        if (!fs::is_directory(folder, ignored)) break;
        folders.push_back(folder);
    }
    if (folders.empty()) folders.push_back(source);
    return folders;
}

// Files of several replicas keep their folders; those of a single problem lie at the top.
fs::path place_for(const fs::path& source, const fs::path& folder, const fs::path& out) {
    return folder == source ? out : out / folder.filename();
}

std::vector<FileToWrite> torch_files(const fs::path& source, const fs::path& out) {
    std::error_code ignored;
    const fs::path folder = fs::is_directory(source / "torch", ignored) ? source / "torch" : source;
    if (!fs::exists(problem_in(folder), ignored) && fs::exists(source / "plan.json", ignored)) {
        const auto plan = JsonDocument::read(source / "plan.json");
        const auto why = plan.root().at("torch").find("why_not");
        fail(ErrorKind::limit, "{}: the plan has no schedule for torch-csv: {}", source.string(),
             why ? why->text() : "torch/ is missing");
    }
    const Solved solved = read_solved(folder);
    auto files = torch_csv(solved.file.problem, solved.schedule);
    return {{out / "schedule.csv", std::move(files.csv)}, {out / "schedule.json", std::move(files.schedule)}};
}

std::vector<FileToWrite> traces(const fs::path& source, const fs::path& out) {
    std::vector<FileToWrite> files;
    for (const fs::path& folder : replicas_in(source)) {
        const Solved solved = read_solved(folder);
        const Replayer replayer(solved.file.problem);
        const Replay replay = replayer.replay(solved.schedule);
        if (replay.outcome != Outcome::completed)
            fail(ErrorKind::limit, "{}: the schedule does not run", (folder / "solution.json").string());
        files.push_back(
            {place_for(source, folder, out) / "trace.json.gz", chrome_trace(replayer, solved.schedule, replay)});
    }
    return files;
}

std::vector<FileToWrite> action_lists(const fs::path& source, const fs::path& out) {
    std::vector<FileToWrite> files;
    for (const fs::path& folder : replicas_in(source)) {
        std::error_code ignored;
        if (!fs::exists(folder / "actions.json", ignored)) {
            const Solved solved = read_solved(folder);
            files.push_back(
                {place_for(source, folder, out) / "actions.json", actions(solved.file.problem, solved.schedule)});
            continue;
        }
        const auto document = JsonDocument::read(folder / "actions.json");
        document.require_format("pipeweaver-actions", 1);
        files.push_back({place_for(source, folder, out) / "actions.json", read_file(folder / "actions.json")});
    }
    return files;
}

}  // namespace

const std::vector<Target>& targets() {
    static const std::vector<Target> all{
        {"torch-csv",
         "schedule.csv for PyTorch's _PipelineScheduleRuntime, torchtitan, NeMo AutoModel; schedule.json beside it"},
        {"torch-actions",
         "actions.json: action lists with tensors and peers, for an executor that runs DAGs of modules"},
        {"chrome-trace", "trace.json.gz: the predicted step, for Perfetto"}};
    return all;
}

std::vector<FileToWrite> emit(const fs::path& source, std::string_view target, const fs::path& out) {
    if (target == "torch-csv") return torch_files(source, out);
    if (target == "torch-actions") return action_lists(source, out);
    if (target == "chrome-trace") return traces(source, out);
    std::vector<std::string> names;
    for (const Target& one : targets()) names.push_back(one.name);
    fail(ErrorKind::input, "--target: {}", unknown("target", target, names));
}

}  // namespace pipeweaver::emit
