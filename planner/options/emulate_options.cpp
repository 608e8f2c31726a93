#include "pipeweaver/planner/emulate_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/ladder.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

namespace pipeweaver::planner {

namespace {

StepRecompute read_recompute(const std::string& given) {
    if (const auto setting = step_recompute_named(given)) return *setting;
    fail(ErrorKind::input, "--recompute: {}; N is 1 or more", must_be(given, one_of(step_recompute_names())));
}

// Of a plan folder with replica-NNN/, or of the only replica's solution file.
std::vector<GivenSchedule> read_schedules(const std::filesystem::path& path, std::size_t replicas) {
    const bool folder = std::filesystem::is_directory(path);
    if (!folder && replicas > 1)
        fail(ErrorKind::input, "{}: is one schedule, {} replicas are asked for: name the folder of their plan",
             path.string(), replicas);
    std::vector<GivenSchedule> given;
    for (std::size_t r = 0; r < replicas; ++r) {
        const auto from = folder ? path / fmt::format("replica-{:03}", r) / "solution.json" : path;
        given.push_back({from, schedule::read_solved(from)});
    }
    return given;
}

// The partition of the plan that the schedule is of.
std::filesystem::path partition_of_plan(const std::filesystem::path& schedule) {
    const bool folder = std::filesystem::is_directory(schedule);
    return (folder ? schedule : std::filesystem::absolute(schedule).parent_path().parent_path()) / "partition.json";
}

// The plan.json of a plan's folder; none: it is of one replica's solution alone.
std::optional<JsonDocument> plan_of(const std::filesystem::path& schedule) {
    const auto file = schedule / "plan.json";
    if (std::error_code ignored; schedule.empty() || !std::filesystem::exists(file, ignored)) return std::nullopt;
    auto plan = JsonDocument::read_large(file);
    plan.require_format("pipeweaver-plan", 1);
    return plan;
}

// The assignment of a plan that its loader dealt, as options with another one would not; empty: it is no such plan.
std::filesystem::path dealt_by_loading(const std::filesystem::path& schedule) {
    const auto plan = plan_of(schedule);
    return plan && plan->root().at("assignment").find("by_loading") ? schedule / "assignment.json" : "";
}

// As much is kept free as the plan kept.
void keep_free_as(const Json& planned, WorkloadOptions& as) {
    const auto kept = planned.find("headroom");
    if (!kept || as.says_headroom) return;
    as.automatic_headroom = false;
    as.headroom = {std::llround(kept->number(0, 1) * 1e6)};
}

// Whether it is the name of a partitioner that decides on its chunks itself.
bool has_own_chunks(const std::string& name) {
    const auto& all = partition::partitioners();
    return std::any_of(all.begin(), all.end(),
                       [&](const partition::Partitioner& one) { return one.name == name && one.own_chunks; });
}

// Places of the batch's samples by id, each taken once.
class Samples {
public:
    explicit Samples(const Batch& batch) : taken_(batch.samples.size(), false) {
        for (std::size_t i = 0; i < batch.samples.size(); ++i) places_.emplace(batch.samples[i].id, i);
    }

    std::size_t take(const Json& id) {
        const auto found = places_.find(id.text());
        if (found == places_.end()) id.fail(fmt::format("sample '{}' is not in the batch", id.text()));
        if (taken_[found->second]) id.fail(fmt::format("sample '{}' is in the assignment twice", id.text()));
        taken_[found->second] = true;
        return found->second;
    }

