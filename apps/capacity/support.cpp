// pipeweaver support: whether a model on a cluster can be answered, and on which basis.
#include "pipeweaver/capacity/support.hpp"

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/planner/workload_options.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>

namespace pipeweaver::apps {

namespace {

using capacity::BasisShares;

struct SupportCommand {
    explicit SupportCommand(CLI::App& app) : options(app) {
        console.add_to(app);
        options.group("The question");
        options.text("model", asked.model, "MODEL",
                     "a model of `pipeweaver list models`, a model file, or hf:CONFIG.json (required)");
        options.text("cluster", asked.cluster, "CLUSTER",
                     "NAME of `pipeweaver list clusters`, NAME:GPUS or a cluster file (required; without GPUs the "
                     "fewest that fit, doubling)");
        options.text("dataset", asked.dataset, "DATASET",
                     "of `pipeweaver list datasets` (default: one that has what the model takes)");
        options.text("batch", asked.batch, "FILE", "the samples of a step (.jsonl), in place of a data set");
        options.text("recipe", asked.recipe, "RECIPE", "how the framework trains (default: megatron-core)");
        planner_costs();
        options.integer("threads", threads, 1, 1024, "threads (default: as many as the machine has)");
    }

    void run() {
        options.apply();
        require_given({planner::needed_model(asked.model), planner::needed_cluster(asked.cluster)});
        Limits limits;
        limits.threads = threads.value_or(0);
        const auto support = capacity::support_of(asked, limits.executor());
        if (console.json)
            print_json(as_json(support));
        else
            print_text("{}\n", text(support));
    }

private:
    void planner_costs() {
        options.text("costs", asked.costs, "FILE",
                     "operator costs from this file of `costdb import`; what it lacks: from the embedded tables");
    }

    std::string text(const capacity::Support& support) const {
        const BasisShares& all = support.shares.front();
        std::string text =
            fmt::format("yes: {} on {} of {}, {} zero {}, {} {}\n\n", asked.model, plural(support.gpus, "GPU"),
                        asked.cluster.substr(0, asked.cluster.rfind(':')), emulator::name_of(support.point.as.layout),
                        support.point.as.zero, asked.batch.empty() ? "data set" : "batch", support.dataset);
        TextTable table({{"kernels", true, 12},
                         {"of time", false, 8},
                         {"measured", false, 9},
                         {"transferred", false, 12},
                         {"modelled", false, 9}},
                        1);
        for (const BasisShares& row : support.shares)
            table.add({row.what, percent(row.of_time), percent(row.measured), percent(row.transferred),
                       percent(row.modelled)});
        text += table.text() +
                "measured: the device's own table at this shape or between its points; transferred: from points on one "
                "side only,\nfrom a like operator or another device; modelled: a roofline or an algorithm's model\n\n";
        text += fmt::format("in a step beside alone: {} ({}); steps of real runs are {:.1f} % off on average\n",
                            support.footing, support.factors_source, support.error_percent);
        text += fmt::format("the model's sizes: {}",
                            support.confidence.empty() ? "as its file says them" : support.confidence);
        for (const std::string& one : support.assumed) text += fmt::format("\nassumed: {}", one);
        if (all.modelled + all.transferred > 0.5)
            text +=
                "\nmost of the time rests on no measurement of this device: measure it (docs/your-own-measurements.md)";
        return text;
    }

    static nlohmann::ordered_json as_json(const capacity::Support& support) {
        nlohmann::ordered_json json{{"format", "pipeweaver-support/1"},
                                    {"supported", true},
                                    {"gpus", support.gpus},
                                    {"dataset", support.dataset},
                                    {"footing", support.footing},
                                    {"in_situ", support.factors_source},
                                    {"error_percent", support.error_percent},
                                    {"confidence", support.confidence},
                                    {"assumed", support.assumed}};
        json["layout"] = capacity::layout_json(support.point.as);
        for (const BasisShares& row : support.shares)
            json["shares"].push_back({{"what", row.what},
                                      {"of_time", row.of_time},
                                      {"measured", row.measured},
                                      {"transferred", row.transferred},
                                      {"modelled", row.modelled}});
        return json;
    }

    Options options;
    Console console;
    capacity::SupportAsked asked;
    std::optional<std::int64_t> threads;
};

}  // namespace

void add_support(CLI::App& program) {
    add_command<SupportCommand>(
        program, "support", "whether a model on a cluster can be answered, and on which basis",
        {.synopsis = "--model MODEL --cluster CLUSTER [OPTION...]",
         .description =
             "Says whether a model on a cluster can be answered at all, before anything is planned: the fewest GPUs "
             "that hold it, and for which part of a step's time the costs are measured on this device, transferred "
             "from others, or modelled; what kernels take in a step beside alone, and how far steps of real runs are "
             "off; what is assumed of the model.",
         .examples = {{"A vision-language model on H100", "pipeweaver support --model dip-vlm-m --cluster h100-sxm"},
                      {"On B200, for a program", "pipeweaver support --model dip-vlm-s --cluster b200-sxm:32 --json"}},
         .see_also = {"pipeweaver recommend", "pipeweaver costdb stats", "docs/accuracy.md"}});
}

}  // namespace pipeweaver::apps
