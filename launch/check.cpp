#include "pipeweaver/launch/check.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace pipeweaver::launch {

namespace {

const Framework& framework_of(const CheckAsked& asked) {
    const bool titan = asked.said.dialect == Dialect::titan_settings;
    if (asked.framework.empty()) return framework_called(titan ? "torchtitan" : "megatron-core");
    const Framework& framework = framework_called(asked.framework);
    if (framework.titan != titan)
        fail(ErrorKind::input, "--framework: is '{}', but {} says {}", asked.framework, asked.said.from,
             name_of(asked.said.dialect));
    return framework;
}

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
constexpr std::array<std::string_view, 3> other_names{"vocab-file", "decoder-seq-length", "model.cpu_offloading"};

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
        const auto like =
            std::find_if(known.begin(), known.end(), [&](const std::string& one) { return is_misspelled(name, one); });
        if (like != known.end())
            checked.assumed.push_back(fmt::format("'{}' is not known; is '{}' meant?", name, *like));
    }
}

const std::string& device_of(const CheckAsked& asked) {
    return workloads::device(workloads::find_cluster(asked.cluster).device).name;
}

// What goes into a recipe says neither a sequence nor layers.
void require_whole(const SaidLaunch& said, const MegatronLaunch& l) {
    if (!said.is_dump || l.seq_length || l.layers) return;
    fail(ErrorKind::input,
         "{}: is a part of a configuration, without {} and {}: it goes into a recipe; check the run_config.yaml that "
         "the recipe writes, or these keys with the recipe's own as --bridge-overrides",
         said.from, written(l.dialect, "num-layers"), written(l.dialect, "seq-length"));
}

// The launch with where it runs.
MegatronLaunch read_megatron_on(const CheckAsked& asked) {
    MegatronLaunch launch = read_megatron(asked.said);
    require_whole(asked.said, launch);
    const auto found = asked.said.variables.find("CUDA_DEVICE_MAX_CONNECTIONS");
    if (found != asked.said.variables.end()) launch.max_connections = found->second;
    launch.before_blackwell = is_before_blackwell(device_of(asked));
    return launch;
}

Checked begun(const CheckAsked& asked) {
    Checked checked;
    checked.framework = &framework_of(asked);
    checked.dialect = asked.said.dialect;
    checked.from = asked.said.from;
    checked.cluster = asked.cluster;
    const auto cluster = workloads::find_cluster(asked.cluster);
    checked.gpus = cluster.gpus;
    checked.assumed = asked.said.notes;
    return checked;
}

HazardAsked hazard_asked(const CheckAsked& asked, const Checked& checked, const workloads::Model* model) {
    HazardAsked of;
    of.gpus = checked.gpus;
    of.device = device_of(asked);
    of.model = model;
    of.varied = !asked.batch.empty() || (!asked.dataset.empty() && !asked.dataset.starts_with("constant-"));
    return of;
}

FitAsked fit_asked(const CheckAsked& asked, const Checked& checked, workloads::Model model) {
    return {asked.cluster, checked.gpus, std::move(model), asked.dataset,
            asked.recipe,  asked.seed,   asked.batch,      asked.assigned};
}

template <class Launch>
void add_fit(const CheckAsked& asked, const Launch& as_said, const Launch& as_run, workloads::Model model,
             Checked& checked, const Executor& execute) {
    const FitAsked of = fit_asked(asked, checked, std::move(model));
    checked.fit = fit_of(run_of(as_run, of), of.seed, execute);
    checked.assumed.insert(checked.assumed.end(), checked.fit->assumed.begin(), checked.fit->assumed.end());
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

Checked check_megatron(const CheckAsked& asked, const Executor& execute) {
    Checked checked = begun(asked);
    MegatronLaunch launch = read_megatron_on(asked);
    checked.not_read = launch.not_read;
    std::optional<workloads::Model> named;
    if (!asked.model.empty()) {
        named = workloads::find_model(asked.model);
        launch = with_model(std::move(launch), *named);
    }
    checked.broken = broken_rules(launch, checked.gpus, *checked.framework);
    const MegatronLaunch all = settled(launch);
    add_degrees(all, checked);
    add_misspelled(asked.said, checked);
    if (!checked.constructs()) return checked;
    checked.layers = built_layers(all).layers;
    checked.hazards = hazards_of(launch, hazard_asked(asked, checked, named ? &*named : nullptr));
    if (!asked.fits) return checked;
    if (!named) {
        SaidModel said = model_of(all);
        checked.assumed.insert(checked.assumed.end(), said.assumed.begin(), said.assumed.end());
        named = std::move(said.model);
    }
    add_fit(asked, launch, all, std::move(*named), checked, execute);
    return checked;
}

Checked check_titan(const CheckAsked& asked, const Executor& execute) {
    Checked checked = begun(asked);
    if (asked.model.empty())
        fail(ErrorKind::input,
             "--model: is missing: torchtitan's settings say no sizes; `pipeweaver list models` names known ones");
    const auto model = workloads::find_model(asked.model);
    const TitanLaunch launch = with_model(read_titan(asked.said), model);
    checked.not_read = launch.not_read;
    checked.broken = broken_rules(launch, checked.gpus, *checked.framework);
    checked.degrees = {{"tp", launch.tp}, {"cp", launch.cp},
                       {"pp", launch.pp}, {"dp", launch.dp(checked.gpus)},
                       {"ep", launch.ep}, {"microbatches", launch.pp > 1 ? launch.local_batch / launch.microbatch : 1}};
    add_misspelled(asked.said, checked);
    if (!checked.constructs()) return checked;
    if (launch.pp > 1) checked.layers = built_layers(launch).layers;
    checked.hazards = hazards_of(launch, hazard_asked(asked, checked, &model));
    if (asked.fits) add_fit(asked, launch, launch, model, checked, execute);
    return checked;
}

Checked check_said(const CheckAsked& asked, const Executor& execute) {
    return asked.said.dialect == Dialect::titan_settings ? check_titan(asked, execute) : check_megatron(asked, execute);
}

}  // namespace

Checked check(const CheckAsked& asked, const Executor& execute) {
    if (asked.said.settings.empty())
        fail(ErrorKind::input, "{}: says no setting of {}", asked.said.from, name_of(asked.said.dialect));
    if (asked.said.not_at_hand.empty()) return check_said(asked, execute);
    try {
        return check_said(asked, execute);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) throw;
        fail(ErrorKind::input, "{}; {}", error.what(), asked.said.not_at_hand);  // what is missing may be said there
    }
}

}  // namespace pipeweaver::launch
