// What the plan was made from: the batch, the model, the cluster, and every assumption.
#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::emit::report_parts {

using namespace schedule;
using namespace emulator;
using namespace planner;

namespace {

std::string list(const std::vector<std::string>& entries) {
    std::string html = "<ul>\n";
    for (const std::string& entry : entries) html += fmt::format("<li>{}</li>\n", escape(entry));
    return html + "</ul>\n";
}

// A count with a bar as long as its share of the largest.
std::string counted(std::int64_t count, std::int64_t largest) {
    const double share = largest == 0 ? 0 : static_cast<double>(count) / static_cast<double>(largest);
    return fmt::format("<td class=\"n count\"><b style=\"width:calc((100% - 28px) * {:.3f})\"></b><span>{}</span></td>",
                       share, count);
}

struct Sums {
    std::int64_t patches = 0;
    double seconds = 0;
};

Sums sums(const workloads::Microbatch& microbatch) {
    Sums sum;
    for (const auto& item : microbatch.items) {
        sum.patches += item.size.patches;
        sum.seconds += item.size.seconds;
    }
    return sum;
}

// What the longest bars of the batch table stand for.
struct Largest {
    std::int64_t tokens = 0, items = 0, patches = 0;
    bool clips = false;  // or audio: the table has their seconds
};

Largest largest(const Batch& batch) {
    Largest most;
    for (const auto& microbatch : batch.microbatches) {
        const Sums sum = sums(microbatch);
        most.tokens = std::max(most.tokens, microbatch.tokens);
        most.items = std::max(most.items, static_cast<std::int64_t>(microbatch.items.size()));
        most.patches = std::max(most.patches, sum.patches);
        most.clips = most.clips || sum.seconds > 0;
    }
    return most;
}

std::string batch_table(const Batch& batch, const Plan& plan) {
    const Largest most = largest(batch);
    std::vector<html::Column> columns{head("microbatch")};
    for (const char* name : {"samples", "tokens", "loss tokens", "items", "patches"}) columns.push_back(number(name));
    if (most.clips) columns.push_back(number("seconds"));
    Table table("", std::move(columns));
    for (const ReplicaPlan& replica : plan.replicas)
        for (std::size_t m = 0; m < replica.microbatches.size(); ++m) {
            const auto& microbatch = batch.microbatches[replica.microbatches[m]];
            const Sums sum = sums(microbatch);
            const auto items = static_cast<std::int64_t>(microbatch.items.size());
            const auto name = plan.replicas.size() == 1 ? "" : fmt::format("replica {}, ", replica.number);
            table.add(
                {fmt::format("{}{}", name, m), std::to_string(microbatch.samples.size())},
                fmt::format("{}<td class=\"n\">{}</td>{}{}{}", counted(microbatch.tokens, most.tokens),
                            microbatch.loss_tokens, counted(items, most.items), counted(sum.patches, most.patches),
                            most.clips ? fmt::format("<td class=\"n\">{:.1f}</td>", sum.seconds) : ""),
                "");
        }
    return table.html();
}

std::string modules_table(const workloads::Model& model) {
    Table table("", {head("module"), "network", number("layers"), number("hidden"), number("ffn"), number("heads"),
                     number("kv heads"), "weights"});
    for (const auto& module : model.modules) {
        const auto& network = module.architecture;
        const auto adapters = module.adapters ? fmt::format("frozen, adapters of rank {}", module.adapters->rank) : "";
        table.add({module.name, network.name, std::to_string(network.layers), std::to_string(network.hidden),
                   std::to_string(network.ffn), std::to_string(network.heads), std::to_string(network.kv_heads),
                   module.trainable  ? "trained"
                   : module.adapters ? adapters
                                     : "frozen"});
    }
    return table.html();
}

// Where the model's figures come from.
std::string sources_table(const workloads::Model& model) {
    const auto source = [](const std::string& text, const std::string& confidence) {
        const std::string from = text.empty() ? "not said" : text;
        return confidence.empty() ? from : fmt::format("{} ({})", from, confidence);
    };
    std::vector<std::string> rows{fact("source of the model", source(model.source, model.confidence))};
    for (const auto& module : model.modules)
        rows.push_back(
            fact("source of " + module.name, source(module.architecture.source, module.architecture.confidence)));
    return fact_table(rows);
}

std::string per_second(Bandwidth speed) {
    return fmt::format("{:.1f} GB/s", static_cast<double>(speed.bytes_per_second) * 1e-9);
}

std::string costs_text(const std::optional<CostFile>& costs) {
    if (!costs) return "the tables that ship with the program";
    return fmt::format("{} (SHA-256 {}...), and for what it lacks the tables that ship with the program", costs->path,
                       costs->sha256.substr(0, 12));
}

std::string recipe_text(const emulator::Recipe& recipe) {
    const auto overlap = recipe.execution.tensor_overlap;
    return fmt::format("{}: tensor-parallel traffic hidden {}; ZeRO {}", recipe.name,
                       overlap == emulator::TensorOverlap::none           ? "by nothing"
                       : overlap == emulator::TensorOverlap::launch_order ? "by launch order"
                                                                          : "inside products",
                       recipe.zero);
}

std::string cluster_table(const Job& job, const emulator::InSituFactors& factors) {
    const auto& cluster = job.setup->cluster;
    const auto& device = workloads::device(cluster.device);
    return fact_table(
        {fact("cluster", cluster.name),
         fact("GPUs", fmt::format("{} x {}, {} a node", cluster.gpus, cluster.device, cluster.gpus_per_node)),
         fact("inside a node", per_second(cluster.node_link) + " a GPU"),
         fact("between nodes", per_second(cluster.network) + " a node"), fact("source of the cluster", cluster.source),
         fact("memory", fmt::format("{}, of which tensors may take {}{}", human(device.memory), percent(usable_memory),
                                    kept_free(job.setup->headroom))),
         fact("memory besides", emulator::not_counted()),
         fact("bf16 peak", fmt::format("{:.0f} TFLOP/s", device.bf16_flops * 1e-12)),
         fact("source of the device", device.source), fact("operator costs", costs_text(job.costs)),
         fact("products in a step over products alone", fmt::format("{:.3f}", factors.factors.products)),
         fact("attention", fmt::format("{:.3f}", factors.factors.attention)),
         fact("memory-bound work", fmt::format("{:.3f}", factors.factors.memory_bound)),
         fact("traffic", fmt::format("{:.3f}", factors.factors.traffic)),
         fact("source of the four",
              fmt::format("{}: {}", name_of(footing(factors, job.setup->recipe, cluster.device)), factors.source)),
         fact("recipe", recipe_text(job.setup->recipe))});
}

std::string search_table(const Job& job, const Plan& plan) {
    std::vector<std::string> rows{fact("partition chosen on", plan.partition_choice.chosen_on.text()),
                                  fact("from", plan.partition_choice.tried.empty()
                                                   ? "one alone"
                                                   : fmt::format("{} partitions", plan.partition_choice.tried.size())),
                                  fact("seed", std::to_string(job.seed)),
                                  fact("schedule wanted", schedule_wanted(planner::target(job.target)))};
    for (std::size_t r = 0; r < plan.replicas.size(); ++r) {
        const std::string name =
            plan.replicas.size() == 1 ? "found" : fmt::format("replica {}", plan.replicas[r].number);
        rows.push_back(found_fact(name, plan.replicas[r].found));
    }
    return fact_table(rows);
}

// Those of the model, and of the data set that the samples were drawn from ("NAME (seed 1)").
std::vector<std::string> all_assumptions(const Job& job, const Batch& batch) {
    std::vector<std::string> all = assumptions(job, batch);
    for (const auto& set : workloads::datasets())
        if (set.assumed && batch.name.starts_with(set.name + " "))
            all.push_back(fmt::format("sizes of the samples of {}: {}", set.name, set.about));
    return all;
}

}  // namespace

