#include "pipeweaver/planner/emulate.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/partition/shapes.hpp"
#include "pipeweaver/search/policies.hpp"
#include "planner/job/sample.hpp"
#include "planner/replicas/assignment.hpp"
#include "planner/way/settings.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

bool is_split(const SplitChoice& choice) { return std::find(choice.begin(), choice.end(), true) != choice.end(); }

// A replica's given schedule on the partition, matched to the step that it was made for.
struct MatchedSchedule {
    SplitChoice split;  // which backwards it splits
    Schedule schedule;
};

struct MatchedSchedules {
    std::vector<MatchedSchedule> replicas;
    Assignment assignment;  // the batch as the plan shared it out
};

// A problem as it was written, with the lags of `alone` where its own are longer: its transfers waited for ports.
Problem without_waits(Problem problem, const Problem& alone) {
    for (std::size_t e = 0; e < std::min(problem.edges.size(), alone.edges.size()); ++e) {
        Duration& lag = problem.edges[e].lag;
        const Duration at_once = alone.edges[e].lag;
        if (at_once > Duration{0}) lag = std::min(lag, at_once);
    }
    return problem;
}

Error refused(const GivenSchedule& given, const std::string& why) {
    return {ErrorKind::input, fmt::format("{}: is of the problem '{}', {}: model, cluster, layout, recipe, headroom, "
                                          "batch, seed and costs must be those of the plan",
                                          given.from.string(), given.solved.file.problem.name, why)};
}

// Why the schedule does not match; none: it does.
std::optional<Error> match_one(const GivenSchedule& given, const Setup& setup, const partition::Partition& partition,
                               std::size_t replica, const Microbatches& microbatches, MatchedSchedule& matched) {
    const Problem& problem = given.solved.file.problem;
    if (problem.name != problem_name(setup, partition, replica))
        return refused(given, "which this request does not have");
    auto known = build(setup, partition, microbatches, {.name = problem.name});
    if (known.shortage) return Error(ErrorKind::limit, known.shortage->text());
    auto can = splittable(known.cut.step);
    if (can.empty()) can.resize(known.cut.step.problem.pairs.size());  // the recipe splits no backwards
    for (const Pair& pair : problem.pairs) matched.split.push_back(pair.weight.has_value());
    if (matched.split.size() != can.size()) return refused(given, "whose tasks are others");
    for (std::size_t k = 0; k < can.size(); ++k)
        if (matched.split[k] && !can[k]) return refused(given, "whose tasks are others");
    const auto [step, shortage] = split_backwards(known.cut.step, matched.split);
    if (shortage) return Error(ErrorKind::limit, shortage->text());
    if (fingerprint(step->problem) != fingerprint(without_waits(problem, step->problem)))
        return refused(given, "whose times or memory are others");
    matched.schedule = given.solved.schedule;
    return std::nullopt;
}

// Of a plan that was made under `recipe`.
std::optional<Error> match_all(const EmulationRequest& request, const Recipe& recipe, const Assignment& by_load,
                               const Executor& execute, MatchedSchedules& matched) {
    Job job = request.job;
    const bool as_it_is = job.setup->is_usual() && job.setup->recipe == recipe;
    if (!as_it_is) job.setup = std::make_shared<const Setup>(with_recipe(*job.setup, recipe));
    const partition::Partition& partition = job.fixed->partition;
    matched = {{}, exchange(job, request.batch, partition, by_load, execute)};
    for (std::size_t r = 0; r < request.schedules.size(); ++r)
        if (auto why = match_one(request.schedules[r], *job.setup, partition, r, matched.assignment.microbatches[r],
                                 matched.replicas.emplace_back()))
            return why;
    return std::nullopt;
}

// Throws Error{input} where a schedule is of another model, batch, layout or costs than the job's. Pre: the request
// has one for each replica, and a fixed partition; `by_load` = assign(job, batch).
MatchedSchedules match(const EmulationRequest& request, const Assignment& by_load, const Executor& execute) {
    const Recipe& own = request.job.setup->recipe;
    MatchedSchedules matched;
    auto why_not = match_all(request, own, by_load, execute, matched);
    // Planned otherwise, and now emulated with more than that.
    if (why_not && own != judging(own)) why_not = match_all(request, judging(own), by_load, execute, matched);
    if (why_not) throw Error(*why_not);
    return matched;
}

