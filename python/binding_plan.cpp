// plan(), emulate() and plans for a job that runs.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/host.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/plan_folder.hpp"
#include "pipeweaver/planner/needs.hpp"
#include "pipeweaver/planner/record.hpp"
#include "pipeweaver/planner/session_queue.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/search/policies.hpp"
#include "python/binding.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace pipeweaver::python {

namespace {

/// What a configuration asks for.
struct Asked : planner::PlanConfiguration {
    /// `content`: JSON in place of the file `name`. `batch`: a batch file, or with `samples` what the batch is called.
    Asked(const std::string& name, const std::optional<std::string>& content, const std::optional<std::string>& batch,
          const std::optional<std::string>& samples) {
        const auto document = content ? JsonDocument(name, *content) : JsonDocument::read_large(name);
        configure(document.root());
        if (batch) plan.workload.batch = *batch;
        plan.workload.batch_text = samples;
    }
};

struct Plan {
    Plan(std::shared_ptr<const planner::Job> its_job, std::shared_ptr<const planner::BatchPlan> of,
         planner::SearchLimits how)
        : owned_job(std::move(its_job)),
          made(std::move(of)),
          job(*owned_job),
          batch(made->batch),
          plan(made->plan),
          limits(std::move(how)),
          seconds(std::chrono::duration<double>(made->took).count()) {}

    std::shared_ptr<const planner::Job> owned_job;   // shared with its session
    std::shared_ptr<const planner::BatchPlan> made;  // shared with its future
    const planner::Job& job;
    const planner::Batch& batch;
    const planner::Plan& plan;
    planner::SearchLimits limits;
    double seconds;

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
        return to_json(emit::actions_of(job, batch, replica(r), emit::loss_totals(job, batch, plan.partition())));
    }

    std::string rank_actions(std::size_t r, std::size_t rank) const {
        const auto all = emit::actions_of(job, batch, replica(r), emit::loss_totals(job, batch, plan.partition()));
        if (rank >= all.ranks.size())
            fail(ErrorKind::input, "rank: is {}, must be 0 to {}", rank, all.ranks.size() - 1);
        return emit::RankLists(all).to_json(rank);
    }

    void write(const std::string& to) const {
        emit::write_plan_folder(job, batch, plan, to, emit::run_json(limits, seconds, host_name()),
                                on_own_threads(limits.thread_count()));
    }
};

std::shared_ptr<Plan> made_plan(std::shared_ptr<const planner::Job> job, planner::Batch batch, planner::Plan plan,
                                const planner::SearchLimits& limits, const Stopwatch& since) {
    planner::BatchPlan made{std::move(batch), std::move(plan), since.elapsed()};
    return std::make_shared<Plan>(std::move(job), std::make_shared<const planner::BatchPlan>(std::move(made)), limits);
}

// What `make` makes of the request, with threads of its own.
template <class Make>
std::shared_ptr<Plan> planned(const Asked& asked, const Make& make) {
    const Stopwatch start;
    const auto execute = on_own_threads(asked.limits.thread_count());
    auto request = asked.plan.request(asked.limits, execute);
    auto plan = make(request, execute, asked.limits.budget, start);
    return made_plan(std::make_shared<const planner::Job>(std::move(request.job)), std::move(request.batch),
                     std::move(plan), asked.limits, start);
}

std::shared_ptr<Plan> searched(const Asked& asked, const nb::object& stop, const nb::object* progress) {
    Control control;
    return planned(asked, [&](const auto& request, const auto& execute, auto time, const Stopwatch& start) {
        const Watch watch(control, stop, progress, time, start);
        return asked.plan.make_plan(request, execute, watch.time(), asked.plan.wanted(request.job));
    });
}

std::shared_ptr<Plan> make_plan(const Asked& asked, const nb::object& stop, const nb::object& progress) {
    return searched(asked, stop, &progress);
}