    void require_all(const Json& root, const Batch& batch) const {
        for (std::size_t i = 0; i < taken_.size(); ++i)
            if (!taken_[i])
                root.fail(fmt::format("lacks sample '{}' of the batch, which has {}", batch.samples[i].id,
                                      batch.samples.size()));
    }

private:
    std::map<std::string, std::size_t, std::less<>> places_;
    std::vector<bool> taken_;
};

workloads::Microbatch read_microbatch(const Json& given, Samples& samples, const Job& job, const Batch& batch) {
    std::vector<std::size_t> members;
    for (const Json& sample : given.at("samples").elements()) members.push_back(samples.take(sample.at("id")));
    if (members.empty()) given.fail("has no samples, allowed are one or more");
    if (const auto why = workloads::why_no_microbatch(members, batch.samples, job.setup->model)) given.fail(*why);
    return workloads::microbatch_of(members, batch.samples, job.setup->model);
}

// Packs the batch as an assignment says (`pipeweaver-assignment/1`: of a plan, of the Python package, or by hand): the
// samples of each microbatch by their ids, the microbatches of each replica in the order that they run in. Of a
// microbatch only the samples' ids are read: tokens, weights, rows and units follow from them. Throws Error{input}
// naming what is missing, twice, unknown, empty or larger than a microbatch of the model may be, and where the replicas
// are not the job's; Error{io}.
void take_assignment(const std::filesystem::path& file, const Job& job, Batch& batch) {
    const auto document = JsonDocument::read_large(file);
    document.require_format("pipeweaver-assignment", 1);
    const auto replicas = document.root().at("replicas");
    const auto wanted = static_cast<std::size_t>(job.setup->layout.dp);
    if (replicas.size() != wanted)
        replicas.fail(fmt::format("are {}, allowed are as many as --dp, {}", replicas.size(), wanted));
    Samples samples(batch);
    batch.microbatches.clear();
    auto& shares = batch.shares.emplace(wanted);
    for (std::size_t r = 0; r < wanted; ++r) {
        const auto mine = replicas[r].at("microbatches");
        if (mine.size() == 0) mine.fail("are none, each replica needs one");
        for (const Json& one : mine.elements()) {
            shares[r].push_back(batch.microbatches.size());
            batch.microbatches.push_back(read_microbatch(one, samples, job, batch));
        }
    }
    samples.require_all(document.root(), batch);
}

bool takes_items_of(const workloads::Module& module, const Batch& batch) {
    return std::any_of(batch.samples.begin(), batch.samples.end(), [&](const workloads::Sample& sample) {
        return std::any_of(sample.items.begin(), sample.items.end(),
                           [&](const workloads::Item& item) { return takes(module, item); });
    });
}

// A shape is one number of items, and one of patches, whatever module takes them.
void require_shapes_apply(const EmulationRequest& request) {
    const auto& modules = request.job.setup->model.modules;
    const auto several = std::count_if(modules.begin(), modules.end(), [&](const workloads::Module& module) {
        return takes_items_of(module, request.batch);
    });
    if (several > 1)
        fail(
            ErrorKind::input,
            "--shapes: pads all items alike, and those of this batch go to {} encoders and generators of '{}'; allowed "
            "is one",
            several, request.job.setup->model.name);
    if (request.target->fixed_shapes && request.job.setup->layout.pp > 1)
        fail(ErrorKind::input,
             "--shapes: goes without --target {} in a pipeline, which pads all microbatches to the largest",
             request.target->option);
}

bool asks_precision(std::string_view what_if) { return what_if == "precision" || what_if.starts_with("precision="); }

constexpr const char* what_if_gradients = "gradients";  // in place of a file

// "precision=vit=bf16" changes the recipe; what names no module is asked of the step as it is.
void take_precision(std::string_view what_if, const emulator::Setup& usual, emulator::Recipe& recipe,
                    emulator::WhatIf& factors, EmulationRequest& request) {
    if (!request.schedules.empty())
        fail(ErrorKind::input, "--what-if: precision goes without --schedule, whose order is of its own times");
    const auto said = what_if.substr(std::min(what_if.size(), std::string_view("precision=").size()));
    const auto& device = workloads::device(usual.cluster.device);
    if (said.find('=') == std::string_view::npos) {
        request.precision = precision_asked(what_if);
        emulator::Recipe in_it = recipe;
        if (request.precision->products) in_it.execution.products = *request.precision->products;
        return check_precision(in_it, usual.model, device);
    }
    request.as_it_is = recipe;
    recipe = with_precision(std::move(recipe), "--what-if", said);
    check_precision(recipe, usual.model, device);
    factors.precision = said;
}

void require_sparse(const workloads::Model& of) {
    if (!std::any_of(of.modules.begin(), of.modules.end(), may_leave_pairs_out))
        fail(ErrorKind::input,
             "--what-if: sparsity is of diffusion transformers with dense attention, and '{}' has none", of.name);
}

// What --what-if changes of the setup.
emulator::Setup changed_by(const std::string& what_if, const emulator::Setup& usual, EmulationRequest& request) {
    emulator::WhatIf factors;
    emulator::Recipe trained = usual.recipe;
    request.lengths = what_if == "sparsity";
    if (request.lengths)
        require_sparse(usual.model);
    else if (asks_precision(what_if))
        take_precision(what_if, usual, trained, factors, request);
    else if (!what_if.empty() && !request.gradients)
        factors = emulator::read_what_if(what_if, usual.model, usual.layout);
    return with_recipe(usual, trained, std::move(factors));
}

constexpr int most_zero = 3;

class Changes {
public:
    Changes(const EmulateOptions& options, const EmulationRequest& request, std::uint64_t seed, const Executor& execute)
        : options_(options),
          layout_(request.job.setup->layout),
          zero_(request.job.setup->recipe.zero),
          seed_(seed),
          execute_(execute) {}

