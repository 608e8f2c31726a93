#include "pipeweaver/planner/workload_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/frameworks/built_encoders.hpp"
#include "pipeweaver/planner/anchor.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/training_cost.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "planner/options/attention_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace pipeweaver::planner {

using emulator::Recipe;

std::vector<std::string> packing_names() {
    std::vector<std::string> names;
    for (const workloads::Packing one : workloads::packings()) names.emplace_back(name_of(one));
    return names;
}

namespace {

// What options of the recipe say: nothing where it is the recipe's own.
template <class Value>
std::function<std::optional<std::string>()> said(const std::optional<Value>& value) {
    return [&value]() -> std::optional<std::string> {
        if (!value) return std::nullopt;
        if constexpr (std::is_same_v<Value, Bytes>)
            return fmt::format("{}B", value->count);
        else if constexpr (std::is_same_v<Value, Duration>)
            return fmt::format("{}ns", value->count());
        else if constexpr (std::is_same_v<Value, Bandwidth>)
            return fmt::format("{}B/s", value->bytes_per_second);
        else if constexpr (std::is_same_v<Value, double>)
            return text_of(*value);
        else
            return std::to_string(*value);
    };
}

// "3%" or "0": a part without its unit would be read as per cent by one and as a fraction by another.
std::optional<double> percent_in(const std::string& text, double most) {
    double percent = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, percent, std::chars_format::fixed);
    const std::string unit(after, end);
    const bool has_unit = unit == "%" || (unit.empty() && percent == 0);
    if (error != std::errc{} || !has_unit || !(percent >= 0 && percent <= most)) return std::nullopt;
    return percent;
}

emulator::Headroom headroom_of(const std::string& text) {
    constexpr double most_percent = 50;
    if (const auto percent = percent_in(text, most_percent)) return {std::llround(*percent * 10'000)};
    fail(ErrorKind::input, "{}",
         must_be(text, fmt::format("auto, 0 or a percentage up to {}%, like 3%", most_percent)));
}

double offloaded_of(const std::string& text) {
    constexpr double all = 100;
    if (const auto percent = percent_in(text, all)) return *percent;
    fail(ErrorKind::input, "{}", must_be(text, "0 or a percentage up to 100%, like 50%"));
}

double price_of(const std::string& text) {
    constexpr double most_usd = 10'000;
    double price = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, price, std::chars_format::fixed);
    if (error != std::errc{} || after != end || !(price > 0 && price <= most_usd))
        fail(ErrorKind::input, "{}", must_be(text, fmt::format("a number above 0 up to {} USD, like 2.5", most_usd)));
    return price;
}

// Of many kernels or tasks the sum must still be a time.
Duration host_time_of(const std::string& text) {
    const Duration time = parse_duration(text);
    if (time > std::chrono::seconds(1)) fail(ErrorKind::input, "{}", must_be(text, "a time up to 1s"));
    return time;
}

emulator::Launched launched_of(const std::string& text) {
    for (const auto launched : {emulator::Launched::graphs, emulator::Launched::eager})
        if (text == name_of(launched)) return launched;
    fail(ErrorKind::input, "{}", must_be(text, "graphs or eager"));
}

Bandwidth host_link_of(const std::string& text) {
    const Bandwidth link = parse_bandwidth(text);
    if (link < Bandwidth{1'000'000}) fail(ErrorKind::input, "{}", must_be(text, "a speed from 1MB/s"));
    return link;
}

template <class Value>
void put(const std::optional<Value>& given, Value& value) {
    if (given) value = *given;
}

// So many of the samples, in an order that the seed decides (Fisher and Yates, as far as they go). Pre: there are as
// many.
std::vector<workloads::Sample> draw_of(std::vector<workloads::Sample> samples, std::size_t count, std::uint64_t seed) {
    Random random(seed);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t other = i + static_cast<std::size_t>(random.below(samples.size() - i));
        if (other != i) std::swap(samples[i], samples[other]);
    }
    samples.resize(count);
    return samples;
}

// What no setting of a launch turns it to is not what its settings are tried from.
void recompute_as(workloads::EncoderRecompute how, workloads::Built& built) {
    if (how == built.recompute) return;
    const bool is_turned = !built.recompute_by.empty() && recomputing_otherwise(built).recompute == how;
    if (is_turned)
        built = recomputing_otherwise(built);
    else
        built.recompute_by = {};
    built.recompute = how;
}

