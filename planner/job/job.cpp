#include "pipeweaver/planner/job.hpp"

#include <utility>

namespace pipeweaver::planner {

Batch Job::batch(std::string name, std::vector<workloads::Sample> samples) const {
    Batch batch;
    batch.name = std::move(name);
    batch.samples = std::move(samples);
    if (defer) {
        auto parts = workloads::defer(std::move(batch.samples), setup->model, *defer);
        batch.samples = std::move(parts.now);
        batch.deferred = std::move(parts.later);
    }
    batch.microbatches = workloads::pack(batch.samples, setup->model, packing);
    return batch;
}

}  // namespace pipeweaver::planner
