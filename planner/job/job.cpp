#include "pipeweaver/planner/job.hpp"

#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace pipeweaver::planner {

workloads::Pipelines Job::pipelines(const emulator::Layout& layout) const {
    return {layout.dp, layout.pp, equal_microbatches};
}

std::string not_taken(const Batch& batch) {
    std::vector<std::string> all;
    if (!batch.deferred.empty()) all.push_back(fmt::format("{} left for a later step", batch.deferred.size()));
    if (!batch.dropped.empty()) all.push_back(fmt::format("{} larger than a microbatch dropped", batch.dropped.size()));
    return all.empty() ? "" : fmt::format(" ({})", fmt::join(all, ", "));
}

bool searches_order(const Job& job) { return target(job.target).searches || !job.also.empty(); }

double beside_replicas(double part, const Job& job, std::size_t threads) {
    const double turns =
        static_cast<double>(job.setup->layout.dp) / static_cast<double>(std::max<std::size_t>(1, threads));
    return part / (1 + std::max(0.0, turns - 1) / fractions.turns_as_whole);
}

bool has_schedule_for(const Job& job, const std::string& name) {
    return target(job.target).searches || std::find(job.also.begin(), job.also.end(), name) != job.also.end();
}

std::vector<std::string> assumptions(const Job& job, const Batch& batch) {
    const workloads::Model& model = job.setup->model;
    const auto drawn = batch.name.rfind(" (seed ");  // as batches that are drawn are called
    const std::string dataset = drawn == std::string::npos ? std::string() : batch.name.substr(0, drawn);
    std::vector<std::string> all = model.assumed;
    if (std::string built = workloads::how_built(model); !built.empty()) all.push_back(std::move(built));
    for (std::string& one : workloads::assumed_sizes(dataset, batch.samples, model)) all.push_back(std::move(one));
    return all;
}

Batch Job::batch(std::string name, std::vector<workloads::Sample> samples) const {
    Batch batch;
    batch.name = std::move(name);
    auto kept = workloads::without_too_long(std::move(samples), setup->model);
    batch.samples = std::move(kept.samples);
    batch.dropped = std::move(kept.dropped);
    if (defer) {
        auto parts = workloads::defer(std::move(batch.samples), setup->model, *defer);
        batch.samples = std::move(parts.now);
        batch.deferred = std::move(parts.later);
    }
    batch.microbatches = workloads::pack(batch.samples, setup->model, packing, pipelines(setup->layout));
    return batch;
}

Batch Job::in_layout(const Batch& batch, const emulator::Layout& layout) const {
    const bool is_even = packing == workloads::Packing::balanced && !batch.drawn;
    const auto own = pipelines(setup->layout), other = pipelines(layout);
    Batch packed = batch;
    if ((is_even || equal_microbatches) && (own.replicas != other.replicas || own.ranks != other.ranks))
        packed.microbatches = workloads::pack(batch.samples, setup->model, packing, other, batch.drawn_into);
    return packed;
}

std::size_t shapes_of(const workloads::Model& model, const std::vector<workloads::Microbatch>& all) {
    const bool packs_text = model.modules[model.backbone()].architecture.kind == workloads::ModuleKind::language_model;
    std::set<std::pair<std::int64_t, std::vector<std::int64_t>>> shapes;
    for (const workloads::Microbatch& one : all)
        shapes.emplace(workloads::positions_of(one),
                       packs_text ? std::vector<std::int64_t>{}
                                  : std::vector<std::int64_t>(one.lengths.begin(), one.lengths.end()));
    return shapes.size();
}

std::vector<emulator::LayerTime> layers_of(const emulator::Setup& setup, const Batch& batch) {
    std::vector<std::vector<emulator::PassShape>> shapes;
    for (const auto& microbatch : batch.microbatches) {
        auto& of = shapes.emplace_back();
        for (const auto& module : setup.model.modules)
            of.push_back(partition::shape_in(module, microbatch, 0, microbatch.items.size()));
    }
    return emulator::layer_times(setup, shapes);
}

}  // namespace pipeweaver::planner
