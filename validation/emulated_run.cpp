#include "validation/emulated_run.hpp"

#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace pipeweaver::validation {

namespace {

std::string on_one_line(const std::string& json) { return nlohmann::ordered_json::parse(json).dump(); }

// One network; a microbatch holds its sequences.
std::string model_of(const TrainingRun& run) {
    workloads::Model model;
    model.name = run.network.name.empty() ? "network" : run.network.name;
    workloads::Module module;
    module.name = "llm";
    module.architecture = run.network;
    module.architecture.name = model.name;
    module.modalities = {workloads::Modality::text};
    module.adapters = run.adapters;
    module.trainable = !run.adapters;
    model.modules.push_back(std::move(module));
    model.microbatch_tokens = run.micro_batch * run.seq;
    return on_one_line(workloads::to_json(model));
}

// vTrain's cluster has 800 Gb/s a node (arXiv 2312.12391), Megatron-LM's runs of 2021-22 were on Selene, whose nodes
// have as much.
std::string cluster_of(const TrainingRun& run) {
    for (const workloads::Cluster& shipped : workloads::clusters()) {
        if (shipped.device != run.device) continue;
        workloads::Cluster cluster = shipped;
        cluster.gpus = run.layout.gpus();
        cluster.source = "";
        if (run.how.recipe.name == "megatron-2022") cluster.network = Bandwidth{100'000'000'000};
        if (run.how.network.bytes_per_second > 0) cluster.network = run.how.network;
        if (run.how.node_link.bytes_per_second > 0) cluster.node_link = run.how.node_link;
        if (run.how.gpus_per_node > 0) cluster.gpus_per_node = run.how.gpus_per_node;
        return on_one_line(to_json(cluster));
    }
    return run.device;
}

bool has_experts(const MultimodalRun& run) {
    return run.model.modules[run.model.backbone()].architecture.moe.has_value();
}

// Every sample is a document: as many as a sequence has, of equal length, no longer than they fill it.
std::int64_t sample_of(const TrainingRun& run) {
    if (run.document == 0) return run.seq;
    return run.seq / std::max<std::int64_t>(1, (run.seq + run.document / 2) / run.document);
}

}  // namespace

planner::EmulateOptions emulated_run(const TrainingRun& run) {
    planner::EmulateOptions options;
    auto& workload = options.workload;
    const auto& networks = run.multimodal;
    workload.model = networks ? on_one_line(to_json(networks->model)) : model_of(run);
    workload.cluster = cluster_of(run);
    workload.recipe = on_one_line(to_json(run.how.recipe));
    workload.tp.number = run.layout.tp;
    workload.pp.number = run.layout.pp;
    workload.dp.number = run.layout.dp;
    if (run.layout.cp > 1) workload.cp.number = run.layout.cp;
    if (networks ? has_experts(*networks) : run.network.moe.has_value()) workload.ep.number = run.layout.ep;
    if (run.layout.cp > 1 && run.how.ring) workload.context = "ring";
    workload.dataset = networks ? networks->dataset : fmt::format("constant-{}", sample_of(run));
    workload.microbatches = run.microbatches();
    if (networks) workload.packing = networks->packing;
    if (!networks)
        options.job.partition = run.how.partition;
    else if (networks->layers.empty())
        options.job.partition = partition::megatron_partition;
    else
        options.layers = networks->layers;
    options.chunks = run.virtual_stages;
    options.policy = run.virtual_stages > 1 ? search::interleaved_policy : search::one_f_one_b_policy;
    options.recompute = {.everywhere = networks ? networks->recompute : run.recomputation};
    options.any_memory = true;
    return options;
}

std::string command_of(const planner::EmulateOptions& options) {
    return planner::values_of(options).command("pipeweaver emulate");
}

}  // namespace pipeweaver::validation
