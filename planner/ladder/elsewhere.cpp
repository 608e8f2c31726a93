#include "planner/ladder/elsewhere.hpp"

#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "planner/layout/layout_trial.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

// None: nothing that the target launches runs in the layout.
std::optional<OpponentWay> fastest_in(const LayoutTried& tried, const Job& job, const Batch& batch,
                                      const Executor& execute, const Time& time) {
    Job other = job;
    other.setup = std::make_shared<const Setup>(in_layout(*job.setup, {tried.layout, tried.zero}));
    other.sample = {};  // what a command draws for each replica would be another one
    const Batch packed = job.in_layout(batch, tried.layout);
    const Opponents here = launched_here(choose_opponents(other, packed, execute, time), other);
    if (here.ways.empty()) return std::nullopt;
    const Baselines rows = run_opponents(here, other, packed, execute, time);
    const Baseline* row = rows.fastest_opponent();
    if (row == nullptr) return std::nullopt;
    OpponentWay way = way_of(*row, here);
    way.name = fmt::format("{}, zero {}: {}", name_of(tried.layout), tried.zero, way.partition.name);
    way.cut_on_batch = true;
    return way;
}

}  // namespace

Elsewhere launched_elsewhere(const Job& job, const Batch& batch, const std::optional<std::int64_t>& cp,
                             const Executor& execute, const Time& time) {
    Elsewhere found;
    if (time.is_over()) return found;
    const LayoutChoice all = job.layout_choice ? *job.layout_choice : launched_layouts(job, batch, cp, execute, time);
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

}  // namespace pipeweaver::planner
