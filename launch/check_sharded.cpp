// Checks of sharded trainers' launches.
#include "launch/check_parts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/launch/check.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/launch/sharded.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace pipeweaver::launch {

namespace {

using frameworks::Effect;
using SaidSharded = frameworks::ShardedLaunch;

// No sample that is trained is shorter, as far as a verdict rests on it.
constexpr std::int64_t shortest_sample = 128;
// No sample that is drawn or said is taken for longer.
constexpr std::int64_t longest_sample = 131'072;

std::vector<Open> missing_files(const ShardedLaunch& launch) {
    std::vector<Open> open;
    for (const MissingFile& one : launch.missing)
        open.push_back({one.setting, fmt::format("'{}' is not at hand", one.file),
                        "put it beside the launch, or say its path from there", Effect::either});
    return open;
}

// Degrees that no number of whole groups makes up.
std::vector<Open> open_degrees(const ShardedLaunch& l, std::int64_t gpus) {
    const std::int64_t together = l.tp * l.pp * l.sequence * l.ring;
    if (gpus % together == 0) return {};
    return {{"--cluster", fmt::format("{} GPUs are no multiple of the {} that share a sample", gpus, together),
             "name a cluster of as many GPUs as the launch has", Effect::either}};
}

std::vector<Open> open_backbone(const workloads::Model& model) {
    if (model.modules[model.backbone()].architecture.kind == workloads::ModuleKind::language_model) return {};
    return {{"--model", fmt::format("the backbone of '{}' is no language model, whose memory is counted", model.name),
             "`pipeweaver emulate` with its layout has the memory of every GPU", Effect::either}};
}

// Plans of DTensor share out attention, feed-forward and head, and leave linear attention whole on every GPU
// (NVIDIA-NeMo/Automodel 36044ad3 components/distributed/parallelizer.py, components/models/falcon_h1).
std::vector<Open> open_linear(const ShardedLaunch& l, const workloads::Model& model, bool is_counted) {
    const auto& linear = model.modules[model.backbone()].architecture.linear;
    if (l.tp == 1 || !linear || (linear->key_heads % l.tp == 0) != is_counted) return {};
    const std::string name = written(l, &SaidSharded::tp);
    if (is_counted)
        return {{name, "linear attention may lie whole on every GPU, and is counted in parts", {}, Effect::more}};
    return {{name,
             fmt::format("linear attention whose {} key heads {} GPUs do not share out is not counted",
                         linear->key_heads, l.tp),
             {},
             Effect::either}};
}

// FSDP may be accelerate's, whose file the command names.
std::vector<Open> open_launcher(const SaidLaunch& said, const ShardedLaunch& l) {
    const bool may_be_accelerates = said.is_alone && !written(l, &SaidSharded::launcher).empty();
    if (!may_be_accelerates || l.is_deepspeed() || l.is_fsdp()) return {};
    return {{"accelerate launch --config_file", "a file alone does not say whether its launcher shares out the model",
             "check the command that launches it", Effect::less}};
}

// accelerate utils/dataclasses.py MegatronLMPlugin: tensor and pipeline parallel degrees of that file.
std::vector<Open> open_megatron(const ShardedLaunch& l) {
    if (l.launcher != "MEGATRON_LM") return {};
    return {{"accelerate launch", "Megatron-LM shares out the model, by degrees that are not read",
             "check a launch of Megatron-LM with the same degrees", Effect::either}};
}

// Replicas of PyTorch are processes, and nobody says that there are several.
std::vector<Open> open_processes(const SaidLaunch& said, const ShardedLaunch& l, std::int64_t gpus) {
    const bool is_told = !said.says_gpus.empty() || said.variables.contains("NNODES");
    if (gpus == 1 || is_told || !said.entry->spreads_layers || l.is_deepspeed() || l.is_fsdp()) return {};
    return {{"NPROC_PER_NODE", "it has no plain number, and without it one process puts the layers on all GPUs it sees",
             "say in it how many processes there are, or name a cluster of one GPU", Effect::either}};
}

void add_degrees(const ShardedLaunch& l, Checked& checked) {
    checked.degrees = {{"tp", l.tp},
                       {"cp", l.sequence * l.ring},
                       {"pp", l.pp},
                       {"dp", l.dp(checked.gpus)},
                       {"ep", l.ep},
                       {"zero", l.zero_stage()},
                       {"microbatches", l.microbatches(checked.gpus) * l.parts()}};
}

bool says_batch(const CheckAsked& asked) { return !asked.batch.empty() || !asked.dataset.empty(); }

// What a microbatch holds is known: all of a length that is said, or samples that are.
bool knows_samples(const CheckAsked& asked, const workloads::Model& model) {
    return says_batch(asked) || !is_multimodal(model) || names_text_alone(asked.said);
}

// LLaMA-Factory's v1 ends a pack before the sample that is too much for it.
bool is_filled(const CheckAsked& asked, const ShardedLaunch& l) {
    const bool constant = asked.dataset.starts_with("constant-");
    return (l.packs.value_or(false) && !l.casts_whole) || l.padded_length || constant || !asked.batch.empty();
}

Open shorter_microbatch(const ShardedLaunch& l) {
    return {"--batch",
            fmt::format("a microbatch of {} samples may hold less than the most, which is counted", l.samples()),
            "say the samples of a step in --batch FILE",
            Effect::less,
            false,
            true};
}

// By text of the shortest samples, one in a microbatch: no launch holds less.
struct Least {
    Fit fit;
    bool fits = true;  ///< or it is not known that it does not
};

class ShardedCheck {
public:
    ShardedCheck(const CheckAsked& asked, ShardedLaunch launch, workloads::Model model, Checked& checked,
                 const Executor& execute)
        : asked_(asked), launch_(std::move(launch)), model_(std::move(model)), checked_(checked), execute_(execute) {}

