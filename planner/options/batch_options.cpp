#include "pipeweaver/planner/batch_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <filesystem>
#include <set>
#include <string_view>

namespace pipeweaver::planner {

void BatchOptions::add_to(OptionTable& options) {
    options.choice("assignment", assignment, {"balanced", "in-turn"},
                   "microbatches to replicas: by cost (default: balanced), or each every so many-th");
    options.integer("defer", defer, 1, workloads::most_steps_deferred,
                    "with --packing padded, leave samples with so many items that every microbatch would be padded to "
                    "them for a later step, each at most N times; deferred.jsonl has them (default: take all)");
    options.text("deferred", deferred, "FILE",
                 "the deferred.jsonl of the step before, whose samples go before the batch's");
}

namespace {

// A step that left nothing wrote an empty file. Throws where a sample is in the batch, too.
std::vector<workloads::Sample> read_deferred(const std::string& file, const Job& job, const Batch& batch) {
    if (std::filesystem::is_regular_file(file) && std::filesystem::file_size(file) == 0) return {};
    auto samples = workloads::read_batch(file, job.setup->model);
    std::set<std::string_view> ids;
    for (const auto& sample : batch.samples) ids.insert(sample.id);
    for (const auto& sample : samples)
        if (ids.contains(sample.id))
            fail(ErrorKind::input, "--deferred: {}: sample '{}' is in the batch, too; allowed are samples of other ids",
                 file, sample.id);
    return samples;
}

}  // namespace

void BatchOptions::fill(Job& job) const {
    if (defer && job.packing != workloads::Packing::padded)
        fail(ErrorKind::input, "--defer: goes with --packing padded, or auto with --target {}: only fixed shapes pad",
             fmt::join(target_options([](const Target& one) { return one.fixed_shapes; }), " or "));
    job.defer = defer;
    job.sharing = assignment == "in-turn" ? partition::Sharing::in_turn : partition::Sharing::balanced;
}

void BatchOptions::carry(const Job& job, Batch& batch) const {
    if (!defer && deferred.empty()) return;
    std::vector<workloads::Sample> samples;
    if (!deferred.empty()) samples = read_deferred(deferred, job, batch);
    samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
    const auto drawn = batch.drawn_microbatches;
    auto dropped = std::move(batch.dropped);
    batch = job.batch(std::move(batch.name), std::move(samples));
    batch.dropped.insert(batch.dropped.begin(), dropped.begin(), dropped.end());
    batch.drawn_microbatches = drawn;
}

}  // namespace pipeweaver::planner
