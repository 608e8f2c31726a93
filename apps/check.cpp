// pipeweaver check: will a launch construct, does it fit, and which known hazards has it.
#include "pipeweaver/launch/check.hpp"

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/planner/anchor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::apps {

namespace {

using launch::Checked;
using launch::Dialect;
using launch::Verdict;

nlohmann::ordered_json fit_json(const launch::Fit& fit) {
    nlohmann::ordered_json json{{"device", fit.device},
                                {"usable_bytes", fit.usable.count},
                                {"fullest_rank", fit.fullest},
                                {"peak_bytes", fit.ranks[fit.fullest].peak.count},
                                {"short_bytes", std::max<std::int64_t>(0, fit.short_by().count)},
                                {"microbatches", fit.microbatches}};
    if (workloads::device(fit.device).modelled) json["modelled"] = true;
    for (const launch::RankUse& rank : fit.ranks)
        json["ranks"].push_back({{"layers", rank.layers},
                                 {"peak_bytes", rank.peak.count},
                                 {"weights_bytes", rank.weights.count},
                                 {"gradients_bytes", rank.gradients.count},
                                 {"optimizer_bytes", rank.optimizer.count},
                                 {"buffers_bytes", rank.buffers.count},
                                 {"activations_bytes", rank.activations.count},
                                 {"transient_bytes", rank.transient.count}});
    return json;
}

nlohmann::ordered_json groups_json(const Checked& checked) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const launch::GroupUse& one : checked.groups)
        json.push_back({{"group", one.name},
                        {"first_gpu", one.first_gpu},
                        {"gpus", one.gpus()},
                        {"tp", one.tp},
                        {"cp", one.cp},
                        {"pp", one.pp},
                        {"dp", one.dp},
                        {"recompute", one.recompute},
                        {"peak_bytes", one.peak.count}});
    return json;
}

nlohmann::ordered_json check_json(const Checked& checked) {
    nlohmann::ordered_json json{{"format", "pipeweaver-check/1"},
                                {"framework", checked.framework->text()},
                                {"source", checked.framework->source},
                                {"said", launch::name_of(checked.dialect)},
                                {"from", checked.from},
                                {"cluster", checked.cluster},
                                {"gpus", checked.gpus}};
    for (const auto& [name, number] : checked.degrees) json["layout"][name] = number;
    json["verdict"] = checked.verdict ? nlohmann::ordered_json(launch::name_of(*checked.verdict)) : nullptr;
    json["open"] = nlohmann::ordered_json::array();
    for (const launch::Open& one : checked.open)
        json["open"].push_back({{"setting", one.setting},
                                {"why", one.why},
                                {"memory", frameworks::name_of(one.effect)},
                                {"give", one.give}});
    json["stages"] = checked.layers;
    json["constructs"] = checked.constructs();
    json["broken"] = nlohmann::ordered_json::array();
    for (const launch::BrokenRule& rule : checked.broken)
        json["broken"].push_back({{"rule", rule.id},
                                  {"says", rule.says},
                                  {"why", rule.why},
                                  {"phase", launch::name_of(rule.phase)},
                                  {"source", rule.source}});
    json["fits"] = checked.fit ? nlohmann::ordered_json(checked.fit->fits()) : nlohmann::ordered_json(nullptr);
    json["memory"] = checked.fit ? fit_json(*checked.fit) : nlohmann::ordered_json(nullptr);
    if (checked.error) json["memory"]["error"] = {{"more", checked.error->more}, {"less", checked.error->less}};
    if (!checked.groups.empty()) json["groups"] = groups_json(checked);
    json["changes"] = nlohmann::ordered_json::array();
    for (const launch::Change& change : checked.changes)
        json["changes"].push_back({{"change", change.say},
                                   {"fullest_rank", change.fit.fullest},
                                   {"peak_bytes", change.fit.ranks[change.fit.fullest].peak.count}});
    json["hazards"] = nlohmann::ordered_json::array();
    for (const launch::Hazard& hazard : checked.hazards)
        json["hazards"].push_back(
            {{"hazard", hazard.id}, {"says", hazard.says}, {"why", hazard.why}, {"source", hazard.source}});
    json["conflict"] = or_null(checked.conflict);
    json["assumed"] = checked.assumed;
    json["not_read"] = checked.not_read;
    json["launched_by"] = or_null(checked.entry);
    return json;
}

