#include "planner/ladder/elsewhere.hpp"

#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "pipeweaver/workloads/module_roles.hpp"
#include "planner/ladder/rungs.hpp"
#include "planner/layout/layout_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

// None: nothing that the target launches runs in the setup.
std::optional<OpponentWay> fastest_in(std::shared_ptr<const Setup> setup, const Job& job, const Batch& batch,
                                      const Executor& execute, const Time& time) {
    Job other = job;
    other.setup = std::move(setup);
    other.sample = {};  // what a command draws for each replica would be another one
    const Batch packed = job.in_layout(batch, other.setup->layout);
    Opponents here = launched_here(choose_opponents(other, packed, execute, time), other);
    Baselines rows = run_opponents(here, other, packed, execute, time);
    if (rows.fastest_opponent() == nullptr) {
        here = refused_on_sample(std::move(rows.not_applicable));
        if (here.ways.empty()) return std::nullopt;
        rows = run_opponents(here, other, packed, execute, time);
    }
    const Baseline* row = rows.fastest_opponent();
    if (row == nullptr) return std::nullopt;
    OpponentWay way = way_of(*row, here);
    way.name = fmt::format("{}, zero {}: {}", name_of(way.setup->layout), way.setup->recipe.zero, way.partition.name);
    way.cut_on_batch = true;
    way.step = row->step;
    return way;
}

// With one of the framework's switches on where that is faster.
std::optional<OpponentWay> fastest_in(const LayoutTried& tried, const Job& job, const Batch& batch,
                                      const Executor& execute, const Time& time) {
    const auto setup = std::make_shared<const Setup>(in_layout(*job.setup, {tried.layout, tried.zero}));
    auto way = fastest_in(setup, job, batch, execute, time);
    for (const Switched& one : switched(*setup)) {
        auto other = fastest_in(one.setup, job, batch, execute, time);
        if (!other || (way && way->step <= other->step)) continue;
        other->name += one.name;
        way = std::move(other);
    }
    return way;
}

// What is recomputed of an encoder makes a difference where gradients reach it.
bool any_encoder_trains(const workloads::Model& model) {
    const auto reached = workloads::gradient_reaches(model);
    for (std::size_t m = 0; m < model.backbone(); ++m)
        if (reached[m] && model.modules[m].unit == workloads::PassUnit::items) return true;
    return false;
}

// The job as its other layouts are judged: with images dealt, and with encoders recomputed with the language model,
// where that can be switched on. So fits what fits without.
Job judged_elsewhere(const Job& job) {
    Job judged = job;
    Layout layout = job.setup->layout;
    layout.cp = std::max<std::int64_t>(layout.cp, 2);  // the switch has a meaning
    if (const auto dealt = with_images_dealt(with_layout(*job.setup, layout)))
        judged.setup = std::make_shared<const Setup>(with_layout(*dealt, job.setup->layout));
    for (const Switched& one : switched(*judged.setup))
        if (one.name == encoders_again) judged.setup = one.setup;
    return judged;
}

}  // namespace

Elsewhere launched_elsewhere(const Job& job, const Batch& batch, const std::optional<std::int64_t>& cp,
                             const Executor& execute, const Time& time) {
    Elsewhere found;
    if (time.is_over()) return found;
    // Layouts are judged several at a time, and the best of them run after that.
    const Time judging = time.left() ? time.fraction(fractions.judging) : time;
    const LayoutChoice all =
        job.layout_choice ? *job.layout_choice : launched_layouts(judged_elsewhere(job), batch, cp, execute, judging);
    found.layouts = all.tried.size();
    found.is_whole = !all.cut_short;
    std::size_t left = sizes.layouts_searched;
    for (const LayoutTried& tried : all.tried) {
        if (are_equal({tried.layout, tried.zero}, {job.setup->layout, job.setup->recipe.zero})) continue;
        if (left-- == 0) break;
        if (time.is_over()) {
            found.is_whole = false;
            break;
        }
        if (auto way = fastest_in(tried, job, batch, execute, time)) found.ways.push_back(std::move(*way));
    }
    return found;
}

Request moved_to(const Way& way, const Request& request) {
    Request moved = request;
    if (way.setup == request.job.setup) return moved;
    Job& job = moved.job;
    if (job.words) job.words = words_in(*way.setup, request.job, request.batch);
    job.setup = way.setup;
    job.layout_choice.reset();
    job.sample = {};
    moved.batch = request.job.in_layout(request.batch, way.setup->layout);
    moved.batch.drawn_microbatches = 0;  // the batch was drawn for the replicas of another layout
    return moved;
}

std::shared_ptr<const Setup> with_images_dealt(const Setup& setup) {
    const auto& built = setup.model.built;
    if (!built || built->deals.empty() || setup.layout.cp == 1 || workloads::deals_images(setup.model)) return nullptr;
    Setup dealt = with_layout(setup, setup.layout);
    workloads::build_as(dealt.model, workloads::dealing(*built));
    return std::make_shared<const Setup>(std::move(dealt));
}

std::vector<Switched> switched(const Setup& setup) {
    std::vector<Switched> all;
    if (auto dealt = with_images_dealt(setup)) all.push_back({std::move(dealt), images_dealt});
    const auto& built = setup.model.built;
    if (!built || built->recompute_by.empty() || built->recompute_turned || !any_encoder_trains(setup.model))
        return all;
    Setup turned = with_layout(setup, setup.layout);
    turned.model.built = workloads::recomputing_otherwise(*built);
    const bool again = turned.model.built->recompute != workloads::EncoderRecompute::never;
    all.push_back({std::make_shared<const Setup>(std::move(turned)), again ? encoders_again : encoders_kept});
    return all;
}

std::vector<OpponentWay> launched_switched(const Job& job, const Batch& batch, const Executor& execute,
                                           const Time& time, bool& is_whole) {
    std::vector<OpponentWay> ways;
    for (const Switched& one : switched(*job.setup)) {
        if (time.is_over()) {
            is_whole = false;
            break;
        }
        Job own = job;
        own.setup = one.setup;
        Opponents all = choose_opponents(own, batch, execute, time);
        is_whole = add_tuned(all, own, batch, execute, time) && is_whole;
        for (OpponentWay& way : all.ways) {
            if (!launches(target(job.target), way)) continue;
            way.name += one.name;
            ways.push_back(std::move(way));
        }
    }
    return ways;
}

}  // namespace pipeweaver::planner