std::string batch_section(const Batch& batch, const Plan& plan) {
    return folded(fmt::format("{} in {}", plural(batch.samples.size(), "sample"),
                              plural(batch.microbatches.size(), "microbatch")),
                  "<div class=\"wide\">" + batch_table(batch, plan) + "</div>",
                  batch.microbatches.size() <= most_rows_open);
}

std::string schedule_wanted(const planner::Target& target) {
    return has_own_plan(target) ? fmt::format("one that {} runs", target.title) : "any";
}

std::string target_section(const planner::Target& target, std::string_view known) {
    return fmt::format("<section id=\"{}\">\n<h2>The schedule for {}</h2>\n{}</section>\n", target.folder, target.title,
                       known);
}

namespace {

std::string padding_fact(const partition::Padded& padding) {
    return fact(
        "every microbatch padded to",
        fmt::format("{} tokens ({} padding), {} ({} of their positions padding)", padding.tokens,
                    percent(padded_share(padding.real_tokens, padding.padded_tokens)), plural(padding.items, "item"),
                    percent(padded_share(padding.real_patches, padding.padded_patches))));
}

// What a target that has a schedule of its own runs, and what its users would run without a plan.
std::string target_facts(const Plan& plan, const planner::Target& target, const TargetPlan& own) {
    if (!own.found.schedule) return fmt::format("<p>There is no such schedule: {}</p>\n", escape(own.why_not));
    const bool first_alone = is_of_first_alone(plan, target);
    const Duration makespan = own.found.replay.makespan;
    std::vector<std::string> facts{
        fact("schedule", fmt::format("{}{}", schedule_file(target), for_which_replicas(plan, target))),
        fact("partition",
             fmt::format("{}{}, {} a rank", own.cut.partition.name, target.one_chain ? " in one chain" : "",
                         plural(own.cut.partition.chunks_per_rank, "chunk")))};
    if (is_padded(own.padding)) facts.push_back(padding_fact(own.padding));
    facts.push_back(fact("recomputation", name_of(own.recompute)));
    facts.push_back(fact("makespan", fmt::format("{}, {} the plan's{}", human(makespan),
                                                 times(ratio(makespan, compared_with(plan, target))),
                                                 first_alone ? " for this replica" : "")));
    facts.push_back(fact("gap", percent(schedule::relative_gap(makespan, own.found.bound))));
    for (const std::string& policy : target.compared)
        if (const TargetBaseline* best = own.best(policy))
            facts.push_back(
                fact(policy + (is_padded(own.padding) ? " with the same padding" : ""),
                     fmt::format("{}, {} this schedule ({}, {} a rank, recompute {})", human(best->makespan),
                                 times(ratio(best->makespan, makespan)), best->partition,
                                 plural(best->chunks_per_rank, "chunk"), name_of(best->recompute))));
    return fact_table(facts);
}

}  // namespace

