#include "pipeweaver/planner/workload_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/hf_config.hpp"

#include <filesystem>
#include <iterator>

namespace pipeweaver::planner {

namespace {

// "Qwen/Qwen2.5-VL-7B-Instruct" where no such file is.
bool names_a_repository(const std::string& name) {
    std::error_code ignored;
    const std::filesystem::path path(name);
    const bool two_parts = std::distance(path.begin(), path.end()) == 2 && path.is_relative();
    return two_parts && !names_a_document(path.filename().string()) && !std::filesystem::exists(path, ignored) &&
           !std::filesystem::exists(path.parent_path(), ignored);
}

}  // namespace

workloads::Model find_model(const std::string& name) {
    const bool configuration = name.starts_with("hf:");
    const std::string file = configuration ? name.substr(3) : name;
    if (names_a_repository(file))
        fail(ErrorKind::input,
             "--model: there is no file '{}', and nothing is downloaded: save the model's config.json and give "
             "hf:FILE, or take a name of `pipeweaver list models`",
             file);
    if (configuration) return workloads::read_hf_model(file);
    if (names_a_document(name)) return workloads::read_model(name);
    return workloads::model(name);
}

namespace {

void add_degree(OptionTable& options, const std::string& name, Degree& degree, std::int64_t most,
                const std::string& about) {
    options.parsed(name, "auto|N", about, [name, &degree, most](const std::string& text) {
        degree.automatic = text == "auto";
        if (degree.automatic) return;
        try {
            degree.number = parse_integer("--" + name, text, 1, most);
        } catch (const Error&) {
            fail(ErrorKind::input, "--{}: is '{}', allowed are auto and whole numbers from 1 to {}", name, text, most);
        }
    });
}

}  // namespace

std::optional<CostFile> find_costs(const std::string& path) {
    if (path.empty()) return std::nullopt;
    return CostFile{path, sha256(read_file(path))};
}

costdb::CostDatabase costs_of(const Request& request) {
    const auto& device = request.cluster.device;
    if (!request.costs) return costdb::CostDatabase::embedded(device);
    auto costs = costdb::CostDatabase::over_embedded(request.costs->path, device);
    if (find_costs(request.costs->path)->sha256 != request.costs->sha256)
        fail(ErrorKind::io, "{}: has changed while it was read", request.costs->path);
    return costs;
}

void add_costs(OptionTable& options, std::string& path) {
    options.text("costs", path, "FILE",
                 "operator costs from this file of `costdb import`; what it lacks: from the embedded tables");
}

void WorkloadOptions::add_to(OptionTable& options) {
    options.group("Model, machine and batch");
    options.text("model", model, "MODEL",
                 "a model of `pipeweaver list models`, a model file (JSON or YAML), or hf:CONFIG.json (required)");
    options.text("cluster", cluster, "CLUSTER",
                 "NAME:GPUS of `pipeweaver list clusters`, or a cluster file (JSON or YAML) (required)");
    add_degree(options, "tp", tp, 1024,
               "tensor parallel GPUs, or auto (default: the model's published layout, else auto)");
    add_degree(options, "pp", pp, 1024, "pipeline ranks, or auto (default: the model's published layout, else auto)");
    add_degree(options, "dp", dp, 65536, "replicas, or auto (default: the GPUs that are left)");
    options.integer("cp", cp, 1, 1024,
                    "context parallel GPUs, each with a part of every sequence, beside each tensor parallel one "
                    "(default 1)");
    options.integer("ep", ep, 1, 65536,
                    "GPUs that share out the experts of a layer (default: as many as divide tp * cp and the experts)");
    options.choice("context", context, {"all-to-all", "ring"},
                   "with --cp, attention to whole sequences: heads are exchanged for parts of them (default: "
                   "all-to-all), or keys go round in a ring");
    options.text("batch", batch, "FILE", "a batch file (.jsonl, one sample a line)");
    options.text("dataset", dataset, "DATASET", "draw the batch from this data set of `pipeweaver list datasets`");
    options.integer("microbatches", microbatches, 1, 100'000,
                    "microbatches of each replica to draw with --dataset (default 16)");
    add_costs(options, costs);
}

void add_split(OptionTable& options, std::string& split) {
    options.choice("split", split, {"auto", "never", "always"},
                   "split backwards into input and weight gradients: where it makes the step shorter (default: auto), "
                   "never, or always");
}

Split split_of(const std::string& split) {
    return split == "never" ? Split::never : split == "always" ? Split::always : Split::automatic;
}

namespace {

// The option's number, or that of the published layout.
std::optional<std::int64_t> number_of(const Degree& degree, std::int64_t published) {
    if (degree.number || degree.automatic || published == 0) return degree.number;
    return published;
}

emulator::ContextParallel context_of(const std::string& context) {
    return context == "ring" ? emulator::ContextParallel::ring : emulator::ContextParallel::all_to_all;
}

}  // namespace

// A layout is chosen where "auto" is said, or neither the options nor the published layout give one.
bool WorkloadOptions::choose(const Request& request) const {
    if (tp.automatic || pp.automatic || dp.automatic) return true;
    const auto own_tp = number_of(tp, request.model.tp), own_pp = number_of(pp, request.model.pp);
    if (!own_tp || !own_pp) return true;
    const bool given = tp.number || pp.number || dp.number;
    return !given && request.cluster.gpus % (*own_tp * *own_pp * cp) != 0;
}

emulator::Layout WorkloadOptions::layout(const Request& request) const {
    emulator::Layout layout;
    layout.tp = *number_of(tp, request.model.tp);
    layout.pp = *number_of(pp, request.model.pp);
    layout.cp = cp;
    layout.context = context_of(context);
    const std::int64_t replica = layout.tp * layout.pp * layout.cp, gpus = request.cluster.gpus;
    if (gpus % replica != 0 && !dp.number)
        fail(ErrorKind::input, "--tp {}{} * --pp {} = {} GPUs do not divide the cluster's {}", layout.tp,
             cp > 1 ? fmt::format(" * --cp {}", cp) : "", layout.pp, replica, gpus);
    layout.dp = dp.number.value_or(gpus / replica);
    layout.ep = ep.value_or(emulator::default_ep(layout, request.model));
    return layout;
}

LayoutRequest WorkloadOptions::layout_request(const Request& request, std::uint64_t seed) const {
    LayoutRequest asked;
    asked.model = &request.model;
    asked.cluster = &request.cluster;
    asked.tp = tp.number;
    asked.pp = pp.number;
    asked.dp = dp.number;
    asked.cp = cp;
    asked.ep = ep;
    asked.context = context_of(context);
    if (batch.empty()) {
        asked.microbatches =
            workloads::draw_batch(dataset, request.model, seed, microbatches.value_or(16)).microbatches;
        asked.for_each_replica = true;
    } else {
        asked.microbatches = request.microbatches;
    }
    return asked;
}

// Samples and microbatches, once the layout is known; those of a file are there already.
void WorkloadOptions::fill(Request& request, std::uint64_t seed) const {
    if (!batch.empty()) return;
    request.batch = fmt::format("{} (seed {})", dataset, seed);
    auto drawn = workloads::draw_batch(dataset, request.model, seed, microbatches.value_or(16) * request.layout.dp);
    request.samples = std::move(drawn.samples);
    request.microbatches = std::move(drawn.microbatches);
}

Request WorkloadOptions::request(std::uint64_t seed, const Executor& execute) const {
    if (model.empty()) fail(ErrorKind::input, "--model: is missing; `pipeweaver list models` names the known ones");
    if (cluster.empty())
        fail(ErrorKind::input, "--cluster: is missing; `pipeweaver list clusters` names the known ones");
    if (batch.empty() == dataset.empty())
        fail(ErrorKind::input, "--batch, --dataset: exactly one of the two is needed");
    if (!batch.empty() && microbatches)
        fail(ErrorKind::input, "--microbatches: goes with --dataset; a batch file is packed as it is");
    Request request;
    request.seed = seed;
    request.model = find_model(model);
    request.cluster = workloads::find_cluster(cluster);
    request.costs = find_costs(costs);
    if (!batch.empty()) {
        request.batch = batch;
        request.samples = batch_text ? workloads::parse_batch(batch, *batch_text, request.model)
                                     : workloads::read_batch(batch, request.model);
        request.microbatches = workloads::pack(request.samples, request.model);
    }
    if (choose(request)) {
        request.layout_choice = choose_layout(layout_request(request, seed), costs_of(request), execute);
        request.layout = request.layout_choice->layout();
    } else {
        request.layout = layout(request);
        emulator::check(request.layout, request.cluster, request.model);
    }
    fill(request, seed);
    return request;
}

}  // namespace pipeweaver::planner
