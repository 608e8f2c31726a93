#include "pipeweaver/partition/partitioners.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace pipeweaver::partition {

// Each in a file of its own.
Partition dip(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition modules(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition megatron(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition balanced(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition uniform(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition first_stage(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
Partition three_phase(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank);
MostStages most_first_stages(const workloads::Model& model);
MostStages most_phase_stages(const workloads::Model& model);

const std::vector<Partitioner>& partitioners() {
    static const std::vector<Partitioner> all{
        {.name = "dip",
         .about = "each module a chain of its own, in segments of about equal time (DIP)",
         .own_chunks = true,
         .own_chains = true,
         .for_jobs = true,
         .for_frameworks = true,
         .cut = dip},
        {.name = "modules",
         .about = "each module a chain of its own, units and segments chosen on the job's sample",
         .own_chunks = true,
         .own_chains = true,
         .for_jobs = true,
         .cut = modules,
         .offer = per_module_candidates},
        {.name = "megatron",
         .about = "one chain of all modules, cut by parameters",
         .one_chain = true,
         .for_frameworks = true,
         .as_opponent = 3,
         .cut = megatron},
        {.name = "balanced",
         .about = "one chain of all modules, cut by time, and by memory where that is short",
         .one_chain = true,
         .for_jobs = true,
         .for_frameworks = true,
         .as_opponent = 2,
         .cut = balanced},
        {.name = "uniform",
         .about = "one chain of all modules, as many layers in each stage",
         .one_chain = true,
         .cut = uniform},
        {.name = "first-stage",
         .about = "one chain: encoders whole on the first stage, generators on the last",
         .one_chain = true,
         .as_opponent = 1,
         .cut = first_stage,
         .most_stages = most_first_stages},
        {.name = "three-phase",
         .about = "encoders data parallel over all GPUs, then the pipeline, then their backward",
         .for_jobs = true,
         .as_opponent = 4,
         .cut = three_phase,
         .why_not = why_not_dealt,
         .most_stages = most_phase_stages}};
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

namespace {

MostStages most_stages_of(const workloads::Model& model, const Partitioner& one) {
    if (one.most_stages != nullptr) return one.most_stages(model);
    std::int64_t layers = 0;
    for (const auto& module : model.modules) layers += module.architecture.layers;
    return {layers, fmt::format("the model's {} layers", layers)};
}

// The rows of a use, in the order in which they are tried.
std::vector<const Partitioner*> rows_for(Use use, const emulator::Setup& setup) {
    std::vector<const Partitioner*> rows;
    for (const Partitioner& one : partitioners()) {
        const bool wanted = use == Use::job         ? one.for_jobs
                            : use == Use::framework ? one.for_frameworks
                                                    : one.as_opponent > 0;
        // Dealing modules over the GPUs of a rank pays where it has several, and a pipeline behind them.
        const bool pays =
            one.why_not == nullptr || (setup.layout.pp > 1 && setup.layout.gpus_of_rank() > 1 && !one.why_not(setup));
        if (wanted && (use == Use::opponent || pays)) rows.push_back(&one);
    }
    if (use == Use::opponent)
        std::stable_sort(rows.begin(), rows.end(),
                         [](const Partitioner* a, const Partitioner* b) { return a->as_opponent < b->as_opponent; });
    return rows;
}

std::vector<std::int64_t> chunks_for(Use use, const emulator::Setup& setup, const Partitioner& one) {
    if (one.own_chunks) return {0};
    const std::int64_t stages = most_stages_of(setup.model, one).count;
    // Runtimes of one chain are given few: with more stages of a chain, fewer of their schedules apply.
    const std::int64_t most = use == Use::framework ? 2 : chunk_counts.back();
    std::vector<std::int64_t> chunks;
    for (const std::int64_t count : chunk_counts)
        if (count <= most && count * setup.layout.pp <= stages) chunks.push_back(count);
    return chunks;
}

}  // namespace

std::optional<std::string> Cutting::why_not(const emulator::Setup& setup) const {
    if (by->why_not != nullptr)
        if (const auto why = by->why_not(setup)) return fmt::format("partition {}: {}", by->name, *why);
    if (by->own_chunks) return std::nullopt;
    const std::int64_t stages = setup.layout.pp * chunks_per_rank;
    const MostStages most = most_stages_of(setup.model, *by);
    if (stages <= most.count) return std::nullopt;
    return fmt::format("{} stages are more than {}", stages, most.of);
}

Partition Cutting::make(const emulator::Setup& setup, const Sample& sample) const {
    if (const auto why = why_not(setup)) fail(ErrorKind::input, "{}", *why);
    return by->cut(setup, sample, chunks_per_rank);
}

Partition Partitioner::make(const emulator::Setup& setup, const Sample& sample, std::int64_t chunks_per_rank) const {
    return Cutting{this, chunks_per_rank}.make(setup, sample);
}

std::vector<Cutting> cuttings(Use use, const emulator::Setup& setup, std::string_view name) {
    const auto rows = name.empty() ? rows_for(use, setup) : std::vector{&partitioner(name)};
    std::vector<Cutting> all;
    for (const Partitioner* one : rows) {
        auto counts = chunks_for(use, setup, *one);
        if (counts.empty() && (!name.empty() || use == Use::opponent)) counts.push_back(chunk_counts.front());
        for (const std::int64_t chunks : counts) all.push_back({one, chunks});
    }
    // What is tried without a planner goes by chunks, the fewest first.
    if (use != Use::job)
        std::stable_sort(all.begin(), all.end(), [](const Cutting& a, const Cutting& b) {
            return std::max<std::int64_t>(1, a.chunks_per_rank) < std::max<std::int64_t>(1, b.chunks_per_rank);
        });
    return all;
}

std::vector<Partition> partitions_for(Use use, const emulator::Setup& setup, const Sample& sample,
                                      std::string_view name) {
    std::vector<Partition> all;
    for (const Cutting& one : cuttings(use, setup, name)) {
        if (use == Use::job && one.by->offer != nullptr)
            for (Partition& offered : one.by->offer(setup, sample)) all.push_back(std::move(offered));
        else
            all.push_back(one.make(setup, sample));
    }
    return all;
}

namespace {

void require_chains(const Partitioner& one, const AskedLayouts& asked) {
    if (asks_for_copies(asked) && !one.own_chains)
        fail(ErrorKind::input,
             "--module-tp: goes with partitions in which each module is a chain of its own (dip, modules), and '{}' "
             "is none",
             one.name);
}

// A module whose layout is asked for.
bool has_in_phases(const Partition& one, const AskedLayouts& asked) {
    const auto phases = phase_modules(one);
    return !asked.empty() &&
           std::any_of(phases.begin(), phases.end(), [&](std::size_t m) { return asked[m].has_value(); });
}

[[noreturn]] void fail_of_phases(std::string_view name) {
    fail(ErrorKind::input,
         "--module-tp: names a module that '{}' has in phases, on all GPUs of the replica; allowed are modules in "
         "chains",
         name);
}

emulator::Setup in_layouts(const emulator::Setup& setup, emulator::ModuleLayouts layouts) {
    emulator::Setup own = setup;
    own.modules = std::move(layouts);
    return own;
}

}  // namespace

Partition cut_as_asked(const emulator::Setup& setup, const Sample& sample, const Cutting& cutting,
                       const AskedLayouts& asked) {
    if (!asks_for_copies(asked)) {
        Partition cut = cutting.make(setup, sample);
        if (has_in_phases(cut, asked)) fail_of_phases(cutting.by->name);
        return cut;
    }
    require_chains(*cutting.by, asked);
    return cutting.make(in_layouts(setup, layouts_to_try(setup, asked).front()), sample);
}

std::vector<Partition> partitions_for_job(const emulator::Setup& setup, const Sample& sample, std::string_view name,
                                          const AskedLayouts& asked) {
    if (!name.empty()) require_chains(partitioner(name), asked);
    std::vector<Partition> all;
    for (const emulator::ModuleLayouts& layouts : layouts_to_try(setup, asked)) {
        std::vector<Partition> more;
        if (!emulator::differ(layouts, setup.layout)) {
            more = partitions_for(Use::job, setup, sample, name);
        } else if (name.empty() || partitioner(name).own_chains) {
            more = partitions_for(Use::job, in_layouts(setup, layouts), sample, name.empty() ? "modules" : name);
        }
        std::move(more.begin(), more.end(), std::back_inserter(all));
    }
    // A module whose layout is asked for is in a chain.
    std::erase_if(all, [&](const Partition& one) { return has_in_phases(one, asked); });
    if (all.empty()) fail_of_phases(name);
    return all;
}

}  // namespace pipeweaver::partition
