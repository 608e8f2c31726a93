// plan.json and assignment.json.
#include "emit/emulation/input_parts.hpp"
#include "emit/plan/ladder_facts.hpp"
#include "emit/plan/launch_files.hpp"
#include "emit/plan/parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <tuple>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;
using namespace planner;
using Writer = nlohmann::ordered_json;

namespace {

// Degrees that most layouts do without.
void add_above_one(Writer& json, const Layout& layout) {
    if (layout.cp > 1) {
        json["cp"] = layout.cp;
        json["context"] = layout.context == ContextParallel::ring ? "ring" : "all-to-all";
    }
    if (layout.ep > 1) json["ep"] = layout.ep;
}

Writer request_json(const Job& job, const Batch& batch) {
    Writer json{{"model", job.setup->model.name},  {"cluster", job.setup->cluster.name},
                {"gpus", job.setup->cluster.gpus}, {"device", job.setup->cluster.device},
                {"tp", job.setup->layout.tp},      {"pp", job.setup->layout.pp},
                {"dp", job.setup->layout.dp}};
    add_above_one(json, job.setup->layout);
    json["target"] = planner::target(job.target).option;
    json["batch"] = batch.name;
    json["microbatches"] = batch.microbatches.size();
    json["samples"] = batch.samples.size();
    json["packing"] = name_of(job.packing);
    if (job.equal_microbatches) json["equal_microbatches"] = true;
    add_rules(json, job, batch);
    if (job.defer) json["deferred"] = batch.deferred.size();
    if (job.loader) json["loader"] = job.loader->name;
    json["seed"] = job.seed;
    constexpr std::array<std::string_view, 3> splits{"auto", "never", "always"};
    json["split"] = splits[static_cast<std::size_t>(job.split)];
    json["recipe"] = Writer::parse(to_json(job.setup->recipe));
    json["headroom"] = job.setup->headroom.fraction();
    json["partition"] = or_null(job.partition);
    json["assumed"] = assumptions(job, batch);
    return json;
}

Writer layout_tried_json(const LayoutTried& one, bool taken) {
    Writer json{{"tp", one.layout.tp}, {"pp", one.layout.pp}, {"dp", one.layout.dp}};
    add_above_one(json, one.layout);
    json["zero"] = one.zero;
    json["microbatches"] = one.microbatches;
    json["step_ns"] = one.step.count();
    json["ns_per_microbatch"] = one.per_microbatch().count();
    json["partition"] = one.partition;
    json["chunks_per_rank"] = one.chunks_per_rank;
    json["policy"] = one.policy;
    json["recompute"] = recompute_of(one);
    json["peak_bytes"] = one.memory.count;
    json["searched"] = one.searched;
    json["own"] = one.is_own;
    json["taken"] = taken;
    return json;
}

// The fastest first; all that fit, and how many did not.
Writer layout_choice_json(const std::optional<LayoutChoice>& choice) {
    if (!choice) return nullptr;
    Writer tried = Writer::array(), refused = Writer::array();
    for (std::size_t i = 0; i < choice->tried.size(); ++i)
        tried.push_back(layout_tried_json(choice->tried[i], i == choice->taken));
    for (const LayoutRefused& one : choice->refused) refused.push_back({{"why", one.why}, {"layouts", one.count}});
    return {{"tried", std::move(tried)},
            {"refused", std::move(refused)},
            {"passed_over", choice->passed_over},
            {"cut_short", choice->cut_short},
            {"not_reached", choice->not_reached},
            {"same_batch", choice->equal_batch},
            {"own_refused", or_null(choice->own_refused)}};
}

Writer memory_json(const ReplicaPlan& replica) {
    Writer ranks = Writer::array();
    const auto& step = replica.cut.step;
    const auto waiting = receive_buffers_needed(step, replica.found.replay);
    const auto peaks = peaks_of(step, replica.found.replay.peak);
    for (std::size_t r = 0; r < step.memory.size(); ++r) {
        const StaticMemory& memory = step.memory[r];
        const Bytes peak = peaks[r];
        Writer rank{{"rank", r}};
        rank.update(peak_json(*step.problem.ranks[r].capacity, peak, memory));
        rank["receive_buffers_needed_bytes"] = waiting[r].count;
        rank["activations_bytes"] = (peak - memory.total()).count;
        ranks.push_back(std::move(rank));
    }
    return ranks;
}

Writer replica_json(const ReplicaPlan& replica) {
    const auto& found = replica.found;
    Writer json{{"replica", replica.number},
                {"makespan_ns", found.replay.makespan.count()},
                {"lower_bound_ns", found.bound.count()},
                {"gap", schedule::relative_gap(found.replay.makespan, found.bound)},
                {"bound", found.bound_name},
                {"strategy", found.strategy},
                {"stop_reason", name_of(found.stop_reason)},
                {"rounds", found.rounds},
                {"signature", signature(*found.schedule, found.replay.makespan)},
                {"backwards", replica.backwards},
                {"split_backwards", replica.split_backwards},
                {"memory", memory_json(replica)}};
    add_waits(json, replica.waits);
    return json;
}

std::int64_t split_backwards(const Problem& problem) {
    return std::count_if(problem.pairs.begin(), problem.pairs.end(), [](const Pair& pair) { return pair.weight; });
}

Writer target_json(const Plan& plan, const TargetPlan& own) {
    if (!own.found.schedule) return {{"why_not", own.why_not}};
    Writer baselines = Writer::array();
    for (const TargetBaseline& one : own.baselines)
        baselines.push_back({{"partition", one.partition},
                             {"policy", one.policy},
                             {"makespan_ns", one.makespan.count()},
                             {"chunks_per_rank", one.chunks_per_rank},
                             {"recompute", name_of(one.recompute)}});
    const planner::Target& target = planner::target(own.target);
    Writer json{{"replica", own.replica},
                {"replicas", is_of_first_alone(plan, target) ? 1 : plan.replicas.size()},
                {"partition", own.cut.partition.name},
                {"chunks_per_rank", own.cut.partition.chunks_per_rank},
                {"recompute", name_of(own.recompute)},
                {"split_backwards", split_backwards(own.cut.step.problem)},
                {"makespan_ns", own.found.replay.makespan.count()},
                {"lower_bound_ns", own.found.bound.count()},
                {"over_free_plan", schedule::relative_gap(own.found.replay.makespan, compared_with(plan, target))},
                {"baselines", std::move(baselines)},
                {"choice", choice_json(own.choice)}};
    add_waits(json, own.waits);
    return json;
}

Writer named_json(const Gain& gain) {
    return {{"partition", gain.partition}, {"policy", gain.policy}, {"chunks_per_rank", gain.chunks_per_rank}};
}

// The first baseline's under `against` and beside it, then all.
Writer robustness_json(const std::optional<Robustness>& robustness) {
    if (!robustness) return nullptr;
    const Gain& first = robustness->against.front();
    Writer json{{"against", named_json(first)},
                {"replays", robustness->replays},
                {"replicas", robustness->replicas},
                {"makespan_p10_ns", robustness->p10.count()},
                {"makespan_p50_ns", robustness->p50.count()},
                {"makespan_p90_ns", robustness->p90.count()},
                {"memory_exceeded", robustness->out_of_memory}};
    json.update(gain_json(first));
    json["baselines"] = Writer::array();
    for (const Gain& gain : robustness->against) {
        json["baselines"].push_back(named_json(gain));
        json["baselines"].back().update(gain_json(gain));
    }
    return json;
}

// What the plan is held against first, as the job's engineers would run it.
Writer opponent_json(const Plan& plan) {
    const Baseline* opponent = plan.baselines.opponent();
    if (opponent == nullptr) return nullptr;
    return {
        {"partition", opponent->partition},
        {"policy", opponent->policy},
        {"chunks_per_rank", opponent->chunks_per_rank},
        {"recompute", recompute_of(*opponent)},
        {"chosen_on", plan.baselines.chosen_on.text()},
        {"step_ns", opponent->step.count()},
        {"over_plan", opponent->padded == plan.is_padded ? Writer(ratio(opponent->step, plan.step)) : Writer(nullptr)},
        {"command", or_null(opponent->command)}};
}

// Null where one of them alone is padded, or nothing runs now.
Writer over_now_json(const Ladder& ladder, const Rung& rung) {
    return ladder.is_over_now(rung) ? Writer(ratio(ladder.now().step, rung.step)) : Writer(nullptr);
}

Writer rung_padding_json(const Padding& padding) {
    return {{"tokens", padding.tokens},
            {"items", padding.items},
            {"part_of_tokens", padding.of_tokens},
            {"part_of_items", padding.of_items}};
}

// The near end and the far one, where the step has two.
void add_range(Writer& json, const Rung& rung) {
    if (rung.host) json["step_range_ns"] = {rung.step.count(), rung.host->most().count()};
}

Writer rung_figures_json(std::int64_t gpus, const Ladder& ladder, const Rung& rung) {
    return {{"rung", rung.name},
            {"target", or_null(rung.target)},
            {"way", rung.way},
            {"step_ns", rung.step.count()},
            {"over_now", over_now_json(ladder, rung)},
            {"microbatches", rung.microbatches},
            {"tokens_per_second_per_gpu", tokens_per_second(rung) / static_cast<double>(gpus)},
            {"peak_bytes", rung.peak.count},
            {"usable_bytes", rung.usable.count},
            {"needs", rung.needs}};
}

Writer rung_json(const Job& job, const Ladder& ladder, const Rung& rung) {
    Writer json = rung_figures_json(job.setup->cluster.gpus, ladder, rung);
    json["steps"] = Writer::array();
    json["files"] = files_of_rung(job, ladder, rung);
    json["command"] = or_null(rung.command);
    if (rung.why_nothing.empty() && !ladder.is_now(rung)) json["steps"] = rung_steps(job, ladder, rung);
    if (!rung.search.empty()) json["search"] = rung.search;
    if (!rung.why_nothing.empty()) json["why_nothing"] = rung.why_nothing;
    if (!rung.remark.empty()) json["remark"] = rung.remark;
    if (rung.padding) json["padding"] = rung_padding_json(*rung.padding);
    add_range(json, rung);
    if (rung.worth)
        json["worth"] = {{"over", rung.worth->over},
                         {"gain", rung.worth->gain},
                         {"wins", rung.worth->wins},
                         {"draws", rung.worth->draws},
                         {"is_enough", rung.worth->is_enough}};
    if (job.training_tokens > 0) json["training"] = training_json(job, rung.step, rung.tokens);
    return json;
}

// Of each module, without projectors.
Writer parameters_json(const workloads::Model& model) {
    Writer json = Writer::object();
    for (const workloads::Module& module : model.modules)
        json[module.name] = workloads::all_parameters(module.architecture);
    return json;
}

// The rungs, and which of them is the plan's headline.
void add_ladder(Writer& json, const Job& job, const Batch& batch, const Ladder& ladder) {
    json["ladder"] = Writer::array();
    json["beyond"] = Writer::array();
    if (!ladder.why_none.empty()) json["why_none"] = ladder.why_none;
    if (ladder.rungs.empty()) return;
    for (const Rung& rung : ladder.rungs) json["ladder"].push_back(rung_json(job, ladder, rung));
    for (const Rung& rung : ladder.beyond) json["beyond"].push_back(rung_json(job, ladder, rung));
    const Rung& best = ladder.best();
    json["headline"] = {{"rung", best.name},
                        {"target", best.target},
                        {"step_ns", best.step.count()},
                        {"over_now", over_now_json(ladder, best)},
                        {"compared", nullptr},
                        {"now_is_said", ladder.now_is_said}};
    add_range(json["headline"], best);
    if (const auto room = room_of(job, batch, best))
        json["headline"]["room"] = {{"shapes", room->shapes},
                                    {"left_bytes", room->left.count},
                                    {"memory_bytes", room->memory.count},
                                    {"is_at_risk", room->is_at_risk}};
    if (const Rung* below = ladder.compared())
        json["headline"]["compared"] = {
            {"rung", below->name}, {"step_ns", below->step.count()}, {"over", ratio(below->step, best.step)}};
}

// What time left out of the plan, and what ended its searches.
Writer left_out_json(const Plan& plan) {
    Writer json = Writer::array();
    for (const planner::LeftOut& one : planner::left_out(plan)) json.push_back(one.what);
    return json;
}

void add_baselines(Writer& json, const Baselines& all) {
    json["baselines"] = Writer::array();
    json["not_applicable"] = Writer::array();
    for (const Baseline& baseline : all.all) {
        json["baselines"].push_back(
            {{"partition", baseline.partition},
             {"policy", baseline.policy},
             {"makespan_ns", baseline.makespan.count()},
             {"step_ns", baseline.step.count()},
             {"lower_bound_ns", baseline.bound ? Writer(baseline.bound->count()) : Writer(nullptr)},
             {"chunks_per_rank", baseline.chunks_per_rank},
             {"opponent", baseline.is_opponent}});
        if (!baseline.is_opponent) continue;
        json["baselines"].back()["launched"] = baseline.launched;
        json["baselines"].back()["recompute"] = recompute_of(baseline);
        json["baselines"].back()["command"] = or_null(baseline.command);
    }
    for (const NotApplicable& pair : all.not_applicable)
        json["not_applicable"].push_back({{"partition", pair.partition},
                                          {"policy", pair.policy},
                                          {"why", pair.why},
                                          {"chunks_per_rank", pair.chunks_per_rank}});
}

}  // namespace

