#include "pipeweaver/planner/plan_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/planner/layout.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "planner/job/choose_packing.hpp"

#include <algorithm>
#include <filesystem>
#include <thread>

namespace pipeweaver::planner {

void SearchLimits::add_to(OptionTable& options) {
    options.group("Limits of the search");
    options.parsed(
        "budget", "TIME", "time for the whole command, every replica included, like 1s or 300ms (default 3s)",
        [this](const std::string& text) { budget = parse_duration(text); },
        [this] { return budget ? std::optional(fmt::format("{}ns", budget->count())) : std::nullopt; });
    options.integer("max-rounds", max_rounds, 0, 1'000'000'000, "rounds of each search: the reproducible budget");
    options.integer("seed", seed, 0, 9'007'199'254'740'991, "seed of all random choices (default 1)");
    options.integer("threads", threads, 1, 1024, "threads of the search (default: all cores); no result depends on it");
}

std::optional<std::uint64_t> SearchLimits::rounds() const {
    return max_rounds ? std::optional(static_cast<std::uint64_t>(*max_rounds)) : std::nullopt;
}

std::optional<Duration> SearchLimits::time() const {
    if (budget || max_rounds) return budget;
    return std::chrono::seconds(3);
}

int SearchLimits::thread_count() const {
    return threads > 0 ? static_cast<int>(threads)
                       : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

void PlanOptions::add_to(OptionTable& options) {
    job.add_to(options);
    batch.add_to(options);
    options.choice(
        "target", target, target_options(),
        fmt::format("what the schedule is for; {} must then exist, and with {} no partition is tried "
                    "that action lists cannot carry (default: any partition, with action lists where they can)",
                    fmt::join(target_options(has_own_plan), " or "), targets().front().option));
    options.flag("robust", robust,
                 "of the schedules found up to 1 % longer than the shortest, the one with the smallest median if "
                 "costs are wrong by their own error estimates (without: one clearly better then, and at most 0.1 "
                 "% longer)");
    options.integer("replica", replica, 0, 65'535, "plan this replica alone, the same as --replicas N");
    options.text("replicas", replicas, "LIST",
                 "plan these replicas alone, like 3 or 0-15,20: each as in the plan of all, without opponents, and "
                 "without PyTorch's schedule unless it is wanted (default: all)");
    options.choice("actions", actions, {"whole", "by-rank"},
                   "action lists of all ranks of a replica in one file, or each rank's own, zipped, in actions/ "
                   "(default: whole)");
    options.text("out", out, "DIR", "folder of the plan (required)");
    add_split(options, split);
}

Request PlanOptions::packed(const WorkloadOptions& as, const SearchLimits& limits, const Executor& execute) const {
    Request request = as.request(static_cast<std::uint64_t>(limits.seed), execute);
    request.max_rounds = limits.rounds();
    require_kept_deferred();
    batch.fill(request);
    job.fill(request, as);
    request.robust = robust;
    request.target = target_called(target);
    request.lists = target == targets().front().option;
    request.lists_by_rank = actions == "by-rank";
    request.split = split_of(split);
    if (request.words) request.words->add(values_of(batch));
    return request;
}

void PlanOptions::require_kept_deferred() const {
    std::error_code none;
    if (!batch.deferred.empty() &&
        std::filesystem::equivalent(batch.deferred, std::filesystem::path(out) / "deferred.jsonl", none))
        fail(ErrorKind::input, "--deferred: {} is a file of --out, which replaces it; allowed is another folder",
             batch.deferred);
}

Request PlanOptions::request(const SearchLimits& limits, const Executor& execute) const {
    if (workload.packing != WorkloadOptions::automatic) return packed(workload, limits, execute);
    WorkloadOptions as = workload;
    std::vector<Request> all;
    const bool fixed_shapes = planner::target(target_called(target)).fixed_shapes;
    for (const workloads::Packing one : workloads::packings()) {
        if ((one == workloads::Packing::padded) != fixed_shapes) continue;
        as.packing = name_of(one);
        all.push_back(packed(as, limits, execute));
        all.back().layout_choice = all.front().layout_choice;
        // All in the layout of the first.
        const emulator::Layout& layout = all.front().setup->layout;
        as.tp = {layout.tp};
        as.pp = {layout.pp};
        as.dp = {layout.dp};
    }
    return all.size() == 1 ? std::move(all.front()) : choose_packing(std::move(all), execute);
}

Scope PlanOptions::scope(const Request& request) const {
    Scope scope;
    if (replica && !replicas.empty()) fail(ErrorKind::input, "--replica, --replicas: allowed is one of the two");
    if (!replica && replicas.empty()) return scope;
    const std::int64_t all = request.setup->layout.dp;
    const std::string wanted = replica ? std::to_string(*replica) : replicas;
    for (const std::int64_t one :
         parse_integers(replica ? "--replica" : "--replicas", wanted, 0, all - 1, static_cast<std::size_t>(all)))
        scope.replicas.push_back(static_cast<std::size_t>(one));
    std::sort(scope.replicas.begin(), scope.replicas.end());
    scope.replicas.erase(std::unique(scope.replicas.begin(), scope.replicas.end()), scope.replicas.end());
    scope.opponents = scope.robustness = false;
    scope.targets = request.target != targets().front().name;
    return scope;
}

Plan PlanOptions::make_plan(const Request& request, const Executor& execute, const Time& time,
                            const Scope& scope) const {
    try {
        return planner::make_plan(request, execute, time, scope);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::limit || request.target != targets().front().name) throw;
        const auto asked = workload.layout_request(*request.setup, request.microbatches, request.seed);
        fail(ErrorKind::limit, "{}; {}", error.what(), what_would_fit(asked, execute));
    }
}

void PlanConfiguration::configure(const Json& document) {
    OptionTable options;
    plan.workload.add_to(options);
    plan.add_to(options);
    limits.add_to(options);
    options.configure(document);
}

}  // namespace pipeweaver::planner
