#include "apps/workload.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/hf_config.hpp"

namespace pipeweaver::apps {

workloads::Model find_model(const std::string& name) {
    if (name.starts_with("hf:")) return workloads::read_hf_model(name.substr(3));
    if (names_a_document(name)) return workloads::read_model(name);
    return workloads::model(name);
}

void WorkloadOptions::add_to(Options& options) {
    options.group("Model, machine and batch");
    options.text("model", model, "MODEL",
                 "a model of `pipeweaver list models`, a model file (JSON or YAML), or hf:CONFIG.json (required)");
    options.text("cluster", cluster, "CLUSTER",
                 "NAME:GPUS of `pipeweaver list clusters`, or a cluster file (JSON or YAML) (required)");
    options.integer("tp", tp, 1, 1024, "tensor parallel GPUs (default: the model's published layout, else 1)");
    options.integer("pp", pp, 1, 1024, "pipeline ranks (default: the model's published layout, else 1)");
    options.integer("dp", dp, 1, 65536, "replicas (default: the GPUs that are left)");
    options.text("batch", batch, "FILE", "a batch file (.jsonl, one sample a line)");
    options.text("dataset", dataset, "DATASET", "draw the batch from this data set of `pipeweaver list datasets`");
    options.integer("microbatches", microbatches, 1, 100'000,
                    "microbatches of each replica to draw with --dataset (default 16)");
}

emulator::Layout WorkloadOptions::layout(const workloads::Model& of, const workloads::Cluster& on) const {
    emulator::Layout layout;
    layout.tp = tp.value_or(of.tp > 0 ? of.tp : 1);
    layout.pp = pp.value_or(of.pp > 0 ? of.pp : 1);
    const std::int64_t replica = layout.tp * layout.pp;
    if (on.gpus % replica != 0 && !dp)
        fail(ErrorKind::input, "--tp {} * --pp {} = {} GPUs do not divide the cluster's {}", layout.tp, layout.pp,
             replica, on.gpus);
    layout.dp = dp.value_or(on.gpus / replica);
    return layout;
}

planner::Request WorkloadOptions::request(std::uint64_t seed) const {
    if (model.empty()) fail(ErrorKind::input, "--model: is missing; `pipeweaver list models` names the known ones");
    if (cluster.empty())
        fail(ErrorKind::input, "--cluster: is missing; `pipeweaver list clusters` names the known ones");
    if (batch.empty() == dataset.empty())
        fail(ErrorKind::input, "--batch, --dataset: exactly one of the two is needed");
    if (!batch.empty() && microbatches)
        fail(ErrorKind::input, "--microbatches: goes with --dataset; a batch file is packed as it is");
    planner::Request request;
    request.seed = seed;
    request.model = find_model(model);
    request.cluster = workloads::find_cluster(cluster);
    request.layout = layout(request.model, request.cluster);
    emulator::check(request.layout, request.cluster, request.model);
    if (!batch.empty()) {
        request.batch = batch;
        request.samples = workloads::read_batch(batch, request.model);
        request.microbatches = workloads::pack(request.samples, request.model);
        return request;
    }
    request.batch = fmt::format("{} (seed {})", dataset, seed);
    auto drawn = workloads::draw_batch(dataset, request.model, seed, microbatches.value_or(16) * request.layout.dp);
    request.samples = std::move(drawn.samples);
    request.microbatches = std::move(drawn.microbatches);
    return request;
}

}  // namespace pipeweaver::apps
