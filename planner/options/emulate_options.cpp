#include "pipeweaver/planner/emulate_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"

#include <array>

namespace pipeweaver::planner {

using emulator::Recompute;

namespace {

constexpr std::array recomputes{Recompute::none, Recompute::selective, Recompute::half, Recompute::full,
                                Recompute::offload};

std::vector<std::string> recompute_names() {
    std::vector<std::string> names;
    names.reserve(recomputes.size());
    for (const Recompute one : recomputes) names.emplace_back(name_of(one));
    return names;
}

std::optional<Recompute> recompute_of(const std::string& name) {
    for (const Recompute one : recomputes)
        if (name == name_of(one)) return one;
    return std::nullopt;
}

// Of a plan folder with replica-NNN/, or of the only replica's solution file.
std::vector<GivenSchedule> read_schedules(const std::filesystem::path& path, std::size_t replicas) {
    const bool folder = std::filesystem::is_directory(path);
    if (!folder && replicas > 1)
        fail(ErrorKind::input, "{}: is one schedule, {} replicas are asked for: name the folder of their plan",
             path.string(), replicas);
    std::vector<GivenSchedule> given;
    for (std::size_t r = 0; r < replicas; ++r) {
        const auto from = folder ? path / fmt::format("replica-{:03}", r) / "solution.json" : path;
        given.push_back({from, schedule::read_solved(from)});
    }
    return given;
}

}  // namespace

void EmulateOptions::add_to(OptionTable& options) {
    workload.add_to(options);
    options.group("The step");
    options.choice("partition", partition, partition::partitioner_names(),
                   "how the model is cut (default: megatron, one chain cut by parameters)");
    options.integer("chunks", chunks, 1, 1024, "virtual stages of a rank in all partitions but dip (default 1)");
    options.text("policy", policy, "POLICY", "the schedule, of `pipeweaver list policies` (default: 1f1b)");
    options.text("schedule", schedule, "PATH",
                 "a plan folder, or the solution file of the only replica, in place of a policy");
    options.choice("recompute", recompute, recompute_names(),
                   "what backwards compute again (default: the least with which the step fits the memory)");
    options.text("what-if", what_if, "FILE", "factors on devices, links, operators, modules (JSON or YAML)");
    options.flag("any-memory", any_memory, "emulate even what does not fit the memory");
    options.flag("no-reuse", no_reuse, "replay every kernel on its own: slower, the same result");
}

void EmulateOptions::check() const {
    if (!schedule.empty() && !(policy.empty() && partition.empty() && recompute.empty() && chunks == 1))
        fail(ErrorKind::input,
             "--schedule: has its own partition, order and recomputation; --partition, --chunks, --policy and "
             "--recompute go without it");
    if (std::error_code ignored; !schedule.empty() && !std::filesystem::exists(schedule, ignored))
        fail(ErrorKind::io, "--schedule: there is no file or folder '{}'", schedule);
    if (chunks > 1 && partition == "dip")
        fail(ErrorKind::input, "--chunks: goes with all partitions but dip, which has its own");
}

EmulationRequest EmulateOptions::request(std::uint64_t seed, const Executor& execute) const {
    check();
    EmulationRequest request;
    request.workload = workload.request(seed, execute);
    request.workload.partition = partition.empty() ? "megatron" : partition;
    request.recompute = recompute_of(recompute);
    if (!policy.empty()) request.policy = policy;
    request.chunks_per_rank = chunks;
    request.any_memory = any_memory;
    request.schedule = schedule;
    if (!schedule.empty())
        request.schedules = read_schedules(schedule, static_cast<std::size_t>(request.workload.setup->layout.dp));
    const emulator::Setup& usual = *request.workload.setup;
    emulator::WhatIf factors;
    if (!what_if.empty()) factors = emulator::read_what_if(what_if, usual.model, usual.layout);
    auto setup = std::make_shared<emulator::Setup>(with_recipe(usual, usual.recipe, std::move(factors)));
    if (no_reuse) setup->store.reset();
    request.workload.setup = std::move(setup);
    return request;
}

}  // namespace pipeweaver::planner
