// How the model is cut: the layers of each rank's chunks, and what their passes recompute.
#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/joined.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace pipeweaver::emit::report_parts {

using namespace schedule;
using namespace emulator;
using namespace planner;

namespace {

constexpr std::size_t most_stages_open = 16;  // more are folded by rank

// How many backwards run with which mode, in the modes' order.
using Counts = std::vector<std::size_t>;

struct ChunkRow {
    std::size_t stage = 0;
    std::string layers;               // "vit 0-15, llm 0-3"
    std::vector<LayerRange> parts{};  // the same
    Counts backwards{};               // of a plan by pass
    std::string recompute{};
};

using RankRows = std::vector<std::vector<ChunkRow>>;

std::string layers_of(const StageLayers& stage, const workloads::Model& model) {
    const auto text = joined(stage.parts, ", ", [&](const LayerRange& part) {
        const std::string& name = model.modules[part.module].name;
        if (part.count == 0) return std::string();
        return part.count == 1 ? fmt::format("{} {}", name, part.first)
                               : fmt::format("{} {}-{}", name, part.first, part.first + part.count - 1);
    });
    return text.empty() ? "no blocks" : text;
}

// "3 layers of vit, 12 of llm".
std::string layers_by_module(const std::vector<ChunkRow>& chunks, const workloads::Model& model) {
    std::vector<std::int64_t> sums(model.modules.size());
    for (const ChunkRow& chunk : chunks)
        for (const LayerRange& part : chunk.parts) sums[part.module] += part.count;
    std::string text;
    for (std::size_t m = 0; m < sums.size(); ++m)
        if (sums[m] > 0)
            text += fmt::format("{} of {}", text.empty() ? plural(sums[m], "layer") : fmt::format(", {}", sums[m]),
                                model.modules[m].name);
    return text;
}

// Chunks of every rank, in the order of their stages' numbers.
RankRows rows_of(const partition::Partition& partition, const workloads::Model& model, std::size_t ranks) {
    RankRows rows(ranks);
    std::size_t number = 0;
    for (const Chain& chain : partition.chains)
        for (const StageLayers& stage : chain.stages)
            rows[index(stage.rank)].push_back({number++, layers_of(stage, model), stage.parts, {}, {}});
    return rows;
}

// Per stage.
std::map<std::size_t, Counts> backwards_of_stages(const Cut& cut, const Schedule& schedule) {
    std::map<std::size_t, Counts> counts;
    for (std::size_t k = 0; k < cut.step.problem.pairs.size(); ++k) {
        const auto& stage = cut.step.problem.tasks[index(cut.step.problem.pairs[k].backward)].stage;
        if (!stage) continue;
        Counts& of_stage = counts[static_cast<std::size_t>(*stage)];
        of_stage.resize(cut.partition.modes.size());
        ++of_stage[schedule.mode[k]];
    }
    return counts;
}

// "none 12, full 4" by pass, else the mode alone.
std::string recompute_text(const Counts& backwards, const std::vector<Recompute>& modes, bool by_pass) {
    if (backwards.empty()) return "no backward";
    return joined(modes, ", ", [&](const Recompute& mode) {
        const std::size_t count = backwards[static_cast<std::size_t>(&mode - modes.data())];
        if (count == 0) return std::string();
        return by_pass ? fmt::format("{} {}", name_of(mode), count) : name_of(mode);
    });
}

Counts sum_of(const std::vector<ChunkRow>& chunks) {
    Counts sum;
    for (const ChunkRow& chunk : chunks) {
        sum.resize(std::max(sum.size(), chunk.backwards.size()));
        for (std::size_t m = 0; m < chunk.backwards.size(); ++m) sum[m] += chunk.backwards[m];
    }
    return sum;
}

void add_rows(Table& table, std::size_t rank, const std::vector<ChunkRow>& chunks) {
    for (std::size_t c = 0; c < chunks.size(); ++c) {
        std::int64_t count = 0;
        for (const LayerRange& part : chunks[c].parts) count += part.count;
        table.add({std::to_string(rank), std::to_string(c), std::to_string(chunks[c].stage), chunks[c].layers,
                   std::to_string(count), chunks[c].recompute});
    }
}

// `of_ranks`: what each rank recomputes in all.
std::string stages_html(const RankRows& ranks, const std::vector<std::string>& of_ranks,
                        const workloads::Model& model) {
    std::size_t stages = 0;
    for (const auto& chunks : ranks) stages += chunks.size();
    const Table none("stages",
                     {number("rank"), number("chunk"), number("stage"), "layers", number("count"), "recompute"});
    Table all = none;
    std::string html;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        Table of_rank = none;
        add_rows(stages <= most_stages_open ? all : of_rank, r, ranks[r]);
        html += folded(fmt::format("rank {}: {}, {}; recompute {}", r, plural(ranks[r].size(), "stage"),
                                   layers_by_module(ranks[r], model), of_ranks[r]),
                       of_rank.wide(), false);
    }
    return stages <= most_stages_open ? all.wide() : html;
}

