// Recipes as files, and what they may say.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/recipe.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <utility>

namespace pipeweaver::emulator {

namespace {

constexpr std::array<std::pair<std::string_view, TensorOverlap>, 3> overlaps{
    {{"none", TensorOverlap::none},
     {"launch-order", TensorOverlap::launch_order},
     {"inside-gemms", TensorOverlap::inside_gemms}}};

constexpr std::array<std::pair<std::string_view, Dispatcher>, 2> dispatchers{
    {{"alltoall", Dispatcher::all_to_all}, {"once-a-node", Dispatcher::once_a_node}}};

constexpr std::array<std::pair<std::string_view, Launched>, 4> ways_to_launch{{{"unknown", Launched::unknown},
                                                                               {"compiled", Launched::compiled},
                                                                               {"graphs", Launched::graphs},
                                                                               {"eager", Launched::eager}}};

constexpr std::array<std::pair<std::string_view, NarrowWeights>, 3> ways_to_hold_narrow{
    {{"cast-again", NarrowWeights::cast_again}, {"copies", NarrowWeights::copies}, {"alone", NarrowWeights::alone}}};

constexpr std::int64_t most_bytes_each = 256;       // of a parameter's state or update
constexpr std::int64_t longest_ns = 1'000'000'000;  // of the host, for anything
constexpr std::int64_t slowest_link = 1'000'000;    // bytes per second
constexpr std::int64_t most_runs = 1'000'000;
constexpr std::int64_t largest_bucket = std::int64_t{1} << 50;
constexpr std::int64_t most_beside = std::int64_t{1} << 50;  // bytes of a GPU

void read_integer(const Json& object, std::string_view key, std::int64_t low, std::int64_t high, auto& value) {
    if (const auto member = object.find(key))
        value = static_cast<std::remove_reference_t<decltype(value)>>(member->integer(low, high));
}

void read_duration(const Json& object, std::string_view key, Duration& value) {
    if (const auto member = object.find(key)) value = Duration{member->integer(0, longest_ns)};
}

void read_flag(const Json& object, std::string_view key, bool& value) {
    if (const auto member = object.find(key)) value = member->boolean();
}

void read_text(const Json& object, std::string_view key, std::string& value) {
    if (const auto member = object.find(key)) value = member->text();
}

void read_tensor_parallel(const Json& json, Execution& execution) {
    json.only_keys({"overlap", "sequence_parallel"});
    read_flag(json, "sequence_parallel", execution.sequence_parallel);
    if (const auto overlap = json.find("overlap")) {
        const auto text = overlap->one_of({"none", "launch-order", "inside-gemms"});
        for (const auto& [name, value] : overlaps)
            if (name == text) execution.tensor_overlap = value;
    }
    if (execution.tensor_overlap != TensorOverlap::inside_gemms || execution.sequence_parallel) return;
    if (const auto overlap = json.find("overlap"))
        overlap->fail("is 'inside-gemms', which goes with sequence_parallel true alone");
    json.at("sequence_parallel")
        .fail(
            "is false, and the recipe that is extended has overlap 'inside-gemms', which goes with "
            "true alone");
}

void read_split_backward(const Json& json, Recipe& recipe) {
    json.only_keys({"norms_again", "slowdown"});
    read_flag(json, "norms_again", recipe.execution.norms_again);
    if (const auto slowdown = json.find("slowdown")) recipe.split_slowdown = slowdown->number(1, 10);
}

void read_experts(const Json& json, ExpertParallel& experts) {
    constexpr double most_imbalance = 100;
    constexpr std::int64_t largest_limit = 1'000'000;
    json.only_keys({"dispatcher", "exposed", "imbalance", "most_nodes", "tensor_parallel"});
    read_integer(json, "most_nodes", 0, largest_limit, experts.most_nodes);
    read_integer(json, "tensor_parallel", 1, largest_limit, experts.tensor_parallel);
    if (const auto dispatcher = json.find("dispatcher")) {
        const auto text = dispatcher->one_of({"alltoall", "once-a-node"});
        for (const auto& [name, value] : dispatchers)
            if (name == text) experts.dispatcher = value;
    }
    if (const auto exposed = json.find("exposed")) experts.exposed = exposed->number(0, 1);
    if (const auto imbalance = json.find("imbalance")) experts.imbalance = imbalance->number(1, most_imbalance);
}

void read_data_parallel(const Json& json, Recipe& recipe) {
    json.only_keys({"zero", "bucket_bytes", "gathered_bytes", "gathers_ahead", "overlap_slowdown"});
    read_integer(json, "gathered_bytes", 0, largest_bucket, recipe.gathered.count);
    read_integer(json, "zero", 0, 3, recipe.zero);
    read_integer(json, "bucket_bytes", 0, largest_bucket, recipe.bucket.count);
    read_flag(json, "gathers_ahead", recipe.gathers_ahead);
    if (const auto slowdown = json.find("overlap_slowdown")) recipe.overlap_slowdown = slowdown->number(1, 10);
    if (recipe.zero < 2 || recipe.bucket.count == 0) return;
    if (const auto bucket = json.find("bucket_bytes"))
        bucket->fail(
            fmt::format("goes with zero 0 and 1; with {} gradients are reduced in every backward", recipe.zero));
    json.at("zero").fail(
        fmt::format("is {}, and the recipe that is extended reduces gradients in buckets, which goes with 0 and 1; or "
                    "say bucket_bytes 0",
                    recipe.zero));
}

void read_precision(const Json& json, Recipe& recipe) {
    for (const auto& [of, value] : json.members())
        if (const auto why = why_not_set(recipe, of, value.text())) value.fail(*why);
}

void read_state(const Json& json, StateBytes& state) {
    json.only_keys({"weight", "gradient", "optimizer", "whole", "summed", "pipelined", "update", "apart", "bare",
                    "offloaded", "narrow"});
    read_integer(json, "weight", 1, most_bytes_each, state.weight);
    read_integer(json, "gradient", 0, most_bytes_each, state.gradient);
    read_integer(json, "optimizer", 0, most_bytes_each, state.optimizer);
    read_integer(json, "whole", 0, most_bytes_each, state.whole);
    read_integer(json, "summed", 0, most_bytes_each, state.summed);
    read_integer(json, "pipelined", 0, most_bytes_each, state.pipelined);
    read_integer(json, "update", 0, most_bytes_each, state.update);
    read_integer(json, "apart", 0, most_bytes_each, state.apart);
    read_flag(json, "bare", state.bare);
    read_integer(json, "offloaded", 0, most_bytes_each, state.offloaded);
    if (const auto narrow = json.find("narrow")) {
        const auto text = narrow->one_of({"cast-again", "copies", "alone"});
        for (const auto& [name, value] : ways_to_hold_narrow)
            if (name == text) state.narrow = value;
    }
}

// Of two words, whether it is the first.
void read_word(const Json& object, std::string_view key, std::string_view yes, std::string_view no, bool& value) {
    if (const auto member = object.find(key)) value = member->one_of({yes, no}) == yes;
}

void read_kept(const Json& json, KeptBytes& kept) {
    json.only_keys(
        {"gate", "linear_norm", "column_inputs", "logits", "logit_bytes", "mask_bytes", "norm_bytes", "narrow_inputs"});
    read_word(json, "gate", "fused", "separate", kept.fused_gate);
    read_word(json, "linear_norm", "fused", "separate", kept.fused_linear_norm);
    read_word(json, "column_inputs", "gathered-again", "gathered", kept.gathers_again);
    read_word(json, "logits", "split", "whole", kept.split_logits);
    read_integer(json, "logit_bytes", 0, most_bytes_each, kept.logit);
    read_integer(json, "mask_bytes", 0, most_bytes_each, kept.masks);
    read_integer(json, "norm_bytes", 0, most_bytes_each, kept.norms);
    read_word(json, "narrow_inputs", "narrow", "as-values", kept.narrow_inputs);
}

void read_update(const Json& json, UpdateTraffic& update) {
    json.only_keys({"updated", "held"});
    read_integer(json, "updated", 1, most_bytes_each, update.updated);
    read_integer(json, "held", 0, most_bytes_each, update.held);
}

void read_factor(const Json& object, std::string_view key, double& value) {
    constexpr double largest = 100;
    if (const auto member = object.find(key)) value = member->number(0, largest);
}

void read_kernels(const Json& json, KernelFactors& kernels) {
    json.only_keys({"products", "attention", "attention_after_ampere", "unmasked_after_ampere", "memory_bound",
                    "experts", "traffic"});
    read_factor(json, "products", kernels.products);
    read_factor(json, "attention", kernels.attention);
    // Of other kernels, what those of the recipe that is extended take is not known.
    if (json.find("attention_after_ampere")) kernels.unmasked_after_ampere.reset();
    read_factor(json, "attention_after_ampere", kernels.attention_after_ampere);
    if (json.find("unmasked_after_ampere"))
        read_factor(json, "unmasked_after_ampere", kernels.unmasked_after_ampere.emplace());
    read_factor(json, "memory_bound", kernels.memory_bound);
    read_factor(json, "experts", kernels.experts);
    read_factor(json, "traffic", kernels.traffic);
}

void read_runs(const Json& json, Recipe& recipe) {
    for (const auto& [device, runs] : json.members()) recipe.runs[device] = runs.integer(1, most_runs);
}

void read_origin(const Json& root, Recipe& recipe) {
    recipe.name = root.at("name").text();
    recipe.runs.clear();  // what changes numbers of another's runs rests on none
    if (const auto runs = root.find("runs")) read_runs(*runs, recipe);
    read_text(root, "about", recipe.about);
    read_text(root, "source", recipe.source);
}

void read_host_times(const Json& json, Recipe& recipe) {
    read_duration(json, "launch_ns", recipe.launch);
    read_duration(json, "layer_ns", recipe.layer);
    read_duration(json, "expert_layer_ns", recipe.expert_layer);
    if (const auto by_module = json.find("layer_ns_of"))
        for (const auto& [module, value] : by_module->members())
            read_duration(*by_module, module, recipe.layer_of[module]);
}

// A recipe that says how its kernels are launched takes no times of another launch over.
void read_host(const Json& json, Recipe& recipe) {
    json.only_keys({"launched", "eager", "far", "far_with_experts", "launch_ns", "action_ns", "layer_ns", "layer_ns_of",
                    "expert_layer_ns", "link_bytes_per_s"});
    read_duration(json, "action_ns", recipe.action);
    read_integer(json, "link_bytes_per_s", slowest_link, Json::largest, recipe.host_link.bytes_per_second);
    read_text(json, "eager", recipe.eager);
    if (const auto far = json.find("far")) recipe.far = far->number(1, 10);
    if (const auto far = json.find("far_with_experts")) recipe.far_with_experts = far->number(1, 10);
    const auto launched = json.find("launched");
    if (launched) {
        const auto text = launched->one_of({"unknown", "compiled", "graphs", "eager"});
        for (const auto& [name, value] : ways_to_launch)
            if (name == text && value != recipe.launched) {
                if (value != Launched::eager) recipe = launched_as(recipe, Launched::graphs);
                recipe.launched = value;
            }
    }
    read_host_times(json, recipe);
    if (!launched && recipe.has_host()) recipe.launched = Launched::eager;
    if (recipe.launched == Launched::graphs && recipe.has_host())
        launched->fail("is 'graphs', which goes with no launch_ns, layer_ns, layer_ns_of and expert_layer_ns above 0");
    if (recipe.launched == Launched::eager) recipe = launched_as(recipe, Launched::eager);
}

bool has_module(const workloads::Model& model, const std::string& name) {
    for (const auto& module : model.modules)
        if (module.name == name) return true;
    return false;
}

}  // namespace

bool Recipe::has_host() const {
    return launch > Duration{} || layer > Duration{} || expert_layer > Duration{} || !layer_of.empty();
}

Duration Recipe::host_of(const workloads::Module& module) const {
    const auto own = layer_of.find(module.name);
    return own == layer_of.end() ? layer : own->second;
}

Execution Recipe::execution_of(const workloads::Module& module) const {
    Execution own = execution;
    if (const auto found = precision.find(module.name); found != precision.end()) own.products = found->second;
    own.adapters = module.adapters;
    if (module.lies.tensor == workloads::OnTensorRanks::as_job) return own;
    own.sequence_parallel = false;
    if (own.tensor_overlap == TensorOverlap::inside_gemms) own.tensor_overlap = TensorOverlap::launch_order;
    return own;
}

StateBytes with_offloaded(StateBytes state, double part) {
    const std::int64_t all = state.optimizer + state.offloaded;
    state.optimizer = static_cast<std::int64_t>(std::ceil(static_cast<double>(all) * (1 - part)));
    state.offloaded = all - state.optimizer;
    return state;
}

Recipe judging(const Recipe& recipe) {
    Recipe plain = recipe;
    plain.zero = std::min(recipe.zero, 1);
    plain.bucket = {};
    plain.launch = plain.action = {};
    plain.overlap_slowdown = 1;
    return plain;
}

Recipe parse_recipe(const JsonDocument& document, const RecipeNamed& named) {
    document.require_format("pipeweaver-recipe", 1);
    const Json root = document.root();
    root.only_keys({"format",
                    "name",
                    "about",
                    "source",
                    "extends",
                    "attention",
                    "tensor_parallel",
                    "data_parallel",
                    "experts",
                    "split_backward",
                    "precision",
                    "amax",
                    "gradient_accumulation",
                    "state_bytes",
                    "kept",
                    "update_traffic",
                    "kernels",
                    "beside_bytes",
                    "runs",
                    "host"});
    Recipe recipe;
    if (const auto extended = root.find("extends")) {
        try {
            recipe = named(extended->text());
        } catch (const Error& error) {
            extended->fail(error.what());
        }
    }
    read_origin(root, recipe);
    read_word(root, "attention", "fused", "unfused", recipe.execution.fused_attention);
    if (const auto tensor = root.find("tensor_parallel")) read_tensor_parallel(*tensor, recipe.execution);
    if (const auto data = root.find("data_parallel")) read_data_parallel(*data, recipe);
    if (const auto experts = root.find("experts")) read_experts(*experts, recipe.execution.experts);
    if (const auto split = root.find("split_backward")) read_split_backward(*split, recipe);
    if (const auto precision = root.find("precision")) read_precision(*precision, recipe);
    read_word(root, "amax", "separate", "fused", recipe.execution.separate_amax);
    read_word(root, "gradient_accumulation", "fused", "separate", recipe.fused_accumulation);
    if (const auto state = root.find("state_bytes")) read_state(*state, recipe.state);
    if (const auto kept = root.find("kept")) read_kept(*kept, recipe.kept);
    if (const auto update = root.find("update_traffic")) read_update(*update, recipe.update);
    if (const auto kernels = root.find("kernels")) read_kernels(*kernels, recipe.kernels);
    if (const auto beside = root.find("beside_bytes")) recipe.beside.count = beside->integer(0, most_beside);
    if (const auto host = root.find("host")) read_host(*host, recipe);
    return recipe;
}

void check(const Recipe& recipe, const workloads::Model& model, const workloads::Device& device) {
    if (is_open(recipe)) static_cast<void>(launched_as(recipe, Launched::eager));
    std::vector<std::string> modules;
    for (const auto& module : model.modules) modules.push_back(module.name);
    for (const auto& [name, time] : recipe.layer_of)
        if (!has_module(model, name))
            fail(ErrorKind::input, "recipe {}: host.layer_ns_of.{}: {}", recipe.name, name,
                 unknown("module", name, modules));
    check_precision(recipe, model, device);
}

namespace {

using RecipeWriter = nlohmann::ordered_json;

RecipeWriter data_parallel_json(const Recipe& recipe) {
    RecipeWriter json{{"zero", recipe.zero},
                      {"bucket_bytes", recipe.bucket.count},
                      {"gathers_ahead", recipe.gathers_ahead},
                      {"overlap_slowdown", recipe.overlap_slowdown}};
    if (recipe.gathered > Bytes{}) json["gathered_bytes"] = recipe.gathered.count;
    return json;
}

RecipeWriter precision_json(const Recipe& recipe) {
    RecipeWriter json{{"default", costdb::name_of(recipe.execution.products)}};
    for (const auto& [module, dtype] : recipe.precision) json[module] = costdb::name_of(dtype);
    for (const LayerPrecision& one : recipe.layer_precision) json[one.name()] = costdb::name_of(one.products);
    return json;
}

RecipeWriter state_json(const StateBytes& state) {
    RecipeWriter json{
        {"weight", state.weight}, {"gradient", state.gradient}, {"optimizer", state.optimizer}, {"whole", state.whole}};
    if (state.summed > 0) json["summed"] = state.summed;
    if (state.pipelined > 0) json["pipelined"] = state.pipelined;
    if (state.update > 0) json["update"] = state.update;
    if (state.apart > 0) json["apart"] = state.apart;
    if (state.bare) json["bare"] = true;
    if (state.offloaded > 0) json["offloaded"] = state.offloaded;
    for (const auto& [name, value] : ways_to_hold_narrow)
        if (value == state.narrow && value != StateBytes{}.narrow) json["narrow"] = name;
    return json;
}

RecipeWriter kept_json(const KeptBytes& kept) {
    RecipeWriter json{{"gate", kept.fused_gate ? "fused" : "separate"},
                      {"linear_norm", kept.fused_linear_norm ? "fused" : "separate"},
                      {"column_inputs", kept.gathers_again ? "gathered-again" : "gathered"},
                      {"logits", kept.split_logits ? "split" : "whole"},
                      {"logit_bytes", kept.logit},
                      {"mask_bytes", kept.masks}};
    if (kept.norms > 0) json["norm_bytes"] = kept.norms;
    if (!kept.narrow_inputs) json["narrow_inputs"] = "as-values";
    return json;
}

}  // namespace

std::string to_json(const Recipe& recipe) {
    RecipeWriter json{{"format", "pipeweaver-recipe/1"}, {"name", recipe.name}};
    if (!recipe.about.empty()) json["about"] = recipe.about;
    if (!recipe.source.empty()) json["source"] = recipe.source;
    json["attention"] = recipe.execution.fused_attention ? "fused" : "unfused";
    json["tensor_parallel"] = {{"overlap", name_of(recipe.execution.tensor_overlap)},
                               {"sequence_parallel", recipe.execution.sequence_parallel}};
    json["data_parallel"] = data_parallel_json(recipe);
    const ExpertParallel& experts = recipe.execution.experts;
    json["experts"] = {{"dispatcher", name_of(experts.dispatcher)},
                       {"exposed", experts.exposed},
                       {"imbalance", experts.imbalance},
                       {"most_nodes", experts.most_nodes},
                       {"tensor_parallel", experts.tensor_parallel}};
    json["split_backward"] = {{"norms_again", recipe.execution.norms_again}, {"slowdown", recipe.split_slowdown}};
    json["precision"] = precision_json(recipe);
    if (recipe.execution.separate_amax) json["amax"] = "separate";
    json["gradient_accumulation"] = recipe.fused_accumulation ? "fused" : "separate";
    json["state_bytes"] = state_json(recipe.state);
    json["kept"] = kept_json(recipe.kept);
    json["update_traffic"] = {{"updated", recipe.update.updated}, {"held", recipe.update.held}};
    json["kernels"] = {{"products", recipe.kernels.products},
                       {"attention", recipe.kernels.attention},
                       {"attention_after_ampere", recipe.kernels.attention_after_ampere},
                       {"memory_bound", recipe.kernels.memory_bound},
                       {"experts", recipe.kernels.experts},
                       {"traffic", recipe.kernels.traffic}};
    if (recipe.kernels.unmasked_after_ampere)
        json["kernels"]["unmasked_after_ampere"] = *recipe.kernels.unmasked_after_ampere;
    if (recipe.beside > Bytes{}) json["beside_bytes"] = recipe.beside.count;
    json["runs"] = RecipeWriter::object();
    for (const auto& [device, runs] : recipe.runs) json["runs"][device] = runs;
    json["host"] = {{"launched", name_of(recipe.launched)},
                    {"eager", recipe.eager},
                    {"launch_ns", recipe.launch.count()},
                    {"action_ns", recipe.action.count()},
                    {"layer_ns", recipe.layer.count()},
                    {"expert_layer_ns", recipe.expert_layer.count()},
                    {"link_bytes_per_s", recipe.host_link.bytes_per_second}};
    if (recipe.far > 1) json["host"]["far"] = recipe.far;
    if (recipe.far_with_experts > 1) json["host"]["far_with_experts"] = recipe.far_with_experts;
    for (const auto& [module, time] : recipe.layer_of) json["host"]["layer_ns_of"][module] = time.count();
    return json.dump(2) + "\n";
}

std::string_view name_of(TensorOverlap overlap) {
    for (const auto& [name, value] : overlaps)
        if (value == overlap) return name;
    return "";
}

std::string_view name_of(Dispatcher dispatcher) {
    for (const auto& [name, value] : dispatchers)
        if (value == dispatcher) return name;
    return "";
}

std::string_view name_of(Launched launched) {
    for (const auto& [name, value] : ways_to_launch)
        if (value == launched) return name;
    return "";
}

}  // namespace pipeweaver::emulator
