// emulation.json.
#include "emit/emulation/input_parts.hpp"
#include "emit/emulation/long_context_parts.hpp"
#include "emit/emulation/precision_parts.hpp"
#include "emit/emulation/what_if_parts.hpp"
#include "emit/plan/parts.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/emit/emulation_files.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::emit {

using namespace emulator;
using planner::Emulation;
using planner::EmulationRequest;
using Writer = nlohmann::ordered_json;

namespace {

Writer what_if_json(const WhatIf& what_if) {
    if (what_if.empty()) return nullptr;
    Writer devices = Writer::array();
    for (const WhatIf::Device& device : what_if.devices)
        devices.push_back({{"rank", device.rank}, {"replica", or_null(device.replica)}, {"factor", device.factor}});
    Writer json{{"devices", std::move(devices)},
                {"links", what_if.links},
                {"operators", what_if.operators},
                {"modules", what_if.modules}};
    if (!what_if.precision.empty()) json["precision"] = what_if.precision;
    return json;
}

Writer recipe_json(const Recipe& recipe) {
    Writer json{{"name", recipe.name},
                {"launched", name_of(recipe.launched)},
                {"zero", recipe.zero},
                {"bucket_bytes", recipe.bucket.count},
                {"launch_ns", recipe.launch.count()},
                {"action_ns", recipe.action.count()},
                {"overlap_slowdown", recipe.overlap_slowdown},
                {"host_link_bytes_per_s", recipe.host_link.bytes_per_second}};
    if (const auto formats = formats_of(recipe); !formats.empty()) json["precision"] = formats;
    return json;
}

Writer recompute_json(const std::optional<planner::StepRecompute>& recompute) {
    return recompute ? Writer(name_of(*recompute)) : Writer(nullptr);
}

// Of a given schedule neither partition nor policy is asked for.
Writer asked_json(const EmulationRequest& request) {
    const planner::Job& job = request.job;
    const planner::Batch& batch = request.batch;
    const Layout& layout = job.setup->layout;
    Writer json{{"model", job.setup->model.name},
                {"cluster", job.setup->cluster.name},
                {"gpus", job.setup->cluster.gpus},
                {"device", job.setup->cluster.device},
                {"tp", layout.tp},
                {"cp", layout.cp},
                {"context", layout.context == ContextParallel::ring ? "ring" : "all-to-all"},
                {"ep", layout.ep},
                {"pp", layout.pp},
                {"dp", layout.dp},
                {"batch", batch.name},
                {"microbatches", batch.microbatches.size()},
                {"samples", batch.samples.size()},
                {"seed", job.seed}};
    if (!request.assigned.empty()) json["assigned"] = request.assigned;
    if (request.loader) json["loader"] = request.loader->name;
    if (request.shapes) json["shapes"] = *request.shapes;
    json["schedule"] = or_null(request.schedule);
    json["recompute"] = recompute_json(request.recompute);
    json["recipe"] = recipe_json(request.job.setup->recipe);
    json["what_if"] = what_if_json(request.job.setup->what_if);
    json["headroom"] = job.setup->headroom.fraction();
    json["costs"] = costs_json(job.costs);
    add_rules(json, job, batch);
    json["assumed"] = assumptions(job, batch);
    return json;
}

void add_figures(Writer& json, const EmulationRequest& request, const Emulation& emulation) {
    json["step_ns"] = emulation.step.count();
    json["makespan_ns"] = emulation.makespan.count();
    const Duration after = emulation.step - emulation.makespan;
    json["after_all_ranks_ns"] = after.count();
    json["mfu"] = emulation.mfu;
    json["model_flops"] = emulation.model_flops;
    json["tokens"] = emulation.tokens;
    json["tokens_per_second"] = emulation.tokens_per_second;
    const double seconds = static_cast<double>(emulation.step.count()) * 1e-9;
    const auto gpus = static_cast<double>(request.job.setup->layout.gpus());
    json["tokens_per_second_per_gpu"] = emulation.tokens_per_second / gpus;
    json["samples_per_second"] = static_cast<double>(request.batch.samples.size()) / seconds;
    json["tflops_per_gpu"] = emulation.model_flops / seconds / gpus * 1e-12;
    if (request.job.training_tokens > 0 && emulation.tokens > 0)
        json["training"] = training_json(request.job, emulation.step, emulation.tokens);
}

Writer time_json(const RankTime& time) {
    Writer exposed = Writer::object();
    for (std::size_t s = 0; s < streams; ++s)
        if (const auto stream = static_cast<Stream>(s); stream != Stream::compute)
            exposed[std::string(name_of(stream))] = time.exposed[s].count();
    const Duration busy = time.busy();
    return {{"busy_ns", busy.count()},
            {"compute_ns", time.compute.count()},
            {"exposed_ns", std::move(exposed)},
            {"bubble_ns", time.bubble.count()},
            {"gradients_ns", time.gradients.count()},
            {"optimizer_ns", time.optimizer.count()}};
}

Writer memory_json(const RankMemory& memory, Bytes capacity, bool with_timeline) {
    Writer json = peak_json(capacity, memory.peak, memory.fixed);
    json["activations_bytes"] = memory.activations.count;
    json["transient_bytes"] = memory.transient.count;
    if (!with_timeline) return json;
    Writer timeline = Writer::array();
    for (const MemoryPoint& point : memory.timeline) timeline.push_back({point.at.count(), point.held.count});
    json["timeline"] = std::move(timeline);
    return json;
}

Writer critical_json(const std::vector<CriticalPart>& parts) {
    Writer json = Writer::array();
    for (const CriticalPart& part : parts)
        json.push_back({{"what", part.what}, {"module", or_null(part.module)}, {"time_ns", part.time.count()}});
    return json;
}

Writer host_json(const planner::HostBound& host) {
    Writer ranks = Writer::array();
    for (const Duration waits : host.waits) ranks.push_back(waits.count());
    return {{"as", host.as},
            {"layer_ns", host.layer.count()},
            {"expert_layer_ns", host.expert_layer.count()},
            {"step_ns", host.step.count()},
            {"far", host.far},
            {"rank", host.rank()},
            {"waits_ns", host.waits[host.rank()].count()},
            {"waits_ns_of_ranks", std::move(ranks)}};
}

Writer price_json(const planner::Compiling& compiling, const planner::ShapesPrice& price) {
    Writer tried = Writer::array();
    for (const planner::PricedShapes& one : price.tried)
        tried.push_back({{"shapes", one.shapes}, {"step_ns", one.step.count()}, {"seconds", one.seconds}});
    return {{"compile_ns", compiling.each.count()},
            {"steps", compiling.steps},
            {"tried", std::move(tried)},
            {"cheapest", price.tried[price.cheapest].shapes}};
}

Writer shapes_json(const planner::FewShapes& shapes) {
    return {{"before", shapes.before},
            {"after", shapes.after},
            {"positions_before", shapes.positions_before},
            {"positions", shapes.positions}};
}

Writer replica_json(const Emulation& emulation, std::size_t number, Bytes capacity) {
    const ReplicaEmulation& replica = emulation.replicas[number];
    const bool with_timeline = number == emulation.slowest;
    Writer ranks = Writer::array();
    for (std::size_t r = 0; r < replica.time.size(); ++r) {
        Writer rank{{"rank", r}};
        if (!emulation.by_rank.empty()) rank["recompute"] = name_of(emulation.by_rank[number][r]);
        rank.update(time_json(replica.time[r]));
        rank["memory"] = memory_json(replica.memory[r], capacity, with_timeline);
        ranks.push_back(std::move(rank));
    }
    return {{"replica", number},
            {"step_ns", replica.step.count()},
            {"makespan_ns", replica.makespan.count()},
            {"kernels", replica.kernels},
            {"ranks", std::move(ranks)},
            {"critical_path", critical_json(replica.critical)}};
}

}  // namespace

