#include "pipeweaver/launch/check.hpp"

#include "launch/check_parts.hpp"
#include "launch/fit/tuning.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/frameworks/sharded.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

namespace pipeweaver::launch {

namespace {

// Overrides are of the same framework as arguments.
Dialect of_rules(Dialect dialect) {
    return dialect == Dialect::bridge_overrides ? Dialect::megatron_arguments : dialect;
}

const Framework& framework_of(const CheckAsked& asked) {
    const Dialect dialect = of_rules(asked.said.dialect);
    const std::string_view own = asked.said.entry == nullptr ? std::string_view() : asked.said.entry->framework;
    const auto& all = frameworks();
    if (asked.framework.empty() && !asked.said.framework.empty()) return framework_called(asked.said.framework);
    if (asked.framework.empty())
        return *std::find_if(all.begin(), all.end(), [&](const Framework& one) {
            return one.dialect == dialect && (own.empty() || one.name == own);
        });
    const Framework& framework = framework_called(asked.framework);
    if (framework.dialect != dialect && framework.dialect != asked.said.dialect)
        fail(ErrorKind::input, "--framework: is '{}', but {} says {}", asked.framework, asked.said.from,
             name_of(asked.said.dialect));
    return framework;
}

// Whether what is named may set more than is said.
bool sets_others(const SaidLaunch& said) { return !said.named.empty() && !said.knows_named; }

}  // namespace

Checked begun(const CheckAsked& asked) {
    Checked checked;
    checked.framework = &framework_of(asked);
    checked.dialect = asked.said.dialect;
    checked.from = asked.said.from;
    checked.cluster = asked.cluster;
    const auto cluster = workloads::find_cluster(asked.cluster);
    checked.gpus = cluster.gpus;
    if (asked.said.gpus > 0 && asked.said.gpus != cluster.gpus)
        checked.conflict = fmt::format("{} says {} GPUs ({}); judged on the {} of --cluster", asked.said.from,
                                       asked.said.gpus, asked.said.says_gpus, cluster.gpus);
    checked.assumed = asked.said.notes;
    if (asked.said.entry != nullptr && !asked.said.is_dump) checked.entry = asked.said.entry->name;
    return checked;
}

std::string how_to_name_a_model(const std::string& named) {
    const std::string near = named.empty() ? std::string() : workloads::model_like(named);
    return near.empty() ? "name the model with --model"
                        : fmt::format("name the model with --model (the nearest in the catalogue is {})", near);
}

void put_not_read(const SaidLaunch& said, std::vector<std::string> names, Checked& checked) {
    checked.not_read = std::move(names);
    for (const std::string& name : checked.not_read)
        if (frameworks::memory_setting(said.dialect, name, {}, {}) == nullptr) checked.quiet.push_back(name);
}

void decide(Verdict verdict, std::vector<Open> open, Checked& checked) {
    checked.verdict = verdict;
    checked.open = std::move(open);
}

void append(std::vector<Open> more, std::vector<Open>& open) {
    open.insert(open.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Factored attention's matrices are others than those that adapters are known of.
std::vector<Open> open_adapters(const std::string& setting, const workloads::Model& model) {
    const auto kind = model.modules[model.backbone()].architecture.attention.kind;
    if (kind != workloads::AttentionKind::factored) return {};
    return {{setting, "adapters of factored attention are not counted", {}, frameworks::Effect::either}};
}

FitAsked fit_asked(const CheckAsked& asked, const Checked& checked, workloads::Model model) {
    FitAsked of{
        asked.cluster,  checked.gpus, std::move(model),        asked.dataset, asked.recipe, asked.seed, asked.batch,
        asked.assigned, {},           sets_others(asked.said), asked.anchor};
    of.text_alone = names_text_alone(asked.said);
    return of;
}

namespace {

// Whether so many letters put in, left out or changed make one of the other.
bool are_within(std::string_view a, std::string_view b, int edits) {
    while (!a.empty() && !b.empty() && a.front() == b.front()) a.remove_prefix(1), b.remove_prefix(1);
    if (a.empty() && b.empty()) return true;
    if (edits == 0) return false;
    return (!a.empty() && are_within(a.substr(1), b, edits - 1)) ||
           (!b.empty() && are_within(a, b.substr(1), edits - 1)) ||
           (!a.empty() && !b.empty() && are_within(a.substr(1), b.substr(1), edits - 1));
}

// Whether a name is another without its last word: "tensor-model-parallel" of "tensor-model-parallel-size".
bool is_cut_short(const std::string& name, const std::string& known) {
    const std::size_t at = name.size();
    return known.size() > at && known.starts_with(name) && (known[at] == '-' || known[at] == '_') &&
           known.find_first_of("-_", at + 1) == std::string::npos;
}

// Known to Megatron-LM beside names of the table that are nearly the same.
constexpr std::array<std::string_view, 2> other_names{"vocab-file", "lora-alpha"};

bool is_misspelled(const std::string& name, const std::string& known) {
    constexpr std::size_t long_enough = 8;
    constexpr int most_edits = 2;
    if (std::min(name.size(), known.size()) < long_enough) return false;
    if (std::find(other_names.begin(), other_names.end(), name) != other_names.end()) return false;
    return is_cut_short(name, known) || are_within(name, known, most_edits);
}

// Of unread settings: those that look like a known one misspelled.
void add_misspelled(const SaidLaunch& said, Checked& checked) {
    if (said.is_dump) return;
    std::vector<std::string> known;
    if (said.dialect == Dialect::titan_settings) {
        known = titan_names();
    } else {
        for (const MegatronName& name : megatron_names())
            known.push_back(said.dialect == Dialect::bridge_overrides ? name.field : name.flag);
    }
    for (const std::string& name : checked.not_read) {
        if (frameworks::memory_setting(said.dialect, name, {}, {}) != nullptr) continue;
        const auto like =
            std::find_if(known.begin(), known.end(), [&](const std::string& one) { return is_misspelled(name, one); });
        if (like != known.end())
            checked.assumed.push_back(fmt::format("'{}' is not known; is '{}' meant?", name, *like));
    }
}

const std::string& device_of(const CheckAsked& asked) {
    return workloads::device(workloads::find_cluster(asked.cluster).device).name;
}

// Encoders and decoders of T5 are counted apart, and no model here has both.
void refuse_encoder_decoder(const CheckAsked& asked) {
    if (!asked.model.empty()) return;
    for (const Setting& one : asked.said.settings)
        if (one.name == "decoder-num-layers")
            fail(ErrorKind::input,
                 "{}: --decoder-num-layers: makes it an encoder and a decoder, as of T5, which are "
                 "not read; read are models of decoder layers, with towers in front",
                 one.where);
}

// What goes into a recipe says neither a sequence nor layers.
void require_whole(const SaidLaunch& said, const MegatronLaunch& l) {
    if (!said.is_dump || l.seq_length || l.layers) return;
    fail(ErrorKind::input,
         "{}: is a part of a configuration, without {} and {}: it goes into a recipe; check the run_config.yaml that "
         "the recipe writes, or these keys with the recipe's own as --bridge-overrides",
         said.from, written(l.dialect, "num-layers"), written(l.dialect, "seq-length"));
}

// alibaba/ROLL 8eb27cc mcore_adapter/src/mcore_adapter/models/model_utils.py check_and_get_attention_backend_by_env:
// with all three off Megatron Core's own, else the first that is on beside one that is off.
void take_attention(const SaidLaunch& said, MegatronLaunch& l) {
    const bool is_said = !l.attention.empty() && l.attention != "auto";
    if (is_said || said.entry == nullptr || !said.entry->attention_by_variables) return;
    constexpr std::array<const char*, 3> names{"flash", "fused", "unfused"};
    const auto& set = l.attention_variables;
    const auto off = std::count(set.begin(), set.end(), "0");
    const auto on = std::find(set.begin(), set.end(), "1");
    if (off == std::ssize(set))
        l.attention = "local";
    else if (off > 0 && on != set.end())
        l.attention = names.at(static_cast<std::size_t>(on - set.begin()));
}

// The launch with where it runs.
MegatronLaunch read_megatron_on(const CheckAsked& asked) {
    refuse_encoder_decoder(asked);
    MegatronLaunch launch = read_megatron(asked.said, framework_of(asked).sets);
    require_whole(asked.said, launch);
    const auto put = [&](std::string_view variable, std::string& value) {
        const auto found = asked.said.variables.find(std::string(variable));
        if (found != asked.said.variables.end()) value = found->second;
    };
    put("CUDA_DEVICE_MAX_CONNECTIONS", launch.max_connections);
    for (std::size_t i = 0; i < attention_variables.size(); ++i)
        put(attention_variables[i], launch.attention_variables[i]);
    take_attention(asked.said, launch);
    if (asked.said.entry != nullptr)
        for (const auto& [variable, value] : asked.said.entry->sets)
            if (variable == "CUDA_DEVICE_MAX_CONNECTIONS") launch.max_connections = value;
    launch.before_blackwell = is_before_blackwell(device_of(asked));
    return launch;
}

// Broken rules rest on what the launch says, or on what something else may set.
void decide_construction(const CheckAsked& asked, const MegatronLaunch* launch, const BrokenWith& broken_with,
                         Checked& checked) {
    std::vector<Open> open;
    if (sets_others(asked.said))
        for (const std::string& name : settings_that_mend(asked.said, launch, checked.broken, broken_with)) {
            open.push_back(set_elsewhere(asked.said, {}, frameworks::Effect::either));
            open.back().setting = name;
        }
    const Verdict verdict = open.empty() ? Verdict::does_not_construct : Verdict::undecided;
    decide(verdict, std::move(open), checked);
}

// Whether nobody says which version runs, and another one constructs it.
bool rests_on_version(const CheckAsked& asked, const MegatronLaunch& launch, Checked& checked) {
    if (!asked.framework.empty() || !asked.said.framework.empty()) return false;
    const Framework* const other = version_that_constructs(launch, checked.gpus, *checked.framework);
    if (other == nullptr) return false;
    decide(Verdict::undecided,
           {{"--framework", fmt::format("{} constructs it, {} does not", other->text(), checked.framework->text()),
             "name the version that runs", frameworks::Effect::either, true}},
           checked);
    return true;
}

// Whether a script that starts one node's processes constructs on those: on a larger cluster its launcher sets more.
bool rests_on_nodes(const CheckAsked& asked, const MegatronLaunch& launch, Checked& checked) {
    const std::int64_t gpus = asked.said.gpus;
    if (gpus <= 0 || gpus >= checked.gpus) return false;
    if (gpus > workloads::find_cluster(asked.cluster).gpus_per_node) return false;
    if (!broken_rules(launch, gpus, *checked.framework).empty()) return false;
    decide(Verdict::undecided,
           {{"--set",
             fmt::format("it starts {} GPUs ({}), on which it constructs, and not on the {} of --cluster", gpus,
                         asked.said.says_gpus, checked.gpus),
             "say what its launcher sets on so many nodes (--set NNODES=N), or name a cluster of as many GPUs",
             frameworks::Effect::either}},
           checked);
    return true;
}

// Whether a microbatch is so many samples, however long they are, and nothing fills it: Megatron-Bridge 0.6.0 pads
// those of multimodal models to the longest (src/megatron/bridge/data/collators/sequence_padding.py).
bool holds_samples(const SaidLaunch& said, const workloads::Model& model) {
    if (said.entry == nullptr || said.is_dump) return false;
    if (said.entry->packs.empty()) return said.dialect == Dialect::bridge_overrides && is_multimodal(model);
    const frameworks::Default& fills = said.entry->fills;
    return std::none_of(said.settings.begin(), said.settings.end(), [&](const Setting& one) {
        if (!one.values.empty() && one.name == fills.setting && one.values.front() == fills.value) return true;
        return one.name == said.entry->packs && (one.values.empty() || one.values.front() == "true");
    });
}

bool says_samples(const CheckAsked& asked) { return !asked.dataset.empty() || !asked.batch.empty(); }

// Microbatches are counted full of tokens.
std::vector<Open> shorter_samples(const CheckAsked& asked, const workloads::Model& model, const Fit& fit) {
    if (!holds_samples(asked.said, model) || !asked.assigned.empty()) return {};
    if (!says_samples(asked))
        return {{"--dataset", "samples may be shorter than the longest, which are counted",
                 "name a data set, or --batch FILE", frameworks::Effect::less, false, true}};
    if (fit.fits()) return {};
    return {{"--assigned", "a microbatch is so many samples, and is counted as full of tokens as it may be",
             "say in --batch and --assigned which samples share one", frameworks::Effect::less, false, true}};
}

// What a fit rests on beside what samples hold.
OpenOf open_beside_samples(const CheckAsked& asked, const workloads::Model& model) {
    return [&asked, &model](const Fit& fit) {
        std::vector<Open> open = not_modelled(asked.said, {!asked.model.empty(), model.backbone() > 0});
        for (Open& one : open)
            if (one.of_loss) one.most = fit.logits;
        append(open_of(fit.doubts), open);
        if (sets_others(asked.said)) append(memory_set_elsewhere(asked.said), open);
        return open;
    };
}

void decide_fit(const CheckAsked& asked, const workloads::Model& model, Checked& checked) {
    const Fit& fit = *checked.fit;
    checked.error = memory_error_of(fit.recipe, checked.entry, model, fit.ranks.size() > 1);
    std::vector<Open> open = open_beside_samples(asked, model)(fit);
    append(shorter_samples(asked, model, fit), open);
    decide(verdict_of(fit, *checked.error, open), turning(fit, *checked.error, open), checked);
}

// Sizes that a recipe or a model by name has, and that are not at hand: nothing can be said without them.
std::vector<Open> missing_sizes(const SaidLaunch& said, const MegatronLaunch& l) {
    std::vector<Open> open;
    const bool has_model = said.knows_named && !said.named_model.empty();
    const std::string whose = !said.named.empty() && !has_model ? said.named
                              : !said.named_model.empty()       ? fmt::format("model '{}'", said.named_model)
                                                                : std::string();
    if (whose.empty()) return open;
    const auto missing = [&](const char* setting, const std::string& give) {
        open.push_back({written(l.dialect, setting), whose + " sets it", give});
    };
    if (!l.layers || !l.hidden || !l.heads) missing("num-layers", how_to_name_a_model(said.named_model));
    if (!l.seq_length) missing("seq-length", "say it in the launch");
    if (!l.micro_batch) missing("micro-batch-size", "say it in the launch");
    return open;
}

HazardAsked hazard_asked(const CheckAsked& asked, const Checked& checked, const workloads::Model* model) {
    HazardAsked of;
    of.gpus = checked.gpus;
    of.device = device_of(asked);
    of.model = model;
    of.varied = !asked.batch.empty() || (!asked.dataset.empty() && !asked.dataset.starts_with("constant-"));
    return of;
}

LongestSamples longest_samples(const MegatronLaunch& l, std::int64_t gpus) {
    return {*l.seq_length, emulated_microbatches(l, gpus) * l.dp(gpus) * l.sequences(),
            written(l.dialect, "seq-length")};
}

LongestSamples longest_samples(const TitanLaunch& l, std::int64_t gpus) {
    return {l.seq_len, l.local_batch * l.dp(gpus), "training.seq_len"};
}

template <class Launch>
void add_fit(const CheckAsked& asked, const Launch& as_said, const Launch& as_run, const workloads::Model& model,
             Checked& checked, const Executor& execute) {
    const FitAsked of = fit_asked(asked, checked, model);
    checked.fit = fit_of(run_of(as_run, of), of.seed, execute);
    checked.assumed.insert(checked.assumed.end(), checked.fit->assumed.begin(), checked.fit->assumed.end());
    decide_fit(asked, model, checked);
    if (!checked.fit->fits())
        checked.changes = fitting_changes(as_said, of, *checked.fit, checked.framework->text(), execute);
}

void add_degrees(const MegatronLaunch& l, Checked& checked) {
    checked.degrees = {{"tp", l.tp},
                       {"cp", l.cp},
                       {"pp", l.pp},
                       {"dp", l.dp(checked.gpus)},
                       {"ep", l.ep},
                       {"etp", *l.etp},
                       {"chunks", l.vpp.value_or(1)}};
    if (checked.constructs()) checked.degrees.emplace_back("microbatches", microbatches_of(l, checked.gpus));
}

// The rules that are broken with settings more, on the same machine.
BrokenWith megatron_with(const CheckAsked& asked, const MegatronLaunch& launch, const workloads::Model* named,
                         const Checked& checked) {
    return [&asked, &launch, named, &checked](const std::vector<Setting>& more) {
        SaidLaunch said = asked.said;
        said.settings.insert(said.settings.end(), more.begin(), more.end());
        MegatronLaunch other = read_megatron(said, checked.framework->sets);
        other.max_connections = launch.max_connections;
        other.attention_variables = launch.attention_variables;
        take_attention(said, other);
        other.before_blackwell = launch.before_blackwell;
        if (named != nullptr) other = with_encoders(with_model(std::move(other), *named), *named, asked.said);
        return broken_rules(other, checked.gpus, *checked.framework);
    };
}

// A launch that names its model and its data, which are not at hand: text alone would say less than it holds.
bool lacks_samples(const CheckAsked& asked, const workloads::Model& model) {
    const bool says_none = !says_samples(asked) && !asked.said.named_model.empty();
    return is_multimodal(model) && says_none && !names_text_alone(asked.said);
}

// Whether it is left undecided by that.
template <class Launch>
bool is_beyond_emulation(const Launch& l, const workloads::Model& model, Checked& checked) {
    auto beyond = why_not_emulated(l, model);
    if (!beyond) return false;
    decide(Verdict::undecided, {{std::move(beyond->setting), std::move(beyond->why), {}, frameworks::Effect::either}},
           checked);
    return true;
}

void decide_without_samples(Checked& checked) {
    decide(Verdict::undecided,
           {{"--dataset", "what samples hold beside text decides what fits", "name a data set, or --batch FILE"}},
           checked);
}

template <class Launch>
bool is_decided_by_longest(const CheckAsked& asked, const Launch& l, const workloads::Model& model, Checked& checked,
                           const Executor& execute) {
    return is_decided_by_longest(
        asked, model, longest_samples(l, checked.gpus), [&](const FitAsked& of) { return run_of(l, of); },
        open_beside_samples(asked, model), checked, execute);
}

// The longest samples of the data that a launch names, in as many tokens as its degrees divide, with the answers that
// it generates behind their questions. None: not known, or it trains on others.
std::optional<LongestNamed> longest_of_data(const CheckAsked& asked, const workloads::Model& model,
                                            const MegatronLaunch& l) {
    const auto* const stage = frameworks::training_stage(l.learns);
    const bool answers = stage != nullptr && !stage->distils && l.generates();
    if (says_samples(asked) || !holds_samples(asked.said, model) || (!answers && !l.learns.empty())) return {};
    auto longest = longest_named(asked.said, model, answers);
    if (!longest) return {};
    // ms-swift 3602360 swift/megatron/utils/utils.py get_padding_to: of 128 in fp8, of 64 with fused attention
    const std::int64_t multiple = (l.fp8.empty() && l.attention != "fused" ? 2 : 128) * l.cp * l.tp;
    longest->tokens += answers ? l.answer_length.value_or(0) : 0;
    longest->tokens = (longest->tokens + multiple - 1) / multiple * multiple;
    return longest;
}

// A microbatch that holds samples holds most where all are as long as the launch allows, or as the data's longest.
void take_longest(const CheckAsked& asked, const workloads::Model& model, MegatronLaunch& l, Checked& checked) {
    if (!holds_samples(asked.said, model) || says_samples(asked)) return;
    const auto of_data = longest_of_data(asked, model, l);
    if (!of_data || of_data->tokens > *l.seq_length)
        return checked.assumed.push_back("samples are not said: " + counted_as(longest_samples(l, checked.gpus)));
    l.seq_length = of_data->tokens;
    checked.assumed.push_back(counted_as(*of_data));
}

// With the model that is named, and the length of the data where the launch says none.
std::optional<workloads::Model> take_model(const CheckAsked& asked, MegatronLaunch& launch) {
    if (asked.model.empty()) return std::nullopt;
    workloads::Model named = named_model(asked.model, asked.said, asked.encoders);
    launch = with_encoders(with_model(std::move(launch), named), named, asked.said);
    if (!launch.seq_length)
        if (const auto of_data = longest_of_data(asked, named, launch)) launch.seq_length = of_data->tokens;
    return named;
}

void add_said_model(const MegatronLaunch& settled, std::optional<workloads::Model>& named, Checked& checked) {
    if (named) return;
    SaidModel said = model_of(settled);
    checked.assumed.insert(checked.assumed.end(), said.assumed.begin(), said.assumed.end());
    named = std::move(said.model);
}

// Where nobody else may say a degree. How experts are shared out by default differs between versions.
bool is_broken_without_sizes(const CheckAsked& asked, const MegatronLaunch& launch, Checked& checked) {
    if (sets_others(asked.said)) return false;
    checked.broken = broken_without_sizes(launch, checked.gpus, *checked.framework);
    if (launch.ep > 1 && !launch.etp && !asked.said.knows_named)
        std::erase_if(checked.broken, [](const BrokenRule& one) { return one.id == "groups-experts"; });
    if (checked.constructs()) return false;
    decide(Verdict::does_not_construct, {}, checked);
    return true;
}

Checked check_megatron(const CheckAsked& asked, const Executor& execute) {
    Checked checked = begun(asked);
    MegatronLaunch launch = read_megatron_on(asked);
    put_not_read(asked.said, launch.not_read, checked);
    checked.assumed.insert(checked.assumed.end(), launch.notes.begin(), launch.notes.end());
    std::optional<workloads::Model> named = take_model(asked, launch);
    add_misspelled(asked.said, checked);
    const MegatronLaunch all = settled(launch);
    const workloads::Model* const by_name = named ? &*named : nullptr;
    if (std::vector<Open> open = missing_sizes(asked.said, all); !open.empty()) {
        if (by_name != nullptr && is_short_with_least(asked, launch, *by_name, checked, execute)) return checked;
        if (is_broken_without_sizes(asked, launch, checked))
            add_degrees(all, checked);
        else
            decide(Verdict::undecided, std::move(open), checked);
        return checked;
    }
    checked.broken = broken_rules(launch, checked.gpus, *checked.framework);
    add_degrees(all, checked);
    if (!checked.constructs()) {
        if (rests_on_version(asked, launch, checked) || rests_on_nodes(asked, launch, checked)) return checked;
        decide_construction(asked, &all, megatron_with(asked, launch, by_name, checked), checked);
        return checked;
    }
    checked.layers = built_layers(all).layers;
    checked.hazards = hazards_of(launch, hazard_asked(asked, checked, by_name));
    if (!asked.fits) return checked;
    add_said_model(all, named, checked);
    if (tuning_of(all).tuner == "lora") {
        if (auto open = open_adapters(written(all.dialect, "lora-rank"), *named); !open.empty()) {
            decide(Verdict::undecided, std::move(open), checked);
            return checked;
        }
    }
    if (is_beyond_emulation(all, *named, checked)) return checked;
    if (lacks_samples(asked, *named)) {
        if (!is_short_with_least(asked, launch, *named, checked, execute) &&
            !is_decided_by_longest(asked, all, *named, checked, execute))
            decide_without_samples(checked);
        return checked;
    }
    take_longest(asked, *named, launch, checked);
    add_fit(asked, launch, settled(launch), *named, checked, execute);
    decide_samples(asked, launch, *named, checked, execute);
    decide_vocabulary(asked, launch, checked, execute);
    return checked;
}

// torchtitan's settings say no sizes.
void require_model(const CheckAsked& asked) {
    if (asked.model.empty())
        fail_missing("--model MODEL",
                     "torchtitan's settings say no sizes; `pipeweaver list models` names the known ones");
}

Checked check_titan(const CheckAsked& asked, const Executor& execute) {
    Checked checked = begun(asked);
    if (asked.model.empty() && !asked.said.named.empty()) {
        put_not_read(asked.said, read_titan(asked.said).not_read, checked);
        decide(Verdict::undecided,
               {{"--model", asked.said.named + " sets the sizes", how_to_name_a_model(asked.said.named_model)}},
               checked);
        return checked;
    }
    require_model(asked);
    const auto model = named_model(asked.model, asked.said, asked.encoders);
    const TitanLaunch launch = with_model(read_titan(asked.said), model);
    put_not_read(asked.said, launch.not_read, checked);
    checked.broken = broken_rules(launch, checked.gpus, *checked.framework);
    checked.degrees = {{"tp", launch.tp}, {"cp", launch.cp},
                       {"pp", launch.pp}, {"dp", launch.dp(checked.gpus)},
                       {"ep", launch.ep}, {"microbatches", launch.pp > 1 ? launch.local_batch / launch.microbatch : 1}};
    add_misspelled(asked.said, checked);
    if (!checked.constructs()) {
        const BrokenWith with = [&](const std::vector<Setting>& more) {
            SaidLaunch said = asked.said;
            said.settings.insert(said.settings.end(), more.begin(), more.end());
            return broken_rules(with_model(read_titan(said), model), checked.gpus, *checked.framework);
        };
        decide_construction(asked, nullptr, with, checked);
        return checked;
    }
    if (launch.pp > 1) checked.layers = built_layers(launch).layers;
    checked.hazards = hazards_of(launch, hazard_asked(asked, checked, &model));
    if (!asked.fits || is_beyond_emulation(launch, model, checked)) return checked;
    if (!lacks_samples(asked, model))
        add_fit(asked, launch, launch, model, checked, execute);
    else if (!is_decided_by_longest(asked, launch, model, checked, execute))
        decide_without_samples(checked);
    return checked;
}

// The model that a launch names as find_model() takes it, and what is said of that: the config.json of a folder that is
// at hand, else the catalogue's. Empty: neither.
std::pair<std::string, std::string> model_at_hand(const std::string& named, bool may_have_fewer_bits) {
    std::error_code none;
    if (!named.empty() && std::filesystem::exists(std::filesystem::path(named) / "config.json", none))
        return {"hf:" + named, fmt::format("model '{}' is read from its config.json", named)};
    std::string called = workloads::model_called(named);
    if (called.empty() && may_have_fewer_bits) called = workloads::model_of_fewer_bits(named);
    if (called.empty()) return {};
    return {called, fmt::format("model '{}' is taken as {} of the catalogue", named, called)};
}

// With the model that the launch names, where nobody says another and no size is said. Where one is said it counts, and
// the name that the script leaves to its caller does not.
CheckAsked with_named_model(CheckAsked asked) {
    if (!asked.model.empty()) {
        if (asked.said.entry != nullptr && !asked.said.entry->model.empty())
            std::erase_if(asked.said.unset,
                          [&](const Unset& one) { return one.setting == "--" + std::string(asked.said.entry->model); });
        return asked;
    }
    auto [model, note] = model_at_hand(asked.said.named_model, asked.said.dialect == Dialect::sharded_settings);
    asked.model = std::move(model);
    if (!asked.model.empty()) asked.said.notes.push_back(std::move(note));
    return asked;
}

// Without what a script leaves to its caller nothing is said.
Checked undecided_by_unset(const CheckAsked& asked) {
    Checked checked = begun(asked);
    decide(Verdict::undecided, open_of(asked.said.unset), checked);
    return checked;
}

Checked check_read(const CheckAsked& asked, const Executor& execute) {
    if (!asked.said.unset.empty()) return undecided_by_unset(asked);
    if (asked.said.dialect == Dialect::sharded_settings) return check_sharded(asked, execute);
    if (asked.said.dialect == Dialect::grid_variables) return check_grids(asked);
    return asked.said.dialect == Dialect::titan_settings ? check_titan(asked, execute) : check_megatron(asked, execute);
}

// What is refused by a value that a script may not take is not refused.
Checked check_said(const CheckAsked& asked, const Executor& execute) {
    Checked checked = check_read(asked, execute);
    if (checked.verdict != Verdict::does_not_construct && checked.verdict != Verdict::does_not_fit) return checked;
    std::vector<Open> open = open_of_branches(asked.said, checked.quiet);
    if (!open.empty()) decide(Verdict::undecided, std::move(open), checked);
    return checked;
}

}  // namespace

Checked check(const CheckAsked& asked, const Executor& execute) {
    if (asked.said.settings.empty() && asked.said.unset.empty() && asked.said.named.empty())
        fail(ErrorKind::input, "{}: says no setting of {}", asked.said.from, name_of(asked.said.dialect));
    const CheckAsked with_model = with_named_model(asked);
    if (asked.said.not_at_hand.empty()) return check_said(with_model, execute);
    try {
        return check_said(with_model, execute);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) throw;
        fail(ErrorKind::input, "{}; {}", error.what(), asked.said.not_at_hand);  // what is missing may be said there
    }
}

}  // namespace pipeweaver::launch