    void run() {
        take_whole_samples();
        take_longest_named();
        const bool knows = knows_samples(asked_, model_) && launch_.length;
        if (!knows) return run_without_samples();
        const FitAsked of = fit_asked(asked_, checked_, model_);
        if (!says_batch(asked_) && !is_of_named_ && !launch_.packs.value_or(false))
            checked_.assumed.push_back("samples are not said: " + counted_as(longest()));
        put(fit_of(run_of(launch_, of), of.seed, execute_));
        std::vector<Open> open = open_of_fit(*checked_.fit);
        if (!is_filled(asked_, launch_) && !checked_.fit->fits() && least().fits)
            open.push_back(shorter_microbatch(launch_));
        append(open_launcher(asked_.said, launch_), open);
        if (takes_whole_ && !checked_.fit->fits())
            open.push_back({length_setting(), "samples may be cut to a length, and are counted whole",
                            "say it in the launch", Effect::less, false, true});
        decide(verdict_of(*checked_.fit, *checked_.error, open), turning(*checked_.fit, *checked_.error, open),
               checked_);
        if (!checked_.fit->fits())
            checked_.changes = fitting_changes(launch_, of, *checked_.fit, checked_.framework->text(), execute_);
    }

private:
    // Without a length that is said nothing is cut from samples that are.
    void take_whole_samples() {
        takes_whole_ = !launch_.length && says_batch(asked_) && !launch_.packs.value_or(false);
        if (takes_whole_) launch_.length = longest_sample;
    }

    // The data that is named may have a longest sample, shorter than a length that is said. Pairs are longer than it.
    void take_longest_named() {
        const auto* const kind = frameworks::training_stage(launch_.stage);
        if (says_batch(asked_) || launch_.packs.value_or(false) || launch_.padded_length) return;
        if (kind != nullptr && kind->rows > 1) return;
        const bool generates = kind != nullptr && kind->generates;
        const auto longest = longest_named(asked_.said, model_, generates && !kind->distils);
        if (!longest) return;
        const std::int64_t tokens = longest->tokens + (generates ? launch_.answer_length.value_or(0) : 0);
        if (launch_.length && *launch_.length <= tokens) return;
        is_of_named_ = true;
        launch_.length = tokens;
        checked_.assumed.push_back(counted_as(*longest));
    }

