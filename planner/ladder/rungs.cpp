#include "planner/ladder/rungs.hpp"

#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/search/standing.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "planner/evaluate/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

std::string words_of(const Way& way) {
    std::string text = way.name;
    if (way.has_pipeline) text += " " + way.policy;
    if (way.partition.chunks_per_rank > 1) text += fmt::format(", {} chunks", way.partition.chunks_per_rank);
    return *way.recompute == no_recompute ? text : text + ", " + name_of(*way.recompute);
}

// What the target of the way makes of all replicas' microbatches; none: it does not pad.
std::optional<Padding> padding_by(const Way& way, const Target& asked, const OpponentResult& ran) {
    if (!pads(asked, way.setup->layout) || !launches(asked, way)) return std::nullopt;
    return padding_of(partition::pad(ran.batch.microbatches));
}

std::vector<std::size_t> slowest_of(const OpponentResult& ran) {
    std::vector<Duration> makespans;
    for (const ReplicaRun& replica : ran.replicas) makespans.push_back(replica.makespan);
    auto order = largest_first(makespans);
    order.resize(std::min(order.size(), sizes.replicas_examined));
    return order;
}

LaunchedWay launched_way(const Way& way, const Target& asked, OpponentResult ran) {
    LaunchedWay launched{way};
    launched.by_rank = ran.replicas.front().by_rank;
    for (const auto& mine : ran.assigned) launched.microbatches.push_back(static_cast<std::int64_t>(mine.size()));
    for (const auto& microbatch : ran.batch.microbatches)
        launched.most_tokens = std::max(launched.most_tokens, microbatch.tokens);
    launched.peak.resize(ran.replicas.front().peak.size());
    for (const ReplicaRun& replica : ran.replicas)
        for (std::size_t r = 0; r < launched.peak.size(); ++r)
            launched.peak[r] = std::max(launched.peak[r], replica.peak[r]);
    if (!pads(asked, way.setup->layout)) launched.shapes = shapes_of(way.setup->model, ran.batch.microbatches);
    launched.makespan = ran.makespan;
    launched.slowest = slowest_of(ran);
    launched.usable = capacity_of(*way.setup);
    launched.assigned = std::move(ran.assigned);
    launched.batch = std::make_shared<const Batch>(std::move(ran.batch));
    return launched;
}

// The step as a way runs it. Pre: it runs.
Rung rung_of(std::string name, const Request& of, const OpponentWay& way, OpponentResult ran) {
    Rung rung{.name = std::move(name), .target = target(of.job.target).option, .way = words_of(way)};
    rung.step = ran.step;
    for (const auto& microbatch : ran.batch.microbatches) rung.tokens += microbatch.tokens;
    rung.microbatches = ran.batch.microbatches.size();
    const Bytes usable = capacity_of(*way.setup);
    for (const ReplicaRun& replica : ran.replicas)
        for (const Bytes peak : replica.peak)
            if (is_over(rung, peak, usable)) {
                rung.peak = peak;
                rung.usable = usable;
            }
    rung.command = command_of(way, of.job, of.batch);
    rung.padding = padding_by(way, target(of.job.target), ran);
    rung.launched = std::make_shared<const LaunchedWay>(launched_way(way, target(of.job.target), std::move(ran)));
    return rung;
}

// Of those that are launched the one that is least short; where that is not known of any, the first.
const NotApplicable& nearest_of(const std::vector<NotApplicable>& all) {
    const auto farther = [](const NotApplicable& one) {
        return std::tuple(!one.launched, one.short_by == Bytes{}, one.short_by);
    };
    return *std::min_element(all.begin(), all.end(),
                             [&](const NotApplicable& a, const NotApplicable& b) { return farther(a) < farther(b); });
}

WhyNone why_not_of(std::vector<NotApplicable> all) {
    const NotApplicable& one = nearest_of(all);
    const auto chunks = one.chunks_per_rank > 1 ? fmt::format(", {} chunks", one.chunks_per_rank) : std::string();
    std::string text = fmt::format("{} {}{}: {}", one.partition, one.policy, chunks, one.why);
    return {std::move(text), std::move(all)};
}

// The ways of a job that its target launches, of which there are none.
WhyNone why_none_of(const Job& job, const Opponents& ways) {
    const Target& runs = target(job.target);
    const int zero = job.setup->recipe.zero;
    if (zero < runs.launch.least_zero || zero > runs.launch.most_zero)
        return {fmt::format("--zero, --recipe: the job has ZeRO {}, but {} launches ZeRO {} to {} alone", zero,
                            runs.option, runs.launch.least_zero, runs.launch.most_zero)};
    if (runs.launch.replicas_alone && job.setup->recipe.state.offloaded > 0 && zero < 3)
        return {fmt::format("--offload-optimizer: below ZeRO 3 {} puts gradients on the host, too, which plans do not",
                            runs.option)};
    if (!ways.not_applicable.empty()) return why_not_of(ways.not_applicable);
    return {fmt::format("{} launches nothing in {}", runs.option, name_of(job.setup->layout))};
}

