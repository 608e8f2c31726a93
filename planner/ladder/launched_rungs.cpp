// The rungs from what is run today to the best that flags launch: all that is known before an order is searched.
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "planner/ladder/elsewhere.hpp"
#include "planner/ladder/rungs.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

class LaunchedRungs {
public:
    LaunchedRungs(const LadderStart& start, const Baselines& rows, const Executor& execute)
        : start_(start), job_(start.request.job), runs_(target(job_.target)), rows_(rows), execute_(execute) {}

    Ladder run() {
        if (!start_.now) {
            ladder_.why_none = start_.why_none;
            if (start_.layout) add_only_layout();
            return std::move(ladder_);
        }
        ladder_.now_is_said = start_.now_is_said;
        ladder_.rungs = {*start_.now, *start_.data};
        if (start_.flags)
            ladder_.rungs.push_back(*start_.flags);
        else
            add_row(
                "flags", [this](const Baseline& row) { return is_in_own_layout(row); },
                std::string(all_flags_tried() ? no_better_flags : none_in_time));
        add_row(
            "layout", [this](const Baseline& row) { return start_.flags || !is_in_own_layout(row); }, why_no_layout());
        ladder_.left_out = start_.left_out;
        return std::move(ladder_);
    }

private:
    const Rung& last() const { return ladder_.rungs.back(); }

    bool is_in_own_layout(const Baseline& row) const { return is_in_layout_of(start_.opponents.ways[*row.way], job_); }

    // The fastest row of the table that the target launches, on the plan's ranks or on others.
    template <class Which>
    void add_row(const std::string& name, Which which, std::string why_nothing) {
        for (const Baseline& row : rows_.all) {
            if (!row.is_opponent || !row.launched || !which(row)) continue;
            if (row.step >= last().step) break;
            auto found = fitting(name, start_.request, way_of(row, start_.opponents), execute_);
            if (!found || found->rung.step >= last().step) continue;
            if (name == "flags")
                found->rung.needs = needs_of_flags(job_, found->way);
            else
                take_layout(found->rung, found->way);
            found->rung.files = start_.data->files;
            ladder_.rungs.push_back(std::move(found->rung));
            return;
        }
        ladder_.rungs.push_back(nothing(name, last(), std::move(why_nothing)));
    }

    // Where nothing that is launched fits in the user's own layout.
    void add_only_layout() {
        ladder_.rungs = {*start_.layout};
        Rung& rung = ladder_.rungs.front();
        take_layout(rung, *rung.launched);
        rung.files = {"assignment.json"};
        ladder_.left_out = start_.left_out;
    }

    // Whether there was time for every schedule that the target's flags say in the plan's layout.
    bool all_flags_tried() const {
        std::vector<NotApplicable> of_flags = rows_.not_applicable;
        std::erase_if(of_flags, [](const NotApplicable& one) { return !one.launched || !one.in_own_layout; });
        return !lacks_time(of_flags) && !lacks(start_.left_out, doing::tuned_cuts);
    }

    std::string why_no_layout() const {
        if (lacks(start_.left_out, doing::other_layouts)) return std::string(none_in_time);
        if (job_.layout_choice)
            return fmt::format("{} was chosen among {} layouts", name_of(job_.setup->layout), start_.layouts);
        return fmt::format("none of {} layouts that fit is faster as flags launch it", start_.layouts);
    }

    // "--tp 4 --cp 2 --pp 4 --dp 1 --zero 2".
    static std::string degrees_of(const Setup& setup) {
        const auto above_one = [](std::string_view option, std::int64_t degree) {
            return degree > 1 ? fmt::format(" --{} {}", option, degree) : std::string();
        };
        const Layout& layout = setup.layout;
        const auto& built = setup.model.built;
        const bool is_turned = built && built->recompute_turned;
        return fmt::format("--tp {}{} --pp {} --dp {}{} --zero {}{}{}", layout.tp, above_one("cp", layout.cp),
                           layout.pp, layout.dp, above_one("ep", layout.ep), setup.recipe.zero,
                           workloads::deals_images(setup.model) ? " --deal-images" : "",
                           is_turned ? " --encoder-recompute " + workloads::name_of(built->recompute) : "");
    }

    // What a way on other ranks needs.
    void take_layout(Rung& rung, const Way& way) const {
        const Setup& setup = *way.setup;
        rung.needs = fmt::format("launch with {}, zero {}", name_of(setup.layout), setup.recipe.zero);
        rung.reshards = !runs_.launch.replicas_alone;  // else every GPU reads the whole checkpoint
        rung.needs += way.has_pipeline || !rung.reshards ? ", " + needs_of_flags(job_, way) : switches_of(way);
        if (way.has_pipeline && way.setup != job_.setup) rung.search = degrees_of(setup);
    }

    const LadderStart& start_;
    const Job& job_;
    const Target& runs_;
    const Baselines& rows_;
    const Executor& execute_;
    Ladder ladder_;
};

}  // namespace

Ladder launched_rungs(const LadderStart& start, const Baselines& baselines, const Executor& execute) {
    return LaunchedRungs(start, baselines, execute).run();
}

}  // namespace pipeweaver::planner