std::string layers_line(const Checked& checked) {
    const std::string degrees =
        joined(checked.degrees, ", ", [](const auto& one) { return fmt::format("{} {}", one.first, one.second); });
    std::string text =
        fmt::format("{}{} on {} GPUs", checked.framework->text(),
                    checked.entry.empty() ? std::string() : ", launched by " + checked.entry, checked.gpus);
    if (!degrees.empty()) text += ": " + degrees;
    text += '\n';
    if (checked.fit) text += checked.fit->holds + '\n';
    if (!checked.layers.empty()) text += fmt::format("layers of stages: {}\n", fmt::join(checked.layers, "|"));
    return text;
}

std::string groups_text(const Checked& checked) {
    std::string text;
    for (const launch::GroupUse& one : checked.groups)
        text += fmt::format("{}: GPUs {} to {}, tp {} x cp {} x pp {} x dp {}, recompute {}: {} at most\n", one.name,
                            one.first_gpu, one.first_gpu + one.gpus() - 1, one.tp, one.cp, one.pp, one.dp,
                            one.recompute, human(one.peak));
    return text;
}

std::string fit_table(const launch::Fit& fit) {
    std::vector<TextTable::Column> columns{{"rank", false, 4}, {"layers", false, 7}};
    for (const char* part : {"peak", "weights", "gradients", "optimizer", "buffers", "activations", "transient"})
        columns.push_back({part, false, 12});
    TextTable table(std::move(columns), 1);
    for (std::size_t r = 0; r < fit.ranks.size(); ++r) {
        const launch::RankUse& rank = fit.ranks[r];
        table.add({std::to_string(r), std::to_string(rank.layers), human(rank.peak), human(rank.weights),
                   human(rank.gradients), human(rank.optimizer), human(rank.buffers), human(rank.activations),
                   human(rank.transient)});
    }
    return table.text();
}

std::string join_and(const std::vector<std::string>& names) {
    constexpr std::size_t most = 4;
    const std::span<const std::string> some(names.data(), std::min(most, names.size()));
    const std::size_t left = names.size() - some.size();
    return fmt::format("{}{}", fmt::join(some, ", "), left > 0 ? fmt::format(" and {} more", left) : std::string());
}

std::string peak_text(const launch::Fit& fit) {
    const launch::RankUse& fullest = fit.ranks[fit.fullest];
    const std::string left = fit.fits() ? fmt::format("{} left", human(fit.usable - fullest.peak))
                                        : fmt::format("{} short", human(fit.short_by()));
    return fmt::format("rank {} is the fullest, {} of {} usable on a {}, {}", fit.fullest, human(fullest.peak),
                       human(fit.usable), fit.device, left);
}

// What is taken for the truth and could turn the verdict.
std::string turning_text(const Checked& checked) {
    std::vector<std::string> phrases;
    const bool fits = checked.fit->fits();
    for (const launch::Doubt& one : checked.fit->doubts) {
        const bool turns = one.effect == frameworks::Effect::either || checked.verdict == Verdict::close ||
                           (one.effect == frameworks::Effect::more) == fits;
        if (turns && one.setting.empty()) phrases.push_back(one.phrase);
    }
    return phrases.empty() ? std::string() : "; assumed " + join_and(phrases);
}

