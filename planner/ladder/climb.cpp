// What each rung of a plan's ladder takes, from what is run today to the searched schedule.
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/planner/ends.hpp"
#include "pipeweaver/planner/groups_words.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "planner/ladder/on_groups.hpp"
#include "planner/ladder/rungs.hpp"
#include "planner/ladder/worth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

class Climb {
public:
    Climb(const LadderStart& start, const Plan& plan, const Executor& execute, const Time& time, Ladder launched)
        : start_(start),
          job_(start.request.job),
          runs_(target(job_.target)),
          plan_(plan),
          execute_(execute),
          time_(time),
          ladder_(std::move(launched)) {}

    Ladder run() {
        if (!start_.now) {
            if (start_.layout) add_schedule();
            return with_ends();
        }
        add_schedule();
        add_beyond();
        if (runs_.groups) add_groups();
        ladder_.headline = advise(
            ladder_.rungs, runs_.option, [this](const Rung& rung) { return schedules(rung); }, job_.seed, execute_);
        weigh_groups();
        return with_ends();
    }

private:
    const Rung& last() const { return ladder_.rungs.back(); }

    // The ladder, with the far ends of what runs now and of what is advised.
    Ladder with_ends() {
        if (ladder_.rungs.empty()) return std::move(ladder_);
        Rung& best = ladder_.on_groups ? ladder_.beyond.back() : ladder_.rungs[ladder_.headline];
        best.host = far_end_of(best);
        if (&best != &ladder_.rungs.front()) ladder_.rungs.front().host = far_end_of(ladder_.now());
        return std::move(ladder_);
    }

    std::optional<HostBound> far_end_of(const Rung& rung) const {
        if (rung.launched) return far_end(*rung.launched, runs_, rung.step, execute_);
        if (rung.name == groups_rung) return far_end(own_gpus_->asked, *own_gpus_->placing);
        const Target& by = ordered_for();
        return has_own_plan(by) ? far_end(plan_.target(by.name), *job_.setup, rung.step) : far_end(plan_, *job_.setup);
    }

    RungSchedules schedules(const Rung& rung) const {
        if (rung.launched) return schedules_of(*rung.launched, runs_);
        const Target& by = ordered_for();
        return has_own_plan(by) ? schedules_of(plan_.target(by.name)) : schedules_of(plan_);
    }

    // Whose order is the rung's: the target's, or that of the first that was asked for beside it.
    const Target& ordered_for() const {
        if (runs_.searches || job_.also.empty()) return runs_;
        const bool also_actions =
            std::find(job_.also.begin(), job_.also.end(), targets().front().name) != job_.also.end();
        return also_actions ? targets().front() : target(job_.also.front());
    }

    // The plan's own schedule, or the target's.
    void add_schedule() {
        if (!plan_.is_searched)
            return ladder_.rungs.push_back(nothing(
                "schedule", last(), fmt::format("not asked for: --also {} searches one", targets().front().option)));
        const Target& by = ordered_for();
        if (has_own_plan(by) && !plan_.target(by.name).found.schedule)
            return ladder_.rungs.push_back(nothing("schedule", last(), plan_.target(by.name).why_not));
        Rung rung = has_own_plan(by) ? of_target(by) : of_plan();
        if (rung.step >= last().step) {
            const double seconds = static_cast<double>(rung.step.count()) * 1e-9;
            ladder_.rungs.push_back(
                nothing("schedule", last(),
                        fmt::format("{}, takes {:.3f} s in {}", rung.way, seconds, name_of(job_.setup->layout))));
        } else {
            ladder_.rungs.push_back(std::move(rung));
        }
    }

    void take_memory(Rung& rung, const StepProblem& step, const schedule::Replay& replay) const {
        const auto peak = peaks_of(step, replay.peak);
        for (std::size_t r = 0; r < peak.size(); ++r)
            if (const Bytes capacity = *step.problem.ranks[r].capacity; is_over(rung, peak[r], capacity)) {
                rung.peak = peak[r];
                rung.usable = capacity;
            }
    }

    Rung batch_rung() const {
        Rung rung{.name = "schedule"};
        rung.reshards = start_.flags.has_value();  // now is in the user's own layout, the plan is not
        rung.microbatches = start_.request.batch.microbatches.size();
        for (const auto& microbatch : start_.request.batch.microbatches) rung.tokens += microbatch.tokens;
        return rung;
    }

    // " (vit tp 1 x 8 copies, hybrid)": of modules whose copies share a rank.
    std::string layouts_of_plan() const {
        const auto& layouts = plan_.partition().layouts;
        std::string text;
        for (std::size_t m = 0; m < layouts.size(); ++m)
            if (layouts[m].copies > 1 && !layouts[m].in_phases)
                text += fmt::format("{}{} {}", text.empty() ? " (" : "; ",
                                    start_.request.job.setup->model.modules[m].name, emulator::name_of(layouts[m]));
        return text.empty() ? text : text + ")";
    }

