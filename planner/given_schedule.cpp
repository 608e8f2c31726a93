#include "planner/given_schedule.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;
using partition::Workload;
namespace fs = std::filesystem;

namespace {

std::string problem_name(const Request& request, const Partition& partition, std::size_t replica) {
    return fmt::format("{}-{}{}-r{:03}", request.model.name, partition.name, partition.chunks_per_rank, replica);
}

fs::path solution_of(const fs::path& path, std::size_t replica, std::size_t replicas) {
    if (fs::is_directory(path)) return path / fmt::format("replica-{:03}", replica) / "solution.json";
    if (replicas > 1)
        fail(ErrorKind::input, "{}: is one schedule, {} replicas are asked for: name the folder of their plan",
             path.string(), replicas);
    return path;
}

GivenSchedule read_one(const fs::path& solution, const Request& request, const costdb::CostDatabase& costs,
                       const std::vector<Partition>& partitions, const std::vector<workloads::Microbatch>& microbatches,
                       std::size_t replica) {
    const fs::path beside = solution.parent_path() / "problem.json.gz";
    const ProblemFile file = read_problem(beside);
    const auto found = std::find_if(partitions.begin(), partitions.end(), [&](const Partition& partition) {
        return problem_name(request, partition, replica) == file.problem.name;
    });
    const auto refuse = [&](const std::string& why) {
        fail(ErrorKind::input,
             "{}: is of the problem '{}', {}: model, cluster, layout, batch, seed and costs must be "
             "those of the plan",
             solution.string(), file.problem.name, why);
    };
    if (found == partitions.end()) refuse("which this request does not have");
    GivenSchedule given{*found, {}, read_schedule(solution, file)};
    const Workload workload{&request.model, &request.cluster, &costs, request.layout, &microbatches};
    auto input = partition::step_input(workload, *found);
    input.name = file.problem.name;
    StepProblem step = build_step(input);
    for (const Pair& pair : file.problem.pairs) given.split.push_back(pair.weight.has_value());
    if (given.split.size() != step.problem.pairs.size()) refuse("whose tasks are others");
    if (std::find(given.split.begin(), given.split.end(), true) != given.split.end()) {
        const auto can = splittable(step);
        for (std::size_t k = 0; k < can.size(); ++k)
            if (given.split[k] && !can[k]) refuse("whose tasks are others");
        step = split_backwards(step, given.split);
    }
    if (parse_problem(file.problem.name, to_json(step.problem)).sha256 != file.sha256)
        refuse("whose times or memory are others");
    return given;
}

}  // namespace

std::vector<GivenSchedule> read_given(const fs::path& path, const Request& request, const costdb::CostDatabase& costs,
                                      const Parts& parts) {
    Request all = request;
    all.partition.clear();
    const Workload workload{&all.model, &all.cluster, &costs, all.layout, &all.microbatches};
    const auto known = partitions(all, workload);
    std::vector<GivenSchedule> given;
    for (std::size_t r = 0; r < parts.size(); ++r)
        given.push_back(read_one(solution_of(path, r, parts.size()), all, costs, known, parts[r], r));
    return given;
}

}  // namespace pipeweaver::planner