    std::vector<FittingChange> all() {
        add_zero({}, options_);
        const bool recomputes_less = options_.recompute && *options_.recompute != fully();
        if (recomputes_less) {
            EmulateOptions changed = options_;
            changed.recompute = fully();
            const std::string say = "--recompute full";
            if (!add(say, changed) && found_.empty()) add_zero(say + " ", changed);
        }
        add_wider("--tp", layout_.tp, &WorkloadOptions::tp);
        add_wider("--pp", layout_.pp, &WorkloadOptions::pp);
        return std::move(found_);
    }

private:
    static StepRecompute fully() { return {.everywhere = emulator::Recompute::full}; }

    bool add(const std::string& say, const EmulateOptions& changed) {
        MadeRequest made = changed.try_request(seed_, execute_);
        if (!made.request) return false;
        made.request->loader.reset();
        const MadeEmulation run = try_emulate(*made.request, execute_);
        if (run.emulation) found_.push_back({say, fullest_peak(*run.emulation)});
        return run.emulation.has_value();
    }

    // Copies of the weights share out what the stage says.
    void add_zero(const std::string& before, const EmulateOptions& options) {
        if (layout_.weight_copies() == 1) return;
        for (int zero = zero_ + 1; zero <= most_zero; ++zero) {
            EmulateOptions changed = options;
            changed.workload.overrides.zero = zero;
            if (add(fmt::format("{}--zero {}", before, zero), changed)) return;
        }
    }

    // On the same GPUs, for the same batch.
    void add_wider(std::string_view option, std::int64_t degree, Degree WorkloadOptions::*member) {
        const bool same_batch = !options_.workload.batch.empty() || options_.workload.global_batch;
        if (!same_batch || layout_.dp % 2 != 0) return;
        EmulateOptions changed = options_;
        changed.workload.*member = {2 * degree, false};
        changed.workload.dp = {layout_.dp / 2, false};
        add(fmt::format("{} {} --dp {}", option, 2 * degree, layout_.dp / 2), changed);
    }

