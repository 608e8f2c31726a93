#include "planner/comparison.hpp"

#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/search/policies.hpp"
#include "planner/split_search.hpp"

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;
using partition::Workload;

namespace {

constexpr std::int64_t virtual_chunks = 2;  // of the interleaved baseline

std::string problem_name(const Request& request, const Partition& partition, std::size_t replica) {
    return fmt::format("{}-{}{}-r{:03}", request.model.name, partition.name, partition.chunks_per_rank, replica);
}

// Forwards and backwards of all units, counted before anything of that size is built.
std::size_t count_tasks(const Candidate& candidate) {
    std::size_t tasks = 0;
    for (const auto& microbatch : candidate.units)
        for (std::size_t c = 0; c < microbatch.size(); ++c)
            tasks += 2 * microbatch[c].size() * candidate.partition.chains[c].stages.size();
    return tasks;
}

// The partition and its units; the step is still to be built.
Candidate cut(const Request& request, const Partition& partition,
              const std::vector<workloads::Microbatch>& microbatches) {
    Candidate candidate;
    candidate.partition = partition;
    candidate.units = partition::units(partition, request.model, microbatches);
    require_plannable(microbatches.size(), count_tasks(candidate));
    return candidate;
}

Compared compare(const Request& request, const costdb::CostDatabase& costs, const Partition& partition,
                 std::size_t replica, const std::vector<workloads::Microbatch>& microbatches) {
    Compared result;
    result.candidate = cut(request, partition, microbatches);
    const auto refuse = [&](const std::string& policy, const std::string& why) {
        result.not_applicable.push_back({partition.name, partition.chunks_per_rank, policy, why});
    };
    try {
        result.candidate.step =
            build_step(step_input(request, costs, result.candidate, problem_name(request, partition, replica)));
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::limit) throw;
        for (const auto& policy : search::policies()) refuse(policy.name, error.what());
        result.refused = error;
        return result;
    }
    std::optional<StepProblem> split;
    if (request.split != Split::never) split = split_step(result.candidate.step);
    const Replayer whole(result.candidate.step.problem), parts(split ? split->problem : result.candidate.step.problem);
    result.bound = split ? bound_of_every_choice(result.candidate.step) : search::best_bound(whole);
    for (const auto& policy : search::policies()) {
        const bool on_split = policy.needs_split && split;
        auto applied = search::apply_policy(policy.name, on_split ? parts : whole);
        if (!applied.schedule) {
            refuse(policy.name, applied.why_not);
            continue;
        }
        result.baselines.push_back({partition.name, partition.chunks_per_rank, policy.name, applied.replay.makespan,
                                    result.bound.value, applied.replay.makespan + result.candidate.step.optimizer});
        result.schedules.push_back(std::move(*applied.schedule));
        result.split.push_back(on_split);
    }
    return result;
}

}  // namespace

StepInput step_input(const Request& request, const costdb::CostDatabase& costs, const Candidate& candidate,
                     std::string name) {
    StepInput input;
    input.name = std::move(name);
    input.model = &request.model;
    input.cluster = &request.cluster;
    input.costs = &costs;
    input.layout = request.layout;
    input.chains = candidate.partition.chains;
    input.units = candidate.units;
    return input;
}

std::optional<Duration> Compared::best_baseline() const {
    std::optional<Duration> best;
    for (const Baseline& baseline : baselines)
        if (!best || baseline.makespan < *best) best = baseline.makespan;
    return best;
}

std::size_t Compared::place_of(std::string_view policy) const {
    std::size_t i = 0;
    while (baselines[i].policy != policy) ++i;
    return i;
}

std::vector<Partition> partitions(const Request& request, const Workload& workload) {
    const auto asked = [&](std::string_view name) { return request.partition.empty() || request.partition == name; };
    std::int64_t layers = 0;
    for (const auto& module : workload.model->modules) layers += module.architecture.layers;
    std::vector<Partition> all;
    if (asked("dip")) all.push_back(partition::dip(workload));
    for (const std::int64_t chunks : {std::int64_t{1}, virtual_chunks}) {
        if (chunks * workload.layout.pp > layers) continue;
        if (asked("megatron")) all.push_back(partition::megatron(workload, chunks));
        if (asked("balanced")) all.push_back(partition::balanced(workload, chunks));
    }
    return all;
}

void require_plannable(std::size_t microbatches, std::size_t tasks) {
    if (tasks <= most_tasks) return;
    fail(ErrorKind::input,
         "a replica has {} microbatches of {} tasks or more, allowed are {} tasks: take a smaller batch, or more "
         "replicas (--dp)",
         microbatches, tasks, most_tasks);
}

Candidate dip_problem(const Request& request, const costdb::CostDatabase& costs) {
    const Workload workload{&request.model, &request.cluster, &costs, request.layout, &request.microbatches};
    Candidate candidate = cut(request, partition::dip(workload), request.microbatches);
    candidate.step = build_step(step_input(request, costs, candidate, problem_name(request, candidate.partition, 0)));
    return candidate;
}

Comparison compare_all(const Request& request, const costdb::CostDatabase& costs, const std::vector<Partition>& all,
                       const Parts& parts, const Executor& execute) {
    Comparison compared(parts.size(), std::vector<Compared>(all.size()));
    run_jobs(execute, parts.size() * all.size(), [&](std::size_t job) {
        const std::size_t r = job / all.size(), p = job % all.size();
        compared[r][p] = compare(request, costs, all[p], r, parts[r]);
    });
    return compared;
}

bool is_of(const Baseline& baseline, const Partition& partition) {
    return baseline.partition == partition.name && baseline.chunks_per_rank == partition.chunks_per_rank;
}

}  // namespace pipeweaver::planner