    void put(Fit fit) {
        checked_.fit = std::move(fit);
        checked_.error = memory_error_of(checked_.fit->recipe, checked_.entry, model_, checked_.fit->ranks.size() > 1);
        const auto& assumed = checked_.fit->assumed;
        checked_.assumed.insert(checked_.assumed.end(), assumed.begin(), assumed.end());
    }

    std::vector<Open> open_of_fit(const Fit& fit) const {
        std::vector<Open> open =
            not_modelled(asked_.said.dialect, not_counted(), asked_.said.settings, {true, model_.backbone() > 0});
        append(open_of(fit.doubts), open);
        append(open_linear(launch_, model_, true), open);
        if (workloads::has_fewer_bits(asked_.said.named_model))
            open.push_back({"--model", "weights of fewer bits than 16, which are counted", {}, Effect::less});
        if (!asked_.said.named.empty()) append(memory_set_elsewhere(asked_.said), open);
        return open;
    }

    // The model itself as its reference is counted.
    std::vector<Setting> not_counted() const {
        std::vector<Setting> rest = launch_.not_read;
        const auto* const kind = frameworks::training_stage(launch_.stage);
        if (kind == nullptr || !kind->refers || launch_.has_adapters()) return rest;
        std::erase_if(rest, [&](const Setting& one) {
            return one.name == "ref_model" && one.values.size() == 1 && one.values.front() == asked_.said.named_model;
        });
        return rest;
    }

    std::int64_t shortest() const { return launch_.padded_length.value_or(shortest_sample); }

    // By text alone, of samples that are all so long.
    Fit fit_with(ShardedLaunch launch, std::int64_t length) const {
        launch.length = length;
        launch.packs = false;
        FitAsked of = fit_asked(asked_, checked_, model_);
        of.dataset = fmt::format("constant-{}", length);
        of.batch.clear();
        of.assigned.clear();
        return fit_of(run_of(launch, of), of.seed, execute_);
    }

    Least least() const {
        ShardedLaunch launch = launch_;
        if (!launch.padded_length) {
            launch.micro_batch = launch.parts();
            launch.pipeline_batch = 1;
        }
        Least found{fit_with(launch, shortest())};
        const MemoryError& error =
            memory_error_of(found.fit.recipe, checked_.entry, model_, found.fit.ranks.size() > 1);
        found.fits = verdict_of(found.fit, error, open_of_fit(found.fit)) != Verdict::does_not_fit;
        return found;
    }

    // Only what does not fit with the least is known.
    void run_without_samples() {
        Least found = least();
        if (!found.fits) {
            put(std::move(found.fit));
            checked_.assumed.push_back(
                fmt::format("samples of {} tokens of text: it does not fit with these already", shortest()));
            std::vector<Open> launcher = open_launcher(asked_.said, launch_);
            const Verdict verdict = launcher.empty() ? Verdict::does_not_fit : Verdict::undecided;
            return decide(verdict, std::move(launcher), checked_);
        }
        if (is_settled_by_longest()) return;
        std::vector<Open> open;
        if (!launch_.length)
            open.push_back({length_setting(), why_no_length(),
                            "say it in the launch, or the samples with --dataset or --batch FILE"});
        if (!knows_samples(asked_, model_))
            open.push_back(
                {"--dataset", "what samples hold beside text decides what fits", "name a data set, or --batch FILE"});
        decide(Verdict::undecided, std::move(open), checked_);
    }

    // And how long samples may be, in powers of two, where they hold text alone, one by one: packs are as long as all.
    std::string why_no_length() const {
        std::string why = launch_.uncut ? "longer samples are not cut to it" : "the length of samples is not said";
        if (is_multimodal(model_) || launch_.packs.value_or(false)) return why;
        std::int64_t most = 0;
        for (std::int64_t length = shortest_sample; length <= longest_sample; length *= 2) {
            const Fit fit = fit_with(launch_, length);
            const MemoryError& error = memory_error_of(fit.recipe, checked_.entry, model_, fit.ranks.size() > 1);
            if (verdict_of(fit, error, open_of_fit(fit)) != Verdict::fits) break;
            most = length;
        }
        return most == 0 ? why : fmt::format("{}: it fits while none has more than {} tokens", why, most);
    }

