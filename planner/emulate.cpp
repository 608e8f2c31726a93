#include "pipeweaver/planner/emulate.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/search/policies.hpp"
#include "planner/assemble.hpp"
#include "planner/given_schedule.hpp"
#include "planner/split_search.hpp"
#include "planner/time_shares.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;
using partition::Workload;

namespace {

void require_known_policy(const std::string& policy) {
    std::vector<std::string> names;
    for (const auto& known : search::policies()) names.push_back(known.name);
    if (std::find(names.begin(), names.end(), policy) == names.end())
        fail(ErrorKind::input, "--policy: {}", unknown("policy", policy, names));
}

void require_consistent(const Training& training) {
    if (training.zero >= 2 && training.bucket > Bytes{})
        fail(ErrorKind::input,
             "--bucket: goes with --zero 0 or 1; with {} gradients are reduced in every backward, layer by layer",
             training.zero);
}

bool is_serial(const Training& training) { return training.zero < 2 && training.launch == Duration{0}; }

void add(const TimeShares& from, TimeShares& sum) {
    for (std::size_t c = 0; c < operator_classes; ++c)
        for (std::size_t b = 0; b < PassCost::bases; ++b) sum.by[c][b] += from.by[c][b];
}

bool is_split(const SplitChoice& choice) { return std::find(choice.begin(), choice.end(), true) != choice.end(); }

// A replica's step and the schedule that it runs.
struct Scheduled {
    StepInput input;
    StepProblem step;
    Schedule schedule;
};

class Emulator {
public:
    Emulator(const EmulationRequest& request, const costdb::CostDatabase& costs, const Executor& execute,
             LayerStore& store)
        : asked_(request), costs_(costs), execute_(execute), store_(store), policy_(request.policy) {
        require_known_policy(request.policy);
        require_consistent(request.training);
        const Workload workload = workload_of(request.workload.microbatches);
        parts_ = parts_of(request.workload, share(request.workload, workload, execute).shares);
        if (request.schedule) {
            given_ = read_given(*request.schedule, request.workload, costs, parts_);
            partition_ = given_.front().partition;
            policy_ = "schedule";
            modes_ = {StepInput{}.modes};
        } else {
            partition_ = partition_of(workload);
            if (request.recompute)
                modes_ = {{*request.recompute}};
            else
                for (const Recompute mode : StepInput{}.modes) modes_.push_back({mode});
        }
    }

    Emulation run() {
        drop_modes_that_fit_no_replica();
        for (;;) {
            try {
                return emulate_all();
            } catch (const Error& error) {
                // With more recomputation it may fit.
                if (error.kind() != ErrorKind::limit || modes_.size() == 1) throw;
                modes_.erase(modes_.begin());
            }
        }
    }

    std::vector<TracedKernel> kernels(std::size_t replica, RankId rank) {
        static_cast<void>(run());
        const Scheduled scheduled = scheduled_replica(replica);
        return kernels_of(scheduled.input, scheduled.step, scheduled.schedule, rank);
    }

private:
    Workload workload_of(const std::vector<workloads::Microbatch>& microbatches) const {
        const Request& request = asked_.workload;
        const bool as_usual = asked_.training == Training{} && asked_.what_if.empty();
        return {&request.model, &request.cluster, &costs_, request.layout, &microbatches, as_usual ? &store_ : nullptr};
    }

    Partition partition_of(const Workload& workload) const {
        const std::string& name = asked_.workload.partition;
        if (name == "dip") return partition::dip(workload);
        if (name == "balanced") return partition::balanced(workload, asked_.chunks_per_rank);
        return partition::megatron(workload, asked_.chunks_per_rank);
    }

    StepInput input_of(std::size_t replica, std::size_t mode) const {
        const Request& request = asked_.workload;
        auto input = partition::step_input(workload_of(parts_[replica]), partition_);
        input.name =
            fmt::format("{}-{}{}-r{:03}", request.model.name, partition_.name, partition_.chunks_per_rank, replica);
        input.training = asked_.training;
        if (asked_.reuse) input.store = &store_;
        input.modes = modes_[mode];
        input.priced_split = needs_split();
        input.replica = static_cast<std::int64_t>(replica);
        if (!asked_.what_if.empty()) input.what_if = &asked_.what_if;
        return input;
    }

    Scheduled scheduled_replica(std::size_t replica, std::size_t mode = 0) const {
        Scheduled all{input_of(replica, mode), {}, {}};
        all.step = build_step(all.input);
        if (asked_.schedule) {
            const GivenSchedule& given = given_[replica];
            all.schedule = given.schedule;
            if (is_split(given.split)) split(all, given.split);
            return all;
        }
        if (needs_split()) split(all, splittable(all.step));
        auto applied = search::apply_policy(policy_, Replayer(all.step.problem));
        if (!applied.schedule)
            fail(ErrorKind::limit, "--policy {}: replica {}, partition {}: {}", policy_, replica, partition_.name,
                 applied.why_not);
        all.schedule = std::move(*applied.schedule);
        return all;
    }

    bool needs_split() const {
        if (asked_.schedule) return true;
        const auto& all = search::policies();
        return std::find_if(all.begin(), all.end(), [&](const auto& policy) { return policy.name == policy_; })
            ->needs_split;
    }

    void split(Scheduled& all, const SplitChoice& choice) const {
        if (!is_serial(asked_.training))
            fail(ErrorKind::input,
                 "--zero, --launch: schedules with backwards split into input and weight gradients are emulated with "
                 "--zero 0 or 1 and without --launch");
        all.step = split_backwards(all.step, choice);
    }

