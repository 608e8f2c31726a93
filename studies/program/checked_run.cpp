#include "studies/program/checked_run.hpp"

#include "bench/recheck.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/search/policies.hpp"

namespace pipeweaver::studies {

using namespace bench;

namespace {

std::optional<emulator::StepProblem> built_step(const planner::Request& request, const partition::Partition& partition,
                                                const std::vector<emulator::Recompute>& modes) {
    const emulator::Setup& setup = *request.job.setup;
    if (setup.layout.dp != 1)
        fail(ErrorKind::input, "--dp: is {}, allowed is 1: the published experiments run one replica", setup.layout.dp);
    auto input =
        partition::step_input(setup, partition, partition::units(partition, setup.model, request.batch.microbatches));
    input.name = fmt::format("{}, partition {}", request.batch.name, partition.name);
    input.modes = modes;
    input.priced_split = false;
    return std::move(emulator::build_step(input).step);
}

CheckedRun checked_run(emulator::StepProblem step, schedule::Schedule schedule, const std::string& who) {
    emulator::set_lags(step, schedule);
    auto replay = schedule::replay(step.problem, schedule);
    require_right(step.problem, who, schedule, replay.makespan);
    return {std::move(step), std::move(schedule), std::move(replay)};
}

}  // namespace

std::vector<workloads::Microbatch> cut_sample(const planner::Request& request) {
    if (request.job.sample.batches.empty()) return request.batch.microbatches;
    std::vector<workloads::Microbatch> all;
    for (const auto& batch : request.job.sample.batches) all.insert(all.end(), batch.begin(), batch.end());
    return all;
}

std::optional<CheckedRun> run_policy(const planner::Request& request, const partition::Partition& partition,
                                     const std::string& policy, const std::vector<emulator::Recompute>& modes) {
    auto step = built_step(request, partition, modes);
    if (!step) return std::nullopt;
    auto result = search::apply_policy(policy, schedule::Replayer(step->problem));
    if (!result.schedule) return std::nullopt;
    return checked_run(std::move(*step), std::move(*result.schedule), policy);
}

std::optional<CheckedRun> run_search(const planner::Request& request, const partition::Partition& partition,
                                     const search::Options& options, const std::vector<emulator::Recompute>& modes,
                                     const Executor& execute, const search::KeepGoing& keep_going) {
    auto step = built_step(request, partition, modes);
    if (!step) return std::nullopt;
    auto found = search::solve(schedule::Replayer(step->problem), options, execute, keep_going);
    if (!found.schedule) return std::nullopt;
    return checked_run(std::move(*step), std::move(*found.schedule), options.strategy);
}

}  // namespace pipeweaver::studies
