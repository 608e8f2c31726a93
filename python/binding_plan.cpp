// plan(), emulate() and plans for a job that runs.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/host.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/emit/needs_files.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/plan_folder.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/needs.hpp"
#include "pipeweaver/planner/record.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/search/policies.hpp"
#include "python/binding.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace pipeweaver::python {

namespace {

/// What a configuration asks for.
struct Asked : planner::PlanConfiguration {
    /// `content`: JSON in place of the file `name`. `batch`: a batch file, or with `samples` what the batch is called.
    Asked(const std::string& name, const std::optional<std::string>& content, const std::optional<std::string>& batch,
          const std::optional<std::string>& samples) {
        const auto document = content ? JsonDocument(name, *content) : JsonDocument::read(name);
        configure(document.root());
        if (batch) plan.workload.batch = *batch;
        plan.workload.batch_text = samples;
    }
};

struct Plan {
    planner::Request request;
    planner::Plan plan;
    planner::SearchLimits limits;
    double seconds = 0;

    // By its number.
    const planner::ReplicaPlan& replica(std::size_t r) const {
        const auto& all = plan.replicas;
        return *std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.number == r; });
    }

    std::shared_ptr<Problem> problem(std::size_t r) const {
        const auto& of = replica(r).cut.step.problem;
        return std::make_shared<Problem>(Problem{{of, fingerprint(of)}});
    }

    Solution solution(std::size_t r) const {
        auto of = problem(r);
        auto content = search::solution(replica(r).found, of->file.problem, of->file.sha256);
        return {std::move(of), std::move(content)};
    }

    std::string actions(std::size_t r) const {
        return to_json(emit::actions_of(request.job, request.batch, replica(r),
                                        emit::loss_totals(request.job, request.batch, plan.partition())));
    }

    std::string rank_actions(std::size_t r, std::size_t rank) const {
        const auto all = emit::actions_of(request.job, request.batch, replica(r),
                                          emit::loss_totals(request.job, request.batch, plan.partition()));
        if (rank >= all.ranks.size())
            fail(ErrorKind::input, "rank: is {}, allowed are 0 to {}", rank, all.ranks.size() - 1);
        return emit::RankLists(all).to_json(rank);
    }

    void write(const std::string& to) const {
        emit::write_plan_folder(request.job, request.batch, plan, to, emit::run_json(limits, seconds, host_name()),
                                on_own_threads(limits.thread_count()));
    }
};

// What `make` makes of the request, with threads of its own.
template <class Make>
std::shared_ptr<Plan> planned(const Asked& asked, const Make& make) {
    const Stopwatch start;
    const auto execute = on_own_threads(asked.limits.thread_count());
    auto request = asked.plan.request(asked.limits, execute);
    request.job.lists = true;
    auto plan = make(request, execute);
    return std::make_shared<Plan>(Plan{std::move(request), std::move(plan), asked.limits, start.seconds()});
}

std::shared_ptr<Plan> searched(const Asked& asked, const nb::object& stop, const nb::object* progress) {
    Control control;
    const Watch watch(control, stop, progress, asked.limits.time());
    return planned(asked, [&](const auto& request, const auto& execute) {
        return asked.plan.make_plan(request, execute, watch.time(), asked.plan.wanted(request.job));
    });
}

std::shared_ptr<Plan> make_plan(const Asked& asked, const nb::object& stop, const nb::object& progress) {
    return searched(asked, stop, &progress);
}

std::shared_ptr<Plan> by_policy(const Asked& asked, const std::string& policy) {
    planner::Wanted wanted{.targets = false, .robustness = false, .opponents = false};
    wanted.search = false;
    static_cast<void>(search::policy(policy));
    wanted.policies = {policy};
    return planned(asked, [&](auto& request, const auto& execute) {
        if (!request.job.fixed && request.job.partition.empty())
            request.job.fixed = partition::PartitionFile{
                partition::partitioner("megatron").make(*request.job.setup, request.batch.microbatches, 1), {}};
        return planner::make_plan(request.job, request.batch, execute, {}, wanted);
    });
}

/// The batch of a configuration, as a batch file.
std::string batch(const Asked& asked) {
    const auto execute = on_own_threads(asked.limits.thread_count());
    return workloads::to_jsonl(asked.plan.request(asked.limits, execute).batch.samples);
}

/// Device, and the tables of what planning asks for by their names.
std::pair<std::string, std::map<std::string, std::string>> needs(const Asked& asked) {
    const auto execute = on_own_threads(asked.limits.thread_count());
    const auto request = asked.plan.request(asked.limits, execute);
    std::map<std::string, std::string> tables;
    for (auto& file : emit::needs_files(planner::needs(request.job, request.batch, execute), {}))
        tables[file.path.stem().string()] = std::move(file.content);
    return {request.job.setup->cluster.device, std::move(tables)};
}

/// A planner::Session that began with a plan of its own.
class Job {
public:
    Job(const Asked& asked, const nb::object& stop)
        : first_(searched(asked, stop, nullptr)), session_(first_->request.job, first_->plan) {}

    const std::shared_ptr<Plan>& first() const { return first_; }