Writer emulation_json(const EmulationRequest& request, const Emulation& emulation, const Emulation* base) {
    Writer json{{"format", "pipeweaver-emulation/1"}, {"asked", asked_json(request)}};
    add_figures(json, request, emulation);
    json["kernels"] = emulation.kernels;
    json["base"] = nullptr;
    if (base != nullptr) {
        Writer figures = Writer::object();
        add_figures(figures, request, *base);
        json["base"] = std::move(figures);
    }
    json["policy"] = emulation.policy;
    json["recompute"] = recompute_json(emulation.recompute);
    json["partition"] = partition_json(emulation.partition, request.job.setup->model);
    json["share_of_time"] = shares_json(emulation.shares);
    json["assumed"] = emulator::approximations(*request.job.setup, emulation.host.has_value());
    add_modelled(json, *request.job.setup);
    if (emulation.host) {
        json["step_range_ns"] = {emulation.step.count(), emulation.host->most().count()};
        json["host"] = host_json(*emulation.host);
    }
    if (emulation.lengths) json["lengths"] = long_context_json(*emulation.lengths);
    if (emulation.precision) json["precision"] = precision_json(*emulation.precision);
    if (emulation.shapes) json["shapes"] = shapes_json(*emulation.shapes);
    if (emulation.price) json["shapes"]["price"] = price_json(*request.compiling, *emulation.price);
    if (emulation.input) json["input"] = input_json(*emulation.input);
    if (emulation.jitter) json["jitter"] = jitter_json(*emulation.jitter);
    if (emulation.gradients) json["gradients"] = gradients_json(*emulation.gradients);
    json["slowest_replica"] = emulation.slowest;
    const Bytes capacity = capacity_of(*request.job.setup);
    Writer replicas = Writer::array();
    for (std::size_t r = 0; r < emulation.replicas.size(); ++r) {
        replicas.push_back(replica_json(emulation, r, capacity));
        add_waits(replicas.back(), emulation.replicas[r].waits);
    }
    json["replicas"] = std::move(replicas);
    return json;
}

}  // namespace pipeweaver::emit
