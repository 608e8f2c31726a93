#include "planner/choose/compared.hpp"

namespace pipeweaver::planner {

using namespace emulator;

Compared compare(const Request& request, const partition::Partition& partition, const OneReplica& replica,
                 const std::vector<std::string>& policies, search::BoundEffort bound, const Executor& execute,
                 const Time& time) {
    const Setup& setup = *request.setup;
    auto units = partition::units(partition, setup.model, *replica.microbatches);
    const std::size_t tasks = count_tasks(partition, units);
    require_plannable(replica.microbatches->size(), tasks);
    EvaluationWanted wanted{.split = request.split != Split::never, .bound = bound};
    if (!policies.empty()) wanted.policies = policies;
    wanted.time = time;
    wanted.one_anyhow = effort_of(tasks, 1).policy_first;
    const StepWanted step{.name = problem_name(setup, partition, replica.number), .replica = replica.number};
    return {evaluate(setup, partition, std::move(units), step, wanted, execute)};
}

void search_in(Compared& compared, const Request& request, const SearchWanted& wanted, const Executor& execute,
               const Time& time) {
    search::Options options{"default", request.seed, request.max_rounds, {}, {}, {}};
    options.bounds = wanted.bounds;
    const StepProblem& whole = compared.known.cut.step;
    options.alternatives =
        wanted.rule.near(whole.problem.tasks.size(), static_cast<std::size_t>(request.setup->layout.dp));
    auto known = searchable(compared.known, request.split == Split::never ? std::nullopt : split_step(whole));
    if (wanted.more) {
        for (schedule::Schedule& one : wanted.more(whole)) known.starts.push_back(std::move(one));
        if (known.split)
            for (schedule::Schedule& one : wanted.more(*known.split)) known.split_starts.push_back(std::move(one));
    }
    auto searched = search_split(known, request.split, options, execute, time);
    compared.found = std::move(searched.found);
    if (searched.split) compared.parts = std::move(known.split);
}

void take(Compared& compared, const PolicyRun& run) {
    if (run.on_split) compared.parts = split_step(compared.known.cut.step);
    search::PolicyResult result = run.result;
    result.replay = replay_on_ports(compared.searched(), *result.schedule).replay;
    compared.found = search::as_found(run.policy, std::move(result), compared.known.bound);
}

}  // namespace pipeweaver::planner