// A replica's step and the schedule that it runs; or why there is none.
struct ReplicaSchedule {
    StepInput input;
    StepProblem step{};
    Schedule schedule{};
    PortWaits waits{};      ///< that the step's lags have
    std::string why_not{};  ///< not empty: it does not fit, or the policy does not apply
    Bytes short_by{};       ///< of what does not fit; 0: not known
};

// Fixed orders take no longer a task, however many there are.
std::size_t most_tasks_of(const std::string& policy) {
    return search::policy(policy).fixed_order ? sizes.tasks_in_order : sizes.tasks;
}

Emulation emulation_in(MadeEmulation made) {
    if (made.why_not) throw Error(*made.why_not);
    return std::move(*made.emulation);
}

// Of a rank, with whatever it holds.
constexpr Bytes boundless{std::int64_t{1} << 60};

class Emulator {
public:
    Emulator(const EmulationRequest& request, const Executor& execute)
        : asked_(request),
          setup_(*request.job.setup),
          execute_(execute),
          runs_(*request.target),
          policy_(request.policy) {
        runs_.inexpressible = nullptr;
        needs_split_ = search::policy(request.policy, "--policy: ").needs_split || is_given();
        if (chooses_by_rank()) require_fixed_order();
        PIPEWEAVER_ASSERT(setup_.recipe.zero < 2 || setup_.recipe.bucket == Bytes{});
        shared_ = assign(request.job, request.batch, execute, most_tasks_of(request.policy));
        if (is_given()) {
            PIPEWEAVER_ASSERT(request.job.fixed);
            auto matched = match(request, shared_, execute);
            given_ = std::move(matched.replicas);
            shared_ = std::move(matched.assignment);
            partition_ = request.job.fixed->partition;
            policy_ = "schedule";
            menus_ = {partition_.modes};
        } else {
            partition_ = cut(request);
            if (chooses_by_rank())
                menus_ = {opponent_settings(setup_, partition_)};
            else if (request.recompute)
                menus_ = {{request.recompute->everywhere}};
            else
                for (const Recompute mode : usual_modes()) menus_.push_back({mode});
        }
        if (request.loader) check_input(*request.loader, setup_.model, request.batch.samples, shared_.microbatches);
        run_ = as_run_by(runs_, setup_.layout, shared_.microbatches);
        if (request.shapes) pad_to(*request.shapes);
    }

    MadeEmulation run() {
        drop_menus_that_fit_no_replica();
        for (;; menus_.erase(menus_.begin())) {
            std::string why_not;
            if (auto all = emulate_all(why_not)) return {std::move(all), {}};
            // With more recomputation it may fit.
            if (menus_.size() == 1) return {{}, Error(ErrorKind::limit, why_not)};
        }
    }

    ScheduledTimes times(std::size_t replica) const {
        ReplicaSchedule scheduled = scheduled_replica(replica);
        if (!scheduled.why_not.empty()) fail(ErrorKind::limit, "{}", scheduled.why_not);
        ScheduledTimes all{std::move(scheduled.step.problem), std::move(scheduled.schedule), {}};
        const auto costs = schedule::Replayer(all.problem).costs(all.schedule.mode);
        all.duration.reserve(costs.size());
        for (const schedule::TaskCost& cost : costs) all.duration.push_back(cost.duration);
        return all;
    }

    EmulatedStep step_of(std::size_t replica) const {
        ReplicaSchedule scheduled = scheduled_replica(replica);
        PIPEWEAVER_ASSERT(scheduled.why_not.empty());
        EmulatedStep all{std::move(scheduled.input), std::move(scheduled.step), std::move(scheduled.schedule)};
        set_tails(all.input, all.step, all.schedule);
        return all;
    }

    std::vector<TracedKernel> kernels(std::size_t replica, RankId rank) {
        static_cast<void>(emulation_in(run()));
        const ReplicaSchedule scheduled = scheduled_replica(replica);
        return kernels_of(scheduled.input, scheduled.step, scheduled.schedule, rank);
    }

private:
    // The microbatches of all replicas together.
    void pad_to(std::size_t most) {
        auto shaped = partition::in_shapes(together(run_), most);
        auto next = shaped.microbatches.begin();
        for (Microbatches& one : run_)
            for (auto& microbatch : one) microbatch = std::move(*next++);
        shapes_ = {shaped.shapes_before, shaped.shapes, shaped.positions_before, shaped.positions};
    }

