#include "pipeweaver/partition/partitioners.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::partition {

// Each in a file of its own.
Partition dip(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition modules(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition megatron(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition balanced(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition uniform(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition first_stage(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition three_phase(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);

const std::vector<Partitioner>& partitioners() {
    static const std::vector<Partitioner> all{
        {"dip", "each module a chain of its own, in segments of about equal time (DIP)", {0}, false, dip},
        {"modules",
         "each module a chain of its own, units and segments chosen on the job's sample",
         {},
         false,
         modules},
        {"megatron", "one chain of all modules, cut by parameters", {1, 2}, true, megatron},
        {"balanced",
         "one chain of all modules, cut by time, and by memory where that is short",
         {1, 2},
         true,
         balanced},
        {"uniform", "one chain of all modules, as many layers in each stage", {}, true, uniform},
        {"first-stage", "one chain: encoders whole on the first stage, generators on the last", {}, true, first_stage},
        {"three-phase",
         "encoders data parallel over all GPUs, then the pipeline, then their backward",
         {},
         false,
         three_phase}};
    return all;
}

std::vector<std::string> partitioner_names() {
    std::vector<std::string> names;
    for (const Partitioner& one : partitioners()) names.push_back(one.name);
    return names;
}

const Partitioner& partitioner(std::string_view name) {
    for (const Partitioner& one : partitioners())
        if (one.name == name) return one;
    fail(ErrorKind::input, "{}", unknown("partition", name, partitioner_names()));
}

std::vector<Partition> partitions(const emulator::Setup& setup, const Sample& sample, std::string_view name) {
    std::int64_t layers = 0;
    std::size_t most_chunks = 0;
    for (const auto& module : setup.model.modules) layers += module.architecture.layers;
    static const std::vector<std::int64_t> if_named{1, 2};
    const auto chunks_of = [&](const Partitioner& one) -> const std::vector<std::int64_t>& {
        return one.chunks.empty() && one.name == name ? if_named : one.chunks;
    };
    for (const Partitioner& one : partitioners()) most_chunks = std::max(most_chunks, chunks_of(one).size());
    std::vector<Partition> all;
    for (std::size_t k = 0; k < most_chunks; ++k)
        for (const Partitioner& one : partitioners()) {
            const auto& chunks = chunks_of(one);
            if (k >= chunks.size() || (!name.empty() && one.name != name)) continue;
            if (chunks[k] * setup.layout.pp > layers) continue;
            all.push_back(one.make(setup, sample, chunks[k]));
        }
    return all;
}

namespace {

constexpr std::array<std::int64_t, 4> chain_chunks{1, 2, 4, 8};

std::int64_t layers_between(const workloads::Model& model, std::size_t first, std::size_t end) {
    std::int64_t layers = 0;
    for (std::size_t m = first; m < end; ++m) layers += model.modules[m].architecture.layers;
    return layers;
}

void add_chains(const Partitioner& one, const emulator::Setup& setup, const Sample& sample, std::size_t first_module,
                std::vector<Partition>& all) {
    const std::int64_t layers = layers_between(setup.model, first_module, setup.model.modules.size());
    for (const std::int64_t chunks : chain_chunks)
        if (chunks * setup.layout.pp <= layers) all.push_back(one.make(setup, sample, chunks));
}

}  // namespace

std::vector<Partition> candidates(const emulator::Setup& setup, const Sample& sample, std::string_view name) {
    constexpr std::string_view own = "modules";
    std::vector<Partition> all;
    if (name.empty() || name == "dip") all.push_back(dip(setup, sample, 0));
    if (name.empty() || name == own)
        for (Partition& one : per_module_candidates(setup, sample)) all.push_back(std::move(one));
    if (name == own || name == "dip") return all;
    const Partitioner& phases = partitioner("three-phase");
    if (name == phases.name && why_not_dealt(setup)) all.push_back(phases.make(setup, sample, 1));  // which says it
    const bool dealt = name.empty() && setup.layout.pp > 1 && setup.layout.gpus_of_rank() > 1 && !why_not_dealt(setup);
    if (name != phases.name) add_chains(partitioner(name.empty() ? "balanced" : name), setup, sample, 0, all);
    if (dealt || name == phases.name) add_chains(phases, setup, sample, setup.model.backbone(), all);
    return all;
}

}  // namespace pipeweaver::partition