std::shared_ptr<Plan> by_policy(const Asked& asked, const std::string& policy) {
    static_cast<void>(search::policy(policy));
    planner::Wanted wanted;
    wanted.policies = {policy};
    return planned(asked, [&](const auto& request, const auto& execute, const auto&...) {
        return planner::plan_without_search(request.job, request.batch, execute, wanted);
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
        : first_(searched(asked, stop, nullptr)),
          session_(std::make_shared<const planner::Session>(first_->job, first_->plan)) {}

    const std::shared_ptr<Plan>& first() const { return first_; }
    const std::shared_ptr<const planner::Session>& session() const { return session_; }
    const planner::SearchLimits& limits() const { return first_->limits; }

private:
    std::shared_ptr<Plan> first_;
    std::shared_ptr<const planner::Session> session_;
};

/// Owns what only the process that made it may destroy: a forked child leaves it where it is.
template <class T>
std::shared_ptr<T> not_for_children(std::unique_ptr<T> made) {
    return {made.release(), [process = getpid()](T* one) {
                if (getpid() == process) delete one;
            }};
}

// How many threads of this process wait for plans, having given the interpreter lock back. Asked under that lock.
int& waiting() {
    static pid_t process = getpid();
    static int count = 0;
    if (const pid_t now = getpid(); now != std::exchange(process, now)) count = 0;
    return count;
}

/// A batch that was submitted. Python keeps its queue for as long.
class Planned {
public:
    Planned(std::shared_ptr<const planner::Job> job, std::shared_ptr<planner::Planned> planned,
            planner::SearchLimits limits)
        : job_(std::move(job)),
          planned_(not_for_children(std::make_unique<Shared>(std::move(planned)))),
          limits_(std::move(limits)) {}

    bool done() const { return its().done(); }
    bool cancelled() const { return its().cancelled(); }
    bool cancel() const { return its().cancel(); }

    /// Null: it was cancelled. Pre: the interpreter lock is held.
    std::shared_ptr<Plan> result(std::optional<double> deadline) const {
        std::optional<Duration> within;
        if (deadline)
            within = std::chrono::duration_cast<Duration>(seconds(std::min(std::max(0.0, *deadline), most_seconds)));
        auto made = wait(within);
        return made ? std::make_shared<Plan>(job_, std::move(made), limits_) : nullptr;
    }

private:
    using Shared = std::shared_ptr<planner::Planned>;
    using seconds = std::chrono::duration<double>;
    static constexpr double most_seconds = 1e9;

    planner::Planned& its() const { return **planned_; }

    std::shared_ptr<const planner::BatchPlan> wait(std::optional<Duration> within) const {
        struct Counted {
            Counted() { ++waiting(); }
            ~Counted() { --waiting(); }
        };
        const Counted counted;  // until the lock is held again
        const nb::gil_scoped_release unlocked;
        return its().result(within, [] {
            const nb::gil_scoped_acquire locked;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        });
    }

    std::shared_ptr<const planner::Job> job_;
    std::shared_ptr<Shared> planned_;
    planner::SearchLimits limits_;
};

/// Plans a job's batches. In a forked child a new one takes its place.
class Queue {
public:
    explicit Queue(const Job& job) : session_(job.session()), limits_(job.limits()) {
        const auto threads = [count = limits_.thread_count()] { return on_own_threads(count); };
        const auto clock = [watch = Stopwatch()] { return watch.elapsed(); };
        queue_ = not_for_children(std::make_unique<planner::SessionQueue>(session_, threads, clock));
    }

    /// Without the interpreter lock: the thread that plans is waited for.
    ~Queue() { end(); }

    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    std::shared_ptr<Planned> submit(std::string name, std::optional<std::string> samples, int priority) {
        auto batch = [session = session_, name = std::move(name), samples = std::move(samples)] {
            const auto& model = session->job().setup->model;
            return session->job().batch(
                name, samples ? workloads::parse_batch(name, *samples, model) : workloads::read_batch(name, model));
        };
        if (!queue_) fail(ErrorKind::limit, "the program is ending: nothing is planned any more");
        const std::shared_ptr<const planner::Job> job(session_, &session_->job());
        return std::make_shared<Planned>(job, queue_->submit(std::move(batch), limits_.budget, priority), limits_);
    }

    void close() {
        if (queue_) queue_->close();
    }

    void end() {
        auto last = std::move(queue_);
        if (!last) return;
        const nb::gil_scoped_release unlocked;
        last.reset();
    }

private:
    std::shared_ptr<const planner::Session> session_;
    planner::SearchLimits limits_;
    std::shared_ptr<planner::SessionQueue> queue_;  // null: it has ended
};

/// Ends all queues and the waits for their plans: a thread must not ask for the lock of an interpreter that is gone.
void end_queues(const std::vector<Queue*>& queues) {
    for (Queue* queue : queues) queue->end();
    while (waiting() > 0) {
        const nb::gil_scoped_release unlocked;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

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
        return made_plan(std::make_shared<const planner::Job>(session_.session.job()), std::move(batch),
                         std::move(plan), {}, start);
    }

    const std::string& sample() const { return session_.sample; }
    const std::string& partition() const { return session_.partition; }

private:
    planner::KeptSession session_;
};

/// What a server would keep of a session of that configuration (JSON) and sample (a batch file), opened here by policy:
/// no clock decides, so it is the same in every process.
std::string keep_by_policy(const std::string& configuration, const std::optional<std::string>& sample) {
    const JsonDocument document("config", configuration);
    const planner::SessionOptions options(document.root(), sample);
    const auto execute = on_own_threads(options.asked.limits.thread_count());
    const auto request = options.request(execute);
    const auto plan =
        planner::plan_without_search(request.job, request.batch, execute, options.asked.plan.wanted(request.job));
    return planner::keep(configuration, sample, request.job, plan);
}

using NamedBytes = std::vector<std::pair<std::string, nb::bytes>>;

std::vector<FileToWrite> files_in(const std::filesystem::path& folder, const NamedBytes& files) {
    std::vector<FileToWrite> all;
    all.reserve(files.size());
    for (const auto& [name, content] : files)
        all.push_back({folder / name, std::string(content.c_str(), content.size())});
    return all;
}

/// Writes all of these files, or none; those that end in ".gz" are zipped.
void write_all(const NamedBytes& files) {
    const auto all = files_in("", files);
    const nb::gil_scoped_release unlocked;
    static_cast<void>(write_files(all));
}

/// The same of a plan's files, by their names in its folder.
void write_plan(const std::string& folder, const NamedBytes& files) {
    const auto all = files_in(folder, files);
    const nb::gil_scoped_release unlocked;
    static_cast<void>(emit::write_plan_files(all, folder));
}

void bind_queues(nb::module_& module) {
    nb::class_<Job>(module, "Job")
        .def(nb::init<const Asked&, const nb::object&>(), unlocked(), nb::arg("asked"), nb::arg("stop").none())
        .def_prop_ro("first", &Job::first);
    nb::class_<Planned>(module, "Planned")
        .def("done", &Planned::done)
        .def("cancelled", &Planned::cancelled)
        .def("cancel", &Planned::cancel)
        .def("result", &Planned::result, nb::arg("deadline").none());
    nb::class_<Queue>(module, "Queue", nb::is_weak_referenceable())
        .def(nb::init<const Job&>(), nb::arg("job"))
        .def("submit", &Queue::submit, nb::keep_alive<0, 1>(), nb::arg("name"), nb::arg("samples").none(),
             nb::arg("priority"))
        .def("close", &Queue::close);
    module.def("end_queues", &end_queues, nb::arg("queues"));
    module.def("keep_by_policy", &keep_by_policy, unlocked(), nb::arg("configuration"), nb::arg("sample").none());
}

}  // namespace

void bind_plan(nb::module_& module) {
    nb::class_<Asked>(module, "Asked")
        .def(nb::init<const std::string&, const std::optional<std::string>&, const std::optional<std::string>&,
                      const std::optional<std::string>&>(),
             nb::arg("name"), nb::arg("content").none(), nb::arg("batch").none(), nb::arg("samples").none())
        .def_prop_ro("out", [](const Asked& asked) { return asked.plan.out; })
        .def(
            "of_replica", [](Asked& asked, std::int64_t replica) { asked.plan.replicas = std::to_string(replica); },
            nb::arg("replica"));
    nb::class_<Plan>(module, "Plan")
        .def_prop_ro("makespan_ns", [](const Plan& plan) { return plan.plan.makespan.count(); })
        .def_prop_ro("lower_bound_ns", [](const Plan& plan) { return plan.plan.lower_bound.count(); })
        .def_prop_ro("step_ns", [](const Plan& plan) { return plan.plan.step.count(); })
        .def_prop_ro("gap",
                     [](const Plan& plan) { return schedule::relative_gap(plan.plan.makespan, plan.plan.lower_bound); })
        .def_prop_ro("deferred", [](const Plan& plan) { return workloads::to_jsonl(plan.batch.deferred); })
        .def_prop_ro("seconds", [](const Plan& plan) { return plan.seconds; })
        .def_prop_ro("replicas",
                     [](const Plan& plan) {
                         std::vector<std::size_t> numbers;
                         for (const auto& replica : plan.plan.replicas) numbers.push_back(replica.number);
                         return numbers;
                     })
        .def(
            "plan_json",
            [](const Plan& plan) { return emit::plan_json(plan.job, plan.batch, plan.plan).dump(1) + "\n"; },
            unlocked())
        .def(
            "assignment_json", [](const Plan& plan) { return emit::assignment_json(plan.job, plan.batch, plan.plan); },
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
    bind_queues(module);
    module.def("write_files", &write_all, nb::arg("files"));
    module.def("write_plan", &write_plan, nb::arg("folder"), nb::arg("files"));
    nb::class_<KeptSession>(module, "KeptSession")
        .def(nb::init<const std::string&, const std::string&>(), unlocked(), nb::arg("name"), nb::arg("kept"))
        .def_prop_ro("sample", &KeptSession::sample)
        .def_prop_ro("partition", &KeptSession::partition)
        .def("by_policy", &KeptSession::by_policy, unlocked(), nb::arg("step"), nb::arg("samples"));
}

}  // namespace pipeweaver::python
