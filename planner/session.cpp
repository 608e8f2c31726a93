#include "pipeweaver/planner/session.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "planner/replicas/plan_replica.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

constexpr const char* no_target_schedule = "not planned: this plan is for one step of a job that runs";

// Replicas of the batch on one partition.
class Prepared {
public:
    Prepared(const Job& job, const Assignment& assignment, std::vector<std::size_t> replicas)
        : job_(job), partition_(job.fixed->partition), shared_(assignment), numbers_(std::move(replicas)) {}

    // The quick policies or, where none of those applies to all replicas, others until one does.
    void apply_policies(const Executor& execute) {
        build(execute);
        if (applies()) return;
        const Time over = Time::until([] { return Duration{}; });
        for_each(execute, [&](Step& step, std::size_t, const Executor& on) {
            planner::apply_policies(step, {.split = job_.split != Split::never, .bound = {}, .time = over}, on);
        });
    }

    bool applies() const {
        return std::all_of(steps.begin(), steps.end(), [](const Step& step) { return step.fastest() != nullptr; });
    }

    bool lack_policies() const {
        return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.lacks_policies(); });
    }

    Baselines baselines() const {
        std::vector<ReplicaTimes> times;
        for (const Step& step : steps) times.push_back(times_of(step));
        return baselines_of(partition_, times);
    }

    // As the fastest policy of each runs it. Pre: applies().
    std::vector<ScheduledStep> by_policy() const {
        std::vector<ScheduledStep> chosen;
        for (const Step& step : steps) chosen.push_back(take_policy(step, *step.fastest()));
        return chosen;
    }

    // The places of the replicas, that with the longest makespan first; of those that no policy runs in any order.
    std::vector<std::size_t> longest_first() const {
        std::vector<Duration> makespans;
        for (const Step& step : steps) {
            const PolicyRun* fastest = step.fastest();
            makespans.push_back(fastest == nullptr ? Duration{} : fastest->makespan());
        }
        return largest_first(makespans);
    }

    // The replicas' schedules, beside `baselines`.
    Plan plan(std::vector<ScheduledStep> chosen, Baselines baselines) const {
        std::vector<ReplicaPlan> replicas;
        for (std::size_t k = 0; k < chosen.size(); ++k)
            replicas.push_back(finished(shared_, numbers_[k], std::move(chosen[k])));
        Plan plan = assemble(job_, shared_, std::move(replicas));
        plan.baselines = std::move(baselines);
        plan.choice.smallest = plan.makespan;
        plan.targets = no_target_plans(no_target_schedule);
        return plan;
    }

    std::vector<Step> steps;  // of each

private:
    void for_each(const Executor& execute, const std::function<void(Step&, std::size_t, const Executor&)>& work) {
        const bool alone = steps.size() == 1;
        run_jobs(alone ? in_order : execute, steps.size(),
                 [&](std::size_t k) { work(steps[k], numbers_[k], alone ? execute : in_order); });
    }

    void build(const Executor& execute) {
        steps.resize(numbers_.size());
        const PoliciesWanted wanted{
            .split = job_.split != Split::never, .bound = search::BoundEffort::quick, .policies = quick_policies};
        for_each(execute, [&](Step& step, std::size_t r, const Executor& on) {
            step = evaluate(*job_.setup, partition_, shared_.microbatches[r],
                            replica_wanted(*job_.setup, partition_, r), wanted, on);
        });
    }

    const Job& job_;
    const partition::Partition& partition_;
    const Assignment& shared_;
    std::vector<std::size_t> numbers_;
};

[[noreturn]] void does_not_apply(const Prepared& prepared) {
    if (const auto& shortage = prepared.steps.front().shortage) fail(ErrorKind::limit, "{}", shortage->text());
    const Baselines its = prepared.baselines();
    const NotApplicable& first = its.not_applicable.front();
    fail(ErrorKind::limit, "no policy applies: {}: {}: {}", first.partition, first.policy, first.why);
}

