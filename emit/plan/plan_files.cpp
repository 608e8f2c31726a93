#include "pipeweaver/emit/plan_files.hpp"

#include "emit/plan/problem_pair.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/emit/report.hpp"
#include "pipeweaver/emit/torch_csv.hpp"
#include "pipeweaver/emit/trace.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;
using namespace planner;

void add_pair(std::vector<FileToWrite>& files, const std::filesystem::path& folder, const Problem& problem,
              const search::Found& found) {
    std::string text = to_json(problem);
    const auto file = parse_problem("problem", text);
    files.push_back({folder / "problem.json.gz", std::move(text)});
    files.push_back({folder / "solution.json", to_json(search::solution(found, problem, file.sha256))});
}

namespace {

std::string padding_json(const TorchPlan& torch) {
    const auto& padding = torch.padding;
    const auto waste = [](std::int64_t real, std::int64_t padded) {
        return padded == 0 ? 0.0 : 1 - static_cast<double>(real) / static_cast<double>(padded);
    };
    const nlohmann::ordered_json json{{"format", "pipeweaver-padding/1"},
                                      {"tokens", padding.tokens},
                                      {"items", padding.items},
                                      {"item_patches", padding.item_patches},
                                      {"padded_share_of_tokens", waste(padding.real_tokens, padding.padded_tokens)},
                                      {"padded_share_of_patches", waste(padding.real_patches, padding.padded_patches)},
                                      {"recompute", name_of(torch.recompute)}};
    return json.dump(1) + "\n";
}

}  // namespace

std::vector<FileToWrite> plan_files(const Request& request, const Plan& plan, const std::filesystem::path& folder) {
    std::vector<FileToWrite> files;
    files.push_back({folder / "plan.json", plan_json(request, plan)});
    files.push_back({folder / "assignment.json", assignment_json(request, plan)});
    files.push_back({folder / "report.html", report(request, plan)});
    const std::vector<Recompute> modes = StepInput{}.modes;
    for (std::size_t r = 0; r < plan.replicas.size(); ++r) {
        const ReplicaPlan& replica = plan.replicas[r];
        const auto place = folder / fmt::format("replica-{:03}", r);
        const Problem& problem = replica.candidate.step.problem;
        add_pair(files, place, problem, replica.found);
        files.push_back({place / "actions.json", actions(replica.candidate.step, *replica.found.schedule,
                                                         replica.found.replay, modes, replica_data(request, plan, r))});
        files.push_back(
            {place / "trace.json.gz", chrome_trace(Replayer(problem), *replica.found.schedule, replica.found.replay)});
    }
    if (!plan.torch.found.schedule) return files;
    const Problem& problem = plan.torch.candidate.step.problem;
    auto torch = torch_csv(problem, *plan.torch.found.schedule);
    files.push_back({folder / "torch/schedule.csv", std::move(torch.csv)});
    files.push_back({folder / "torch/schedule.json", std::move(torch.schedule)});
    files.push_back({folder / "torch/padding.json", padding_json(plan.torch)});
    add_pair(files, folder / "torch", problem, plan.torch.found);
    return files;
}

namespace {

// "replica-007", "replica-1234".
bool is_replica(const std::string& name) {
    constexpr std::string_view prefix = "replica-";
    constexpr std::size_t least_digits = 3;
    return name.starts_with(prefix) && name.size() >= prefix.size() + least_digits &&
           name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

}  // namespace

void remove_older_torch(const std::filesystem::path& folder, const std::vector<FileToWrite>& written) {
    remove_files(folder / "torch",
                 {"schedule.csv", "schedule.json", "padding.json", "problem.json.gz", "solution.json"}, written);
}

void remove_older_plan(const std::filesystem::path& folder, const std::vector<FileToWrite>& written) {
    remove_older_torch(folder, written);
    std::error_code error;
    std::vector<std::filesystem::path> replicas;
    for (auto entry = std::filesystem::directory_iterator(folder, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
        if (is_replica(entry->path().filename().string())) replicas.push_back(folder / entry->path().filename());
    if (error) fail(ErrorKind::io, "{}: cannot be read: {}", folder.string(), error.message());
    for (const auto& replica : replicas)
        remove_files(replica, {"problem.json.gz", "solution.json", "actions.json", "trace.json.gz"}, written);
}

}  // namespace pipeweaver::emit
