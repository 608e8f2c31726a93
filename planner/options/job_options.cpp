#include "pipeweaver/planner/job_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "planner/job/sample.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

namespace pipeweaver::planner {

namespace {

constexpr std::uint64_t first_default_seed = 101, default_seeds = 5, most_seeds = 100;

bool is_of_seeds(const std::string& part) {
    return !part.empty() && part.find_first_not_of("0123456789-") == std::string::npos;
}

// Five seeds that are not the batch's own.
std::vector<std::uint64_t> other_seeds(std::uint64_t own) {
    const bool taken = own >= first_default_seed && own < first_default_seed + default_seeds;
    std::vector<std::uint64_t> seeds;
    for (std::uint64_t i = 0; i < default_seeds; ++i)
        seeds.push_back(first_default_seed + i + (taken ? default_seeds : 0));
    return seeds;
}

std::vector<workloads::Microbatch> packed(const std::vector<workloads::Sample>& samples, const Job& job) {
    return workloads::pack(samples, job.setup->model, job.packing, job.pipelines(job.setup->layout));
}

// A sample that says nothing of a module would leave its units to chance.
void require_all_modules(const JobSample& sample, const workloads::Model& model) {
    for (const auto& module : model.modules) {
        const bool any = std::any_of(sample.batches.begin(), sample.batches.end(), [&](const auto& batch) {
            return std::any_of(batch.begin(), batch.end(), [&](const auto& microbatch) {
                return !partition::shape_in(module, microbatch, 0, microbatch.items.size()).lengths.empty();
            });
        });
        if (!any)
            fail(ErrorKind::input,
                 "--sample: {} has no items of module '{}'; allowed are batches with items of every module",
                 sample.name.text(), module.name);
    }
}

// {"vit":{"tp":1,"sharing":"split"},"audio":2} as --module-tp has it.
std::string text_of_modules(const Json& modules) {
    std::string text;
    for (const auto& [name, value] : modules.members()) {
        std::string layout;
        if (value.is_object()) {
            value.only_keys({"tp", "sharing"});
            layout = std::to_string(value.at("tp").integer(1));
            if (const auto sharing = value.find("sharing")) layout += ":" + sharing->text();
        } else {
            layout = value.is_string() ? value.text() : std::to_string(value.integer(1));
        }
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, layout);
    }
    if (text.empty()) modules.fail("names no module; allowed is {\"vit\":{\"tp\":1}}");
    return text;
}

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

std::vector<std::uint64_t> parse_seeds(const std::string& text) {
    std::vector<std::uint64_t> seeds;
    for (const std::int64_t one : parse_integers("--sample", text, 0, 9'007'199'254'740'991, most_seeds))
        seeds.push_back(static_cast<std::uint64_t>(one));
    return seeds;
}

void JobOptions::add_to(OptionTable& options, const std::string& no_partition, const std::string& no_sample) {
    options.text("partition", partition, fmt::format("{}", fmt::join(partition::partitioner_names(), "|")),
                 "how the model is cut: by name, or a file of `pipeweaver partition` (default: " + no_partition + ")");
    options.text(
        "module-tp", module_tp, "auto|MODULE=TP[:dealt|:split|:hybrid],...",
        "tensor parallel GPUs of a module of its own, whose copies share the items of a rank: whole ones, parts "
        "of each, or both (default: auto: plan and partition choose it, others take the tp of the job)");
    options.also_as("modules", text_of_modules);
    options.text("sample", sample, "SEEDS|FILES|batch",
                 "what partition and opponent are chosen on: seeds of --dataset like 101-105, batch files separated by "
                 "commas, or the batch itself (default: " +
                     no_sample + ")");
}

JobSample JobOptions::read_sample(const Job& job, const WorkloadOptions& workload) const {
    JobSample read;
    const bool draws = !workload.dataset.empty() || workload.global_batch;
    if (sample == "batch" || (sample.empty() && !draws)) return read;
    const auto& model = job.setup->model;
    const std::string text = sample.empty() ? std::string() : parts_of(sample).front();
    if (sample.empty() || is_of_seeds(text)) {
        if (!draws)
            fail(ErrorKind::input,
                 "--sample: seeds go with --dataset, or --batch and --global-batch; with --batch alone name batch "
                 "files, or batch");
        read.name.dataset = workload.dataset.empty() ? workload.batch : workload.dataset;
        read.name.seeds = sample.empty() ? other_seeds(job.seed) : parse_seeds(sample);
        if (!workload.dataset.empty()) read.name.microbatches = workload.microbatches_of_replica(job);
        for (const std::uint64_t seed : read.name.seeds)
            read.batches.push_back(
                workload.dataset.empty()
                    ? share_of_one(packed(workload.read(model, seed, true).samples, job), job.setup->layout.dp)
                    : workload.drawn(model, seed, read.name.microbatches).microbatches);
    } else {
        read.name.files = parts_of(sample);
        for (const std::string& file : read.name.files)
            read.batches.push_back(share_of_one(
                packed(workloads::without_too_long(workloads::read_batch(file, model), model).samples, job),
                job.setup->layout.dp));
    }
    // A draw of a file may be of samples alone that no microbatch holds, and are left out.
    std::erase_if(read.batches, [](const auto& batch) { return batch.empty(); });
    if (read.batches.empty() && sample.empty()) return {};
    if (read.batches.empty())
        fail(ErrorKind::input,
             "--sample: {} keeps no sample, for --too-long drop leaves out all; allowed are draws with one that fits",
             read.name.text());
    if (read.name.microbatches == 0 && !read.name.seeds.empty())
        read.name.microbatches = static_cast<std::int64_t>(read.batches.front().size());
    // What is taken unasked may be asked for by name, as printed commands do.
    if (!sample.empty() && read.name.seeds != other_seeds(job.seed)) require_all_modules(read, model);
    return read;
}

void JobOptions::fill(Job& job, const WorkloadOptions& workload) const {
    if (!module_tp.empty() && names_a_document(partition))
        fail(ErrorKind::input, "--module-tp: goes without a partition file, which says the layouts of its modules");
    if (!module_tp.empty()) job.layouts = partition::parse_module_tp(module_tp, *job.setup);
    if (names_a_document(partition)) {
        job.fixed = partition::parse_partition(JsonDocument::given("--partition", partition), *job.setup);
    } else if (!partition.empty()) {
        const auto names = partition::partitioner_names();
        if (std::find(names.begin(), names.end(), partition) == names.end())
            fail(ErrorKind::input, "--partition: {}",
                 must_be(partition, one_of(names) + ", or a partition file (.json)"));
        job.partition = partition;
    }
    job.sample = read_sample(job, workload);
}

void BatchOptions::add_to(OptionTable& options) {
    options.choice("assignment", assignment, {"balanced", "in-turn"},
                   "microbatches to replicas: by cost (default: balanced), or each every so many-th");
    options.integer("defer", defer, 1, workloads::most_steps_deferred,
                    "with --packing padded, leave samples with so many items that every microbatch would be padded to "
                    "them for a later step, each at most N times; deferred.jsonl has them (default: take all)");
    options.text("deferred", deferred, "FILE",
                 "the deferred.jsonl of the step before, whose samples go before the batch's");
    options.text("loader", loader, "LOADER",
                 "what feeds the GPUs, a file (docs/input.md) or of disk, nfs, object-store: how long they wait for "
                 "it; where it decides, microbatches are dealt by what they take to load, too");
}

void BatchOptions::fill(Job& job) const {
    if (defer && job.packing != workloads::Packing::padded)
        fail(ErrorKind::input, "--defer: goes with --packing padded, or auto with --target {}: only fixed shapes pad",
             fmt::join(target_options([](const Target& one) { return one.fixed_shapes; }), " or "));
    job.defer = defer;
    job.sharing = assignment == "in-turn" ? partition::Sharing::in_turn : partition::Sharing::balanced;
    if (!loader.empty()) job.loader = loader::find_loader(loader);
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