// Trying both takes a fraction of the time that is known beforehand: a running job goes on as its first plan did.
Split split_like(const Plan& plan) {
    for (const ReplicaPlan& replica : plan.replicas)
        for (const Task& task : replica.cut.step.problem.tasks)
            if (task.kind == TaskKind::weight_gradient) return Split::always;
    return Split::never;
}

class Counted : public Time::Source {
public:
    Counted(Time time, Stops& stops, std::optional<std::size_t> part)
        : time_(std::move(time)), stops_(stops), part_(part) {}

    // What was over once stays so, as it will when it is played back.
    std::optional<StopReason> stop(const search::Progress& progress) override {
        const std::scoped_lock lock(mutex_);
        if (over_) return over_;
        over_ = time_.stop(progress);
        if (!over_)
            ++asked_;
        else if (part_)
            stops_[*part_] = asked_;
        return over_;
    }

    Time fraction(double part, Duration reserve) override {
        stops_.emplace_back();
        return Time(std::make_shared<Counted>(time_.fraction(part, reserve), stops_, stops_.size() - 1));
    }

private:
    Time time_;
    Stops& stops_;
    std::optional<std::size_t> part_;  // its place in `stops_`; none: it is the whole, whose end no search asks for
    std::uint64_t asked_ = 0;
    std::optional<StopReason> over_;
    std::mutex mutex_;
};

class Again : public Time::Source {
public:
    Again(const Ending& ending, std::shared_ptr<std::size_t> opened, std::uint64_t times)
        : ending_(ending), opened_(std::move(opened)), left_(times) {}

    std::optional<StopReason> stop(const search::Progress&) override {
        const std::scoped_lock lock(mutex_);
        if (left_ == 0) return StopReason::budget;
        --left_;
        return std::nullopt;
    }

    Time fraction(double, Duration) override {
        if (!ending_) return Time(std::make_shared<Again>(ending_, opened_, 0));
        if (*opened_ == ending_->size())
            fail(ErrorKind::input, "endings: has {} entries for a replica, its search asks for more", ending_->size());
        const std::uint64_t times = (*ending_)[(*opened_)++].value_or(UINT64_MAX);
        return Time(std::make_shared<Again>(ending_, opened_, times));
    }

private:
    const Ending& ending_;
    std::shared_ptr<std::size_t> opened_;  // parts so far, of all that come from one whole
    std::uint64_t left_;
    std::mutex mutex_;
};

}  // namespace

struct Begun::Parts {
    Parts(const Job& job, Assignment shared, const std::vector<std::size_t>& replicas)
        : assignment(std::move(shared)), prepared(job, assignment, replicas) {}

    Assignment assignment;
    Prepared prepared;
};