// What follows with the values of the framework where nobody says others.
std::string by_default(const Checked& checked) {
    if (!checked.constructs())
        return fmt::format("does not construct: {}: {}", checked.broken.front().says, checked.broken.front().why);
    if (!checked.fit) return "constructs";
    return fmt::format("{}: {}", checked.fit->fits() ? "fits" : "does not fit", peak_text(*checked.fit));
}

std::string undecided_text(const Checked& checked) {
    std::vector<std::string> names;
    for (const launch::Open& one : checked.open)
        if (std::find(names.begin(), names.end(), one.setting) == names.end()) names.push_back(one.setting);
    std::string text = fmt::format("undecided: it rests on {}", join_and(names));
    const launch::Open& first = checked.open.front();
    const char* const by = first.give.empty() ? "as far as it is counted"
                           : first.is_taken   ? "as it is read"
                                              : "by the framework's defaults";
    if (checked.fit || !checked.constructs())
        text +=
            fmt::format("; {} it {}{}", by, by_default(checked), checked.fit ? turning_text(checked) : std::string());
    return text;
}

// The verdict, and all that could turn it.
std::string verdict_line(const Checked& checked) {
    if (!checked.verdict) return "constructs";
    switch (*checked.verdict) {
        case Verdict::undecided:
            return undecided_text(checked);
        case Verdict::does_not_construct:
            return by_default(checked);
        case Verdict::close:
            return fmt::format("close: {}, and memory may be {:.0f} % more or {:.0f} % less{}", peak_text(*checked.fit),
                               100 * checked.error->more, 100 * checked.error->less, turning_text(checked));
        default:
            return by_default(checked) + turning_text(checked);
    }
}

std::string changes_text(const Checked& checked) {
    if (checked.fit->fits() || !checked.groups.empty()) return {};
    const char* const tried =
        checked.dialect == Dialect::sharded_settings
            ? "recomputation, a fused loss, a smaller microbatch, on DeepSpeed ZeRO 3, and states on the host"
            : "recomputation, the optimizer shared out, layers moved, more tp, pp or cp, a smaller "
              "microbatch";
    std::string text = checked.changes.empty() ? fmt::format("no single change of those tried fits: {}\n", tried)
                                               : "it fits with any of these, the least intrusive first:\n";
    for (const launch::Change& change : checked.changes)
        text += fmt::format("  {}: rank {} is the fullest, {}\n", change.say, change.fit.fullest,
                            human(change.fit.ranks[change.fit.fullest].peak));
    return text;
}

std::string quiet_text(const Checked& checked, bool verbose) {
    if (checked.quiet.empty()) return {};
    const std::string count =
        checked.quiet.size() == 1 ? "1 setting says" : fmt::format("{} settings say", checked.quiet.size());
    if (!verbose) return fmt::format("{} nothing of memory as far as known; --verbose lists them\n", count);
    return fmt::format("{} nothing of memory as far as known: {}\n", count, fmt::join(checked.quiet, ", "));
}

std::string check_text(const Checked& checked, bool verbose) {
    std::string text = verdict_line(checked) + '\n';
    for (const launch::Open& one : checked.open)
        text += fmt::format("  {}: {}{}\n", one.setting, one.why, one.give.empty() ? std::string() : "; " + one.give);
    if (!checked.conflict.empty()) text += fmt::format("conflict: {}\n", checked.conflict);
    text += layers_line(checked);
    for (const launch::BrokenRule& rule : checked.broken)
        text += fmt::format("  {}: {}: {}\n    ({}: {})\n", rule.id, rule.says, rule.why, launch::name_of(rule.phase),
                            rule.source);
    if (checked.fit) text += groups_text(checked) + fit_table(*checked.fit) + changes_text(checked);
    for (const launch::Hazard& hazard : checked.hazards)
        text += fmt::format("hazard {}: {}: {}\n    ({})\n", hazard.id, hazard.says, hazard.why, hazard.source);
    for (const std::string& one : checked.assumed) text += fmt::format("assumed: {}\n", one);
    return text + quiet_text(checked, verbose);
}