// With the launched word for it, where plans choose it and that is another than ours.
std::string recompute_said(const StepRecompute& recompute, const Launch& launch) {
    const bool is_chosen = launch.selective != Recompute::selective && launch.selective != Recompute::core_attention;
    const bool is_renamed = is_chosen && recompute == StepRecompute{.everywhere = launch.selective};
    return fmt::format("recompute {} ({}{})", name_of(recompute), launch.recompute,
                       is_renamed ? " " + name_of(Recompute::selective) : "");
}

search::Standing standing_of(const Rung& rung) {
    const double usable = rung.usable > Bytes{} ? static_cast<double>(rung.usable.count) : 1;
    return {rung.step, static_cast<double>(rung.peak.count) / usable};
}

std::optional<Fitting> fastest_of_rows(const std::string& name, const Opponents& ways, const Baselines& rows,
                                       const Request& request, const Executor& execute) {
    std::optional<Fitting> best;
    std::optional<Duration> judged;  // the step of the first row that fits as it was judged
    for (const Baseline& row : rows.all) {
        if ((best && best->rung.step < row.step) || (judged && *judged < row.step)) break;
        auto tried = fitting(name, request, way_of(row, ways), execute);
        if (tried && tried->way.recompute == row.recompute && !judged) judged = row.step;
        if (tried && (!best || standing_of(tried->rung) < standing_of(best->rung))) best = std::move(tried);
    }
    if (best) best->is_whole = !lacks_time(rows.not_applicable);
    return best;
}

}  // namespace

bool is_over(const Rung& rung, Bytes peak, Bytes usable) {
    return rung.usable == Bytes{} || usable - peak < rung.usable - rung.peak;
}

std::optional<Padding> padding_of(const partition::Padded& all) {
    const auto part = [](std::int64_t real, std::int64_t padded) {
        return padded == 0 ? 0 : 1 - static_cast<double>(real) / static_cast<double>(padded);
    };
    if (!is_padded(all)) return std::nullopt;
    return Padding{all.tokens, all.items, part(all.real_tokens, all.padded_tokens),
                   part(all.real_patches, all.padded_patches)};
}

std::optional<Fitting> fitting(const std::string& name, const Request& of, OpponentWay way, const Executor& execute,
                               bool exactly) {
    OpponentResult ran = run_on_all(way, of.job, of.batch, execute, exactly);
    if (!ran.runs()) return std::nullopt;
    way.recompute = ran.recompute;
    Rung rung = rung_of(name, of, way, std::move(ran));
    return Fitting{std::move(way), std::move(rung)};
}

Rung nothing(std::string name, const Rung& before, std::string why) {
    Rung rung = before;
    rung.name = std::move(name);
    rung.why_nothing = std::move(why);
    rung.needs.clear();
    rung.reshards = false;
    rung.search.clear();
    rung.remark.clear();
    rung.files.clear();
    return rung;
}

std::optional<Fitting> fastest_of(const std::string& name, const Opponents& ways, const Request& request,
                                  const Executor& execute, const Time& time, WhyNone& why_none) {
    Opponents tried = ways;
    for (;;) {
        Baselines rows = run_opponents(tried, request.job, request.batch, execute, time);
        if (auto best = fastest_of_rows(name, tried, rows, request, execute)) return best;
        const bool any_runs = !rows.all.empty();
        tried = refused_on_sample(std::move(rows.not_applicable));
        if (!tried.ways.empty()) continue;
        why_none = any_runs ? WhyNone{"no recomputation fits all replicas"} : why_none_of(request.job, tried);
        return std::nullopt;
    }
}

Opponents refused_on_sample(std::vector<NotApplicable> refused) {
    Opponents again;
    for (NotApplicable& one : refused)
        if (one.on_sample && one.launched && one.in_own_layout && one.short_by > Bytes{})
            again.ways.push_back(*one.on_sample);
        else
            again.not_applicable.push_back(std::move(one));
    return again;
}

bool lacks_time(const std::vector<NotApplicable>& refused) {
    return std::any_of(refused.begin(), refused.end(),
                       [](const NotApplicable& one) { return one.why == no_time_left; });
}

bool lacks(const std::vector<std::string>& left_out, std::string_view what) {
    return std::find(left_out.begin(), left_out.end(), what) != left_out.end();
}

std::string switches_of(const Way& way) {
    const workloads::Model& model = way.setup->model;
    const bool deals = workloads::deals_images(model) && way.setup->layout.cp > 1;
    std::string text = deals ? fmt::format(", {}", model.built->deals) : std::string();
    if (model.built && model.built->recompute_turned) text += ", " + workloads::recompute_switch(*model.built);
    return text;
}

std::string needs_of_flags(const Job& job, const Way& way) {
    const std::int64_t chunks = way.partition.chunks_per_rank;
    const Launch& launch = target(job.target).launch;
    std::string recompute = recompute_said(*way.recompute, launch) + switches_of(way);
    if (way.setup->layout.pp == 1 && chunks == 1) return recompute;
    return fmt::format("layers {} ({}), {} with {} a rank ({}), {}",
                       partition::text_of(partition::said_layers(job.setup->model, way.partition)), launch.cut,
                       way.policy, plural(chunks, "chunk"), launch.order, recompute);
}

}  // namespace pipeweaver::planner