constexpr std::string_view as_built = "as-built";

void require_same(const Anchor& anchor, const char* what, const std::string& its, const std::string& asked) {
    if (its == asked) return;
    fail(ErrorKind::input, "--anchor: {} is of {} {}, and {} is asked for; an anchor corrects what it was measured on",
         anchor.found.from, what, its, asked);
}

}  // namespace

void RecipeOverrides::add_to(OptionTable& options) {
    options.parsed(
        "zero", "auto|0|1|2|3",
        "what replicas share out: 0 nothing, 1 the optimizer's state, 2 gradients, 3 weights; or auto, chosen with "
        "the layout (default: the recipe's)",
        [this](const std::string& text) {
            any_zero = text == "auto";
            if (!any_zero) zero = static_cast<int>(parse_integer("--zero", text, 0, 3));
        },
        [this]() -> std::optional<std::string> {
            if (any_zero) return "auto";
            return zero ? std::optional(std::to_string(*zero)) : std::nullopt;
        });
    options.parsed(
        "bucket", "SIZE",
        "reduce gradients in buckets of this size beside the last backwards; 0B: in one piece after them "
        "(default: the recipe's)",
        [this](const std::string& text) { bucket = parse_bytes(text); }, said(bucket));
    options.parsed(
        "launched", "graphs|eager",
        "how layers' kernels are launched: graphs, the host is never waited for; eager, one by one, with the recipe's "
        "times of the host or those of such runs of its stack (default: the recipe's)",
        [this](const std::string& text) { launched = launched_of(text); },
        [this]() -> std::optional<std::string> {
            return launched ? std::optional(std::string(name_of(*launched))) : std::nullopt;
        });
    options.parsed(
        "launch", "TIME", "of the host for each kernel that it launches (default: the recipe's)",
        [this](const std::string& text) { launch = host_time_of(text); }, said(launch));
    options.parsed(
        "action", "TIME", "of the host for each task of the schedule (default: the recipe's)",
        [this](const std::string& text) { action = host_time_of(text); }, said(action));
    options.parsed(
        "overlap-slowdown", "FACTOR",
        "time of compute kernels beside traffic of replicas, over their time alone (default: the recipe's)",
        [this](const std::string& text) { overlap_slowdown = parse_number("--overlap-slowdown", text, 1, 10); },
        said(overlap_slowdown));
    options.parsed(
        "split-slowdown", "FACTOR",
        "time of a backward in two parts, over that of the same kernels in a whole one (default: the recipe's)",
        [this](const std::string& text) { split_slowdown = parse_number("--split-slowdown", text, 1, 10); },
        said(split_slowdown));
    options.text("precision", precision, "FORMAT|MODULE=FORMAT,...",
                 "what products of blocks are in: bf16, fp8, fp8_block, nvfp4 or fp32 of all, or by module and layers, "
                 "like vit=bf16,llm=fp8,llm:0-3=bf16 (default: the recipe's)");
    options.parsed(
        "host-link", "SPEED", "between a GPU and its host, for offloading (default: the recipe's)",
        [this](const std::string& text) { host_link = host_link_of(text); }, said(host_link));
    add_offload(options);
}

void RecipeOverrides::add_offload(OptionTable& options) {
    options.parsed(
        "offload-optimizer", "PERCENT",
        "of the optimizer's states that lie on the host, which updates what belongs to them (default: the recipe's)",
        [this](const std::string& text) { offload_percent = offloaded_of(text); },
        [this]() -> std::optional<std::string> {
            return offload_percent ? std::optional(text_of(*offload_percent) + "%") : std::nullopt;
        });
}