std::string targets(const Plan& plan) {
    std::string html;
    for (const TargetPlan& own : plan.targets) {
        const planner::Target& target = planner::target(own.target);
        html += target_section(target, target_facts(plan, target, own));
    }
    return html;
}

std::string inputs(const Job& job, const Batch& batch, const Plan& plan) {
    const auto assumed = all_assumptions(job, batch);
    const auto& notes = plan.replicas.front().cut.partition.notes;
    std::string html =
        heading("Assumed") + (assumed.empty() ? "<p>Model and batch name no assumption.</p>\n" : list(assumed));
    if (!notes.empty()) html += heading("What decided the partition") + list(notes);
    html += heading("Batch") +
            fact_table({fact("from", batch.name),
                        fact("tokens of a microbatch, at most", std::to_string(job.setup->model.microbatch_tokens))});
    html += heading("Search") + search_table(job, plan);
    html += heading("Model") + "<div class=\"wide\">" + modules_table(job.setup->model) + "</div>";
    html += sources_table(job.setup->model);
    html += heading("Cluster") + cluster_table(job, plan.in_situ);
    html += heading("Files to plan this again");
    html += folded("model file", fmt::format("<pre>{}</pre>\n", escape(to_json(job.setup->model))), false);
    return html + folded("cluster file", fmt::format("<pre>{}</pre>\n", escape(to_json(job.setup->cluster))), false);
}

}  // namespace pipeweaver::emit::report_parts
