// What is kept free of a GPU's memory where that is left to the batch.
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/workload_options.hpp"

namespace pipeweaver::planner {

namespace {

bool may_vary(const workloads::Model& model) {
    return model.modules.size() > 1 ||
           model.modules[model.backbone()].architecture.kind != workloads::ModuleKind::language_model;
}

}  // namespace

std::string text_of_headroom(emulator::Headroom headroom) {
    return text_of(static_cast<double>(headroom.parts_per_million) / 10'000) + "%";
}

emulator::Headroom WorkloadOptions::headroom_for(const workloads::Model& of,
                                                 const std::vector<workloads::Microbatch>& some,
                                                 const std::optional<std::int64_t>& ranks) const {
    if (!automatic_headroom) return headroom;
    const Target& runs = planner::target(target);
    const bool pads = runs.fixed_shapes && ranks.value_or(pp.number.value_or(1)) > 1;
    const bool varies = !pads && (some.empty() ? may_vary(of) : shapes_of(of, some) > 1);
    return varies && runs.launch.segments_expand_as.empty() ? emulator::headroom_of_varying_shapes()
                                                            : emulator::usual_headroom;
}

// Of a data set as many as show whether shapes vary; none where that makes no difference.
std::vector<workloads::Microbatch> WorkloadOptions::some_microbatches(const workloads::Model& of,
                                                                      std::uint64_t seed) const {
    constexpr std::int64_t some = 8;
    if (!planner::target(target).launch.segments_expand_as.empty()) return {};
    if (!batch.empty()) return workloads::pack(read(of, seed).samples, of, how_packed());
    return dataset.empty() ? std::vector<workloads::Microbatch>{} : drawn(of, seed, some).microbatches;
}

}  // namespace pipeweaver::planner