emulator::Recipe RecipeOverrides::over(emulator::Recipe recipe) const {
    const bool own_buckets = recipe.bucket > Bytes{};
    put(zero, recipe.zero);
    put(bucket, recipe.bucket);
    const bool has_launch = launch.value_or(Duration{}) > Duration{};
    if (has_launch && launched == emulator::Launched::graphs)
        fail(ErrorKind::input, "--launch: goes with --launched eager; with graphs the host is never waited for");
    if (launched) recipe = launched_as(recipe, *launched);
    put(launch, recipe.launch);
    if (has_launch) recipe.launched = emulator::Launched::eager;
    put(action, recipe.action);
    put(overlap_slowdown, recipe.overlap_slowdown);
    put(split_slowdown, recipe.split_slowdown);
    put(host_link, recipe.host_link);
    if (!precision.empty()) recipe = with_precision(std::move(recipe), "--precision", precision);
    if (offload_percent) recipe.state = with_offloaded(recipe.state, *offload_percent / 100);
    if (recipe.zero < 2 || recipe.bucket == Bytes{}) return recipe;
    if (own_buckets && !bucket)
        fail(ErrorKind::input,
             "--zero: is {}, but the recipe {} reduces gradients in buckets, which goes with 0 and 1; or say --bucket "
             "0B",
             recipe.zero, recipe.name);
    fail(ErrorKind::input,
         "--bucket: goes with --zero 0 and 1; with {} gradients are reduced in every backward, layer by layer",
         recipe.zero);
}

std::optional<CostFile> find_costs(const std::string& path) {
    if (path.empty()) return std::nullopt;
    return CostFile{path, sha256(read_file(path))};
}

costdb::CostDatabase costs_of(const std::optional<CostFile>& file, const workloads::Cluster& cluster) {
    if (!file) return costdb::CostDatabase::embedded(cluster.device);
    auto costs = costdb::CostDatabase::over_embedded(file->path, cluster.device);
    if (find_costs(file->path)->sha256 != file->sha256)
        fail(ErrorKind::io, "{}: has changed while it was read", file->path);
    return costs;
}

Needed needed_model(const std::string& given) {
    return {!given.empty(), "--model MODEL", "`pipeweaver list models` names the known ones"};
}

Needed needed_cluster(const std::string& given) {
    return {!given.empty(), "--cluster CLUSTER", "`pipeweaver list clusters` names the known ones"};
}

void add_costs(OptionTable& options, std::string& path) {
    options.text("costs", path, "FILE",
                 "operator costs from this file of `costdb import`; what it lacks: from the embedded tables");
}

void WorkloadOptions::add_to(OptionTable& options) {
    add_machine(options);
    add_network(options);
    add_layout(options);
    add_samples(options);
    options.integer("microbatches", microbatches, 1, 100'000,
                    "microbatches of each replica to draw with --dataset (default 16)");
    add_global_batch(options);
    add_packing(options, true);
    add_headroom(options);
    add_costs(options, costs);
    options.parsed("tokens", "TOKENS", "of the whole training run, like 300B: the days, GPU-hours and USD it takes",
                   [this](const std::string& text) { training_tokens = parse_tokens(text); });
    options.parsed("price", "USD", "of a GPU-hour, like 2.5 (default: the cluster's, where it has one)",
                   [this](const std::string& text) { price_per_gpu_hour = price_of(text); });
    add_recipe(options);
    options.text("anchor", anchor, "FILE",
                 "a measured launch of one GPU or node, whose step and peak correct the device's and recipe's (JSON or "
                 "YAML; emulate, plan)");
    overrides.add_to(options);
    add_encoders(options);
    options.flag(
        "deal-images", deal_images,
        "encoders whose framework has a switch for it take some whole images on each context parallel group, in "
        "place of all on every one (Megatron-Bridge: model.vision_dp_when_cp=true)");
    add_trained(options);
}

void WorkloadOptions::add_apart_from_layout(OptionTable& options) {
    add_machine(options);
    add_samples(options);
    add_global_batch(options);
    add_packing(options, false);
    add_headroom(options);
    add_costs(options, costs);
    add_recipe(options);
    overrides.add_to(options);
    add_encoders(options);
    add_trained(options);
}

void WorkloadOptions::add_machine(OptionTable& options) {
    options.group("Model, machine and batch");
    options.text("model", model, "MODEL",
                 "a model of `pipeweaver list models`, a model file (JSON or YAML), or hf:CONFIG.json (required)");
    options.text("cluster", cluster, "CLUSTER",
                 "NAME:GPUS of `pipeweaver list clusters`, or a cluster file (JSON or YAML) (required)");
}