std::string layouts_html(const partition::Partition& partition, const workloads::Model& model) {
    std::string html;
    for (const std::string& line : layout_lines(partition, model))
        html += fmt::format("<p>{}: on each rank; the others have the layout of the job.</p>\n", escape(line));
    return html;
}

std::string dealt_html(const partition::Partition& partition, const workloads::Model& model) {
    std::string html;
    for (const std::size_t m : phase_modules(partition))
        html += fmt::format(
            "<p>{}, {}: whole on each GPU of a replica, items dealt over them by cost, before the first stage and "
            "after it.</p>\n",
            escape(model.modules[m].name), plural(model.modules[m].architecture.layers, "layer"));
    return html;
}

// Else its passes have the setting of their rank.
bool is_by_pass(const Plan& plan) { return !plan.is_opponents && plan.partition().modes.size() > 1; }

std::string about_plan(const Plan& plan) {
    std::string text = plan.is_opponents ? "Of the plan, a known schedule" : "Of the searched plan";
    if (is_by_pass(plan)) text += "; recomputation is chosen for each pass: so many of a stage's backwards have it";
    if (plan.replicas.size() > 1) {
        text += "; all replicas have these stages";
        if (is_by_pass(plan))
            text += fmt::format(", the counts are of replica {}, the slowest", plan.replicas[plan.slowest].number);
    }
    return text + ".";
}

std::string about_stages(const std::string& whose, const Plan& plan) {
    std::string text = whose + " Layers are counted from 0.";
    const bool is_marked = !plan.ladder.rungs.empty() && (plan.ladder.best().name == "schedule" ||
                                                          (!plan.is_searched && plan.ladder.best().step == plan.step));
    if (!plan.ladder.rungs.empty() && !is_marked)
        text += fmt::format(" The marked rung is not this schedule: how \"{}\" is cut is said above.",
                            plan.ladder.best().name);
    return fmt::format("<p class=\"about\">{}</p>\n", escape(text));
}

std::string of_plan(const workloads::Model& model, const Plan& plan) {
    const ReplicaPlan& replica = plan.replicas[plan.slowest];
    const auto& modes = replica.cut.partition.modes;
    RankRows rows = rows_of(replica.cut.partition, model, replica.cut.step.problem.ranks.size());
    auto backwards = backwards_of_stages(replica.cut, *replica.found.schedule);
    std::vector<std::string> of_ranks;
    for (auto& chunks : rows) {
        for (ChunkRow& chunk : chunks) {
            chunk.backwards = std::move(backwards[chunk.stage]);
            chunk.recompute = recompute_text(chunk.backwards, modes, is_by_pass(plan));
        }
        of_ranks.push_back(recompute_text(sum_of(chunks), modes, is_by_pass(plan)));
    }
    return about_stages(about_plan(plan), plan) + stages_html(rows, of_ranks, model) +
           layouts_html(replica.cut.partition, model) + dealt_html(replica.cut.partition, model);
}

// Of a target that has a schedule of its own and is told what to recompute, whole or rank by rank.
std::string of_target(const workloads::Model& model, const Plan& plan, const TargetPlan& own) {
    RankRows rows = rows_of(own.cut.partition, model, own.cut.step.problem.ranks.size());
    std::vector<std::string> of_ranks;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        of_ranks.push_back(own.by_rank.empty() ? name_of(own.recompute) : name_of(own.by_rank[r]));
        for (ChunkRow& chunk : rows[r]) chunk.recompute = of_ranks.back();
    }
    return about_stages(fmt::format("Of the schedule for {}.", target(own.target).title), plan) +
           stages_html(rows, of_ranks, model);
}

}  // namespace

std::string stage_section(const Job& job, const Plan& plan) {
    for (const TargetPlan& own : plan.targets)
        if (own.target == job.target && own.found.schedule) return of_target(job.setup->model, plan, own);
    return of_plan(job.setup->model, plan);
}

}  // namespace pipeweaver::emit::report_parts