    partition::Partition cut(const EmulationRequest& request) const {
        if (request.job.fixed) return request.job.fixed->partition;
        const std::string& name = request.job.partition;
        const auto& cutter = partition::partitioner(name.empty() ? partition::megatron_partition : name);
        auto cut = partition::cut_as_asked(setup_, cut_on(request.job, request.cut_on.value_or(request.batch)),
                                           {&cutter, request.chunks_per_rank}, request.job.layouts);
        return search::policy(policy_).on_a_v ? partition::like_a_v(std::move(cut), setup_.layout.pp) : cut;
    }

    StepWanted wanted(std::size_t replica, std::size_t menu) const {
        return {.name = problem_name(setup_, partition_, replica),
                .target = &runs_,
                .menu = menus_[menu],
                .mode_of_rank = by_rank() ? asked_.recompute->of_ranks : std::vector<Recompute>{},
                .replica = replica,
                .capacity = asked_.any_memory ? std::optional(boundless) : std::nullopt,
                .priced_split = needs_split_};
    }

    ReplicaSchedule scheduled_replica(std::size_t replica, std::size_t menu = 0) const {
        if (needs_split_) require_serial();
        const auto step = wanted(replica, menu);
        const std::vector<std::string> policies(is_given() ? 0 : 1, policy_);
        auto known = evaluate(setup_, partition_, run_[replica], step,
                              {.split = needs_split_ && !is_given(),
                               .bound = std::nullopt,
                               .policies = policies,
                               .mode_by_rank = chooses_by_rank()});
        ReplicaSchedule all{.input = std::move(known.input)};
        if (known.shortage) {
            all.why_not = known.shortage->text();
            all.short_by = known.shortage->short_by();
            return all;
        }
        all.step = std::move(known.split ? *known.split : known.cut.step);
        if (is_given()) {
            take_given(given_[replica], all);
        } else if (auto& applied = known.policies.front().result; applied.schedule) {
            all.schedule = std::move(*applied.schedule);
        } else {
            all.why_not = fmt::format("--policy {}: replica {}, partition {}: {}", policy_, replica, partition_.name,
                                      applied.why_not);
            all.short_by = applied.short_by;
        }
        if (all.why_not.empty()) all.waits = set_lags(all.step, all.schedule);
        return all;
    }

    std::vector<Recompute> recomputed_by(const ReplicaSchedule& scheduled) const {
        if (!chooses_by_rank()) return asked_.recompute->of_ranks;
        return recompute_of_ranks(scheduled.step.problem, scheduled.schedule, menus_.front());
    }

    void take_given(const MatchedSchedule& given, ReplicaSchedule& all) const {
        all.schedule = given.schedule;
        if (is_split(given.split)) all.step = require_step(split_backwards(all.step, given.split));
    }

    bool is_given() const { return !asked_.schedules.empty(); }
    bool by_rank() const { return asked_.recompute && asked_.recompute->by_rank && !is_given(); }
    bool chooses_by_rank() const { return asked_.recompute == recompute_by_rank && !is_given(); }

    // A rank's memory follows from its own order alone only where times do not decide the order.
    void require_fixed_order() const {
        if (search::policy(policy_).fixed_order) return;
        std::vector<std::string> fixed;
        for (const search::Policy& one : search::policies())
            if (one.fixed_order) fixed.push_back(one.name);
        fail(ErrorKind::input, "--recompute: by-rank goes with policies of a fixed order: {}; {} decides by time",
             fmt::join(fixed, ", "), policy_);
    }

    void require_serial() const {
        const bool any = !is_given() || std::any_of(given_.begin(), given_.end(),
                                                    [](const MatchedSchedule& given) { return is_split(given.split); });
        if (any && !setup_.recipe.is_serial())
            fail(ErrorKind::input,
                 "--zero, --launch: schedules with backwards split into input and weight gradients are emulated with "
                 "--zero 0 or 1 and without --launch");
    }

    // The first replica says quickly what does not fit.
    void drop_menus_that_fit_no_replica() {
        if (menus_.size() == 1) return;
        std::vector<char> fits(menus_.size(), 1);
        run_jobs(execute_, menus_.size(), [&](std::size_t m) { fits[m] = scheduled_replica(0, m).why_not.empty(); });
        const auto first = std::find(fits.begin(), fits.end() - 1, 1) - fits.begin();
        menus_.erase(menus_.begin(), menus_.begin() + first);
    }

    std::vector<std::size_t> first_of_same_step() const {
        auto like = first_alike(run_);
        if (is_given() || !setup_.what_if.devices.empty()) std::iota(like.begin(), like.end(), std::size_t{0});
        return like;
    }

