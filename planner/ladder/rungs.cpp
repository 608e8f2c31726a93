#include "planner/ladder/rungs.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/search/standing.hpp"
#include "planner/schedule/recompute_settings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

std::string words_of(const OpponentWay& way, const std::string& recompute) {
    std::string text = way.name;
    if (way.has_pipeline) text += " " + way.policy;
    if (way.partition.chunks_per_rank > 1) text += fmt::format(", {} chunks", way.partition.chunks_per_rank);
    return recompute == "none" ? text : text + ", " + recompute;
}

LaunchedWay launched_way(const OpponentWay& way, const std::string& recompute, const Emulation& emulation,
                         const Batch& batch) {
    LaunchedWay launched{.setup = way.setup,
                         .has_pipeline = way.has_pipeline,
                         .partition = way.partition,
                         .policy = way.policy,
                         .recompute = recompute,
                         .makespan = emulation.makespan,
                         .usable = capacity_of(*way.setup)};
    if (!emulation.by_rank.empty()) launched.by_rank = emulation.by_rank.front();
    launched.microbatches.reserve(emulation.assigned.size());
    for (const auto& mine : emulation.assigned) launched.microbatches.push_back(static_cast<std::int64_t>(mine.size()));
    launched.batch = std::make_shared<const Batch>(batch);
    launched.assigned = emulation.assigned;
    for (const auto& microbatch : batch.microbatches)
        launched.most_tokens = std::max(launched.most_tokens, microbatch.tokens);
    launched.peak.resize(emulation.replicas.front().memory.size());
    for (const ReplicaEmulation& replica : emulation.replicas)
        for (std::size_t r = 0; r < launched.peak.size(); ++r)
            launched.peak[r] = std::max(launched.peak[r], replica.memory[r].peak);
    return launched;
}

// The step as a way runs it.
Rung emulated(std::string name, const Request& of, const OpponentWay& way, const std::string& recompute,
              const Executor& execute) {
    const Target& runs = target(of.job.target);
    EmulationRequest request;
    request.job = of.job;
    request.job.setup = way.setup;
    request.job.fixed = partition::PartitionFile{way.partition, {}};
    request.batch = of.job.in_layout(of.batch, way.setup->layout);
    request.policy = way.policy;
    request.recompute = recompute_named(recompute);
    request.recompute_by_rank = recompute == by_rank_name;
    if (launches(runs, way)) request.target = &runs;
    const Emulation emulation = emulate(request, execute);
    Rung rung{.name = std::move(name), .target = runs.option, .way = words_of(way, recompute)};
    rung.step = emulation.step;
    rung.tokens = emulation.tokens;
    rung.microbatches = request.batch.microbatches.size();
    const Bytes usable = capacity_of(*way.setup);
    for (const ReplicaEmulation& replica : emulation.replicas)
        for (const RankMemory& rank : replica.memory)
            if (is_over(rung, rank.peak, usable)) {
                rung.peak = rank.peak;
                rung.usable = usable;
            }
    rung.command = command_of(way, recompute, of.job, of.batch);
    rung.launched = std::make_shared<const LaunchedWay>(launched_way(way, recompute, emulation, request.batch));
    return rung;
}

std::string why_not_of(const std::vector<NotApplicable>& all) {
    std::string text;
    for (const NotApplicable& one : all)
        text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", one.partition, one.policy, one.why);
    return text;
}

// The ways of a job that its target launches, of which there are none.
std::string why_none_of(const Job& job, const Opponents& ways) {
    const Target& runs = target(job.target);
    const int zero = job.setup->recipe.zero;
    if (zero > runs.launch.most_zero)
        return fmt::format("--zero, --recipe: the job has ZeRO {}, but {} launches ZeRO 0 to {} alone", zero,
                           runs.option, runs.launch.most_zero);
    if (!ways.not_applicable.empty()) return why_not_of(ways.not_applicable);
    return fmt::format("{} launches nothing in {}", runs.option, name_of(job.setup->layout));
}

search::Standing standing_of(const Rung& rung) {
    const double usable = rung.usable > Bytes{} ? static_cast<double>(rung.usable.count) : 1;
    return {rung.step, static_cast<double>(rung.peak.count) / usable};
}

}  // namespace

bool is_over(const Rung& rung, Bytes peak, Bytes usable) {
    return rung.usable == Bytes{} || usable - peak < rung.usable - rung.peak;
}

std::optional<Rung> emulated_if_it_fits(const std::string& name, const Request& of, const OpponentWay& way,
                                        const std::string& recompute, const Executor& execute) {
    try {
        return emulated(name, of, way, recompute, execute);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::limit) throw;
        return std::nullopt;
    }
}

std::optional<Fitting> fitting(const std::string& name, const Request& of, const OpponentWay& way, const Baseline& row,
                               const Executor& execute) {
    if (auto rung = emulated_if_it_fits(name, of, way, row.recompute, execute))
        return Fitting{&way, row.recompute, std::move(*rung)};
    std::string more = recompute_that_fits(way, row.recompute, of.job, of.batch, execute);
    if (more.empty()) return std::nullopt;
    auto rung = emulated_if_it_fits(name, of, way, more, execute);
    if (!rung) return std::nullopt;
    return Fitting{&way, std::move(more), std::move(*rung)};
}

Rung nothing(std::string name, const Rung& before, std::string why) {
    Rung rung = before;
    rung.name = std::move(name);
    rung.why_nothing = std::move(why);
    rung.needs.clear();
    rung.remark.clear();
    rung.files.clear();
    return rung;
}

std::optional<Fitting> fastest_of(const std::string& name, const Opponents& ways, const Request& request,
                                  const Executor& execute, const Time& time, std::string& why_none) {
    std::optional<Fitting> best;
    if (ways.ways.empty()) {
        why_none = why_none_of(request.job, ways);
        return best;
    }
    const Baselines rows = run_opponents(ways, request.job, request.batch, execute, time);
    std::optional<Duration> judged;  // the step of the first row that fits as it was judged
    for (const Baseline& row : rows.all) {
        if ((best && best->rung.step < row.step) || (judged && *judged < row.step)) break;
        auto tried = fitting(name, request, ways.ways[*row.way], row, execute);
        if (tried && tried->recompute == row.recompute && !judged) judged = row.step;
        if (tried && (!best || standing_of(tried->rung) < standing_of(best->rung))) best = std::move(tried);
    }
    if (best) best->is_whole = !lacks_time(rows.not_applicable);
    if (!best) why_none = rows.all.empty() ? why_not_of(rows.not_applicable) : "no recomputation fits all replicas";
    return best;
}

bool lacks_time(const std::vector<NotApplicable>& refused) {
    return std::any_of(refused.begin(), refused.end(),
                       [](const NotApplicable& one) { return one.why == no_time_left; });
}

bool lacks(const std::vector<std::string>& left_out, std::string_view what) {
    return std::find(left_out.begin(), left_out.end(), what) != left_out.end();
}

std::string needs_of_flags(const Job& job, const OpponentWay& way, const std::string& recompute) {
    const std::int64_t chunks = way.partition.chunks_per_rank;
    const Launch& launch = target(job.target).launch;
    if (way.setup->layout.pp == 1 && chunks == 1) return fmt::format("recompute {} ({})", recompute, launch.recompute);
    return fmt::format("layers {} ({}), {} with {} chunk{} a rank ({}), recompute {} ({})",
                       partition::text_of(partition::said_layers(job.setup->model, way.partition)), launch.cut,
                       way.policy, chunks, chunks == 1 ? "" : "s", launch.order, recompute, launch.recompute);
}

}  // namespace pipeweaver::planner
