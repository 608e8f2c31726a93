// pipeweaver check: will a launch construct, does it fit, and which known hazards has it.
#include "pipeweaver/launch/check.hpp"

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::apps {

namespace {

using launch::Checked;
using launch::Dialect;

nlohmann::ordered_json fit_json(const launch::Fit& fit) {
    nlohmann::ordered_json json{{"device", fit.device},
                                {"usable_bytes", fit.usable.count},
                                {"fullest_rank", fit.fullest},
                                {"peak_bytes", fit.ranks[fit.fullest].peak.count},
                                {"short_bytes", std::max<std::int64_t>(0, fit.short_by().count)},
                                {"microbatches", fit.microbatches}};
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

nlohmann::ordered_json check_json(const Checked& checked) {
    nlohmann::ordered_json json{{"format", "pipeweaver-check/1"},
                                {"framework", checked.framework->text()},
                                {"source", checked.framework->source},
                                {"said", launch::name_of(checked.dialect)},
                                {"from", checked.from},
                                {"cluster", checked.cluster},
                                {"gpus", checked.gpus}};
    for (const auto& [name, number] : checked.degrees) json["layout"][name] = number;
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
    json["changes"] = nlohmann::ordered_json::array();
    for (const launch::Change& change : checked.changes)
        json["changes"].push_back({{"change", change.say},
                                   {"fullest_rank", change.fit.fullest},
                                   {"peak_bytes", change.fit.ranks[change.fit.fullest].peak.count}});
    json["hazards"] = nlohmann::ordered_json::array();
    for (const launch::Hazard& hazard : checked.hazards)
        json["hazards"].push_back(
            {{"hazard", hazard.id}, {"says", hazard.says}, {"why", hazard.why}, {"source", hazard.source}});
    json["assumed"] = checked.assumed;
    json["not_read"] = checked.not_read;
    return json;
}

std::string layers_line(const Checked& checked) {
    std::vector<std::string> degrees;
    degrees.reserve(checked.degrees.size());
    for (const auto& [name, number] : checked.degrees) degrees.push_back(fmt::format("{} {}", name, number));
    std::string text =
        fmt::format("{} on {} GPUs: {}\n", checked.framework->text(), checked.gpus, fmt::join(degrees, ", "));
    if (!checked.layers.empty()) text += fmt::format("layers of stages: {}\n", fmt::join(checked.layers, "|"));
    return text;
}

std::string fit_table(const launch::Fit& fit) {
    std::string text = fmt::format("{:>4} {:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "rank", "layers",
                                   "peak", "weights", "gradients", "optimizer", "buffers", "activations", "transient");
    for (std::size_t r = 0; r < fit.ranks.size(); ++r) {
        const launch::RankUse& rank = fit.ranks[r];
        text += fmt::format("{:>4} {:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", r, rank.layers,
                            human(rank.peak), human(rank.weights), human(rank.gradients), human(rank.optimizer),
                            human(rank.buffers), human(rank.activations), human(rank.transient));
    }
    return text;
}

std::string fit_text(const Checked& checked) {
    const launch::Fit& fit = *checked.fit;
    const launch::RankUse& fullest = fit.ranks[fit.fullest];
    std::string text =
        fmt::format("{}: rank {} is the fullest, {} of {} usable on a {}", fit.fits() ? "fits" : "does not fit",
                    fit.fullest, human(fullest.peak), human(fit.usable), fit.device);
    text += fit.fits() ? fmt::format(", {} left\n", human(fit.usable - fullest.peak))
                       : fmt::format(", {} short\n", human(fit.short_by()));
    text += fit_table(fit);
    if (fit.fits()) return text;
    text += checked.changes.empty()
                ? "no single change of those tried fits: recomputation, the optimizer shared out, layers "
                  "moved, more tp, pp or cp, a smaller microbatch\n"
                : "it fits with any of these, the least intrusive first:\n";
    for (const launch::Change& change : checked.changes)
        text += fmt::format("  {}: rank {} is the fullest, {}\n", change.say, change.fit.fullest,
                            human(change.fit.ranks[change.fit.fullest].peak));
    return text;
}

std::string check_text(const Checked& checked) {
    std::string text = layers_line(checked);
    text += checked.constructs() ? "constructs\n" : "does not construct\n";
    for (const launch::BrokenRule& rule : checked.broken)
        text += fmt::format("  {}: {}: {}\n    ({}: {})\n", rule.id, rule.says, rule.why, launch::name_of(rule.phase),
                            rule.source);
    if (checked.fit) text += fit_text(checked);
    for (const launch::Hazard& hazard : checked.hazards)
        text += fmt::format("hazard {}: {}: {}\n    ({})\n", hazard.id, hazard.says, hazard.why, hazard.source);
    for (const std::string& one : checked.assumed) text += fmt::format("assumed: {}\n", one);
    return text;
}

struct Check {
    explicit Check(CLI::App& app) : options(app) {
        console.add_to(app);
        add_operand(
            app, "file", file, "FILE",
            "a launch script (bash) or a configuration of Megatron-Bridge (YAML, JSON); of a script the command "
            "that launches counts");
        options.group("The launch");
        options.text("megatron-args", megatron, "ARGS", "Megatron-LM's arguments in one text, in place of FILE");
        options.text("bridge-overrides", bridge, "OVERRIDES",
                     "a Megatron-Bridge recipe's overrides, like model.num_layers=64, in place of FILE");
        options.text("torchtitan-args", titan, "ARGS", "torchtitan's settings, in place of FILE");
        options.text("set", set, "NAME=VALUE,...", "variables of the script that it leaves to its caller");
        options.text("framework", asked.framework, "NAME[:VERSION]",
                     "whose rules (default: megatron-core:0.16.1, torchtitan:0.3.0)");
        options.group("Machine, model and batch");
        options.text("cluster", asked.cluster, "CLUSTER",
                     "NAME:GPUS of `pipeweaver list clusters`, or a cluster file (required)");
        options.text(
            "model", asked.model, "MODEL",
            "a model of `pipeweaver list models`, a model file, or hf:CONFIG.json, whose sizes the launch need not "
            "say (torchtitan: required)");
        options.text("dataset", asked.dataset, "DATASET",
                     "of `pipeweaver list datasets` (default: text of the launch's sequence length)");
        options.text("batch", asked.batch, "FILE", "the samples of a step (.jsonl), in place of a data set");
        options.text("assigned", asked.assigned, "FILE",
                     "with --batch, the assignment of these samples that a plan wrote, which the launch is to train: "
                     "assignment.json, or launch-assignment.json where there is one (default: as they come)");
        options.text("recipe", asked.recipe, "RECIPE",
                     "how the framework trains, of `pipeweaver list recipes` (default: megatron-core, torch-fsdp2)");
        options.integer("seed", asked.seed, 0, 9'007'199'254'740'991, "of the samples that are drawn (default 1)");
        options.flag("rules-only", rules_only, "only whether it constructs, and hazards; not whether it fits");
        options.integer("threads", threads, 1, 1024, "threads (default: all cores); no result depends on it");
    }

    void run() {
        options.apply();
        if (asked.cluster.empty())
            fail(ErrorKind::input, "--cluster: is missing; `pipeweaver list clusters` names the known ones");
        if (!asked.batch.empty() && !asked.dataset.empty())
            fail(ErrorKind::input, "--batch, --dataset: allowed is one of the two");
        if (!asked.assigned.empty() && asked.batch.empty())
            fail(ErrorKind::input, "--assigned: goes with --batch, whose samples it names");
        asked.said = said();
        asked.fits = !rules_only;
        Limits limits;
        limits.threads = threads;
        const Checked checked = launch::check(asked, limits.executor());
        if (console.json)
            print_json(check_json(checked));
        else
            print_text("{}", check_text(checked));
        if (!checked.all_right()) fail(ErrorKind::limit, "{}", verdict(checked));
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

    static std::string verdict(const Checked& checked) {
        if (!checked.constructs()) {
            const launch::BrokenRule& first = checked.broken.front();
            return fmt::format("{}: {} does not construct it: {}: {}", checked.from, checked.framework->text(),
                               first.says, first.why);
        }
        const launch::Fit& fit = *checked.fit;
        return fmt::format("{}: does not fit: rank {} is {} short{}", checked.from, fit.fullest, human(fit.short_by()),
                           checked.changes.empty() ? std::string() : "; it fits with " + checked.changes.front().say);
    }

    Options options;
    Console console;
    launch::CheckAsked asked;
    std::string file, megatron, bridge, titan, set;
    bool rules_only = false;
    std::int64_t threads = 0;
};

}  // namespace

void add_check(CLI::App& program) {
    add_command<Check>(
        program, "check", "will a launch construct, does it fit, which hazards has it",
        {.synopsis =
             "--cluster CLUSTER (FILE | --megatron-args ARGS | --bridge-overrides OVERRIDES | --torchtitan-args ARGS) "
             "[OPTION...]",
         .description = "Reads a launch of Megatron-LM, Megatron-Bridge or torchtitan and says whether the framework "
                        "constructs it, rule "
                        "by rule with the source; whether every rank's memory holds it, by the emulator, and what "
                        "would make it fit; and "
                        "which known hazards it has.\n"
                        "Sizes of the model are those of the launch, or of --model. A size that neither says is asked "
                        "for by name.\n"
                        "The exit status is 0 if it constructs and fits, 4 if not, 2 for what is malformed.",
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
         .files = {},
         .see_also = {"pipeweaver emit", "pipeweaver emulate", "docs/check.md"}});
}

}  // namespace pipeweaver::apps