Begun::Begun(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Begun::Begun(Begun&& other) noexcept = default;
Begun& Begun::operator=(Begun&& other) noexcept = default;
Begun::~Begun() = default;

bool Begun::has_policy() const { return parts_->prepared.applies(); }

Session::Session(Job job, const Plan& first)
    : job_(std::move(job)), order_(StaticOrder::of_plan(first)), patience_(planner::patience) {
    for (const ReplicaPlan& replica : first.replicas) replicas_.push_back(replica.number);
    job_.fixed = partition::PartitionFile{first.partition(), first.partition_choice.chosen_on};
    if (job_.split == Split::automatic) job_.split = split_like(first);
}

Session::Session(Job job, std::vector<std::size_t> replicas, std::optional<StaticOrder> order,
                 std::optional<search::Patience> own_patience)
    : job_(std::move(job)), replicas_(std::move(replicas)), order_(std::move(order)), patience_(own_patience) {
    PIPEWEAVER_ASSERT(job_.fixed && job_.split != Split::automatic);
}

std::vector<Cut> Session::steps(const Batch& batch, const Executor& execute) const {
    return steps_of(job_, batch, partition(), replicas_, execute);
}

Begun Session::begin(const Batch& batch, const Executor& execute) const {
    auto parts = std::make_unique<Begun::Parts>(job_, assign(job_, batch, execute), replicas_);
    parts->prepared.apply_policies(execute);
    return Begun(std::move(parts));
}

Plan Session::by_policy(const Begun& begun) const {
    const Prepared& prepared = begun.parts_->prepared;
    if (!prepared.applies()) does_not_apply(prepared);
    return prepared.plan(prepared.by_policy(), prepared.baselines());
}

Plan Session::by_policy(const Batch& batch, const Executor& execute) const { return by_policy(begin(batch, execute)); }

Plan Session::plan(Begun begun, const Executor& execute, const Time& time, Endings* endings) const {
    const auto same = [](std::size_t, const Time& own) { return own; };
    return plan(std::move(begun), execute, time, same, endings);
}

Plan Session::plan(const Batch& batch, const Executor& execute, const Time& time, const OnDraft& draft,
                   Endings* endings) const {
    Begun begun = begin(batch, execute);
    if (draft && begun.has_policy()) draft(by_policy(begun));
    return plan(std::move(begun), execute, time, endings);
}

Plan Session::plan_again(const Batch& batch, const Executor& execute, const Endings& endings) const {
    const auto as_then = [&](std::size_t k, const Time&) { return planner::again(endings[k]); };
    return plan(begin(batch, execute), execute, {}, as_then, nullptr);
}

ScheduleWanted Session::wanted(const Assignment& assignment, std::size_t replica, std::size_t tasks) const {
    ScheduleWanted wanted = schedule_wanted(job_);
    // Of a large problem full bounds take as long as a dozen schedules.
    const bool full = effort_of(tasks, 1).full_bounds_first;
    wanted.bounds = full ? assignment.bounds(replica) : search::BoundEffort::quick;
    // A search of whole backwards finds its bounds itself.
    wanted.policy_bounds = job_.split == Split::never ? search::BoundEffort::quick : wanted.bounds;
    wanted.problems = static_cast<std::size_t>(job_.setup->layout.dp);
    wanted.patience = patience_;
    if (order_) wanted.more = [this](const StepProblem& step) { return order_->carried(step); };
    return wanted;
}

Plan Session::plan(Begun begun, const Executor& execute, const Time& time,
                   const std::function<Time(std::size_t, const Time&)>& of_replica, Endings* endings) const {
    const Assignment& assignment = begun.parts_->assignment;
    Prepared& prepared = begun.parts_->prepared;
    const Baselines quick = prepared.baselines();
    const auto order = prepared.longest_first();
    std::vector<ScheduledStep> chosen(replicas_.size());
    Endings ended(replicas_.size());
    const auto schedule = [&](std::size_t k, const Executor& on, const Time& mine) {
        Step& step = prepared.steps[k];
        const bool drafted = step.fastest() != nullptr;
        Stops stops;
        const auto asked = wanted(assignment, replicas_[k], std::max<std::size_t>(1, step.tasks()));
        chosen[k] = schedule_step(step, asked, on, counted(of_replica(k, mine), stops));
        chosen[k].require_schedule();
        step.policies = chosen[k].step.policies;
        step.bound = chosen[k].step.bound;
        const bool had_a_turn = std::any_of(stops.begin(), stops.end(), [](const auto& stop) { return stop != 0; });
        if (!drafted || had_a_turn) ended[k] = std::move(stops);
    };
    for_replicas(order, schedule, execute, time, 1);
    if (endings != nullptr) *endings = std::move(ended);
    return prepared.plan(std::move(chosen), prepared.lack_policies() ? quick : prepared.baselines());
}

Time counted(const Time& time, Stops& stops) { return Time(std::make_shared<Counted>(time, stops, std::nullopt)); }

Time again(const Ending& ending) {
    return Time(std::make_shared<Again>(ending, std::make_shared<std::size_t>(0), UINT64_MAX));
}

}  // namespace pipeweaver::planner