void WorkloadOptions::add_network(OptionTable& options) {
    options.text("network", network, "NETWORK",
                 "how high bandwidth joins the GPUs: dgx-8, nvl-36, nvl-72, nvl-576, cube-64, ring-k2, ring-k3 or a "
                 "network file (default: as the cluster's nodes do)");
    options.text("rack", rack, "GPUS[:OVERSUBSCRIPTION]",
                 "GPUs of a rack, and how many times what leaves it its nodes can send, like 64:4 (default: no racks)");
}

void WorkloadOptions::add_samples(OptionTable& options) {
    options.text("batch", batch, "FILE", "a batch file (.jsonl, one sample a line)");
    options.text("dataset", dataset, "DATASET", "draw the batch from this data set of `pipeweaver list datasets`");
}

void WorkloadOptions::add_recipe(OptionTable& options) {
    options.group("How the framework trains");
    options.text("recipe", recipe, "RECIPE",
                 "a recipe of `pipeweaver list recipes`, or a file (JSON or YAML) (default: megatron-core)");
}

void WorkloadOptions::add_headroom(OptionTable& options) {
    options.parsed(
        "headroom", "auto|PERCENT",
        "part of a GPU's usable memory that is kept free, like 3%; 0: none; auto: what shapes that vary may take "
        "unless the target's launches have the allocator's segments expand, else 3% (default: of plans auto, of what "
        "is emulated 3%)",
        [this](const std::string& text) {
            says_headroom = true;
            automatic_headroom = text == automatic;
            headroom = automatic_headroom ? emulator::usual_headroom : headroom_of(text);
        },
        [this]() -> std::optional<std::string> {
            const bool is_usual = usual_headroom_is_auto ? automatic_headroom
                                                         : !automatic_headroom && headroom == emulator::usual_headroom;
            if (is_usual) return std::nullopt;
            if (automatic_headroom) return std::string(automatic);
            return text_of_headroom(headroom);
        });
}

void WorkloadOptions::add_packing(OptionTable& options, bool with_replicas) {
    std::vector<std::string> ways = packing_names();
    ways.emplace_back(automatic);
    options.choice(
        "packing", packing, ways,
        "samples to microbatches: in given order (default: given); the longest first; even in every module's "
        "FLOPs, a tenth more than these; even in what fixed shapes are padded to; or, in plans, the best of "
        "these on the sample");
    if (with_replicas)
        options.flag("equal-microbatches", equal_microbatches,
                     "equally many microbatches for each replica: of those packed in another way than balanced, the "
                     "fullest are parted until they are (default: where what --target of a plan names demands it)");
    options.integer("microbatch-tokens", microbatch_tokens, 1, 1'000'000'000,
                    "positions of the backbone that a microbatch holds at most (default: microbatch_tokens of the "
                    "model)");
    options.choice("too-long", too_long, workloads::too_long_names(),
                   "a sample that is larger than a microbatch: is an error (default of a batch file; of a data set: it "
                   "is cut), is dropped, or has a microbatch of its own");
}

void add_split(OptionTable& options, std::string& split) {
    options.choice("split", split, {"auto", "never", "always"},
                   "split backwards into input and weight gradients: where it makes the step shorter (default: auto), "
                   "never, or always");
}

Split split_of(const std::string& split) {
    return split == "never" ? Split::never : split == "always" ? Split::always : Split::automatic;
}

void WorkloadOptions::pack_as(const Json& asked) {
    const auto tokens = asked.find("microbatch_tokens"), of_long = asked.find("too_long");
    if (!microbatch_tokens && tokens) microbatch_tokens = tokens->integer(1);
    if (too_long.empty() && of_long) too_long = of_long->one_of({"error", "drop", "own"});
    if (const auto equal = asked.find("equal_microbatches"))
        equal_microbatches = equal_microbatches || equal->boolean();
}

workloads::Packing WorkloadOptions::how_packed() const {
    for (const workloads::Packing one : workloads::packings())
        if (packing == name_of(one)) return one;
    return workloads::Packing::given;
}

std::vector<Needed> WorkloadOptions::needed(bool with_batch) const {
    std::vector<Needed> all{needed_model(model), needed_cluster(cluster)};
    if (with_batch)
        all.push_back(
            {!batch.empty() || !dataset.empty(), "--batch FILE or --dataset DATASET", "the samples of a step"});
    return all;
}