    // Of those that are refused; empty: none is. Ties go to the earlier.
    static std::string why_of_fullest(const std::vector<std::pair<Bytes, std::string>>& refused) {
        return std::max_element(refused.begin(), refused.end(),
                                [](const auto& a, const auto& b) {
                                    return std::pair(!a.second.empty(), a.first) <
                                           std::pair(!b.second.empty(), b.first);
                                })
            ->second;
    }

    // None, and why, where a replica does not fit.
    std::optional<Emulation> emulate_all(std::string& why_not) const {
        Emulation sum;
        sum.partition = partition_;
        sum.policy = policy_;
        sum.assigned = shared_.shares;
        if (by_rank())
            sum.recompute = asked_.recompute;
        else if (!is_given())
            sum.recompute = {.everywhere = menus_.front().front()};
        const std::size_t replicas = shared_.microbatches.size();
        sum.replicas.resize(replicas);
        if (by_rank()) sum.by_rank.resize(replicas);
        std::vector<double> flops(replicas);
        std::vector<TimeShares> shares(replicas);
        std::vector<std::pair<Bytes, std::string>> refused(replicas);  // what each is short of, and why
        std::vector<std::vector<Duration>> begins(replicas);
        const auto like = first_of_same_step();
        run_jobs(execute_, replicas, [&](std::size_t r) {
            if (like[r] != r) return;
            const ReplicaSchedule scheduled = scheduled_replica(r);
            refused[r] = {scheduled.short_by, scheduled.why_not};
            if (!scheduled.why_not.empty()) return;
            sum.replicas[r] = emulate_step(scheduled, false);
            if (asked_.loader) begins[r] = begins_of_replica(scheduled, r);
            if (by_rank()) sum.by_rank[r] = recomputed_by(scheduled);
            flops[r] = scheduled.step.model_flops;
            add_shares(scheduled.step, scheduled.schedule, shares[r]);
        });
        why_not = why_of_fullest(refused);
        if (!why_not.empty()) return std::nullopt;
        for (std::size_t r = 0; r < replicas; ++r) {
            sum.replicas[r] = sum.replicas[like[r]];
            if (by_rank()) sum.by_rank[r] = sum.by_rank[like[r]];
            if (sum.replicas[r].step > sum.replicas[sum.slowest].step) sum.slowest = r;
            sum.kernels += sum.replicas[r].kernels;
            sum.model_flops += flops[like[r]];
            sum.shares += shares[like[r]];
            for (const auto& microbatch : shared_.microbatches[r]) sum.tokens += microbatch.tokens;
        }
        sum.replicas[sum.slowest] = emulate_step(scheduled_replica(sum.slowest), true);
        normalise(sum.shares);
        set_rates(sum);
        if (asked_.loader) sum.input = input(begins, like, sum);
        sum.shapes = shapes_;
        if (setup_.store) sum.reuse = setup_.store->statistics();
        return sum;
    }

    std::vector<Duration> begins_of_replica(const ReplicaSchedule& scheduled, std::size_t r) const {
        return begins_of(scheduled.step.problem, scheduled.schedule, shared_.microbatches[r].size());
    }

    // `like`: of each replica the one whose microbatches begin when its own do.
    Input input(const std::vector<std::vector<Duration>>& begins, const std::vector<std::size_t>& like,
                const Emulation& sum) const {
        std::vector<InputReplica> replicas;
        for (std::size_t r = 0; r < begins.size(); ++r)
            replicas.push_back({&shared_.microbatches[r], begins[like[r]], sum.replicas[r].step});
        return input_of(*asked_.loader, setup_.model, asked_.batch.samples, replicas);
    }

    ReplicaEmulation emulate_step(const ReplicaSchedule& scheduled, bool critical_path) const {
        auto emulated = emulator::emulate(scheduled.input, scheduled.step, scheduled.schedule,
                                          {setup_.store != nullptr, critical_path});
        emulated.waits = scheduled.waits;
        return emulated;
    }

    void set_rates(Emulation& sum) const {
        sum.makespan = sum.replicas[sum.slowest].makespan;
        sum.step = sum.replicas[sum.slowest].step;
        const double seconds = static_cast<double>(sum.step.count()) * 1e-9;
        const double peak =
            workloads::device(setup_.cluster.device).bf16_flops * static_cast<double>(setup_.layout.gpus());
        sum.mfu = sum.model_flops / (peak * seconds);
        sum.tokens_per_second = static_cast<double>(sum.tokens) / seconds;
    }