    // "; cp 8 and ZeRO 2 are your chunks'": what pipeweaver.torch does not do itself.
    std::string left_to_chunks() const {
        const emulator::Setup& setup = *start_.request.job.setup;
        std::string text = setup.layout.cp > 1 ? fmt::format("cp {}", setup.layout.cp) : "";
        if (setup.recipe.zero > 1) text += fmt::format("{}ZeRO {}", text.empty() ? "" : " and ", setup.recipe.zero);
        if (text.empty()) return "";
        return fmt::format("; {} {} your chunks'", text, text.find(" and ") != std::string::npos ? "are" : "is");
    }

    Rung of_plan() const {
        Rung rung = batch_rung();
        rung.way = fmt::format("{}{}, {}", plan_.partition().name, layouts_of_plan(),
                               plan_.is_opponents ? "a known order" : "searched");
        rung.step = plan_.step;
        for (const ReplicaPlan& replica : plan_.replicas) take_memory(rung, replica.cut.step, replica.found.replay);
        rung.needs = "pipeweaver.torch runs it" + left_to_chunks();
        if (start_.request.job.setup->recipe.state.offloaded > 0)
            rung.needs += "; states on the host are your optimizer's";
        rung.target = runs_plan(runs_) ? runs_.option : targets().front().option;
        rung.files = {"replica-*/actions.json"};
        return rung;
    }

    Rung of_target(const Target& by) const {
        const TargetPlan& own = plan_.target(by.name);
        Rung rung = batch_rung();
        rung.target = by.option;
        rung.way = fmt::format("{}, searched", own.cut.partition.name);
        rung.step = own.found.replay.makespan + own.cut.step.optimizer;
        take_memory(rung, own.cut.step, own.found.replay);
        rung.peak = std::max(rung.peak, own.peak_of_fullest);  // of one rank, where it is known
        rung.padding = padding_of(own.padding);
        const bool first_alone = plan_.replicas.size() > 1 && !by.fixed_shapes;
        rung.needs = fmt::format("{} loads it{}", by.title, first_alone ? "; of replica 0 alone" : "");
        rung.files = {fmt::format("{}/{}", by.folder, by.file)};
        return rung;
    }

    // What engineers try elsewhere and the target does not launch, where it is faster than everything that it does.
    void add_beyond() {
        const Duration best = last().step;
        for (const Baseline& row : plan_.baselines.all) {
            if (!row.is_opponent || row.launched || row.step >= best) continue;
            auto found = fitting(row.partition, start_.request, way_of(row, start_.opponents), execute_);
            if (!found || found->rung.step >= best) continue;
            ladder_.beyond.push_back(std::move(found->rung));
            ladder_.beyond.back().target.clear();
            return;
        }
    }

    void add_groups() {
        if (start_.request.job.setup->model.modules.size() < 2) return;
        if (time_.is_over())
            ladder_.left_out.emplace_back(doing::own_gpus);
        else if ((own_gpus_ = on_groups(start_.request)))
            add_on_groups(own_gpus_->rung);
    }

    void add_on_groups(Rung rung) {
        const bool gains = std::all_of(ladder_.rungs.begin(), ladder_.rungs.end(),
                                       [&](const Rung& other) { return rung.step < other.step; });
        if (!gains) rung.why_nothing = fmt::format("{}, takes {}", rung.way, human(rung.step));
        ladder_.beyond.push_back(std::move(rung));
    }

    // Modules on GPUs of their own over what is advised without them, as a rung over an easier one.
    void weigh_groups() {
        if (!own_gpus_ || !ladder_.beyond.back().why_nothing.empty()) return;
        Rung& rung = ladder_.beyond.back();
        const Rung& easier = ladder_.best();
        rung.worth = Worth{.over = easier.name, .gain = ratio(easier.step, rung.step)};
        if (rung.worth->gain < margins.worth) return;
        rung.worth =
            worth_over(easier, schedules(easier).with_optimizer(), rung, schedules_of(*own_gpus_), job_.seed, execute_);
        ladder_.on_groups = rung.worth->is_enough && rung.target == runs_.option;
    }

    const LadderStart& start_;
    const Job& job_;
    const Target& runs_;
    const Plan& plan_;
    const Executor& execute_;
    const Time& time_;
    Ladder ladder_;
    std::optional<OnGroups> own_gpus_;
};

}  // namespace

const Rung* Ladder::launched() const {
    const Rung* best = nullptr;
    for (const Rung& rung : rungs)
        if (rung.launched && (best == nullptr || (rung.why_nothing.empty() && (!rung.worth || rung.worth->is_enough))))
            best = &rung;
    return best;
}

const Rung* Ladder::compared() const {
    for (std::size_t i = on_groups ? rungs.size() : headline; i-- > 0;)
        if (rungs[i].target == best().target && rungs[i].why_nothing.empty() && are_comparable(rungs[i], best()))
            return &rungs[i];
    return nullptr;
}

Ladder ladder_of(const LadderStart& start, const Plan& plan, const Executor& execute, const Time& time) {
    const bool is_begun = !plan.ladder.rungs.empty() || !plan.ladder.why_none.empty();
    Ladder launched = is_begun ? plan.ladder : launched_rungs(start, plan.baselines, execute);
    return Climb(start, plan, execute, time, std::move(launched)).run();
}

}  // namespace pipeweaver::planner
