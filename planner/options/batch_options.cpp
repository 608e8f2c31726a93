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
std::vector<workloads::Sample> read_deferred(const std::string& file, const Request& request) {
    if (std::filesystem::is_regular_file(file) && std::filesystem::file_size(file) == 0) return {};
    auto samples = workloads::read_batch(file, request.setup->model);
    std::set<std::string_view> ids;
    for (const auto& sample : request.samples) ids.insert(sample.id);
    for (const auto& sample : samples)
        if (ids.contains(sample.id))
            fail(ErrorKind::input, "--deferred: {}: sample '{}' is in the batch, too; allowed are samples of other ids",
                 file, sample.id);
    return samples;
}

}  // namespace

void BatchOptions::fill(Request& request) const {
    if (defer && request.packing != workloads::Packing::padded)
        fail(ErrorKind::input, "--defer: goes with --packing padded, or auto with --target {}: only fixed shapes pad",
             fmt::join(target_options([](const Target& one) { return one.fixed_shapes; }), " or "));
    if (!deferred.empty()) {
        auto all = read_deferred(deferred, request);
        all.insert(all.end(), request.samples.begin(), request.samples.end());
        request.samples = std::move(all);
    }
    request.defer = defer;
    if (defer || !deferred.empty()) pack(request);
    request.sharing = assignment == "in-turn" ? partition::Sharing::in_turn : partition::Sharing::balanced;
}

}  // namespace pipeweaver::planner