Writer rung_so_far_json(std::int64_t gpus, const Ladder& so_far, const Rung& rung) {
    Writer json = rung_figures_json(gpus, so_far, rung);
    if (!rung.why_nothing.empty()) json["why_nothing"] = rung.why_nothing;
    return json;
}

Writer plan_json(const Job& job, const Batch& batch, const Plan& plan) {
    Writer json{{"format", "pipeweaver-plan/1"},
                {"asked", request_json(job, batch)},
                {"step_ns", plan.step.count()},
                {"makespan_ns", plan.makespan.count()},
                {"lower_bound_ns", plan.lower_bound.count()},
                {"gap", schedule::relative_gap(plan.makespan, plan.lower_bound)},
                {"mfu", plan.mfu},
                {"model_flops", plan.model_flops}};
    json["parameters"] = parameters_json(job.setup->model);
    add_ladder(json, job, batch, plan.ladder);
    if (plan.input) json["input"] = input_json(*plan.input);
    json["left_out"] = left_out_json(plan);
    json["is_opponents"] = plan.is_opponents;
    json["is_searched"] = plan.is_searched;
    const Duration after = plan.step - plan.makespan;
    json["after_all_ranks_ns"] = after.count();
    json["layout_choice"] = layout_choice_json(job.layout_choice);
    json["assignment"] = {{"method", job.sharing == partition::Sharing::balanced ? "balanced" : "in-turn"},
                          {"largest_load_ns", plan.loads.largest.count()},
                          {"mean_load_ns", plan.loads.mean.count()},
                          {"in_turn_largest_load_ns", plan.loads.largest_in_turn.count()}};
    if (plan.loads.by_loading) json["assignment"]["by_loading"] = true;
    json["partition"] = partition_json(plan.replicas.front().cut.partition, job.setup->model);
    json["partition"]["chosen_on"] = plan.partition_choice.chosen_on.text();
    json["partition"]["alternatives"] = alternatives_json(plan.partition_choice);
    json["share_of_time"] = shares_json(plan.shares);
    json["costs"] = costs_json(job.costs);
    json["in_situ"] = {{"products", plan.in_situ.factors.products},
                       {"attention", plan.in_situ.factors.attention},
                       {"memory_bound", plan.in_situ.factors.memory_bound},
                       {"traffic", plan.in_situ.factors.traffic},
                       {"inside_gemms", plan.in_situ.inside_gemms},
                       {"source", plan.in_situ.source},
                       {"footing", name_of(footing(plan.in_situ, job.setup->recipe, job.setup->cluster.device))}};
    add_modelled(json, *job.setup);
    json["opponent"] = opponent_json(plan);
    add_baselines(json, plan.baselines);
    json["replicas"] = Writer::array();
    for (const ReplicaPlan& replica : plan.replicas) json["replicas"].push_back(replica_json(replica));
    for (const TargetPlan& own : plan.targets) json[planner::target(own.target).folder] = target_json(plan, own);
    json["robustness"] = robustness_json(plan.robustness);
    json["choice"] = choice_json(plan.choice);
    return json;
}