    std::shared_ptr<Plan> plan(const std::string& name, const std::optional<std::string>& samples, Control& control,
                               const nb::object& stop, const nb::object& draft) const {
        const Stopwatch start;
        const auto& model = session_.job().setup->model;
        const auto batch = session_.job().batch(
            name, samples ? workloads::parse_batch(name, *samples, model) : workloads::read_batch(name, model));
        const Watch watch(control, stop, nullptr, first_->limits.time());
        const auto made = [&](planner::Plan plan) {
            return std::make_shared<Plan>(
                Plan{{session_.job(), batch}, std::move(plan), first_->limits, start.seconds()});
        };
        const auto hand_over = [&](planner::Plan plan) {
            auto first = made(std::move(plan));
            const nb::gil_scoped_acquire locked;
            draft(std::move(first));
        };
        return made(session_.plan(batch, on_own_threads(first_->limits.thread_count()), watch.time(), hand_over));
    }

private:
    std::shared_ptr<Plan> first_;
    planner::Session session_;
};

/// A session that a server keeps, for plans by policy alone.
class KeptSession {
public:
    KeptSession(const std::string& name, const std::string& kept)
        : session_(planner::read_session(name, kept, in_order)) {}

    /// On the thread that calls.
    std::shared_ptr<Plan> by_policy(std::int64_t step, const std::string& samples) const {
        const Stopwatch start;
        auto batch = session_.batch(step, samples);
        auto plan = session_.session.by_policy(batch, in_order);
        return std::make_shared<Plan>(
            Plan{{session_.session.job(), std::move(batch)}, std::move(plan), {}, start.seconds()});
    }

    const std::string& sample() const { return session_.sample; }

private:
    planner::KeptSession session_;
};

}  // namespace

void bind_plan(nb::module_& module) {
    nb::class_<Asked>(module, "Asked")
        .def(nb::init<const std::string&, const std::optional<std::string>&, const std::optional<std::string>&,
                      const std::optional<std::string>&>(),
             nb::arg("name"), nb::arg("content").none(), nb::arg("batch").none(), nb::arg("samples").none())
        .def_prop_ro("out", [](const Asked& asked) { return asked.plan.out; })
        .def(
            "of_replica", [](Asked& asked, std::int64_t replica) { asked.plan.replica = replica; }, nb::arg("replica"));
    nb::class_<Plan>(module, "Plan")
        .def_prop_ro("makespan_ns", [](const Plan& plan) { return plan.plan.makespan.count(); })
        .def_prop_ro("lower_bound_ns", [](const Plan& plan) { return plan.plan.lower_bound.count(); })
        .def_prop_ro("step_ns", [](const Plan& plan) { return plan.plan.step.count(); })
        .def_prop_ro("gap",
                     [](const Plan& plan) { return schedule::relative_gap(plan.plan.makespan, plan.plan.lower_bound); })
        .def_prop_ro("deferred", [](const Plan& plan) { return workloads::to_jsonl(plan.request.batch.deferred); })
        .def_prop_ro("seconds", [](const Plan& plan) { return plan.seconds; })
        .def_prop_ro("replicas",
                     [](const Plan& plan) {
                         std::vector<std::size_t> numbers;
                         for (const auto& replica : plan.plan.replicas) numbers.push_back(replica.number);
                         return numbers;
                     })
        .def(
            "plan_json",
            [](const Plan& plan) {
                return emit::plan_json(plan.request.job, plan.request.batch, plan.plan).dump(1) + "\n";
            },
            unlocked())
        .def(
            "assignment_json",
            [](const Plan& plan) { return emit::assignment_json(plan.request.job, plan.request.batch, plan.plan); },
            unlocked())
        .def("problem", &Plan::problem, unlocked())
        .def("solution", &Plan::solution, unlocked())
        .def("actions_json", &Plan::actions, unlocked())
        .def("rank_actions_json", &Plan::rank_actions, unlocked())
        .def("write", &Plan::write, unlocked());
    module.def("plan", &make_plan, unlocked(), nb::arg("asked"), nb::arg("stop").none(), nb::arg("progress").none());
    module.def("batch", &batch, unlocked(), nb::arg("asked"));
    module.def("needs", &needs, unlocked(), nb::arg("asked"));
    module.def("by_policy", &by_policy, unlocked(), nb::arg("asked"), nb::arg("policy"));
    nb::class_<Job>(module, "Job")
        .def(nb::init<const Asked&, const nb::object&>(), unlocked(), nb::arg("asked"), nb::arg("stop").none())
        .def_prop_ro("first", &Job::first)
        .def("plan", &Job::plan, unlocked(), nb::arg("name"), nb::arg("samples").none(), nb::arg("control"),
             nb::arg("stop").none(), nb::arg("draft"));
    nb::class_<KeptSession>(module, "KeptSession")
        .def(nb::init<const std::string&, const std::string&>(), unlocked(), nb::arg("name"), nb::arg("kept"))
        .def_prop_ro("sample", &KeptSession::sample)
        .def("by_policy", &KeptSession::by_policy, unlocked(), nb::arg("step"), nb::arg("samples"));
}

}  // namespace pipeweaver::python