struct Check {
    explicit Check(CLI::App& app) : options(app) {
        console.add_to(app);
        add_operand(
            app, "file", file, "FILE",
            "a launch script (bash), or a configuration of Megatron-Bridge, LLaMA-Factory, VeOmni or NeMo AutoModel "
            "(YAML, JSON); of a script the command that launches counts");
        options.group("The launch");
        options.text("megatron-args", megatron, "ARGS", "Megatron-LM's arguments in one text, in place of FILE");
        options.text("bridge-overrides", bridge, "OVERRIDES",
                     "a Megatron-Bridge recipe's overrides, like model.num_layers=64, in place of FILE");
        options.text("torchtitan-args", titan, "ARGS", "torchtitan's settings, in place of FILE");
        options.text("set", set, "NAME=VALUE,...", "variables of the script that it leaves to its caller");
        options.text("framework", asked.framework, "NAME[:VERSION]",
                     "whose rules (default: those of what is launched, megatron-core:0.16.1, torchtitan:0.3.0)");
        options.group("Machine, model and batch");
        options.text("cluster", asked.cluster, "CLUSTER",
                     "NAME:GPUS of `pipeweaver list clusters`, or a cluster file (required)");
        options.text(
            "model", asked.model, "MODEL",
            "a model of `pipeweaver list models`, a model file, or hf:CONFIG.json, whose sizes the launch need not "
            "say (torchtitan: required)");
        options.text("encoders", asked.encoders.built_by, "HOW",
                     "how encoders lie on the GPUs of their stage: split as the language model, or as a framework of "
                     "docs/encoders.md builds them (default: as the program that is launched)");
        options.flag("deal-images", asked.encoders.deals_images,
                     "context parallel groups take whole images: for a launch whose own words cannot say it");
        options.text("dataset", asked.dataset, "DATASET",
                     "of `pipeweaver list datasets` (default: text of the launch's sequence length)");
        options.text("batch", asked.batch, "FILE", "the samples of a step (.jsonl), in place of a data set");
        options.text("assigned", asked.assigned, "FILE",
                     "with --batch, the assignment of these samples that a plan wrote, which the launch is to train: "
                     "assignment.json, or launch-assignment.json where there is one (default: as they come)");
        options.text("recipe", asked.recipe, "RECIPE",
                     "how the framework trains, of `pipeweaver list recipes` (default: megatron-core, torch-fsdp2)");
        options.text("anchor", anchor, "FILE",
                     "a measured launch of one GPU or node, whose peak corrects the memory of others (JSON or YAML)");
        options.integer("seed", asked.seed, 0, 9'007'199'254'740'991, "of the samples that are drawn (default 1)");
        options.flag("rules-only", rules_only, "only whether it constructs, and hazards; not whether it fits");
        options.flag("verbose", verbose, "list the settings that say nothing of layout, model or memory");
        options.integer("threads", threads, 1, 1024, "threads (default: all cores); no result depends on it");
    }

    void run() {
        options.apply();
        const bool has_words = !megatron.empty() || !bridge.empty() || !titan.empty();
        require_given({{!file.empty() || has_words, "FILE",
                        "a launch, in its place --megatron-args, --bridge-overrides or --torchtitan-args"},
                       planner::needed_cluster(asked.cluster)});
        if (!asked.batch.empty() && !asked.dataset.empty())
            fail(ErrorKind::input, "--batch, --dataset: allowed is one of the two");
        if (!asked.assigned.empty() && asked.batch.empty())
            fail(ErrorKind::input, "--assigned: goes with --batch, whose samples it names");
        asked.said = said();
        asked.anchor = planner::read_anchor(anchor);
        asked.fits = !rules_only;
        Limits limits;
        limits.threads = threads;
        const Checked checked = launch::check(asked, limits.executor());
        if (console.json)
            print_json(check_json(checked));
        else
            print_text("{}", check_text(checked, verbose));
        const int status = checked.verdict ? exit_status_of(*checked.verdict) : 0;
        if (status != 0) fail(static_cast<ErrorKind>(status), "{}: {}", checked.from, verdict_line(checked));
    }

private:
    launch::SaidLaunch said() const {
        const auto inline_launches =
            std::to_array<std::pair<const std::string*, Dialect>>({{&megatron, Dialect::megatron_arguments},
                                                                   {&bridge, Dialect::bridge_overrides},
                                                                   {&titan, Dialect::titan_settings}});
        constexpr std::array<const char*, 3> names{"--megatron-args", "--bridge-overrides", "--torchtitan-args"};
        std::optional<launch::SaidLaunch> found;
        std::size_t given = file.empty() ? 0 : 1;
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (inline_launches[i].first->empty()) continue;
            ++given;
            found = launch::read_words(inline_launches[i].second, *inline_launches[i].first, names[i]);
        }
        if (given != 1)
            fail(ErrorKind::input,
                 "FILE, --megatron-args, --bridge-overrides, --torchtitan-args: exactly one of them is needed");
        if (!set.empty() && file.empty()) fail(ErrorKind::input, "--set: goes with FILE, a script");
        return found ? std::move(*found) : launch::read_launch(file, std::nullopt, launch::parse_variables(set));
    }

