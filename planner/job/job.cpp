#include "pipeweaver/planner/job.hpp"

#include <utility>

namespace pipeweaver::planner {

workloads::Pipelines pipelines_of(const emulator::Layout& layout) { return {layout.dp, layout.pp}; }

Batch Job::batch(std::string name, std::vector<workloads::Sample> samples) const {
    Batch batch;
    batch.name = std::move(name);
    batch.samples = std::move(samples);
    if (defer) {
        auto parts = workloads::defer(std::move(batch.samples), setup->model, *defer);
        batch.samples = std::move(parts.now);
        batch.deferred = std::move(parts.later);
    }
    batch.microbatches = workloads::pack(batch.samples, setup->model, packing, pipelines_of(setup->layout));
    return batch;
}

Batch Job::in_layout(const Batch& batch, const emulator::Layout& layout) const {
    const bool is_even = packing == workloads::Packing::balanced && !batch.drawn;
    const auto own = pipelines_of(setup->layout), other = pipelines_of(layout);
    Batch packed = batch;
    if (is_even && (own.replicas != other.replicas || own.ranks != other.ranks))
        packed.microbatches = workloads::pack(batch.samples, setup->model, packing, other);
    return packed;
}

}  // namespace pipeweaver::planner