void WorkloadOptions::check() const {
    require_given(needed(false));
    if (!batch.empty() && !dataset.empty())
        fail(ErrorKind::input, "--batch, --dataset: exactly one of the two is needed");
    if (packing == automatic)
        fail(ErrorKind::input, "--packing: auto is for plans; allowed are {}", fmt::join(packing_names(), ", "));
    if (!batch.empty() && microbatches)
        fail(ErrorKind::input, "--microbatches: goes with --dataset; a batch file is packed as it is");
    if (global_batch && microbatches)
        fail(ErrorKind::input,
             "--global-batch, --microbatches: allowed is one of the two, what all replicas train in a step or what "
             "each does");
    if (global_batch && dataset.empty() && batch.empty())
        fail(ErrorKind::input, "--global-batch: goes with --dataset or --batch, which it draws samples of");
    if (global_batch && global_batch->of_microbatches && !batch.empty())
        fail(ErrorKind::input,
             "--global-batch: is {}, but of a batch file samples are drawn; allowed is a number of samples",
             global_batch->text());
}

workloads::Model WorkloadOptions::found_model() const {
    workloads::Model found = model_read ? *model_read : workloads::find_model(model);
    const bool is_said = found.microbatch_tokens_of_file != 0;
    const bool has_samples = !batch.empty() || (global_batch && !global_batch->of_microbatches);
    if (microbatch_tokens) {
        if (is_said) found.microbatch_tokens_of_file = found.microbatch_tokens;
        found.microbatch_tokens = *microbatch_tokens;
    } else if (!is_said && has_samples) {
        found.microbatch_tokens = workloads::usual_latents(found);
        // No rule bounds a clip of its own size: a larger one is packed alone.
        if (found.video.keeps_sizes()) found.too_long = workloads::TooLong::own;
    }
    if (!too_long.empty()) found.too_long = workloads::too_long_named(too_long);
    build_encoders(found);
    settle_trained(found);
    set_sparsity(found, sparsity);
    set_contexts(found, module_context, cp.number);
    return found;
}

workloads::Cluster WorkloadOptions::found_cluster() const {
    workloads::Cluster found = workloads::find_cluster(cluster);
    if (!network.empty()) {
        found = workloads::with_network(std::move(found), workloads::find_network(network));
        workloads::require_links(found, "--network");
    }
    if (rack.empty()) return found;
    constexpr std::int64_t most_gpus = 1'000'000;
    constexpr double most_over = 1000;
    const std::size_t colon = rack.find(':');
    const auto gpus = integer_in(rack.substr(0, colon), 1, most_gpus);
    const auto over = colon == std::string::npos ? std::optional(1.0) : number_in(rack.substr(colon + 1), 1, most_over);
    if (!gpus || !over)
        fail(ErrorKind::input, "--rack: {}",
             must_be(rack, "GPUs and their oversubscription from 1 to 1000, like 64:4"));
    if (const auto why = workloads::why_no_racks(found, *gpus)) fail(ErrorKind::input, "--rack: {}", *why);
    return workloads::with_racks(std::move(found), *gpus, *over);
}

emulator::Setup WorkloadOptions::setup() const {
    check();
    return setup(find_costs(costs));
}

emulator::Setup WorkloadOptions::setup(const std::optional<CostFile>& file) const {
    emulator::Setup setup{found_model(), found_cluster(), {}, nullptr};
    if (price_per_gpu_hour) setup.cluster.price_per_gpu_hour = *price_per_gpu_hour;
    setup.store = std::make_shared<emulator::LayerStore>(store_bytes);
    if (recipe_read)
        setup.recipe = *recipe_read;
    else if (!recipe.empty())
        setup.recipe = emulator::find_recipe(recipe);
    setup.recipe = overrides.over(std::move(setup.recipe));
    if (!anchor.empty() && !anchor_read) fail(ErrorKind::input, "--anchor: is for emulate, plan, check and recommend");
    if (anchor_read) setup.recipe = anchored(std::move(setup.recipe), *anchor_read, setup.cluster.device);
    emulator::check(setup.recipe, setup.model, workloads::device(setup.cluster.device));
    if (overrides.offload_percent.value_or(0) > 0)
        setup.model.assumed.emplace_back(
            "states on the host: their gradients and weights pass its link; what the host takes for the update is not "
            "counted");
    setup.headroom = headroom;
    setup.costs =
        known_costs ? known_costs : std::make_shared<const costdb::CostDatabase>(costs_of(file, setup.cluster));
    return setup;
}