    Options options;
    Console console;
    launch::CheckAsked asked;
    std::string file, megatron, bridge, titan, set, anchor;
    bool rules_only = false, verbose = false;
    std::int64_t threads = 0;
};

}  // namespace

void add_check(CLI::App& program) {
    add_command<Check>(
        program, "check", "will a launch construct, does it fit, which hazards has it",
        {.synopsis =
             "--cluster CLUSTER (FILE | --megatron-args ARGS | --bridge-overrides OVERRIDES | --torchtitan-args ARGS) "
             "[OPTION...]",
         .description =
             "Reads a launch of Megatron-LM, Megatron-Bridge, torchtitan, or of a trainer on DeepSpeed or FSDP "
             "(LLaMA-Factory, ms-swift, VeOmni, NeMo AutoModel, scripts of Hugging Face's Trainer), or the grids of "
             "MegatronMIMO, and says whether "
             "the framework constructs it, rule by rule with the source; whether every rank's memory holds it, by the "
             "emulator, and what would make it fit; and which known hazards it has.\n"
             "Sizes of the model are those of the launch, or of --model. A size that neither says is asked for by "
             "name.\n"
             "The first line is the verdict, with what could turn it. The exit status is 0 where it fits or is close "
             "to the limit, 4 where it does not fit or construct, 5 where that is undecided, 2 for what is malformed.",
         .examples =
             {{"A launch script of Megatron-LM", "pipeweaver check --cluster h100-sxm:64 examples/launch.sh"},
              {"A dense model by Megatron-LM's arguments",
               "pipeweaver check --cluster h100-sxm:64 --megatron-args '--tensor-model-parallel-size 4 "
               "--pipeline-model-parallel-size 4 --sequence-parallel --num-layers 32 --hidden-size 4096 "
               "--num-attention-heads 32 --swiglu --ffn-hidden-size 11008 --seq-length 4096 "
               "--max-position-embeddings 4096 --vocab-size 32000 --micro-batch-size 1 --global-batch-size 64 --bf16 "
               "--use-distributed-optimizer'"},
              {"A model of the catalogue in torchtitan",
               "pipeweaver check --cluster h100-sxm:16 --model llama3-8b --torchtitan-args "
               "'--parallelism.pipeline_parallel_degree 2 --parallelism.tensor_parallel_degree 4 "
               "--training.disable_cuda_graphs'"}},
         .see_also = {"pipeweaver emit", "pipeweaver emulate", "docs/check.md"}});
}

}  // namespace pipeweaver::apps