    const EmulateOptions& options_;
    const emulator::Layout& layout_;
    int zero_;
    std::uint64_t seed_;
    const Executor& execute_;
    std::vector<FittingChange> found_;
};

}  // namespace

void EmulateOptions::add_to(OptionTable& options) {
    workload.add_to(options);
    options.group("The step");
    job.add_to(options, partition::megatron_partition, "batch");
    batch.add_to(options);
    options.integer("chunks", chunks, 1, 1024,
                    "virtual stages of a rank in all partitions but dip, modules and files (default 1)");
    options.text("layers", layers, "N,N,...|MODULE:N,N,.../...",
                 "layers of the backbone in each stage, in place of --partition, where encoders lie on the first and "
                 "generators on the last; or of every module that is named");
    options.choice("sample-packing", sample_packing, packing_names(),
                   "how the samples are packed that the partition is cut on (default: as --packing)");
    options.text("assigned", assigned, "FILE",
                 "an assignment.json, of a plan or of pipeweaver.data: its microbatches on its replicas, in its order, "
                 "in place of --packing and --assignment");
    options.choice("target", target, target_options(),
                   "what runs the step: with fixed shapes every microbatch is padded to the largest");
    options.text("policy", policy, "POLICY", "the schedule, of `pipeweaver list policies` (default: 1f1b)");
    options.text("schedule", schedule, "PATH",
                 "a plan folder, or the solution file of the only replica, in place of a policy");
    options.parsed(
        "recompute", fmt::format("{}", fmt::join(step_recompute_names(), "|")),
        "what backwards compute again; blocks:N: the first N blocks of each module in each stage; by-rank: "
        "every rank what costs it least time and fits; by-rank:full/blocks:3/none: of each rank its own "
        "(default: the least with which the step fits the memory)",
        [this](const std::string& given) { recompute = read_recompute(given); },
        [this] { return recompute ? std::optional(name_of(*recompute)) : std::nullopt; });
    options.text("what-if", what_if, "FILE|gradients|precision...|sparsity",
                 "factors on devices, links, operators, modules (JSON or YAML); or gradients: which of them to "
                 "compress; precision: each module in each "
                 "format of products; precision=vit=bf16,...: these; precision=fp8:5%: the layers to have in it for "
                 "a step that much shorter; or sparsity: from which length sparse attention of a diffusion "
                 "transformer pays, and each layout of its context parallelism");
    jitter.add_to(options);
    options.integer("shapes", shapes, 1, 64,
                    "pad microbatches so that they have so many shapes at most, for stacks that compile each anew");
    options.parsed(
        "compile-time", "TIME",
        "what such a stack takes for a new shape, like 40s: with --shapes and --compile-steps, the number of shapes up "
        "to --shapes that is cheapest",
        [this](const std::string& text) { compile_time = parse_duration(text); },
        [this] { return compile_time ? std::optional(fmt::format("{}ns", compile_time->count())) : std::nullopt; });
    options.integer("compile-steps", compile_steps, 1, 1'000'000'000,
                    "steps like this one, with the same shapes, that follow");
    options.flag("any-memory", any_memory, "emulate even what does not fit the memory");
    options.flag("no-reuse", no_reuse, "replay every kernel on its own: slower, the same result");
}

void EmulateOptions::check() const {
    if (job.module_tp == "auto" || job.module_tp.find("=auto") != std::string::npos)
        fail(ErrorKind::input, "--module-tp: is '{}', and 'auto' is chosen by plan and partition; allowed is MODULE=TP",
             job.module_tp);
    const bool cuts = !(job.partition.empty() && job.module_tp.empty() && chunks == 1);
    if (!layers.empty() && (cuts || !schedule.empty()))
        fail(ErrorKind::input, "--layers: goes without --partition, --module-tp, --chunks and --schedule");
    if (!schedule.empty() && (cuts || !policy.empty() || recompute))
        fail(ErrorKind::input,
             "--schedule: has its own partition, order and recomputation; --partition, --module-tp, --chunks, --policy "
             "and --recompute go without it");
    if (!schedule.empty() && shapes)
        fail(ErrorKind::input, "--shapes: goes without --schedule, whose microbatches are those of its plan");
    if (compile_time.has_value() != compile_steps.has_value() || (compile_time && !shapes))
        fail(ErrorKind::input, "--compile-time: goes with --compile-steps and --shapes");
    if (std::error_code ignored; !schedule.empty() && !std::filesystem::exists(schedule, ignored))
        fail(ErrorKind::io, "--schedule: there is no file or folder '{}'", schedule);
    if (!assigned.empty() && !(workload.packing.empty() && batch.assignment.empty() && !batch.defer))
        fail(ErrorKind::input,
             "--assigned: says which samples are together and where; --packing, --assignment and "
             "--defer go without it");
    if (chunks > 1 && (names_a_document(job.partition) || has_own_chunks(job.partition)))
        fail(ErrorKind::input, "--chunks: goes with all partitions but dip, modules and files, which have their own");
}

// Samples are packed and shared out, and memory is kept free, as the plan folder of --schedule says, unless options say
// it.
std::pair<WorkloadOptions, BatchOptions> EmulateOptions::as_planned() const {
    std::pair as(workload, batch);
    if (!target.empty()) as.first.target = target_called(target);
    const auto plan = plan_of(schedule);
    if (!plan) return as;
    const Json was = plan->root().at("asked");
    if (as.first.packing.empty()) as.first.packing = was.at("packing").text();
    as.first.pack_as(was);
    keep_free_as(was, as.first);
    if (as.second.assignment.empty()) as.second.assignment = plan->root().at("assignment").at("method").text();
    return as;
}

// What the partition is cut on: the batch itself, or a sample, either packed in a way of its own.
void EmulateOptions::fill_cut(Job& of, EmulationRequest& request) const {
    WorkloadOptions as = workload;
    if (!sample_packing.empty()) as.packing = sample_packing;
    const workloads::Packing own = std::exchange(of.packing, as.how_packed());
    (job.sample.empty() ? JobOptions{job.partition, "batch", job.module_tp} : job).fill(of, as);
    if (!sample_packing.empty() && of.sample.batches.empty()) {
        request.cut_on = request.batch;
        request.cut_on->microbatches = workloads::pack(request.batch.samples, of.setup->model, of.packing,
                                                       of.pipelines(of.setup->layout), request.batch.drawn_into);
    }
    of.packing = own;
}

EmulationRequest EmulateOptions::request(std::uint64_t seed, const Executor& execute) const {
    check();
    EmulationRequest request;
    const auto [as, shared] = as_planned();
    auto [asked, given] = as.request(seed, execute);
    shared.fill(asked);
    shared.carry(asked, given);
    std::filesystem::path dealt = assigned;
    if (dealt.empty()) dealt = dealt_by_loading(schedule);
    if (!dealt.empty()) take_assignment(dealt, asked, given);
    request.assigned = assigned;
    request.batch = std::move(given);
    fill_cut(asked, request);
    if (asked.partition.empty())
        asked.partition =
            partition::asks_for_copies(asked.layouts) ? partition::modules_partition : partition::megatron_partition;
    request.recompute = recompute;
    if (!policy.empty()) request.policy = policy;
    request.chunks_per_rank = chunks;
    request.any_memory = any_memory;
    request.target = &planner::target(target_called(target));
    if (!layers.empty()) {
        auto cut = partition::cut_by_layers(*asked.setup, partition::parse_layers(layers));
        request.chunks_per_rank = cut.chunks_per_rank;
        asked.fixed = partition::PartitionFile{std::move(cut), {}};
    }
    request.loader = asked.loader;
    if (!schedule.empty()) asked.loader.reset();  // its plan dealt
    request.schedule = schedule;
    if (!schedule.empty()) {
        request.schedules = read_schedules(schedule, static_cast<std::size_t>(asked.setup->layout.dp));
        asked.fixed = partition::read_partition(partition_of_plan(schedule), *asked.setup);
    }
    request.gradients = what_if == what_if_gradients;
    request.jitter = jitter.request(static_cast<std::int64_t>(seed));
    auto setup = std::make_shared<emulator::Setup>(changed_by(what_if, *asked.setup, request));
    if (no_reuse) setup->store.reset();
    asked.setup = std::move(setup);
    request.job = std::move(asked);
    if (shapes) {
        require_shapes_apply(request);
        request.shapes = static_cast<std::size_t>(*shapes);
        if (compile_time) request.compiling = {*compile_time, *compile_steps};
    }
    return request;
}

MadeRequest EmulateOptions::try_request(std::uint64_t seed, const Executor& execute) const {
    try {
        return {request(seed, execute), {}};
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::io) throw;
        return {{}, error};
    }
}

std::vector<FittingChange> fitting_changes(const EmulateOptions& options, const EmulationRequest& request,
                                           std::uint64_t seed, const Executor& execute) {
    return Changes(options, request, seed, execute).all();
}

}  // namespace pipeweaver::planner