Job WorkloadOptions::job(std::uint64_t seed, const Executor& execute) const { return job(seed, execute, nullptr); }

// `given`: is filled with the batch of a file, where there is one.
Job WorkloadOptions::job(std::uint64_t seed, const Executor& execute, Batch* given) const {
    check();
    Job job;
    job.costs = find_costs(costs);
    emulator::Setup setup = this->setup(job.costs);
    require_dealt(setup.model);
    job.seed = seed;
    job.packing = how_packed();
    job.equal_microbatches = equal_microbatches;
    job.training_tokens = training_tokens;
    if (given != nullptr && !batch.empty()) *given = read(setup.model, seed);
    std::optional<std::int64_t> ranks;
    if (!choose(setup)) {
        setup.layout = layout(setup);
        workloads::pad_as_built(setup.model, setup.layout.tp);
        emulator::check(setup.layout, setup.cluster, setup.model, setup.recipe.execution.experts.tensor_parallel);
        setup.layout.placement = emulator::best_placement(setup);
        ranks = setup.layout.pp;
    }
    if (automatic_headroom) setup.headroom = headroom_for(setup.model, some_microbatches(setup.model, seed), ranks);
    if (!ranks) choose_layout(setup, job, given, execute);
    if (given != nullptr) {
        given->microbatches = workloads::pack(given->samples, setup.model, how_packed(), job.pipelines(setup.layout));
        require_one_step(*given, setup.layout.dp);
    }
    job.setup = std::make_shared<const emulator::Setup>(std::move(setup));
    // Options alone ask for the same where the batch is a file's or drawn, and model, recipe and costs are read.
    if (!batch_text && !known_costs && !model_read && !recipe_read) {
        job.words = values_of(with_chosen(job));
        // What of a global batch a command draws does not follow from its replicas.
        if (global(*job.setup)) job.words->set("seed", std::to_string(seed));
    }
    return job;
}

Request WorkloadOptions::request(std::uint64_t seed, const Executor& execute) const {
    require_given(needed());
    check();
    Request request;
    request.job = job(seed, execute, &request.batch);
    if (!batch.empty()) return request;
    // Of a data set, once the layout is known.
    const emulator::Setup& setup = *request.job.setup;
    request.batch.name = fmt::format("{} (seed {})", dataset, seed);
    const auto all = global(setup);
    request.batch.drawn = true;
    if (!all) request.batch.drawn_microbatches = microbatches_of_replica(request.job);
    const GlobalBatch number = all.value_or(GlobalBatch{request.batch.drawn_microbatches * setup.layout.dp, true});
    if (number.of_microbatches) request.batch.drawn_into = static_cast<std::size_t>(number.number);
    // The same microbatches in every layout, as far as its replicas need not have equally many.
    const auto pipelines =
        request.job.equal_microbatches ? request.job.pipelines(setup.layout) : workloads::Pipelines{};
    auto batch_drawn = drawn(setup.model, seed, number, pipelines);
    request.batch.samples = std::move(batch_drawn.samples);
    request.batch.dropped = std::move(batch_drawn.dropped);
    request.batch.microbatches = std::move(batch_drawn.microbatches);
    return request;
}

// The batch file of a step: all its samples, or so many of them as a seed draws.

Batch WorkloadOptions::read(const workloads::Model& of, std::uint64_t seed, bool may_be_empty) const {
    Batch read;
    read.name = batch;
    auto samples = batch_text ? workloads::parse_batch(batch, *batch_text, of) : workloads::read_batch(batch, of);
    const std::size_t all = samples.size();
    const std::size_t wanted = global_batch ? static_cast<std::size_t>(global_batch->number) : all;
    if (wanted > all)
        fail(ErrorKind::input, "--global-batch: is {}, but {} has {} samples: allowed are at most as many", wanted,
             batch, all);
    if (wanted < all) {
        samples = draw_of(std::move(samples), wanted, seed);
        read.name = fmt::format("{} of the {} samples of {}, seed {}", wanted, all, batch, seed);
    }
    const bool any = std::any_of(samples.begin(), samples.end(), [&](const auto& one) { return holds(of, one); });
    if (may_be_empty && !any && of.too_long == workloads::TooLong::drop) return read;
    auto kept = workloads::without_too_long(std::move(samples), of);
    read.samples = std::move(kept.samples);
    read.dropped = std::move(kept.dropped);
    return read;
}