namespace {

Writer unit_json(const Batch& batch, const workloads::Microbatch& microbatch, const std::string& module,
                 const Unit& unit, std::size_t number) {
    Writer items = Writer::array();
    std::int64_t row = 0;
    for (const std::size_t i : unit.items) {
        const auto& ref = microbatch.items[i];
        items.push_back({{"sample", batch.samples[ref.sample].id},
                         {"item", ref.item},
                         {"rows", {row, row + ref.size.patches}},
                         {"tokens", ref.size.tokens}});
        row += ref.size.patches;
    }
    return {{"module", module}, {"item", number}, {"items", std::move(items)}};
}

// Which items, or which rows of them, each copy of a chain takes of a unit.
void add_copies(Writer& json, const std::vector<Share>& shares) {
    for (const Share& share : shares) {
        Writer copy = Writer::array();
        for (const Piece& piece : pieces_of(share)) copy.push_back({piece.sequence, piece.first, piece.end});
        json["copies"].push_back(std::move(copy));
    }
}

// The GPU of the replica that takes each item of the modules in phases, by microbatch, module and unit.
using GpuOfItem = std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::size_t>;

GpuOfItem gpus_of(const StepProblem& step) {
    GpuOfItem gpus;
    for (std::size_t g = 0; g < step.dealt.size(); ++g)
        for (const DealtItem& item : step.dealt[g]) gpus[{item.microbatch, item.phase, item.unit}] = g;
    return gpus;
}

// What every microbatch has.
Writer sample_rows(const Batch& batch, const workloads::Microbatch& microbatch) {
    Writer samples = Writer::array();
    std::int64_t row = 0;
    for (std::size_t s = 0; s < microbatch.samples.size(); ++s) {
        samples.push_back(
            {{"id", batch.samples[microbatch.samples[s]].id}, {"rows", {row, row + microbatch.lengths[s]}}});
        row += microbatch.lengths[s];
    }
    return samples;
}

Writer microbatch_json(const Batch& batch, const workloads::Microbatch& microbatch, std::size_t number, double weight,
                       Writer units) {
    return {{"microbatch", number},
            {"tokens", microbatch.tokens},
            {"loss_tokens", microbatch.loss_tokens},
            {"loss_weight", weight},
            {"samples", sample_rows(batch, microbatch)},
            {"units", std::move(units)}};
}

// Its chains' units, whichever GPU takes them.
Writer units_of_chains(const Batch& batch, const workloads::Microbatch& microbatch,
                       const partition::Partition& partition, const std::vector<std::vector<Unit>>& units) {
    Writer all = Writer::array();
    for (std::size_t c = 0; c < partition.chains.size(); ++c)
        for (std::size_t u = 0; u < units[c].size(); ++u)
            all.push_back(unit_json(batch, microbatch, partition.chains[c].name, units[c][u], u));
    return all;
}

// The same with the copies that take a part of one, and the units that are dealt over all GPUs.
Writer placed_units(const Job& job, const Batch& batch, const ReplicaPlan& replica, std::size_t m,
                    const GpuOfItem& gpus) {
    const auto& partition = replica.cut.partition;
    const auto& microbatch = batch.microbatches[replica.microbatches[m]];
    const auto& of_chains = replica.cut.units[m];
    Writer units = units_of_chains(batch, microbatch, partition, of_chains);
    auto unit = units.begin();
    for (std::size_t c = 0; c < partition.chains.size(); ++c)
        for (const Unit& one : of_chains[c]) add_copies(*unit++, shares_of_unit(job, partition, c, one));
    const auto phases = phase_modules(partition);
    for (std::size_t d = 0; d < phases.size(); ++d) {
        const auto& items = of_chains[partition.chains.size() + d];
        const std::string& name = job.setup->model.modules[phases[d]].name;
        for (std::size_t u = 0; u < items.size(); ++u) {
            units.push_back(unit_json(batch, microbatch, name, items[u], u));
            units.back()["gpu"] = gpus.at({m, d, u});
        }
    }
    return units;
}

Writer assigned_to(const Job& job, const Batch& batch, const ReplicaPlan& replica, const LossTotals& losses) {
    const GpuOfItem gpus = gpus_of(replica.cut.step);
    Writer microbatches = Writer::array();
    for (std::size_t m = 0; m < replica.microbatches.size(); ++m)
        microbatches.push_back(microbatch_json(batch, batch.microbatches[replica.microbatches[m]], m,
                                               microbatch_weight(batch.microbatches[replica.microbatches[m]],
                                                                 replica.cut.partition, replica.cut.units[m], losses),
                                               placed_units(job, batch, replica, m, gpus)));
    return {{"replica", replica.number}, {"microbatches", std::move(microbatches)}};
}

// The document, replica by replica: as one those of thousands of GPUs take a gigabyte.
std::string assignment_text(const Batch& batch, std::size_t replicas,
                            const std::function<Writer(std::size_t replica)>& assigned) {
    std::int64_t loss_tokens = 0;
    for (const auto& microbatch : batch.microbatches) loss_tokens += microbatch.loss_tokens;
    Writer head{{"format", "pipeweaver-assignment/1"},
                {"loss", "mean over the microbatch's loss tokens, times loss_weight, summed over the step"},
                {"loss_tokens", loss_tokens}};
    if (!batch.dropped.empty()) head["dropped"] = batch.dropped;
    head["replicas"] = Writer::array();
    std::string text = head.dump(1);
    text.erase(text.rfind(']'));
    for (std::size_t r = 0; r < replicas; ++r) {
        text += r == 0 ? "\n  " : ",\n  ";
        for (const char c : assigned(r).dump(1)) {
            text += c;
            if (c == '\n') text += "  ";
        }
    }
    return text + "\n ]\n}\n";
}

}  // namespace

