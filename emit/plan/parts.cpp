#include "emit/plan/parts.hpp"

#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/planner/training_cost.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

namespace pipeweaver::emit {

using namespace emulator;
using namespace planner;
using Writer = nlohmann::ordered_json;

Writer costs_json(const std::optional<CostFile>& costs) {
    if (!costs) return nullptr;
    return {{"file", costs->path}, {"sha256", costs->sha256}};
}

void add_rules(Writer& json, const Job& job, const Batch& batch) {
    const workloads::Model& model = job.setup->model;
    if (model.microbatch_tokens_of_file) json["microbatch_tokens"] = model.microbatch_tokens;
    if (model.too_long != workloads::TooLong::usual) json["too_long"] = name_of(model.too_long);
    if (!batch.dropped.empty()) json["dropped"] = batch.dropped.size();
    if (const Layout& layout = job.setup->layout; layout.placement.is_made()) {
        json["placement"] = name_of(layout.placement);
        json["numbers_by_place"] = numbers_by_place(layout);
    }
}

Writer peak_json(Bytes capacity, Bytes peak, const StaticMemory& fixed) {
    return {{"capacity_bytes", capacity.count},
            {"peak_bytes", peak.count},
            {"weights_bytes", fixed.weights.count},
            {"gradients_bytes", fixed.gradients.count},
            {"optimizer_bytes", fixed.optimizer.count},
            {"workspace_bytes", fixed.workspace.count},
            {"receive_buffers_bytes", fixed.buffers.count}};
}

std::string setup_text(const Setup& setup) {
    const Placement& placement = setup.layout.placement;
    return fmt::format("{} on {} x {}, {}{}", setup.model.name, setup.cluster.gpus, setup.cluster.device,
                       name_of(setup.layout),
                       placement.is_made() ? fmt::format(", placed {}", name_of(placement)) : "");
}

std::string batch_text(const Batch& batch) {
    return fmt::format("{}{} in {}", plural(batch.samples.size(), "sample"), not_taken(batch),
                       plural(batch.microbatches.size(), "microbatch"));
}

std::string items_text(const Batch& batch) {
    std::size_t items = 0;
    for (const auto& microbatch : batch.microbatches) items += microbatch.items.size();
    return plural(items, "item");
}

Writer partition_json(const partition::Partition& partition, const workloads::Model& model) {
    Writer chains = Writer::array();
    std::int64_t number = 0;
    for (std::size_t c = 0; c < partition.chains.size(); ++c) {
        Writer stages = Writer::array();
        for (const StageLayers& stage : partition.chains[c].stages) {
            Writer parts = Writer::array();
            for (const LayerRange& part : stage.parts)
                parts.push_back(
                    {{"module", model.modules[part.module].name}, {"first_layer", part.first}, {"layers", part.count}});
            stages.push_back({{"stage", number++}, {"rank", index(stage.rank)}, {"parts", std::move(parts)}});
        }
        chains.push_back({{"name", partition.chains[c].name},
                          {"unit_items", partition.unit_items[c]},
                          {"stages", std::move(stages)}});
    }
    Writer json{{"name", partition.name},
                {"chunks_per_rank", partition.chunks_per_rank},
                {"notes", partition.notes},
                {"chains", std::move(chains)}};
    for (const std::size_t m : phase_modules(partition)) json["dealt"].push_back(model.modules[m].name);
    for (std::size_t m = 0; m < partition.layouts.size(); ++m)
        if (const ModuleLayout& layout = partition.layouts[m]; layout.copies > 1 && !layout.in_phases)
            json["layouts"].push_back({{"module", model.modules[m].name},
                                       {"tp", layout.tp},
                                       {"copies", layout.copies},
                                       {"sharing", name_of(layout.sharing)}});
    return json;
}

std::string cut_short_text(const LayoutChoice& choice) {
    constexpr const char* over = "the time for layouts was over; without --budget they are";
    if (choice.not_reached > 0) return fmt::format("{} not tried: {}", choice.not_reached, over);
    return fmt::format("not all of the fastest were searched: {}", over);
}

std::vector<std::string> layout_lines(const partition::Partition& partition, const workloads::Model& model) {
    std::vector<std::string> lines;
    for (std::size_t m = 0; m < partition.layouts.size(); ++m)
        if (const ModuleLayout& layout = partition.layouts[m]; layout.copies > 1 && !layout.in_phases)
            lines.push_back(fmt::format("{}: {}", model.modules[m].name, name_of(layout)));
    return lines;
}

double of_class(const TimeShares& shares, std::size_t c) {
    return std::accumulate(std::begin(shares.by[c]), std::end(shares.by[c]), 0.0);
}

namespace {

Writer anchor_json(const emulator::Anchored& anchor) {
    Writer json{{"from", anchor.from}, {"kernels", anchor.kernels}};
    if (anchor.measured > Duration{}) {
        const char* const what = anchor.layer_of.empty() ? "step" : "layer";
        if (!anchor.layer_of.empty()) json["layer_of"] = anchor.layer_of;
        json[fmt::format("measured_{}_ns", what)] = anchor.measured.count();
        json[fmt::format("emulated_{}_ns", what)] = anchor.emulated.count();
    }
    if (anchor.measured_peak > Bytes{}) {
        json["measured_peak_bytes"] = anchor.measured_peak.count;
        json["emulated_peak_bytes"] = anchor.emulated_peak.count;
    }
    json["beside_bytes"] = anchor.beside.count;
    return json;
}

}  // namespace

void add_modelled(Writer& json, const emulator::Setup& setup) {
    const auto& anchor = setup.recipe.anchored;
    const bool is_timed = anchor && anchor->has_step();
    const emulator::StepRange range = is_timed ? emulator::once_anchored : emulator::on_peaks;
    if (!emulator::modelled_text(setup).empty())
        json["modelled"] = {{"device", setup.cluster.device}, {"step_from", range.least}, {"step_to", range.most}};
    if (!anchor) return;
    json["anchor"] = anchor_json(*anchor);
    if (!is_timed) return;
    json["anchor"]["step_from"] = range.least;
    json["anchor"]["step_to"] = range.most;
}

Writer alternatives_json(const planner::PartitionChoice& choice) {
    Writer all = Writer::array();
    for (const planner::PartitionTried& one : choice.tried) {
        Writer entry{{"partition", one.partition.name},
                     {"chunks_per_rank", one.partition.chunks_per_rank},
                     {"unit_items", one.partition.unit_items}};
        if (one.why_not.empty()) {
            entry["step_ns"] = one.step.count();
            entry["searched"] = one.searched;
            entry["batches"] = one.batches;
        } else {
            entry["why_not"] = one.why_not;
        }
        all.push_back(std::move(entry));
    }
    return all;
}

Baseline as_baseline(const Plan& plan) {
    const auto& partition = plan.partition();
    Baseline own{partition.name, partition.chunks_per_rank, "plan", plan.makespan, plan.lower_bound, plan.step};
    own.padded = plan.is_padded;
    return own;
}

std::string words_of(const planner::Baseline& baseline) {
    return fmt::format("{}, {}, {}{}{}", baseline.partition, baseline.policy, plural(baseline.chunks_per_rank, "chunk"),
                       baseline.recompute ? ", recompute " : "", recompute_of(baseline));
}

std::string shares_text(const emulator::TimeShares& shares) {
    const auto of_basis = [&](costdb::Basis one) {
        return fmt::format("{} {}", costdb::name_of(one), percent(shares.of(one)));
    };
    const auto of_operators = [&](const auto& one) {
        const double share = of_class(shares, static_cast<std::size_t>(&one - shares.by));
        const auto name = name_of(static_cast<OperatorClass>(&one - shares.by));
        return share > 0 ? fmt::format("{} {}", name, percent(share)) : std::string();
    };
    return fmt::format("busy time rests on costs that are {}\nand goes to {}\n", joined(bases, ", ", of_basis),
                       joined(shares.by, ", ", of_operators));
}

Writer shares_json(const emulator::TimeShares& shares) {
    Writer by_basis = Writer::object(), by_operator = Writer::object();
    for (const costdb::Basis basis : bases) by_basis[std::string(costdb::name_of(basis))] = shares.of(basis);
    for (std::size_t c = 0; c < operator_classes; ++c) {
        const double sum = of_class(shares, c);
        if (static_cast<OperatorClass>(c) >= OperatorClass::experts && sum == 0) continue;  // not every step has them
        by_operator[std::string(name_of(static_cast<OperatorClass>(c)))] = sum;
    }
    return {{"by_basis", std::move(by_basis)}, {"by_operator", std::move(by_operator)}};
}

std::string recompute_of(const Plan& plan) {
    if (!plan.is_opponents) return "by pass";
    const auto& modes = plan.partition().modes;
    return modes.size() == 1 ? name_of(modes.front()) : name_of(planner::recompute_by_rank);
}

std::string recompute_of(const planner::Baseline& baseline) {
    return baseline.recompute ? name_of(*baseline.recompute) : std::string();
}

std::string told_apart(const Robustness& robustness, const Gain& gain) {
    const auto alike = std::count_if(robustness.against.begin(), robustness.against.end(), [&](const Gain& other) {
        return std::tie(other.partition, other.policy, other.chunks_per_rank) ==
               std::tie(gain.partition, gain.policy, gain.chunks_per_rank);
    });
    return alike < 2 || !gain.recompute ? std::string() : ", recompute " + name_of(*gain.recompute);
}

nlohmann::ordered_json training_json(const planner::Job& job, Duration step, std::int64_t tokens_of_step) {
    const auto cost = planner::training_cost(job.training_tokens, step, tokens_of_step, job.setup->cluster);
    return {{"tokens", cost.tokens},       {"steps", cost.steps},      {"days", cost.days},
            {"gpu_hours", cost.gpu_hours}, {"usd", or_null(cost.usd)}, {"kwh", or_null(cost.kwh)}};
}

double padded_share(std::int64_t real, std::int64_t padded) {
    return padded == 0 ? 0 : 1 - static_cast<double>(real) / static_cast<double>(padded);
}

std::string waits_text(const PortWaits& waits) {
    if (waits.waited == 0) return {};
    return fmt::format("{} of {} transfers between ranks wait for a port, which makes the makespan {}", waits.waited,
                       waits.transfers, waits.lost > Duration{0} ? human(waits.lost) + " longer" : "no longer");
}

void add_waits(Writer& json, const PortWaits& waits) {
    if (waits.waited == 0) return;
    json["port_waits"] = {{"transfers", waits.transfers}, {"waited", waits.waited}, {"lost_ns", waits.lost.count()}};
}

std::string choice_text(const RobustChoice& choice) {
    if (choice.alternatives == 0) return {};
    const std::string from = fmt::format("{} {} at most {:.3g} % longer", plural(choice.alternatives, "other schedule"),
                                         choice.alternatives == 1 ? "was" : "were", 100 * choice.rule.within);
    if (!choice.other)
        return fmt::format("{}; under wrong costs {}, so the shortest is the plan", from,
                           choice.rule.by_median ? "none is clearly faster with a smaller median"
                                                 : "none is clearly faster more often than slower");
    const Gain& gain = choice.over_smallest;
    return fmt::format(
        "{}, and the plan is one of them: under wrong costs it is faster than the shortest ({}) in {} of {} replays "
        "and slower in {}; the shortest takes p10 {:.4f}x, p50 {:.4f}x, p90 {:.4f}x of the plan's time",
        from, human(choice.smallest), gain.wins, perturbed_replays, gain.losses, gain.p10, gain.p50, gain.p90);
}

Writer gain_json(const Gain& gain) {
    return {{"wins", gain.wins},
            {"losses", gain.losses},
            {"gain_p10", gain.p10},
            {"gain_p50", gain.p50},
            {"gain_p90", gain.p90}};
}

Writer choice_json(const RobustChoice& choice) {
    Writer json{{"rule", choice.rule.by_median ? "median" : "wins"},
                {"within", choice.rule.within},
                {"alternatives", choice.alternatives},
                {"smallest_makespan_ns", choice.smallest.count()},
                {"over_smallest", nullptr}};
    if (!choice.other) return json;
    json["over_smallest"] = {{"replays", perturbed_replays}};
    json["over_smallest"].update(gain_json(choice.over_smallest));
    return json;
}

std::vector<std::string> not_applicable(const std::vector<NotApplicable>& pairs) {
    struct Alike {
        const NotApplicable* first;
        std::string partitions;
    };
    std::vector<Alike> groups;
    for (const NotApplicable& pair : pairs) {
        const auto group = std::find_if(groups.begin(), groups.end(), [&](const Alike& one) {
            return one.first->policy == pair.policy && one.first->chunks_per_rank == pair.chunks_per_rank &&
                   one.first->why == pair.why;
        });
        if (group == groups.end())
            groups.push_back({&pair, pair.partition});
        else
            group->partitions += ", " + pair.partition;
    }
    std::vector<std::string> lines;
    lines.reserve(groups.size());
    for (const Alike& one : groups)
        lines.push_back(fmt::format("{} on {} with {}: {}", one.first->policy, one.partitions,
                                    plural(one.first->chunks_per_rank, "chunk"), one.first->why));
    return lines;
}

std::vector<std::string> not_applicable(const std::vector<PolicyRun>& policies) {
    std::vector<std::string> lines;
    for (const PolicyRun& one : policies)
        if (!one.result.schedule) lines.push_back(fmt::format("{}: {}", one.policy, one.result.why_not));
    return lines;
}

std::string not_applicable_text(const std::vector<std::string>& lines) {
    return lines.empty() ? "" : fmt::format("not applicable:\n  {}\n", fmt::join(lines, "\n  "));
}

std::string schedule_file(const planner::Target& target) { return target.folder + "/" + target.file; }

bool is_of_first_alone(const Plan& plan, const planner::Target& target) {
    return plan.replicas.size() > 1 && !target.fixed_shapes;
}

std::string_view for_which_replicas(const Plan& plan, const planner::Target& target) {
    if (is_of_first_alone(plan, target)) return ", of replica 0 alone";
    return plan.replicas.size() > 1 ? ", for every replica" : "";
}

Duration compared_with(const Plan& plan, const planner::Target& target) {
    return target.fixed_shapes ? plan.makespan : plan.replicas.front().found.replay.makespan;
}

void add_schedule(std::vector<FileToWrite>& files, const std::filesystem::path& folder, const EmittedTo& emitted,
                  const schedule::Problem& problem, const search::Found& found, const ActionLists* actions) {
    files.push_back({folder / "problem.json.gz", to_json(problem)});
    files.push_back({folder / "solution.json", to_json(search::solution(found, problem, fingerprint(problem)))});
    const ToEmit from{problem, *found.schedule, actions, folder, emitted.by_rank, emitted.optimizer};
    for (const emit::Target& row : emit::targets()) {
        if (row.is_launched() || row.of != emitted.of || (row.is_trace && !emitted.trace) ||
            (actions == nullptr && row.check(from)))
            continue;
        for (auto& file : row.write(from, folder)) files.push_back(std::move(file));
    }
}

}  // namespace pipeweaver::emit