// A data set that is taken for a step would be planned as one.
void WorkloadOptions::require_one_step(const Batch& given, std::int64_t replicas) const {
    const std::size_t of_replica = given.microbatches.size() / static_cast<std::size_t>(replicas);
    const bool is_step = given.samples.size() <= sizes.samples_of_step || of_replica <= sizes.microbatches_of_step;
    if (global_batch || batch_text || is_step) return;
    fail(
        ErrorKind::input,
        "--batch: {} has {} samples, {} microbatches of each replica, which is much for one step: add --global-batch N "
        "to draw steps of N samples from it, or --global-batch {} if all of them are one",
        batch, given.samples.size(), of_replica, given.samples.size());
}

// How the encoders of a model lie: as the target's frameworks build them, unless something else is said.

void WorkloadOptions::add_encoders(OptionTable& options) {
    options.text("sparsity", sparsity, "[MODULE=]SHARE[/SHARE...]",
                 "of the attention of a diffusion transformer, the share of pairs from 0 to 1 that is left out, of all "
                 "layers or one for each (default: the model's)");
    options.text("module-context", module_context, "MODULE=ULYSSESxRING,...",
                 "of a module's --cp GPUs, how many exchange heads, and among how many such groups keys go round, like "
                 "dit=4x2 (default: as --context)");
    std::vector<std::string> ways{std::string(as_built), std::string(split)};
    for (std::string& one : frameworks::builders()) ways.push_back(std::move(one));
    options.choice(
        "encoders", encoders, ways,
        "how encoders lie on the GPUs of their stage: as what --target names builds them (default: as-built; "
        "as the language model, where it names no framework), as the language model (split), or as this "
        "framework builds them");
    options.choice(
        "encoder-recompute", encoder_recompute, workloads::encoder_recompute_names(),
        "what of encoders that a framework builds runs again, in place of what it does by default: as much as "
        "of the language model, nothing, or all");
}

void WorkloadOptions::require_dealt(const workloads::Model& of) const {
    if (!deal_images || (of.built && of.built->lies.context == workloads::OnContextRanks::dealt)) return;
    if (of.built)
        fail(ErrorKind::input, "--deal-images: {} has no switch for it for '{}'; allowed is to leave it out",
             of.built->framework, of.name);
    fail(ErrorKind::input,
         "--deal-images: goes with a model whose encoders a framework builds, by --target or --encoders");
}

void WorkloadOptions::build_encoders(workloads::Model& of) const {
    if (encoders == split || of.modules.size() == 1) return;
    const bool is_named = !encoders.empty() && encoders != as_built;
    const auto by = is_named ? std::vector<std::string_view>{encoders} : planner::target(target).builders;
    if (by.empty()) return;
    if (const auto* row = frameworks::built_encoder(by, of.family)) {
        workloads::build_as(of, deal_images && !row->deals.empty() ? dealing(*row) : *row);
        if (const auto again = workloads::encoder_recompute_called(encoder_recompute)) recompute_as(*again, *of.built);
        return;
    }
    if (is_named)
        fail(
            ErrorKind::input,
            "--encoders: how {} builds the encoders of '{}'{} was not read; allowed are {} and frameworks that have it "
            "(docs/encoders.md)",
            encoders, of.name, of.family.empty() ? "" : " (" + of.family + ")", split);
    workloads::build_as(of, {.framework = by.front()});
}

Recipe with_kernels(Recipe recipe, double factor) {
    for (double* const part :
         {&recipe.kernels.products, &recipe.kernels.attention, &recipe.kernels.memory_bound, &recipe.kernels.experts})
        *part *= factor;
    return recipe;
}

Recipe anchored(Recipe recipe, const Anchor& anchor, const std::string& device) {
    require_same(anchor, "device", anchor.device, device);
    require_same(anchor, "recipe", anchor.recipe, recipe.name);
    recipe = with_kernels(std::move(recipe), anchor.found.kernels);
    recipe.beside += anchor.found.beside;
    recipe.anchored = anchor.found;
    return recipe;
}

}  // namespace pipeweaver::planner