std::string assignment_json(const Job& job, const Batch& batch, const Plan& plan) {
    const LossTotals losses = loss_totals(job, batch, plan.partition());
    return assignment_text(batch, plan.replicas.size(),
                           [&](std::size_t r) { return assigned_to(job, batch, plan.replicas[r], losses); });
}

std::string assignment_json(const LaunchedWay& way) {
    const Batch& batch = *way.batch;
    const auto units = partition::units(way.partition, way.setup->model, batch.microbatches);
    const LossTotals losses = loss_totals(way.setup->model, batch, way.partition);
    return assignment_text(batch, way.assigned.size(), [&](std::size_t r) {
        Writer microbatches = Writer::array();
        for (const std::size_t m : way.assigned[r]) {
            const auto& microbatch = batch.microbatches[m];
            microbatches.push_back(microbatch_json(batch, microbatch, microbatches.size(),
                                                   microbatch_weight(microbatch, way.partition, units[m], losses),
                                                   units_of_chains(batch, microbatch, way.partition, units[m])));
        }
        return Writer{{"replica", r}, {"microbatches", std::move(microbatches)}};
    });
}

Writer solution_answer(const Problem& problem, const search::Found& found) {
    return {{"problem", problem.name},
            {"makespan_ns", found.replay.makespan.count()},
            {"lower_bound_ns", found.bound.count()},
            {"gap", schedule::relative_gap(found.replay.makespan, found.bound)},
            {"strategy", found.strategy},
            {"stop_reason", name_of(found.stop_reason)},
            {"rounds", found.rounds},
            {"evaluations", found.evaluations},
            {"signature", signature(*found.schedule, found.replay.makespan)}};
}

}  // namespace pipeweaver::emit