    const EmulationRequest& asked_;
    const Setup& setup_;
    const Executor& execute_;
    Target runs_;  // its shapes and buffers; of several modes one is taken, which it need not carry
    Assignment shared_;
    std::vector<Microbatches> run_;  // of each replica, padded to what it runs
    std::optional<FewShapes> shapes_;
    partition::Partition partition_;
    std::string policy_;
    bool needs_split_ = false;
    std::vector<std::vector<Recompute>> menus_;  // of memory modes, that are tried one after the other
    std::vector<MatchedSchedule> given_;         // per replica, if schedules are
};

Duration waits_of(const emulator::RankTime& time) {
    return time.exposed[static_cast<std::size_t>(emulator::Stream::host)];
}

// What is recomputed is said of other ranks than there are.
std::optional<std::string> why_not_of_each_rank(const EmulationRequest& request) {
    const auto said = request.recompute ? static_cast<std::int64_t>(request.recompute->of_ranks.size()) : 0;
    const std::int64_t ranks = request.job.setup->layout.pp;
    if (said == 0 || said == ranks || !request.schedules.empty()) return std::nullopt;
    return fmt::format("--recompute: {} says {} settings, allowed are those of {} ranks", name_of(*request.recompute),
                       said, ranks);
}

}  // namespace

MadeEmulation try_emulate(const EmulationRequest& request, const Executor& execute) {
    static_cast<void>(search::policy(request.policy, "--policy: "));
    if (const auto why = why_not_sensible(request.job, request.batch, most_tasks_of(request.policy)))
        return {{}, Error(ErrorKind::input, *why)};
    if (const auto why = why_not_of_each_rank(request)) return {{}, Error(ErrorKind::input, *why)};
    return Emulator(request, execute).run();
}

Emulation emulate(const EmulationRequest& request, const Executor& execute) {
    return emulation_in(try_emulate(request, execute));
}

Bytes fullest_peak(const Emulation& emulation) {
    Bytes most{};
    for (const emulator::ReplicaEmulation& replica : emulation.replicas)
        for (const emulator::RankMemory& rank : replica.memory) most = std::max(most, rank.peak);
    return most;
}

std::size_t fullest_replica(const Emulation& emulation, std::size_t rank) {
    const auto& all = emulation.replicas;
    const auto fullest = std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
        return a.memory[rank].peak < b.memory[rank].peak;
    });
    return static_cast<std::size_t>(fullest - all.begin());
}

ScheduledTimes scheduled_times(const EmulationRequest& request, std::size_t replica, const Executor& execute) {
    return Emulator(request, execute).times(replica);
}

std::vector<EmulatedStep> emulated_steps(const EmulationRequest& request, const Emulation& emulation,
                                         const std::vector<std::size_t>& replicas, const Executor& execute) {
    EmulationRequest again = request;
    again.loader.reset();
    if (request.schedules.empty()) {
        again.recompute = emulation.recompute;
        again.job.fixed = partition::PartitionFile{emulation.partition, {}};
    }
    const Emulator emulator(again, execute);
    std::vector<EmulatedStep> steps(replicas.size());
    run_jobs(execute, replicas.size(), [&](std::size_t i) { steps[i] = emulator.step_of(replicas[i]); });
    return steps;
}

std::vector<TracedKernel> kernels_of(const EmulationRequest& request, std::size_t replica, std::int64_t rank) {
    EmulationRequest alone = request;
    alone.loader.reset();
    return Emulator(alone, in_order).kernels(replica, RankId{static_cast<std::uint32_t>(rank)});
}

std::optional<HostBound> host_bound(const EmulationRequest& request, const Emulation& emulation,
                                    const Executor& execute) {
    if (!request.schedules.empty()) return std::nullopt;  // with other times they would be of another problem
    auto waiting = waiting_for_host(*request.job.setup);
    if (!waiting) return std::nullopt;
    EmulationRequest changed = request;
    changed.job.setup = std::make_shared<const emulator::Setup>(std::move(*waiting));
    changed.any_memory = true;
    changed.loader.reset();
    changed.recompute = emulation.recompute;
    // Other times would cut it otherwise, and share samples out otherwise.
    changed.job.fixed = partition::PartitionFile{emulation.partition, {}};
    changed.batch.shares = emulation.assigned;
    const auto made = try_emulate(changed, execute);
    if (!made.emulation) return std::nullopt;
    const Emulation& eager = *made.emulation;
    auto bound = host_bound_of(*changed.job.setup, emulation.step, eager.step);
    if (bound)
        for (const emulator::RankTime& time : eager.replicas[eager.slowest].time)
            bound->waits.push_back(waits_of(time));
    return bound;
}

}  // namespace pipeweaver::planner