    bool is_settled_by_longest() {
        if (!launch_.length) return false;
        LongestSamples samples = longest();
        if (!launch_.packs.value_or(false)) samples.images = most_images(asked_.said);
        return is_decided_by_longest(
            asked_, with_image_sizes(launch_, model_), samples, [&](const FitAsked& of) { return run_of(launch_, of); },
            [&](const Fit& fit) { return open_of_fit(fit); }, checked_, execute_);
    }

    // Pre: a length is said, or is the trainer's own.
    LongestSamples longest() const {
        return {
            *launch_.length, launch_.dp(checked_.gpus) * launch_.sequences() * launch_.parts(), length_setting(), {}};
    }

    std::string length_setting() const {
        const std::string name = written(launch_, &SaidSharded::length);
        return name.empty() ? "the length of samples" : name;
    }

    const CheckAsked& asked_;
    ShardedLaunch launch_;
    workloads::Model model_;
    Checked& checked_;
    const Executor& execute_;
    bool takes_whole_ = false;  // no length is said, and samples are
    bool is_of_named_ = false;  // the length is that of the data's longest sample
};

// A file alone that several commands train: as with pairs and a copy of the model, which hold most?
void decide_command(const CheckAsked& asked, ShardedLaunch launch, const workloads::Model& model, Checked& checked,
                    const Executor& execute) {
    const bool fits = checked.verdict == Verdict::fits || checked.verdict == Verdict::close;
    if (!fits || !asked.said.is_alone || asked.said.entry->commands.empty()) return;
    launch.stage = "dpo";
    Checked with_pairs = begun(asked);
    ShardedCheck(asked, std::move(launch), model, with_pairs, execute).run();
    if (with_pairs.verdict == checked.verdict) return;
    decide(Verdict::undecided,
           {{"the command", fmt::format("a file alone does not say whether {} trains it", asked.said.entry->commands),
             "check the command that launches it", Effect::more}},
           checked);
}

std::vector<std::string> names_of(const std::vector<Setting>& settings) {
    std::vector<std::string> names;
    for (const Setting& one : settings)
        if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
    return names;
}

}  // namespace

Checked check_sharded(const CheckAsked& asked, const Executor& execute) {
    Checked checked = begun(asked);
    ShardedLaunch launch = read_sharded(asked.said);
    put_not_read(asked.said, names_of(launch.not_read), checked);
    checked.assumed.insert(checked.assumed.end(), launch.notes.begin(), launch.notes.end());
    std::vector<Open> open = missing_files(launch);
    if (asked.model.empty()) {
        const std::string& named = asked.said.named_model;
        const std::string why =
            named.empty() ? "no model is said" : fmt::format("model '{}' is not in the catalogue", named);
        open.push_back({"--model", why, how_to_name_a_model(named), Effect::either});
    }
    append(open_processes(asked.said, launch, checked.gpus), open);
    append(open_megatron(launch), open);
    if (!open.empty()) {
        decide(Verdict::undecided, std::move(open), checked);
        return checked;
    }
    const workloads::Model model = workloads::find_model(asked.model);
    launch = with_model(std::move(launch), model);
    checked.broken = broken_rules(launch, checked.gpus, *checked.framework);
    add_degrees(launch, checked);
    if (!checked.constructs()) {
        decide(Verdict::does_not_construct, {}, checked);
        return checked;
    }
    if (launch.pp > 1) checked.layers = built_layers(launch).layers;
    open = open_backbone(model);
    if (open.empty() && launch.has_adapters()) open = open_adapters(written(launch, &SaidSharded::lora_rank), model);
    if (open.empty()) open = open_degrees(launch, checked.gpus);
    if (open.empty()) open = open_linear(launch, model, false);
    if (!open.empty()) {
        decide(Verdict::undecided, std::move(open), checked);
    } else if (asked.fits) {
        ShardedCheck(asked, launch, model, checked, execute).run();
        decide_command(asked, launch, model, checked, execute);
    }
    return checked;
}

}  // namespace pipeweaver::launch