    // The first replica says quickly what does not fit.
    void drop_modes_that_fit_no_replica() {
        if (modes_.size() == 1) return;
        std::vector<char> fits(modes_.size(), 1);
        run_jobs(execute_, modes_.size(), [&](std::size_t m) {
            try {
                static_cast<void>(scheduled_replica(0, m));
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::limit) throw;
                fits[m] = 0;
            }
        });
        const auto first = std::find(fits.begin(), fits.end() - 1, 1) - fits.begin();
        modes_.erase(modes_.begin(), modes_.begin() + first);
    }

    Emulation emulate_all() const {
        Emulation sum;
        sum.partition = partition_;
        sum.policy = policy_;
        if (!asked_.schedule) sum.recompute = modes_.front().front();
        sum.replicas.resize(parts_.size());
        std::vector<double> flops(parts_.size());
        std::vector<TimeShares> shares(parts_.size());
        run_jobs(execute_, parts_.size(), [&](std::size_t r) {
            const Scheduled scheduled = scheduled_replica(r);
            sum.replicas[r] =
                emulator::emulate(scheduled.input, scheduled.step, scheduled.schedule, {asked_.reuse, false});
            flops[r] = scheduled.step.model_flops;
            add_shares(scheduled.step, scheduled.schedule, shares[r]);
        });
        for (std::size_t r = 0; r < parts_.size(); ++r) {
            const ReplicaEmulation& one = sum.replicas[r];
            if (one.step > sum.replicas[sum.slowest].step) sum.slowest = r;
            sum.kernels += one.kernels;
            sum.model_flops += flops[r];
            add(shares[r], sum.shares);
            for (const auto& microbatch : parts_[r]) sum.tokens += microbatch.tokens;
        }
        const Scheduled slowest = scheduled_replica(sum.slowest);
        sum.replicas[sum.slowest] =
            emulator::emulate(slowest.input, slowest.step, slowest.schedule, {asked_.reuse, true});
        normalise(sum.shares);
        set_rates(sum);
        sum.assumed = assumptions();
        sum.reuse = store_.statistics();
        return sum;
    }

    void set_rates(Emulation& sum) const {
        const Request& request = asked_.workload;
        sum.makespan = sum.replicas[sum.slowest].makespan;
        sum.step = sum.replicas[sum.slowest].step;
        const double seconds = static_cast<double>(sum.step.count()) * 1e-9;
        const double peak =
            workloads::device(request.cluster.device).bf16_flops * static_cast<double>(request.layout.gpus());
        sum.mfu = sum.model_flops / (peak * seconds);
        sum.tokens_per_second = static_cast<double>(sum.tokens) / seconds;
    }

    std::vector<std::string> assumptions() const {
        const Training& training = asked_.training;
        const Layout& layout = asked_.workload.layout;
        std::vector<std::string> all;
        const auto in_situ = in_situ_factors(costs_, asked_.workload.cluster.device);
        all.push_back(
            fmt::format("in a step, compute takes {:.3f} of its time alone and {:.2f} of tensor-parallel "
                        "traffic is exposed ({})",
                        in_situ.compute, in_situ.tp_exposed, in_situ.source));
        if (training.launch == Duration{0}) all.emplace_back("the host launches kernels ahead: it is never waited for");
        if (layout.weight_copies() > 1 && training.zero < 2 && training.bucket == Bytes{})
            all.emplace_back("gradients are reduced in one piece behind a rank's last backward, beside nothing");
        if (layout.weight_copies() > 1 && training.zero >= 2)
            all.emplace_back("what replicas exchange in a pass ends with the pass");
        if (layout.dp > 1 && (training.zero >= 2 || layout.ep > layout.tp * layout.cp))
            all.emplace_back(
                "replicas reach what they exchange inside the step at the same time: each is emulated alone");
        for (const auto& module : asked_.workload.model.modules)
            if (module.architecture.moe)
                all.push_back(fmt::format("{}: tokens are spread over the experts evenly", module.name));
        return all;
    }

    const EmulationRequest& asked_;
    const costdb::CostDatabase& costs_;
    const Executor& execute_;
    LayerStore& store_;
    Parts parts_;
    Partition partition_;
    std::string policy_;
    std::vector<std::vector<Recompute>> modes_;  // that are tried one after the other
    std::vector<GivenSchedule> given_;           // per replica, if schedules are
};

}  // namespace

Emulation emulate(const EmulationRequest& request, const costdb::CostDatabase& costs, const Executor& execute) {
    LayerStore store;
    return emulate(request, costs, execute, store);
}

Emulation emulate(const EmulationRequest& request, const costdb::CostDatabase& costs, const Executor& execute,
                  LayerStore& store) {
    return Emulator(request, costs, execute, store).run();
}

std::vector<TracedKernel> kernels_of(const EmulationRequest& request, const costdb::CostDatabase& costs,
                                     std::size_t replica, std::int64_t rank) {
    const Executor in_turn = [](std::size_t count, const std::function<void(std::size_t)>& job) {
        for (std::size_t i = 0; i < count; ++i) job(i);
    };
    LayerStore store;
    return Emulator(request, costs, in_turn, store).kernels(replica, RankId{static_cast<std::uint32_t>(rank)});
}

}  // namespace pipeweaver::planner
